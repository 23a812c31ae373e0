//! The switch's process: its program and life, and what goes round in it.

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Circulating, Config, Program, Verdict};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Epoch, Handle, Nanos, Packet, Serial, TaskId, Term};

use super::bytes::Bytes;
use super::gate::Gate;
use super::hosts::SWITCH;
use super::labels::Fairness;
use super::order::Precedence;
use super::rack::{Event, Rack};
use super::scenario::{FAULTS_END, SLICES, Scenario, TYPES};
use super::servers::Servers;
use super::story::{self, Who};
use crate::world::Address;

/// Where all counters start: eight below the wrap.
pub(super) const START: Serial = Serial(u32::MAX - 7);
/// The longest that a pass is on its way to the queue, while passes on other CPUs get there.
const PASS: Nanos = Nanos::from_micros(20);

/// A switch that may be down.
#[derive(Debug)]
pub(super) struct SwitchNode {
    pub(super) program: Option<Box<dyn Program>>,
    pub(super) life: u32,
    /// Its thread stands still until then.
    pub(super) stalled_until: Nanos,
    /// The most tasks that each slice's row has allowed to wait.
    pub(super) limits: [u32; SLICES],
    /// Whose tokens may come in.
    pub(super) gate: Gate,
    /// Who should go first.
    pub(super) order: Precedence,
    /// The same where not all serve all.
    pub(super) fairness: Fairness,
    /// What came meanwhile, and when.
    pub(super) unread: Vec<(Nanos, Event)>,
    /// The large payloads that wait in its slab.
    pub(super) slab: Bytes,
    choice: Choice,
    config: Config,
}

impl SwitchNode {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let config = config(scenario);
        Self {
            program: Some(in_life(1, &scenario.program, config)),
            life: 1,
            stalled_until: Nanos(0),
            limits: [0; SLICES],
            gate: Gate::default(),
            order: Precedence::default(),
            fairness: Fairness::default(),
            unread: Vec::new(),
            slab: Bytes::default(),
            choice: scenario.program,
            config,
        }
    }

    pub(super) fn stop(&mut self) {
        self.program = None;
        self.stalled_until = Nanos(0);
        self.unread.clear();
    }

    pub(super) fn start(&mut self) {
        self.slab = Bytes::default();
        self.gate = Gate::default();
        self.order = Precedence::default();
        self.fairness = Fairness::default();
        self.life += 1;
        self.program = Some(in_life(self.life, &self.choice, self.config));
    }

    pub(super) const fn epoch(&self) -> Epoch {
        Epoch(self.life)
    }
}

fn config(scenario: &Scenario) -> Config {
    Config {
        epoch: Epoch(0),
        term: Term(0),
        workers: scenario.worker_rows,
        clients: scenario.client_rows,
        slices: SLICES as u16,
        types: TYPES,
        tasks_per_slice: 32,
        tokens_per_slice: scenario.token_cells,
        replay_cells: scenario.replay_cells,
        servers: Servers::count(scenario),
        counters_start: START,
        seed: 0,
    }
}

fn in_life(life: u32, choice: &Choice, config: Config) -> Box<dyn Program> {
    choice.build(Config { epoch: Epoch(life), ..config })
}

