//! What the user asks for, checked before anything runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sluice_experiment::policies;
use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::Warmup;
use sluice_study::checked_plan;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::flags::Io;
use sluice_support::plan::check::SIMULATED_ONLY;
use sluice_switch::registry::Choice;
use sluice_switchd::switch::Delays;
use sluice_testbed::Testbed;
use sluice_testbed::compatibility::LabelCompatibility;
use sluice_testrig::ScheduleStart;
use sluice_testrig::processor::{HostCosts, SlowPeriod};
use sluice_wire::Nanos;
use sluice_workload::{Arrivals, Workload};

use super::kept::SweepSettings;
use super::servers;
use super::switches::RacksBelow;

/// The warm-up before a measurement is one part in this many of the measured time.
pub(super) const WARM_UP_PART: u32 = 4;
/// The load after a measurement is one part in this many of the measured time, so that the last measured
/// task is not the last of all.
const TAIL_PART: u32 = 10;
/// The time between two runs.
const BETWEEN: Duration = Duration::from_millis(50);
/// Each worker needs a socket: more than this is a mistake.
const WORKERS_MAX: u32 = 512;

/// A sweep of live racks.
pub(crate) struct LiveSweep {
    pub(crate) policies: Vec<LivePolicy>,
    /// The loads, as shares of capacity.
    pub(crate) loads: Vec<f64>,
    pub(crate) workload: Workload,
    pub(crate) testbed: Testbed,
    pub(crate) dilation: u32,
    /// The measured real time of each run.
    pub(crate) length: Duration,
    pub(crate) replications: u32,
    pub(crate) seed: u64,
    pub(crate) out: PathBuf,
    pub(crate) each_task: bool,
    /// What carries packets: UDP sockets or XDP links.
    pub(crate) io: Io,
    /// Groups of classes that have workers of their own (`get`, or `get+put`), and how many; empty if all
    /// classes share all workers.
    pub(crate) slices: Vec<(String, u32)>,
}

/// A scheduler, for the rack and for the simulator.
#[derive(Clone, Debug)]
pub(crate) struct LivePolicy {
    /// The scheduler as the user wrote it.
    pub(crate) name: String,
    pub(crate) choice: Choice,
    pub(crate) policy: Policy,
}

impl LiveSweep {
    /// The sweep that these settings describe.
    pub(crate) fn new(settings: &SweepSettings) -> Outcome<Self> {
        let sweep = Self {
            policies: who(&settings.policies)?,
            loads: settings.loads.clone(),
            workload: Workload::parse(&settings.workload).map_err(Failure::bad_input)?,
            testbed: checked_plan::testbed(&settings.testbed, Path::new(""))?,
            dilation: settings.dilation,
            length: settings.length,
            replications: settings.replications,
            seed: settings.seed,
            out: settings.out.clone(),
            each_task: settings.each_task,
            io: Io::Udp,
            slices: Vec::new(),
        };
        sweep.checked()
    }

    /// Checks that the whole sweep can be run.
    pub(super) fn checked(self) -> Outcome<Self> {
        check(&self.testbed, &self.workload)?;
        if self.io == Io::Bmv2 {
            let why =
                "--io bmv2: BMv2 passes too few packets to be measured; `sluice up --io bmv2` runs a rack";
            return Err(Failure::bad_input(why));
        }
        if self.io == Io::Xdp
            && let Some(who) = self.policies.iter().find(|who| !who.choice.traits().runs_in_kernel)
        {
            let why = format!(
                "{}: a switch in the kernel schedules by rain only, without ranks, classes or labels; \
                 take --io udp",
                who.name
            );
            return Err(Failure::bad_input(why));
        }
        let bypasses =
            |who: &&LivePolicy| who.choice.traits().software.is_some_and(|software| software.bypasses);
        if let Some(who) = self.policies.iter().find(bypasses) {
            return Err(Failure::bad_input(format!("{} {SIMULATED_ONLY}", who.name)));
        }
        for load in &self.loads {
            if self.tasks(*load) == 0 {
                let why =
                    format!("a run of {:?} at load {load} has no task: make --length longer", self.length);
                return Err(Failure::bad_input(why));
            }
            for who in &self.policies {
                self.point(who, self.workload.clone(), *load).check().map_err(Failure::bad_input)?;
            }
        }
        Ok(self)
    }

    /// The rate, in tasks a second of the emulated rack, at which every worker would be busy all the time.
    pub(crate) fn capacity_per_s(&self) -> f64 {
        f64::from(self.testbed.workers) * 1e9 / self.workload.mean_service_ns()
    }

    /// The offered rate in tasks a second of the emulated rack; a whole number, as reports show it.
    pub(crate) fn rate_per_s(&self, load: f64) -> f64 {
        (self.capacity_per_s() * load).round().max(1.0)
    }

    /// How many tasks of a run are measured.
    pub(crate) fn tasks(&self, load: f64) -> u64 {
        self.tasks_in(load, self.length)
    }

    /// How many tasks come before the measured ones.
    pub(crate) fn warm_up(&self, load: f64) -> u64 {
        self.tasks_in(load, self.length / WARM_UP_PART)
    }

    /// How many tasks come after the measured ones.
    pub(crate) fn tail(&self, load: f64) -> u64 {
        self.tasks_in(load, self.length / TAIL_PART).max(1)
    }

