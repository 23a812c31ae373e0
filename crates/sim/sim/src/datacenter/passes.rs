//! What happens at spines and leaves (`nodes::switch`).

use sluice_switch::horus::Mirror;
use sluice_switch::{Arrival, Cargo, Circulating, Refusal, WriteAhead};
use sluice_wire::{Nanos, Packet, RackNews};

use super::clients::machine_of;
use super::places::{SPINES, WORKERS};
use super::switches::DatacenterSwitch;
use super::watch::TaskWatch;
use super::world::Datacenter;
use crate::events::{Address, Id, Mail, PacketId, Reused};
use crate::nodes::{Scene, SwitchSide, Try};

impl<O: TaskWatch> Datacenter<O> {
    /// Something comes to a switch, or has gone round in it.
    #[inline]
    pub(super) fn at_switch(&mut self, at: Address, mail: Mail) {
        self.at = at;
        if self.switch(at).lives {
            let Ok(()) = self.switch_hears(mail);
        } else {
            self.falls_on_the_dead(mail);
        }
    }

    #[inline]
    pub(super) fn switch(&mut self, at: Address) -> &mut DatacenterSwitch {
        let switches = if at.at(0) == SPINES { &mut self.spines } else { &mut self.leaves };
        &mut switches[at.place() as usize]
    }

    /// What a leaf tells its spine leaves beside the packet of its pass.
    pub(super) fn tell(&mut self, from: Address, told: &Mirror) {
        let counts = &mut self.pools[self.pool].meter.counts;
        match told.update.news {
            RackNews::Load(_) => counts.load_updates += 1,
            RackNews::Idle | RackNews::Busy => counts.idle_updates += 1,
        }
        let leaves = self.world.now + self.times.pass;
        self.send(from, Address::of(&told.to), leaves, |place| *place = Packet::Update(told.update));
    }

    #[cold]
    fn falls_on_the_dead(&mut self, mail: Mail) {
        match mail {
            Mail::Packet { packet, .. } => {
                self.pools[self.pool].meter.counts.lost_packets += 1;
                self.world.packets.free(packet);
            }
            Mail::Round(round) => {
                self.world.rounds.take(round);
            }
        }
    }

    /// Whose a packet is, by its task, by what it tells of, or by the worker that sent it.
    #[inline]
    fn belongs_to(&self, from: Address, packet: &Packet) -> usize {
        match packet {
            Packet::Submit(of) => self.control.pool_of(of.task_type),
            Packet::Dispatch(of) => self.control.pool_of(of.task_type),
            Packet::Reply(of) => self.control.pool_of(of.task_type),
            Packet::Reject(of) => self.control.pool_of(of.task_type),
            Packet::Update(of) => of.pool.0.into(),
            _ if from.at(0) == WORKERS => self.workers.seats[from.place() as usize].pool.into(),
            _ => 0,
        }
    }
}

impl<O: TaskWatch> SwitchSide for Datacenter<O> {
    /// Whether it is a task.
    type ArrivalContext = bool;

    fn rounds(&mut self) -> &mut Reused<Circulating> {
        &mut self.world.rounds
    }

    #[inline]
    fn takes_in(&mut self, from: Address, id: PacketId) -> Try<Self, (bool, bool)> {
        let packet = self.world.packets.get(id);
        self.pool = self.belongs_to(from, packet);
        let is_task = matches!(packet, Packet::Submit(_) | Packet::Dispatch(_));
        // What a leaf rejects leaves a switch twice: its spine tells the client.
        if is_task || matches!(packet, Packet::Reject(_)) {
            self.pools[self.pool].meter.in_switch.enter(self.world.now);
        }
        Ok((is_task, true))
    }

    #[inline]
    fn comes_round(&mut self, round: Id<Circulating>) -> Try<Self, bool> {
        let task =
            if let Cargo::Task(submit) = &self.world.rounds.get(round).cargo { Some(submit) } else { None };
        // A note that a switch sends itself says nothing of pools.
        self.pool = task.map_or(0, |submit| self.control.pool_of(submit.task_type));
        let is_task = task.is_some();
        self.pools[self.pool].meter.counts.recirculations += 1;
        Ok(is_task)
    }

    #[inline]
    fn pass(&mut self, arrival: Arrival, is_task: bool) -> Try<Self> {
        self.pools[self.pool].meter.counts.passes += 1;
        let (at, now) = (self.at, self.world.now);
        let program = self.switch(at).program();
        let mut verdict = program.pass(now, arrival);
        let told = program.mirrored();
        self.follows(&mut verdict, is_task)?;
        if let Some(told) = told {
            self.tell(at, &told);
        }
        Ok(())
    }

    #[inline]
    fn lets_out(&mut self, _: Address, packet: &mut Packet, _: bool) -> Try<Self, Nanos> {
        if self.control.is_replaced
            && let Packet::Dispatch(task) = packet
        {
            // A leaf knows clients from their tasks only, as a live one does.
            task.client_at = self.machines[machine_of(task.task.incarnation)].node.at.endpoint();
        }
        let (now, meter) = (self.world.now, &mut self.pools[self.pool].meter);
        if matches!(packet, Packet::Dispatch(_) | Packet::Reject(_) | Packet::Notice(_)) {
            meter.in_switch.leave(now);
        }
        Ok(now + self.times.pass)
    }

    fn goes_round(&mut self, round: &mut Circulating, _: bool) -> Try<Self> {
        let at = self.at;
        if let Cargo::Task(_) = round.cargo {
            let counts = &mut self.pools[self.pool].meter.counts;
            let rounds = if at.at(0) == SPINES { &mut counts.spine_rounds } else { &mut counts.leaf_rounds };
            *rounds += 1;
        }
        let times = self.times;
        let is_large = matches!(&round.cargo, Cargo::Task(submit) if submit.payload.is_large());
        let bytes = if is_large { times.large_packet_bytes } else { times.packet_bytes };
        let ready = self.world.now + times.pass;
        let (through, busy_ps) = self.switch(at).port.pass(ready, bytes);
        self.pools[self.pool].meter.port_busy_ps += busy_ps;
        self.world.send_round(self.round, at, through + times.recirculation, round);
        Ok(())
    }

    /// No program of a datacenter does.
    fn writes_ahead(&mut self, _: &WriteAhead, _: bool) -> Try<Self> {
        debug_assert!(false, "there is no server to write to");
        Ok(())
    }

    fn drops(&mut self, _: Refusal, is_task: bool) -> Try<Self> {
        if is_task {
            self.pools[self.pool].meter.in_switch.leave(self.world.now);
        }
        Ok(())
    }
}
