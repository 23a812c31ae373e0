//! What `state.json` says of racks.

use std::rc::Rc;

use serde_json::{Value, json};
use sluice_support::status_json;

use super::events::unix_ms;
use super::names::{self, WatchedKind};
use super::samples;
use super::watch::RackWatch;

/// All racks.
pub(super) fn racks(all: &[Rc<RackWatch>]) -> Value {
    let names = names::names(all);
    all.iter().zip(&names).map(|(rack, name)| rack_json(all, rack, name)).collect()
}

fn rack_json(all: &[Rc<RackWatch>], rack: &Rc<RackWatch>, name: &str) -> Value {
    let seen = rack.seen();
    let silence = seen.silence.as_ref().map(|silence| {
        json!({
            "why": silence.why, "since_unix_ms": unix_ms(silence.since_clock),
            "lasts_ms": silence.since.elapsed().as_millis() as u64,
        })
    });
    let slices = seen.status.as_ref().map(|(status, _)| samples::slices(status));
    let slices = slices.into_iter().flatten().map(|slice| {
        json!({
            "name": slice.name, "tasks_per_s": slice.tasks_per_s, "wait_ns": slice.wait_ns,
            "service_ns": slice.service_ns,
        })
    });
    json!({
        "name": name,
        "kind": WatchedKind::of(rack).word(),
        "controller": rack.remote().url(),
        "heard_ago_ms": seen.status.as_ref().map(|(_, at)| at.elapsed().as_millis() as u64),
        "silence": silence,
        "unchangeable": names::why_unchangeable(all, rack),
        "slices": slices.collect::<Vec<_>>(),
        "status": seen.status.as_ref().map(|(status, _)| status_json::to_json(status)),
    })
}
