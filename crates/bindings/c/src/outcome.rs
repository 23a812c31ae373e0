//! How a task ended, as C sees it, and the bytes that the library keeps for it.

use std::cmp::min;
use std::ffi::c_char;
use std::mem;
use std::sync::LazyLock;

use sluice_net::TaskType;
use sluice_net::client::{Completed, CompletionQueue, CutOff, Outcome, RefusedWhy, TaskReply, UnknownWhy};
use sluice_wire::{Nanos, RejectReason};

use crate::fault::{Fault, call};
use crate::pointers::{CallerRoom, ResultPlace, bytes, read};
use crate::process::Birth;
use crate::table::{HandleKind, HandleTable};
use crate::types::{SluiceBytes, SluiceKind, SluiceOutcome, SluiceStatus, SluiceWhy};

static KEPT: LazyLock<HandleTable<KeptBytes>> = LazyLock::new(|| HandleTable::new(HandleKind::Bytes));

/// A reply's bytes, and where they go when the caller gives them back.
struct KeptBytes {
    bytes: Vec<u8>,
    queue: CompletionQueue,
    birth: Birth,
}

/// What is at a pointer to no bytes: a caller may pass it to memcpy.
static NO_BYTES: [u8; 1] = [0];

/// No outcome: what a caller has in hand before a task ends.
pub(crate) fn nothing() -> SluiceOutcome {
    SluiceOutcome {
        kind: SluiceKind::None as u32,
        why: SluiceWhy::None as u32,
        tag: 0,
        bytes: NO_BYTES.as_ptr(),
        length: 0,
        worker: 0,
        attempts: 0,
        detail: 0,
        reserved: 0,
        switch_wait_ns: 0,
        worker_wait_ns: 0,
        service_ns: 0,
        retry_after_ns: 0,
        kept: SluiceBytes { id: 0 },
    }
}

/// An outcome whose bytes are not handed over yet, and those bytes.
fn of(completed: Completed) -> (SluiceOutcome, Vec<u8>) {
    let ended = completed.ended;
    let mut of = SluiceOutcome { tag: completed.tag, attempts: ended.attempts.into(), ..nothing() };
    let mut bytes = Vec::new();
    let kind = match ended.outcome {
        Outcome::Reply(reply) => {
            of.worker = reply.worker.0.into();
            of.switch_wait_ns = reply.switch_wait.0;
            of.worker_wait_ns = reply.worker_wait.0;
            of.service_ns = reply.service.0;
            bytes = reply.bytes;
            if reply.failed { SluiceKind::Failed } else { SluiceKind::Reply }
        }
        Outcome::Refused(why) => {
            of.why = refused(why) as u32;
            match why {
                RefusedWhy::NoSlice(of_type) => of.detail = of_type.0.into(),
                RefusedWhy::Late(at) => of.detail = at as u32,
                RefusedWhy::NoClass { priority, classes } => {
                    of.detail = (u32::from(priority) << 8) | u32::from(classes);
                }
                RefusedWhy::Busy { retry_after } => of.retry_after_ns = retry_after.0,
                _ => {}
            }
            SluiceKind::Refused
        }
        Outcome::Unknown(why) => {
            of.why = unknown(why) as u32;
            SluiceKind::Unknown
        }
    };
    of.kind = kind as u32;
    (of, bytes)
}

