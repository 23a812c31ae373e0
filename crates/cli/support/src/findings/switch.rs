//! The switch: whether it can be used, whom it obeys, and its limits.

use std::time::Duration;

use sluice_report::table::time;
use sluice_rpc::v1::{LinkState, StatusResponse};

use super::bounds::{
    CALLED_LATELY, COUNTED, COUNTED_MIN, OTHER_VERSION, SWITCH_LOST, TASKS_REFUSED, TASKS_REFUSED_MIN,
};
use super::finding::{RackFinding, SubjectKind};
use super::kind::FindingKind;
use super::lookback::{CountedSpan, Lookback};

const SWITCH: (SubjectKind, &str) = (SubjectKind::Switch, "");
/// Reasons for which tasks are rejected that have a finding of their own.
const OWN: [&str; 5] = [
    "rejected_queue_full",
    "rejected_no_room",
    "rejected_unknown_type",
    "rejected_no_workers",
    "rejected_unserved",
];

/// How the controller stands with its switch.
pub(super) fn of_link(status: &StatusResponse, link: LinkState) -> Vec<RackFinding> {
    let at = status.switch.as_ref().map_or("", |switch| switch.at.as_str());
    let found = match link {
        LinkState::Down => {
            let was_down = Lookback::of(status).held_for(SWITCH_LOST, |look| look.link() == LinkState::Down);
            was_down.then(|| {
                let why = format!("for {} s at least; it was last known at {at}", SWITCH_LOST.as_secs());
                let why = if at.is_empty() { "it was never found".to_owned() } else { why };
                RackFinding::new(FindingKind::SwitchLost, SWITCH, "the controller cannot use its switch", why)
            })
        }
        LinkState::TooSmall => Some(RackFinding::new(
            FindingKind::SwitchTooSmall,
            SWITCH,
            "the switch is too small for the plan",
            format!("the controller compared both; the switch is at {at}"),
        )),
        LinkState::Superseded => Some(RackFinding::new(
            FindingKind::ControllerSuperseded,
            (SubjectKind::Controller, ""),
            "this controller has lost the switch to another one",
            format!("the switch at {at} obeys the other, and this one writes nothing any more"),
        )),
        LinkState::Standby => status.standing.as_ref().filter(|of| !of.untold.is_empty()).map(|of| {
            let what = "the switch does not tell this standby who leads";
            RackFinding::new(FindingKind::SwitchLost, SWITCH, what, format!("its last call: {}", of.untold))
        }),
        LinkState::Up | LinkState::Reading | LinkState::Unspecified => None,
    };
    found.into_iter().collect()
}

/// Whether etcd answers a controller above spines.
pub(super) fn of_etcd(status: &StatusResponse) -> Option<RackFinding> {
    let why = status.standing.as_ref().map(|standing| standing.etcd_lost.as_str()).unwrap_or_default();
    let found = || {
        let (of, what) = ((SubjectKind::Controller, ""), "etcd does not answer this controller");
        RackFinding::new(FindingKind::EtcdLost, of, what, format!("its last call: {why}"))
    };
    (!why.is_empty()).then(found)
}

/// A second controller that still calls.
pub(super) fn of_controllers(status: &StatusResponse) -> Vec<RackFinding> {
    let callers =
        status.superseded.iter().filter(|caller| Duration::from_nanos(caller.ago_ns) <= CALLED_LATELY);
    let found = callers.map(|caller| {
        let (term, ago) = (caller.term, time(caller.ago_ns as f64));
        let who = if caller.who.is_empty() { String::new() } else { format!(" from {}", caller.who) };
        RackFinding::new(
            FindingKind::ControllerSecond,
            (SubjectKind::Controller, term.to_string()),
            "a second controller calls the switch, which obeys this one",
            format!(
                "controller number {term} called{who} {ago} ago; it was replaced, and its steps are refused"
            ),
        )
    });
    found.collect()
}

