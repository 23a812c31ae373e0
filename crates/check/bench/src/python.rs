//! What a task costs in Python, as a multiple of what it costs in Rust in the same run.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::error::BenchError;
use crate::print;
use crate::report::{Bound, Report};
use crate::repository::root;

/// The largest processor time of a client a task, with a future for each task.
const GATHERED_MAX: f64 = 2.5;
/// The same with a future for each batch of 200 tasks.
const MANY_MAX: f64 = 2.0;
/// The largest processor time of a worker a task.
const SERVICE_MAX: f64 = 2.0;

/// The output of `scripts/bench-python`, or why it measured nothing.
#[derive(Deserialize)]
#[serde(untagged)]
enum PythonBench {
    Skipped { skipped: String },
    Measured { clients: BTreeMap<String, ClientCost>, ratios: BTreeMap<String, f64>, service_ratio: f64 },
}

#[derive(Deserialize)]
struct ClientCost {
    processor_ns: f64,
}

/// Compares clients and services in Python with those in Rust.
pub(crate) fn python(report: &mut Report) -> Result<(), BenchError> {
    const SCRIPT: &str = "scripts/bench-python";
    print::aside("bench: python");
    let ended = Command::new(root().join(SCRIPT))
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|why| BenchError::program(SCRIPT, &why))?;
    let found: PythonBench =
        serde_json::from_slice(&ended.stdout).map_err(|why| BenchError::output(SCRIPT, &why))?;
    let (clients, ratios, service_ratio) = match found {
        PythonBench::Skipped { skipped } => {
            return print::line(format_args!("not measured, Python: {skipped}"));
        }
        PythonBench::Measured { clients, ratios, service_ratio } => (clients, ratios, service_ratio),
    };
    for (way, ratio) in &ratios {
        let bound = match way.as_str() {
            "gathered" => Bound::AtMost(GATHERED_MAX),
            "many" => Bound::AtMost(MANY_MAX),
            _ => Bound::None,
        };
        report.add(&format!("client in Python ÷ in Rust, {way}"), *ratio, "×", bound);
    }
    for (way, cost) in &clients {
        report.add(&format!("  client, {way}"), 1e9 / cost.processor_ns, "tasks/core-s", Bound::None);
    }
    report.add("service in Python ÷ in Rust", service_ratio, "×", Bound::AtMost(SERVICE_MAX));
    Ok(())
}
