//! The switch of a curve (`nodes::switch`): what its passes and ports take, and what is counted there.

use sluice_switch::{Arrival, Cargo, Circulating, Program, Refusal, Verdict, WriteAhead};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Nanos, Packet};

use super::books::Place;
use super::nodes::{Nodes, Staged};
use super::stage::Stage;
use crate::nodes::{SwitchSide, Try};
use crate::stats::Observer;
use crate::suits::Suits;
use crate::testbed::SwitchTimes;
use crate::world::{Address, LaneId, Port, Reused};

/// The switch, and the port for what goes round.
#[derive(Debug)]
pub(super) struct SwitchNode {
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
    /// What goes round takes the lane for a pass and a recirculation.
    pub(super) fn new(
        program: Box<dyn Program>,
        times: SwitchTimes,
        lane: LaneId,
        is_polled: bool,
        suits: Option<Suits>,
    ) -> Self {
        Self { program, times, port: Port::new(times.recirculation_gbps), lane, is_polled, suits }
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
}

impl<O: Observer> SwitchSide for Staged<'_, O> {
    /// Whether it is a task.
    type Brought = bool;

    fn rounds(&mut self) -> &mut Reused<Circulating> {
        &mut self.stage.world.rounds
    }

    #[inline]
    fn takes_in(&mut self, arrival: &mut Arrival) -> Try<Self, bool> {
        let Stage { world, meter, books } = &mut *self.stage;
        meter.counts.passes += 1;
        Ok(match arrival {
            Arrival::Wire { packet: Packet::Submit(_), .. } => {
                meter.in_switch.enter(world.now);
                books.moves(Place::ToSwitch, Place::InSwitch);
                true
            }
            Arrival::Round(round) => {
                meter.counts.recirculations += 1;
                let is_task = matches!(round.cargo, Cargo::Task(_));
                if is_task {
                    books.goes_round(false);
                }
                is_task
            }
            _ => false,
        })
    }

    #[inline]
    fn pass(&mut self, arrival: Arrival) -> Try<Self, Option<Verdict>> {
        Ok(Some(self.nodes.switch.program.pass(self.stage.world.now, arrival)))
    }

    #[inline]
    fn lets_out(&mut self, to: Address, packet: &mut Packet, _: bool) -> Try<Self, Nanos> {
        let Stage { world, meter, books } = &mut *self.stage;
        let switch = &self.nodes.switch;
        match packet {
            Packet::Dispatch(dispatch) => {
                if let Some(suits) = &switch.suits {
                    meter.given(suits, to.place(), dispatch.task_type);
                }
                meter.counts.polls += u64::from(switch.is_polled);
                meter.in_switch.leave(world.now);
                books.moves(Place::InSwitch, Place::ToWorker);
            }
            Packet::Empty(_) => {
                meter.counts.polls += 1;
                meter.counts.empty_polls += 1;
            }
            Packet::Reject(_) | Packet::Notice(_) => {
                meter.in_switch.leave(world.now);
                books.moves(Place::InSwitch, Place::ToClient);
            }
            _ => {}
        }
        Ok(switch.leaves(world.now))
    }

    fn goes_round(&mut self, round: Circulating, _: bool) -> Try<Self> {
        if let Cargo::Task(_) = round.cargo {
            self.stage.books.goes_round(true);
        }
        let switch = &mut self.nodes.switch;
        let times = &switch.times;
        let is_large = matches!(&round.cargo, Cargo::Task(submit) if submit.payload.is_large());
        let bytes = if is_large { times.large_packet_bytes } else { times.packet_bytes };
        let (through, busy_ps) = switch.port.pass(switch.leaves(self.stage.world.now), bytes);
        self.stage.meter.port_busy_ps += busy_ps;
        let (at, to) = (through + switch.times.recirculation, self.nodes.plan.places.switch);
        self.stage.world.send_round(switch.lane, to, at, &round);
        Ok(())
    }

    fn writes_ahead(&mut self, write: &WriteAhead, _: bool) -> Try<Self> {
        let Nodes { workers, switch, .. } = &mut *self.nodes;
        let Stage { world, meter, .. } = &mut *self.stage;
        let leaves = switch.leaves(world.now);
        let copies = workers.servers.write_ahead(switch.program(), &mut world.network, leaves, write);
        meter.counts.writes += u64::from(copies);
        meter.counts.packets += u64::from(copies);
        Ok(())
    }

    fn drops(&mut self, _: Refusal, is_task: bool) -> Try<Self> {
        if is_task {
            self.stage.meter.in_switch.leave(self.stage.world.now);
            self.stage.books.moves(Place::InSwitch, Place::Lost);
        }
        Ok(())
    }
}
