//! One rack, packet by packet: a [`World`] whose nodes are the switch's program and the workers' and the
//! clients' state machines as they run on the wire.
//!
//! The model is `docs/simulator.md`: one way over each link, a pass through the pipeline, a packet's cost at
//! a worker's core. Packets are header fields and never become bytes. Everyone registers with the real
//! controller before the run begins; what may go wrong there is the fault runs' affair. What is left out:
//! congestion on links but those to servers, the time that a client takes.

mod adaptation;
mod adapting;
mod books;
mod clients;
mod controller;
mod early;
mod guess;
mod meter;
mod nodes;
mod servers;
mod setup;
mod stage;
mod stalls;
mod switch;
#[cfg(test)]
mod two;
mod workers;
#[cfg(test)]
mod wrong;

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};

use crate::dice::Dice;
use crate::error::SimError;
use crate::point::Point;
use crate::stats::{Counts, Depths, Gauges, Observer};
use crate::testbed::Testbed;
use crate::world::{Address, AlarmId, ClockId, Fates, Inhabited, Mail, World};
use adaptation::Adaptation;
use books::Books;
use meter::Meter;
use nodes::Nodes;
use stage::{Cue, Places, Stage};

/// Events between two looks at whether the run is to stop.
const EVENTS_A_LOOK: u32 = 1 << 14;

/// Runs one replication of a point under a switch's program, until `observer` has seen enough or no request
/// is left.
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
    let (observer, counts, mut gauges) = rack.stage.meter.finish(rack.stage.world.now);
    gauges.ring_bytes = rack.nodes.workers.servers.ring_bytes().map(|bytes| bytes as f64);
    let depths = rack.stage.adaptation.map_or_else(Vec::new, |adaptation| adaptation.into_log());
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
    testbed: &'p Testbed,
    stage: Stage<O>,
    nodes: Nodes,
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
        let testbed = &point.testbed;
        let mut world = World::new(testbed.workers);
        world.network.fates = Fates::new(&testbed.faults, point.seed, replication).map(Box::new);
        let places = Places::ALONE;
        let nodes = Nodes::new(&mut world, places, point, choice, replication, program);
        let adaptation = |asked| Box::new(Adaptation::new(asked, &nodes.registrations, testbed));
        let stage = Stage {
            world,
            meter: Meter::new(observer, testbed.workers),
            books: Books::new(testbed.has_faults()),
            adaptation: choice.adaptive().map(adaptation),
        };
        let mut rack = Self { testbed, stage, nodes };
        rack.begin(&mut Dice::named(point.seed, "phases", replication));
        rack
    }

    fn begin(&mut self, phases: &mut Dice) {
        self.nodes.begin(&mut self.stage, self.testbed, phases);
        if self.stage.adaptation.is_some() {
            self.begin_adapting();
        }
    }

    /// Lets so many events happen; says whether the run is over.
    fn run(&mut self, events: u32) -> bool {
        for _ in 0..events {
            if self.stage.meter.observer.is_complete() {
                return true;
            }
            if !self.step() {
                return true;
            }
            if cfg!(debug_assertions) {
                self.nodes.check(&self.stage.books);
            }
        }
        false
    }
}

impl<O: Observer> Inhabited<Cue> for Rack<'_, O> {
    #[inline]
    fn world(&mut self) -> &mut World<Cue> {
        &mut self.stage.world
    }

    #[expect(clippy::inline_always, reason = "each event pays for a call that stays one")]
    #[inline(always)]
    fn mail(&mut self, to: Address, mail: Mail) {
        self.nodes.mail(&mut self.stage, to, mail);
    }

    #[inline]
    fn alarm(&mut self, alarm: AlarmId) {
        self.nodes.workers.ends(&mut self.stage, alarm);
    }

    #[inline]
    fn clock(&mut self, _: ClockId) {
        self.nodes.clients.request(&mut self.stage);
    }

    fn cue(&mut self, cue: Cue) {
        match cue {
            Cue::Host(at, what) => self.nodes.cue(&mut self.stage, at, what),
            Cue::Adapts => self.adapt(),
            Cue::Controls => self.controls(),
            Cue::Step => self.carry_out_step(),
        }
    }
}
