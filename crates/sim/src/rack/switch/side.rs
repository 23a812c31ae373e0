//! What happens at the switch of a curve (`nodes::switch`), and what is counted there.

use sluice_switch::{Arrival, Cargo, Circulating, Refusal, WriteAhead};
use sluice_wire::{Nanos, Packet};

use crate::nodes::{SwitchSide, Try};
use crate::rack::books::Place;
use crate::rack::nodes::{Nodes, Staged};
use crate::rack::stage::Stage;
use crate::stats::Observer;
use crate::world::{Address, Id, PacketId, Reused};

impl<O: Observer> SwitchSide for Staged<'_, O> {
    /// Whether it is a task.
    type Brought = bool;

    fn rounds(&mut self) -> &mut Reused<Circulating> {
        &mut self.stage.world.rounds
    }

    #[inline]
    fn takes_in(&mut self, _: Address, id: PacketId) -> Try<Self, (bool, bool)> {
        let Stage { world, meter, books, .. } = &mut *self.stage;
        let is_task = matches!(world.packets.get(id), Packet::Submit(_));
        if is_task {
            meter.in_switch.enter(world.now);
            books.moves(Place::ToSwitch, Place::InSwitch);
        }
        Ok((is_task, true))
    }

    #[inline]
    fn comes_round(&mut self, id: Id<Circulating>) -> Try<Self, bool> {
        let Stage { world, meter, books, .. } = &mut *self.stage;
        meter.counts.recirculations += 1;
        let is_task = matches!(world.rounds.get(id).cargo, Cargo::Task(_));
        if is_task {
            books.goes_round(false);
        }
        Ok(is_task)
    }

    #[inline]
    fn pass(&mut self, arrival: Arrival, is_task: bool) -> Try<Self> {
        self.stage.meter.counts.passes += 1;
        let mut verdict = self.nodes.switch.program.pass(self.stage.world.now, arrival);
        self.follows(&mut verdict, is_task)
    }

    #[inline]
    fn lets_out(&mut self, to: Address, packet: &mut Packet, _: bool) -> Try<Self, Nanos> {
        let Stage { world, meter, books, .. } = &mut *self.stage;
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

    fn goes_round(&mut self, round: &mut Circulating, _: bool) -> Try<Self> {
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
        self.stage.world.send_round(switch.lane, to, at, round);
        Ok(())
    }

    fn writes_ahead(&mut self, write: &WriteAhead, _: bool) -> Try<Self> {
        let Nodes { workers, switch, .. } = &mut *self.nodes;
        let Stage { world, meter, below, .. } = &mut *self.stage;
        let leaves = switch.leaves(world.now);
        let copies = workers.servers.write_ahead(switch.program(), write, |servers, written| match below {
            Some(below) => below.write(world, servers, leaves, written, write),
            None => servers.takes_link(&mut world.network, leaves, written, write),
        });
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
