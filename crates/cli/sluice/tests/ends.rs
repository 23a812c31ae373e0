//! How runs end. Whatever ends a run, its measurements are printed and stored, and nothing is left behind.
//! A result without information does not pass, nor one that shows that the rack failed its task.

mod common;

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Output, Stdio};

use common::{
    Running, SMALL, command, example, hearing_hup, hold_to_schema, json, nothing_is_left_of, sluice, stderr,
    stdout, terminate,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

fn folder_with(plan: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("plan.toml"), plan).expect("written");
    folder
}

/// The small rack with a load that lasts longer than the test.
fn endless() -> String {
    SMALL.replace("length = \"1s\"", "length = \"10min\"")
}

/// A rack under load, and its output.
struct Loaded {
    up: Running,
    said: Lines<BufReader<ChildStderr>>,
}

impl Loaded {
    /// Starts the `plan.toml` in this folder, and waits until tasks are measured.
    fn start(folder: &Path) -> Self {
        let up = command(folder, &["up", "plan.toml"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut up = Running(up.expect("it starts"));
        let mut said = BufReader::new(up.0.stderr.take().expect("piped")).lines();
        let measures = |line: String| line.starts_with("load ");
        assert!(said.by_ref().map_while(Result::ok).any(measures), "the load never ran");
        Self { up, said }
    }

    /// Reads the output until this text appears.
    fn hears(&mut self, part: &str) {
        let mut said = self.said.by_ref().map_while(Result::ok);
        assert!(said.any(|line| line.contains(part)), "it never said `{part}`");
    }

    /// The rack's process whose command line contains these arguments, and the command line.
    fn part(&self, args: &[&str]) -> (Pid, Vec<String>) {
        let mine = self.up.0.id().to_string();
        let mut processes = std::fs::read_dir("/proc").expect("procfs").flatten();
        let of = |entry: std::fs::DirEntry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
            let line: Vec<String> = line.split('\0').map(str::to_owned).collect();
            let has = |word: &str| line.iter().any(|known| known == word);
            let is_it = has(&mine) && args.iter().all(|word| has(word));
            is_it.then(|| (Pid::from_raw(pid).expect("a process"), line))
        };
        processes.find_map(of).unwrap_or_else(|| panic!("nobody has {args:?}"))
    }

    /// The folder of the server's memory.
    fn memory(&self) -> PathBuf {
        let (_, line) = self.part(&["server", "server-1"]);
        let place = line.iter().position(|word| word == "--memory").expect("it was told");
        Path::new(&line[place + 1]).parent().expect("the rack's").to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.up.0), signal).expect("it lives");
    }

    /// Waits for the rack's end; returns its exit code and its output.
    fn end(mut self) -> (Option<i32>, String, String) {
        let rest: Vec<String> = self.said.map_while(Result::ok).collect();
        let mut printed = String::new();
        let stdout = self.up.0.stdout.take().expect("piped");
        BufReader::new(stdout).lines().map_while(Result::ok).for_each(|line| printed += &(line + "\n"));
        (self.up.0.wait().expect("it ends").code(), printed, rest.join("\n"))
    }
}

/// The stored result of a run.
fn kept(out: &Path) -> Value {
    let text = std::fs::read_to_string(out.join("result.json")).expect("written");
    let result = serde_json::from_str(&text).expect("JSON");
    hold_to_schema(&result);
    result
}

#[test]
fn what_dies_outside_the_plan_is_a_fault_of_its_own_and_started_again() {
    let folder = folder_with(&endless());
    let mut rack = Loaded::start(folder.path());
    for (args, name) in [(&["worker", "w-1"][..], "worker w-1"), (&["switch"], "switch")] {
        kill_process(rack.part(args).0, Signal::KILL).expect("it lives");
        rack.hears(&format!("{name} was killed by signal 9, which the plan did not want"));
        rack.hears(&format!("started {name} again"));
    }
    terminate(&rack.up.0);
    let (code, printed, _) = rack.end();
    assert_eq!(code, Some(4), "{printed}");
    let result = kept(&folder.path().join("out/small"));
    let events: Vec<_> = result["events"].as_array().expect("a list").iter().collect();
    let whats: Vec<_> = events.iter().map(|event| event["what"].as_str().expect("text")).collect();
    assert_eq!(
        whats,
        ["worker w-1 was killed by signal 9 (unplanned)", "switch was killed by signal 9 (unplanned)"]
    );
    assert!(events.iter().all(|event| event["planned"] == false && event["returned_at_s"].is_number()));
    assert!(whats.iter().all(|what| printed.contains(what)), "{printed}");
    assert_eq!((&result["tasks"]["lost"], &result["abort_reason"]), (&Value::from(0), &Value::Null));
}

