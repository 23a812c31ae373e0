//! Runs every written command: in code blocks of README, docs and CONTRIBUTING, and in help texts,
//! shortened by the rules in `ways.rs`. Commands in running text must have existing subcommands and flags,
//! and `make` existing targets.

#[path = "../common/mod.rs"]
mod common;
mod lines;
mod ways;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::iter;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use common::{command, example, sluice, sluice_until, stderr, stdout};
use lines::{Line, in_blocks, in_help, in_text, pages, root};
use sluice_ports::free_address;
use ways::{ELSEWHERE, EXAMPLES, Way, arguments, is_of, set, way};

/// The examples of `sluice-net` that pages name.
const EXAMPLE_NAMES: [&str; 2] = ["reverse_service", "reverse_client"];
/// How long to wait for a part of a rack, in steps of 50 ms.
const PATIENCE: u32 = 2_400;

#[test]
fn every_command_is_run_or_somebody_says_why_not() {
    let lines = all_lines();
    let unknown: Vec<String> = lines.iter().filter(|line| way(line).is_none()).map(Line::told).collect();
    assert!(unknown.is_empty(), "say in ways.rs how these are run:\n{}", unknown.join("\n"));
    let every: Vec<Line> = lines.into_iter().chain(made()).collect();
    let stale: Vec<_> =
        ELSEWHERE.iter().filter(|entry| !every.iter().any(|line| is_of(line, entry))).collect();
    assert!(stale.is_empty(), "no line is meant by {stale:?}: take them out of ways.rs");
}

