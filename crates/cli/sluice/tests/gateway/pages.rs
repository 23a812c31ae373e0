//! The commands of `docs/manual/gateway.md`, on free ports.

use std::process::Command;
use std::time::{Duration, Instant};

use super::common::page_rack::PageRack;
use super::common::{command, example, sluice, stderr};
use super::http::has_curl;
use super::rig::{PATIENCE, PLAN, has};
use serde_json::Value;

const PAGE: &str = include_str!("../../../../../docs/manual/gateway.md");
/// The addresses that the page and its plan write; those of clients without the host.
const WRITTEN: [&str; 4] = ["127.0.0.1:7400", "127.0.0.1:6379", "127.0.0.1:8080", "127.0.0.1:5005"];

#[test]
fn every_command_of_the_page_does_what_it_says() {
    if !has("redis-cli") || !has("redis-benchmark") || !has_curl() {
        return;
    }
    let page = PageRack::of(PAGE, &WRITTEN);
    let plan = page.path().join("crates/run/gateway/examples");
    std::fs::create_dir_all(&plan).expect("made");
    let words = example("reverse_service").display().to_string();
    let written = page.here(PLAN).replace("target/debug/examples/reverse_service", &words);
    std::fs::write(plan.join("kv.toml"), written).expect("written");
    let controller = page.here("127.0.0.1:7400");
    let mut running = Vec::new();
    for line in page.lines("sh stays") {
        let mut args = page.args(line);
        if args[0] == "gateway" {
            args.extend(["--controller".to_owned(), controller.clone()]);
        }
        running.push(page.start_args(&args));
        wait_for_workers(&page, &controller, 4);
    }
    assert_eq!(running.len(), 2);
    let gateway = page.here("127.0.0.1:6379");
    let until = Instant::now() + PATIENCE;
    while std::net::TcpStream::connect(&gateway).is_err() {
        assert!(Instant::now() < until, "{}", page.logs());
        std::thread::sleep(Duration::from_millis(20));
    }
    let port = gateway.rsplit(':').next().expect("a port").to_owned();
    let mut said = Vec::new();
    for line in page.lines("sh").filter(|line| !line.starts_with("cargo ")) {
        let line = page.here(line).replace("-p 6379", &format!("-p {port}"));
        let ended =
            Command::new("sh").args(["-c", &line]).current_dir(page.path()).output().expect("a shell");
        assert!(ended.status.success(), "{line}: {}\n{}", stderr(&ended), page.logs());
        said.push(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    assert_eq!(said.len(), 4, "{said:?}");
    assert_eq!([&said[0], &said[1], &said[3]], ["OK\n", "world\n", "desserts"]);
    assert!(said[2].contains("SET: ") && said[2].contains("GET: "), "{said:?}");
    while let Some(part) = running.pop() {
        part.ends_well();
    }
}

fn wait_for_workers(page: &PageRack, controller: &str, count: usize) {
    let until = Instant::now() + PATIENCE;
    loop {
        let asked = sluice(page.path(), &["status", "--json", "--controller", controller]);
        let said: Value = serde_json::from_slice(&asked.stdout).unwrap_or_default();
        if said["workers"].as_array().is_some_and(|workers| workers.len() == count) {
            return;
        }
        assert!(Instant::now() < until, "{said}\n{}", page.logs());
    }
}

#[test]
fn the_page_names_the_limits_that_there_are() {
    use sluice_gateway::resp::{ARGS_MAX, COMMAND_BYTES_MAX, INLINE_BYTES_MAX, PIPELINE_MAX, UNREAD_MAX};
    assert_eq!((COMMAND_BYTES_MAX >> 10, INLINE_BYTES_MAX >> 10, UNREAD_MAX >> 20), (256, 16, 1));
    assert_eq!((ARGS_MAX, PIPELINE_MAX), (1_025, 128));
    for part in ["256 KiB, 1,025 words; an inline one 16 KiB", "| 128 |", "| 1 MiB: "] {
        assert!(PAGE.contains(part), "{part}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let help = command(folder.path(), &["gateway", "--help"]).output().expect("it starts");
    assert!(String::from_utf8_lossy(&help.stdout).contains("[default: 1024]"));
}
