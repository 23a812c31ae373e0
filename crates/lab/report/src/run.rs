//! The result of a load: a short summary with tables, JSON, and CSV.

use std::collections::BTreeMap;
use std::fmt::Write;

use sluice_outcome::run::{
    Bin, ClockStep, EventResult, FaultEffect, LeafTrip, Quantiles, RunResult, StageResult, TaskCounts,
    TypeResult,
};

use crate::csv::field;
use crate::markdown::{paragraphs, section};
use crate::table::{NOTHING, Table, digits, escaped, time};

/// The name of the switch on a socket in results.
const UDP: &str = "udp";

/// How many characters of a service's error text the summary shows.
const COMPLAINT_LETTERS: usize = 200;

/// The summary printed at the end of a run.
pub fn summary(result: &RunResult) -> String {
    let mut out = String::new();
    heading(&mut out, result);
    out += "\n";
    limits(&mut out, &result.types);
    out += &outcomes(result).to_string();
    reasons(&mut out, result);
    out += "\n";
    out += &times(result).to_string();
    if !result.stages.is_empty() {
        out += "\n";
        out += &stages(result).to_string();
    }
    if !result.events.is_empty() {
        out += "\n";
        out += &events(result).to_string();
        sent_again(&mut out, &result.events);
    }
    leaf_trips(&mut out, &result.leaf_trips);
    out += "\n";
    verdict(&mut out, result);
    out
}

/// The result in GitHub's Markdown.
pub fn markdown(result: &RunResult) -> String {
    let mut out = format!("# {}\n", escaped(&result.title()));
    paragraphs(&mut out, heading_text(result).lines());
    section(&mut out, "Tasks", &outcomes(result));
    paragraphs(&mut out, reasons_text(result).lines());
    section(&mut out, "Times", &times(result));
    if !result.stages.is_empty() {
        section(&mut out, "Stages", &stages(result));
    }
    if !result.events.is_empty() {
        section(&mut out, "Faults", &events(result));
    }
    section(&mut out, "Gates", &gates(result));
    if result.aborted {
        let why = result.abort_reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        paragraphs(&mut out, [format!("Stopped early{why}").as_str()].into_iter());
    }
    out
}

/// The settings behind all numbers, line by line.
pub(super) fn heading_text(result: &RunResult) -> String {
    let mut out = String::new();
    heading(&mut out, result);
    out
}

/// When answers are in time, and why tasks had no good reply, line by line.
pub(super) fn reasons_text(result: &RunResult) -> String {
    let mut out = String::new();
    limits(&mut out, &result.types);
    reasons(&mut out, result);
    out
}

/// The conditions that the run had to meet.
fn gates(result: &RunResult) -> Table {
    let mut table = Table::new(["gate", "holds", "says"]);
    for gate in &result.gates {
        table.row([gate.name, if gate.passed { "yes" } else { "NO" }, &gate.says]);
    }
    table
}

/// The result as JSON, in one line.
pub fn json(result: &RunResult) -> String {
    serde_json::to_string(result).expect("every key is a string and every number is finite or null")
}

