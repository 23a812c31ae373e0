//! How each line is run: how it is shortened, which exit codes it may have, and why some are not run here.

use super::lines::Line;

/// How a line is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// The line runs alone to its end, and exits with one of these codes.
    Alone(&'static [i32]),
    /// The line runs until it has started; then Ctrl-C stops it.
    Begun,
    /// The line runs with the other lines of its block: switch, workers and servers first.
    Together,
    /// The line does not run here, for this reason.
    Elsewhere(&'static str),
}

/// Lines that are not run here: the page, the beginning of the line (empty for all lines), and the reason.
pub(crate) const ELSEWHERE: [(&str, &str, &str); 16] = [
    (
        "docs/manual/xdp.md",
        "",
        "takes root, a network card or a second machine; tests/xdp.rs runs such racks in namespaces",
    ),
    ("docs/manual/bmv2.md", "", "takes root and the P4 tools; tests/bmv2.rs runs such racks in namespaces"),
    ("docs/manual/two-machines.md", "", "takes root; tests/two_machines.rs runs all of it, in namespaces"),
    (
        "docs/manual/from-nothing.md",
        "",
        "takes a package and systemd; make packages types all of it in a bare tree",
    ),
    ("docs/manual/packages.md", "", "takes root and an hour"),
    ("docs/manual/c.md", "", "crates/bindings/c/tests/c/manual.rs runs all of it, on free ports"),
    ("docs/manual/controllers.md", "", "tests/controllers.rs runs all of it, on free ports"),
    ("docs/manual/gateway.md", "", "tests/gateway runs all of it, on free ports"),
    ("docs/manual/go.md", "", "takes Go; crates/bindings/go/page_test.go runs all of it"),
    ("docs/manual/etcd.md", "", "tests/etcd.rs runs all of it, on free ports"),
    (
        "docs/manual/python.md",
        "",
        "crates/bindings/python/tests/test_manual.py runs all of it, on free ports",
    ),
    ("docs/manual/python-lab.md", "", "crates/bindings/python/tests/test_lab_page.py runs all of it"),
    ("docs/manual/stateful.md", "", "tests/stateful.rs runs all of it, on free ports"),
    ("docs/results/live.md", "make versus", "installs nginx"),
    ("README.md", "make test", "runs this test"),
    (
        "sluice write --help",
        "sluice write --listen",
        "takes writes until Ctrl-C; tests/write.rs starts and ends it",
    ),
];

/// The folder in which the examples of `sluice-net` are built.
pub(crate) const EXAMPLES: &str = "target/debug/examples/";

/// The address of controllers on pages.
pub(crate) const CONTROLLER: &str = "127.0.0.1:7400";

/// The exit codes of a run with gates. A run on a busy machine, or a figure of only a thousand tasks, may
/// miss gates (3) or stay undecided (5).
const GATES: &[i32] = &[0, 3, 5];
const WELL: &[i32] = &[0];
const BREAKS: &[i32] = &[3];

/// Files that lines read from an earlier run, and a short run that leaves one in its folder.
pub(crate) const LEAVES: [(&str, &str); 4] = [
    ("study.json", STUDY),
    ("sweep.toml", LIVE),
    ("testbed.toml", LIVE),
    ("versus.toml", "versus --today reuseport --workers 2 --tasks 1000 --dilate 20"),
];
/// With two types, as the page about policies has it: it takes a figure of one of them.
const STUDY: &str = "sweep rain:2 central --load 0.5 --tasks 1000 --replications 2 --workload \
    short=0.5@const:10us+long=0.5@const:100us";
const LIVE: &str = "up --sweep 0.3 --policy rain:2 --length 20ms --replications 2";

/// Words that replace others, by their beginning: the policy of the page about new policies is not built
/// in.
const STANDS_FOR: [(&str, &str); 2] = [("lwl:10us,100us", "r2p2:2,sample=2"), ("lwl", "r2p2")];

/// Flags with values that shorten a command; they replace the line's own.
fn shorter(line: &Line) -> &'static [(&'static str, &'static str)] {
    match line.verb() {
        "reproduce" if line.has("--list") => &[],
        "reproduce" if line.has("--live") => {
            &[("--dilate", "20"), ("--runs", "1"), ("--seeds", "20"), ("--span", "2ms")]
        }
        "sim" | "sweep" | "compare" | "throughput" | "reproduce" => {
            &[("--tasks", "1000"), ("--replications", "2")]
        }
        "up" if line.has("--sweep") => &[("--length", "20ms"), ("--replications", "2")],
        "up" if line.has("--stages") => &[("--stages", SHORT_STAGES)],
        "load" if line.has("--stages") => &[("--stages", SHORT_STAGES), ("--warm-up", "50ms")],
        "up" => &[("--length", "300ms")],
        "versus" => &[("--tasks", "1000"), ("--today", "reuseport")],
        "fault-runs" => &[("--count", "20")],
        "profile" => &[("--keys", "2000"), ("--samples", "100")],
        "write" => &[("--length", "300ms"), ("--rate", "10k"), ("--training", "1000")],
        "load" => &[("--length", "300ms"), ("--warm-up", "50ms"), ("--rate", "100")],
        _ => &[],
    }
}

