//! The events at the switches of curves: an arrival is a pass of the program, and this file carries out its
//! verdict and counts it.

use sluice_events::{Address, Mail, PacketId};
use sluice_switch::Mirror;
use sluice_switch::{Arrival, Cargo, Circulating, Verdict, WriteAhead};
use sluice_wire::{Endpoint, INLINE_BYTES, Nanos, Packet, RackNews, Reject, TaskId};

use crate::racks::clients::machine_of;
use crate::racks::places::{LEAVES, SPINES, WORKERS};
use crate::racks::switch::SwitchNode;
use crate::racks::task_places::Place;
use crate::racks::watch::TaskObserver;
use crate::racks::world::SimulatedRacks;
use crate::software::ServerCore;

/// A task that a spine hands down, and the address that the spine tells for its client.
const fn handed_down(arrival: &Arrival) -> Option<(TaskId, Endpoint)> {
    match arrival {
        Arrival::Wire { packet: Packet::Dispatch(task), .. } => Some((task.task, task.client_at)),
        _ => None,
    }
}

#[derive(Clone, Copy, Debug)]
pub(in crate::racks) struct SwitchPass {
    /// The address of the switch.
    pub(in crate::racks) at: Address,
    /// The pool of the packet.
    pub(in crate::racks) pool: usize,
    /// How many tasks the packet holds.
    pub(in crate::racks) tasks: u8,
}

impl<O: TaskObserver> SimulatedRacks<O> {
    /// A packet arrives at a switch, or has recirculated in it.
    #[inline]
    pub(in crate::racks) fn at_switch(&mut self, at: Address, mail: Mail) {
        if !self.switch(at).lives {
            return self.drop_at_dead_switch(mail);
        }
        match mail {
            Mail::Packet { from, packet } => {
                let pass = self.receive(at, from, packet);
                let packet = self.world.packets.take(packet);
                self.pass(&pass, Arrival::Wire { from: from.endpoint(), packet, room: true });
            }
            Mail::Round(round) => {
                let round = self.world.rounds.take(round);
                let tasks = tasks_in(&round.cargo);
                let pool = match &round.cargo {
                    Cargo::Task(submit) => self.pool_of(submit.task_type),
                    // A note that a switch sends to itself names no pool.
                    _ => 0,
                };
                self.pools[pool].meter.counts.recirculations += 1;
                (0..tasks).for_each(|_| self.task_places.set_recirculating(false));
                self.pass(&SwitchPass { at, pool, tasks }, Arrival::Round(round));
            }
        }
    }

    #[inline]
    pub(in crate::racks) fn switch(&mut self, at: Address) -> &mut SwitchNode {
        let switches = if at.at(0) == SPINES { &mut self.spines } else { &mut self.leaves };
        &mut switches[at.place() as usize]
    }

    /// A pass of a switch's program, and its effects.
    #[expect(clippy::inline_always, reason = "each packet pays for a call that stays one")]
    #[inline(always)]
    pub(in crate::racks) fn pass(&mut self, pass: &SwitchPass, arrival: Arrival) {
        self.pools[pass.pool].meter.counts.passes += 1;
        if !self.spines.is_empty() {
            return self.pass_in_tiers(pass, arrival);
        }
        let now = self.world.now;
        let verdict = self.switch(pass.at).program().pass(now, arrival);
        self.on_verdict(pass, &verdict);
    }

    /// A pass of a spine, or of a leaf below spines. Kept apart, so that a rack without spines does not pay
    /// for what tiers tell each other.
    #[inline(never)]
    fn pass_in_tiers(&mut self, pass: &SwitchPass, arrival: Arrival) {
        let now = self.world.now;
        let switch = self.switch(pass.at);
        let handed_down = if switch.clients.is_some() { handed_down(&arrival) } else { None };
        let program = switch.program();
        let verdict = program.pass(now, arrival);
        let told = program.mirrored();
        if let Some((task, at)) = handed_down
            && let Some(clients) = &mut switch.clients
        {
            clients.handed_down(&verdict, task, at);
        }
        self.on_verdict(pass, &verdict);
        if let Some(told) = told {
            self.tell_spine(pass, &told);
        }
    }

