//! One run: clients, the queue with its control, and the cores, with the messages between them.

use core::cmp::Reverse;
use core::iter::Peekable;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::{BinaryHeap, VecDeque};

use sluice_stats::{Counts, Distribution, Gauges, Level, Mark, Observer, Outcome, Replied};
use sluice_testbed::{Testbed, WorkerTimes};
use sluice_wire::Nanos;
use sluice_workload::Request;

use super::breakwater::Credits;
use super::codel::CoDel;
use super::request::QueuedRequest;
use crate::queued_event::QueuedEvent;

/// The stop flag is read after so many events.
const STOP_EVERY: u32 = 1 << 14;
/// The shortest time between two looks at the pool, for testbeds whose ways take no time.
const LOOK_MIN: Nanos = Nanos::from_micros(1);

/// What keeps the queue short.
#[derive(Debug)]
pub(super) enum QueueControl {
    CoDel(CoDel),
    Credits(Credits),
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// A request arrives at the server; its client has so many more without a credit.
    Arrives(QueuedRequest, u64),
    /// A client's demand arrives at the server.
    Asks(u32, u64),
    /// A core has sent its reply.
    Free(u32),
    /// An answer or a refusal arrives at the client, with the credits that the client has from now on.
    Ends { of: QueuedRequest, is_refused: bool, credits: u64 },
    /// Credits arrive at a client.
    Credits(u32, u64),
    /// A client looks whether its first request has waited too long.
    Expires(u32),
    /// The server looks at its queue's delay.
    Look,
}

/// A client's requests without credits, and its credits.
#[derive(Clone, Debug, Default)]
struct CreditClient {
    held: VecDeque<QueuedRequest>,
    credits: u64,
    outstanding: u64,
}

impl CreditClient {
    /// The next request that has a credit, and how many more have none.
    fn next(&mut self) -> Option<(QueuedRequest, u64)> {
        let waiting = if self.outstanding < self.credits { self.held.pop_front()? } else { return None };
        self.outstanding += 1;
        Some((waiting, self.held.len() as u64))
    }
}

/// Clients, queue and cores in virtual time.
pub(super) struct OverloadRun<'o, O> {
    now: Nanos,
    control: QueueControl,
    costs: WorkerTimes,
    /// The delays from a client to the queue, and back.
    ways: [Nanos; 2],
    /// How often the server looks at its queue's delay.
    look_every: Nanos,
    /// The most requests that may wait.
    room: usize,
    clients: Vec<CreditClient>,
    turn: usize,
    queue: VecDeque<QueuedRequest>,
    idle: Vec<u32>,
    /// The request that each core serves, or served last.
    running: Vec<QueuedRequest>,
    event_queue: BinaryHeap<Reverse<QueuedEvent<Event>>>,
    entered: u64,
    /// Requests that have not ended.
    outstanding: u64,
    dropped: Vec<QueuedRequest>,
    woken: Vec<u32>,
    counts: Counts,
    opened: Counts,
    is_open: bool,
    /// The waits in the queue, if goodput is asked for.
    waits: Option<Distribution>,
    waiting: Level,
    serving: Level,
    observer: &'o mut O,
}

impl<'o, O: Observer> OverloadRun<'o, O> {
    pub(super) fn new(
        testbed: &Testbed,
        control: QueueControl,
        waits: Option<Distribution>,
        observer: &'o mut O,
    ) -> Self {
        Self {
            now: Nanos(0),
            control,
            costs: testbed.worker,
            ways: [testbed.way_in(), testbed.way_back()],
            look_every: testbed.zero_load().max(LOOK_MIN),
            room: testbed.queue as usize,
            clients: vec![CreditClient::default(); testbed.clients.into()],
            turn: 0,
            queue: VecDeque::new(),
            idle: (0..testbed.workers).rev().collect(),
            running: vec![QueuedRequest::default(); testbed.workers as usize],
            event_queue: BinaryHeap::new(),
            entered: 0,
            outstanding: 0,
            dropped: Vec::new(),
            woken: Vec::new(),
            counts: Counts::default(),
            opened: Counts::default(),
            is_open: false,
            waits,
            waiting: Level::default(),
            serving: Level::default(),
            observer,
        }
    }