/// A row per type.
pub fn types_csv(result: &RunResult) -> String {
    let mut csv = String::from("type,sent,replied,failed,refused,unknown,lost,attempts,replied_per_s");
    let columns = [
        "latency_ns",
        "scheduling_delay_ns",
        "slowdown",
        "slowdown_type_mean",
        "slowdown_server",
        "switch_wait_ns",
        "worker_wait_ns",
        "service_ns",
    ];
    for column in columns {
        for part in ["mean", "p50", "p90", "p95", "p99", "p999", "max"] {
            // Writing to a string cannot fail.
            let _ = write!(csv, ",{column}_{part}");
        }
    }
    csv.push_str(",dilation,faults,passed,within_ns,goodput_per_s");
    csv.push_str(",name,policy,seed,offered_per_s,length_s,sluice\n");
    for kind in &result.types {
        let counts = numbers(&kind.tasks).join(",");
        let _ = write!(csv, "{},{counts},{}", field(&kind.name), kind.replied_per_s);
        for times in [
            kind.latency_ns,
            kind.scheduling_delay_ns,
            kind.slowdown,
            kind.slowdown_type_mean,
            kind.slowdown_server,
            kind.switch_wait_ns,
            kind.worker_wait_ns,
            kind.service_ns,
        ] {
            let _ = match times {
                Some(Quantiles { mean, p50, p90, p95, p99, p999, max }) => {
                    write!(csv, ",{mean},{p50},{p90},{p95},{p99},{p999},{max}")
                }
                None => write!(csv, ",,,,,,,"),
            };
        }
        let faults = field(result.faults.as_deref().unwrap_or_default());
        let _ = write!(csv, ",{},{faults},{}", result.dilation, result.passed);
        let within = kind.within_ns.map_or_else(String::new, |ns| ns.to_string());
        let goodput = kind.goodput_per_s.map_or_else(String::new, |per_s| per_s.to_string());
        let offered = result.offered_per_s.map_or_else(String::new, |per_s| per_s.to_string());
        let (name, policy) = (field(&result.name), field(&result.policy));
        let (seed, length, version) = (result.seed, result.length_s, result.sluice);
        let _ = writeln!(csv, ",{within},{goodput},{name},{policy},{seed},{offered},{length},{version}");
    }
    csv
}

/// A row per bin.
pub fn timeline_csv(result: &RunResult) -> String {
    let mut csv = String::from("from_s,due,replied,slowest_ns,sent_again,refused\n");
    for (i, bin) in result.timeline.iter().enumerate() {
        let from = i as f64 * result.timeline_bin_s;
        let Bin { due, replied, slowest_ns, sent_again, refused } = bin;
        let _ = writeln!(csv, "{from:.3},{due},{replied},{slowest_ns},{sent_again},{refused}");
    }
    csv
}

/// A row per stage. An interval has two columns after all values; both are empty where it has none.
pub fn stages_csv(result: &RunResult) -> String {
    let mut csv = String::from(
        "stage,from_s,until_s,from_per_s,to_per_s,sent,replied,failed,refused,unknown,lost,attempts,\
         replied_per_s,latency_ns_mean,latency_ns_p50,latency_ns_p90,latency_ns_p95,latency_ns_p99,\
         latency_ns_p999,latency_ns_max",
    );
    for number in OF_STAGES {
        // Writing to a string cannot fail.
        let _ = write!(csv, ",{number}_low,{number}_high");
    }
    csv.push('\n');
    for (stage, number) in result.stages.iter().zip(1..) {
        let StageResult { from_s, until_s, from_per_s, to_per_s, tasks, replied_per_s, .. } = stage;
        let counts = numbers(tasks).join(",");
        let _ = write!(csv, "{number},{from_s},{until_s},{from_per_s},{to_per_s},{counts},{replied_per_s}");
        let _ = match stage.latency_ns {
            Some(Quantiles { mean, p50, p90, p95, p99, p999, max }) => {
                write!(csv, ",{mean},{p50},{p90},{p95},{p99},{p999},{max}")
            }
            None => write!(csv, ",,,,,,,"),
        };
        for number in OF_STAGES {
            let _ = match stage.intervals.get(number) {
                Some([low, high]) => write!(csv, ",{low},{high}"),
                None => write!(csv, ",,"),
            };
        }
        csv.push('\n');
    }
    csv
}

/// The numbers of stages that have intervals in the table.
const OF_STAGES: [&str; 7] = [
    "replied_per_s",
    "latency_ns_mean",
    "latency_ns_p50",
    "latency_ns_p90",
    "latency_ns_p95",
    "latency_ns_p99",
    "latency_ns_p999",
];

