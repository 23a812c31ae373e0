//! The flows between hosts: each host begins flows as a Poisson process, and draws the other host of each
//! uniformly.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

use crate::error::{FabricError, require};
use crate::flow::FlowSpec;
use crate::ids::HostId;
use crate::sizes::FlowSizes;
use crate::topology::Topology;
use crate::wiring::Wiring;

/// The traffic that a fabric has to carry.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    pub sizes: FlowSizes,
    /// What hosts send on average, as a share of their links, without headers and answers.
    pub load: f64,
    /// How many flows begin.
    pub flows: u64,
}

impl Traffic {
    /// The load that fills the busiest link between switches of a topology; above 1 if hosts cannot fill
    /// it.
    pub fn most(topology: &Topology) -> Result<f64, FabricError> {
        Ok(1.0 / Wiring::new(topology)?.busiest_link_share())
    }

    /// Its flows, in the order in which they begin.
    pub fn arrivals(
        &self,
        topology: &Topology,
        seed: u64,
        replication: u32,
    ) -> Result<FlowArrivals, FabricError> {
        let (load, plan) = (self.load, Wiring::new(topology)?);
        require(load > 0.0 && load <= 1.0, "the load", load, "more than 0, at most 1")?;
        let share = load * plan.busiest_link_share();
        if share > 1.0 {
            return Err(FabricError::Load { load, share, most: load / share });
        }
        let hosts = &plan.sockets[..plan.hosts as usize];
        let endless = hosts.iter().any(|socket| socket.speed.gbps.is_infinite());
        require(!endless, "the rate of a host that begins flows", "without a limit", "one in Gb/s")?;
        let mut dice = Dice::named(seed, "flows", replication);
        let mean_ns = |host: usize| self.sizes.mean() * 8.0 / (load * plan.sockets[host].speed.gbps);
        let means: Vec<f64> = (0..plan.hosts as usize).map(mean_ns).collect();
        let first = |(host, mean): (usize, &f64)| Reverse((gap(&mut dice, *mean), host as u32));
        Ok(FlowArrivals {
            next: means.iter().enumerate().map(first).collect(),
            means,
            sizes: self.sizes.clone(),
            left: self.flows,
            dice,
        })
    }
}

/// The flows of a [`Traffic`].
#[derive(Debug)]
pub struct FlowArrivals {
    /// When each host begins its next flow.
    next: BinaryHeap<Reverse<(u64, u32)>>,
    /// For each host the mean gap between its flows, in nanoseconds.
    means: Vec<f64>,
    sizes: FlowSizes,
    left: u64,
    dice: Dice,
}

impl Iterator for FlowArrivals {
    type Item = FlowSpec;

    fn next(&mut self) -> Option<FlowSpec> {
        self.left = self.left.checked_sub(1)?;
        let mut next = self.next.peek_mut()?;
        let Reverse((at, from)) = *next;
        next.0.0 = at + gap(&mut self.dice, self.means[from as usize]);
        let other = self.dice.below(self.means.len() as u64 - 1) as u32;
        let to = HostId(other + u32::from(other >= from));
        Some(FlowSpec { at: Nanos(at), from: HostId(from), to, bytes: self.sizes.draw(&mut self.dice) })
    }
}

fn gap(dice: &mut Dice, mean_ns: f64) -> u64 {
    (dice.exponential() * mean_ns).round() as u64
}
