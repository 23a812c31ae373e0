//! Counts that may only fall: files in import circles, names shared by several types, and long lines. A
//! change that lowers a count must lower the number here too.

use std::collections::{BTreeMap, BTreeSet};

use sluice_house::{File, circles, crates, module_circles, rust_files, visible_types};

/// The line width. rustfmt breaks code at this width, but neither comments nor strings.
const COLUMNS_MAX: usize = 110;

/// How many files of each crate are in import circles.
const IN_CIRCLES: &[(&str, usize)] = &[];

/// How many modules of each crate are in import circles, each module with all files below it.
const MODULES_IN_CIRCLES: &[(&str, usize)] = &[];

/// The names that several types share, and in how many files.
const SHARED_NAMES: &str = "
    Action 3, Answer 2, Arrival 2, Arrivals 2, Axis 2, Calls 2, Case 2, Cell 3, Change 3, Class 2,
    Client 4, Clock 2, Command 3, Counts 2, Decision 2, Ending 2, Endpoint 2, Engine 2, Event 3,
    Faults 2, Gate 3, Kind 2, Layout 2, Life 2, Limit 2, Lines 2, Link 3, Network 2, Note 2, Outcome 4,
    Packet 2, Part 2, Parts 3, Place 2, Plan 4, Plane 2, Point 2, Progress 2, Queue 2, Rack 2, Range 2,
    Rates 3, RdmaPlan 2, Refusal 2, Renewal 2, Replay 2, Report 2, Request 3, Ring 3, Runner 2,
    Server 3, Servers 4, Service 3, Settings 6, Shape 2, Slice 2, SlicePlan 2, Slots 2, Source 3,
    Spread 2, Step 6, SwitchNode 2, Table 2, Tally 3, Target 2, Task 5, Times 2, Token 2, Trace 2,
    Turn 2, Verdict 3, View 4, Waiting 2, Window 2, Worker 4
";

/// How many lines of each folder are too long.
const LONG_LINES: &[(&str, usize)] = &[
    ("crates/run/services", 4),
    ("crates/cli/sluice", 11),
    ("crates/core/control", 18),
    ("crates/cli/support", 5),
    ("crates/core/host", 12),
    ("crates/run/switchd", 11),
    ("crates/run/kernel", 15),
    ("crates/lab/live", 14),
    ("crates/lab/experiment", 4),
    ("crates/run/net", 10),
    ("crates/run/rpc", 9),
    ("crates/lab/report", 4),
    ("crates/lab/study", 1),
    ("crates/run/rocksdb", 1),
    ("crates/sim/models", 3),
    ("crates/sim/faults", 3),
    ("crates/sim/sim", 3),
    ("crates/sim/workload", 2),
    ("crates/check/conformance", 1),
    ("crates/core/wire", 8),
    ("fuzz/targets", 1),
];

#[test]
fn circles_of_files_become_fewer() {
    assert_fewer_in_circles("IN_CIRCLES", IN_CIRCLES, circles);
}

#[test]
fn circles_of_modules_become_fewer() {
    assert_fewer_in_circles("MODULES_IN_CIRCLES", MODULES_IN_CIRCLES, module_circles);
}

fn assert_fewer_in_circles(
    stated: &str,
    at_most: &[(&str, usize)],
    circles: fn(&[File]) -> Vec<BTreeSet<String>>,
) {
    let circles = crates().into_iter().map(|(name, files)| (name, circles(&files)));
    let circles: BTreeMap<_, _> = circles.filter(|(_, circles)| !circles.is_empty()).collect();
    let counts =
        circles.iter().map(|(name, circles)| (name.clone(), circles.iter().map(BTreeSet::len).sum()));
    let help = "a type that two of them need goes to a file below both";
    assert_only_less(stated, at_most, &counts.collect(), &format!("{help}\n{circles:#?}"));
}

#[test]
fn names_that_stand_for_several_things_become_fewer() {
    let files: Vec<_> = crates().into_values().flatten().collect();
    let shared = visible_types(&files).into_iter().filter(|(_, files)| files.len() > 1);
    let shared: BTreeMap<_, _> = shared.collect();
    let stated: Vec<(&str, usize)> = SHARED_NAMES
        .split(',')
        .filter_map(|item| item.trim().rsplit_once(' '))
        .map(|(name, times)| (name, times.parse().expect("a number of files")))
        .collect();
    let counts = shared.iter().map(|(name, files)| (name.clone(), files.len())).collect();
    let new = shared.iter().filter(|(name, files)| stated.iter().all(|s| s.0 != **name || s.1 < files.len()));
    let new: BTreeMap<_, _> = new.collect();
    assert_only_less("SHARED_NAMES", &stated, &counts, &format!("call it what it is\n{new:#?}"));
}

#[test]
fn lines_that_are_too_long_become_fewer() {
    let mut counts = BTreeMap::<String, usize>::new();
    for file in rust_files() {
        let parts = if file.name.starts_with("crates/") { 3 } else { 2 };
        let folder = file.name.split('/').take(parts).collect::<Vec<_>>().join("/");
        let long = file.text.lines().filter(|line| line.chars().count() > COLUMNS_MAX).count();
        *counts.entry(folder).or_default() += long;
    }
    counts.retain(|_, long| *long > 0);
    let help = format!("at most {COLUMNS_MAX} columns; rustfmt leaves comments and strings as they are");
    assert_only_less("LONG_LINES", LONG_LINES, &counts, &help);
}

/// Checks that the counts equal the stated ones, in both directions.
fn assert_only_less(list: &str, stated: &[(&str, usize)], counted: &BTreeMap<String, usize>, help: &str) {
    let stated: BTreeMap<String, usize> = stated.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
    let of = |counts: &BTreeMap<String, usize>, name: &String| counts.get(name).copied().unwrap_or(0);
    let more = counted.iter().filter(|(name, n)| **n > of(&stated, name));
    let more: Vec<_> = more.map(|(name, n)| format!("{name}: {n}, not {}", of(&stated, name))).collect();
    assert!(more.is_empty(), "more than {list} states: {}\n{help}", more.join(", "));
    let less = stated.iter().filter(|(name, n)| **n > of(counted, name));
    let less: Vec<_> = less.map(|(name, n)| format!("{name}: {}, not {n}", of(counted, name))).collect();
    assert!(less.is_empty(), "well done: now lower {list} to {}", less.join(", "));
}
