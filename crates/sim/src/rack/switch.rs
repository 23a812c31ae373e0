//! The switch: the program's passes, and where what leaves it goes.

use sluice_switch::{Arrival, Cargo, Circulating, Program, Verdict};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Endpoint, Nanos, Packet, Sweep, WorkerId};

use super::Rack;
use super::books::Place;
use super::links::{PacketId, Source};
use super::setup::{client_at, worker_at};
use crate::stats::Observer;
use crate::testbed::SwitchTimes;

/// The switch, and the port for what goes round.
#[derive(Debug)]
pub(super) struct SwitchNode {
    program: Box<dyn Program>,
    times: SwitchTimes,
    port: Port,
}

impl SwitchNode {
    pub(super) fn new(program: Box<dyn Program>, times: SwitchTimes) -> Self {
        Self { program, times, port: Port::new(times.recirculation_gbps) }
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
}

/// A port that takes one packet after the other.
#[derive(Debug)]
pub(super) struct Port {
    ps_a_byte: f64,
    free_ps: u64,
}

impl Port {
    /// Without a bandwidth packets take it no time.
    pub(super) fn new(gbps: Option<f64>) -> Self {
        Self { ps_a_byte: gbps.map_or(0.0, |gbps| 8_000.0 / gbps), free_ps: 0 }
    }

    /// A packet comes at `now`: says when it has gone through, and how long that kept the port busy.
    pub(super) fn pass(&mut self, now: Nanos, bytes: u32) -> (Nanos, u64) {
        let busy_ps = (f64::from(bytes) * self.ps_a_byte) as u64;
        self.free_ps = self.free_ps.max(now.0 * 1_000) + busy_ps;
        (Nanos(self.free_ps.div_ceil(1_000)), busy_ps)
    }
}

impl<O: Observer> Rack<'_, O> {
    /// A packet comes to the switch from a host.
    #[inline]
    pub(super) fn at_switch(&mut self, packet: PacketId) {
        let packet_is = self.links.packet(packet);
        let is_task = matches!(packet_is, Packet::Submit(_));
        let arrival = Arrival::Wire { from: source_of(packet_is), packet: *packet_is, room: true };
        self.links.free(packet);
        if is_task {
            self.meter.in_switch.enter(self.now);
            self.books.moves(Place::ToSwitch, Place::InSwitch);
        }
        self.pass(arrival, is_task);
    }

    /// A packet has gone round.
    pub(super) fn round(&mut self, round: Circulating) {
        self.meter.counts.recirculations += 1;
        let is_task = matches!(round.cargo, Cargo::Task(_));
        if is_task {
            self.books.goes_round(false);
        }
        self.pass(Arrival::Round(round), is_task);
    }

    /// A broom that the controller sends round.
    pub(super) fn sweep(&mut self, sweep: Sweep) {
        self.pass(Arrival::Control(sweep), false);
    }

    #[inline]
    fn pass(&mut self, arrival: Arrival, is_task: bool) {
        self.meter.counts.passes += 1;
        let leaves = self.now + self.switch.times.pass;
        match self.switch.program.pass(self.now, arrival) {
            Verdict::Send { packet, .. } => self.leave(leaves, &packet),
            Verdict::Again(circulating) => self.again(leaves, circulating),
            Verdict::Drop(_) if is_task => {
                self.meter.in_switch.leave(self.now);
                self.books.moves(Place::InSwitch, Place::Lost);
            }
            Verdict::Ahead(write) => {
                let copies = self.servers.write_ahead(&mut *self.switch.program, leaves, &write);
                self.meter.counts.writes += u64::from(copies);
                self.meter.counts.packets += u64::from(copies);
            }
            Verdict::Parked | Verdict::Drop(_) | Verdict::Swept { .. } => {}
        }
    }

    #[inline]
    fn leave(&mut self, leaves: Nanos, packet: &Packet) {
        match packet {
            Packet::Dispatch(_) => {
                self.meter.counts.polls += u64::from(self.plan.is_polled());
                self.meter.in_switch.leave(self.now);
                self.books.moves(Place::InSwitch, Place::ToWorker);
                self.send_to_worker(leaves, packet);
            }
            Packet::Answer(_) | Packet::Empty(_) => {
                let is_empty = u64::from(matches!(packet, Packet::Empty(_)));
                self.meter.counts.polls += is_empty;
                self.meter.counts.empty_polls += is_empty;
                self.send_to_worker(leaves, packet);
            }
            Packet::Reject(_) | Packet::Notice(_) => {
                self.meter.in_switch.leave(self.now);
                self.books.moves(Place::InSwitch, Place::ToClient);
                self.send(Source::Clients, leaves + self.testbed.links.client, packet);
            }
            _ => {
                self.send(Source::Clients, leaves + self.testbed.links.client, packet);
            }
        }
    }

    #[inline]
    fn send_to_worker(&mut self, leaves: Nanos, packet: &Packet) {
        let leaves = self.servers.leaves(leaves, packet);
        self.send(Source::Workers, leaves + self.testbed.links.worker, packet);
    }

    fn again(&mut self, leaves: Nanos, round: Circulating) {
        if let Cargo::Task(_) = round.cargo {
            self.books.goes_round(true);
        }
        let times = &self.switch.times;
        let is_large = matches!(&round.cargo, Cargo::Task(submit) if submit.payload.is_large());
        let bytes = if is_large { times.large_packet_bytes } else { times.packet_bytes };
        let (through, busy_ps) = self.switch.port.pass(leaves, bytes);
        self.meter.port_busy_ps += busy_ps;
        self.links.send_round(through + times.recirculation, round);
    }
}

const fn source_of(packet: &Packet) -> Endpoint {
    match packet {
        Packet::Submit(submit) => client_at(submit.client),
        Packet::Token(token) => worker_at(token.worker),
        Packet::Probe(probe) => worker_at(probe.worker),
        Packet::Reply(reply) => worker_at(reply.worker),
        _ => worker_at(WorkerId(0)),
    }
}
