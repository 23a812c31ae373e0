//! The processes of switch and controller: state folders, clocks, certificates and refused calls.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluice_report::table::time;
use sluice_rpc::end_text_at;
use sluice_rpc::v1::{ClockStep, FolderFault, FolderState, StatusResponse};

use super::bounds::{CALLS_COUNTED, CALLS_REFUSED, LATELY};
use super::finding::{RackFinding, SubjectKind};
use super::kind::{FindingKind, FindingSeverity};
use super::lookback::Lookback;
use super::utc::utc;

/// State folders that cannot be written, and clocks that were set.
pub(super) fn of_processes(status: &StatusResponse) -> Vec<RackFinding> {
    let found = status.processes.iter().flat_map(|process| {
        let folder = process.folder.as_ref().and_then(|folder| of_folder(&process.process, folder));
        let clock = process.clock_step.as_ref().and_then(|step| of_clock(&process.process, *step));
        [folder, clock]
    });
    found.flatten().collect()
}

fn of_folder(process: &str, folder: &FolderState) -> Option<RackFinding> {
    if folder.why_not.is_empty() {
        return None;
    }
    let (kind, how) = match folder.fault() {
        FolderFault::Full => (FindingKind::StateFolderFull, "is on a full disk"),
        FolderFault::ReadOnly => (FindingKind::StateFolderReadOnly, "is on a read-only disk"),
        FolderFault::Other | FolderFault::Unspecified => {
            (FindingKind::StateFolderUnusable, "cannot be written")
        }
    };
    let free = folder.free_bytes.map_or_else(String::new, |bytes| {
        let other = kind == FindingKind::StateFolderFull && bytes > 0;
        let other = if other { ", so its inodes or a quota are used up" } else { "" };
        format!("; {bytes} B of that disk are free{other}")
    });
    let (path, why_not) = (&folder.path, &folder.why_not);
    Some(RackFinding::new(
        kind,
        (SubjectKind::Process, process),
        format!("the state folder {path} of the {process} {how}"),
        format!("a test file in it failed: {why_not}{free}"),
    ))
}

fn of_clock(process: &str, step: ClockStep) -> Option<RackFinding> {
    if Duration::from_nanos(step.ago_ns) > LATELY {
        return None;
    }
    let way = if step.by_ns < 0 { "back" } else { "forward" };
    let (by, ago) = (time(step.by_ns.unsigned_abs() as f64), time(step.ago_ns as f64));
    Some(RackFinding::new(
        FindingKind::ClockSet,
        (SubjectKind::Process, process),
        format!("the wall clock of the {process} was set {way} by {by}"),
        format!("it left the clock since its machine's start by that much; noticed {ago} ago"),
    ))
}

/// Certificates that end soon or have ended.
pub(super) fn of_certificates(status: &StatusResponse, now: SystemTime) -> Vec<RackFinding> {
    let found = status.ending.iter().filter_map(|end| {
        let at = UNIX_EPOCH.checked_add(Duration::from_secs(end.unix_s))?;
        let how = end_text_at(at, now)?;
        let severity = if at < now { FindingSeverity::Wrong } else { FindingSeverity::Warning };
        let name = &end.certificate;
        let what = format!("{name} {how}");
        let why = format!("its last good second is {}", utc(end.unix_s));
        let found =
            RackFinding::new(FindingKind::CertificateEnds, (SubjectKind::Certificate, name), what, why);
        Some(RackFinding { severity, ..found })
    });
    found.collect()
}

/// Calls that the controller refuses.
pub(super) fn of_calls(status: &StatusResponse) -> Vec<RackFinding> {
    let Some(span) = Lookback::of(status).refused_calls(CALLS_COUNTED) else { return Vec::new() };
    let more = span.now.iter().map(|counter| (&counter.name, span.more(&counter.name)));
    let found = more.filter(|(_, more)| *more > CALLS_REFUSED).map(|(reason, more)| {
        RackFinding::new(
            FindingKind::CallsRefused,
            (SubjectKind::Controller, ""),
            format!("the controller refuses calls for {reason}"),
            format!("{more} of them {}", span.shown()),
        )
    });
    found.collect()
}
