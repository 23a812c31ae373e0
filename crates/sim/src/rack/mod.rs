//! One rack, packet by packet: the switch's program, the workers' and the clients' state machines as they run on the
//! wire, joined by a network in virtual time.
//!
//! The model is `docs/simulator.md`: one way over each link, a pass through the pipeline, a packet's cost at a worker's
//! core. Packets are header fields and never become bytes. What is left out: the controller (everyone is registered
//! when the run begins; the fault runs are about it), congestion on links but those to servers, the time that a client
//! takes.

mod adaptation;
mod books;
mod clients;
mod early;
mod ends;
mod fates;
mod lane;
mod links;
mod meter;
mod servers;
mod setup;
mod stalls;
mod switch;
mod workers;
#[cfg(test)]
mod wrong;

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};
use sluice_wire::tables::Feed;
use sluice_wire::{Nanos, Packet};

use crate::dice::Dice;
use crate::error::SimError;
use crate::point::Point;
use crate::stats::{Counts, Depths, Gauges, Observer};
use crate::testbed::Testbed;
use crate::workload::{Request, Requests};
use adaptation::Adaptation;
use books::Books;
use clients::Clients;
use early::Estimates;
use fates::Fates;
use links::{Due, Links, PacketId, Source};
use meter::Meter;
use servers::Servers;
use setup::Plan;
use stalls::Cores;
use switch::SwitchNode;
use workers::Workers;

/// Events between two looks at whether the run is to stop.
const EVENTS_A_LOOK: u32 = 1 << 14;

/// Runs one replication of a point under a switch's program, until `observer` has seen enough or no request is
/// left.
pub(crate) fn replicate<O: Observer>(
    point: &Point,
    choice: &Choice,
    replication: u32,
    observer: O,
    stop: &AtomicBool,
) -> Result<Ran<O>, SimError> {
    let mut rack = Rack::new(point, choice, replication, observer);
    while !rack.run(EVENTS_A_LOOK) {
        if stop.load(Ordering::Relaxed) {
            return Err(SimError::Stopped);
        }
    }
    let (observer, counts, mut gauges) = rack.meter.finish(rack.now);
    if rack.servers.write() {
        gauges.ring_bytes = Some(rack.servers.ring_bytes() as f64);
    }
    let depths = rack.adaptation.map_or_else(Vec::new, |adaptation| adaptation.into_log());
    Ok(Ran { observer, counts, gauges, depths })
}

/// What a run came to.
pub(crate) struct Ran<O> {
    pub(crate) observer: O,
    pub(crate) counts: Counts,
    pub(crate) gauges: Gauges,
    /// What became of depths, where they are found at run time.
    pub(crate) depths: Vec<Depths>,
}

/// One run.
struct Rack<'p, O> {
    now: Nanos,
    testbed: &'p Testbed,
    plan: Plan,
    links: Links,
    requests: Requests,
    next: Option<Request>,
    switch: SwitchNode,
    servers: Servers,
    workers: Workers,
    clients: Clients,
    meter: Meter<O>,
    books: Books,
    /// Where depths are found at run time.
    adaptation: Option<Box<Adaptation>>,
}

impl<'p, O: Observer> Rack<'p, O> {
    fn new(point: &'p Point, choice: &Choice, replication: u32, observer: O) -> Self {
        Self::with_program(point, choice, replication, observer, |config| choice.build(config))
    }

    /// A rack with the hosts that go with `choice`, and a program of the caller's.
    fn with_program(
        point: &'p Point,
        choice: &Choice,
        replication: u32,
        observer: O,
        program: impl FnOnce(Config) -> Box<dyn Program>,
    ) -> Self {
        let (testbed, seed) = (&point.testbed, point.seed);
        let plan = Plan::new(point, choice, replication);
        let mut program = program(plan.config());
        plan.set_up(&mut *program);
        let servers = plan.servers(testbed);
        plan.set_up_servers(&servers, &mut *program);
        let client_settings = setup::client_settings(testbed);
        let has_faults = testbed.has_faults();
        let machines = plan.clients(&client_settings);
        let mut rack = Self {
            now: Nanos(0),
            testbed,
            links: Links::new(testbed.workers, Fates::new(&testbed.faults, seed, replication)),
            requests: point.requests(replication),
            next: None,
            switch: SwitchNode::new(program, testbed.switch),
            servers,
            workers: Workers::new(
                testbed,
                setup::worker_settings(testbed, choice),
                Cores::new(testbed, seed, replication),
                if choice.fetches() { testbed.fetch() } else { Nanos(0) },
                has_faults || waits_between_polls(plan.feed),
                choice.early().map(|early| Estimates::new(early, seed, replication)),
            ),
            clients: Clients::new(machines, plan.slices(), client_settings, has_faults),
            meter: Meter::new(observer, testbed.workers),
            books: Books::new(has_faults),
            adaptation: choice.adaptive().map(|asked| Box::new(Adaptation::new(asked, &plan, testbed))),
            plan,
        };
        rack.begin(seed, replication);
        rack
    }