const fn refused(why: RefusedWhy) -> SluiceWhy {
    match why {
        RefusedWhy::Rejected(reason) => match reason {
            RejectReason::QueueFull => SluiceWhy::QueueFull,
            RejectReason::NoRoom => SluiceWhy::NoRoom,
            RejectReason::NoWorkers => SluiceWhy::NoWorkers,
            RejectReason::UnknownType => SluiceWhy::NoSlice,
            RejectReason::StaleTokens => SluiceWhy::StaleTokens,
            RejectReason::Unserved => SluiceWhy::Unserved,
            RejectReason::Busy => SluiceWhy::Busy,
            RejectReason::Late => SluiceWhy::Late,
        },
        RefusedWhy::NoSlice(_) => SluiceWhy::NoSlice,
        RefusedWhy::Busy { .. } => SluiceWhy::Busy,
        RefusedWhy::NeverSent => SluiceWhy::NeverSent,
        RefusedWhy::Late(_) => SluiceWhy::Late,
        RefusedWhy::LongBudget => SluiceWhy::LongBudget,
        RefusedWhy::TooLong => SluiceWhy::TooLong,
        RefusedWhy::UnknownLabel => SluiceWhy::UnknownLabel,
        RefusedWhy::NoClass { .. } => SluiceWhy::NoClass,
    }
}

const fn unknown(why: UnknownWhy) -> SluiceWhy {
    match why {
        UnknownWhy::Deadline => SluiceWhy::Deadline,
        UnknownWhy::ReplyGone => SluiceWhy::ReplyGone,
        UnknownWhy::TooOld => SluiceWhy::TooOld,
    }
}

/// The outcome that a struct in C's memory tells, for its text; `None` if it tells none.
fn told(of: &SluiceOutcome, bytes: &[u8]) -> Option<Outcome> {
    let rejected = RefusedWhy::Rejected;
    let is = |why: SluiceWhy| of.why == why as u32;
    let failed = of.kind == SluiceKind::Failed as u32;
    if failed || of.kind == SluiceKind::Reply as u32 {
        return Some(Outcome::Reply(TaskReply { bytes: bytes.to_vec(), failed, ..TaskReply::default() }));
    }
    if of.kind == SluiceKind::Unknown as u32 {
        let each = [UnknownWhy::Deadline, UnknownWhy::ReplyGone, UnknownWhy::TooOld];
        return each.into_iter().find(|why| is(unknown(*why))).map(Outcome::Unknown);
    }
    let [_, _, priority, classes] = of.detail.to_be_bytes();
    let cut_off = [CutOff::Client, CutOff::Switch, CutOff::Worker];
    let cut_off = cut_off.into_iter().find(|at| *at as u32 == of.detail).unwrap_or(CutOff::Client);
    let each = [
        rejected(RejectReason::QueueFull),
        rejected(RejectReason::NoRoom),
        rejected(RejectReason::NoWorkers),
        rejected(RejectReason::StaleTokens),
        rejected(RejectReason::Unserved),
        RefusedWhy::NoSlice(TaskType(of.detail as u16)),
        RefusedWhy::Busy { retry_after: Nanos(of.retry_after_ns) },
        RefusedWhy::NeverSent,
        RefusedWhy::Late(cut_off),
        RefusedWhy::LongBudget,
        RefusedWhy::TooLong,
        RefusedWhy::UnknownLabel,
        RefusedWhy::NoClass { priority, classes },
    ];
    each.into_iter().find(|why| is(refused(*why))).map(Outcome::Refused)
}

/// Hands an outcome over. Its bytes go to the caller's memory if they fit there, else the library keeps them
/// until the caller gives them back to the queue that brought them.
pub(crate) fn handed(
    completed: Completed,
    queue: &CompletionQueue,
    into: Option<&CallerRoom>,
) -> Result<SluiceOutcome, Fault> {
    let (mut of, bytes) = of(completed);
    of.length = bytes.len();
    if bytes.is_empty() {
        queue.recycle(bytes);
        return Ok(of);
    }
    if let Some(at) = into.and_then(|into| into.copy(&bytes)) {
        of.bytes = at;
        queue.recycle(bytes);
        return Ok(of);
    }
    // The bytes stay where they are while the table moves their owner.
    of.bytes = bytes.as_ptr();
    of.kept.id = KEPT.add(KeptBytes { bytes, queue: queue.clone(), birth: Birth::now() })?;
    Ok(of)
}