    /// The effects of a pass.
    #[expect(clippy::inline_always, reason = "each pass pays for a call that stays one")]
    #[inline(always)]
    fn on_verdict(&mut self, pass: &SwitchPass, verdict: &Verdict) {
        match verdict {
            Verdict::Send { to, packet } | Verdict::Swept { to, packet, .. } => {
                self.send_out(pass, to, packet);
            }
            Verdict::Late { to, reject, token, .. } => self.refuse_late(pass, to, *reject, *token),
            Verdict::Again(round) => self.set_recirculating(pass, round),
            Verdict::Ahead(write) => self.writes_ahead(write),
            Verdict::Parked => {}
            Verdict::Drop(_) => {
                let now = self.world.now;
                for _ in 0..pass.tasks {
                    self.pools[pass.pool].meter.in_switch.leave(now);
                    self.task_places.move_task(Place::InSwitch, Place::Lost);
                }
            }
        }
    }

    /// A token passes over a late task: the task's client is told, and the token recirculates.
    #[cold]
    fn refuse_late(&mut self, pass: &SwitchPass, to: &Endpoint, reject: Reject, token: u64) {
        self.send_out(pass, to, &Packet::Reject(reject));
        self.set_recirculating(pass, &Circulating::note(token));
    }

    /// Sends an UPDATE of a leaf to its spine, beside the packet of the pass.
    pub(in crate::racks) fn tell_spine(&mut self, pass: &SwitchPass, told: &Mirror) {
        let counts = &mut self.pools[pass.pool].meter.counts;
        match told.update.news {
            RackNews::Load(_) => counts.load_updates += 1,
            RackNews::Idle | RackNews::Busy => counts.idle_updates += 1,
        }
        let leaves = self.world.now + self.times.pass;
        self.transmit(pass.pool, (pass.at, Address::of(&told.to)), leaves, |place| {
            *place = Packet::Update(told.update);
        });
    }

    #[cold]
    fn drop_at_dead_switch(&mut self, mail: Mail) {
        match mail {
            Mail::Packet { from, packet } => {
                let pool = self.pool_of_packet(from, packet);
                self.pools[pool].meter.counts.lost_packets += 1;
                self.world.packets.free(packet);
            }
            Mail::Round(round) => {
                self.world.rounds.take(round);
            }
        }
    }

    /// A packet arrives, with so many tasks. A task that a leaf rejects leaves a switch twice: its spine
    /// passes the REJECT to the client.
    #[inline]
    fn receive(&mut self, at: Address, from: Address, packet: PacketId) -> SwitchPass {
        let pool = self.pool_of_packet(from, packet);
        let (tasks, enter) = match self.world.packets.get(packet) {
            Packet::Submit(_) | Packet::Dispatch(_) => (1, 1),
            Packet::Job(job) => (job.tasks(), job.tasks()),
            Packet::Reject(_) => (0, 1),
            _ => (0, 0),
        };
        if enter > 0 {
            self.pools[pool].meter.in_switch.enter_many(enter, self.world.now);
            (0..enter).for_each(|_| self.task_places.move_task(Place::ToSwitch, Place::InSwitch));
        }
        SwitchPass { at, pool, tasks }
    }

    #[inline]
    fn pool_of_packet(&self, from: Address, packet: PacketId) -> usize {
        if self.pools.len() == 1 { 0 } else { self.pool_of_many(from, packet) }
    }

    /// The pool of a packet, found by its task, by what it tells of, or by the worker that sent it.
    #[inline(never)]
    fn pool_of_many(&self, from: Address, packet: PacketId) -> usize {
        match self.world.packets.get(packet) {
            Packet::Submit(of) => self.pool_of(of.task_type),
            Packet::Dispatch(of) => self.pool_of(of.task_type),
            Packet::Reply(of) => self.pool_of(of.task_type),
            Packet::Reject(of) => self.pool_of(of.task_type),
            Packet::Update(of) => of.pool.0.into(),
            _ if from.at(0) == WORKERS => self.workers.all[from.place() as usize].pool.into(),
            _ => 0,
        }
    }

    /// When a packet that arrives at a switch now leaves it.
    #[inline]
    fn departure(&self) -> Nanos {
        self.world.now + self.times.pass + self.core.as_ref().map_or(Nanos(0), ServerCore::way_back)
    }