    /// Serves requests until there are no more or the observer is complete; `None` if it is stopped.
    pub(super) fn drive(
        &mut self,
        mut requests: Peekable<impl Iterator<Item = Request>>,
        stop: &AtomicBool,
    ) -> Option<(Counts, Gauges)> {
        let (mut closed, mut turns) = (None, 0_u32);
        if matches!(self.control, QueueControl::Credits(_)) {
            self.enter(self.look_every, Event::Look);
        }
        while !self.observer.is_complete() {
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(STOP_EVERY) && stop.load(Ordering::Relaxed) {
                return None;
            }
            match self.turn(&mut requests) {
                ControlFlow::Continue(so_far) => closed = so_far.or(closed),
                ControlFlow::Break(()) => break,
            }
        }
        Some(closed.unwrap_or_else(|| self.so_far()))
    }

    /// Carries out the next event. Returns the counts so far if the measured span ends with it; ends the
    /// loop when every request has ended.
    fn turn(
        &mut self,
        requests: &mut Peekable<impl Iterator<Item = Request>>,
    ) -> ControlFlow<(), Option<(Counts, Gauges)>> {
        let due = self.event_queue.peek().map(|Reverse(due)| due.at);
        if let Some(request) = requests.next_if(|request| due.is_none_or(|due| request.at < due)) {
            self.now = request.at;
            return ControlFlow::Continue(self.offer(&request));
        }
        let has_more = self.outstanding > 0 || requests.peek().is_some();
        match self.event_queue.pop().filter(|_| has_more) {
            Some(Reverse(QueuedEvent { at, event, .. })) => {
                self.now = at;
                self.on_event(event);
                ControlFlow::Continue(None)
            }
            None => ControlFlow::Break(()),
        }
    }

