//! Rules for every file of the repository. A failure names the file and the line.

use std::fs;
use std::path::{Path, PathBuf};

use sluice_house::{File, code_outside_tests, files, items_without_docs, root, rust_files};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const TEXT_COLUMNS_MAX: usize = 100;

#[test]
fn no_file_is_longer_than_its_reader_can_hold() {
    let long = rust_files()
        .filter(|file| file.text.lines().count() > FILE_LINES_MAX)
        .map(|file| format!("{}: {} lines, at most {FILE_LINES_MAX}", file.name, file.text.lines().count()));
    assert_none(long);
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let long = rust_files().flat_map(|file| {
        let lengths = function_lengths(&file.text).into_iter();
        let long = lengths.filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
        long.map(|(at, lines)| format!("{}:{at}: {lines} lines, at most {FUNCTION_LINES_MAX}", file.name))
            .collect::<Vec<_>>()
    });
    assert_none(long);
}

#[test]
fn public_items_say_what_they_do() {
    let is_source = |file: &File| file.name.starts_with("crates/") && file.name.contains("/src/");
    let bare = rust_files().filter(is_source).flat_map(|file| {
        let lines = items_without_docs(&file.text).into_iter();
        lines.map(|at| format!("{}:{at}: a public item without docs", file.name)).collect::<Vec<_>>()
    });
    assert_none(bare);
}

#[test]
fn instructions_that_a_plan_tells_are_those_of_the_bench() {
    let read =
        |path: &str| fs::read_to_string(root().join(path)).unwrap_or_else(|why| panic!("{path}: {why}"));
    let golden = read("crates/check/bench/instructions.json");
    let plan = read("experiments/draconis-policies.toml");
    for (policy, told) in [("draconis", "753"), ("draconis:classes=4", "1,319"), ("draconis:labels", "943")] {
        let counted = format!("\"waiting {policy}\": {}.0", told.replace(',', ""));
        assert!(golden.contains(&counted), "instructions.json has another number for {policy} than {told}");
        assert!(
            plan.contains(&format!("{told} ")) && plan.contains(policy),
            "{told} for {policy} in the plan"
        );
    }
}

/// Keys are those that version 1.2.0 of the format requires; a reader's program gets nothing that is out of
/// date.
#[test]
fn who_cites_names_the_version_and_licence_of_the_workspace() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let (citation, workspace) = (read("CITATION.cff"), read("Cargo.toml"));
    let cited = |key: &str| {
        let line = citation.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("CITATION.cff has no {key}")).to_owned()
    };
    assert_eq!([cited("cff-version"), cited("title"), cited("type")], ["1.2.0", "Sluice", "software"]);
    assert!(!cited("message").is_empty() && citation.contains("\nauthors:\n  - name: "));
    for key in ["version", "license"] {
        let line = format!("\n{key} = \"{}\"\n", cited(key));
        assert!(workspace.contains(&line), "Cargo.toml has another {key} than CITATION.cff");
    }
}

/// From there alone, a newcomer can find where an arrival is drawn, a packet travels and a promise is
/// checked. Each path is below the folder named before its table, or is a path from the root; a bare name is
/// beside the path before it. `Type::function` is in the file named behind it.
#[test]
fn the_architecture_says_where_to_look_and_it_is_there() {
    let architecture = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, where_to_look) = architecture.split_once("**Where to look.**").expect("such a list");
    let (where_to_look, _) = where_to_look.split_once("\n\n**").expect("more behind it");
    let (mut folder, mut found, mut missing) = (String::new(), 0, Vec::new());
    for line in where_to_look.lines() {
        let spans: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
        if !line.starts_with('|') {
            folder = spans.first().map_or(folder, |named| (*named).to_owned());
            continue;
        }
        let paths = resolved(&folder, &spans);
        found += paths.iter().flatten().count();
        for (at, span) in spans.iter().enumerate() {
            let file = paths[at..].iter().flatten().next();
            let is_there = match span.split_once("::") {
                Some((_, name)) => file.is_some_and(|file| {
                    let text = fs::read_to_string(root().join(file)).unwrap_or_default();
                    text.contains(&format!("fn {name}(")) || text.contains(&format!("fn {name}<"))
                }),
                None => paths[at].as_ref().is_none_or(|path| root().join(path).exists()),
            };
            missing.extend((!is_there).then(|| format!("ARCHITECTURE.md: `{span}` in `{folder}`")));
        }
    }
    assert!(found > 50, "{found} paths: the list has another form than this test reads");
    assert_none(missing.into_iter());
}

