//! The switches of a live rack, each with its controller and each on a thread of its own: one switch, or a
//! spine and a leaf for each rack below it.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use sluice_control::Tier;
use sluice_net::udp::{Lateness, Waiting};
use sluice_rpc::Remote;
use sluice_rpc::registrar::Controllers;
use sluice_support::controller_caller::{ControllerCaller, rack_now};
use sluice_support::fail::{Failure, Outcome};
use sluice_switch::Config;
use sluice_switch::horus::FabricReading;
use sluice_switchd::controller::{ControllerOptions, Leaf, LeafOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{LocalSwitch, RpcServer};
use sluice_switchd::switch::{Count, Delays, SwitchConfig, SwitchHandle, SwitchPlace};
use sluice_wire::Nanos;

use super::rack_network::{RackNetwork, RunningSwitch};

/// How often the spine is asked whether it knows all workers.
const ASK_EVERY: Duration = Duration::from_millis(20);

/// All switches of a live rack.
pub(super) struct LiveSwitches {
    /// The only switch, or the spine.
    first: RunningSwitch,
    controller: RpcServer,
    racks: Vec<LiveRackBelow>,
}

/// A rack below a spine.
struct LiveRackBelow {
    switch: RunningSwitch,
    leaf: Leaf,
    workers: Range<u32>,
}

impl LiveSwitches {
    /// Starts all switches; `config` and `plan` describe a single switch for all workers.
    pub(super) fn start(
        place: &RackNetwork,
        below: Option<&RacksBelow>,
        config: &SwitchConfig,
        plan: impl Fn(sluice_wire::Endpoint) -> sluice_control::Plan,
    ) -> Outcome<Self> {
        let start = |config: &SwitchConfig, tier: Tier| {
            let switch = place.start_switch(config)?;
            let local = switch.handle.local().into();
            let options = ControllerOptions {
                at: place.switch_at(),
                guard: place.guard(),
                plan: sluice_control::Plan { tier, ..plan(local) },
                seed: sluice_support::seed::random_seed()?,
                switch: SwitchLink::Here(LocalSwitch::new(switch.handle.clone(), local)),
                standby: false,
                spine: 0,
            };
            Outcome::Ok((switch, options))
        };
        let Some(below) = below else {
            let (first, options) = start(config, Tier::Rack)?;
            let controller = place.at_switch(|| start_controller(options))??;
            return Ok(Self { first, controller, racks: Vec::new() });
        };
        let (first, options) = start(&below.spine(config), Tier::Spine)?;
        let mut all =
            Self { first, controller: place.at_switch(|| start_controller(options))??, racks: Vec::new() };
        for (workers, number) in below.blocks().zip(1..) {
            let (switch, options) = start(&below.leaf(config, &workers), Tier::Leaf)?;
            let leaf = LeafOptions {
                rack: options,
                name: format!("rack-{number}"),
                at: switch.handle.local().into(),
                life: sluice_support::seed::random_bits()?,
                above: Controllers::from(all.controller()?),
                tables: switch.handle.tables(),
            };
            let leaf = place.at_switch(|| Leaf::start(leaf))??;
            all.racks.push(LiveRackBelow { switch, leaf, workers });
        }
        Ok(all)
    }

    /// Where clients register.
    pub(super) fn controller(&self) -> Outcome<Remote> {
        Ok(Remote::new(&self.controller.local().to_string(), None)?)
    }

    /// The address of a worker's controller.
    pub(super) fn controller_of(&self, worker: u32) -> String {
        let rack = self.racks.iter().find(|rack| rack.workers.contains(&worker));
        rack.map_or(&self.controller, |rack| rack.leaf.server()).local().to_string()
    }

    /// Waits until the spine knows all workers below its leaves.
    pub(super) fn wait_for_leaves(&self, patience: Instant) -> Outcome<()> {
        let all = self.racks.last().map_or(0, |rack| rack.workers.end);
        let asker = ControllerCaller::new(self.controller()?)?;
        loop {
            let leaves = asker.status().map_or_else(|_| Vec::new(), |status| rack_now(&status).workers);
            let known: u32 =
                leaves.iter().filter(|leaf| leaf.phase == "open").map(|leaf| leaf.stands_for).sum();
            if self.racks.is_empty() || known == all {
                return Ok(());
            }
            if Instant::now() > patience {
                return Err(Failure::broken(format!("the spine knows of {known} workers of {all} only")));
            }
            thread::sleep(ASK_EVERY);
        }
    }

    /// The sum of a counter over all switches.
    pub(super) fn counted(&self, count: Count) -> u64 {
        self.handles().map(|switch| switch.counters().of(count)).sum()
    }

    /// How late packets left the switches.
    pub(super) fn lateness(&self) -> Lateness {
        self.handles().map(|switch| switch.counters().late()).fold(Lateness::default(), Lateness::and)
    }

    /// Stops the switches, leaves first.
    pub(super) fn end(self) -> Outcome<()> {
        for LiveRackBelow { switch, leaf, .. } in self.racks {
            drop(leaf);
            end(switch)?;
        }
        drop(self.controller);
        end(self.first)
    }

    fn handles(&self) -> impl Iterator<Item = &SwitchHandle> {
        let below = self.racks.iter().map(|rack| &rack.switch.handle);
        std::iter::once(&self.first.handle).chain(below)
    }
}

fn end(switch: RunningSwitch) -> Outcome<()> {
    switch.handle.stop();
    let ended = switch.thread.join();
    Ok(ended.map_err(|_| Failure::broken("the switch's thread panicked; see above"))??)
}

/// The racks below a spine in a sweep.
pub(super) struct RacksBelow {
    /// How Horus is read on spine and leaves.
    pub(super) reading: FabricReading,
    /// The number of workers in each rack.
    pub(super) sizes: Vec<u32>,
    /// The one-way delay between spine and leaf, dilated, wherever the leaf runs.
    pub(super) hop: Nanos,
    /// The one-way delay between leaf and worker, dilated.
    pub(super) link: Nanos,
}

impl RacksBelow {
    /// Each rack's workers, by their numbers.
    fn blocks(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        self.sizes.iter().scan(0, |next, size| {
            let first = *next;
            *next += size;
            Some(first..*next)
        })
    }

    /// The spine's settings. Switches that share a core must not spin.
    fn spine(&self, config: &SwitchConfig) -> SwitchConfig {
        let leaves = u16::try_from(self.sizes.len()).unwrap_or(u16::MAX);
        SwitchConfig {
            size: Config { workers: leaves.saturating_mul(config.size.slices), ..config.size },
            delays: Delays { worker: self.hop, ..config.delays },
            place: SwitchPlace::Spine(self.reading),
            waiting: Waiting::Block,
            ..config.clone()
        }
    }

    /// The settings of the leaf of these workers. The spine delays packets by the link between them.
    fn leaf(&self, config: &SwitchConfig, workers: &Range<u32>) -> SwitchConfig {
        let workers = u16::try_from(workers.len()).unwrap_or(u16::MAX);
        SwitchConfig {
            size: Config { workers, clients: 1, replay_cells: 1, ..config.size },
            delays: Delays { client: Nanos(0), worker: self.link, ..config.delays },
            place: SwitchPlace::Leaf(self.reading),
            waiting: Waiting::Block,
            ..config.clone()
        }
    }
}
