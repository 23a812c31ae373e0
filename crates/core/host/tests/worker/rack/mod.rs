//! A worker, a switch that knows only this worker, a controller and a network with faults, in virtual time.
//! Everything follows from the seed.
//!
//! This rack uses the simulator's time and dice and the real switch program, but neither its nodes nor its
//! fault runs, for three reasons:
//!
//! - A fault run draws its scenario from the seed. Here a test states a scene's rates, and a failing scene
//!   is shrunk until nothing can be left out.
//! - After each call this rack counts all packets under way, so that no token is missing while the load
//!   goes on. Fault runs check this only at rest, since a whole rack has more kinds of packets under way.
//! - The simulator's nodes ask their world for more than twenty things about a host's work, a switch's
//!   bytes and stored packets. They would replace some sixty lines of this rack: the interpretation of a
//!   worker's actions.

mod checks;
mod switch;

use sluice_events::dice::Dice;
use sluice_events::{Address, ClockId, EventEngine, WorldEvent};
use sluice_host::worker::{Action, EarlySettings, RemainingTime, Worker, WorkerSettings, WorkerStats};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{
    Attempt, Dispatch, Handle, Incarnation, Nanos, Packet, Payload, ReplyStatus, Serial, TaskId,
};

use checks::Checks;
use switch::Switch;

pub(crate) const RTT: Nanos = Nanos::from_micros(10);
/// The largest delay that a fault adds to a packet. The worker's estimate of a round trip grows with it.
const DELAY_MAX: Nanos = Nanos::from_micros(200);
const START: Serial = Serial(u32::MAX - 7);
const RPC_MAX: Nanos = Nanos::from_micros(400);
const LEAD_MAX: Nanos = Nanos::from_micros(15);
/// The address of all events except early tokens, which have an address of their own.
const RACK: Address = Address::node(0);
const EARLY: Address = Address::node(1);

/// The settings of a run. Rates are per mille of packets, or of submissions for events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) seed: u64,
    pub(crate) loss: u64,
    pub(crate) duplicates: u64,
    pub(crate) delays: u64,
    pub(crate) moves: u64,
    pub(crate) restarts: u64,
    pub(crate) crashes: u64,
    pub(crate) quota_changes: u64,
    pub(crate) repeats: u64,
    pub(crate) service_max: Nanos,
    pub(crate) between_tasks_max: Nanos,
    pub(crate) replies_max: usize,
    pub(crate) load_goes_on: bool,
    /// With early tokens: the largest error of estimates, in per mille.
    pub(crate) early: Option<u64>,
}

