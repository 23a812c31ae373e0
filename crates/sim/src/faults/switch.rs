//! The switch's process: its program and life, a node as in curves (`nodes::switch`), and the bytes that
//! it keeps.

use std::mem;

use sluice_switch::registry::Choice;
use sluice_switch::{Arrival, Circulating, Config, Program, Refusal, WriteAhead};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Dispatch, Epoch, Handle, Nanos, Packet, Place, Serial, Submit, TaskId, Term};

use super::bytes::Bytes;
use super::gate::Gate;
use super::hosts::SWITCH;
use super::labels::Fairness;
use super::order::Precedence;
use super::rack::{Event, Rack};
use super::scenario::{FAULTS_END, SLICES, Scenario, TYPES};
use super::servers::Servers;
use super::story::{self, Who};
use crate::nodes::SwitchSide;
use crate::world::{Address, Id, Mail, PacketId, Reused};

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
    /// Something comes to the switch: in another life of it than went round nothing comes round.
    pub(super) fn at_switch(&mut self, to: Address, mail: Mail) -> Result<(), String> {
        let world = &mut self.world;
        match mail {
            Mail::Packet { from, packet } if self.switch.program.is_none() => {
                world.packets.free(packet);
                self.refused_by_switch(from);
            }
            Mail::Round(round) if to.place() != self.switch.life => world.rounds.free(round),
            _ => self.switch_hears(mail)?,
        }
        Ok(())
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
            self.pass(Arrival::Control(sweep), Brought::NOTHING)?;
        }
        self.answer_brain(brain, answer);
        Ok(())
    }

    /// A large task's bytes go to the slab, if there is room.
    fn reserve(&mut self, submit: &mut Submit) -> bool {
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

    /// When the pass that comes to the queue now looked at the clock. On a switch with many CPUs that is now
    /// and then before another looked that got there first.
    fn looked(&mut self) -> Nanos {
        let on_its_way = if self.looks.chance(100) { self.looks.span(Nanos(0), PASS) } else { Nanos(0) };
        self.world.now.since(on_its_way)
    }

    /// What a packet's bytes consist of, or where they were kept if the switch keeps any; and whether there
    /// was room for them.
    fn bytes_in(&mut self, packet: &mut Packet) -> (Handle, bool) {
        match packet {
            Packet::Submit(submit) if self.scenario.keeps_no_bytes() => {
                (mem::replace(&mut submit.payload.handle, Handle::NONE), true)
            }
            packet if self.scenario.keeps_no_bytes() => {
                (packet.payload().map_or(Handle::NONE, |payload| payload.handle), true)
            }
            // A reply's bytes go on with it: only tasks' are kept.
            Packet::Submit(submit) => {
                let room = self.reserve(submit);
                (submit.payload.handle, room)
            }
            _ => (Handle::NONE, true),
        }
    }
}

/// What is remembered of an arrival: its bytes, and for the story who sent it, and which task it is about.
#[derive(Debug)]
pub(super) struct Brought {
    pub(super) bytes: Handle,
    from: Option<Who>,
    task: Option<TaskId>,
}

impl Brought {
    /// Nothing that belongs to it, and nobody's task.
    pub(super) const NOTHING: Self = Self { bytes: Handle::NONE, from: None, task: None };
}

impl SwitchSide for Rack<'_> {
    type Brought = Brought;

    fn rounds(&mut self) -> &mut Reused<Circulating> {
        &mut self.world.rounds
    }

    fn takes_in(&mut self, from: Address, id: PacketId) -> Result<(Brought, bool), String> {
        let mut packet = *self.world.packets.get(id);
        let (bytes, room) = self.bytes_in(&mut packet);
        *self.world.packets.get_mut(id) = packet;
        Ok((Brought { bytes, from: Some(Who::at(from)), task: story::task_of(&packet) }, room))
    }

    fn comes_round(&mut self, id: Id<Circulating>) -> Result<Brought, String> {
        let mut round = *self.world.rounds.get(id);
        let bytes =
            if self.scenario.keeps_no_bytes() { self.take_back(&mut round)? } else { round.payload() };
        *self.world.rounds.get_mut(id) = round;
        Ok(Brought { bytes, ..Brought::NOTHING })
    }

    fn pass(&mut self, arrival: Arrival, brought: Brought) -> Result<(), String> {
        let now = self.looked();
        let Some(mut verdict) = self.pass_gate(now, arrival)? else { return Ok(()) };
        self.follows(&mut verdict, brought)
    }

    fn lets_out(&mut self, _: Address, packet: &mut Packet, brought: Brought) -> Result<Nanos, String> {
        match packet {
            Packet::Dispatch(Dispatch { payload, place, .. }) if self.scenario.keeps_no_bytes() => {
                if payload.is_large() && *place == Place::Here {
                    payload.handle = brought.bytes;
                }
            }
            Packet::Dispatch(Dispatch { payload, .. }) if payload.handle != Handle::NONE => {
                *payload = self.switch.slab.give_back(payload.handle)?;
            }
            // What came round with a poll that ends here waits now.
            Packet::Dispatch(_) | Packet::Empty(_) => {}
            _ => self.forgets(brought.bytes)?,
        }
        Ok(self.world.now)
    }

    /// Something goes round in this life of the switch.
    fn goes_round(&mut self, round: &mut Circulating, brought: Brought) -> Result<(), String> {
        if self.scenario.keeps_no_bytes() {
            self.keep_bytes(round, brought.bytes);
        }
        let (at, to) = (self.world.now + self.scenario.round, SWITCH.at(self.switch.life));
        let lane = self.world.engine.lane(self.scenario.round);
        self.world.send_round(lane, to, at, round);
        Ok(())
    }

    fn writes_ahead(&mut self, write: &WriteAhead, brought: Brought) -> Result<(), String> {
        if self.scenario.writes_ahead {
            self.write_ahead(write, brought.bytes);
        }
        self.forgets(brought.bytes)
    }

    fn drops(&mut self, why: Refusal, brought: Brought) -> Result<(), String> {
        self.tell(Who::Switch, brought.from, brought.task, |_| story::dropped(why));
        self.forgets(brought.bytes)
    }

    fn forgets(&mut self, bytes: Handle) -> Result<(), String> {
        if bytes != Handle::NONE && !self.scenario.keeps_no_bytes() {
            self.switch.slab.give_back(bytes)?;
        }
        Ok(())
    }
}
