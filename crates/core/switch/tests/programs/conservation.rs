//! Each task leaves the switch once, in whatever order packets arrive and however long recirculation takes.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;
use sluice_switch::registry::Choice;
use sluice_switch::{Cargo, Circulating, Refusal, Verdict};
use sluice_wire::tables::{SliceRow, TableOp};
use sluice_wire::{Budget, Nanos, Packet, Reply, Serial, Sweep, SweepOf, WorkerId};

use crate::rack::{CLIENT, EPOCH, REPLAY_CELLS, Rack, SLICE, at, row};

const CHOICES: [&str; 22] = [
    "rain:2",
    "rain:2,target=20us",
    "rain:2,classes=4,target=20us",
    "rain:2,labels",
    "r2p2:1",
    "r2p2:3,sample=3,step=1",
    "r2p2:9",
    "server:2",
    "racksched:2",
    "racksched:3,tracked",
    "draconis",
    "draconis:poll=1us",
    "draconis:classes=4",
    "draconis:labels,swaps=3",
    "draconis:jobs=5",
    "draconis:jobs=2",
    "draconis:classes=4,jobs=5",
    "draconis:labels,swaps=3,jobs=4",
    "pallas",
    "pallas:weights=3/1",
    "horus",
    "horus:resubmit=writes,idle=uncounted",
];
const LIMIT: u32 = 5;
const WORKERS: u16 = 5;

#[derive(Clone, Copy, Debug)]
enum Step {
    Task,
    /// A task that is worth beginning for a few passes only.
    Hasty,
    /// So many tasks in one submission, or as many as it may hold.
    Job(u8),
    Token(u16),
    Reply(u16),
    /// The packet that has recirculated for longest passes next, or the one that left last.
    Round {
        newest: bool,
    },
    Reopen(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Task),
        3 => Just(Step::Hasty),
        3 => (2..=5_u8).prop_map(Step::Job),
        6 => (0..WORKERS).prop_map(Step::Token),
        2 => (0..WORKERS).prop_map(Step::Reply),
        6 => any::<bool>().prop_map(|newest| Step::Round { newest }),
        1 => (0..WORKERS).prop_map(Step::Reopen),
    ]
}

struct Model {
    rack: Rack,
    going: VecDeque<Circulating>,
    /// For each task that came, whether it is still in the switch.
    inside: BTreeMap<u32, bool>,
    generations: [u32; WORKERS as usize],
    pushes: bool,
    /// The most tasks in a submission.
    jobs: u8,
}

impl Model {
    fn new(choice: &str) -> Self {
        Self {
            rack: Rack::of(choice, WORKERS, LIMIT),
            going: VecDeque::new(),
            inside: BTreeMap::new(),
            generations: [1; WORKERS as usize],
            jobs: Choice::parse(choice).unwrap().traits().jobs,
            pushes: ["racksched", "pallas", "horus"].iter().any(|name| choice.starts_with(name)),
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Task if self.may_number(1) => {
                let task = self.rack.next();
                self.inside.insert(task.0, true);
                let verdict = self.rack.task();
                self.verdict(verdict);
            }
            Step::Hasty if self.may_number(1) => {
                self.inside.insert(self.rack.next().0, true);
                let verdict = self.rack.task_within(Budget(10));
                self.verdict(verdict);
            }
            Step::Job(tasks) if self.jobs > 1 && self.may_number(tasks) => {
                let (first, tasks) = (self.rack.next(), tasks.min(self.jobs));
                self.inside.extend((0..tasks).map(|at| (first.plus(at.into()).0, true)));
                let verdict = self.rack.job(tasks);
                self.verdict(verdict);
            }
            Step::Token(worker) if !self.pushes => {
                let verdict = self.rack.token(worker);
                self.verdict(verdict);
            }
            Step::Reply(worker) => {
                let (worker_id, load) = (WorkerId(worker), 1);
                let reply =
                    Reply { epoch: EPOCH, worker: worker_id, client: CLIENT, load, ..Reply::default() };
                let verdict = self.rack.wire(at(100 + worker), Packet::Reply(reply));
                self.verdict(verdict);
            }
            Step::Round { newest } => {
                let next = if newest { self.going.pop_back() } else { self.going.pop_front() };
                if let Some(circulating) = next {
                    let verdict = self.rack.once_more(circulating);
                    self.verdict(verdict);
                }
            }
            Step::Reopen(worker) => {
                let generation = &mut self.generations[usize::from(worker)];
                let closed = Some(row(worker, *generation, false));
                *generation += 1;
                let generation = *generation;
                self.rack.program.table(TableOp::SetWorker(WorkerId(worker), closed));
                self.rack.admit(worker, generation);
            }
            Step::Task | Step::Hasty | Step::Token(_) | Step::Job(_) => {}
        }
        self.check();
    }