/// The settings behind all following numbers.
fn heading(out: &mut String, result: &RunResult) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "{}: {}{}; {}; {} s after {} s of warm-up; seed {}",
        result.name,
        result.policy,
        result.workers.map_or_else(String::new, |workers| format!(" on {workers} workers")),
        result.arrivals,
        digits(result.length_s),
        digits(result.warm_up_s),
        result.seed
    );
    if result.dilation > 1 {
        let _ = writeln!(
            out,
            "DILATED: all times are {} times those of the rack that is stood for",
            result.dilation
        );
    }
    if let Some(faults) = &result.faults {
        let place = if result.io.is_none_or(|io| io == UDP) { "in every socket" } else { "on every link" };
        let _ = writeln!(out, "FAULTS {place}: {faults}");
    }
    if result.cut_off > 0 {
        let end = digits(result.warm_up_s + result.length_s);
        let _ = writeln!(
            out,
            "CUT OFF: {} tasks of the trace come after the load's end at {end} s, and were not sent",
            result.cut_off
        );
    }
    for ClockStep { at_s, by_s } in &result.clock_steps {
        let _ = writeln!(
            out,
            "CLOCK SET: this machine's wall clock went {} by {} s at {at_s:.2} s; arrivals are stamped \
             by it, and were brought over",
            if *by_s < 0.0 { "back" } else { "forward" },
            digits(by_s.abs())
        );
    }
}

/// The counts of tasks in the order of the table and of the CSV.
fn numbers(tasks: &TaskCounts) -> [String; 7] {
    let TaskCounts { sent, replied, failed, refused, unknown, lost, attempts, .. } = tasks;
    [sent, replied, failed, refused, unknown, lost, attempts].map(u64::to_string)
}

pub(super) fn outcomes(result: &RunResult) -> Table {
    let headings =
        ["tasks", "sent", "replied", "(failed)", "refused", "unknown", "lost", "attempts", "replies/s"];
    let goodput = result.goodput_per_s.map(|_| "in time/s");
    let mut table = Table::new(headings.into_iter().chain(goodput));
    let mut row = |name: &str, tasks: &TaskCounts, per_s: [Option<f64>; 2]| {
        let numbers = numbers(tasks);
        let shown = if goodput.is_some() { 2 } else { 1 };
        let per_s = per_s.map(|per_s| per_s.map_or_else(|| NOTHING.to_owned(), digits));
        table.row(std::iter::once(name.to_owned()).chain(numbers).chain(per_s.into_iter().take(shown)));
    };
    row("warm-up", &result.warm_up_tasks, [None, None]);
    for TypeResult { name, tasks, replied_per_s, goodput_per_s, .. } in &result.types {
        row(name, tasks, [Some(*replied_per_s), *goodput_per_s]);
    }
    row("measured", &result.tasks, [Some(result.replied_per_s), result.goodput_per_s]);
    table
}

/// When an answer of each type is in time, if anybody asks for goodput.
fn limits(out: &mut String, types: &[TypeResult]) {
    let limit = |kind: &TypeResult| Some(format!("{} within {}", kind.name, time(kind.within_ns? as f64)));
    let limits: Vec<String> = types.iter().filter_map(limit).collect();
    if !limits.is_empty() {
        let _ = writeln!(out, "answers in time: {}", limits.join(", "));
    }
}

/// Why tasks had no good reply, including those of the warm-up.
fn reasons(out: &mut String, result: &RunResult) {
    let all = [&result.warm_up_tasks, &result.tasks];
    let failed: u64 = all.iter().map(|tasks| tasks.failed).sum();
    if let Some(first) = all.iter().find_map(|tasks| tasks.first_failure.as_ref()) {
        let mut said: String = first.chars().take(COMPLAINT_LETTERS).collect();
        said.push_str(if said.len() < first.len() { "…" } else { "" });
        let _ = writeln!(out, "failed: {failed}; the service said of the first: {said}");
    }
    let by = |what: &str, of: fn(&TaskCounts) -> &BTreeMap<&'static str, u64>| {
        let mut sums = BTreeMap::new();
        for (why, count) in all.iter().flat_map(|tasks| of(tasks)) {
            *sums.entry(*why).or_insert(0) += count;
        }
        let told: Vec<String> = sums.iter().map(|(why, count)| format!("{count} {why}")).collect();
        if told.is_empty() { String::new() } else { format!("{what}: {}\n", told.join(", ")) }
    };
    *out += &by("refused", |tasks| &tasks.refused_by);
    *out += &by("unknown", |tasks| &tasks.unknown_by);
}

