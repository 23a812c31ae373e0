//! What happens at the switch of a curve (`nodes::switch`), and what is counted there.

use sluice_switch::{Arrival, Cargo, Circulating, Refusal, WriteAhead};
use sluice_wire::{INLINE_BYTES, Nanos, Packet};

use crate::events::{Address, Id, PacketId, Reused};
use crate::nodes::{SwitchSide, Try};
use crate::rack::books::Place;
use crate::rack::nodes::{Nodes, Staged};
use crate::rack::stage::Stage;
use crate::stats::Observer;

impl<O: Observer> SwitchSide for Staged<'_, O> {
    /// How many tasks it is.
    type ArrivalContext = u8;

    fn rounds(&mut self) -> &mut Reused<Circulating> {
        &mut self.stage.world.rounds
    }

    #[inline]
    fn takes_in(&mut self, _: Address, id: PacketId) -> Try<Self, (u8, bool)> {
        let Stage { world, meter, books, .. } = &mut *self.stage;
        let tasks = match world.packets.get(id) {
            Packet::Submit(_) => 1,
            Packet::Job(job) => job.tasks(),
            _ => 0,
        };
        for _ in 0..tasks {
            meter.in_switch.enter(world.now);
            books.moves(Place::ToSwitch, Place::InSwitch);
        }
        Ok((tasks, true))
    }

    #[inline]
    fn comes_round(&mut self, id: Id<Circulating>) -> Try<Self, u8> {
        let Stage { world, meter, books, .. } = &mut *self.stage;
        meter.counts.recirculations += 1;
        let tasks = tasks_in(&world.rounds.get(id).cargo);
        (0..tasks).for_each(|_| books.goes_round(false));
        Ok(tasks)
    }

    #[inline]
    fn pass(&mut self, arrival: Arrival, tasks: u8) -> Try<Self> {
        self.stage.meter.counts.passes += 1;
        let mut verdict = self.nodes.switch.program.pass(self.stage.world.now, arrival);
        self.follows(&mut verdict, tasks)
    }

    #[inline]
    fn lets_out(&mut self, to: Address, packet: &mut Packet, _: u8) -> Try<Self, Nanos> {
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
            Packet::Reject(reject) => {
                for _ in 0..=reject.behind {
                    meter.in_switch.leave(world.now);
                    books.moves(Place::InSwitch, Place::ToClient);
                }
            }
            Packet::Notice(_) => {
                meter.in_switch.leave(world.now);
                books.moves(Place::InSwitch, Place::ToClient);
            }
            _ => {}
        }
        Ok(switch.leaves(world.now))
    }

    fn goes_round(&mut self, round: &mut Circulating, _: u8) -> Try<Self> {
        let tasks = tasks_in(&round.cargo);
        (0..tasks).for_each(|_| self.stage.books.goes_round(true));
        let switch = &mut self.nodes.switch;
        let times = &switch.times;
        let bytes = match &round.cargo {
            Cargo::Task(submit) if submit.payload.is_large() => times.large_packet_bytes,
            Cargo::Job(job) => times.packet_bytes + u32::from(job.tasks()) * INLINE_BYTES as u32,
            _ => times.packet_bytes,
        };
        let (through, busy_ps) = switch.port.pass(switch.leaves(self.stage.world.now), bytes);
        self.stage.meter.port_busy_ps += busy_ps;
        let (at, to) = (through + switch.times.recirculation, self.nodes.plan.places.switch);
        self.stage.world.send_round(switch.lane, to, at, round);
        Ok(())
    }

    fn writes_ahead(&mut self, write: &WriteAhead, _: u8) -> Try<Self> {
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

    fn drops(&mut self, _: Refusal, tasks: u8) -> Try<Self> {
        for _ in 0..tasks {
            self.stage.meter.in_switch.leave(self.stage.world.now);
            self.stage.books.moves(Place::InSwitch, Place::Lost);
        }
        Ok(())
    }
}

/// How many tasks go round.
const fn tasks_in(cargo: &Cargo) -> u8 {
    match cargo {
        Cargo::Task(_) => 1,
        Cargo::Job(job) => job.tasks(),
        Cargo::Sweep(_) | Cargo::Note => 0,
    }
}