    /// Tokens go out at once; those who poll begin at random times within a round trip.
    fn begin(&mut self, seed: u64, replication: u32) {
        let mut dice = Dice::named(seed, "phases", replication);
        let longest = if self.plan.is_polled() { self.testbed.refill() } else { Nanos(0) };
        for worker in 0..self.testbed.workers {
            self.links.at(Nanos(dice.below(longest.0 + 1)), Due::WorkerStarts(worker));
        }
        self.draw_request();
        if let Some(adaptation) = &self.adaptation {
            self.links.at(adaptation.deadline(), Due::Adapts);
        }
    }

    /// Lets so many events happen; says whether the run is over.
    fn run(&mut self, events: u32) -> bool {
        for _ in 0..events {
            let (source, at) = self.links.next();
            if at == Nanos(u64::MAX) || self.meter.observer.is_complete() {
                return true;
            }
            debug_assert!(at >= self.now, "time goes back");
            self.now = at;
            self.happen(source);
            if cfg!(debug_assertions) {
                let (outstanding, held_back) = (self.clients.outstanding(), self.clients.held_back());
                self.books.check(outstanding, held_back, self.switch.waiting());
            }
        }
        false
    }

    #[inline]
    fn happen(&mut self, source: Source) {
        match source {
            Source::Request => self.request(),
            Source::Ends => {
                let worker = self.links.next_end();
                self.ends(worker);
            }
            Source::Rounds => {
                if let Some(round) = self.links.take_round() {
                    self.round(round);
                }
            }
            Source::Agenda => self.due(),
            Source::Submits | Source::Tokens | Source::Workers | Source::Clients => {
                if let Some(packet) = self.links.take(source) {
                    self.arrive(source, packet);
                }
            }
        }
    }

    /// A packet comes to the end of a link.
    #[inline]
    fn arrive(&mut self, link: Source, packet: PacketId) {
        match link {
            Source::Workers => self.at_worker(packet),
            Source::Clients => self.at_client(packet),
            _ => self.at_switch(packet),
        }
    }

    fn due(&mut self) {
        match self.links.take_due() {
            Some(Due::WorkerStarts(worker)) => self.start_worker(worker),
            Some(Due::WorkerTick(worker)) => self.tick_worker(worker),
            Some(Due::WorkerEarly(worker)) => self.early_token(worker),
            Some(Due::ClientTick(client)) => self.tick_client(client),
            Some(Due::Adapts) => self.adapt(),
            Some(Due::Opens(worker)) => self.opens(worker),
            Some(Due::Stray(link, packet)) => self.arrive(link, packet),
            None => {}
        }
    }

    /// The request that is due is offered, and the next one drawn.
    #[inline]
    fn request(&mut self) {
        let due = self.next;
        self.draw_request();
        if let Some(request) = due {
            self.offer(request);
        }
    }

    #[inline]
    fn draw_request(&mut self) {
        self.next = self.requests.next();
        self.links.request_at(self.next.map_or(Nanos(u64::MAX), |request| request.at));
    }

    /// Puts a packet on a link, to arrive then.
    #[inline]
    fn send(&mut self, link: Source, at: Nanos, packet: &Packet) {
        self.meter.counts.packets += 1;
        let copies = self.links.send(link, at, packet);
        self.meter.counts.lost_packets += u64::from(copies == 0);
    }
}

/// Whether a worker has to wake up by itself to ask again.
const fn waits_between_polls(feed: Feed) -> bool {
    matches!(feed, Feed::Polls { every } if every.0 > 0)
}
