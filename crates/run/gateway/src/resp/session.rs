//! A connection that speaks RESP, without I/O: bytes and outcomes of tasks in, tasks and bytes out.
//!
//! Commands of a connection run in the rack at once, and their replies leave in the order of the commands. A
//! command that could tell the difference waits: one that reads a key for a write of the key before it, one
//! that writes a key for reads and writes of it before, a scan for all writes before, and a write for scans
//! before. What a read is to see of the connection's earlier writes it is told by their number (`seen`).
//!
//! A command that has to wait stays in the reader, and nothing behind it is read: so the rack pushes back
//! through TCP.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};

use sluice_net::client::{Outcome, RefusedWhy};

use super::answers::{Introduced, RespStanding, unknown};
use super::commands::{CommandName, KnownCommand};
use super::cursors::Cursors;
use super::kv::{self, KV_KEY_BYTES_MAX, KV_VALUE_BYTES_MAX, KvTask};
use super::pending::{Asked, ManyKeys, Pending, ScanAsked, TaskProgress};
use super::reader::{FrameError, RespReader, number};
use super::reply::error;
use crate::outcome::CommandOutcome;

/// How many commands of a connection are under way at once, and how many tasks.
pub const PIPELINE_MAX: usize = 128;
/// With so many bytes that the client has not read, nothing more is taken of it.
pub const UNREAD_MAX: usize = 1 << 20;
/// How many keys SCAN returns at most.
const SCAN_KEYS_MAX: i64 = 1_000;
/// The most bytes of SCAN's pattern.
const PATTERN_BYTES_MAX: usize = 256;
/// The memory of replies that is kept for the next ones.
const KEPT: usize = 256 * 1_024;

/// What becomes of a task that a gateway takes no more because it ends.
const ENDING: Outcome = Outcome::Refused(RefusedWhy::NeverSent);

/// Why a task was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// There is no room now: the session is to go on when tasks of this kind have ended.
    Full,
    /// There will be none: the gateway ends.
    Closed,
}

/// What a session needs of the gateway.
pub trait RespDesk {
    /// Hands a task to the rack. Its outcome comes to [`RespSession::ended`] with this tag.
    ///
    /// # Errors
    /// [`NotTaken`] if there is no room.
    fn submit(&mut self, tag: u32, task: KvTask, bytes: &[u8]) -> Result<(), NotTaken>;
    /// The table of cursors.
    fn cursors(&mut self) -> &mut Cursors;
    /// The time, in ns.
    fn now(&self) -> u64;
    /// Counts a command that was answered.
    fn count(&mut self, outcome: CommandOutcome, began: u64);
    /// Takes back the bytes of a reply.
    fn recycle(&mut self, bytes: Vec<u8>);
    /// Numbers for INFO.
    fn standing(&self) -> RespStanding;
}

/// Why a session does not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// It needs more bytes.
    Hungry,
    /// It needs tasks of its own to end, or its client to read.
    Waits,
    /// It needs room for a task of this kind.
    Full(KvTask),
    /// It took as many commands as it may at once.
    Turn,
    /// Nothing more is read: it ends when all is answered.
    Ending,
}

/// Whether a command was taken.
enum Taken {
    Yes,
    /// Commands before it must end first.
    Waits,
    Full(KvTask),
}

/// A connection.
#[derive(Debug)]
pub struct RespSession {
    reader: RespReader,
    pending: VecDeque<Pending>,
    /// The number of the first of them.
    front: u16,
    /// How many are open, how many of these are writes, and how many of these have keys that no task has yet.
    open: usize,
    open_writes: usize,
    unsent: usize,
    /// How many tasks have no outcome yet.
    under_way: usize,
    /// The number of the last write that ended.
    seen: u64,
    /// Replies, and how much of them was sent.
    out: Vec<u8>,
    sent: usize,
    /// Bytes of replies that wait for those before them.
    held: usize,
    introduced: Introduced,
    is_ending: bool,
    /// What ended it, if it was the client's fault.
    malformed: Option<FrameError>,
    hasher: RandomState,
    /// The task that is made now.
    task: Vec<u8>,
}

impl RespSession {
    /// A connection that is new.
    pub fn new(id: u32) -> Self {
        Self {
            reader: RespReader::new(),
            pending: VecDeque::new(),
            front: 0,
            open: 0,
            open_writes: 0,
            unsent: 0,
            under_way: 0,
            seen: 0,
            out: Vec::new(),
            sent: 0,
            held: 0,
            introduced: Introduced::new(id),
            is_ending: false,
            malformed: None,
            hasher: RandomState::new(),
            task: Vec::new(),
        }
    }

    /// Room for bytes of the client; [`Self::filled`] says how many came.
    pub fn room(&mut self) -> &mut [u8] {
        self.reader.room()
    }

