//! One rack, packet by packet: a [`World`] whose nodes are the switch's program and the workers' and the
//! clients' state machines as they run on the wire.
//!
//! The nodes are those of fault runs (`nodes`).
//!
//! The model is `docs/manual/simulator.md`: one way over each link, a pass through the pipeline, a packet's
//! cost at a worker's core. Packets are header fields and never become bytes. Everyone registers with the
//! real controller before the run begins; what may go wrong there is the fault runs' affair. What is left
//! out: congestion on links but those to servers, the time that a client takes.

#[cfg(test)]
mod across;
mod adaptation;
mod adapting;
mod below;
mod books;
mod clients;
mod controller;
mod cores;
mod early;
mod guess;
pub(crate) mod meter;
mod nodes;
pub(crate) mod packet_loss;
mod places;
mod servers;
pub(crate) mod setup;
pub(crate) mod software;
mod stage;
mod stalls;
mod switch;
#[cfg(test)]
mod two;
mod workers;
#[cfg(test)]
mod wrong;

use std::sync::atomic::{AtomicBool, Ordering};

use sluice_fabric::FabricError;
use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};

use crate::error::SimError;
use crate::point::Point;
use crate::stats::{Counts, Depths, Gauges, Observer};
use below::Below;
use nodes::{Nodes, Staged};
use packet_loss::PacketLoss;
use stage::{Places, Stage};

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
    while !rack.run(EVENTS_A_LOOK)? {
        if stop.load(Ordering::Relaxed) {
            return Err(SimError::Stopped);
        }
    }
    let (observer, counts, mut gauges) = rack.stage.meter.finish(rack.stage.world.now);
    let servers = &rack.nodes.workers.servers;
    gauges.ring_bytes = servers.ring_bytes().map(|bytes| bytes as f64);
    if let Some(below) = &rack.stage.below {
        gauges = gauges.or(&below.gauges(servers));
    }
    let depths = rack.nodes.workers.adaptation.map_or_else(Vec::new, |adaptation| adaptation.into_log());
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
struct Rack<O> {
    stage: Stage<O>,
    nodes: Nodes,
}

impl<O: Observer> Rack<O> {
    fn new(point: &Point, choice: &Choice, replication: u32, observer: O) -> Self {
        Self::with_program(point, choice, replication, observer, |config| choice.build(config))
    }

    /// A rack with the hosts that go with `choice`, and a program of the caller's.
    fn with_program(
        point: &Point,
        choice: &Choice,
        replication: u32,
        observer: O,
        program: impl FnOnce(Config) -> Box<dyn Program>,
    ) -> Self {
        let testbed = &point.testbed;
        let mut stage = Stage::new(observer, testbed.workers, testbed.has_faults());
        stage.meter.sees_waits = point.slices.is_none() && matches!(point.suits(), Ok(None));
        stage.world.network.injector =
            PacketLoss::new(&testbed.faults, point.seed, replication).map(Box::new);
        let below = Below::of(testbed, point.seed, replication).expect("the point was checked");
        let nodes = Nodes::new(&mut stage, Places::ALONE, point, choice, replication, program);
        Self { stage, nodes }.over(below)
    }

    /// The same rack with this fabric below it, before anything has happened.
    fn over(mut self, below: Option<Below>) -> Self {
        if below.is_some() {
            self.nodes.workers.servers.wait_for_writes();
        }
        self.stage.below = below.map(Box::new);
        self
    }

    /// Lets so many events happen; says whether the run is over.
    fn run(&mut self, events: u32) -> Result<bool, SimError> {
        let is_above = self.stage.below.is_some();
        for _ in 0..events {
            // Who polls, probes or adapts goes on for ever.
            if self.stage.meter.observer.is_complete() || self.nodes.clients.have_ended() {
                return Ok(true);
            }
            if is_above {
                self.catch_up().map_err(|why| SimError::Point(why.to_string()))?;
            }
            let Some((at, what)) = self.stage.world.next() else { return Ok(true) };
            Staged { nodes: &mut self.nodes, stage: &mut self.stage }.happens(at, what);
            if cfg!(debug_assertions) {
                self.nodes.check(&self.stage.books);
            }
        }
        Ok(false)
    }

    /// What happens in the fabric before the rack's next event.
    #[cold]
    fn catch_up(&mut self) -> Result<(), FabricError> {
        let Stage { world, meter, below, .. } = &mut self.stage;
        let (Some(below), servers) = (below, &mut self.nodes.workers.servers) else { return Ok(()) };
        below.looks(meter.is_open, servers);
        meter.counts.lost_packets += below.catch_up(world, servers)?;
        Ok(())
    }
}