impl Rack<'_> {
    pub(super) fn at_switch(&mut self, from: Address, mut packet: Packet) -> Result<(), String> {
        if self.switch.program.is_none() {
            self.refused_by_switch(from);
            return Ok(());
        }
        if self.scenario.writes_ahead {
            let brought = handle_of(&packet);
            if let Packet::Submit(submit) = &mut packet {
                submit.payload.handle = Handle::NONE;
            }
            return self.pass_through(Arrival::Wire { from: from.endpoint(), packet, room: true }, brought);
        }
        let room = self.reserve(&mut packet);
        // A reply's bytes go on with it: only tasks' are kept.
        let brought = if let Packet::Submit(submit) = &packet { submit.payload.handle } else { Handle::NONE };
        self.pass(Arrival::Wire { from: from.endpoint(), packet, room }, brought)
    }

    /// Something goes round in this life of the switch.
    pub(super) fn send_round(&mut self, circulating: &Circulating) {
        let (at, to) = (self.world.now + self.scenario.round, SWITCH.at(self.switch.life));
        let lane = self.world.engine.lane(self.scenario.round);
        self.world.send_round(lane, to, at, circulating);
    }

    pub(super) fn round(&mut self, switch: u32, circulating: Circulating) -> Result<(), String> {
        if switch != self.switch.life {
            return Ok(());
        }
        if self.scenario.writes_ahead {
            return self.round_through(circulating);
        }
        self.pass(Arrival::Round(circulating), circulating.payload())
    }

    pub(super) fn table_op(&mut self, brain: u32, switch: u32, by: Term, op: TableOp) -> Result<(), String> {
        if switch != self.switch.life {
            return Ok(());
        }
        let Some(program) = &mut self.switch.program else { return Ok(()) };
        let obeyed = program.shape().term;
        if !obeyed.obeys(by, &op) {
            let answer = TableAnswer::Superseded(obeyed);
            self.tell(Who::Controller, Some(Who::Switch), None, |_| story::table(&op, &answer));
            self.answer_brain(brain, answer);
            return Ok(());
        }
        if let TableOp::SetSlice(slice, row) = op {
            let limit = &mut self.switch.limits[usize::from(slice.0)];
            *limit = row.limit.max(*limit);
        }
        let answer = program.table(op);
        self.switch.gate.written(&op);
        // Its state folder.
        self.switch.config.term = program.shape().term;
        self.tell(Who::Controller, Some(Who::Switch), None, |_| story::table(&op, &answer));
        if let TableOp::Inject(sweep) = op {
            if self.scenario.writes_ahead {
                self.pass_through(Arrival::Control(sweep), Handle::NONE)?;
            } else {
                self.pass(Arrival::Control(sweep), Handle::NONE)?;
            }
        }
        self.answer_brain(brain, answer);
        Ok(())
    }

    /// A large task's bytes go to the slab, if there is room.
    fn reserve(&mut self, packet: &mut Packet) -> bool {
        let Packet::Submit(submit) = packet else { return true };
        if submit.payload.handle == Handle::NONE {
            return true;
        }
        if self.world.now < FAULTS_END && self.dice.chance(self.scenario.no_room) {
            submit.payload.handle = Handle::NONE;
            return false;
        }
        submit.payload = self.switch.slab.keep(submit.payload);
        true
    }

    /// One pass of an arrival that brought these bytes.
    fn pass(&mut self, arrival: Arrival, brought: Handle) -> Result<(), String> {
        let now = self.looked();
        let about = story::arrived(&arrival);
        match self.pass_gate(now, arrival)? {
            Some(verdict) => self.leaves_switch(verdict, brought, about),
            None => Ok(()),
        }
    }

    /// When the pass that comes to the queue now looked at the clock. On a switch with many CPUs that is now
    /// and then before another looked that got there first.
    pub(super) fn looked(&mut self) -> Nanos {
        let on_its_way = if self.looks.chance(100) { self.looks.span(Nanos(0), PASS) } else { Nanos(0) };
        self.world.now.since(on_its_way)
    }

    fn leaves_switch(
        &mut self,
        verdict: Verdict,
        brought: Handle,
        (from, task): (Option<Who>, Option<TaskId>),
    ) -> Result<(), String> {
        let mut done_with = Handle::NONE;
        match verdict {
            Verdict::Send { to, packet: Packet::Dispatch(mut dispatch) } => {
                if dispatch.payload.handle != Handle::NONE {
                    dispatch.payload = self.switch.slab.give_back(dispatch.payload.handle)?;
                }
                self.send(SWITCH, Address::of(&to), Packet::Dispatch(dispatch));
            }
            Verdict::Send { to, packet } => {
                // A task that came round with the poll waits now.
                let waits = matches!(packet, Packet::Empty(_));
                done_with = if waits { Handle::NONE } else { brought };
                self.send(SWITCH, Address::of(&to), packet);
            }
            Verdict::Swept { to, packet, payload } => {
                done_with = payload;
                self.send(SWITCH, Address::of(&to), packet);
            }
            Verdict::Again(circulating) => {
                self.send_round(&circulating);
            }
            Verdict::Parked => {}
            Verdict::Ahead(_) => done_with = brought,
            Verdict::Drop(refusal) => {
                done_with = brought;
                self.tell(Who::Switch, from, task, |_| story::dropped(refusal));
            }
        }
        if done_with != Handle::NONE {
            self.switch.slab.give_back(done_with)?;
        }
        Ok(())
    }
}

fn handle_of(packet: &Packet) -> Handle {
    packet.payload().map_or(Handle::NONE, |payload| payload.handle)
}