const SHORT_STAGES: &str = "100:100ms,100..200:200ms";

/// How a line is run; `None` if there is no rule for it.
pub(crate) fn way(line: &Line) -> Option<Way> {
    if let Some((.., why)) = ELSEWHERE.iter().find(|entry| is_of(line, entry)) {
        return Some(Way::Elsewhere(why));
    }
    if line.words[0].starts_with(EXAMPLES) {
        return Some(Way::Together);
    }
    Some(match line.verb() {
        // Without the fixes a promise breaks, as the page says.
        "fault-runs" if line.words.iter().any(|word| word.ends_with(",as-published")) => Way::Alone(BREAKS),
        "sim" | "sweep" | "compare" | "throughput" | "versus" | "fault-runs" | "replay-fault" | "profile"
        | "write" | "resources" | "policies" | "doctor" | "report" | "diff" | "completions" | "man" => {
            Way::Alone(WELL)
        }
        "reproduce" if line.has("--list") => Way::Alone(WELL),
        "reproduce" if line.has("--live") => Way::Alone(GATES),
        "dashboard" => Way::Elsewhere("serves a page until Ctrl-C; tests/dashboard starts and ends it"),
        "gateway" => Way::Elsewhere("serves until Ctrl-C; tests/gateway starts and ends it"),
        "reproduce" | "table" => Way::Begun,
        "up" if line.has("--sweep") => Way::Alone(GATES),
        "up" => Way::Alone(GATES),
        "switch" | "controller" | "server" | "worker" | "load" | "status" | "move" | "map" => Way::Together,
        _ => return None,
    })
}

/// Whether an entry of [`ELSEWHERE`] applies to this line.
pub(crate) fn is_of(line: &Line, (page, begins, _): &(&str, &str, &str)) -> bool {
    line.page == *page && line.words.join(" ").starts_with(begins)
}

/// The line's shortened arguments.
pub(crate) fn arguments(line: &Line) -> Vec<String> {
    let mut words: Vec<String> = line.words[1..].to_vec();
    for word in &mut words {
        if let Some((own, known)) = STANDS_FOR.iter().find(|(own, _)| word.starts_with(own)) {
            *word = word.replacen(own, known, 1);
        }
    }
    for (flag, value) in shorter(line) {
        set(&mut words, flag, value);
    }
    words
}

/// Sets a flag to this value, whether the line has it or not.
pub(crate) fn set(words: &mut Vec<String>, flag: &str, value: &str) {
    match words.iter().position(|word| word == flag) {
        Some(at) => value.clone_into(&mut words[at + 1]),
        None => words.extend([flag.to_owned(), value.to_owned()]),
    }
}