    /// A request goes to the next client. Returns the counts so far if the measured span ends with it.
    fn offer(&mut self, request: &Request) -> Option<(Counts, Gauges)> {
        let mut closed = None;
        match self.observer.sent(request.at) {
            Mark::None => {}
            Mark::Opened => self.open(),
            Mark::Closed => closed = Some(self.close()),
        }
        let client = self.turn as u32;
        self.turn = (self.turn + 1) % self.clients.len();
        self.outstanding += 1;
        let Request { at: due, service, class, .. } = *request;
        let waiting = QueuedRequest { due, service, class, client, ..QueuedRequest::default() };
        match &self.control {
            QueueControl::CoDel(_) => self.send(self.now + self.ways[0], Event::Arrives(waiting, 0)),
            QueueControl::Credits(Credits { wait, .. }) => {
                let expires = self.now + *wait;
                let held = &mut self.clients[client as usize].held;
                held.push_back(waiting);
                let is_first = held.len() == 1;
                self.submit(client);
                let demand = self.demand(client);
                if demand > 0 {
                    self.enter(expires, Event::Expires(client));
                }
                if is_first && demand > 0 {
                    self.send(self.now + self.ways[0], Event::Asks(client, demand));
                }
            }
        }
        closed
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Arrives(waiting, demand) => {
                self.arrive(QueuedRequest { arrived: self.now, ..waiting }, demand);
            }
            Event::Asks(client, demand) => {
                if let QueueControl::Credits(credits) = &mut self.control
                    && let Some(credits) = credits.asks(client, demand)
                {
                    self.send(self.now + self.ways[1], Event::Credits(client, credits));
                }
            }
            Event::Free(core) => self.free(core),
            Event::Ends { of, is_refused, credits } => self.end(&of, is_refused, credits),
            Event::Credits(client, credits) => {
                self.clients[client as usize].credits = credits;
                self.submit(client);
            }
            Event::Expires(client) => self.expire(client),
            Event::Look => self.look(),
        }
    }

    /// A request arrives in the queue, or is refused.
    fn arrive(&mut self, waiting: QueuedRequest, demand: u64) {
        let delay = self.delay();
        let is_let_in = match &mut self.control {
            QueueControl::CoDel(_) => true,
            QueueControl::Credits(credits) => credits.arrives(waiting.client, demand, delay),
        };
        if !is_let_in || self.queue.len() >= self.room {
            self.answer(waiting, true);
        } else if let Some(core) = self.idle.pop() {
            self.start(core, waiting);
        } else {
            self.waiting.enter(self.now);
            self.queue.push_back(waiting);
        }
    }

    /// A core has sent its reply, and takes the next request.
    fn free(&mut self, core: u32) {
        self.serving.leave(self.now);
        self.answer(self.running[core as usize], false);
        let before = self.queue.len();
        let next = match &mut self.control {
            QueueControl::CoDel(codel) => codel.take(self.now, &mut self.queue, &mut self.dropped),
            QueueControl::Credits(_) => self.queue.pop_front(),
        };
        (self.queue.len()..before).for_each(|_| self.waiting.leave(self.now));
        while let Some(waiting) = self.dropped.pop() {
            self.answer(waiting, true);
        }
        match next {
            Some(waiting) => self.start(core, waiting),
            None => self.idle.push(core),
        }
    }

    /// A core receives the request, serves it, and replies.
    fn start(&mut self, core: u32, of: QueuedRequest) {
        self.serving.enter(self.now);
        let waited = self.now.since(of.arrived);
        if let Some(waits) = self.waits.as_mut().filter(|_| self.is_open) {
            waits.record(waited.0);
        }
        self.running[core as usize] = QueuedRequest { waited, ..of };
        let replied = self.now + self.costs.receive + of.service + self.costs.send;
        self.enter(replied, Event::Free(core));
    }

    /// An answer or a refusal leaves for the client, and tells it its credits.
    fn answer(&mut self, of: QueuedRequest, is_refused: bool) {
        let credits = match &mut self.control {
            QueueControl::CoDel(_) => 0,
            QueueControl::Credits(credits) => credits.answered(of.client),
        };
        self.send(self.now + self.ways[1], Event::Ends { of, is_refused, credits });
    }

    /// An answer or a refusal is at the client.
    fn end(&mut self, of: &QueuedRequest, is_refused: bool, credits: u64) {
        self.outstanding -= 1;
        let QueuedRequest { due, service, class, waited, .. } = *of;
        if is_refused {
            self.observer.failed(due, Outcome::Refused);
        } else {
            let (intended, at) = (due, self.now);
            self.observer.done(&Replied { class, intended, at, service, served: service, waited });
        }
        if let QueueControl::Credits(_) = self.control {
            let client = &mut self.clients[of.client as usize];
            client.outstanding -= 1;
            client.credits = credits;
            self.submit(of.client);
        }
    }

    /// A client sends what it has credits for.
    fn submit(&mut self, client: u32) {
        while let Some((waiting, demand)) = self.clients[client as usize].next() {
            self.send(self.now + self.ways[0], Event::Arrives(waiting, demand));
        }
    }

    /// A client gives up what has waited too long for a credit.
    fn expire(&mut self, client: u32) {
        let QueueControl::Credits(Credits { wait, .. }) = self.control else { return };
        let held = &mut self.clients[client as usize].held;
        let had = held.len();
        while let Some(waiting) = held.pop_front_if(|first| first.due + wait <= self.now) {
            self.outstanding -= 1;
            self.observer.failed(waiting.due, Outcome::PushedBack);
        }
        if had > 0 && held.is_empty() {
            self.send(self.now + self.ways[0], Event::Asks(client, 0));
        }
    }

    fn look(&mut self) {
        let delay = self.delay();
        let mut woken = core::mem::take(&mut self.woken);
        if let QueueControl::Credits(credits) = &mut self.control {
            credits.look(delay, &mut woken);
        }
        for client in woken.drain(..) {
            self.send(self.now + self.ways[1], Event::Credits(client, 1));
        }
        self.woken = woken;
        self.enter(self.now + self.look_every, Event::Look);
    }

    fn demand(&self, client: u32) -> u64 {
        self.clients[client as usize].held.len() as u64
    }

    /// The age of the oldest request in the queue.
    fn delay(&self) -> Nanos {
        self.queue.front().map_or(Nanos(0), |first| self.now.since(first.arrived))
    }

    fn send(&mut self, at: Nanos, event: Event) {
        self.counts.packets += 1;
        self.counts.passes += 1;
        self.enter(at, event);
    }

    fn enter(&mut self, at: Nanos, event: Event) {
        self.event_queue.push(Reverse(QueuedEvent { at, entered: self.entered, event }));
        self.entered += 1;
    }

    fn open(&mut self) {
        self.is_open = true;
        self.opened = self.counts;
        self.waiting.open(self.now);
        self.serving.open(self.now);
    }

    fn close(&mut self) -> (Counts, Gauges) {
        self.is_open = false;
        self.so_far()
    }

    fn so_far(&self) -> (Counts, Gauges) {
        let cores = self.idle.len() as f64 + self.serving.now() as f64;
        let gauges = Gauges {
            switch_queue_mean: Some(self.waiting.mean(self.now)),
            switch_queue_max: Some(self.waiting.max() as f64),
            switch_wait_p99: self.waits.as_ref().map(|waits| waits.quantile(0.99) as f64),
            idle_share: Some(1.0 - self.serving.mean(self.now) / cores),
            ..Gauges::default()
        };
        (self.counts.since(&self.opened), gauges)
    }
}
