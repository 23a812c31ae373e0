//! A controller, a switch that answers late but in order, and hosts that call: all in virtual time.
//!
//! This is not a scenario over the simulator's nodes. There, steps are carried out when their time has
//! come, and a seed decides which host dies when. Here a test chooses the last step of the controller that
//! is carried out, or answered, before something dies, so that each place in a change has its test. Hosts
//! are calls without machines, because only their calls matter here. The fault runs have the same
//! controller with machines and packets.

#![allow(dead_code, reason = "each test file uses its own part of this")]

pub(crate) mod switch;
mod witness;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sluice_control::{
    Action, Answer, CallId, ClientGrant, ClientHello, Controller, Event, Note, Plan, RingNeed, RingOffer,
    ServerGrant, ServerHello, SlicePlan, WorkerGrant, WorkerHello,
};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{RingRow, TableAnswer, TableOp, WorkerRow};
use sluice_wire::tallies::SliceOthers;
use sluice_wire::{Endpoint, Incarnation, Nanos, Psn, Qpn, Rkey, Serial, TaskType, WorkerId};

use switch::{Switch, config};

pub(crate) const RENEW: Nanos = Nanos::from_millis(250);
pub(crate) const LEASE: Nanos = Nanos::from_millis(1_000);
pub(crate) const GPU: Labels = Labels(1);
pub(crate) const TRAIN: TaskType = TaskType(3);

pub(crate) struct Rack {
    pub(crate) now: Nanos,
    pub(crate) plan: Plan,
    pub(crate) controller: Controller,
    pub(crate) switch: Switch,
    pub(crate) connected: bool,
    pub(crate) inbox: VecDeque<TableOp>,
    pub(crate) outbox: VecDeque<TableAnswer>,
    pub(crate) open: BTreeSet<CallId>,
    pub(crate) answers: BTreeMap<CallId, Answer>,
    pub(crate) notes: Vec<Note>,
    pub(crate) depths: Vec<(WorkerId, u8)>,
    pub(crate) told: BTreeMap<String, Vec<SliceOthers>>,
    pub(crate) ops: usize,
    calls: u64,
    lives: u64,
}

pub(crate) fn plan() -> Plan {
    let slice = |name: &str, types: &[u16]| SlicePlan {
        name: name.to_string(),
        types: types.iter().map(|t| TaskType(*t)).collect(),
        ..SlicePlan::default()
    };
    let mut plan = Plan::new(address(1), vec![slice("get", &[1]), slice("scan", &[2])]);
    plan.counters_start = Serial(u32::MAX - 8);
    plan.gather_for = Nanos(0);
    plan
}

/// Tasks of type 3 need a GPU, which some workers of the first slice have.
pub(crate) fn with_gpus() -> Plan {
    let mut plan = plan();
    plan.labels = vec!["gpu".to_owned(), "ssd".to_owned()];
    plan.needs = vec![(TRAIN, GPU)];
    plan.slices[0].types.push(TRAIN);
    plan.slices[0].serving = Serving::of(&[Labels::NONE, GPU], &[Labels::NONE, GPU]).unwrap();
    plan
}

pub(crate) fn address(port: u16) -> Endpoint {
    Endpoint { ip: [9; 16], port }
}

pub(crate) fn worker(name: &str, life: u64) -> WorkerHello {
    WorkerHello {
        name: name.to_string(),
        life,
        at: address(1_000 + life as u16),
        slice: "get".to_string(),
        types: vec![TaskType(1), TaskType(2), TaskType(3)],
        labels: Vec::new(),
        quota: 2,
        capacity: 0,
        recent: sluice_control::RecentWork::default(),
        refused_late: 0,
        server: String::new(),
        rejoins: 0,
        workers: 0,
        held: None,
    }
}

pub(crate) fn server(name: &str, life: u64) -> ServerHello {
    ServerHello {
        name: name.to_string(),
        life,
        at: address(4_791),
        qpn: Qpn(0x11 + life as u32),
        first: Psn::new(5),
        mtu: 2_048,
        reliable: false,
        icrc: true,
        rings: Vec::new(),
    }
}

