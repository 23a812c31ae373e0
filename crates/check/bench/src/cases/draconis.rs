//! Draconis' policies: a task, and the poll that takes a task. Some tasks always wait, so each poll finds
//! one. Tasks have the four classes in turn, every fourth needs a label that every second worker has, and a
//! job has five tasks. A policy that uses none of these takes tasks in their order.

use std::hint::black_box;

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Program, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::{Endpoint, JOB_TASKS_MAX, Nanos, Packet, Submit, TaskJob};

use crate::hosts::{EPOCH, GPU, WORKERS, registrations, served, submit, token};
use crate::scale::on_the_scale;

pub(super) fn tasks(times: u32, policy: &str) {
    Bench::new(policy).tasks(times);
}

/// How many tasks always wait: enough that each worker finds a suitable one, and whole jobs.
const STANDING: u32 = 30;
/// How many classes the tasks have.
const CLASSES: u32 = 4;

struct Bench {
    program: Box<dyn Program>,
    client: Endpoint,
    worker: Endpoint,
    jobs: u32,
    submitted: u32,
    polled: u32,
}

impl Bench {
    fn new(asked: &str) -> Self {
        let choice = Choice::parse(asked).expect("a program of ours");
        let config = choice.traits().full_size(EPOCH);
        let [client, worker] = [1, 2].map(|port| Endpoint { ip: [0; 16], port });
        let mut program = choice.build(config);
        let kinds = [Labels::NONE, GPU];
        let serving = match choice.traits().kinds {
            1 => Serving::default(),
            _ => Serving::of(&kinds, &kinds).expect("two are told apart"),
        };
        for op in served(registrations(&config, 1, client, worker), &serving) {
            program.table(op);
        }
        let jobs = choice.traits().jobs.into();
        Self { program, client, worker, jobs, submitted: 0, polled: 0 }
    }

    fn tasks(&mut self, times: u32) {
        while self.submitted < STANDING {
            let packet = self.submission();
            self.settled(packet, false);
        }
        for _ in 0..times / self.jobs {
            let packet = self.submission();
            self.settled(packet, true);
            (0..self.jobs).for_each(|_| self.poll());
        }
    }

    fn poll(&mut self) {
        let poll = token((self.polled % u32::from(WORKERS)) as u16, self.polled / u32::from(WORKERS) + 1);
        self.polled += 1;
        let poll = Arrival::Wire { from: self.worker, packet: Packet::Token(poll), room: true };
        let sent = self.settled(poll, true);
        assert!(matches!(sent, Verdict::Send { packet: Packet::Dispatch(_), .. }), "{sent:?}");
    }

    /// The packet of the next task; of the next job if jobs have several tasks.
    fn submission(&mut self) -> Arrival {
        let first = self.submitted;
        self.submitted += self.jobs;
        let packet = match self.jobs {
            1 => Packet::Submit(kind_of(submit(0, first), first)),
            jobs => Packet::Job(job(first, jobs)),
        };
        Arrival::Wire { from: self.client, packet, room: true }
    }

    /// Runs all passes until a packet leaves or none recirculates any more.
    fn settled(&mut self, mut arrival: Arrival, weighs: bool) -> Verdict {
        let now = Nanos(self.polled.into());
        loop {
            let at = black_box(&arrival);
            let verdict = if weighs {
                on_the_scale(|| self.program.pass(now, *at))
            } else {
                self.program.pass(now, *at)
            };
            match verdict {
                Verdict::Again(circulating) => arrival = Arrival::Round(circulating),
                settled => return settled,
            }
        }
    }
}

fn kind_of(task: Submit, turn: u32) -> Submit {
    let constraints = if turn.is_multiple_of(CLASSES) { GPU.0 } else { Labels::NONE.0 };
    Submit { priority: (turn % CLASSES) as u8, constraints, ..task }
}

/// A job of equal tasks.
fn job(first: u32, tasks: u32) -> TaskJob {
    assert!(tasks as usize <= JOB_TASKS_MAX);
    let alike = kind_of(submit(0, first), first / tasks);
    let mut job = TaskJob::of(alike).expect("it is short");
    for turn in first + 1..first + tasks {
        assert!(job.push(&Submit { task: submit(0, turn).task, ..alike }));
    }
    job
}
