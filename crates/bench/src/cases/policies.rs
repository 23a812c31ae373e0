//! The other programs' passes for one task, when nothing goes wrong and a worker is free: its SUBMIT, the
//! TOKEN that brings it or reports it done, and what goes round for it.

use std::collections::VecDeque;
use std::hint::black_box;

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Config, Program, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{Feed, TableOp};
use sluice_wire::{ClientId, Dispatch, Endpoint, Nanos, Packet, Reply, Submit, TaskJob};

use crate::hosts::{EPOCH, WORKERS, registrations, reply, submit, token};
use crate::scale::on_the_scale;

pub(super) fn r2p2(times: u32) {
    Bench::new("r2p2:2").tasks(times);
}

pub(super) fn racksched_by_replies(times: u32) {
    Bench::new("racksched:2").tasks(times);
}

pub(super) fn racksched_tracked(times: u32) {
    Bench::new("racksched:2,tracked").tasks(times);
}

pub(super) fn draconis(times: u32) {
    Bench::new("draconis").tasks(times);
}

pub(super) fn draconis_first_class(times: u32) {
    Bench::new("draconis:classes=4").tasks(times);
}

/// A poll looks at three empty queues before.
pub(super) fn draconis_last_class(times: u32) {
    Bench::new("draconis:classes=4").of(&Submit { priority: 3, ..Submit::default() }).tasks(times);
}

pub(super) fn draconis_labels(times: u32) {
    Bench::new("draconis:labels").tasks(times);
}

/// One task waits at the head that no polling worker serves.
pub(super) fn draconis_swaps(times: u32) {
    let mut bench = Bench::new("draconis:labels").of(&Submit { constraints: GPU.0, ..Submit::default() });
    bench.waits();
    bench.of(&Submit::default()).tasks(times);
}

pub(super) fn draconis_jobs(times: u32) {
    Bench::new("draconis:jobs=5").jobs(times, 5);
}

pub(super) fn pallas(times: u32) {
    Bench::new("pallas").tasks(times);
}

pub(super) fn horus_idle(times: u32) {
    Bench::new("horus").tasks(times);
}

pub(super) fn horus_busy(times: u32) {
    Bench::new("horus").tasks_behind(times, EACH);
}

pub(super) fn racksched_busy(times: u32) {
    Bench::new("racksched:2").tasks_behind(times, EACH);
}

/// Tasks that a worker has on the average where all are busy.
const EACH: usize = 4;

/// What the workers do not have, where anybody asks.
const GPU: Labels = Labels(1);

/// Workers that have no label serve what needs none; one that has it is said to be there, and does not poll.
fn of_one_kind(mut op: TableOp) -> TableOp {
    if let TableOp::SetSlice(_, row) = &mut op {
        let kinds = [Labels::NONE, GPU];
        row.serving = Serving::of(&kinds, &kinds).expect("two are told apart");
    }
    op
}

struct Bench {
    program: Box<dyn Program>,
    feed: Feed,
    client: Endpoint,
    worker: Endpoint,
    issued: [u32; WORKERS as usize],
    polled: u32,
    /// What tasks have besides their numbers: a class, and labels that they need.
    like: Submit,
    /// Whether passes are weighed.
    weighs: bool,
}

impl Bench {
    fn new(choice: &str) -> Self {
        let [client, worker] = [1, 2].map(|port| Endpoint { ip: [0; 16], port });
        let choice = Choice::parse(choice).expect("a program of ours");
        let mut program = choice.build(Config::full_of(EPOCH, choice.classes(), choice.kinds()));
        for op in registrations(1, client, worker) {
            program.table(of_one_kind(op));
        }
        let (feed, issued) = (choice.feed(), [0; WORKERS as usize]);
        let like = Submit::default();
        let mut bench = Self { program, feed, client, worker, issued, polled: 0, like, weighs: true };
        for _ in 0..choice.quota() {
            (0..WORKERS).for_each(|worker| bench.idle(worker));
        }
        bench
    }

    /// A worker reports before anything is weighed.
    fn idle(&mut self, worker: u16) {
        if matches!(self.feed, Feed::Tokens { .. }) {
            let arrival = self.token(worker);
            self.program.pass(Nanos(0), arrival);
        }
    }

    fn of(mut self, like: &Submit) -> Self {
        self.like = *like;
        self
    }

    fn task(&self, turn: u32) -> Submit {
        let Submit { priority, constraints, .. } = self.like;
        Submit { priority, constraints, ..submit(0, turn) }
    }