#[test]
fn a_part_that_dies_again_and_again_ends_the_run_with_what_was_measured() {
    let folder = folder_with(&endless());
    let mut rack = Loaded::start(folder.path());
    for back in [true, true, true, false] {
        kill_process(rack.part(&["worker", "w-1"]).0, Signal::KILL).expect("it lives");
        if back {
            rack.hears("started worker w-1 again");
        }
    }
    let (code, printed, said) = rack.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(printed.contains("STOPPED EARLY: worker w-1 was killed by signal 9; it dies again"), "{printed}");
    let result = kept(&folder.path().join("out/small"));
    assert_eq!(
        (&result["aborted"], result["events"].as_array().map(Vec::len)),
        (&Value::from(true), Some(4))
    );
    assert!(result["tasks"]["replied"].as_u64() > Some(0), "{}", result["tasks"]);
}

#[test]
fn a_terminal_that_is_closed_ends_a_run_with_its_result_and_leaves_no_memory() {
    let folder = folder_with(&endless());
    let rack = Loaded::start(folder.path());
    let memory = rack.memory();
    assert!(memory.is_dir());
    // The kernel and the shell both send one.
    rack.signal(Signal::HUP);
    rack.signal(Signal::HUP);
    let (code, printed, said) = rack.end();
    assert_eq!(code, Some(4), "{said}");
    assert!(printed.contains("STOPPED EARLY"), "{printed}");
    assert_eq!(kept(&folder.path().join("out/small"))["aborted"], true);
    assert!(!memory.exists());
}

/// Runs a plan on a terminal of its own, then closes the terminal's window; returns the stored result.
fn on_a_terminal_that_closes(plan: &str, before: &str) -> Value {
    let folder = folder_with(plan);
    let up = format!("{} up plan.toml", env!("CARGO_BIN_EXE_sluice"));
    let run = format!("stty rows 24 cols 80; {before} exec {up}");
    let mut window = hearing_hup("script");
    window.args(["-qfec", &run, "shown"]).current_dir(folder.path()).env("TERM", "xterm");
    window.env("XDG_RUNTIME_DIR", folder.path().join("runtime"));
    let window = window.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut window = Running(window.expect("`script` of bsdutils is there"));
    let shows = |part: &str| {
        let shown = std::fs::read(folder.path().join("shown")).unwrap_or_default();
        String::from_utf8_lossy(&shown).contains(part)
    };
    while !shows("replies/s") {
        assert!(window.runs(), "it never ran");
        std::thread::yield_now();
    }
    window.0.kill().expect("it runs");
    window.0.wait().expect("it ends");
    let out = folder.path().join("out/small");
    while !out.join("result.json").exists() {
        std::thread::yield_now();
    }
    let result = kept(&out);
    nothing_is_left_of(folder.path());
    result
}

#[test]
fn a_terminal_that_is_gone_neither_loses_a_result_nor_holds_a_run_up() {
    assert_eq!(on_a_terminal_that_closes(&endless(), "")["aborted"], true);
    let result = on_a_terminal_that_closes(&SMALL.replace("\"1s\"", "\"2s\""), "trap '' HUP;");
    assert_eq!(result["aborted"], false, "who started it wants it to go on");
}

#[test]
fn what_a_killed_rack_leaves_in_shared_memory_is_gone_after_the_next_start() {
    let folder = folder_with(&endless());
    let mut rack = Loaded::start(folder.path());
    let memory = rack.memory();
    rack.up.0.kill().expect("it lives");
    rack.up.0.wait().expect("it ends");
    let other = folder_with(&SMALL.replace("length = \"1s\"", "length = \"100ms\""));
    sluice(other.path(), &["up", "plan.toml", "--json"]);
    assert!(!memory.exists());
}

#[test]
fn where_files_find_no_room_the_table_is_printed_and_no_part_of_a_result_is_left() {
    let plan =
        SMALL.replace("length = \"1s\"", "length = \"1s\"\ndeadline = \"9s\"") + "[rdma]\nservers = 0\n";
    let folder = folder_with(&plan);
    let out = folder.path().join("out/small");
    std::fs::create_dir_all(&out).expect("made");
    std::fs::write(out.join("result.json"), "of an earlier run").expect("written");
    // In blocks of 512 bytes: enough for the stored plan, but not for a result.
    let limited = "ulimit -f 5; exec \"$0\" up plan.toml";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_sluice")]).current_dir(folder.path());
    let output = shell.env("XDG_RUNTIME_DIR", folder.path().join("runtime")).output().expect("sh starts");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stdout(&output).contains("tasks lost (none may be)"), "{}", stdout(&output));
    let said = stderr(&output);
    assert!(said.contains("result.json cannot be written") && said.contains("ulimit -f"), "{said}");
    let left = std::fs::read_dir(&out).expect("a folder").flatten().map(|entry| entry.file_name());
    let mut left: Vec<_> = left.collect();
    left.sort();
    assert_eq!(left, ["logs", "plan.toml", "state"]);
}

/// Runs a plan that misses these gates.
fn misses(plan: &str, missed: &[&str]) -> (tempfile::TempDir, Output, Value) {
    let folder = folder_with(plan);
    std::fs::write(folder.path().join("late.trace"), "600000000,hold\n600005000,hold\n").expect("written");
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    let result = json(&output);
    let gates = result["gates"].as_array().expect("a list").iter();
    let found: Vec<_> = gates.filter(|gate| gate["passed"] == false).map(|gate| &gate["name"]).collect();
    assert_eq!(found, missed, "{result}");
    (folder, output, result)
}

