//! Many packets in the program at once: whatever their order, each task leaves once, and each token is
//! spent once.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::thread;

use sluice_conformance::{Plane as _, Shape, Step, TestedProgram};
use sluice_kernel::xdp::frame::{unwrap, wrap};
use sluice_kernel::xdp::{FrameAction, SliceQueue, XdpSwitch};
use sluice_wire::{
    Age, Attempt, ClientId, Dispatch, Epoch, Generation, HEADER_BYTES, Incarnation, Key, Nanos, Nonce,
    Packet, Serial, SliceId, Submit, Sweep, SweepOf, TaskId, Token, WorkerId, encode, parse,
};

use crate::plane::Xdp;

const HOSTS: u16 = 4;

/// An age that no task here reaches, however slow the machine is: an hour.
const OLD: Age = Age::of(Nanos::from_millis(3_600_000));

/// More pairs than any of the rings has cells.
const LAPS: usize = 1_000;

/// A small ring: its laps are short, so cells are reused while other passes still read them.
pub(crate) const SHAPE: Shape = Shape {
    epoch: 7,
    workers: HOSTS,
    clients: HOSTS,
    slices: 1,
    types: 1,
    tasks_per_slice: 16,
    tokens_per_slice: 32,
    replay_cells: 16,
    counters_start: u32::MAX - 7,
    servers: 0,
    program: TestedProgram::Rain,
    polls_ahead: 0,
};

fn at(worker: bool, index: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::from([10, 0, u8::from(worker), index as u8]), 100)
}

pub(crate) fn set_up(xdp: &mut Xdp) {
    let start = SHAPE.counters_start;
    let mut steps = vec![
        Step::SetSlice { slice: 0, open: true, limit: 16, retry_after_ns: 0, target_ns: 0, expected: 0 },
        Step::SetType { r#type: 0, slice: Some(0) },
    ];
    for index in 0..HOSTS {
        let (key, incarnation) = (5, u64::from(index));
        steps.push(Step::SetClient { client: index, key, at: at(false, index), incarnation, start });
        steps.push(Step::RaiseGeneration { worker: index, generation: 1 });
        steps.push(Step::ResetCounters { worker: index, start });
        steps.push(Step::SetWorker {
            worker: index,
            key,
            at: at(true, index),
            slice: 0,
            generation: 1,
            open: true,
        });
    }
    for op in steps.iter().filter_map(Step::table) {
        xdp.table(op).expect("root");
    }
}

/// What one worker and its client sent and received.
pub(crate) struct Pair<'a> {
    switch: &'a XdpSwitch,
    index: u16,
    issued: Serial,
    sequence: Serial,
    pub(crate) dispatched: Vec<Dispatch>,
    rejected: u32,
    answered: u32,
}

impl<'a> Pair<'a> {
    pub(crate) fn new(switch: &'a XdpSwitch, index: u16) -> Self {
        let start = Serial(SHAPE.counters_start);
        Self {
            switch,
            index,
            issued: start,
            sequence: start,
            dispatched: Vec::new(),
            rejected: 0,
            answered: 0,
        }
    }

    pub(crate) fn token(&mut self) {
        let token = Token {
            epoch: Epoch(SHAPE.epoch),
            key: Key(5),
            worker: WorkerId(self.index),
            generation: Generation(1),
            nonce: Nonce(0),
            issued: self.issued.plus(1),
            ..Token::default()
        };
        let answered = self.answered;
        self.send(at(true, self.index), &Packet::Token(token));
        // A token that was not granted is sent again.
        self.issued = self.issued.plus(u32::from(self.answered == answered));
    }

    pub(crate) fn task(&mut self) {
        let task = TaskId { incarnation: Incarnation(u64::from(self.index)), sequence: self.sequence };
        let submit = Submit {
            epoch: Epoch(SHAPE.epoch),
            key: Key(5),
            client: ClientId(self.index),
            task,
            attempt: Attempt(1),
            ..Submit::default()
        };
        self.sequence = self.sequence.plus(1);
        self.send(at(false, self.index), &Packet::Submit(submit));
    }

    fn send(&mut self, from: SocketAddr, packet: &Packet) {
        let mut bytes = [0; HEADER_BYTES];
        encode(packet, &[], &mut bytes).expect("legal");
        let frame = wrap(from, Xdp::at(from), &bytes).expect("of one family");
        let fate = self.switch.frame(&frame).expect("root");
        self.take(fate);
    }