    /// A task comes that nobody takes, before anything is weighed.
    fn waits(&mut self) {
        let packet = Packet::Submit(Submit { client: ClientId(1), ..self.task(0) });
        let task = Arrival::Wire { from: self.client, packet, room: true };
        assert_eq!(self.program.pass(Nanos(0), task), Verdict::Parked);
    }

    /// Tasks that come so many in a submission, each of which a poll takes.
    fn jobs(&mut self, times: u32, each: u32) {
        for first in (0..times).step_by(each as usize) {
            let mut job = TaskJob::of(self.task(first)).expect("it is short");
            (1..each).for_each(|at| assert!(job.push(&self.task(first + at))));
            let mut arrival = Arrival::Wire { from: self.client, packet: Packet::Job(job), room: true };
            while let Verdict::Again(circulating) = self.pass(first, arrival) {
                arrival = Arrival::Round(circulating);
            }
            for turn in first..first + each {
                let poll = self.poll();
                self.settled(turn, poll);
            }
        }
    }

    fn poll(&mut self) -> Arrival {
        self.polled += 1;
        self.token((self.polled % u32::from(WORKERS)) as u16)
    }

    fn tasks(&mut self, times: u32) {
        for turn in 0..times {
            let packet = Packet::Submit(self.task(turn));
            let task = Arrival::Wire { from: self.client, packet, room: true };
            let dispatch = match self.feed {
                Feed::Polls { .. } => {
                    self.added(turn, task);
                    let poll = self.poll();
                    self.settled(turn, poll)
                }
                Feed::Tokens { .. } | Feed::Pushed { .. } => self.settled(turn, task),
            };
            self.done(turn, &dispatch);
        }
    }

    /// Each task finds so many a worker that came before it, and the oldest of all ends when it has come.
    fn tasks_behind(&mut self, times: u32, each: usize) {
        let mut outstanding = VecDeque::new();
        let mut held = [0; WORKERS as usize];
        let fill = u32::from(WORKERS) * each as u32;
        for turn in 0..fill + times {
            self.weighs = turn >= fill;
            let packet = Packet::Submit(submit(0, turn));
            let dispatch = self.settled(turn, Arrival::Wire { from: self.client, packet, room: true });
            held[usize::from(dispatch.worker.0)] += 1;
            outstanding.push_back(dispatch);
            if self.weighs
                && let Some(ended) = outstanding.pop_front()
            {
                let left = &mut held[usize::from(ended.worker.0)];
                *left -= 1;
                let left = *left;
                self.replied(turn, &ended, left);
            }
        }
    }

    /// What the switch hears when the task is done.
    fn done(&mut self, turn: u32, dispatch: &Dispatch) {
        match self.feed {
            Feed::Tokens { .. } => {
                let report = self.token(dispatch.worker.0);
                assert_eq!(self.pass(turn, report), Verdict::Parked);
            }
            Feed::Pushed { reports: true } => self.replied(turn, dispatch, 0),
            Feed::Polls { .. } | Feed::Pushed { reports: false } => {}
        }
    }

    /// A reply passes, of a worker that holds so many more.
    fn replied(&mut self, turn: u32, dispatch: &Dispatch, load: u32) {
        let packet = Packet::Reply(Reply { client: dispatch.client, load, ..reply(dispatch.worker.0, turn) });
        let passed = self.pass(turn, Arrival::Wire { from: self.worker, packet, room: true });
        assert!(matches!(passed, Verdict::Send { .. }), "{passed:?}");
    }

    /// A task that is added, and the fix that it sends if a poll has left a pointer ahead.
    fn added(&mut self, turn: u32, task: Arrival) {
        if let Verdict::Again(fix) = self.pass(turn, task) {
            assert!(matches!(self.pass(turn, Arrival::Round(fix)), Verdict::Drop(_)));
        }
    }

    /// All passes until a DISPATCH leaves.
    fn settled(&mut self, turn: u32, arrival: Arrival) -> Dispatch {
        let mut verdict = self.pass(turn, arrival);
        while let Verdict::Again(circulating) = verdict {
            verdict = self.pass(turn, Arrival::Round(circulating));
        }
        match verdict {
            Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => dispatch,
            other => panic!("no DISPATCH: {other:?}"),
        }
    }

    fn pass(&mut self, turn: u32, arrival: Arrival) -> Verdict {
        let now = Nanos(u64::from(turn));
        let arrival = black_box(&arrival);
        if !self.weighs {
            return self.program.pass(now, *arrival);
        }
        on_the_scale(|| self.program.pass(now, *arrival))
    }

    fn token(&mut self, worker: u16) -> Arrival {
        let issued = &mut self.issued[usize::from(worker)];
        *issued += 1;
        let packet = Packet::Token(token(worker, *issued));
        Arrival::Wire { from: self.worker, packet, room: true }
    }
}
