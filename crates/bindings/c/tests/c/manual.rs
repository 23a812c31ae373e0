//! `docs/manual/c.md`: its commands run, its code is that of the examples, and its words are those of the
//! header.

use std::process::Command;

use super::common::calls::wait_for_a_worker;
use super::common::{
    Running, built, c_compiler, cxx_compiler, here, lone_switch, ran, ran_in_time, root, sluice,
};

fn page() -> String {
    std::fs::read_to_string(root().join("docs/manual/c.md")).expect("it is there")
}

/// The code blocks of a language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let parts = page.split("```").skip(1).step_by(2);
    let blocks = parts.filter_map(|part| part.strip_prefix(language)?.strip_prefix('\n'));
    blocks.map(str::to_owned).collect()
}

#[test]
fn its_code_is_that_of_the_examples() {
    let examples = std::fs::read_dir(here().join("examples")).expect("a folder");
    let files = examples.map(|file| file.expect("a file").path());
    // Without the programs that the page builds there.
    let sources = files.filter(|file| file.extension().is_some_and(|end| end == "c" || end == "cpp"));
    let texts: Vec<String> = sources.map(|file| std::fs::read_to_string(file).expect("text")).collect();
    let page = page();
    let code = [blocks(&page, "c"), blocks(&page, "cpp")].concat();
    assert!(code.len() >= 5, "{code:?}");
    for block in code {
        assert!(texts.iter().any(|text| text.contains(&block)), "no example has this:\n{block}");
    }
}

#[test]
fn its_names_are_in_the_headers() {
    let header =
        |name: &str| std::fs::read_to_string(here().join("include").join(name)).expect("it is there");
    let headers = header("sluice.h") + &header("sluice.hpp");
    let page = page();
    let names = page.split(|c: char| !c.is_alphanumeric() && c != '_');
    let names = names.filter(|name| name.starts_with("sluice_") || name.starts_with("SLUICE_"));
    let mut found = 0;
    for name in names {
        assert!(headers.contains(name), "{name} is in no header");
        found += 1;
    }
    assert!(found > 20);
}

/// Runs the commands in order: in a folder of its own instead of /usr/local, and on a free port.
#[test]
fn its_commands_do_what_it_says() {
    let (Some(_), Some(_)) = (c_compiler(), cxx_compiler()) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let prefix = folder.path().join("usr").display().to_string();
    let examples = "crates/bindings/c/examples/";
    let local = |text: &str| text.replace("/usr/local", &prefix);
    let (mut rack, mut services, mut done) = (None, Vec::new(), 0);
    for line in blocks(&page(), "sh").concat().lines() {
        let (line, remark) = line.split_once(" #").map_or((line, ""), |(line, remark)| (line, remark.trim()));
        let words: Vec<String> = local(line).split_whitespace().map(str::to_owned).collect();
        let at = rack.as_ref().map_or("", |(_, at): &(Running, String)| at.as_str());
        let args = words[1..].iter().map(|word| word.replace("127.0.0.1:7400", at));
        let args: Vec<String> = args.filter(|word| word != "&").collect();
        match words[0].as_str() {
            "crates/bindings/c/install" => {
                ran(Command::new(here().join("install")).args(args).arg(built()));
            }
            "make" => {
                let out = format!("OUT={}", folder.path().display());
                let mut make = Command::new("make");
                ran(make.arg("-s").args(args).arg(out).current_dir(root()).env_remove("MAKEFLAGS"));
            }
            "sluice" if args[0] == "switch" => rack = Some(lone_switch(&root().join(&args[1]))),
            "sluice" => {
                let mut command = Command::new(sluice());
                let ended =
                    command.args(args).args(["--controller", at, "--json"]).output().expect("it starts");
                // On a busy machine a load may miss its gates.
                assert!(matches!(ended.status.code(), Some(0 | 3 | 5)), "{ended:?}");
            }
            program => {
                let name = program.strip_prefix(examples).unwrap_or_else(|| panic!("{program}"));
                let mut command = Command::new(folder.path().join(name));
                command.args(args);
                if line.trim_end().ends_with('&') {
                    services.push(Running::start(&mut command));
                    wait_for_a_worker(at, 9);
                } else {
                    let said = String::from_utf8(ran_in_time(&mut command).stdout).expect("text");
                    assert!(remark.starts_with(said.trim_end()) && !said.trim().is_empty(), "{line}: {said}");
                }
            }
        }
        done += 1;
    }
    assert_eq!((done, services.len()), (8, 1));
}