    fn take(&mut self, fate: FrameAction) {
        let FrameAction::Sent(frame) = fate else { return assert_eq!(fate, FrameAction::Dropped) };
        match parse(unwrap(&frame).expect("right").bytes).expect("a packet").0 {
            Packet::Dispatch(dispatch) => self.dispatched.push(dispatch),
            Packet::Reject(_) => self.rejected += 1,
            Packet::Answer(_) => self.answered += 1,
            other => panic!("{other:?}"),
        }
    }

    /// Sends tasks and tokens in turn, in spells that fill the queue and empty it.
    fn work(mut self, rounds: u32) -> Self {
        for round in 0..rounds {
            let leans = (round / 37 + u32::from(self.index)) % 3;
            if round.wrapping_mul(2_654_435_761) >> 16 & 7 < 2 + 2 * leans {
                self.task();
            } else {
                self.token();
            }
            if self.index == 0 && round % 5 == 0 {
                let sweep = Sweep {
                    epoch: Epoch(SHAPE.epoch),
                    slice: SliceId(0),
                    of: SweepOf::Tokens,
                    left: 8,
                    carried: None,
                };
                let fate = self.switch.sweep(sweep).expect("root");
                self.take(fate);
            }
        }
        self
    }
}

/// `XDP_CROWD` sets a longer run.
#[test]
fn many_at_once_lose_and_double_nothing() {
    let Some(mut xdp) = Xdp::on_time(SHAPE) else { return };
    set_up(&mut xdp);
    let rounds = std::env::var("XDP_CROWD").ok().and_then(|text| text.parse().ok()).unwrap_or(30_000);
    let switch = &xdp.switch;
    let mut pairs: Vec<Pair<'_>> = thread::scope(|scope| {
        let work = |index| scope.spawn(move || Pair::new(switch, index).work(rounds));
        let threads: Vec<_> = (0..HOSTS).map(work).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    // The remaining tasks and tokens meet their counterparts.
    let SliceQueue { tasks, tokens } = switch.parked(SliceId(0));
    for _ in tasks {
        pairs[0].token();
    }
    for _ in tokens {
        pairs[0].task();
    }
    assert_eq!(switch.parked(SliceId(0)), SliceQueue::default());

    // Every cell was freed: the ring works for many more laps.
    let before = pairs[0].dispatched.len();
    for _ in 0..LAPS {
        pairs[0].token();
        pairs[0].task();
    }
    assert_eq!(pairs[0].dispatched.len() - before, LAPS, "a cell stays in use");

    let counts: BTreeMap<_, _> = switch.counts().expect("root").into_iter().collect();
    let dispatched: Vec<&Dispatch> = pairs.iter().flat_map(|pair| &pair.dispatched).collect();
    let tasks: BTreeSet<_> = dispatched.iter().map(|d| (d.task.incarnation, d.task.sequence.0)).collect();
    assert_eq!(tasks.len(), dispatched.len(), "a task left twice");
    let submitted: u32 =
        pairs.iter().map(|pair| pair.sequence.since(Serial(SHAPE.counters_start)) as u32).sum();
    let rejected: u32 = pairs.iter().map(|pair| pair.rejected).sum();
    assert_eq!(dispatched.len() as u32 + rejected, submitted, "a task was lost");
    for pair in &pairs {
        let sent = dispatched
            .iter()
            .filter(|d| d.worker.0 == pair.index)
            .map(|d| d.sent.since(Serial(SHAPE.counters_start)));
        let sent: BTreeSet<i32> = sent.collect();
        let granted = pair.issued.since(Serial(SHAPE.counters_start));
        assert!(sent.into_iter().eq(1..=granted), "worker {} was granted {granted}", pair.index);
    }
    let oldest = dispatched.iter().map(|dispatch| dispatch.age).max();
    assert!(oldest < Some(OLD), "a task that came while a token looked at the clock is {oldest:?} old");
    assert_eq!(counts["cell_broken"], 0);
    eprintln!(
        "{submitted} tasks, {rejected} rejected; {} went round, {} found the ring busy",
        counts["recirculated"], counts["ring_busy"]
    );
}