    /// Takes so many bytes of the room as come.
    pub fn filled(&mut self, count: usize) {
        self.reader.filled(count);
    }

    /// Bytes for the client; [`Self::sent`] says how many left.
    pub fn out(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// Forgets so many bytes for the client.
    pub fn sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent >= self.out.len() {
            self.out.clear();
            self.sent = 0;
            self.out.shrink_to(KEPT);
        }
    }

    /// Bytes of replies that the client has not read.
    pub fn unread(&self) -> usize {
        self.out().len() + self.held
    }

    /// Whether all commands that were taken are answered, and the answers sent.
    pub fn is_over(&self) -> bool {
        self.pending.is_empty() && self.out().is_empty()
    }

    /// What the client sent that was no command.
    pub const fn malformed(&self) -> Option<FrameError> {
        self.malformed
    }

    /// Takes commands as long as that is possible, at most so many.
    pub fn advance(&mut self, desk: &mut impl RespDesk, mut most: usize) -> Paused {
        loop {
            if self.is_ending {
                return Paused::Ending;
            }
            if let Some(paused) = self.submit_rest(desk) {
                return paused;
            }
            let is_busy = self.pending.len().max(self.under_way) >= PIPELINE_MAX;
            if is_busy || self.unread() > UNREAD_MAX {
                return Paused::Waits;
            }
            if most == 0 {
                return Paused::Turn;
            }
            match self.reader.read() {
                Ok(false) => return Paused::Hungry,
                Ok(true) => match self.take(desk) {
                    Taken::Yes => {
                        self.reader.consume();
                        self.is_ending |= self.introduced.has_quit;
                        most -= 1;
                    }
                    Taken::Waits => return Paused::Waits,
                    Taken::Full(task) => return Paused::Full(task),
                },
                Err(why) => {
                    self.malformed = Some(why);
                    self.is_ending = true;
                    self.reply(desk, |out| error("ERR", format_args!("Protocol error: {why}"), out));
                }
            }
        }
    }

    /// Takes what became of a task.
    pub fn ended(&mut self, desk: &mut impl RespDesk, tag: u32, outcome: Outcome) {
        let place = ((tag >> 16) as u16).wrapping_sub(self.front);
        let Some(pending) = self.pending.get_mut(usize::from(place)) else { return };
        let is_write = pending.asked.is_write();
        let before = pending.held();
        let written;
        match &mut pending.progress {
            TaskProgress::Open => {
                // A reply that cannot be read is told when it is written.
                written = match &outcome {
                    Outcome::Reply(reply) if is_write && !reply.failed => kv::written(&reply.bytes).ok(),
                    _ => None,
                };
                pending.progress = TaskProgress::Ended(outcome);
            }
            TaskProgress::Many(many) => {
                let (number, had_rest) = ((tag & 0xffff) as usize, many.next().is_some());
                many.ended(number, outcome, is_write);
                written = if is_write { many.sequence(number) } else { None };
                self.unsent -= usize::from(had_rest);
                self.unsent += usize::from(many.next().is_some());
            }
            TaskProgress::Ready(_) | TaskProgress::Ended(_) => return,
        }
        self.under_way -= 1;
        self.held += pending.held() - before;
        if let Some(number) = written {
            // Only in another store than before a later write has a smaller number.
            let is_other = number < pending.seen;
            self.seen = if is_other { number } else { self.seen.max(number) };
        }
        if !pending.is_open() {
            self.open -= 1;
            self.open_writes -= usize::from(is_write);
            if place == 0 {
                self.write_ended(desk);
            }
        }
    }

    /// Writes the replies of all commands that have ended and that no open one precedes.
    fn write_ended(&mut self, desk: &mut impl RespDesk) {
        while let Some(first) = self.pending.pop_front_if(|first| !first.is_open()) {
            self.front = self.front.wrapping_add(1);
            self.held -= first.held();
            let began = first.began;
            let (outcome, spare) = first.write(self.introduced.version, desk.cursors(), &mut self.out);
            if let Some(bytes) = spare {
                desk.recycle(bytes);
            }
            desk.count(outcome, began);
        }
    }

