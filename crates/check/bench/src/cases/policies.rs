//! The other programs' passes for one task in the best case, with a free worker: its SUBMIT, the TOKEN that
//! brings the task or reports its end, and recirculations.

use std::collections::VecDeque;
use std::hint::black_box;

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Config, Program, Verdict};
use sluice_wire::tables::Feed;
use sluice_wire::{Dispatch, Endpoint, Nanos, Packet, Reply};

use crate::hosts::{EPOCH, WORKERS, registrations, reply, submit, token};
use crate::scale::on_the_scale;

/// All workers are idle.
pub(super) fn idle(times: u32, policy: &str) {
    CountedProgram::new(policy).tasks(times);
}

/// Each worker has [`EACH`] tasks.
pub(super) fn busy(times: u32, policy: &str) {
    CountedProgram::new(policy).tasks_behind(times, EACH);
}

/// The address of all clients and workers.
pub(super) const SENDERS: Endpoint = Endpoint { ip: [0; 16], port: 1 };
pub(super) const RECEIVERS: Endpoint = Endpoint { ip: [0; 16], port: 2 };

/// How many tasks a worker has on average in the cases where all are busy.
pub(super) const EACH: usize = 4;

/// Fills a program's tables.
pub(super) fn register(program: &mut dyn Program, config: &Config) {
    for op in registrations(config, 1, SENDERS, RECEIVERS) {
        program.table(op);
    }
}

/// A program, and the form in which tasks come to it.
pub(super) struct CountedProgram {
    program: Box<dyn Program>,
    feed: Feed,
    comes: fn(u32) -> Packet,
    issued: [u32; WORKERS as usize],
    polled: u32,
    /// Whether passes are counted now.
    weighs: bool,
}

impl CountedProgram {
    fn new(choice: &str) -> Self {
        let choice = Choice::parse(choice).expect("a program of ours");
        let config = choice.traits().full_size(EPOCH);
        let mut program = choice.build(config);
        register(&mut *program, &config);
        let mut bench = Self::of(program, choice.traits().feed, |turn| Packet::Submit(submit(0, turn)));
        for _ in 0..choice.traits().quota {
            (0..WORKERS).for_each(|worker| bench.idle(worker));
        }
        bench
    }

    /// A program with filled tables; `comes` builds the packet of a task.
    pub(super) fn of(program: Box<dyn Program>, feed: Feed, comes: fn(u32) -> Packet) -> Self {
        Self { program, feed, comes, issued: [0; WORKERS as usize], polled: 0, weighs: true }
    }

    /// Makes a worker report that it is idle, before counting begins.
    fn idle(&mut self, worker: u16) {
        if matches!(self.feed, Feed::Tokens { .. }) {
            let arrival = self.token(worker);
            self.program.pass(Nanos(0), arrival);
        }
    }

    pub(super) fn tasks(&mut self, times: u32) {
        for turn in 0..times {
            let dispatch = self.task(turn);
            self.done(turn, &dispatch);
        }
    }

    /// Passes a task through the program until it leaves.
    pub(super) fn task(&mut self, turn: u32) -> Dispatch {
        let task = Arrival::Wire { from: SENDERS, packet: (self.comes)(turn), room: true };
        match self.feed {
            Feed::Polls { .. } => {
                assert_eq!(self.pass(turn, task), Verdict::Parked);
                self.polled += 1;
                let poll = self.token((self.polled % u32::from(WORKERS)) as u16);
                self.settled(turn, poll)
            }
            Feed::Tokens { .. } | Feed::Pushed { .. } => self.settled(turn, task),
        }
    }

    /// Passes tasks while each worker holds `each` earlier ones; after each task, the oldest one of all
    /// ends.
    pub(super) fn tasks_behind(&mut self, times: u32, each: usize) {
        let mut outstanding = VecDeque::new();
        let mut held = [0; WORKERS as usize];
        let fill = u32::from(WORKERS) * each as u32;
        for turn in 0..fill + times {
            self.weighs = turn >= fill;
            let dispatch = self.task(turn);
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

    /// Passes the packet that reports the end of a task.
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

    /// Passes the reply of a worker that holds `load` more tasks.
    fn replied(&mut self, turn: u32, dispatch: &Dispatch, load: u32) {
        let packet = Packet::Reply(Reply { client: dispatch.client, load, ..reply(dispatch.worker.0, turn) });
        let passed = self.pass(turn, Arrival::Wire { from: RECEIVERS, packet, room: true });
        assert!(matches!(passed, Verdict::Send { .. }), "{passed:?}");
    }

    /// Runs all passes until a DISPATCH leaves.
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

    pub(super) fn pass(&mut self, turn: u32, arrival: Arrival) -> Verdict {
        let now = Nanos(u64::from(turn));
        let arrival = black_box(&arrival);
        let verdict = if self.weighs {
            on_the_scale(|| self.program.pass(now, *arrival))
        } else {
            self.program.pass(now, *arrival)
        };
        black_box(self.program.mirrored());
        verdict
    }

    fn token(&mut self, worker: u16) -> Arrival {
        let issued = &mut self.issued[usize::from(worker)];
        *issued += 1;
        let packet = Packet::Token(token(worker, *issued));
        Arrival::Wire { from: RECEIVERS, packet, room: true }
    }
}