#[test]
fn every_command_that_ends_runs_to_its_end() {
    let lines = all_lines().into_iter();
    let alone = lines.filter_map(|line| match way(&line) {
        Some(Way::Alone(codes)) => Some((line, codes)),
        _ => None,
    });
    let left = Mutex::new(alone.collect::<Vec<_>>());
    let next = || left.lock().expect("nobody panics with it").pop();
    let failed = thread::scope(|scope| {
        // Many of them use one core: two go on at once.
        let run = || iter::from_fn(next).filter_map(failure).collect::<Vec<String>>();
        let halves = [(); 2].map(|()| scope.spawn(run));
        halves.map(|half| half.join().expect("it ends")).concat()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What is wrong with a command that must exit with one of these codes.
fn failure((line, codes): (Line, &[i32])) -> Option<String> {
    let folder = folder();
    let args = with_short_plan(&line, arguments(&line));
    run_what_is_named(folder.path(), &line);
    let output = sluice(folder.path(), &words(&args));
    let is_well = output.status.code().is_some_and(|code| codes.contains(&code));
    let told = || {
        let (status, said) = (output.status, stderr(&output));
        format!("{}\n  run as: {}\n  {status}: {said}", line.told(), args.join(" "))
    };
    (!is_well).then(told)
}

#[test]
fn every_command_that_takes_long_begins_and_is_stopped_with_ctrl_c() {
    let mut failed = Vec::new();
    for line in all_lines().iter().filter(|line| way(line) == Some(Way::Begun)) {
        let folder = folder();
        let args = arguments(line);
        let mut child = command(folder.path(), &words(&args))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("sluice starts");
        // A journal's first line is written after the signal handlers are installed.
        let begun =
            wait_for(|| has_journal(folder.path()) || child.try_wait().is_ok_and(|end| end.is_some()));
        let code = signalled(&mut child, rustix::process::Signal::INT).code();
        // A run that ended before the signal may have missed a gate, or be undecided.
        if !begun || !matches!(code, Some(0 | 3 | 4 | 5)) {
            let output = child.wait_with_output().expect("it ended");
            failed.push(format!("{}\n  exit code {code:?}: {}", line.told(), stderr(&output)));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_parts_of_a_rack_that_are_started_together_work_together() {
    let mut blocks: BTreeMap<(String, usize), Vec<Line>> = BTreeMap::new();
    for line in all_lines().into_iter().filter(|line| way(line) == Some(Way::Together)) {
        blocks.entry((line.page.clone(), line.block)).or_default().push(line);
    }
    assert!(!blocks.is_empty());
    for lines in blocks.values_mut() {
        lines.sort_by_key(|line| line.number);
        run_together(lines);
    }
}

#[test]
fn commands_in_running_text_name_what_there_is() {
    let mut wrong = Vec::new();
    let mut helps: BTreeMap<String, String> = BTreeMap::new();
    for (page, text) in pages() {
        for line in in_text(&page, &text, "sluice") {
            let (verb, flags) = (line.verb(), line.words.iter().filter(|word| word.starts_with("--")));
            if verb.is_empty() || verb.starts_with('-') || verb.starts_with('…') {
                continue;
            }
            let help = helps.entry(verb.to_owned()).or_insert_with(|| {
                let output = sluice(Path::new("."), &[verb, "--help"]);
                if output.status.success() { stdout(&output) } else { String::new() }
            });
            // The help shows a flag with an optional value as --spine[=<NUMBER>].
            let ends = |c: char| c.is_whitespace() || matches!(c, ',' | '[' | '=');
            let known: BTreeSet<&str> = help.split(ends).collect();
            let is_known = |flag: &str| flag.split('=').next().is_some_and(|flag| known.contains(flag));
            let mut unknown = flags.filter(|flag| !is_known(flag) && *flag != "--loads");
            if help.is_empty() || unknown.next().is_some() {
                wrong.push(line.told());
            }
        }
    }
    assert!(wrong.is_empty(), "no such command, or no such flag of it:\n{}", wrong.join("\n"));
}

#[test]
fn make_has_every_target_that_is_named() {
    let wrong: Vec<String> = made().iter().filter(|line| !has_target(line)).map(Line::told).collect();
    assert!(wrong.is_empty(), "no such target:\n{}", wrong.join("\n"));
}

#[test]
fn exit_codes_are_one_table() {
    let help = stdout(&sluice(Path::new("."), &["--help"]));
    let told = help.lines().skip_while(|line| *line != "Exit codes:").skip(1);
    let told: Vec<(&str, &str)> = told.filter_map(|line| line.trim().split_once("  ")).collect();
    let page = fs::read_to_string(root().join("docs/manual/commands.md")).expect("readable");
    let table = page.split("### Exit codes").nth(1).expect("a table");
    let rows = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.trim_matches('|').split_once('|').expect("two cells"));
    let written: Vec<(&str, &str)> = cells.map(|(code, means)| (code.trim(), means.trim())).collect();
    assert_eq!(told, written, "docs/manual/commands.md and sluice --help");
    assert_eq!(told.len(), 6);
    let folder = folder();
    let code = |args: &[&str]| sluice(folder.path(), args).status.code();
    assert_eq!(code(&["policies"]), Some(0));
    assert_eq!(code(&["polices"]), Some(2));
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let broken = command(folder.path(), &["policies"]).stdout(full).status().expect("sluice starts");
    assert_eq!(broken.code(), Some(1));
    // Codes 3 and 4 need longer runs: tests/study_runs.rs misses a gate, and stops a run.
}

/// Every `sluice` line of pages and help texts, and lines that start the example service or client.
fn all_lines() -> Vec<Line> {
    let examples = EXAMPLE_NAMES.map(|name| format!("{EXAMPLES}{name}"));
    let programs = || iter::once("sluice").chain(examples.iter().map(String::as_str));
    let blocks = pages().into_iter().flat_map(|(page, text)| {
        programs().flat_map(|program| in_blocks(&page, &text, program)).collect::<Vec<_>>()
    });
    let help = stdout(&sluice(Path::new("."), &["--help"]));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let verbs = listed.filter_map(|line| line.split_whitespace().next()).filter(|verb| *verb != "help");
    let examples = verbs.flat_map(|verb| {
        let help = stdout(&sluice(Path::new("."), &[verb, "--help"]));
        in_help(&format!("sluice {verb} --help"), &help)
    });
    let mut lines: Vec<Line> = blocks.collect();
    lines.extend(in_help("sluice --help", &help));
    lines.extend(examples);
    lines
}

/// Every `make` line of pages, and every target in running text.
fn made() -> Vec<Line> {
    let both = |(page, text): (String, String)| {
        let mut lines = in_blocks(&page, &text, "make");
        lines.extend(in_text(&page, &text, "make"));
        lines
    };
    pages().into_iter().flat_map(both).collect()
}

fn has_target(line: &Line) -> bool {
    let (folder, targets) = match line.words[1..].split_first() {
        Some((first, rest)) if first == "-C" => (rest.first().cloned().unwrap_or_default(), &rest[1..]),
        _ => (String::new(), &line.words[1..]),
    };
    let Ok(text) = fs::read_to_string(root().join(folder).join("Makefile")) else { return false };
    let is_target = |word: &String| {
        text.lines().any(|line| line.strip_prefix(word.as_str()).is_some_and(|rest| rest.starts_with(':')))
    };
    targets.iter().filter(|word| !word.contains('=') && word.as_str() != "TARGET").all(is_target)
}

/// A folder with the plans and programs that lines name.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let link = |from: &Path, name: &str| {
        std::os::unix::fs::symlink(from, folder.path().join(name)).expect("linked");
    };
    link(&root().join("experiments"), "experiments");
    link(&root().join("crates"), "crates");
    fs::create_dir_all(folder.path().join(EXAMPLES)).expect("made");
    for name in EXAMPLE_NAMES {
        link(&example(name), &format!("{EXAMPLES}{name}"));
    }
    fs::write(folder.path().join("short.toml"), short_plan()).expect("written");
    folder
}

/// Makes a shortened run of the command that leaves the files that a line names.
fn run_what_is_named(folder: &Path, line: &Line) {
    for word in &line.words[1..] {
        let file = Path::new(word);
        let leaves = |name: &str| ways::LEAVES.iter().find(|(left, _)| *left == name);
        let Some((_, run)) = file.file_name().and_then(|name| leaves(name.to_str()?)) else { continue };
        let out = file.parent().expect("a folder").to_string_lossy();
        let args: Vec<&str> = run.split(' ').chain(["--out", &out]).collect();
        let ran = sluice(folder, &args);
        assert!(matches!(ran.status.code(), Some(0 | 3 | 5)), "{}: {}", line.told(), stderr(&ran));
    }
}

/// The demo's plan with a small database, a short warm-up and no kills.
fn short_plan() -> String {
    let plan = fs::read_to_string(root().join("experiments/demo.toml")).expect("the demo");
    let plan = plan.split("[[event]]").next().expect("what comes before the first");
    [("keys = 200000", "keys = 2000"), ("warm_up = \"2s\"", "warm_up = \"200ms\"")].iter().fold(
        plan.to_owned(),
        |plan, (long, short)| {
            assert!(plan.contains(long), "the demo's plan has no `{long}` any more: change this test");
            plan.replace(long, short)
        },
    )
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// Replaces a whole rack's plan by the short one: the demo's, named or not.
fn with_short_plan(line: &Line, mut args: Vec<String>) -> Vec<String> {
    if line.verb() != "up" || line.has("--sweep") {
        return args;
    }
    match args.get_mut(1) {
        Some(plan) if plan == "experiments/demo.toml" => "short.toml".clone_into(plan),
        Some(plan) if !plan.starts_with('-') => {}
        _ => args.insert(1, "short.toml".to_owned()),
    }
    args
}

fn wait_for(mut done: impl FnMut() -> bool) -> bool {
    (0..PATIENCE).any(|_| {
        let is_done = done();
        if !is_done {
            thread::sleep(Duration::from_millis(50));
        }
        is_done
    })
}

/// Whether a study has started somewhere below this folder.
fn has_journal(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => has_journal(&entry.path()),
        _ => entry.file_name() == "journal.jsonl" && entry.metadata().is_ok_and(|journal| journal.len() > 0),
    })
}

/// Sends a signal to a child, unless it has ended, and waits for its end.
fn signalled(child: &mut Child, signal: rustix::process::Signal) -> ExitStatus {
    if child.try_wait().is_ok_and(|ended| ended.is_none()) {
        rustix::process::kill_process(rustix::process::Pid::from_child(child), signal).expect("it is ours");
    }
    child.wait().expect("it ends")
}

/// Runs the lines of a block in order, then stops what they started. A block without a switch gets a rack.
fn run_together(lines: &[Line]) {
    let folder = folder();
    let mut rack = Rack { parts: Vec::new(), controller: String::new() };
    if !lines.iter().any(|line| line.verb() == "switch") {
        rack.start_all(folder.path());
    }
    for line in lines {
        if line.words[0].starts_with(EXAMPLES) {
            rack.run_example(folder.path(), line);
            continue;
        }
        let mut args = with_short_plan(line, arguments(line));
        match line.verb() {
            "controller" => rack.start_controller(folder.path(), line, args),
            "switch" => rack.start_switch(folder.path(), line, args),
            "worker" | "server" => {
                set(&mut args, "--controller", &rack.controller);
                if line.has("--memory") {
                    set(&mut args, "--memory", "memory");
                }
                if line.verb() == "server" {
                    set(&mut args, "--listen", &free_address().to_string());
                }
                if line.has("rocksdb") {
                    args.extend(["--keys", "2000"].map(str::to_owned));
                }
                rack.start(folder.path(), line, &args, false);
                rack.wait_until_there(folder.path(), line);
            }
            _ => {
                set(&mut args, "--controller", &rack.controller);
                // On a busy machine a load may miss its gates.
                let is_well = |output: &Output| {
                    output.status.success() || line.verb() == "load" && output.status.code() == Some(3)
                };
                let output = sluice_until(folder.path(), &words(&args), is_well);
                assert!(is_well(&output), "{}: {}", line.told(), stderr(&output));
            }
        }
    }
    rack.end();
}

/// The processes that a block has started.
struct Rack {
    parts: Vec<(String, Child)>,
    controller: String,
}

impl Rack {
    /// Starts a switch with workers in both slices, which a reader of the page would have running.
    fn start_all(&mut self, folder: &Path) {
        let line = |words: &str| Line {
            page: "the rack of a block without one".to_owned(),
            number: 0,
            block: 0,
            words: words.split(' ').map(str::to_owned).collect(),
        };
        let switch = line("sluice switch experiments/demo.toml");
        self.start_switch(folder, &switch, switch.words[1..].to_vec());
        for (name, slice) in [("get-1", "get"), ("get-2", "get"), ("scan-1", "scan")] {
            let worker = line(&format!(
                "sluice worker rocksdb --keys 2000 --name {name} --slice {slice} --controller {}",
                self.controller
            ));
            self.start(folder, &worker, &worker.words[1..], false);
            self.wait_until_there(folder, &worker);
        }
    }

    /// Starts a switch on free ports, and reads the address of its controller.
    fn start_switch(&mut self, folder: &Path, line: &Line, mut args: Vec<String>) {
        set(&mut args, "--listen", "127.0.0.1:0");
        self.start_heard(folder, line, args);
    }

    /// Starts a server process, and waits until it prints its address.
    fn start_heard(&mut self, folder: &Path, line: &Line, mut args: Vec<String>) {
        self.controller = free_address().to_string();
        set(&mut args, "--control", &self.controller);
        args.push("--json".to_owned());
        self.start(folder, line, &args, true);
        let out = self.parts.last_mut().and_then(|(_, child)| child.stdout.take()).expect("piped");
        let mut said = String::new();
        BufReader::new(out).read_line(&mut said).expect("readable");
        assert!(said.contains("sluice.listening.v1"), "{}: {said}", line.told());
    }

    /// Starts a controller for a switch without one; from now on it is asked.
    fn start_controller(&mut self, folder: &Path, line: &Line, mut args: Vec<String>) {
        set(&mut args, "--tables", &self.controller);
        self.start_heard(folder, line, args);
    }

    /// Runs an example client to its end, or starts an example service (`&`) and waits until it is
    /// registered.
    fn run_example(&mut self, folder: &Path, line: &Line) {
        let mut program = Command::new(folder.join(&line.words[0]));
        program.current_dir(folder).stdin(Stdio::null());
        let written = ways::CONTROLLER;
        if line.words.last().is_some_and(|word| word == "&") {
            let log = fs::File::create(folder.join(format!("{}.log", self.parts.len()))).expect("a log");
            program.args(["--controller", &self.controller]).stdout(Stdio::null()).stderr(log);
            self.parts.push((line.told(), program.spawn().expect("it starts")));
            self.wait_until_there(folder, line);
        } else {
            let word = |word: &String| if word == written { self.controller.clone() } else { word.clone() };
            let output = program.args(line.words[1..].iter().map(word)).output().expect("it starts");
            assert_eq!(stdout(&output), "desserts\n", "{}: {}", line.told(), stderr(&output));
        }
    }

    fn start(&mut self, folder: &Path, line: &Line, args: &[String], heard: bool) {
        let log = fs::File::create(folder.join(format!("{}.log", self.parts.len()))).expect("a log");
        let out = if heard { Stdio::piped() } else { Stdio::null() };
        let child = command(folder, &words(args)).stdout(out).stderr(log).spawn().expect("sluice starts");
        self.parts.push((line.told(), child));
    }

    /// Waits until the controller knows as many workers and servers as were started.
    fn wait_until_there(&mut self, folder: &Path, line: &Line) {
        let started =
            |verb: &str| self.parts.iter().filter(|(told, _)| told.contains(&format!(": {verb}"))).count();
        let workers = started("sluice worker") + started(&format!("{EXAMPLES}reverse_service"));
        let servers = started("sluice server");
        let there = wait_for(|| {
            let asked = sluice(folder, &["status", "--json", "--controller", &self.controller]);
            let Ok(said) = serde_json::from_slice::<serde_json::Value>(&asked.stdout) else { return false };
            let count = |what: &str| said[what].as_array().map_or(0, Vec::len);
            (count("workers"), count("servers")) == (workers, servers)
        });
        let log = folder.join(format!("{}.log", self.parts.len() - 1));
        assert!(there, "{}: {}", line.told(), fs::read_to_string(log).unwrap_or_default());
    }

    /// Stops all parts, the last one first, and checks that each ended well.
    fn end(&mut self) {
        while let Some((told, mut child)) = self.parts.pop() {
            let ended = signalled(&mut child, rustix::process::Signal::TERM);
            assert!(ended.success(), "{told}: {ended}");
        }
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        for (_, child) in &mut self.parts {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