/// The path of each span that names a file or folder.
fn resolved(folder: &str, spans: &[&str]) -> Vec<Option<PathBuf>> {
    let mut beside = PathBuf::from(folder);
    let is_name = |span: &str| [".rs", ".css"].iter().any(|ending| span.ends_with(ending));
    let resolve = |span: &&str| {
        if span.contains('/') {
            let path = Path::new(folder).join(span);
            let path = if root().join(&path).exists() { path } else { PathBuf::from(span) };
            let is_folder = root().join(&path).is_dir();
            beside = if is_folder { path.clone() } else { path.parent().unwrap_or(&path).to_owned() };
            Some(path)
        } else {
            is_name(span).then(|| beside.join(span))
        }
    };
    spans.iter().map(resolve).collect()
}

#[test]
fn text_wraps_where_a_reader_can_follow() {
    let is_page = |file: &File| Path::new(&file.name).extension().is_some_and(|ending| ending == "md");
    let pages = files().into_iter().filter(is_page);
    let long = pages.flat_map(|page| {
        let mut is_code = false;
        let mut long = Vec::new();
        for (at, line) in page.text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let is_text = !is_code && !line.starts_with(['|', '#', '!', ' ', '`', '[']);
            if is_text && line.chars().count() > TEXT_COLUMNS_MAX {
                long.push(format!("{}:{}: wrap it at {TEXT_COLUMNS_MAX}", page.name, at + 1));
            }
        }
        long
    });
    assert_none(long);
}

/// A bare Debian has no procps: tests send signals and find processes without it.
#[test]
fn nothing_starts_a_program_that_a_bare_machine_lacks() {
    let lacking = ["kill", "pgrep", "pkill", "ps", "free", "top", "sysctl", "killall", "lsof", "nc", "curl"];
    let starts = lacking.map(|program| format!("Command::new(\"{program}\")"));
    assert_none(lines_where(|line| starts.iter().any(|start| line.contains(start.as_str()))));
}

#[test]
fn nothing_is_left_for_later() {
    let words = [["to", "do!"], ["TO", "DO"], ["unimple", "mented!"], ["FIX", "ME"], ["db", "g!"]];
    let words = words.map(|halves| halves.concat());
    assert_none(lines_where(|line| words.iter().any(|word| line.contains(word))));
}

#[test]
fn errors_are_sentences_and_show_nothing_as_code_does() {
    let shown = rust_files().filter(|file| file.name.contains("/src/")).flat_map(|file| {
        let errors = file.text.match_indices("#[error(").map(|(at, _)| (at, &file.text[at..]));
        let errors = errors.map(|(at, text)| (at, text.split(")]").next().unwrap_or(text)));
        let bad = errors.filter(|(_, text)| text.contains(":?}"));
        bad.map(|(at, _)| {
            let line = file.text[..at].lines().count() + 1;
            format!(
                "{}:{line}: `:?` in an error; put `{{}}` in backquotes and .escape_debug() behind",
                file.name
            )
        })
        .collect::<Vec<_>>()
    });
    assert_none(shown);
}

/// Advice depends on the error number, so one table must hold all of it.
#[test]
fn advice_on_what_the_system_refuses_stands_in_one_table() {
    let supposing =
        ["free port", "ulimit -u", "ulimit -n", "free some", "this user can", "takes root", "check the path"];
    let is_elsewhere = |line: &str| {
        ["{why}", "{source}", "{0}"].iter().any(|error| line.contains(error))
            && supposing.iter().any(|words| line.contains(words))
    };
    assert_none(lines_where(is_elsewhere).filter(|line| line.contains("/src/")));
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let homes =
        [["/ho", "me/"], ["/ro", "ot/"], ["/Us", "ers/"], ["/wo", "rk/"]].map(|halves| halves.concat());
    assert_none(lines_where(|line| homes.iter().any(|home| names_path(line, home))));
}

