//! `state.json`: all that the page shows but its charts, as `schemas/dashboard.v1.json` describes it.

use std::rc::Rc;
use std::time::SystemTime;

use serde_json::{Value, json};
use sluice_support::status_json;

use super::events::{EVENTS_MAX, unix_ms};
use super::names::{self, RackKind};
use super::watch::RackWatch;
use super::{ASK_EVERY, RackWatches, SAMPLES_MAX};
use crate::visitor::Visitor;

pub(super) fn state(all: &RackWatches, visitor: &Visitor) -> Value {
    let names = names::names(&all.racks);
    let racks = all.racks.iter().zip(&names).map(|(rack, name)| rack_json(all, rack, name));
    json!({
        "schema": "sluice.dashboard.v1",
        "title": all.title,
        "version": env!("CARGO_PKG_VERSION"),
        "at_unix_ms": unix_ms(SystemTime::now()),
        "visitor": { "name": visitor.name(), "may_change": visitor.may_change().is_ok() },
        "asked_every_ms": ASK_EVERY.as_millis() as u64,
        "samples_kept": SAMPLES_MAX,
        "events_kept": EVENTS_MAX,
        "racks": racks.collect::<Vec<_>>(),
        "load": all.load.borrow().to_json(),
        "events": all.events.borrow().to_json(),
    })
}

fn rack_json(all: &RackWatches, rack: &Rc<RackWatch>, name: &str) -> Value {
    let seen = rack.seen();
    let silence = seen.silence.as_ref().map(|silence| {
        json!({
            "why": silence.why, "since_unix_ms": unix_ms(silence.since_clock),
            "lasts_ms": silence.since.elapsed().as_millis() as u64,
        })
    });
    let slices = seen.status.as_ref().map(|(status, _)| super::samples::slices(status));
    let slices = slices.into_iter().flatten().map(|slice| {
        json!({
            "name": slice.name, "tasks_per_s": slice.tasks_per_s, "wait_ns": slice.wait_ns,
            "service_ns": slice.service_ns,
        })
    });
    json!({
        "name": name,
        "kind": RackKind::of(rack).word(),
        "controller": rack.remote().url(),
        "heard_ago_ms": seen.status.as_ref().map(|(_, at)| at.elapsed().as_millis() as u64),
        "silence": silence,
        "unchangeable": names::why_unchangeable(&all.racks, rack),
        "slices": slices.collect::<Vec<_>>(),
        "status": seen.status.as_ref().map(|(status, _)| status_json::to_json(status)),
    })
}