    /// Hands over tasks of commands that have several. Returns why it cannot hand over all.
    fn submit_rest(&mut self, desk: &mut impl RespDesk) -> Option<Paused> {
        if self.unsent == 0 {
            return None;
        }
        // What is held waits for the first command, which therefore may go on.
        let (first_may, others_may) = (self.out().len() <= UNREAD_MAX, self.unread() <= UNREAD_MAX);
        for at in 0..self.pending.len() {
            let number = self.front.wrapping_add(at as u16);
            let pending = &mut self.pending[at];
            let is_write = pending.asked.is_write();
            let TaskProgress::Many(many) = &mut pending.progress else { continue };
            while let Some((part, keys)) = many.next() {
                let may = if at == 0 { first_may } else { others_may };
                if !may || self.under_way >= PIPELINE_MAX {
                    return Some(Paused::Waits);
                }
                let task = if is_write { KvTask::Del } else { KvTask::Get };
                if is_write {
                    self.task.clear();
                } else {
                    kv::begin_read(self.seen, &mut self.task);
                }
                self.task.extend_from_slice(keys);
                let tag = u32::from(number) << 16 | part as u32;
                let taken = desk.submit(tag, task, &self.task);
                if taken == Err(NotTaken::Full) {
                    return Some(Paused::Full(task));
                }
                many.handed_over();
                self.under_way += 1;
                self.unsent -= usize::from(many.next().is_none());
                if taken.is_err() {
                    self.ended(desk, tag, ENDING);
                    return self.submit_rest(desk);
                }
            }
        }
        None
    }

    /// Answers a command without a task.
    fn reply(&mut self, desk: &mut impl RespDesk, write: impl FnOnce(&mut Vec<u8>)) {
        let began = desk.now();
        let mut bytes = Vec::new();
        write(&mut bytes);
        self.held += bytes.len();
        self.pending.push_back(Pending {
            asked: Asked::Local,
            progress: TaskProgress::Ready(bytes),
            key: 0,
            seen: self.seen,
            began,
        });
        self.write_ended(desk);
    }

    /// Takes the command that is whole.
    fn take(&mut self, desk: &mut impl RespDesk) -> Taken {
        let args = self.reader.args();
        let Some(known) = KnownCommand::called(args.word(0)) else {
            let name = args.word(0)[..args.word(0).len().min(128)].to_vec();
            self.reply(desk, |out| unknown(&name, out));
            return Taken::Yes;
        };
        if known.name == CommandName::Set && args.len() > 3 {
            let option = args.word(3)[..args.word(3).len().min(32)].escape_ascii().to_string();
            return self.refuse(
                desk,
                format_args!("SET takes a key and a value here: the store cannot keep {option}"),
            );
        }
        if !known.takes(args.len()) {
            return self
                .refuse(desk, format_args!("wrong number of arguments for '{}' command", known.text()));
        }
        match known.name {
            CommandName::Get => self.take_one(desk, KvTask::Get),
            CommandName::Set => self.take_one(desk, KvTask::Set),
            CommandName::Mget => self.take_many(desk, Asked::Mget),
            CommandName::Exists => self.take_many(desk, Asked::Exists),
            CommandName::Del => self.take_many(desk, Asked::Del),
            CommandName::Scan => self.take_scan(desk),
            // Replies before these are in the protocol of before.
            CommandName::Hello | CommandName::Reset if !self.pending.is_empty() => Taken::Waits,
            name => {
                let mut out = Vec::new();
                let args = self.reader.args();
                self.introduced.answer(name, args, || desk.standing(), &mut out);
                self.reply(desk, |to| *to = out);
                Taken::Yes
            }
        }
    }

    fn refuse(&mut self, desk: &mut impl RespDesk, why: std::fmt::Arguments<'_>) -> Taken {
        self.reply(desk, |out| error("ERR", why, out));
        Taken::Yes
    }

    /// GET or SET.
    fn take_one(&mut self, desk: &mut impl RespDesk, task: KvTask) -> Taken {
        let args = self.reader.args();
        let (key, value) = (args.word(1), args.word(2));
        if !is_key_length(key.len()) {
            return self.refuse_key(desk, key.len());
        }
        if value.len() > KV_VALUE_BYTES_MAX {
            let length = value.len();
            return self.refuse(
                desk,
                format_args!("a value of {length} bytes: the store keeps {KV_VALUE_BYTES_MAX} at most"),
            );
        }
        let hash = self.hasher.hash_one(key);
        let is_write = task == KvTask::Set;
        if self.must_wait(is_write, &[hash]) {
            return Taken::Waits;
        }
        if is_write {
            kv::set(key, value, &mut self.task);
        } else {
            kv::begin_read(self.seen, &mut self.task);
            kv::add_key(key, &mut self.task);
        }
        self.submit_one(desk, task, if is_write { Asked::Set } else { Asked::Get }, hash)
    }

    fn take_scan(&mut self, desk: &mut impl RespDesk) -> Taken {
        let (cursor, most, asked) = match self.read_scan() {
            Ok(read) => read,
            Err(why) => return self.refuse(desk, format_args!("{why}")),
        };
        if self.must_wait(false, &[]) {
            return Taken::Waits;
        }
        let Some(behind) = desk.cursors().key(cursor) else {
            return self.refuse(
                desk,
                format_args!(
                    "unknown cursor {cursor}: another gateway gave it, or too many were given since; begin \
                     again with SCAN 0"
                ),
            );
        };
        kv::scan(self.seen, most, behind, &mut self.task);
        self.submit_one(desk, KvTask::Scan, Asked::Scan(Box::new(asked)), 0)
    }