#[test]
fn each_program_prints_in_one_place() {
    // These macros panic if the reader is gone or the disk is full.
    let macros = ["print", "println", "eprint", "eprintln"].map(|name| format!("{name}!("));
    let streams = ["stdout()", "stderr()"].map(|name| format!("io::{name}.lock()"));
    let is_call = |line: &str| {
        let found = macros.iter().filter_map(|name| line.find(name.as_str()));
        let mut before = found.map(|at| line[..at].chars().next_back());
        before.any(|c| !c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '"'))
            || streams.iter().any(|stream| line.contains(stream.as_str()))
    };
    let elsewhere = rust_files().filter(|file| prints(&file.name)).flat_map(|file| {
        let lines = file.text.lines().enumerate().filter(|(_, line)| is_call(line));
        lines
            .map(|(at, _)| format!("{}:{}: use the program's `print`", file.name, at + 1))
            .collect::<Vec<_>>()
    });
    assert_none(elsewhere);
}

/// Whether a file is part of a program and is not its printing module.
fn prints(name: &str) -> bool {
    let programs = ["crates/cli/", "crates/lab/live/", "crates/check/bench/"];
    let is_program = name.contains("/src/") && programs.iter().any(|folder| name.starts_with(folder))
        || name.contains("/examples/");
    is_program && !name.ends_with("/src/print.rs")
}

#[test]
fn only_what_speaks_to_the_kernel_or_to_another_language_may_be_unsafe() {
    let speaks = [
        "crates/run/net/src/lib.rs",
        "crates/run/kernel/src/lib.rs",
        "crates/bindings/c/src/lib.rs",
        "crates/bindings/python/src/lib.rs",
    ];
    let lax = rust_files()
        .filter(|file| file.name.ends_with("/src/lib.rs") && !speaks.contains(&file.name.as_str()))
        .filter(|file| !file.text.contains("\n#![forbid(unsafe_code)]\n"))
        .map(|file| format!("{}: no `#![forbid(unsafe_code)]`", file.name));
    assert_none(lax);
}

#[test]
fn the_state_machines_do_without_std() {
    for name in ["wire", "switch", "host", "control"] {
        let path = root().join(format!("crates/core/{name}/src/lib.rs"));
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains("\n#![no_std]\n"), "{name}: no `#![no_std]`");
        let with_std = rust_files()
            .filter(|file| file.name.starts_with(&format!("crates/core/{name}/src/")))
            .filter(|file| code_outside_tests(&file.text).contains("extern crate std"));
        assert_none(with_std.map(|file| file.name));
    }
}

#[test]
fn a_functions_length_is_counted_from_its_first_line_to_its_last() {
    let text =
        "impl A {\n    pub const fn a(\n        b: u8,\n    ) {\n        c();\n    }\n    fn d() {}\n}\n";
    assert_eq!(function_lengths(text), [(2, 5), (7, 1)]);
}

fn assert_none(found: impl Iterator<Item = String>) {
    let found = found.collect::<Vec<_>>();
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

fn lines_where(bad: impl Fn(&str) -> bool) -> impl Iterator<Item = String> {
    files().into_iter().flat_map(move |file| {
        let lines = file.text.lines().enumerate().filter(|(_, line)| bad(line));
        lines.map(|(at, line)| format!("{}:{}: {}", file.name, at + 1, line.trim())).collect::<Vec<_>>()
    })
}

/// Whether `line` contains `path` at the start of an absolute path.
fn names_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-*}/".contains(c))
    })
}

/// The first line and the length of each function. In rustfmt's layout a function ends at the first closing
/// brace with the indentation of its first line.
fn function_lengths(text: &str) -> Vec<(usize, usize)> {
    let lines = text.lines().collect::<Vec<_>>();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| starts_function(line)) {
        let depth = line.len() - line.trim_start().len();
        let ends = |line: &str| {
            line.len() > depth
                && line[..depth].trim().is_empty()
                && (line[depth..].starts_with('}') || line.ends_with(';') && !line[depth..].starts_with(' '))
        };
        let more = if line.ends_with('}') || line.ends_with(';') {
            0
        } else {
            lines[at + 1..].iter().position(|line| ends(line)).map_or(0, |behind| behind + 1)
        };
        found.push((at + 1, more + 1));
    }
    found
}

fn starts_function(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let qualifier = |word: &&str| {
        matches!(*word, "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"") || word.starts_with("pub(")
    };
    words.find(|word| !qualifier(word)) == Some("fn")
}
