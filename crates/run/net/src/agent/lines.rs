//! The shared file of a server's agent and its workers, in which each worker has cache lines of its own
//! (Rain §3.3).
//!
//! A worker's line says which slice it serves, how long it was idle, and how many tasks it ended; samples
//! of the last [`RING`] tasks follow. The worker writes these words. The agent writes one line with the
//! depth that it wants. Each word has one writer, and all words are atomic.
//!
//! A seqlock protects the samples, so that no side waits for the other: the worker marks its count, writes
//! the sample, and then raises the count. The agent copies samples, reads the count again, and drops
//! samples that may have been overwritten meanwhile. An agent that was away for more than [`RING`] tasks
//! misses the oldest ones and knows how many.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use sluice_host::agent::Sample;
use sluice_wire::{Epoch, Generation, Nanos, SliceId, WorkerId};

use crate::NetError;
use crate::rdma::SharedMemory;

/// The file's name in the folder of the server's memory.
pub const LINES_FILE: &str = "agent";
/// How many samples are kept of each worker.
pub const RING: usize = 2_048;
/// How many workers one file has lines for by default.
pub const LINES: usize = 64;

/// The number of words in a cache line.
const LINE: usize = 8;
/// The number of words in a sample; two samples share a cache line.
const SAMPLE: usize = 4;
const BLOCK: usize = 2 * LINE + RING * SAMPLE;
/// How many samples an agent copies before it checks that they were not overwritten.
const COPIED: usize = 16;
/// The file's first word: its format and version.
const MAGIC: u64 = u64::from_le_bytes(*b"sluice.1");

/// Indices of the words in a worker's own line.
mod own {
    /// The owner: a hash of the worker's name; 0 if the line is free.
    pub(super) const OWNER: usize = 0;
    /// Index, slice and depth.
    pub(super) const REGISTRATION: usize = 1;
    /// The switch's epoch, the worker's generation, and when that generation began.
    pub(super) const LIFE: usize = 2;
    pub(super) const SEATED_AT: usize = 3;
    /// When the registration ends unless it is renewed.
    pub(super) const VALID_UNTIL: usize = 4;
    /// How many tasks the worker has ended.
    pub(super) const ENDED: usize = 5;
    /// How long the worker has been blocked, up to when it last got a task.
    pub(super) const BLOCKED: usize = 6;
    /// Since when the worker has been blocked; 0 if it is busy.
    pub(super) const FREE_SINCE: usize = 7;
}

/// The index of the word that the agent writes: a depth, and the life for which it is meant.
const ORDER: usize = LINE;

/// A worker's registration, as the agent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRegistration {
    pub worker: WorkerId,
    pub slice: SliceId,
    pub epoch: Epoch,
    pub generation: Generation,
    /// How many tasks the worker may have granted or held.
    pub depth: u8,
}

impl LineRegistration {
    const TAKEN: u64 = 1 << 63;

    /// Epoch and generation.
    pub const fn life(&self) -> (Epoch, Generation) {
        (self.epoch, self.generation)
    }

    fn words(self) -> (u64, u64) {
        let place = u64::from(self.worker.0) << 32 | u64::from(self.slice.0) << 8 | u64::from(self.depth);
        (Self::TAKEN | place, u64::from(self.epoch.0) << 32 | u64::from(self.generation.0))
    }

    fn of(word: u64, life: u64) -> Option<Self> {
        (word & Self::TAKEN != 0).then_some(Self {
            worker: WorkerId((word >> 32) as u16),
            slice: SliceId((word >> 8) as u16),
            epoch: Epoch((life >> 32) as u32),
            generation: Generation(life as u32),
            depth: word as u8,
        })
    }

    /// The order to use this depth; it is void in any other life of the worker.
    const fn order(&self, depth: u8) -> u64 {
        (self.epoch.0 as u64) << 40 | (self.generation.0 as u64) << 8 | depth as u64
    }
}

/// The file, as its server sees it.
#[derive(Clone, Debug)]
pub struct Lines {
    memory: Arc<SharedMemory>,
}