    /// The simulator's point for a prediction. Arrivals come from the workload, or from a trace.
    pub(crate) fn point(&self, who: &LivePolicy, workload: Workload, load: f64) -> Point {
        Point {
            tasks: self.tasks(load),
            warmup: Warmup::Tasks(self.warm_up(load)),
            seed: self.seed,
            transient: true,
            ..Point::new(who.policy.clone(), self.testbed.clone(), workload, self.rate_per_s(load))
        }
    }

    /// Which workers serve which tasks, if the testbed has labels.
    pub(crate) fn suits(&self, who: &LivePolicy) -> Outcome<Option<LabelCompatibility>> {
        let mut point = self.point(who, self.workload.clone(), 1.0);
        point.slices = (!self.slices.is_empty()).then(|| self.slices.clone());
        point.suits().map_err(Failure::bad_input)
    }

    /// The real time of all runs, without the simulations.
    pub(crate) fn real_time(&self) -> Duration {
        let one = self.length / WARM_UP_PART + self.length + self.length / TAIL_PART + BETWEEN;
        let runs = self.policies.len() * self.loads.len() * self.replications as usize;
        one * u32::try_from(runs).unwrap_or(u32::MAX)
    }

    /// The testbed's links and passes, dilated.
    pub(crate) fn delays(&self) -> Delays {
        let factor = u64::from(self.dilation);
        Delays {
            client: self.testbed.links.client.times(factor),
            worker: self.testbed.links.worker.times(factor),
            pass: self.testbed.switch.pass.times(factor),
            recirculation: self.testbed.switch.recirculation.times(factor),
        }
    }

    /// The racks below a spine, for a policy that has several switches; `None` for one with a single
    /// switch.
    pub(crate) fn below(&self, who: &LivePolicy) -> Option<RacksBelow> {
        let Policy::Datacenter(system) = who.policy else { return None };
        let (reading, _) = system.live()?;
        let Testbed { links, racks, workers, .. } = &self.testbed;
        let long = |way: Nanos| (way + racks.detour).times(self.dilation.into());
        let (sizes, hop, link) = (racks.sizes(*workers), long(racks.hop), long(links.worker));
        Some(RacksBelow { reading: reading.dilated(self.dilation)?, sizes, hop, link })
    }

    /// The packet costs of a worker, dilated, and its slow time, counted from the schedule's start.
    pub(crate) fn costs(&self, worker: u32, since: ScheduleStart) -> HostCosts {
        let factor = u64::from(self.dilation);
        let slow = self.testbed.slow.of(worker);
        HostCosts {
            slow: slow.map(|time| SlowPeriod { time: time.dilated(factor), since }),
            receive: self.testbed.worker.receive.times(factor),
            send: self.testbed.worker.send.times(factor),
            to_client: self.delays().host_to_host(),
        }
    }

    fn tasks_in(&self, load: f64, real: Duration) -> u64 {
        (self.rate_per_s(load) * real.as_secs_f64() / f64::from(self.dilation)) as u64
    }
}

/// The schedulers in these lists.
pub(super) fn who<S: AsRef<str>>(lists: impl IntoIterator<Item = S>) -> Outcome<Vec<LivePolicy>> {
    let who = |text: String| {
        let choice = sluice_support::plan::live_program(&text).map_err(Failure::bad_input)?;
        let policy = Policy::parse(&text).map_err(Failure::bad_input)?;
        Ok(LivePolicy { name: policy.to_string(), choice, policy })
    };
    policies::listed(lists)?.into_iter().map(who).collect()
}

/// Checks that live racks can emulate this testbed and workload.
fn check(testbed: &Testbed, workload: &Workload) -> Outcome<()> {
    let priorities: BTreeSet<_> = workload.classes.iter().map(|class| class.priority.unwrap_or(0)).collect();
    let priorities = priorities.len();
    let complaint = if testbed.has_faults() || testbed.stalls.per_s > 0.0 {
        "faults and stalls are the simulator's only: leave them out of the testbed"
    } else if testbed.switch.recirculation_gbps.is_some() {
        "the recirculation port's bandwidth is the simulator's only: leave it out of the testbed"
    } else if !testbed.racks.are_none() && testbed.racks.spines != 1 {
        "a live sweep has one spine: write racks.spines = 1 in the testbed"
    } else if !testbed.racks.are_none() && testbed.fabric.is_some() {
        "a live sweep has no fabric below its racks: leave [fabric] out of the testbed"
    } else if testbed.clients != 1 {
        "a live sweep has one client: write clients = 1 in the testbed"
    } else if testbed.workers > WORKERS_MAX {
        "a live sweep has 512 workers at most: ask for fewer in the testbed"
    } else if matches!(workload.arrivals, Arrivals::Trace(_)) {
        "a sweep makes its traces itself: name the services, such as exp:10us"
    } else if workload.classes.iter().any(|class| class.budget.is_some()) {
        "the tasks of a live sweep have no budgets: leave `budget` out of the workload, or give --budget to \
         `sluice up` without --sweep"
    } else if workload.classes.iter().any(|class| class.large > 0.0) {
        "the tasks of a live sweep carry 8 bytes: leave `large` out of the workload"
    } else if let Some(complaint) = servers::complaint(testbed, priorities) {
        complaint
    } else {
        return Ok(());
    };
    Err(Failure::bad_input(complaint))
}
