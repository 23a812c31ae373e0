//! Hosts that stopped, workers that are slow, and workers whose way to the switch is bad.

use std::time::Duration;

use sluice_report::table::time;
use sluice_rpc::v1::{HostKind, LostHost, StatusResponse, WorkerPhase, WorkerStatus};

use super::bounds::{LATELY, TOKENS_LOST, TOKENS_LOST_MIN, UNANSWERED};
use super::finding::{RackFinding, SubjectKind};
use super::kind::FindingKind;
use crate::peers::{self, PeerDifference};

/// Hosts whose lease ended lately.
pub(super) fn lost(status: &StatusResponse) -> Vec<RackFinding> {
    let dying = status.workers.iter().filter(|worker| worker.phase() == WorkerPhase::Dying).map(|worker| {
        let why = format!("it last renewed its registration {} ago", time(worker.renewed_ago_ns as f64));
        stopped(HostKind::Worker, &worker.name, worker.worker, why)
    });
    let recent = |lost: &&LostHost| Duration::from_nanos(lost.ago_ns) <= LATELY;
    let lost = status.lost.iter().filter(recent).map(|lost| {
        let ago = time(lost.ago_ns as f64);
        let why = format!("it did not renew its registration, and its lease ended {ago} ago");
        stopped(lost.kind(), &lost.name, lost.index, why)
    });
    dying.chain(lost).flatten().collect()
}

fn stopped(host: HostKind, name: &str, index: u32, why: String) -> Option<RackFinding> {
    let (kind, of, word) = match host {
        HostKind::Worker => (FindingKind::WorkerStopped, SubjectKind::Worker, "worker"),
        HostKind::Client => (FindingKind::ClientStopped, SubjectKind::Client, "client"),
        HostKind::Server => (FindingKind::ServerStopped, SubjectKind::Server, "server"),
        HostKind::Unspecified => return None,
    };
    let name = shown(name, index);
    let what = format!("{word} {name} has stopped, or cannot reach the controller");
    Some(RackFinding::new(kind, (of, name), what, why))
}

/// Workers that are worse than their peers.
pub(super) fn slow(status: &StatusResponse) -> Vec<RackFinding> {
    let all = status.workers.iter().zip(peers::apart(status));
    let apart = all.filter_map(|(worker, apart)| Some((worker, apart?)));
    let slow = apart.filter(|(worker, apart)| !is_on_purpose(worker, apart, &status.workers));
    let told = slow.map(|(worker, apart)| {
        let (name, peers) = (shown(&worker.name, worker.worker), apart.peers);
        let s = if peers == 1 { "" } else { "s" };
        RackFinding::new(
            FindingKind::WorkerSlow,
            (SubjectKind::Worker, name.clone()),
            format!("worker {name} is worse than its {peers} peer{s}"),
            apart.to_string(),
        )
    });
    told.collect()
}

/// Workers whose packets, or the switch's answers to them, do not arrive. A leaf's workers are told by their
/// own rack.
pub(super) fn off_their_way(status: &StatusResponse) -> Vec<RackFinding> {
    let there = status.workers.iter().filter(|of| of.workers == 0 && of.phase() != WorkerPhase::Dying);
    there.filter_map(|worker| unanswered(worker).or_else(|| losing_tokens(worker))).collect()
}

fn unanswered(worker: &WorkerStatus) -> Option<RackFinding> {
    let recent = worker.recent.as_ref()?;
    if Duration::from_nanos(recent.unanswered_ns) < UNANSWERED {
        return None;
    }
    let name = shown(&worker.name, worker.worker);
    let (silent, renewed) = (time(recent.unanswered_ns as f64), time(worker.renewed_ago_ns as f64));
    let at = &worker.at;
    Some(RackFinding::new(
        FindingKind::WorkerUnanswered,
        (SubjectKind::Worker, name.clone()),
        format!("worker {name} gets no answer from the switch: its tokens are lost, or the answers are"),
        format!("at {at} it has asked in vain for {silent}, and it renewed its registration {renewed} ago"),
    ))
}

fn losing_tokens(worker: &WorkerStatus) -> Option<RackFinding> {
    let recent = worker.recent.as_ref()?;
    let lost = recent.lost_tokens;
    let tokens = u64::from(lost) + u64::from(recent.tasks);
    let share = f64::from(lost) / tokens.max(1) as f64;
    if lost < TOKENS_LOST_MIN || share <= TOKENS_LOST {
        return None;
    }
    let (name, span) = (shown(&worker.name, worker.worker), time(recent.span_ns as f64));
    Some(RackFinding::new(
        FindingKind::TokensLost,
        (SubjectKind::Worker, name.clone()),
        format!("tokens of worker {name} are lost on their way to the switch"),
        format!("{lost} of about {tokens} ({:.0} %) over {span}; each was sent again", share * 100.0),
    ))
}

/// Whether another quota explains the difference: a worker with fewer tokens gets fewer tasks, and one with
/// more lets more of them wait.
fn is_on_purpose(worker: &WorkerStatus, apart: &PeerDifference, all: &[WorkerStatus]) -> bool {
    let is_peer = |other: &&WorkerStatus| (other.slice, &other.labels) == (worker.slice, &worker.labels);
    let mut quotas = all.iter().filter(is_peer).map(|peer| peer.quota);
    apart.service.is_none() && quotas.any(|quota| quota != worker.quota)
}

fn shown(name: &str, index: u32) -> String {
    if name.is_empty() { format!("with index {index}") } else { name.to_owned() }
}
