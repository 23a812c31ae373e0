//! The state of a rack as JSON, as `schemas/status.v1.json` describes it.

use std::time::SystemTime;

use serde_json::{Value, json};
use sluice_rpc::v1::{
    ClassStatus, Counter, LeadRole, RecentWork, StandingResponse, StatusResponse, TypeName,
};

use crate::controller_caller::{link, phase};
use crate::findings::findings;
use crate::peers;

/// The whole state.
pub fn to_json(status: &StatusResponse) -> Value {
    let switch = status.switch.clone().unwrap_or_default();
    let class = |class: &ClassStatus| {
        json!({
            "needs": class.needs, "types": class.types, "workers": class.workers, "refused": class.refused,
        })
    };
    let slices = status.slices.iter().map(|slice| {
        json!({
            "slice": slice.slice, "name": slice.name, "types": slice.types, "open": slice.open,
            "limit": slice.limit, "workers": slice.workers, "quotas": slice.quotas, "balance": slice.balance,
            "stale_tokens": slice.stale_tokens, "wished": slice.wished, "target_ns": slice.target_ns,
            "measured_limit": slice.measured_limit, "refused_busy": slice.refused_busy,
            "late_in_switch": slice.late_in_switch, "late_at_worker": slice.late_at_worker,
            "classes": slice.classes.iter().map(class).collect::<Vec<_>>(),
        })
    });
    let workers = status.workers.iter().zip(peers::apart(status)).map(|(worker, apart)| {
        json!({
            "worker": worker.worker, "name": worker.name, "slice": slice_name(status, worker.slice),
            "generation": worker.generation, "phase": phase(worker.phase()), "quota": worker.quota,
            "tasks_per_s": worker.tasks_per_second, "at": worker.at, "renewed_ago_ns": worker.renewed_ago_ns,
            "labels": worker.labels, "workers": worker.workers,
            "recent": worker.recent.as_ref().filter(|recent| recent.span_ns > 0).map(recent_json),
            "differs": apart.map(|apart| apart.to_string()),
        })
    });
    let clients = status.clients.iter().map(|client| {
        json!({
            "client": client.client, "name": client.name, "at": client.at, "renewed_ago_ns": client.renewed_ago_ns,
        })
    });
    let servers = status.servers.iter().map(|server| {
        let rings = server.rings.iter().filter_map(|ring| Some((ring.slice, ring.row?)));
        let rings = rings.map(|(slice, row)| {
            json!({ "slice": slice_name(status, slice), "slots": row.slots, "slot_bytes": row.slot_bytes })
        });
        json!({
            "server": server.server, "name": server.name, "at": server.at, "mtu": server.mtu,
            "transport": transport(server.reliable), "icrc": server.icrc, "rings": rings.collect::<Vec<_>>(),
            "renewed_ago_ns": server.renewed_ago_ns,
        })
    });
    let types = status.type_names.iter().map(|of| type_json(of, status));
    json!({
        "schema": "sluice.status.v1",
        "switch": {
            "epoch": switch.epoch, "link": link(switch.link()), "at": switch.at,
            "counters": counters_json(&switch.counters),
        },
        "slices": slices.collect::<Vec<_>>(),
        "workers": workers.collect::<Vec<_>>(),
        "clients": clients.collect::<Vec<_>>(),
        "servers": servers.collect::<Vec<_>>(),
        "standing": status.standing.as_ref().map(standing_json),
        "refused": counters_json(&status.refused),
        "findings": findings(status, SystemTime::now()),
        "ending": status.ending.iter().map(|end| {
            json!({ "certificate": end.certificate, "unix_s": end.unix_s })
        }).collect::<Vec<_>>(),
        "types": types.collect::<Vec<_>>(),
        "builds": status.builds.iter().map(|of| {
            json!({
                "kind": of.kind, "name": of.name, "build": of.build, "oldest": of.oldest, "newest": of.newest,
            })
        }).collect::<Vec<_>>(),
    })
}

fn standing_json(standing: &StandingResponse) -> Value {
    let role = match standing.role() {
        LeadRole::Unspecified => "unknown",
        LeadRole::Leads => "leads",
        LeadRole::Standby => "standby",
        LeadRole::Superseded => "superseded",
    };
    json!({
        "role": role, "leader": standing.leader, "standbys": standing.standbys,
        "other_plan": standing.other_plan, "spine": standing.spine, "untold": standing.untold,
        "etcd_lost": standing.etcd_lost,
    })
}

fn type_json(of: &TypeName, status: &StatusResponse) -> Value {
    json!({ "type": of.task_type, "name": of.name, "unused": status.unused_types.contains(&of.task_type) })
}

fn recent_json(recent: &RecentWork) -> Value {
    let mean = |ns: u64| (recent.tasks > 0).then_some(ns);
    json!({
        "span_ns": recent.span_ns, "tasks": recent.tasks, "tasks_per_s": peers::rate(recent),
        "service_ns": mean(recent.service_ns), "wait_ns": mean(recent.wait_ns),
        "lost_tokens": recent.lost_tokens, "unanswered_ns": recent.unanswered_ns,
    })
}

fn counters_json(counters: &[Counter]) -> Value {
    counters.iter().map(|counter| (counter.name.clone(), Value::from(counter.value))).collect()
}

/// The name of the slice with this index, or the index if it has none.
pub fn slice_name(status: &StatusResponse, index: u32) -> String {
    let slice = status.slices.iter().find(|slice| slice.slice == index);
    slice.map_or_else(|| index.to_string(), |slice| slice.name.clone())
}

/// The transport of a server's queue pair in one word.
pub const fn transport(reliable: bool) -> &'static str {
    if reliable { "rc" } else { "uc" }
}