    /// Whether no new number uses the replay cell of a task that has not left: clients guarantee that.
    fn may_number(&self, tasks: u8) -> bool {
        let end = self.rack.next().plus(tasks.into());
        let inside = self.inside.iter().filter(|(_, inside)| **inside);
        inside.into_iter().all(|(task, _)| end.since(Serial(*task)) <= REPLAY_CELLS as i32)
    }

    fn verdict(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => self.left(dispatch.task.sequence),
            Verdict::Send { packet: Packet::Reject(reject), .. }
            | Verdict::Swept { packet: Packet::Reject(reject), .. } => {
                (0..=reject.behind.into()).for_each(|at| self.left(reject.task.sequence.plus(at)));
            }
            Verdict::Again(circulating) => self.going.push_back(circulating),
            Verdict::Drop(Refusal::Replayed) => panic!("a new task is no replay"),
            Verdict::Send { .. }
            | Verdict::Swept { .. }
            | Verdict::Parked
            | Verdict::Ahead(_)
            | Verdict::Drop(_) => {}
            Verdict::Late { reject, token, .. } => {
                self.left(reject.task.sequence);
                self.going.push_back(Circulating::note(token));
            }
        }
    }

    fn left(&mut self, task: Serial) {
        assert_eq!(self.inside.insert(task.0, false), Some(true), "task {task} leaves twice");
    }

    /// The switch's own counts equal the tasks that came less those that left.
    fn check(&self) {
        let inside = self.inside.values().filter(|inside| **inside).count() as u32;
        let carried = self.going.iter().map(|going| tasks_in(&going.cargo)).sum::<u32>();
        assert!(self.rack.program.waiting() + carried >= inside, "a task is lost");
        assert!(inside - carried <= LIMIT, "more wait than may");
    }

    /// In the end every task is served.
    fn drain(&mut self) {
        for turn in 0..2_000_u32 {
            (0..6).for_each(|_| self.take(Step::Round { newest: false }));
            if self.inside.values().all(|inside| !inside) && self.going.is_empty() {
                return;
            }
            self.take(Step::Token((turn % u32::from(WORKERS)) as u16));
        }
        let left: Vec<_> = self.inside.iter().filter(|(_, inside)| **inside).collect();
        panic!("tasks stay in the switch: {left:?}");
    }

    /// A closed slice without workers gives every task back.
    fn close(&mut self) {
        let closed = SliceRow { open: false, limit: LIMIT, retry_after: Nanos(500), ..SliceRow::default() };
        self.rack.program.table(TableOp::SetSlice(SLICE, closed));
        let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tasks, left: 1, carried: None };
        for _ in 0..200 {
            self.take(Step::Round { newest: false });
            let verdict = self.rack.control(sweep);
            self.verdict(verdict);
        }
        assert!(self.inside.values().all(|inside| !inside), "{:?}", self.inside);
        assert!(self.rack.state().balance >= 0);
    }
}

/// How many tasks of a packet have not been added yet, or are carried past others.
fn tasks_in(cargo: &Cargo) -> u32 {
    match cargo {
        Cargo::Task(_) => 1,
        Cargo::Job(job) => job.tasks().into(),
        Cargo::Sweep(_) | Cargo::Note => 0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn each_task_leaves_once_and_all_leave_in_the_end(
        choice in prop::sample::select(&CHOICES[..]),
        steps in prop::collection::vec(step(), 1..120),
        closes in any::<bool>(),
    ) {
        let mut model = Model::new(choice);
        for step in steps {
            model.take(step);
        }
        if closes { model.close() } else { model.drain() }
    }
}
