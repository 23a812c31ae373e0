//! Flags that override a plan: the rack runs by the changed plan.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use sluice_net::client::deadline_default;
use sluice_netem::Rates;
use sluice_sim::Within;
use sluice_wire::Nanos;

use super::check;
use super::parts::{Arrivals, Plan, RacksPlan, state_in};
use super::runs_live::{FABRIC_POLICY, live_program};
use super::stages::RateStages;
use super::target::Target;
use super::threshold::Threshold;
use crate::fail::{Failure, Outcome};
use crate::flags::{Io, TableServer};

/// Why stages and a length do not go together.
pub const STAGED: &str =
    "the load's stages have a length of their own: leave --length out, or give --rate or other --stages";

/// Changes to a plan; nothing for flags that are not given.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    pub policy: Option<String>,
    /// The factor by which all times are multiplied.
    pub dilation: Option<u32>,
    /// The faults of every socket or link.
    pub faults: Option<String>,
    /// Where packets are switched.
    pub io: Option<Io>,
    /// How BMv2 gets the program's tables.
    pub runtime: Option<TableServer>,
    /// The address of the switch.
    pub listen: Option<SocketAddr>,
    /// The address of the controller.
    pub control: Option<SocketAddr>,
    /// Where `sluice up` serves metrics.
    pub metrics: Option<SocketAddr>,
    /// Whether the controller runs in a process of its own, in addition to what the plan says.
    pub controller_apart: bool,
    pub out: Option<PathBuf>,
    /// The folder of the switch's persistent state.
    pub state: Option<PathBuf>,
    /// The folder of captures of servers' WRITEs.
    pub pcap: Option<PathBuf>,
    /// Tasks per second, if there is a load.
    pub rate: Option<f64>,
    /// Stages of a rate that changes with time, which are the load's measured time, if there is a load.
    pub stages: Option<RateStages>,
    /// The measured time of the load, if there is one.
    pub length: Option<Duration>,
    /// For how long tasks of types without a budget of their own are worth beginning, if there is a load.
    pub budget: Option<Nanos>,
    /// The latency within which an answer is in time, if there is a load.
    pub within: Option<Within>,
    /// Bounds on the load's numbers, beside the plan's.
    pub thresholds: Vec<Threshold>,
    /// The number of racks below a spine.
    pub racks: Option<u16>,
    pub spines: Option<u16>,
}

impl Plan {
    /// The plan with these changes. Defaults that depend on a changed value change too: the deadline
    /// depends on the dilation, the state folder on the results' folder. Events that can no longer happen
    /// are dropped.
    pub fn with(mut self, changes: &Changes) -> Outcome<Self> {
        let Changes { policy, dilation, faults, io, runtime, listen, control, controller_apart, .. } =
            changes;
        if let Some(factor) = dilation {
            self.dilate(*factor);
        }
        self.change_racks(changes)?;
        if let Some(policy) = policy {
            live_program(policy).map_err(Failure::bad_input)?;
            policy.clone_into(&mut self.policy);
            super::racks::check(&self).map_err(Failure::bad_input)?;
            check::adaptive(&self).map_err(Failure::bad_input)?;
            super::cores::check(&self).map_err(Failure::bad_input)?;
        }
        self.leave_out_events();
        if let Some(faults) = faults {
            let rates: Rates = faults.parse().map_err(Failure::bad_input)?;
            self.faults = (!rates.is_none()).then(|| faults.clone());
        }
        self.switch.io = io.unwrap_or(self.switch.io);
        self.switch.runtime = runtime.unwrap_or(self.switch.runtime);
        if runtime.is_some() && self.switch.io != Io::Bmv2 {
            let why = "--runtime says how BMv2 gets its tables: add --io bmv2, or leave --runtime out";
            return Err(Failure::bad_input(why));
        }
        self.switch.listen = listen.or(self.switch.listen);
        self.switch.control = control.or(self.switch.control);
        self.switch.controller_apart |= controller_apart;
        self.metrics = changes.metrics.or(self.metrics);
        self.change_folders(changes);
        self.change_load(changes)?;
        super::racks::check(&self).map_err(Failure::bad_input)?;
        super::waits::check(&self).map_err(Failure::bad_input)?;
        Ok(self)
    }

