//! A result for people: a short summary and one table.

use std::fmt::Write;

use super::table::{Table, digits, time};
use super::{EventResult, RunResult, TaskCounts};
use crate::args::Io;

/// The summary that ends a run.
pub(crate) fn summary(result: &RunResult) -> String {
    let mut out = String::new();
    heading(&mut out, result);
    out += "\n";
    out += &outcomes(result).to_string();
    out += "\n";
    out += &times(result).to_string();
    if !result.events.is_empty() {
        out += "\n";
        out += &events(&result.events).to_string();
    }
    out += "\n";
    verdict(&mut out, result);
    out
}

/// Everything that a number below must be read with.
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
        let place = if result.io == Some(Io::Xdp.name()) { "on every link" } else { "in every socket" };
        let _ = writeln!(out, "FAULTS {place}: {faults}");
    }
}

fn outcomes(result: &RunResult) -> Table {
    let mut table =
        Table::new(["tasks", "sent", "replied", "(failed)", "refused", "unknown", "lost", "attempts"]);
    table.row(counts("warm-up", &result.warm_up_tasks));
    for kind in &result.types {
        table.row(counts(&kind.name, &kind.tasks));
    }
    table.row(counts("measured", &result.tasks));
    table
}

fn counts(name: &str, tasks: &TaskCounts) -> Vec<String> {
    let numbers =
        [tasks.sent, tasks.replied, tasks.failed, tasks.refused, tasks.unknown, tasks.lost, tasks.attempts];
    std::iter::once(name.to_owned()).chain(numbers.map(|number| number.to_string())).collect()
}

fn times(result: &RunResult) -> Table {
    let mut table = Table::new(["times", "of", "mean", "p50", "p90", "p99", "p99.9", "max"]);
    for kind in &result.types {
        let ns = |value: f64| time(value);
        for (name, of, show) in [
            ("latency", &kind.latency_ns, ns as fn(f64) -> String),
            ("  in the switch", &kind.switch_wait_ns, ns),
            ("  at the worker", &kind.worker_wait_ns, ns),
            ("  in service", &kind.service_ns, ns),
            ("slowdown", &kind.slowdown, digits),
            ("  over type mean", &kind.slowdown_type_mean, digits),
            ("  server-side", &kind.slowdown_server, digits),
        ] {
            let values = [of.mean, of.p50, of.p90, of.p99, of.p999, of.max].map(show);
            table.row([kind.name.clone(), name.to_owned()].into_iter().chain(values));
        }
    }
    table
}

fn events(events: &[EventResult]) -> Table {
    let mut table =
        Table::new(["fault (times since the load began)", "at", "back at", "felt for", "slowest task"]);
    for event in events {
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

fn verdict(out: &mut String, result: &RunResult) {
    for gate in &result.gates {
        let _ = writeln!(out, "{:<4}  {}", if gate.passed { "ok" } else { "FAIL" }, gate.says);
    }
    if result.aborted {
        out.push_str("STOPPED EARLY\n");
    }
}