#[test]
fn a_service_that_fails_every_task_misses_a_gate_and_its_words_are_told() {
    let plan = SMALL.to_owned() + "[load.request.hold]\ntext = \"no span\"\n";
    let (_folder, _, result) = misses(&plan, &["something_measured", "few_failed"]);
    assert_eq!(result["tasks"]["failed"], result["tasks"]["replied"]);
    let said = result["tasks"]["first_failure"].as_str().expect("a reason").to_owned();
    assert!(!said.is_empty());
    let lenient = plan.replace("behind_max", "failed_max = 1.0\nbehind_max");
    let (folder, ..) = misses(&lenient, &["something_measured"]);
    let table = stdout(&sluice(folder.path(), &["up", "plan.toml"]));
    assert!(table.contains(&format!("the service said of the first: {said}")), "{table}");
}

#[test]
fn a_load_of_twice_what_workers_can_do_misses_a_gate_and_replies_a_second_say_what_they_did() {
    // No task is refused: tasks that wait are answered after the load's end.
    let plan = SMALL.replace("types = [\"hold\"]", "types = [\"hold\"]\nlimit = 8192");
    let plan = plan.replace("rate = 300", "rate = 2000\narrivals = \"constant\"\ndeadline = \"60s\"")
        + "[load.request.hold]\nbusy = \"2ms\"\n";
    let (_folder, output, result) = misses(&plan, &["kept_up"]);
    assert!(stderr(&output).contains("the load was not kept up: throughput is"), "{}", stderr(&output));
    assert_eq!(result["sustained"]["holds"], false);
    assert_eq!(result["tasks"]["lost"], 0);
    assert!(
        result["replied_per_s"].as_f64() <= Some(1_020.0),
        "two workers of 2 ms: {}",
        result["replied_per_s"]
    );
}

#[test]
fn a_run_that_measured_nothing_misses_a_gate_has_no_times_and_tells_what_was_cut_off() {
    let rare = SMALL.replace("rate = 300", "rate = 1e-9").replace("length = \"1s\"", "length = \"100ms\"");
    let late = rare.replace("rate = 1e-9", "trace = \"late.trace\"");
    for (plan, cut_off) in [(rare, 0), (late, 2)] {
        let (folder, output, result) = misses(&plan, &["something_measured"]);
        assert!(stderr(&output).contains("0 of 0 measured tasks answered"), "{}", stderr(&output));
        assert_eq!(result["cut_off"], cut_off);
        assert_eq!(result["types"][0]["latency_ns"], Value::Null);
        assert_eq!(result["sender"]["behind_p99_ns"], Value::Null);
        let table = stdout(&sluice(folder.path(), &["up", "plan.toml"]));
        assert_eq!(table.contains("CUT OFF: 2 tasks of the trace"), cut_off > 0, "{table}");
        assert!(!table.contains("0 ns"), "{table}");
        let csv = std::fs::read_to_string(folder.path().join("out/small/result.csv")).expect("written");
        assert!(csv.lines().nth(1).is_some_and(|row| row.starts_with("hold,0,0,0,0,0,0,0,0,,,,")), "{csv}");
        assert!(!folder.path().join("out/small/hold-latency-us.hgrm").exists());
    }
}

/// A plan whose names are not usable as file names.
const NAMES: &str = r#"
name = "../escape"
[types]
'../../kv/read, "x"' = 9
[[slice]]
name = "words"
types = ["9"]
[[worker]]
name = "a/b"
slice = "words"
exec = "SERVICE"
[load]
rate = 200
mix = "9=1"
warm_up = "0s"
length = "200ms"
behind_max = "60s"
[load.request.9]
text = "desserts"
"#;

#[test]
fn names_that_look_like_paths_stay_in_the_folder_of_results_and_in_their_field() {
    let folder = folder_with(&NAMES.replace("SERVICE", &example("reverse_service").display().to_string()));
    let output = sluice(folder.path(), &["up", "plan.toml", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let name = "../../kv/read, \"x\"";
    assert_eq!(json(&output)["types"][0]["name"], name);
    let out = folder.path().join("out/%2E.%2Fescape");
    assert!(out.join("%2E.%2F..%2Fkv%2Fread%2C%20%22x%22-latency-us.hgrm").is_file());
    assert!(out.join("logs/worker-a%2Fb.log").is_file());
    let csv = std::fs::read_to_string(out.join("result.csv")).expect("written");
    assert!(csv.lines().nth(1).is_some_and(|row| row.starts_with("\"../../kv/read, \"\"x\"\"\",")), "{csv}");
    let names = |folder: &Path| {
        let names = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    assert_eq!(names(folder.path()), ["out", "plan.toml", "runtime"]);
    assert_eq!(names(&folder.path().join("out")), ["%2E.%2Fescape"]);
}