fn settings(scene: &Scene) -> WorkerSettings {
    WorkerSettings {
        first_rtt: Nanos::from_micros(30),
        probe_max_busy: Nanos::from_micros(500),
        probe_longest: Nanos::from_millis(3),
        retry_horizon: Nanos::from_millis(1_000),
        replies_max: scene.replies_max,
        held_max: 6,
        counters_start: START,
        early: scene.early.map(|_| EarlySettings { lead_max: LEAD_MAX }),
        ..WorkerSettings::default()
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    ToSwitch(Packet),
    ToWorker(Dispatch),
    AnswerToWorker(Packet),
    Granted {
        grant: WorkerRegistration,
        life: u32,
    },
    Reopened,
    Ran {
        slot: u64,
        started: Nanos,
        task: TaskId,
        life: u32,
    },
    Submission,
    /// The end of the time span that a test asked for.
    End,
}

/// The rack.
pub(crate) struct Rack {
    scene: Scene,
    now: Nanos,
    dice: Dice,
    engine: EventEngine<Event, ()>,
    ticks: ClockId,
    early: ClockId,
    /// Tokens on the way to the switch, and tasks on the way to the worker.
    tokens_under_way: usize,
    dispatches_under_way: usize,
    faulty: bool,
    loaded: bool,
    settings: WorkerSettings,
    worker: Worker,
    life: u32,
    switch: Switch,
    /// The last grant that the worker must have received.
    applied: WorkerRegistration,
    /// The largest quota of this generation: a lower one takes effect only as tokens are spent.
    quota_max: u8,
    quota: u8,
    tasks: Vec<(TaskId, Attempt)>,
    handles: u32,
    checks: Checks,
}

impl Rack {
    pub(crate) fn new(scene: Scene) -> Self {
        let mut engine = EventEngine::new();
        let mut rack = Self {
            scene,
            now: Nanos(1_000),
            dice: Dice::new(scene.seed, 0),
            ticks: engine.clock(RACK),
            early: engine.clock(EARLY),
            engine,
            tokens_under_way: 0,
            dispatches_under_way: 0,
            faulty: true,
            loaded: true,
            settings: settings(&scene),
            worker: Worker::new(),
            life: 0,
            switch: Switch::new(START),
            applied: WorkerRegistration::default(),
            quota_max: 0,
            quota: 4,
            tasks: Vec::new(),
            handles: 0,
            checks: Checks::default(),
        };
        rack.after(Nanos(0), Event::Granted { grant: rack.switch.grant(rack.quota), life: 0 });
        rack.after(Nanos(0), Event::Submission);
        rack
    }

    /// Runs with faults for a while, then without; then checks the promises.
    pub(crate) fn run(&mut self) {
        self.until(Nanos::from_millis(8));
        self.faulty = false;
        self.loaded = self.scene.load_goes_on;
        let settings = self.settings;
        let few_round_trips = (RTT + DELAY_MAX).times(10);
        let settled =
            settings.probe_longest + settings.probe_max_busy.times(4) + RPC_MAX.times(2) + few_round_trips;
        self.until(self.now + settled);
        self.nothing_is_in_limbo();
        self.loaded = false;
        self.until(self.now + Nanos::from_millis(2));
        self.all_tokens_are_parked();
        self.until(self.now + settings.retry_horizon.times(2));
        self.checks.all_handles_came_back(self.worker.stats().table);
    }

    /// The worker's state and counters.
    pub(crate) fn stats(&self) -> WorkerStats {
        self.worker.stats()
    }

    fn until(&mut self, end: Nanos) {
        self.engine.schedule(end, RACK, Event::End);
        while let Some((at, place, what)) = self.engine.take_next() {
            self.now = at;
            match what {
                WorldEvent::Scheduled(Event::End) => return,
                WorldEvent::Scheduled(event) => self.happen(event),
                _ if place == EARLY => {
                    self.call(Worker::early);
                    assert_eq!(self.worker.early_at(&self.settings), None, "one early token a task");
                }
                _ => {
                    self.call(Worker::tick);
                    let next = self.worker.deadline(&self.settings);
                    assert!(next.is_none_or(|next| next > self.now), "a tick leaves nothing due");
                }
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::ToSwitch(packet) => {
                self.tokens_under_way -= usize::from(matches!(packet, Packet::Token(_)));
                let sent = self.switch.packet(self.now, packet);
                self.send_to_worker(sent);
            }
            Event::ToWorker(dispatch) => self.deliver(dispatch),
            Event::AnswerToWorker(packet) => {
                self.call(|worker, now, settings, out| worker.packet(now, now, settings, &packet, out));
            }
            Event::Granted { grant, life } if life == self.life => self.granted(grant),
            Event::Granted { .. } | Event::End => {}
            Event::Reopened => {
                self.switch.reopen();
                let is_registered = self.applied != WorkerRegistration::default();
                let lost = self.faulty && is_registered && self.dice.chance(500);
                if !lost {
                    self.grant_later();
                }
            }
            Event::Ran { slot, started, task, life } => self.ran(slot, started, task, life),
            Event::Submission => self.submission(),
        }
    }

    fn deliver(&mut self, mut dispatch: Dispatch) {
        self.dispatches_under_way -= 1;
        self.handles += 1;
        dispatch.payload.handle = Handle(self.handles);
        self.checks.payload_made(dispatch.payload.handle);
        let packet = Packet::Dispatch(dispatch);
        self.call(|worker, now, settings, out| worker.packet(now, now, settings, &packet, out));
    }

    fn granted(&mut self, grant: WorkerRegistration) {
        let (life, held) = ((grant.epoch, grant.generation), (self.applied.epoch, self.applied.generation));
        if life >= held {
            self.quota_max = if life > held { grant.quota } else { self.quota_max.max(grant.quota) };
            self.applied = grant;
        }
        self.call(|worker, now, settings, out| worker.grant(now, settings, grant, out));
    }

    fn ran(&mut self, slot: u64, started: Nanos, task: TaskId, life: u32) {
        if life != self.life {
            return;
        }
        self.handles += 1;
        let handle = Handle(self.handles);
        self.checks.reply_made(task, handle);
        let reply = Payload { len: 100, inline: [0; 8], handle };
        let done = ReplyStatus::Done;
        self.call(|worker, now, settings, out| {
            worker.finished(now, settings, slot, started, done, reply, out);
        });
    }

    fn submission(&mut self) {
        if self.loaded {
            let wait = self.dice.below(self.scene.between_tasks_max.0);
            self.after(Nanos(wait), Event::Submission);
            self.disturb();
            let repeat = self.dice.chance(self.scene.repeats) && !self.tasks.is_empty();
            let (task, attempt) = if repeat { self.repeated_task() } else { self.new_task() };
            let sent = self.switch.submit(self.now, task, attempt);
            self.send_to_worker(sent);
        }
    }

    fn new_task(&mut self) -> (TaskId, Attempt) {
        let sequence = START.plus(self.tasks.len() as u32);
        let task = TaskId { incarnation: Incarnation(77), sequence };
        self.tasks.push((task, Attempt(1)));
        (task, Attempt(1))
    }

    fn repeated_task(&mut self) -> (TaskId, Attempt) {
        let newest = self.tasks.len() as u64;
        let chosen = newest - 1 - self.dice.below(newest.min(20));
        let (task, attempt) = &mut self.tasks[chosen as usize];
        attempt.0 += 1;
        (*task, *attempt)
    }

    /// An event outside of the network: a slice move, a switch restart, a crash, or another quota.
    fn disturb(&mut self) {
        if !self.faulty || !self.switch.is_open() {
            return;
        }
        if self.dice.chance(self.scene.moves) {
            self.change_generation();
        } else if self.dice.chance(self.scene.restarts) {
            self.switch.restart();
        } else if self.dice.chance(self.scene.crashes) {
            self.worker = Worker::new();
            self.life += 1;
            self.applied = WorkerRegistration::default();
            self.checks.new_life();
            self.change_generation();
        } else if self.dice.chance(self.scene.quota_changes) {
            self.quota = 1 + self.dice.below(8) as u8;
            self.grant_later();
        }
    }

    fn change_generation(&mut self) {
        self.switch.close();
        let wait = self.dice.below(Nanos::from_micros(300).0);
        self.after(Nanos(wait), Event::Reopened);
    }

    fn grant_later(&mut self) {
        let grant = self.switch.grant(self.quota);
        let wait = self.dice.below(RPC_MAX.0);
        self.after(Nanos(wait), Event::Granted { grant, life: self.life });
    }

    /// Calls the worker, carries out its actions, and checks the invariants.
    fn call(&mut self, call: impl FnOnce(&mut Worker, Nanos, &WorkerSettings, &mut Vec<Action>)) {
        let mut out = Vec::new();
        call(&mut self.worker, self.now, &self.settings, &mut out);
        let stats = self.worker.stats();
        self.checks.took(self.now, &self.settings, self.applied, &out, &stats);
        for action in out {
            match action {
                Action::ToSwitch(packet) => self.send(Event::ToSwitch(packet)),
                Action::Run { slot, task, .. } => {
                    let service = Nanos(self.dice.below(self.scene.service_max.0));
                    let (started, life) = (self.now, self.life);
                    self.after(service, Event::Ran { slot, started, task, life });
                    self.expect(slot, service);
                }
                Action::Renew => {
                    self.switch.register_again();
                    if self.switch.is_open() {
                        self.grant_later();
                    }
                }
                Action::Need { .. }
                | Action::Parts { .. }
                | Action::Place { .. }
                | Action::Check { .. }
                | Action::Reply { .. }
                | Action::Report(_)
                | Action::Release(_)
                | Action::Forget(_) => {}
            }
        }
        self.wind();
    }

    /// Sets the timers to the worker's deadlines.
    fn wind(&mut self) {
        let due = |at: Option<Nanos>| at.map_or(Nanos(u64::MAX), |at| at.max(self.now));
        self.engine.set(self.ticks, due(self.worker.deadline(&self.settings)));
        self.engine.set(self.early, due(self.worker.early_at(&self.settings)));
    }

    /// The service states its remaining time, with an error.
    fn expect(&mut self, slot: u64, service: Nanos) {
        let Some(error) = self.scene.early else { return };
        let left = Nanos(service.0 * (1_000 - error + self.dice.below(2 * error + 1)) / 1_000);
        self.checks.may_be_early_from(self.now + left - LEAD_MAX);
        self.worker.expect(self.now, slot, RemainingTime::Left(left));
    }

    fn send_to_worker(&mut self, packet: Option<Packet>) {
        match packet {
            Some(Packet::Dispatch(dispatch)) => self.send(Event::ToWorker(dispatch)),
            Some(packet) => self.send(Event::AnswerToWorker(packet)),
            None => {}
        }
    }

    /// Sends a packet, which travels for half a round trip and may meet a fault.
    fn send(&mut self, packet: Event) {
        let way = Nanos(RTT.0 / 2);
        if !self.faulty {
            self.go(way, packet);
            return;
        }
        let copies = if self.dice.chance(self.scene.loss) {
            0
        } else {
            1 + u64::from(self.dice.chance(self.scene.duplicates))
        };
        for _ in 0..copies {
            let late = if self.dice.chance(self.scene.delays) { self.dice.below(DELAY_MAX.0) } else { 0 };
            self.go(way + Nanos(late), packet);
        }
    }

    fn go(&mut self, way: Nanos, packet: Event) {
        self.tokens_under_way += usize::from(matches!(packet, Event::ToSwitch(Packet::Token(_))));
        self.dispatches_under_way += usize::from(matches!(packet, Event::ToWorker(_)));
        self.after(way, packet);
    }

    fn after(&mut self, wait: Nanos, event: Event) {
        self.engine.schedule(self.now + wait, RACK, event);
    }

    /// Checks that every issued token is parked, on its way, or became a task that is held or on its way.
    fn nothing_is_in_limbo(&self) {
        let stats = self.worker.stats();
        let under_way = self.tokens_under_way + self.dispatches_under_way;
        let found = self.switch.parked() as usize + under_way + stats.held as usize;
        let promised = stats.tokens_out + stats.held;
        assert!(self.fills_the_quota(promised), "promise 4: {stats:?}");
        assert!(found >= promised as usize, "promise 4: only {found} tokens exist, {stats:?}");
    }

    fn all_tokens_are_parked(&self) {
        let stats = self.worker.stats();
        assert!(self.fills_the_quota(stats.tokens_out), "promise 4: {stats:?}");
        assert_eq!((self.switch.parked(), stats.held), (stats.tokens_out, 0), "promise 4: {stats:?}");
        assert_eq!(self.switch.life(), (self.applied.epoch, self.applied.generation));
    }

    fn fills_the_quota(&self, promised: u32) -> bool {
        let early = u32::from(self.scene.early.is_some() && self.worker.stats().held > 0);
        (self.applied.quota.into()..=u32::from(self.quota_max) + early).contains(&promised)
    }
}
