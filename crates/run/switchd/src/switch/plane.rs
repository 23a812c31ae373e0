//! Packets through the program: bytes become header fields, pass the program, and become bytes again.

mod lag;

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::detour;
use sluice_net::udp::{BATCH, Inbox, Outbox};
use sluice_switch::{Arrival, Cargo, Circulating, KnownClients, Mirror, Program, Verdict, WriteAhead};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Endpoint, HEADER_BYTES, Handle, Nanos, Packet, Payload, Place, encode, parse, slot_head};

use super::config::{SwitchConfig, SwitchPlace};
use super::counters::{Count, Tally};
use super::slab::Slab;
use super::traces::SwitchTraces;
use super::writes::Writes;
use lag::{Lag, Lagging};

/// How many sets a leaf's cache of clients has: so many that, among a thousand clients, hardly ever five fall
/// into one set.
const CLIENT_SETS: usize = 1 << 12;

/// The program, and the driver's state around it.
pub(super) struct Plane {
    pub(super) program: Box<dyn Program>,
    pub(super) tally: Tally,
    /// What is noted of traced tasks, if any are traced.
    pub(super) traces: Option<SwitchTraces>,
    /// Whether new tasks are taken; they are not while the switch drains.
    pub(super) takes_tasks: bool,
    slab: Slab,
    writes: Writes,
    /// Whether the bytes of waiting tasks are stored in the slab. They are not if servers hold them or
    /// workers fetch them from clients.
    keeps_waiting: bool,
    again: VecDeque<Circulating>,
    lag: Lag,
    /// How far the time of a pass lies behind the clock: with a testbed's delays, a pass happens at the
    /// time at which its packet was due.
    behind_by: Nanos,
    /// At a leaf: the addresses of clients whose tasks spines handed down. A leaf has no table of clients.
    clients: Option<KnownClients>,
    /// The switch that forwards all packets from and to this one, if there is one.
    behind: Option<Endpoint>,
}

/// A packet's long payload during a pass: its cell in the slab, and its bytes if they are not yet in the
/// cell. A REPLY that passes has no cell.
#[derive(Clone, Copy)]
struct LongPayload<'a> {
    cell: Handle,
    outside: Option<&'a [u8]>,
}

impl Plane {
    pub(super) fn new(config: &SwitchConfig, local: SocketAddr) -> Self {
        Self {
            program: config.build(),
            tally: Tally::new(),
            traces: config
                .traces
                .clone()
                .map(|tracer| SwitchTraces::new(tracer, matches!(config.place, SwitchPlace::Spine(_)))),
            takes_tasks: true,
            slab: Slab::new(config.slab_bytes, config.datagram_max.saturating_sub(HEADER_BYTES).max(1)),
            writes: Writes::new(local, config.size.servers),
            keeps_waiting: config.size.servers == 0 && !config.program.traits().fetches,
            again: VecDeque::with_capacity(4 * BATCH),
            lag: Lag::new(config.delays),
            behind_by: Nanos(0),
            clients: matches!(config.place, SwitchPlace::Leaf(_)).then(|| KnownClients::in_sets(CLIENT_SETS)),
            behind: config.behind.map(Endpoint::from),
        }
    }