/// What the switch counted.
pub(super) fn of_counters(status: &StatusResponse) -> Vec<RackFinding> {
    let back = Lookback::of(status);
    let Some(span) = back.counted(COUNTED) else { return Vec::new() };
    let of_tasks = [
        refused(&span, FindingKind::QueueFull, "rejected_queue_full", "tasks are refused: a queue is full"),
        refused(
            &span,
            FindingKind::PayloadsFull,
            "rejected_no_room",
            "tasks are refused: the switch's memory for payloads is full",
        ),
        refused(
            &span,
            FindingKind::RoundsFull,
            "rounds_full",
            "the switch has as many recirculating packets as it may",
        ),
    ];
    let recent = back.counted(COUNTED_MIN);
    let all = [dropped(&span, recent.as_ref()), other_version(&span), unmapped(&span), others(&span)];
    of_tasks.into_iter().chain(all).flatten().collect()
}

fn refused(span: &CountedSpan<'_>, kind: FindingKind, counter: &str, what: &str) -> Option<RackFinding> {
    share(span, span.more(counter)).map(|why| RackFinding::new(kind, SWITCH, what, why))
}

/// How many of the tasks this is, if it is too many.
fn share(span: &CountedSpan<'_>, refused: u64) -> Option<String> {
    let submits = span.more("submits");
    let share = refused as f64 / submits.max(1) as f64;
    let is_much = refused >= TASKS_REFUSED_MIN && share > TASKS_REFUSED;
    is_much.then(|| format!("{refused} of {submits} tasks ({:.0} %) {}", share * 100.0, span.shown()))
}

fn dropped(span: &CountedSpan<'_>, recent: Option<&CountedSpan<'_>>) -> Option<RackFinding> {
    const COUNTER: &str = "kernel_dropped";
    let (dropped, received) = (span.more(COUNTER), span.more("received"));
    let still = recent.is_some_and(|recent| recent.more(COUNTER) > 0);
    (dropped > 0 && still).then(|| {
        RackFinding::new(
            FindingKind::PacketsDropped,
            SWITCH,
            "the kernel drops packets in front of the switch",
            format!("{dropped} were dropped and {received} received {}", span.shown()),
        )
    })
}

fn other_version(span: &CountedSpan<'_>) -> Option<RackFinding> {
    let unread = span.more("wrong_version");
    (unread > OTHER_VERSION).then(|| {
        let why = format!("{unread} of {} packets {}", span.more("received"), span.shown());
        let what = "packets come whose version the switch does not read";
        RackFinding::new(FindingKind::PacketsOtherVersion, SWITCH, what, why)
    })
}

fn unmapped(span: &CountedSpan<'_>) -> Option<RackFinding> {
    let refused = span.more("rejected_unknown_type");
    (refused > TASKS_REFUSED_MIN).then(|| {
        let why = format!("{refused} tasks were refused for that {}", span.shown());
        RackFinding::new(FindingKind::TypeUnmapped, SWITCH, "tasks come of a type that no slice serves", why)
    })
}

/// Tasks that are refused for reasons without a finding of their own, or for reasons that the switch does
/// not tell.
fn others(span: &CountedSpan<'_>) -> Option<RackFinding> {
    let known: u64 = OWN.iter().map(|reason| span.more(reason)).sum();
    let why = share(span, span.more("rejected").saturating_sub(known))?;
    let reasons = span.now.iter().filter(|counter| counter.name.starts_with("rejected_"));
    let reasons = reasons.filter(|counter| !OWN.contains(&counter.name.as_str()));
    let told: Vec<String> = reasons
        .map(|counter| (counter.name.trim_start_matches("rejected_"), span.more(&counter.name)))
        .filter(|(_, more)| *more > 0)
        .map(|(reason, more)| format!("{more} for {reason}"))
        .collect();
    let why = if told.is_empty() { why } else { format!("{why}: {}", told.join(", ")) };
    Some(RackFinding::new(FindingKind::TasksRefused, SWITCH, "the switch refuses tasks", why))
}
