//! Selects a few short vectors that show everything that many long walks show.
//!
//! A step shows its input, its output, the counters that changed, and the side of the queues. A walk that
//! shows something new is shortened: steps are removed as long as the new things are still shown.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use sluice_wire::{Kind, Packet, ParseError, View, parse};

use crate::explore::AGES;
use crate::model::Model;
use crate::play::{Plane, take};
use crate::sent::StepOutput;
use crate::vector::{Step, Vector};

/// Vectors from these walks, [`explore`](crate::explore::explore) or another, by seed and number of steps.
/// Their names consist of `name` and the seed.
pub fn cover(name: &str, explore: fn(u64, usize) -> Vector, seeds: Range<u64>, steps: usize) -> Vec<Vector> {
    cover_what(name, explore, seeds, steps, shows)
}

/// Like [`cover`], for a program that has its packets' form and addresses in common with Rain, so that these
/// are not covered again.
pub fn cover_program(
    name: &str,
    explore: fn(u64, usize) -> Vector,
    seeds: Range<u64>,
    steps: usize,
) -> Vec<Vector> {
    let is_of_form = |what: &str| ParseError::ALL.iter().any(|why| what.contains(why.name()));
    cover_what(name, explore, seeds, steps, |walk| {
        let without_family = |what: String| what.replace(" over IPv4", "").replace(" over IPv6", "");
        shows(walk).into_iter().filter(|what| !is_of_form(what)).map(without_family).collect()
    })
}

fn cover_what(
    name: &str,
    explore: fn(u64, usize) -> Vector,
    seeds: Range<u64>,
    steps: usize,
    shows: impl Fn(&Vector) -> BTreeSet<String>,
) -> Vec<Vector> {
    let mut shown = BTreeSet::new();
    let mut vectors = Vec::new();
    for seed in seeds {
        let walk = explore(seed, steps);
        let new: BTreeSet<String> = shows(&walk).difference(&shown).cloned().collect();
        if new.is_empty() {
            continue;
        }
        let mut vector = played(&shortened(walk, &new, &shows));
        shown.extend(shows(&vector));
        vector.name = format!("{name}-{seed}");
        vector.about = new.into_iter().collect::<Vec<_>>().join("; ");
        vectors.push(vector);
    }
    vectors
}

/// Removes steps, many at once at first, as long as all of `new` is still shown.
fn shortened(
    mut vector: Vector,
    new: &BTreeSet<String>,
    shows: impl Fn(&Vector) -> BTreeSet<String>,
) -> Vector {
    let mut many = vector.steps.len() / 2;
    while many > 0 {
        let mut from = 0;
        while from < vector.steps.len() {
            let mut shorter = vector.clone();
            shorter.steps.drain(from..(from + many).min(vector.steps.len()));
            if shows(&shorter).is_superset(new) {
                vector = shorter;
            } else {
                from += many;
            }
        }
        many /= 2;
    }
    vector
}

/// The vector with the model's outputs.
fn played(vector: &Vector) -> Vector {
    let mut model = Model::new(&vector.shape);
    let mut vector = vector.clone();
    for step in &mut vector.steps {
        let Ok(left) = take(&mut model, step, vector.shape.epoch);
        step.set_left(left);
    }
    let Ok(after) = model.after();
    vector.after = after;
    vector
}

/// Everything that the steps of a vector show.
fn shows(vector: &Vector) -> BTreeSet<String> {
    let mut model = Model::new(&vector.shape);
    let mut before = BTreeMap::new();
    let mut shown = BTreeSet::new();
    let mut latest = 0;
    for step in &vector.steps {
        let Ok(left) = take(&mut model, step, vector.shape.epoch);
        let Ok(after) = model.after();
        if step.table().is_none() {
            let counted = after.counts.iter().filter(|(name, count)| before.get(*name) != Some(*count));
            let counted: Vec<&str> = counted.map(|(name, _)| name.as_str()).collect();
            let looked = looked_ns(step);
            let clock = if looked < latest && is_dispatch(&left) { " by a clock that is behind" } else { "" };
            let waited = if waited_for_hours(&left) { " after hours" } else { "" };
            latest = latest.max(looked);
            let (came, counted, left) = (what_came(step), counted.join(" "), what_left(step, &left));
            shown.insert(format!("{came} {counted} {left}{clock}{waited}"));
        }
        before = after.counts;
    }
    shown
}

/// When the step's pass read the clock.
const fn looked_ns(step: &Step) -> u64 {
    match step {
        Step::Packet { at_ns, .. } | Step::Sweep { at_ns, .. } => *at_ns,
        _ => 0,
    }
}

fn is_dispatch(left: &StepOutput) -> bool {
    let view = left.sent.as_ref().and_then(|sent| View::parse(&sent.bytes).ok());
    view.is_some_and(|view| view.kind() == Kind::Dispatch)
}

/// Whether a task leaves with an age that is at least 4.9 hours above its age at arrival.
fn waited_for_hours(left: &StepOutput) -> bool {
    match left.sent.as_ref().map(|sent| parse(&sent.bytes)) {
        Some(Ok((Packet::Dispatch(task), _))) => (1 << 30..AGES[AGES.len() - 1]).contains(&task.age.0),
        _ => false,
    }
}

fn what_came(step: &Step) -> String {
    match step {
        Step::Packet { from, r#in, .. } => {
            let kind = View::parse(r#in).map_or("bytes", |view| view.kind().name());
            format!("{kind} over IPv{}", if from.is_ipv4() { 4 } else { 6 })
        }
        Step::Sweep { tasks, .. } => format!("SWEEP of {}", if *tasks { "tasks" } else { "tokens" }),
        _ => String::new(),
    }
}

fn what_left(step: &Step, left: &StepOutput) -> String {
    let Some(sent) = &left.sent else {
        return if left.written.is_empty() {
            String::new()
        } else {
            format!("→ {} WRITEs", left.written.len())
        };
    };
    let Ok(view) = View::parse(&sent.bytes) else { return String::new() };
    let length = if view.body().is_empty() { "" } else { " with bytes" };
    let crosses = matches!(step, Step::Packet { from, .. } if from.is_ipv4() != sent.to.is_ipv4());
    let family = if crosses { " over the other" } else { "" };
    let code = sent.bytes[3];
    format!("→ {} {code}{length}{family}", view.kind().name())
}