    /// The words of SCAN: the cursor, how many keys, and which of them.
    fn read_scan(&self) -> Result<(u64, u32, ScanAsked), String> {
        let args = self.reader.args();
        let text = std::str::from_utf8(args.word(1)).ok();
        let cursor = text.and_then(|text| text.parse().ok()).ok_or("invalid cursor")?;
        let (mut most, mut asked) = (10, ScanAsked { pattern: None, of_other_type: false });
        let mut words = args.from(2);
        while let Some(option) = words.next() {
            let word = words.next().ok_or("syntax error")?;
            if option.eq_ignore_ascii_case(b"count") {
                let count = number(word).filter(|count| *count > 0);
                most = count.ok_or("syntax error: COUNT takes a number above 0")?.min(SCAN_KEYS_MAX);
            } else if option.eq_ignore_ascii_case(b"match") {
                if word.len() > PATTERN_BYTES_MAX {
                    return Err(format!("a pattern has at most {PATTERN_BYTES_MAX} bytes here"));
                }
                asked.pattern = Some(word.into()).filter(|_| word != b"*");
            } else if option.eq_ignore_ascii_case(b"type") {
                asked.of_other_type = !word.eq_ignore_ascii_case(b"string");
            } else {
                return Err("syntax error: SCAN takes a cursor, MATCH, COUNT and TYPE".to_owned());
            }
        }
        Ok((cursor, most as u32, asked))
    }

    fn take_many(&mut self, desk: &mut impl RespDesk, asked: Asked) -> Taken {
        let args = self.reader.args();
        let wrong = args.from(1).map(<[u8]>::len).find(|length| !is_key_length(*length));
        if let Some(length) = wrong {
            return self.refuse_key(desk, length);
        }
        let args = self.reader.args();
        let many = ManyKeys::new(args.from(1), |key| self.hasher.hash_one(key));
        if self.must_wait(asked.is_write(), many.hashes()) {
            return Taken::Waits;
        }
        self.open += 1;
        self.open_writes += usize::from(asked.is_write());
        self.unsent += 1;
        let (progress, seen, began) = (TaskProgress::Many(Box::new(many)), self.seen, desk.now());
        self.pending.push_back(Pending { asked, progress, key: 0, seen, began });
        // Its tasks are handed over when the session goes on, which it does at once.
        Taken::Yes
    }

    fn refuse_key(&mut self, desk: &mut impl RespDesk, length: usize) -> Taken {
        self.refuse(desk, format_args!("a key of {length} bytes: the store takes 1 to {KV_KEY_BYTES_MAX}"))
    }

    /// Hands over a command's only task, whose bytes are made.
    fn submit_one(&mut self, desk: &mut impl RespDesk, task: KvTask, asked: Asked, key: u64) -> Taken {
        let number = self.front.wrapping_add(self.pending.len() as u16);
        let tag = u32::from(number) << 16;
        let taken = desk.submit(tag, task, &self.task);
        if taken == Err(NotTaken::Full) {
            return Taken::Full(task);
        }
        self.open += 1;
        self.open_writes += usize::from(asked.is_write());
        self.under_way += 1;
        let (seen, began) = (self.seen, desk.now());
        self.pending.push_back(Pending { asked, progress: TaskProgress::Open, key, seen, began });
        if taken.is_err() {
            self.ended(desk, tag, ENDING);
        }
        Taken::Yes
    }

    /// Whether commands before this one must end first. The hashes of its keys are in order; without keys it
    /// reads all of them.
    fn must_wait(&self, is_write: bool, hashes: &[u64]) -> bool {
        if self.open == 0 || !is_write && self.open_writes == 0 {
            return false;
        }
        self.pending.iter().any(|before| {
            before.is_open()
                && (is_write || before.asked.is_write())
                && (hashes.is_empty() || before.touches(hashes))
        })
    }

    /// As [`Self::advance`] when no more bytes come: what has come is answered.
    pub fn close_input(&mut self, desk: &mut impl RespDesk, most: usize) -> Paused {
        let paused = self.advance(desk, most);
        self.is_ending |= paused == Paused::Hungry;
        paused
    }
}

fn is_key_length(length: usize) -> bool {
    (1..=KV_KEY_BYTES_MAX).contains(&length)
}

/// The answer of a gateway that has no place for another connection.
pub(crate) fn full(connections: usize) -> Vec<u8> {
    let mut out = Vec::new();
    error("ERR", format_args!("max number of clients reached: this gateway takes {connections}"), &mut out);
    out
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
