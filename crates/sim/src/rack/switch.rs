//! The switch: the program's passes, and where what leaves it goes.

use sluice_switch::{Arrival, Cargo, Circulating, Program, Verdict, WriteAhead};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Nanos, Packet, Sweep};

use super::books::Place;
use super::stage::Stage;
use crate::stats::Observer;
use crate::suits::Suits;
use crate::testbed::SwitchTimes;
use crate::world::{Address, LaneId, Mail, Port};

/// The switch, and the port for what goes round.
#[derive(Debug)]
pub(super) struct SwitchNode {
    at: Address,
    program: Box<dyn Program>,
    times: SwitchTimes,
    port: Port,
    /// Where what goes round is on its way.
    lane: LaneId,
    /// Whether each task that a worker gets answers a poll.
    is_polled: bool,
    /// Who has what tasks need, where something is said of labels.
    suits: Option<Suits>,
}

impl SwitchNode {
    /// A switch at this address; what goes round takes the lane for a pass and a recirculation.
    pub(super) fn new(
        at: Address,
        program: Box<dyn Program>,
        times: SwitchTimes,
        lane: LaneId,
        is_polled: bool,
        suits: Option<Suits>,
    ) -> Self {
        Self { at, program, times, port: Port::new(times.recirculation_gbps), lane, is_polled, suits }
    }

    /// One step of the controller.
    pub(super) fn table(&mut self, op: TableOp) -> TableAnswer {
        self.program.table(op)
    }

    pub(super) fn program(&mut self) -> &mut dyn Program {
        &mut *self.program
    }

    /// Tasks that wait in the program's memory.
    pub(super) fn waiting(&self) -> u32 {
        self.program.waiting()
    }

    /// When what comes now leaves.
    pub(super) fn leaves(&self, now: Nanos) -> Nanos {
        now + self.times.pass
    }

    /// A packet comes from a host, or has gone round. Gives what is to be written ahead.
    #[inline]
    pub(super) fn mail<O: Observer>(&mut self, stage: &mut Stage<O>, mail: Mail) -> Option<WriteAhead> {
        match mail {
            Mail::Packet { from, packet } => {
                let received = stage.world.packets.get(packet);
                let is_task = matches!(received, Packet::Submit(_));
                let arrival = Arrival::Wire { from: from.endpoint(), packet: *received, room: true };
                stage.world.packets.free(packet);
                if is_task {
                    stage.meter.in_switch.enter(stage.world.now);
                    stage.books.moves(Place::ToSwitch, Place::InSwitch);
                }
                self.pass(stage, arrival, is_task)
            }
            Mail::Round(round) => {
                let round = stage.world.come_round(round);
                stage.meter.counts.recirculations += 1;
                let is_task = matches!(round.cargo, Cargo::Task(_));
                if is_task {
                    stage.books.goes_round(false);
                }
                self.pass(stage, Arrival::Round(round), is_task)
            }
        }
    }

    /// A broom that the controller sends round.
    pub(super) fn sweep<O: Observer>(&mut self, stage: &mut Stage<O>, sweep: Sweep) {
        self.pass(stage, Arrival::Control(sweep), false);
    }

    #[inline]
    fn pass<O: Observer>(
        &mut self,
        stage: &mut Stage<O>,
        arrival: Arrival,
        is_task: bool,
    ) -> Option<WriteAhead> {
        stage.meter.counts.passes += 1;
        let now = stage.now();
        match self.program.pass(now, arrival) {
            Verdict::Send { to, packet } => self.send(stage, Address::of(&to), &packet),
            Verdict::Again(circulating) => self.again(stage, &circulating),
            Verdict::Drop(_) if is_task => {
                stage.meter.in_switch.leave(now);
                stage.books.moves(Place::InSwitch, Place::Lost);
            }
            Verdict::Ahead(write) => return Some(write),
            Verdict::Parked | Verdict::Drop(_) | Verdict::Swept { .. } => {}
        }
        None
    }

    #[inline]
    fn send<O: Observer>(&self, stage: &mut Stage<O>, to: Address, packet: &Packet) {
        match packet {
            Packet::Dispatch(dispatch) => {
                if let Some(suits) = &self.suits {
                    stage.meter.given(suits, to.place(), dispatch.task_type);
                }
                stage.meter.counts.polls += u64::from(self.is_polled);
                stage.meter.in_switch.leave(stage.world.now);
                stage.books.moves(Place::InSwitch, Place::ToWorker);
            }
            Packet::Empty(_) => {
                stage.meter.counts.polls += 1;
                stage.meter.counts.empty_polls += 1;
            }
            Packet::Reject(_) | Packet::Notice(_) => {
                stage.meter.in_switch.leave(stage.world.now);
                stage.books.moves(Place::InSwitch, Place::ToClient);
            }
            _ => {}
        }
        let leaves = self.leaves(stage.world.now);
        stage.send(self.at, to, leaves, |place| *place = *packet);
    }

    fn again<O: Observer>(&mut self, stage: &mut Stage<O>, round: &Circulating) {
        if let Cargo::Task(_) = round.cargo {
            stage.books.goes_round(true);
        }
        let times = &self.times;
        let is_large = matches!(&round.cargo, Cargo::Task(submit) if submit.payload.is_large());
        let bytes = if is_large { times.large_packet_bytes } else { times.packet_bytes };
        let (through, busy_ps) = self.port.pass(self.leaves(stage.world.now), bytes);
        stage.meter.port_busy_ps += busy_ps;
        stage.world.send_round(self.lane, self.at, through + self.times.recirculation, round);
    }
}
