//! Processes as a page of the manual starts them, on free ports.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Running, command, json, stderr};
use sluice_ports::free_address;

pub(crate) struct PageRack {
    folder: tempfile::TempDir,
    page: &'static str,
    /// What the page writes for an address, and the address here.
    ports: Vec<(String, String)>,
    started: AtomicUsize,
}

impl PageRack {
    /// Writes the page's plans into a new folder. `ports` are the addresses that the page writes.
    pub(crate) fn of(page: &'static str, ports: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        for (kind, text) in blocks(page) {
            if let Some(name) = kind.strip_prefix("toml ") {
                fs::write(folder.path().join(name), text).expect("written");
            }
        }
        let here = |written: &&str| ((*written).to_owned(), free_address().to_string());
        Self { folder, page, ports: ports.iter().map(here).collect(), started: AtomicUsize::new(0) }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The commands in the page's blocks of this kind.
    pub(crate) fn lines(&self, kind: &str) -> impl Iterator<Item = &'static str> {
        blocks(self.page).filter(move |block| block.0 == kind).flat_map(|(_, text)| text.lines())
    }

    /// A text of the page, with the addresses of this rack.
    pub(crate) fn here(&self, text: &str) -> String {
        let change = |text: String, (written, here): &(String, String)| text.replace(written, here);
        self.ports.iter().fold(text.to_owned(), change)
    }

    /// The arguments of one of the page's lines, as it is typed here.
    pub(crate) fn args(&self, line: &str) -> Vec<String> {
        let line = self.here(line.split(" #").next().unwrap_or_default());
        line.split_whitespace().skip(1).map(str::to_owned).collect()
    }

    /// Starts one of the page's lines; its log is a file.
    pub(crate) fn start(&self, line: &str) -> Running {
        self.start_args(&self.args(line))
    }

    /// The same with arguments that were changed.
    pub(crate) fn start_args(&self, args: &[String]) -> Running {
        let number = self.started.fetch_add(1, Ordering::Relaxed);
        let log = fs::File::create(self.path().join(format!("{number}.log"))).expect("a file");
        let mut started = command(self.path(), &args.iter().map(String::as_str).collect::<Vec<_>>());
        started.stdout(Stdio::null()).stderr(log);
        Running(started.spawn().expect("it starts"))
    }

    /// Checks that a load that was started with `--json` got a reply to each task.
    pub(crate) fn lost_nothing(&self, load: Child) {
        let said = load.wait_with_output().expect("it ends");
        let tasks = &json(&said)["tasks"];
        assert!(tasks["sent"].as_u64() > Some(0), "{}\n{}", stderr(&said), self.logs());
        assert_eq!(tasks["sent"], tasks["replied"], "{tasks}\n{}", self.logs());
    }

    /// What all processes logged.
    pub(crate) fn logs(&self) -> String {
        let log = |number| {
            let text = fs::read_to_string(self.path().join(format!("{number}.log"))).unwrap_or_default();
            format!("--- {number}\n{text}")
        };
        (0..self.started.load(Ordering::Relaxed)).map(log).collect()
    }
}

/// The blocks of a page between lines of backticks: what they are, and their text.
fn blocks(page: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    page.split("```").skip(1).step_by(2).filter_map(|fenced| fenced.split_once('\n'))
}