/// This server with the rings that it was asked for.
pub(crate) fn with_rings(hello: &ServerHello, grant: &ServerGrant) -> ServerHello {
    let ring = |need: &RingNeed| RingOffer {
        slice: need.slice,
        row: RingRow {
            rkey: Rkey(70 + hello.life as u32),
            address: u64::from(need.slice.0) << 32,
            slots: need.slots,
            slot_bytes: need.slot_bytes,
        },
    };
    ServerHello { rings: grant.rings.iter().map(ring).collect(), ..hello.clone() }
}

pub(crate) fn client(name: &str, life: u64) -> ClientHello {
    let at = address(2_000 + life as u16);
    ClientHello { name: name.to_string(), incarnation: Incarnation(life), at, floor: Serial(7), held: None }
}

impl Rack {
    pub(crate) fn new(workers: u16, tokens_per_slice: u32) -> Self {
        Self::of(plan(), Switch::new("rain", config(workers, tokens_per_slice)))
    }

    pub(crate) fn of(plan: Plan, switch: Switch) -> Self {
        Self {
            now: Nanos::from_millis(10_000),
            controller: Controller::new(plan.clone(), [7; 32]).expect("the test's plan is sound"),
            plan,
            switch,
            connected: false,
            inbox: VecDeque::new(),
            outbox: VecDeque::new(),
            open: BTreeSet::new(),
            answers: BTreeMap::new(),
            notes: Vec::new(),
            depths: Vec::new(),
            told: BTreeMap::new(),
            ops: 0,
            calls: 0,
            lives: 0,
        }
    }

    /// A rack whose controller has read an empty switch and seen that no task waits in it.
    pub(crate) fn up() -> Self {
        let mut rack = Self::new(4, 64);
        rack.connect();
        rack.run(Nanos::from_millis(10));
        rack
    }

    /// As [`Self::up`], with its own plan and a switch that tells kinds of workers apart.
    pub(crate) fn up_with(plan: Plan) -> Self {
        let mut rack = Self::of(plan, Switch::new("rain:labels", config(4, 64)));
        rack.connect();
        rack.run(Nanos::from_millis(10));
        rack
    }

    pub(crate) fn feed(&mut self, event: Event) {
        let mut out = Vec::new();
        self.controller.event(self.now, event, &mut out);
        self.absorb(out);
    }

    pub(crate) fn call(&mut self, event: impl FnOnce(CallId) -> Event) -> CallId {
        self.calls += 1;
        let call = CallId(self.calls);
        self.open.insert(call);
        self.feed(event(call));
        call
    }

    pub(crate) fn new_life(&mut self) -> u64 {
        self.lives += 1;
        self.lives
    }

    fn absorb(&mut self, out: Vec<Action>) {
        for action in out {
            match action {
                Action::Table(op) => {
                    assert!(self.connected, "an operation for a switch that is down: {op:?}");
                    self.ops += 1;
                    self.inbox.push_back(op);
                }
                Action::Answer { call, answer } => {
                    assert!(self.open.remove(&call), "{call:?} is answered twice");
                    self.answers.insert(call, answer);
                }
                Action::SetDepth { worker, depth } => self.depths.push((worker, depth)),
                Action::TellAgent { server, others } => _ = self.told.insert(server, others),
                Action::Note(note) => {
                    assert!(!matches!(note, Note::SwitchConfused), "the answers came in order");
                    self.notes.push(note);
                }
            }
        }
    }

    pub(crate) fn execute_one(&mut self) -> bool {
        let Some(op) = self.inbox.pop_front() else { return false };
        let answer = self.switch.asked(self.controller.term(), op);
        self.outbox.push_back(answer);
        true
    }

    pub(crate) fn deliver_one(&mut self) -> bool {
        let Some(answer) = self.outbox.pop_front() else { return false };
        self.feed(Event::TableAnswered(answer));
        true
    }

    /// Lets the switch carry out and answer all operations that it was asked.
    pub(crate) fn flush(&mut self) {
        while self.execute_one() || self.deliver_one() {}
    }

    /// Lets time pass, with the switch answering at once.
    pub(crate) fn run(&mut self, span: Nanos) {
        let end = self.now + span;
        loop {
            self.flush();
            self.end_sweeps();
            let Some(due) = self.controller.deadline().filter(|due| *due <= end) else { break };
            self.tick(due);
        }
        self.now = end;
    }

    /// Sweeps recirculate within microseconds, so they end before time passes.
    pub(crate) fn end_sweeps(&mut self) {
        while self.switch.sweep_once() {}
    }

