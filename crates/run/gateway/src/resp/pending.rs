//! Commands of a connection whose replies have not left: what was asked, and what came of their tasks.

use std::cmp::Ordering;
use std::ops::Range;

use sluice_net::client::Outcome;

use super::cursors::Cursors;
use super::glob;
use super::kv::{self, Misread};
use super::reply::{Version, array, bulk, error, integer, simple};
use crate::outcome::{CommandOutcome, NotDone, NotDoneKind};

/// The most keys of one task.
const TASK_KEYS_MAX: usize = 128;
/// The most bytes of the keys of one task, so that most tasks of several keys need few packets.
const TASK_KEY_BYTES_MAX: usize = 8 * 1_024;

/// What was asked.
#[derive(Debug)]
pub(super) enum Asked {
    /// What the gateway answers itself.
    Local,
    Get,
    Set,
    Mget,
    Exists,
    Del,
    Scan(Box<ScanAsked>),
}

/// Which keys of a scan are told.
#[derive(Debug)]
pub(super) struct ScanAsked {
    pub(super) pattern: Option<Box<[u8]>>,
    /// Whether keys of another type than strings are asked for, which a rack does not have.
    pub(super) of_other_type: bool,
}

impl Asked {
    pub(super) const fn is_write(&self) -> bool {
        matches!(self, Self::Set | Self::Del)
    }
}

/// How far it is.
#[derive(Debug)]
pub(super) enum TaskProgress {
    /// The reply's bytes.
    Ready(Vec<u8>),
    /// Its only task is under way.
    Open,
    /// Its only task has ended.
    Ended(Outcome),
    /// It has several tasks.
    Many(Box<ManyKeys>),
}

/// A command whose reply has not left.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) asked: Asked,
    pub(super) progress: TaskProgress,
    /// A hash of its key, if it has only one.
    pub(super) key: u64,
    /// The number of the last write that had ended when it came.
    pub(super) seen: u64,
    /// When it came, in ns.
    pub(super) began: u64,
}

impl Pending {
    /// Whether tasks of it are under way, or are still to be handed over.
    pub(super) const fn is_open(&self) -> bool {
        match &self.progress {
            TaskProgress::Open => true,
            TaskProgress::Ready(_) | TaskProgress::Ended(_) => false,
            TaskProgress::Many(many) => many.is_open(),
        }
    }

    /// Whether one of its keys may be one of these, whose hashes are in order.
    pub(super) fn touches(&self, hashes: &[u64]) -> bool {
        match (&self.asked, &self.progress) {
            (Asked::Scan(_), _) => true,
            (_, TaskProgress::Many(many)) => have_common(&many.hashes, hashes),
            _ => hashes.binary_search(&self.key).is_ok(),
        }
    }

    /// How many bytes wait in it.
    pub(super) fn held(&self) -> usize {
        match &self.progress {
            TaskProgress::Ready(bytes) => bytes.len(),
            TaskProgress::Ended(Outcome::Reply(reply)) => reply.bytes.len(),
            TaskProgress::Open | TaskProgress::Ended(_) => 0,
            TaskProgress::Many(many) => many.held,
        }
    }

    /// Writes the reply of a command that is not open any more. Returns how it ended, and a buffer that is
    /// not needed any more.
    pub(super) fn write(
        self,
        version: Version,
        cursors: &mut Cursors,
        out: &mut Vec<u8>,
    ) -> (CommandOutcome, Option<Vec<u8>>) {
        let before = out.len();
        let outcome = match self.progress {
            TaskProgress::Ready(bytes) => {
                out.extend_from_slice(&bytes);
                let is_error = bytes.first() == Some(&b'-');
                let outcome = if is_error { CommandOutcome::Malformed } else { CommandOutcome::Answered };
                return (outcome, None);
            }
            TaskProgress::Open => unreachable!("it is open"),
            TaskProgress::Many(many) => many.write(&self.asked, version, out),
            TaskProgress::Ended(outcome) => match NotDone::done(outcome) {
                Ok(bytes) => {
                    let written = write_one(&self.asked, &bytes, version, cursors, out);
                    return (outcome_of(written, before, out), Some(bytes));
                }
                Err(why) => Ok(write_not_done(&why, out)),
            },
        };
        (outcome.unwrap_or_else(|misread| outcome_of(Err(misread), before, out)), None)
    }
}