pub(super) fn times(result: &RunResult) -> Table {
    let mut table = Table::new(["times", "of", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"]);
    for kind in &result.types {
        let ns = |value: f64| time(value);
        for (name, of, show) in [
            ("latency", kind.latency_ns, ns as fn(f64) -> String),
            ("scheduling delay", kind.scheduling_delay_ns, ns),
            ("  in the switch", kind.switch_wait_ns, ns),
            ("  at the worker", kind.worker_wait_ns, ns),
            ("  in service", kind.service_ns, ns),
            ("slowdown", kind.slowdown, digits),
            ("  over type mean", kind.slowdown_type_mean, digits),
            ("  server-side", kind.slowdown_server, digits),
        ] {
            let values = of.map(|of| [of.mean, of.p50, of.p90, of.p95, of.p99, of.p999, of.max]);
            let values = values.map_or([(); 7].map(|()| NOTHING.to_owned()), |values| values.map(show));
            table.row([kind.name.clone(), name.to_owned()].into_iter().chain(values));
        }
    }
    table
}

pub(super) fn stages(result: &RunResult) -> Table {
    let headings = ["stage", "from", "offered/s", "sent", "replied", "(failed)", "refused", "unknown"];
    let more = ["replies/s", "p50", "p99", "p99.9", "max"];
    let mut table = Table::new(headings.into_iter().chain(more));
    for (stage, number) in result.stages.iter().zip(1..) {
        let StageResult { from_s, from_per_s, to_per_s, tasks, replied_per_s, latency_ns, .. } = stage;
        let ramps = from_per_s.total_cmp(to_per_s).is_ne();
        let to = if ramps { format!("..{}", digits(*to_per_s)) } else { String::new() };
        let offered = format!("{}{to}", digits(*from_per_s));
        let [sent, replied, failed, refused, unknown, ..] = numbers(tasks);
        let times = latency_ns.map(|of| [of.p50, of.p99, of.p999, of.max].map(time));
        let times = times.unwrap_or([(); 4].map(|()| NOTHING.to_owned()));
        let begins = [number.to_string(), format!("{} s", digits(*from_s)), offered];
        let counts = [sent, replied, failed, refused, unknown, digits(*replied_per_s)];
        table.row(begins.into_iter().chain(counts).chain(times));
    }
    table
}

pub(super) fn events(result: &RunResult) -> Table {
    let times = format!("fault (times since {})", result.started_utc);
    let mut table = Table::new([times.as_str(), "at", "back at", "felt for", "slowest task"]);
    for event in &result.events {
        let seconds = |at: f64| format!("{at:.2} s");
        let back = event.returned_at_s.map_or_else(|| "never".to_owned(), seconds);
        let (felt, slowest) = match &event.felt {
            None => ("unknown: nothing to compare with".to_owned(), String::new()),
            Some(felt) if felt.lasted_s <= 0.0 => ("not felt".to_owned(), String::new()),
            Some(felt) => {
                let open = if felt.until_the_end { " (until the end)" } else { "" };
                (format!("{}{open}", seconds(felt.lasted_s)), time(felt.slowest_ns as f64))
            }
        };
        table.row([event.what.clone(), seconds(event.at_s), back, felt, slowest]);
    }
    table
}

/// A line for each fault after which tasks were retried.
fn sent_again(out: &mut String, events: &[EventResult]) {
    for event in events {
        let Some(felt) = event.felt.filter(|felt| felt.sent_again > 0) else { continue };
        let FaultEffect { sent_again: tasks, sent_again_for_s: span, .. } = felt;
        let _ = writeln!(out, "sent again after {}: {tasks} tasks, for {span:.2} s", event.what);
    }
}

/// A line for each leaf on a server of its rack.
fn leaf_trips(out: &mut String, trips: &[LeafTrip]) {
    for LeafTrip { rack, packets, trip_ns } in trips {
        let Some(trip_ns) = trip_ns else { continue };
        let [p50, p99] = [trip_ns.p50, trip_ns.p99].map(time);
        let _ = writeln!(
            out,
            "to the leaf of rack {rack} on its server and back: p50 {p50}, p99 {p99}, of {packets} packets"
        );
    }
}

fn verdict(out: &mut String, result: &RunResult) {
    for gate in &result.gates {
        let _ = writeln!(out, "{:<4}  {}", if gate.passed { "ok" } else { "FAIL" }, gate.says);
    }
    if result.aborted {
        let why = result.abort_reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let _ = writeln!(out, "STOPPED EARLY{why}");
    }
}