/// Gives back what the library keeps of an outcome, and empties it. An empty outcome is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_outcome_free(outcome: *mut SluiceOutcome) -> SluiceStatus {
    call(|| {
        // SAFETY: as the header asks.
        let (place, of) = unsafe { (ResultPlace::new(outcome, "outcome")?, read(outcome, "outcome")?) };
        place.put(nothing());
        if of.kept.id == 0 {
            return Ok(());
        }
        let kept = KEPT.take(of.kept.id)?;
        if kept.birth.is_of_parent() {
            // A thread of the parent may hold the queue's lock, and nobody is here to let it go.
            mem::forget(kept);
            return Ok(());
        }
        kept.queue.recycle(kept.bytes);
        Ok(())
    })
}

/// Writes how a task ended as a line for people, with what to do next, into `text`, which has room for
/// `room` bytes: cut there, and with a 0 at its end. Returns the whole line's length; 0 if the outcome was
/// given back, and the text is empty then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_outcome_text(
    outcome: *const SluiceOutcome,
    text: *mut c_char,
    room: usize,
) -> usize {
    let has_room = !text.is_null() && room > 0;
    if has_room {
        // A text also if the outcome is none.
        // SAFETY: the header asks for so much room.
        unsafe { text.write(0) };
    }
    let mut length = 0;
    call(|| {
        // SAFETY: as the header asks.
        let of = unsafe { read(outcome, "outcome") }?;
        let line = match of.kept.id {
            // SAFETY: as the header asks.
            0 => line(&of, unsafe { bytes(of.bytes.cast(), of.length, "bytes") }?),
            // What a copy of the outcome points to may have been given back.
            id => KEPT.with(id, |kept| line(&of, &kept.bytes))?,
        };
        length = line.len();
        if has_room {
            let mut cut = min(length, room - 1);
            while !line.is_char_boundary(cut) {
                cut -= 1;
            }
            // SAFETY: the header asks for so much room.
            unsafe {
                line.as_ptr().copy_to_nonoverlapping(text.cast(), cut);
                text.add(cut).write(0);
            }
        }
        Ok(())
    });
    length
}

fn line(of: &SluiceOutcome, bytes: &[u8]) -> String {
    told(of, bytes).map_or_else(|| "no outcome yet".to_owned(), |outcome| outcome.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sluice_net::client::EndedTask;

    fn all() -> impl Iterator<Item = Outcome> {
        let rejected = RejectReason::ALL.into_iter().filter(|reason| {
            // The client tells these three by values of their own.
            !matches!(reason, RejectReason::UnknownType | RejectReason::Busy | RejectReason::Late)
        });
        let refused = [
            RefusedWhy::NoSlice(TaskType(9)),
            RefusedWhy::Busy { retry_after: Nanos(50_000) },
            RefusedWhy::NeverSent,
            RefusedWhy::Late(CutOff::Client),
            RefusedWhy::Late(CutOff::Switch),
            RefusedWhy::Late(CutOff::Worker),
            RefusedWhy::LongBudget,
            RefusedWhy::TooLong,
            RefusedWhy::UnknownLabel,
            RefusedWhy::NoClass { priority: 7, classes: 4 },
        ];
        let unknown = [UnknownWhy::Deadline, UnknownWhy::ReplyGone, UnknownWhy::TooOld];
        let refused = rejected.map(RefusedWhy::Rejected).chain(refused).map(Outcome::Refused);
        refused.chain(unknown.map(Outcome::Unknown))
    }

    #[test]
    fn every_outcome_reads_in_c_as_it_does_in_rust() {
        let reply = |failed| TaskReply { bytes: b"told to fail".to_vec(), failed, ..TaskReply::default() };
        for outcome in all().chain([false, true].map(reply).map(Outcome::Reply)) {
            let ended = EndedTask { task: None, attempts: 3, at: Nanos(0), outcome: outcome.clone() };
            let (of, bytes) = of(Completed { tag: 7, ended });
            assert_eq!((of.tag, of.attempts), (7, 3));
            assert_eq!(told(&of, &bytes), Some(outcome));
        }
        assert_eq!(told(&nothing(), &[]), None);
    }
}
