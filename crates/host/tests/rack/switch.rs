//! The switch's side of one worker: its row, counters, parked tokens and the tasks that wait.

use std::collections::VecDeque;

use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{
    Answer, Counters, Dispatch, Epoch, Generation, Key, Nonce, Packet, Serial, SliceId, Token, WorkerId,
};

const WORKER: WorkerId = WorkerId(5);
const WAITING_MAX: usize = 16;

pub(super) struct Switch {
    epoch: Epoch,
    generation: Generation,
    open: bool,
    /// Whether the worker has a row: not between a restart and its next registration.
    known: bool,
    start: Serial,
    seen: Serial,
    sent: Serial,
    parked: u32,
    waiting: VecDeque<Dispatch>,
}

impl Switch {
    pub(super) fn new(start: Serial) -> Self {
        Self {
            epoch: Epoch(100),
            generation: Generation(7),
            open: true,
            known: true,
            start,
            seen: start,
            sent: start,
            parked: 0,
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn grant(&self, quota: u8) -> WorkerRegistration {
        WorkerRegistration {
            worker: WORKER,
            key: self.key(),
            epoch: self.epoch,
            generation: self.generation,
            slice: SliceId(1),
            quota,
            start: self.start,
            ..WorkerRegistration::default()
        }
    }

    pub(super) const fn is_open(&self) -> bool {
        self.open && self.known
    }

    pub(super) const fn parked(&self) -> u32 {
        self.parked
    }

    pub(super) const fn life(&self) -> (Epoch, Generation) {
        (self.epoch, self.generation)
    }

    pub(super) const fn close(&mut self) {
        self.open = false;
    }

    /// Opens the next generation; tokens of the old one are stale.
    pub(super) fn reopen(&mut self) {
        self.open = true;
        self.generation.0 += 1;
        self.parked = 0;
        self.seen = self.start;
        self.sent = self.start;
    }

    /// Another life of the switch: nothing is left, and nobody is known. Generations start anew.
    pub(super) fn restart(&mut self) {
        let epoch = Epoch(self.epoch.0 + 1);
        *self = Self { epoch, generation: Generation(1), known: false, ..Self::new(self.start) };
    }

    pub(super) const fn register_again(&mut self) {
        self.known = true;
    }

    pub(super) fn packet(&mut self, packet: &Packet) -> Option<Packet> {
        match packet {
            Packet::Token(token) if self.knows(token.key) => self.token(token),
            Packet::Probe(probe) if self.knows(probe.key) => Some(self.answer(probe.nonce)),
            _ => None,
        }
    }

    pub(super) fn submit(&mut self, task: Dispatch) -> Option<Packet> {
        if self.parked > 0 {
            self.parked -= 1;
            return Some(self.dispatch(task));
        }
        if self.waiting.len() < WAITING_MAX {
            self.waiting.push_back(Dispatch { wait_ns: 1, ..task });
        }
        None
    }

    fn token(&mut self, token: &Token) -> Option<Packet> {
        let is_present = (token.epoch, token.generation) == self.life();
        let ahead = token.issued.since(self.seen);
        if !is_present || !self.open || !(1..=8).contains(&ahead) {
            return Some(self.answer(token.nonce));
        }
        self.seen = self.seen.plus(1);
        if let Some(task) = self.waiting.pop_front() {
            return Some(self.dispatch(task));
        }
        self.parked += 1;
        None
    }

    fn dispatch(&mut self, task: Dispatch) -> Packet {
        self.sent = self.sent.plus(1);
        let (epoch, generation) = self.life();
        Packet::Dispatch(Dispatch {
            epoch,
            worker: WORKER,
            generation,
            sent: self.sent,
            seen: self.seen,
            ..task
        })
    }

    fn answer(&self, nonce: Nonce) -> Packet {
        let (epoch, generation) = self.life();
        let counters = self.open.then_some(Counters { seen: self.seen, sent: self.sent });
        Packet::Answer(Answer { epoch, worker: WORKER, generation, nonce, counters })
    }

    fn knows(&self, key: Key) -> bool {
        self.known && key.0 >> 16 == self.epoch.0
    }

    /// One key per epoch, so that a worker of the old generation is answered and one of the old epoch is not.
    const fn key(&self) -> Key {
        Key(self.epoch.0 << 16 | 3)
    }
}