    /// Lets time pass while the switch answers nothing.
    pub(crate) fn pass(&mut self, span: Nanos) {
        let end = self.now + span;
        self.end_sweeps();
        while let Some(due) = self.controller.deadline().filter(|due| *due <= end) {
            self.tick(due);
        }
        self.now = end;
    }

    /// Checks the rule of the clock: a tick leaves no deadline in the past.
    pub(crate) fn tick(&mut self, due: Nanos) {
        self.now = self.now.max(due);
        let mut out = Vec::new();
        self.controller.tick(self.now, &mut out);
        let next = self.controller.deadline();
        assert!(next.is_none_or(|next| next > self.now), "at {} a tick leaves {next:?} due", self.now.0);
        self.absorb(out);
    }

    pub(crate) fn connect(&mut self) {
        self.connected = true;
        self.feed(Event::SwitchUp(self.switch.shape()));
    }

    /// Breaks the link after `done` more operations were carried out; no answer arrives.
    pub(crate) fn disconnect(&mut self, done: usize) {
        for _ in 0..done {
            self.execute_one();
        }
        self.inbox.clear();
        self.outbox.clear();
        self.connected = false;
        self.feed(Event::SwitchDown);
    }

    pub(crate) fn restart_switch(&mut self) {
        self.disconnect(0);
        self.switch.restart();
        self.connect();
    }

    /// The controller dies with its open calls; another takes its place.
    pub(crate) fn restart_controller(&mut self, done: usize) {
        for _ in 0..done {
            self.execute_one();
        }
        self.inbox.clear();
        self.outbox.clear();
        self.open.clear();
        self.calls += 1;
        self.controller =
            Controller::new(self.plan.clone(), [self.calls as u8; 32]).expect("the test's plan is sound");
        self.connect();
    }

    pub(crate) fn hello(&mut self, hello: &WorkerHello) -> CallId {
        let hello = hello.clone();
        self.call(|call| Event::WorkerHello { call, hello })
    }

    pub(crate) fn leave(&mut self, hello: &WorkerHello) -> CallId {
        let (name, life) = (hello.name.clone(), hello.life);
        self.call(|call| Event::WorkerLeave { call, name, life })
    }

    pub(crate) fn move_to(&mut self, name: &str, slice: &str) -> CallId {
        let (name, slice) = (name.to_string(), slice.to_string());
        self.call(|call| Event::MoveWorker { call, name, slice })
    }

    pub(crate) fn server_hello(&mut self, hello: &ServerHello) -> CallId {
        let hello = hello.clone();
        self.call(|call| Event::ServerHello { call, hello })
    }

    pub(crate) fn client_hello(&mut self, hello: &ClientHello) -> CallId {
        let hello = hello.clone();
        self.call(|call| Event::ClientHello { call, hello })
    }

    /// Calls, lets the switch answer, and returns the answer.
    pub(crate) fn ask(&mut self, hello: &WorkerHello) -> Answer {
        let call = self.hello(hello);
        self.flush();
        self.answers[&call].clone()
    }

    pub(crate) fn ask_client(&mut self, hello: &ClientHello) -> Answer {
        let call = self.client_hello(hello);
        self.flush();
        self.answers[&call].clone()
    }

    pub(crate) fn join(&mut self, hello: &WorkerHello) -> WorkerGrant {
        match self.ask(hello) {
            Answer::Worker(grant) => grant,
            other => panic!("{} was not granted: {other:?}", hello.name),
        }
    }

    pub(crate) fn join_client(&mut self, hello: &ClientHello) -> ClientGrant {
        match self.ask_client(hello) {
            Answer::Client(grant) => *grant,
            other => panic!("{} was not granted: {other:?}", hello.name),
        }
    }

    /// The hosts renew for a while.
    pub(crate) fn renew_for(&mut self, span: Nanos, workers: &[&WorkerHello]) {
        let end = self.now + span;
        while self.now < end {
            for hello in workers {
                self.ask(hello);
            }
            self.run(RENEW.min(end.since(self.now)));
        }
    }

    pub(crate) fn park(&mut self, grant: &WorkerGrant, tokens: u8) {
        for _ in 0..tokens {
            self.switch.token(grant.worker, grant.generation, tokens);
        }
    }

    pub(crate) fn row(&mut self, worker: WorkerId) -> WorkerRow {
        self.switch.worker(worker).row.expect("the worker has a row")
    }
}