    #[expect(clippy::inline_always, reason = "each pass pays for a call that stays one")]
    #[inline(always)]
    fn send_out(&mut self, pass: &SwitchPass, to: &Endpoint, packet: &Packet) {
        let to = Address::of(to);
        let (now, leaves) = (self.world.now, self.departure());
        let meter = &mut self.pools[pass.pool].meter;
        let mut client_at = None;
        match packet {
            Packet::Dispatch(dispatch) => {
                if let Some(suits) = &self.suits {
                    meter.on_dispatch(suits, to.place(), dispatch.task_type);
                }
                meter.counts.polls += u64::from(self.is_polled);
                meter.in_switch.leave(now);
                self.task_places.move_task(Place::InSwitch, Place::ToWorker);
                if pass.at.at(0) == LEAVES
                    && let Some(clients) = &self.leaves[pass.at.place() as usize].clients
                {
                    // A leaf knows clients from their tasks only, as a live leaf does.
                    let told = clients.of(dispatch.task);
                    let machine = machine_of(dispatch.task.incarnation);
                    let is_there = told == self.clients.all[machine].node.at.endpoint();
                    meter.observer.client_told(dispatch.task, told, is_there);
                    client_at = Some(told);
                }
            }
            Packet::Empty(_) => {
                meter.counts.polls += 1;
                meter.counts.empty_polls += 1;
            }
            Packet::Reject(reject) => {
                for _ in 0..=reject.behind {
                    meter.in_switch.leave(now);
                    self.task_places.move_task(Place::InSwitch, Place::ToClient);
                }
            }
            Packet::Notice(_) => {
                meter.in_switch.leave(now);
                self.task_places.move_task(Place::InSwitch, Place::ToClient);
            }
            _ => {}
        }
        self.transmit(pass.pool, (pass.at, to), leaves, |place| {
            *place = *packet;
            if let (Packet::Dispatch(task), Some(at)) = (place, client_at) {
                task.client_at = at;
            }
        });
    }

    fn set_recirculating(&mut self, pass: &SwitchPass, round: &Circulating) {
        let tasks = tasks_in(&round.cargo);
        (0..tasks).for_each(|_| self.task_places.set_recirculating(true));
        let (times, ready, is_below) = (self.times, self.departure(), !self.spines.is_empty());
        let bytes = match &round.cargo {
            Cargo::Task(submit) if submit.payload.is_large() => times.large_packet_bytes,
            Cargo::Job(job) => times.packet_bytes + u32::from(job.tasks()) * INLINE_BYTES as u32,
            _ => times.packet_bytes,
        };
        let (through, busy_ps) = self.switch(pass.at).port.pass(ready, bytes);
        let meter = &mut self.pools[pass.pool].meter;
        meter.port_busy_ps += busy_ps;
        if let Cargo::Task(_) = round.cargo
            && is_below
        {
            let counts = &mut meter.counts;
            let is_spine = pass.at.at(0) == SPINES;
            *(if is_spine { &mut counts.spine_rounds } else { &mut counts.leaf_rounds }) += 1;
        }
        self.world.send_round(self.round, pass.at, through + times.recirculation, round);
    }

    /// A task waits in a rack without spines, and is written ahead to its servers.
    fn writes_ahead(&mut self, write: &WriteAhead) {
        let leaves = self.departure();
        let Self { world, below, workers, .. } = self;
        let Some(switch) = self.leaves.first_mut() else { return };
        let copies = workers.servers.write_ahead(switch.program(), write, |servers, written| match below {
            Some(below) => below.write(world, servers, leaves, written, write),
            None => servers.takes_link(&mut world.network, leaves, written, write),
        });
        let counts = &mut self.pools[0].meter.counts;
        counts.writes += u64::from(copies);
        counts.packets += u64::from(copies);
    }
}

/// How many tasks a recirculating packet holds.
const fn tasks_in(cargo: &Cargo) -> u8 {
    match cargo {
        Cargo::Task(_) => 1,
        Cargo::Job(job) => job.tasks(),
        Cargo::Sweep(_) | Cargo::Note => 0,
    }
}
