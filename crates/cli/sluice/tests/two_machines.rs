//! Runs `docs/manual/two-machines.md`, command by command, on two machines that are network namespaces.
//! Needs root; without root the test prints so and does nothing.
//!
//! The commands come from the page. A block `sh a` is typed on machine A and must succeed; `sh b fails`
//! runs on B and must fail; `sh a stays` runs until the test ends. A block `text` after one contains lines
//! that its output must contain. A block `toml NAME` is a file on A. Each machine has its own folder.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{Running, example, stderr, stdout};
use sluice_kernel::spaces::{RackSpaces, Space};

const PAGE: &str = include_str!("../../../../docs/manual/two-machines.md");
/// The files that are copied from A to B.
const COPIED: [&str; 3] = ["ca.pem", "b.pem", "b.key"];
/// How long a command may wait for earlier ones to start.
const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn every_command_of_the_page_does_what_it_says() {
    let blocks = blocks(PAGE);
    assert!(blocks.len() >= 20, "{} blocks were found", blocks.len());
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: network namespaces take root");
        return;
    }
    let spaces = RackSpaces::new(2).expect("root may make them");
    let [a, b] = spaces.hosts() else { panic!("two were asked for") };
    assert!(PAGE.contains(&a.addresses()[0].to_string()) && PAGE.contains(&b.addresses()[0].to_string()));
    let folder = tempfile::tempdir().expect("a folder");
    let machines =
        [("a", &a.space), ("b", &b.space)].map(|(name, space)| Machine::new(folder.path(), name, space));
    let mut running = Vec::new();
    for (place, block) in blocks.iter().enumerate() {
        let expected =
            blocks.get(place + 1).filter(|next| next.kind == ["text"]).map_or("", |next| next.text);
        match block.kind[..] {
            ["toml", name] => fs::write(machines[0].folder.join(name), block.text).expect("written"),
            ["sh", on, ref how @ ..] => {
                let machine = machines.iter().find(|machine| machine.name == on).expect("a machine");
                if on == "b" {
                    copy(&machines[0], machine);
                }
                match how {
                    ["stays"] => running.push(machine.start(block.text)),
                    [] => machine.run(block.text, true, expected),
                    ["fails"] => machine.run(block.text, false, expected),
                    _ => panic!("what is `{}`?", block.kind.join(" ")),
                }
            }
            ["text"] => {}
            _ => panic!("what is `{}`?", block.kind.join(" ")),
        }
        assert!(running.iter_mut().all(Running::runs), "ended by itself after:\n{}", block.text);
    }
}

/// A block between two lines of backticks.
struct Block<'a> {
    kind: Vec<&'a str>,
    text: &'a str,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced
        .map(|fenced| {
            let (kind, text) = fenced.split_once('\n').expect("a fence ends its line");
            Block { kind: kind.split_whitespace().collect(), text }
        })
        .collect()
}

/// A network namespace and a folder.
struct Machine<'a> {
    name: &'static str,
    folder: PathBuf,
    space: &'a Space,
}

impl<'a> Machine<'a> {
    fn new(all: &Path, name: &'static str, space: &'a Space) -> Self {
        let folder = all.join(name);
        fs::create_dir(&folder).expect("a folder");
        Self { name, folder, space }
    }

    /// Types a block repeatedly until it has the expected result: the services that it calls may not be up
    /// yet.
    fn run(&self, text: &str, succeeds: bool, expected: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            let output = self.space.within(|| self.shell(text).output()).expect("root may").expect("a shell");
            let said = stdout(&output) + &stderr(&output);
            let missing: Vec<_> = expected.lines().filter(|line| !said.contains(line)).collect();
            if output.status.success() == succeeds && missing.is_empty() {
                return;
            }
            assert!(
                Instant::now() < end,
                "on {}:\n{text}\nlacks {missing:#?}:\n{}",
                self.name,
                told(&output)
            );
            thread::sleep(Duration::from_millis(200));
        }
    }

    fn start(&self, text: &str) -> Running {
        let mut shell = self.shell(&format!("exec {text}"));
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        Running(self.space.within(|| shell.spawn()).expect("root may").expect("a shell"))
    }

    fn shell(&self, text: &str) -> Command {
        let programs = [
            PathBuf::from(env!("CARGO_BIN_EXE_sluice")),
            example("reverse_service"),
            example("secure_client"),
        ];
        let folders = programs.iter().filter_map(|program| program.parent());
        let folders: Vec<String> = folders.map(|folder| folder.display().to_string()).collect();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.args(["-ec", text]).current_dir(&self.folder).stdin(Stdio::null());
        shell.env("PATH", format!("{}:{path}", folders.join(":")));
        shell
    }
}

fn copy(from: &Machine<'_>, to: &Machine<'_>) {
    // Each file once: a process that was started meanwhile may be reading it.
    for file in COPIED.into_iter().filter(|file| !to.folder.join(file).exists()) {
        fs::copy(from.folder.join(file), to.folder.join(file)).expect("the page has made it");
    }
}

fn told(output: &Output) -> String {
    format!("{}\n{}{}", output.status, stdout(output), stderr(output))
}