impl Lines {
    /// Opens the file at `path` if it is such a file, or creates one with lines for `workers` workers. So
    /// workers that outlived their server keep their lines.
    ///
    /// # Errors
    /// [`NetError::Memory`] if the file cannot be created.
    pub fn make(path: &Path, workers: usize) -> Result<Self, NetError> {
        let bytes = (LINE + workers.max(1) * BLOCK) * size_of::<u64>();
        if let Ok(known) = Self::open(path)
            && known.memory.bytes() == bytes
        {
            return Ok(known);
        }
        let memory = Arc::new(SharedMemory::create(path, bytes)?);
        memory.words()[0].store(MAGIC, Ordering::Release);
        Ok(Self { memory })
    }

    /// Opens the file that a server created.
    ///
    /// # Errors
    /// [`NetError::Memory`] if it does not exist or has another format.
    pub fn open(path: &Path) -> Result<Self, NetError> {
        let memory = SharedMemory::open(path)?;
        let is_ours = memory.bytes() / size_of::<u64>() >= LINE + BLOCK
            && memory.words()[0].load(Ordering::Acquire) == MAGIC;
        if is_ours {
            return Ok(Self { memory: Arc::new(memory) });
        }
        let (path, why) = (path.to_owned(), std::io::ErrorKind::InvalidData.into());
        Err(NetError::Memory { path, doing: "read an agent's lines in it", why })
    }

    /// How many workers the file has lines for.
    pub fn len(&self) -> usize {
        (self.memory.words().len() - LINE) / BLOCK
    }

