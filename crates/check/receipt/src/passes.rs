//! How many passes a packet takes, by what came and what left, as the vectors count them.

use std::collections::BTreeMap;

use sluice_conformance::{Step, Vector};
use sluice_wire::{Kind, View};

/// By what came and what left: in how many steps a packet took each number of passes.
pub type PassCounts = BTreeMap<String, BTreeMap<u32, u32>>;

/// What a rack sends to its switch. Other packets are dropped in their first pass.
const TAKEN: [Kind; 4] = [Kind::Submit, Kind::Token, Kind::Probe, Kind::Reply];

/// Counts the steps of these vectors in which a packet that a switch may take was in the pipeline.
pub fn passes_of(vectors: &[Vector]) -> PassCounts {
    let mut passes = PassCounts::new();
    for step in vectors.iter().flat_map(|vector| &vector.steps) {
        if let Some((case, rounds)) = case_of(step) {
            *passes.entry(case).or_default().entry(rounds + 1).or_default() += 1;
        }
    }
    passes
}

/// What came and what left, and how often the packet recirculated; `None` if no packet passed.
fn case_of(step: &Step) -> Option<(String, u32)> {
    match step {
        Step::Packet { r#in, out, written, rounds, .. } => {
            let came = View::parse(r#in).ok()?.kind();
            let came = TAKEN.contains(&came).then(|| came.name())?;
            let left = match out {
                Some(sent) => View::parse(&sent.bytes).ok()?.kind().name(),
                None if !written.is_empty() => "WRITE",
                None => "nothing",
            };
            Some((format!("{came} → {left}"), *rounds))
        }
        Step::Sweep { tasks, out, rounds, .. } => {
            let of = if *tasks { "tasks" } else { "tokens" };
            let left = out.as_ref().and_then(|sent| View::parse(&sent.bytes).ok());
            let left = left.map_or("nothing", |view| view.kind().name());
            Some((format!("SWEEP of {of} → {left}"), *rounds))
        }
        _ => None,
    }
}
