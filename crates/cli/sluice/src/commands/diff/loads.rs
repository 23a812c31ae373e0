//! Two live loads, held against each other, type by type and stage by stage. Their intervals come from parts
//! of each run.

use serde_json::Value;
use sluice_outcome::study::{Estimate, Method, Unit};

use super::held::{HeldResults, NumberPair, SettingOfTwo, compare_setting};

const SETTINGS: [&str; 13] = [
    "name",
    "policy",
    "workers",
    "arrivals",
    "mix",
    "warm_up_s",
    "length_s",
    "dilation",
    "faults",
    "io",
    "seed",
    "aborted",
    "sluice",
];
/// What stands before a type's name.
const TYPE: &str = "type ";
const LATENCIES: [&str; 4] = ["mean", "p50", "p99", "p999"];

pub(super) fn diff(a: &Value, b: &Value) -> HeldResults {
    let [of_a, of_b] = [a, b].map(types_and_stages);
    let without = |of: &[(String, &Value)], other: &[(String, &Value)]| {
        let lone = of.iter().filter(|(name, _)| other.iter().all(|(known, _)| known != name));
        lone.map(|(name, _)| name.clone()).collect::<Vec<String>>()
    };
    let only = [without(&of_a, &of_b), without(&of_b, &of_a)];
    let mut pairs = Vec::new();
    for (name, one) in &of_a {
        if let Some((_, other)) = of_b.iter().find(|(known, _)| known == name) {
            // Types go by their names alone, if no stage is called so.
            let class = name.strip_prefix(TYPE).filter(|class| of_a.iter().all(|(known, _)| known != class));
            compare(class.unwrap_or(name), one, other, &mut pairs);
        }
    }
    HeldResults { kind: "load", settings: settings(a, b), only, pairs }
}

/// The types of a load, and its stages by their numbers.
fn types_and_stages(result: &Value) -> Vec<(String, &Value)> {
    let types = result["types"].as_array().into_iter().flatten();
    let types = types.filter_map(|of| Some((format!("{TYPE}{}", of["name"].as_str()?), of)));
    let stages = result["stages"].as_array().into_iter().flatten().zip(1..);
    types.chain(stages.map(|(of, number)| (format!("stage {number}"), of))).collect()
}

fn compare(class: &str, one: &Value, other: &Value, pairs: &mut Vec<NumberPair>) {
    let mut push = |number: &str, unit, value: &dyn Fn(&Value) -> Option<f64>| {
        let estimates = [one, other].map(|of| value(of).map(|value| estimate(of, number, value)));
        if let [Some(a), Some(b)] = estimates {
            let (point, class) = (String::new(), class.to_owned());
            pairs.push(NumberPair { point, class, number: number.to_owned(), unit, a, b });
        }
    };
    push("replied_per_s", Unit::PerS, &|of| of["replied_per_s"].as_f64());
    for outcome in ["failed", "refused", "unknown"] {
        push(outcome, Unit::Share, &|of| {
            let tasks = &of["tasks"];
            let sent = tasks["sent"].as_f64().filter(|sent| *sent > 0.0)?;
            Some(tasks[outcome].as_f64()? / sent)
        });
    }
    for part in LATENCIES {
        push(&format!("latency_ns_{part}"), Unit::Ns, &|of| of["latency_ns"][part].as_f64());
    }
}

/// A number with its interval, if the run tells it.
fn estimate(of: &Value, number: &str, value: f64) -> Estimate {
    let ends = &of["intervals"][number];
    match (ends[0].as_f64(), ends[1].as_f64()) {
        (Some(low), Some(high)) => Estimate::between(value, low.min(value), high.max(value), Method::Batches),
        _ => Estimate::exact(value),
    }
}

fn settings(a: &Value, b: &Value) -> Vec<SettingOfTwo> {
    let shown = |of: &Value| match of {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut all = Vec::new();
    for name in SETTINGS {
        compare_setting(&mut all, name, shown(&a[name]), shown(&b[name]));
    }
    compare_setting(&mut all, "kills", kills(a), kills(b));
    all
}

/// The parts that were killed or died, in their order.
fn kills(result: &Value) -> String {
    let events = result["events"].as_array().into_iter().flatten();
    let what: Vec<&str> = events.filter_map(|event| event["what"].as_str()).collect();
    if what.is_empty() { "none".to_owned() } else { what.join(", ") }
}