    /// When the plane has something to do even if nothing arrives.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        if self.again.is_empty() { self.lag.next_due() } else { Some(Nanos(0)) }
    }

    /// Whether no task waits, recirculates or is delayed. While nothing arrives, this does not change.
    pub(super) fn rests(&self) -> bool {
        self.next_due().is_none() && self.program.waiting() == 0
    }

    /// Passes delayed packets through the program, in the order of their due times, which are also the
    /// times of their passes.
    pub(super) fn due(&mut self, now: Nanos, outbox: &mut Outbox) {
        while let Some(due) = self.lag.held.pop_due(now) {
            self.behind_by = now.since(due.at);
            match due.item {
                Lagging::Again(again) => self.round(due.at, again, outbox),
                Lagging::Arrival { from, packet } => {
                    // The delay queue cannot lend its bytes while it may grow, so they are taken out and
                    // put back.
                    let body = self.lag.held.take_bytes(due.cell);
                    self.arrive(due.at, Nanos(0), from, packet, &body, outbox);
                    self.lag.held.put_bytes(due.cell, body);
                }
            }
            self.lag.held.release(due.cell);
        }
        self.behind_by = Nanos(0);
    }

    /// Passes all packets that arrived, then those that have recirculated since before the batch.
    pub(super) fn batch(&mut self, now: Nanos, inbox: &Inbox, outbox: &mut Outbox) {
        let rounds = self.again.len();
        self.tally.add(Count::Batches);
        if let Some(traces) = &mut self.traces {
            traces.begin(inbox.asked_at());
        }
        for index in 0..inbox.len() {
            let (from, bytes) = self.unwrapped(inbox.unstamped(index));
            match parse(bytes) {
                Err(reason) => match self.writes.nak(from, bytes) {
                    Some(nak) => {
                        let verdict = self.program.pass(now, nak);
                        self.trace_departure(now, &verdict);
                        self.settle(now, verdict, None, outbox);
                    }
                    None => self.tally.malformed(reason),
                },
                Ok((packet @ (Packet::Submit(_) | Packet::Job(_)), _)) if !self.takes_tasks => {
                    self.keep_out(Count::NotTaken, (inbox.received_at(index), now), &packet);
                }
                Ok((packet, body)) if self.lag.is_none() => {
                    let ages = matches!(packet, Packet::Submit(_) | Packet::Dispatch(_) | Packet::Job(_));
                    let late = if ages { now.since(inbox.received_at(index)) } else { Nanos(0) };
                    self.arrive(now, late, from, packet, body, outbox);
                }
                Ok((packet, body)) => {
                    let received = inbox.received_at(index);
                    if !self.lag.hold(received, from, packet, body) {
                        self.keep_out(Count::HeldOverrun, (received, now), &packet);
                    }
                }
            }
        }
        self.due(now, outbox);
        for _ in 0..rounds {
            let Some(again) = self.again.pop_front() else { break };
            self.round(now, again, outbox);
        }
        self.tally.set(Count::PayloadsWaiting, self.slab.taken() as u64);
    }

    /// A datagram without the address that a forwarding switch put before it; empty if it did not come from
    /// that switch.
    #[inline]
    fn unwrapped<'i>(&self, (from, bytes): (Endpoint, &'i [u8])) -> (Endpoint, &'i [u8]) {
        let Some(behind) = self.behind else { return (from, bytes) };
        let forwarded = if from == behind { detour::take(bytes) } else { None };
        forwarded.unwrap_or((from, &[]))
    }

    /// Carries out one table step of the controller.
    pub(super) fn table(&mut self, now: Nanos, op: TableOp, outbox: &mut Outbox) -> TableAnswer {
        let answer = self.program.table(op);
        self.send_to_spine(now, outbox);
        if let (TableOp::Inject(sweep), TableAnswer::Done) = (op, answer) {
            let verdict = self.program.pass(now, Arrival::Control(sweep));
            self.trace_departure(now, &verdict);
            self.settle(now, verdict, None, outbox);
        }
        answer
    }

    /// Counts a packet that does not pass.
    fn keep_out(&mut self, why: Count, (received, now): (Nanos, Nanos), packet: &Packet) {
        self.tally.add(why);
        if let Some(traces) = &mut self.traces {
            traces.kept_out(received, now, packet, why.name());
        }
    }

    fn trace_departure(&mut self, now: Nanos, verdict: &Verdict) {
        if let Some(traces) = &mut self.traces {
            traces.passed(now, None, verdict);
        }
    }

    /// A packet's first pass, at the time `now`. Before it the packet spent `late` in the socket, which
    /// adds to a task's age.
    #[inline]
    fn arrive(
        &mut self,
        now: Nanos,
        late: Nanos,
        from: Endpoint,
        mut packet: Packet,
        body: &[u8],
        outbox: &mut Outbox,
    ) {
        let mut long = None;
        let mut room = true;
        let mut handed_down = None;
        match &mut packet {
            Packet::Submit(submit) => {
                self.tally.add(Count::Submits);
                *submit = submit.after(late);
                (long, room) = self.reserve(&mut submit.payload, body);
            }
            Packet::Dispatch(task) if self.clients.is_some() => {
                self.tally.add(Count::HandedDown);
                (task.age, task.budget) = (task.age.plus(late), task.budget.after(late));
                handed_down = Some((task.task, task.client_at));
                (long, room) = self.reserve(&mut task.payload, body);
            }
            Packet::Job(job) => {
                *job = job.after(late);
            }
            Packet::Token(_) => self.tally.add(Count::Tokens),
            Packet::Reply(_) => long = Some(LongPayload { cell: Handle::NONE, outside: Some(body) }),
            _ => {}
        }
        // Before the pass, so that the packet need not be kept for this.
        let entering = self.traces.as_ref().and_then(|traces| traces.entering(&packet));
        let verdict = self.program.pass(now, Arrival::Wire { from, packet, room });
        if let Some(traces) = &mut self.traces {
            traces.arrived(now - late, now, entering, &verdict);
        }
        if let (Some((task, at)), Some(clients)) = (handed_down, &mut self.clients) {
            clients.handed_down(&verdict, task, at);
        }
        self.settle(now, verdict, long, outbox);
        self.send_to_spine(now, outbox);
    }

    /// Reserves a cell for a payload that does not fit into the packet's fields. Also returns whether the
    /// payload needs no cell or got one.
    fn reserve<'a>(&mut self, payload: &mut Payload, body: &'a [u8]) -> (Option<LongPayload<'a>>, bool) {
        if !payload.is_large() {
            return (None, true);
        }
        let cell = self.slab.reserve();
        payload.handle = cell.unwrap_or(Handle::NONE);
        (cell.map(|cell| LongPayload { cell, outside: Some(body) }), cell.is_some())
    }

    /// A later pass.
    fn round(&mut self, now: Nanos, again: Circulating, outbox: &mut Outbox) {
        let long = waiting(again.payload());
        let entering = self.traces.as_ref().and_then(|traces| traces.entering_again(&again.cargo));
        let verdict = self.program.pass(now, Arrival::Round(again));
        if let Some(traces) = &mut self.traces {
            traces.passed(now, entering, &verdict);
        }
        self.settle(now, verdict, long, outbox);
        self.send_to_spine(now, outbox);
    }

    /// Sends what a leaf tells its spine, in addition to the packet of its pass.
    #[inline]
    fn send_to_spine(&mut self, now: Nanos, outbox: &mut Outbox) {
        if self.clients.is_some()
            && let Some(Mirror { to, update }) = self.program.mirrored()
        {
            self.tally.add(Count::ToldAbove);
            self.send(now, to, &Packet::Update(update), None, outbox);
        }
    }

    /// Carries out the program's verdict, and keeps or frees the payload's cell.
    #[inline]
    fn settle(&mut self, now: Nanos, verdict: Verdict, long: Option<LongPayload<'_>>, outbox: &mut Outbox) {
        match verdict {
            Verdict::Send { to, mut packet } => {
                if let Packet::Dispatch(task) = &mut packet {
                    if self.behind_by > Nanos(0) {
                        task.age = task.age.plus(self.behind_by);
                        task.budget = task.budget.after(self.behind_by);
                    }
                    if let Some(clients) = &self.clients {
                        task.client_at = clients.of(task.task);
                    }
                }
                self.send(now, to, &packet, long, outbox);
            }
            Verdict::Swept { to, packet, payload } => {
                if to == Endpoint::default() {
                    self.give_back(waiting(payload));
                } else {
                    self.send(now, to, &packet, waiting(payload), outbox);
                }
            }
            Verdict::Late { to, reject, payload, token } => {
                if to == Endpoint::default() {
                    self.give_back(waiting(payload));
                } else {
                    self.send(now, to, &Packet::Reject(reject), waiting(payload), outbox);
                }
                self.again(now, Circulating::note(token));
            }
            Verdict::Parked if self.keeps_waiting => self.keep(long),
            Verdict::Again(circulating) => {
                // A task that recirculates only with a note waits in the queue.
                if self.keeps_waiting || matches!(circulating.cargo, Cargo::Task(_)) {
                    self.keep(long);
                } else {
                    self.give_back(long);
                }
                self.again(now, circulating);
            }
            Verdict::Ahead(write) => self.write_ahead(now, &write, long, outbox),
            Verdict::Parked | Verdict::Drop(_) => self.give_back(long),
        }
    }

    /// Encodes a packet into the next datagram, with the bytes of its task.
    #[inline]
    fn send(
        &mut self,
        now: Nanos,
        to: Endpoint,
        packet: &Packet,
        long: Option<LongPayload<'_>>,
        outbox: &mut Outbox,
    ) {
        let mut spent = long.map(|long| long.cell);
        let body = match packet {
            Packet::Dispatch(dispatch) => {
                self.tally.add(Count::Dispatched);
                let payload = &dispatch.payload;
                // The payload that came with this pass may now wait, in the cell of the task that leaves.
                spent = None;
                if payload.is_large() && dispatch.place == Place::Here {
                    spent = Some(payload.handle);
                    let outside = long.and_then(|long| long.outside);
                    outside.unwrap_or_else(|| self.slab.bytes(payload.handle, payload.len))
                } else {
                    &[]
                }
            }
            Packet::Reply(_) => long.and_then(|long| long.outside).unwrap_or(&[]),
            Packet::Reject(reject) => {
                self.tally.rejected(reject.reason);
                &[]
            }
            Packet::Empty(_) => {
                spent = None;
                &[]
            }
            _ => &[],
        };
        // The packet cannot be longer than a datagram: all kinds have headers of equal length, and the
        // payload fitted when it came.
        let write = |out: &mut [u8]| encode(packet, body, out).unwrap_or(0);
        match self.behind {
            None => self.lag.send(now, to, packet, outbox, write),
            Some(forwards) => {
                self.lag.send(now, forwards, packet, outbox, |out| detour::put(to, out, write));
            }
        }
        if let Some(cell) = spent.filter(|cell| *cell != Handle::NONE) {
            self.slab.release(cell);
        }
    }

    /// Sends a task's bytes to servers: one copy for each, encoded as that server expects.
    fn write_ahead(
        &mut self,
        now: Nanos,
        write: &WriteAhead,
        long: Option<LongPayload<'_>>,
        outbox: &mut Outbox,
    ) {
        if let Some(LongPayload { cell, outside }) = long {
            let bytes = outside.unwrap_or_else(|| self.slab.bytes(cell, write.payload.len));
            for copy in 0..write.copies {
                let Some(replica) = self.program.replica(write, copy) else { continue };
                self.tally.add(Count::WrittenAhead);
                let due = self.lag.write_due(now);
                self.writes.send(&replica, [&slot_head(write.task), bytes], due, outbox);
            }
        }
        self.give_back(long);
    }

    fn again(&mut self, now: Nanos, again: Circulating) {
        self.tally.add(Count::Recirculated);
        if !self.lag.again(now, again) {
            self.again.push_back(again);
        }
    }

    /// Copies a task's bytes into its cell, where its DISPATCH will find them.
    #[inline]
    fn keep(&mut self, long: Option<LongPayload<'_>>) {
        if let Some(LongPayload { cell, outside: Some(bytes) }) = long {
            self.slab.fill(cell, bytes);
        }
    }

    fn give_back(&mut self, long: Option<LongPayload<'_>>) {
        if let Some(LongPayload { cell, .. }) = long.filter(|long| long.cell != Handle::NONE) {
            self.slab.release(cell);
        }
    }
}

/// The payload of a task that waited in the slab, if it has one.
fn waiting(cell: Handle) -> Option<LongPayload<'static>> {
    (cell != Handle::NONE).then_some(LongPayload { cell, outside: None })
}