/// Whether two lists in order have a number in common. Long commands of a stranger are compared with each
/// other, so there are no more steps than numbers.
fn have_common(mut one: &[u64], mut other: &[u64]) -> bool {
    while let ([first, rest @ ..], [second, behind @ ..]) = (one, other) {
        match first.cmp(second) {
            Ordering::Less => one = rest,
            Ordering::Equal => return true,
            Ordering::Greater => other = behind,
        }
    }
    false
}

/// The outcome of a command whose reply was written, unless the worker's reply could not be read.
fn outcome_of(written: Result<(), Misread>, before: usize, out: &mut Vec<u8>) -> CommandOutcome {
    if written == Ok(()) {
        return CommandOutcome::Done;
    }
    out.truncate(before);
    error("ERR", "its worker's reply is not one of a store: see which service takes this type", out);
    CommandOutcome::Failed
}

/// Writes the reply of a command with one task.
fn write_one(
    asked: &Asked,
    reply: &[u8],
    version: Version,
    cursors: &mut Cursors,
    out: &mut Vec<u8>,
) -> Result<(), Misread> {
    match asked {
        Asked::Get => version.value(kv::only_value(reply)?, out),
        Asked::Set => {
            kv::written(reply)?;
            simple("OK", out);
        }
        Asked::Scan(asked) => {
            let (more, keys) = kv::scanned(reply)?;
            let cursor = match keys.last() {
                Some(last) if more => cursors.put(last),
                None if more => return Err(Misread),
                _ => 0,
            };
            let is_told = |key: &&&[u8]| {
                !asked.of_other_type && asked.pattern.as_ref().is_none_or(|of| glob::matches(of, key))
            };
            array(2, out);
            bulk(cursor.to_string().as_bytes(), out);
            array(keys.iter().filter(is_told).count(), out);
            keys.iter().filter(is_told).for_each(|key| bulk(key, out));
        }
        Asked::Local | Asked::Mget | Asked::Exists | Asked::Del => unreachable!("these have many keys"),
    }
    Ok(())
}

/// Writes the error for a task without a good reply.
pub(super) fn write_not_done(why: &NotDone, out: &mut Vec<u8>) -> CommandOutcome {
    let word = match why.kind {
        NotDoneKind::Busy => "BUSY",
        NotDoneKind::NotNow => "TRYAGAIN",
        NotDoneKind::Never | NotDoneKind::Failed => "ERR",
        NotDoneKind::Unknown => "UNKNOWN",
    };
    error(word, why, out);
    why.kind.outcome()
}

/// A command of one key or many, in one task or several.
#[derive(Debug)]
pub(super) struct ManyKeys {
    /// The keys as tasks have them, one behind the other, and where each ends.
    keys: Vec<u8>,
    ends: Vec<usize>,
    /// The hashes of the keys, in the order of hashes.
    hashes: Vec<u64>,
    /// Keys that no task has yet; the last go first.
    todo: Vec<Range<usize>>,
    parts: Vec<KeysTask>,
    open: usize,
    held: usize,
    failure: Option<NotDone>,
}

/// A task for some of the keys.
#[derive(Debug)]
struct KeysTask {
    keys: Range<usize>,
    reply: Option<Vec<u8>>,
}