    /// Whether the file has no lines, which never happens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn block(&self, line: usize) -> &[AtomicU64] {
        let start = LINE + line * BLOCK;
        &self.memory.words()[start..start + BLOCK]
    }

    /// Claims a line for a worker of this name: its earlier line, a free one, or one whose owner's
    /// registration ended long ago.
    fn claim(&self, name: &str, now: Nanos) -> Option<usize> {
        let name = hash(name);
        let owner = |line: &usize| &self.block(*line)[own::OWNER];
        let lines = || 0..self.len();
        if let Some(own) = lines().find(|line| owner(line).load(Ordering::Acquire) == name) {
            return Some(own);
        }
        let gone = |line: &usize| self.block(*line)[own::VALID_UNTIL].load(Ordering::Relaxed) < now.0;
        let free = lines().map(|line| (line, 0));
        let stale = lines().filter(gone).map(|line| (line, owner(&line).load(Ordering::Acquire)));
        let take = |(line, before): &(usize, u64)| {
            owner(line).compare_exchange(*before, name, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let taken = free.chain(stale).find(take);
        taken.map(|(line, _)| line)
    }
}

/// A worker's line, for the worker to write.
#[derive(Debug)]
pub struct Line {
    lines: Lines,
    place: usize,
    ended: u64,
    blocked: Nanos,
    registration: Option<LineRegistration>,
}

impl Line {
    /// Claims a line for the worker with this name.
    ///
    /// # Errors
    /// [`NetError::Memory`] if there is no such file, or no line is left.
    pub fn claim(path: &Path, name: &str, now: Nanos) -> Result<Self, NetError> {
        let lines = Lines::open(path)?;
        let place = lines.claim(name, now).ok_or_else(|| {
            let (path, why) = (path.to_owned(), std::io::ErrorKind::StorageFull.into());
            NetError::Memory { path, doing: "find a free line in it", why }
        })?;
        let word = |at: usize| lines.block(place)[at].load(Ordering::Acquire);
        // The counts continue, since the agent has read up to them.
        let (ended, blocked) = (word(own::ENDED) & !WRITING, Nanos(word(own::BLOCKED)));
        let line = Self { lines, place, ended, blocked, registration: None };
        line.set(own::REGISTRATION, 0);
        line.set(ORDER, 0);
        line.set(own::FREE_SINCE, 0);
        Ok(line)
    }

    /// Notes the registration that the worker heard of at `now`; without further news it is valid until
    /// `valid`.
    pub fn set_registration(&mut self, now: Nanos, registration: LineRegistration, valid: Nanos) {
        self.set(own::VALID_UNTIL, valid.0);
        let (word, life) = registration.words();
        if self.registration.is_none_or(|before| before.life() != registration.life()) {
            // Clears the seat first, so that the agent never sees the new life with the old seat.
            self.set(own::REGISTRATION, 0);
            self.set(own::LIFE, life);
            self.set(own::SEATED_AT, now.0);
        }
        self.registration = Some(registration);
        self.set(own::REGISTRATION, word);
    }

    /// A task ended.
    pub fn ended(&mut self, at: Nanos, sample: &Sample) {
        let start = 2 * LINE + (self.ended as usize % RING) * SAMPLE;
        let waits =
            u64::from(sample.switch_wait.saturated()) << 32 | u64::from(sample.worker_wait.saturated());
        // The seqlock: a reader that sees one of the new words also sees the mark, and drops the old
        // sample.
        self.set(own::ENDED, self.ended | WRITING);
        fence(Ordering::Release);
        let block = self.lines.block(self.place);
        for (word, value) in
            block[start..].iter().zip([at.0, waits, sample.service.0, sample.occupancy.into()])
        {
            word.store(value, Ordering::Relaxed);
        }
        self.ended += 1;
        self.set(own::ENDED, self.ended);
    }

    /// Notes that the worker has had nothing to do since `since`.
    pub fn set_idle(&self, since: Nanos) {
        self.set(own::FREE_SINCE, since.0.max(1));
    }

    /// Notes that the worker got a task after it had been blocked for `blocked`.
    pub fn set_busy(&mut self, blocked: Nanos) {
        self.blocked = self.blocked + blocked;
        self.set(own::FREE_SINCE, 0);
        self.set(own::BLOCKED, self.blocked.0);
    }

    /// The depth that the agent wants; `None` if the worker has it already.
    pub fn ordered_depth(&self) -> Option<u8> {
        let registration = self.registration?;
        let order = self.lines.block(self.place)[ORDER].load(Ordering::Relaxed);
        let depth = order as u8;
        (order == registration.order(depth) && depth != 0 && depth != registration.depth).then_some(depth)
    }

    /// Notes that the worker has this depth from now on.
    pub fn set_depth(&mut self, depth: u8) {
        if let Some(registration) = &mut self.registration {
            registration.depth = depth;
            let (word, _) = registration.words();
            self.set(own::REGISTRATION, word);
        }
    }

    /// The registration that was last noted.
    pub fn registration(&self) -> Option<LineRegistration> {
        self.registration
    }

    fn set(&self, at: usize, value: u64) {
        self.lines.block(self.place)[at].store(value, Ordering::Release);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.set(own::REGISTRATION, 0);
        self.set(own::OWNER, 0);
    }
}

/// The seqlock's mark in a line's count: the next sample is being written.
const WRITING: u64 = 1 << 63;

/// A line, for the agent to read.
#[derive(Debug)]
pub struct Reader {
    lines: Lines,
    place: usize,
    read: u64,
    blocked: u64,
}

impl Reader {
    /// Readers of all lines; they skip tasks that ended before.
    pub fn all(lines: &Lines) -> Vec<Self> {
        let reader = |place| {
            let mut reader = Self { lines: lines.clone(), place, read: 0, blocked: 0 };
            (reader.read, reader.blocked) = (reader.count(), reader.blocked_at(Nanos(0)));
            reader
        };
        (0..lines.len()).map(reader).collect()
    }

    /// The worker's registration and when it began; `None` if it is not valid.
    pub fn registration(&self, now: Nanos) -> Option<(LineRegistration, Nanos)> {
        let word = self.word(own::REGISTRATION);
        let (life, since) = (self.word(own::LIFE), self.word(own::SEATED_AT));
        // The writer clears the seat before it changes either of the other words.
        let is_whole = word == self.word(own::REGISTRATION) && self.word(own::VALID_UNTIL) >= now.0;
        LineRegistration::of(word, life).filter(|_| is_whole).map(|registration| (registration, Nanos(since)))
    }

    /// Calls `each` with every task that ended since the last call, up to `until`. Returns how many were
    /// missed.
    pub fn read(&mut self, until: Nanos, mut each: impl FnMut(Nanos, Sample)) -> u64 {
        let block = self.lines.block(self.place);
        let (count, mut missed, mut copy) = (self.count(), 0, [[0; SAMPLE]; COPIED]);
        while self.read < count {
            let copied = ((count - self.read) as usize).min(COPIED);
            for (at, sample) in (self.read..).zip(&mut copy[..copied]) {
                let start = 2 * LINE + (at as usize % RING) * SAMPLE;
                for (to, word) in sample.iter_mut().zip(&block[start..start + SAMPLE]) {
                    *to = word.load(Ordering::Relaxed);
                }
            }
            fence(Ordering::Acquire);
            let now = block[own::ENDED].load(Ordering::Relaxed);
            // A sample that is being written replaces the oldest one.
            let begun = (now & !WRITING) + u64::from(now & WRITING != 0);
            let gone = begun.saturating_sub(RING as u64).saturating_sub(self.read);
            missed += gone;
            let skipped = (gone as usize).min(copied);
            self.read += gone;
            for words in &copy[skipped..copied] {
                if words[0] > until.0 {
                    return missed;
                }
                self.read += 1;
                each(Nanos(words[0]), sample_of(words));
            }
        }
        missed
    }

    /// How long the worker was blocked since the last call.
    pub fn idled(&mut self, now: Nanos) -> Nanos {
        let blocked = self.blocked_at(now);
        let since = Nanos(blocked.saturating_sub(self.blocked));
        self.blocked = self.blocked.max(blocked);
        since
    }

    /// Orders the worker to use this depth, as long as it has this registration.
    pub fn order_depth(&self, registration: &LineRegistration, depth: u8) {
        self.lines.block(self.place)[ORDER].store(registration.order(depth), Ordering::Release);
    }

    /// Reads the sum first: a new sum comes together with the cleared `FREE_SINCE`.
    fn blocked_at(&self, now: Nanos) -> u64 {
        let sum = self.word(own::BLOCKED);
        match self.word(own::FREE_SINCE) {
            0 => sum,
            since => sum + now.0.saturating_sub(since),
        }
    }

    fn count(&self) -> u64 {
        self.word(own::ENDED) & !WRITING
    }

    fn word(&self, at: usize) -> u64 {
        self.lines.block(self.place)[at].load(Ordering::Acquire)
    }
}

fn sample_of([_, waits, service, occupancy]: &[u64; SAMPLE]) -> Sample {
    Sample {
        switch_wait: Nanos(waits >> 32),
        worker_wait: Nanos(waits & u64::from(u32::MAX)),
        service: Nanos(*service),
        occupancy: *occupancy as u32,
    }
}

/// FNV-1a, never 0.
fn hash(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, step).max(1)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use tempfile::TempDir;

    use super::*;

    const REGISTRATION: LineRegistration = LineRegistration {
        worker: WorkerId(3),
        slice: SliceId(1),
        epoch: Epoch(1_700_000_000),
        generation: Generation(7),
        depth: 2,
    };
    const LATER: Nanos = Nanos(u64::MAX);

    fn file(workers: usize) -> (TempDir, Lines) {
        let folder = tempfile::tempdir().expect("there is room");
        let lines = Lines::make(&folder.path().join("agent"), workers).expect("there is room");
        (folder, lines)
    }

    fn line(folder: &TempDir, name: &str) -> Result<Line, NetError> {
        Line::claim(&folder.path().join("agent"), name, Nanos(50))
    }

    fn sample(number: u64) -> Sample {
        let (switch_wait, worker_wait) = (Nanos(number), Nanos(number + 1));
        Sample { switch_wait, worker_wait, service: Nanos(number + 2), occupancy: number as u32 + 3 }
    }

    fn read(reader: &mut Reader) -> (Vec<u64>, u64) {
        let mut found = Vec::new();
        let missed = reader.read(LATER, |at, of| {
            assert_eq!(of, sample(at.0), "one sample's words belong together");
            found.push(at.0);
        });
        (found, missed)
    }

    #[test]
    fn what_a_worker_says_is_read_once_and_in_order() {
        let (folder, lines) = file(2);
        let mut reader = Reader::all(&lines).remove(0);
        let mut line = line(&folder, "a").expect("there is a line");
        line.set_registration(Nanos(5), REGISTRATION, Nanos(100));
        assert_eq!(reader.registration(Nanos(100)), Some((REGISTRATION, Nanos(5))));
        assert_eq!(reader.registration(Nanos(101)), None, "its registration has ended");
        (10..13).for_each(|number| line.ended(Nanos(number), &sample(number)));
        assert_eq!(read(&mut reader), (vec![10, 11, 12], 0));
        (13..15).for_each(|number| line.ended(Nanos(number), &sample(number)));
        assert_eq!(reader.read(Nanos(13), |at, _| assert_eq!(at, Nanos(13))), 0);
        assert_eq!(read(&mut reader), (vec![14], 0), "what ended later comes with the next interval");
        drop(line);
        assert_eq!(reader.registration(Nanos(0)), None);
    }

    #[test]
    fn an_agent_that_did_not_look_misses_the_oldest() {
        let (folder, lines) = file(1);
        let mut reader = Reader::all(&lines).remove(0);
        let mut line = line(&folder, "a").expect("there is a line");
        (0..RING as u64 + 5).for_each(|number| line.ended(Nanos(number), &sample(number)));
        let (found, missed) = read(&mut reader);
        assert_eq!((found.len(), found[0], missed), (RING, 5, 5));
    }

    #[test]
    fn a_depth_is_wanted_of_one_generation_only() {
        let (folder, lines) = file(1);
        let reader = Reader::all(&lines).remove(0);
        let mut line = line(&folder, "a").expect("there is a line");
        line.set_registration(Nanos(5), REGISTRATION, LATER);
        assert_eq!(line.ordered_depth(), None);
        reader.order_depth(&REGISTRATION, 4);
        assert_eq!(line.ordered_depth(), Some(4));
        line.set_registration(Nanos(6), LineRegistration { depth: 4, ..REGISTRATION }, LATER);
        assert_eq!(line.ordered_depth(), None, "it has that depth");
        assert_eq!(
            reader.registration(LATER).map(|(_, since)| since),
            Some(Nanos(5)),
            "nothing but its depth is new"
        );
        line.set_registration(
            Nanos(7),
            LineRegistration { generation: Generation(8), depth: 2, ..REGISTRATION },
            LATER,
        );
        assert_eq!(line.ordered_depth(), None, "it was wanted elsewhere");
    }

    #[test]
    fn idle_time_is_told_once_also_while_it_lasts() {
        let (folder, lines) = file(1);
        let mut reader = Reader::all(&lines).remove(0);
        let mut line = line(&folder, "a").expect("there is a line");
        line.set_idle(Nanos(100));
        assert_eq!(reader.idled(Nanos(130)), Nanos(30));
        line.set_busy(Nanos(50));
        assert_eq!(reader.idled(Nanos(200)), Nanos(20));
        assert_eq!(reader.idled(Nanos(900)), Nanos(0));
    }

    #[test]
    fn a_name_keeps_its_line_and_the_last_one_is_given_to_nobody_else_while_it_is_held() {
        let (folder, _lines) = file(2);
        let [a, b] = ["a", "b"].map(|name| line(&folder, name).expect("there are two lines"));
        assert_ne!(a.place, b.place);
        let mut held = line(&folder, "b").expect("it is b's");
        assert_eq!(held.place, b.place);
        let (mut a, mut nobody) = (a, Vec::new());
        a.set_registration(Nanos(1), REGISTRATION, LATER);
        held.set_registration(Nanos(1), REGISTRATION, LATER);
        nobody.push(line(&folder, "c").expect_err("both are held"));
        held.set_registration(Nanos(1), REGISTRATION, Nanos(49));
        assert_eq!(line(&folder, "c").expect("b's registration has ended").place, b.place);
        assert!(nobody[0].to_string().contains("free line"), "{}", nobody[0]);
    }

    #[test]
    fn a_file_that_is_something_else_is_refused_and_one_of_ours_is_kept() {
        let folder = tempfile::tempdir().expect("there is room");
        let path = folder.path().join("agent");
        std::fs::write(&path, [1; 64]).expect("there is room");
        assert!(Lines::open(&path).is_err());
        let lines = Lines::make(&path, 3).expect("it is replaced");
        assert_eq!((lines.len(), lines.is_empty()), (3, false));
        let mut line = line(&folder, "a").expect("there is a line");
        line.ended(Nanos(1), &sample(1));
        let again = Lines::make(&path, 3).expect("it is there");
        assert_eq!(Reader::all(&again)[line.place].count(), 1);
    }

    #[test]
    fn a_reader_beside_a_fast_writer_finds_whole_samples_only() {
        const TASKS: u64 = 200_000;
        let (folder, lines) = file(1);
        let mut reader = Reader::all(&lines).remove(0);
        let mut line = line(&folder, "a").expect("there is a line");
        let writer = thread::spawn(move || {
            (1..=TASKS).for_each(|number| line.ended(Nanos(number), &sample(number)));
            line
        });
        let (mut last, mut found) = (0, 0);
        while last < TASKS {
            let (read, missed) = read(&mut reader);
            found += read.len() as u64 + missed;
            assert!(read.iter().all(|at| *at > last), "none comes twice");
            last = read.last().copied().unwrap_or(last);
        }
        assert_eq!(found, TASKS);
        drop(writer.join().expect("no panic"));
    }
}
