//! Slices without workers, with long queues, or with labels that nobody has.

use sluice_control::write_labels;
use sluice_rpc::v1::{EarlierSlice, EarlierStatus, SliceStatus, StatusResponse};

use super::bounds::{COUNTED, QUEUE_LONG, SLICE_CLOSED};
use super::finding::{RackFinding, SubjectKind};
use super::kind::FindingKind;
use super::lookback::Lookback;

pub(super) fn of_slices(status: &StatusResponse) -> Vec<RackFinding> {
    let all = status.slices.iter();
    all.flat_map(|slice| [closed(status, slice), long(status, slice), unserved(status, slice)])
        .flatten()
        .collect()
}

fn closed(status: &StatusResponse, slice: &SliceStatus) -> Option<RackFinding> {
    let was_closed = |look: &EarlierStatus| earlier(look, slice).is_some_and(|was| !was.open);
    if slice.open || !Lookback::of(status).held_for(SLICE_CLOSED, was_closed) {
        return None;
    }
    let refused = Lookback::of(status).counted(COUNTED);
    let refused = refused.map(|span| (span.more("rejected_no_workers"), span.shown()));
    let refused = refused.filter(|(refused, _)| *refused > 0);
    let refused = refused.map_or_else(String::new, |(refused, over)| {
        format!("; {refused} tasks were refused for that {over}")
    });
    let (name, waiting) = (&slice.name, waiting(slice));
    Some(RackFinding::new(
        FindingKind::SliceClosed,
        (SubjectKind::Slice, name),
        format!("slice {name} takes no tasks: it has no worker"),
        format!("for {} s at least; {waiting} tasks wait in it{refused}", SLICE_CLOSED.as_secs()),
    ))
}

fn long(status: &StatusResponse, slice: &SliceStatus) -> Option<RackFinding> {
    let is_long = |balance: Option<i32>| {
        let waiting = balance.unwrap_or(0).min(0).unsigned_abs();
        slice.limit > 0 && f64::from(waiting) > QUEUE_LONG * f64::from(slice.limit)
    };
    let was_long = |look: &EarlierStatus| earlier(look, slice).is_some_and(|was| is_long(was.balance));
    if !is_long(slice.balance) || !Lookback::of(status).held_for(COUNTED, was_long) {
        return None;
    }
    let (name, limit, waiting) = (&slice.name, slice.limit, waiting(slice));
    Some(RackFinding::new(
        FindingKind::QueueFull,
        (SubjectKind::Slice, name),
        format!("the queue of slice {name} is nearly full"),
        format!(
            "{waiting} tasks wait of {limit} that may (`limit`), and so it was {} s ago",
            COUNTED.as_secs()
        ),
    ))
}

fn unserved(status: &StatusResponse, slice: &SliceStatus) -> Option<RackFinding> {
    let nobody: Vec<String> =
        slice.classes.iter().filter(|class| class.refused).map(|class| write_labels(&class.needs)).collect();
    let span = Lookback::of(status).counted(COUNTED)?;
    let refused = span.more("rejected_unserved") + span.more("rejected_no_workers");
    if nobody.is_empty() || !slice.open || refused == 0 {
        return None;
    }
    let (name, nobody) = (&slice.name, nobody.join(", "));
    Some(RackFinding::new(
        FindingKind::LabelsUnserved,
        (SubjectKind::Slice, name),
        format!("no worker of slice {name} serves tasks that need {nobody}"),
        format!("{refused} tasks were refused for that {}", span.shown()),
    ))
}

fn earlier<'a>(look: &'a EarlierStatus, slice: &SliceStatus) -> Option<&'a EarlierSlice> {
    look.slices.iter().find(|was| was.slice == slice.slice)
}

fn waiting(slice: &SliceStatus) -> u32 {
    slice.balance.unwrap_or(0).min(0).unsigned_abs()
}