impl ManyKeys {
    pub(super) fn new<'k>(keys: impl Iterator<Item = &'k [u8]>, hash: impl Fn(&[u8]) -> u64) -> Self {
        let (mut bytes, mut ends, mut hashes) = (Vec::new(), Vec::new(), Vec::new());
        for key in keys {
            kv::add_key(key, &mut bytes);
            ends.push(bytes.len());
            hashes.push(hash(key));
        }
        hashes.sort_unstable();
        let mut todo = Vec::new();
        let (mut first, mut begin) = (0, 0);
        for at in 0..ends.len() {
            let is_full = at - first == TASK_KEYS_MAX || ends[at] - begin > TASK_KEY_BYTES_MAX;
            if is_full && at > first {
                todo.push(first..at);
                (first, begin) = (at, ends[at - 1]);
            }
        }
        todo.push(first..ends.len());
        todo.reverse();
        Self { keys: bytes, ends, hashes, todo, parts: Vec::new(), open: 0, held: 0, failure: None }
    }

    pub(super) fn hashes(&self) -> &[u64] {
        &self.hashes
    }

    const fn is_open(&self) -> bool {
        self.open > 0 || !self.todo.is_empty()
    }

    /// The number and the keys of the next task, as it has them, if one is to be handed over.
    pub(super) fn next(&self) -> Option<(usize, &[u8])> {
        let keys = self.todo.last()?;
        let begin = keys.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        Some((self.parts.len(), &self.keys[begin..self.ends[keys.end - 1]]))
    }

    /// Notes that the next task was handed over.
    pub(super) fn handed_over(&mut self) {
        if let Some(keys) = self.todo.pop() {
            self.parts.push(KeysTask { keys, reply: None });
            self.open += 1;
        }
    }

    /// Notes what came of a task. A task of several keys may fail because their values fit no reply: reads
    /// are tried again with half of the keys each.
    pub(super) fn ended(&mut self, number: usize, outcome: Outcome, is_write: bool) {
        let Some(part) = self.parts.get_mut(number) else { return };
        self.open -= 1;
        match NotDone::done(outcome) {
            Ok(reply) => {
                self.held += reply.len();
                part.reply = Some(reply);
            }
            Err(why) if why.kind == NotDoneKind::Failed && !is_write && part.keys.len() > 1 => {
                let Range { start, end } = part.keys;
                part.keys = start..start;
                if self.failure.is_none() {
                    let middle = start.midpoint(end);
                    self.todo.extend([middle..end, start..middle]);
                }
            }
            Err(why) => {
                self.failure.get_or_insert(why);
                self.todo.clear();
            }
        }
    }

    /// The number of the write with which a task ended.
    pub(super) fn sequence(&self, number: usize) -> Option<u64> {
        kv::removed(self.parts.get(number)?.reply.as_deref()?).ok().map(|(sequence, _)| sequence)
    }

    fn write(
        mut self,
        asked: &Asked,
        version: Version,
        out: &mut Vec<u8>,
    ) -> Result<CommandOutcome, Misread> {
        if let Some(mut why) = self.failure.take() {
            if asked.is_write() && self.parts.len() > 1 {
                why.text += "; other keys of the command may be removed";
            }
            return Ok(write_not_done(&why, out));
        }
        self.parts.sort_by_key(|part| part.keys.start);
        if matches!(asked, Asked::Mget) {
            array(self.ends.len(), out);
        }
        let mut count = 0_u64;
        for part in self.parts.iter().filter(|part| !part.keys.is_empty()) {
            let mut reply = part.reply.as_deref().unwrap_or_default();
            if matches!(asked, Asked::Del) {
                count += u64::from(kv::removed(reply)?.1);
                continue;
            }
            for _ in part.keys.clone() {
                let value = kv::value(&mut reply)?;
                count += u64::from(value.is_some());
                if matches!(asked, Asked::Mget) {
                    version.value(value, out);
                }
            }
            if !reply.is_empty() {
                return Err(Misread);
            }
        }
        if !matches!(asked, Asked::Mget) {
            integer(count, out);
        }
        Ok(CommandOutcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_have_common_numbers_as_sets_have(
            one in proptest::collection::btree_set(0..40_u64, 0..12),
            other in proptest::collection::btree_set(0..40_u64, 0..12),
        ) {
            let list = |of: &BTreeSet<u64>| of.iter().copied().collect::<Vec<_>>();
            prop_assert_eq!(have_common(&list(&one), &list(&other)), !one.is_disjoint(&other));
        }
    }
}