    /// Drops events about parts that no longer exist: servers under a scheduler that writes nothing ahead,
    /// and leaves without racks.
    fn leave_out_events(&mut self) {
        let (servers, racks) = (self.servers(), self.racks.map_or(0, |racks| racks.count));
        let spines = self.racks.map_or(0, |racks| racks.spines);
        self.events.retain(|event| match &event.kill {
            Target::Server(name) => servers.contains(name),
            Target::Spine(spine) => *spine <= spines,
            Target::Leaf(rack) => *rack <= racks,
            Target::Switch | Target::Controller | Target::Worker(_) => true,
        });
    }

    /// Racks below a spine run their own default policy, unless the flags name one.
    fn change_racks(&mut self, Changes { racks, spines, policy, .. }: &Changes) -> Outcome<()> {
        let count = racks.or(self.racks.map(|known| known.count));
        let Some(count) = count else {
            let none = spines.is_none();
            let why = "--spines needs racks below them: give --racks, too";
            return if none { Ok(()) } else { Err(Failure::bad_input(why)) };
        };
        let spines = spines.or(self.racks.map(|known| known.spines)).unwrap_or(1);
        if self.racks.is_none() && policy.is_none() {
            FABRIC_POLICY.clone_into(&mut self.policy);
        }
        let on_servers = self.leaves_are_on_servers();
        self.racks = Some(RacksPlan { count, spines, on_servers });
        Ok(())
    }

    fn dilate(&mut self, factor: u32) {
        let own = deadline_default(self.dilation);
        if let Some(load) = self.load.as_mut().filter(|load| load.deadline == own) {
            load.deadline = deadline_default(factor);
        }
        self.dilation = factor;
    }

    fn change_folders(&mut self, Changes { out, state, pcap, .. }: &Changes) {
        if let Some(out) = out {
            if self.state == state_in(&self.out) {
                self.state = state_in(out);
            }
            self.out.clone_from(out);
        }
        if let Some(state) = state {
            self.state.clone_from(state);
        }
        if let Some(pcap) = pcap {
            self.rdma.pcap = Some(pcap.clone());
        }
    }

    fn change_load(&mut self, changes: &Changes) -> Outcome<()> {
        let Changes { rate, stages, length, budget, within, thresholds, .. } = changes;
        let Some(load) = &mut self.load else {
            let why = "--threshold bounds a load's numbers, and this plan has no [load]: add one";
            return if thresholds.is_empty() { Ok(()) } else { Err(Failure::bad_input(why)) };
        };
        if let Some(budget) = budget {
            load.limit(Duration::from_nanos(budget.0));
        }
        if within.is_some() {
            load.within.clone_from(within);
            let named = load.name_limits(&mut self.types);
            named.map_err(|why| Failure::bad_input(format!("--within: {why}")))?;
        }
        load.bound(thresholds, &mut self.types);
        load.name_thresholds(&mut self.types).map_err(Failure::bad_input)?;
        if let Some(rate) = *rate {
            load.arrivals = match &load.arrivals {
                Arrivals::Constant(_) => Arrivals::Constant(rate),
                _ => Arrivals::Poisson(rate),
            };
        }
        if let Some(stages) = stages {
            load.arrivals = Arrivals::Stages(stages.clone());
            load.length = stages.length();
        }
        if let Some(length) = *length {
            if length.is_zero() {
                return Err(Failure::bad_input("--length is zero; measure for some time, such as 1s"));
            }
            if load.arrivals.stages().is_some() {
                return Err(Failure::bad_input(STAGED));
            }
            load.length = length;
        }
        if length.is_some() || stages.is_some() {
            let end = load.warm_up + load.length;
            // Events after the load's end would never happen.
            self.events.retain(|event| event.at < end);
        }
        Ok(())
    }
}
