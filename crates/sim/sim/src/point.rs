//! A point of a curve: one policy on one rack under one load.

use sluice_control::check_told_apart;
use sluice_models::server::OrchestratedServer;
use sluice_stats::{PARTS, Recording, Warmup};
use sluice_switch::Config;
use sluice_switch::registry::Software;
use sluice_testbed::Testbed;
use sluice_testbed::capacity::{CELLS_MAX, Capacity};
use sluice_testbed::compatibility::{LabelCompatibility, SliceCompatibility, Sliced};
use sluice_testbed::cores_layout::CoresLayout;
use sluice_units::show_span;
use sluice_wire::Nanos;
use sluice_workload::{Arrivals, Class, Requests, Workload};

use crate::error::SimError;
use crate::fabric::{FlowRun, JoinedFabric, Scheme};
use crate::policy::Policy;
use crate::within::Within;

/// A rate within this share of a trace's own rate counts as that rate, so that nobody has to type all its
/// digits.
const TRACE_RATE_OFF_MAX: f64 = 0.005;

/// A point of a load-latency curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub policy: Policy,
    pub testbed: Testbed,
    pub workload: Workload,
    /// Tasks per second.
    pub rate_per_s: f64,
    /// Measured tasks per replication.
    pub tasks: u64,
    /// The warm-up before them.
    pub warmup: Warmup,
    /// The seed; one seed gives one result.
    pub seed: u64,
    /// Whether a load that cannot be kept up is intended.
    pub transient: bool,
    /// Whether all replications have the same tasks, those of one trace, so that they say nothing about
    /// chance.
    pub repeats: bool,
    /// The classes with workers of their own, and how many (`get` 14, `scan` 18; `get+put` share a slice).
    /// `None`: all workers serve all classes.
    pub slices: Option<Vec<(String, u32)>>,
    /// The latency within which an answer is in time, if goodput is asked for.
    pub within: Option<Within>,
}

impl Point {
    /// A point without a warm-up, with one task and seed 1.
    pub const fn new(policy: Policy, testbed: Testbed, workload: Workload, rate_per_s: f64) -> Self {
        Self {
            policy,
            testbed,
            workload,
            rate_per_s,
            tasks: 1,
            warmup: Warmup::Tasks(0),
            seed: 1,
            transient: false,
            repeats: false,
            slices: None,
            within: None,
        }
    }

    /// Checks that the point can be simulated; an error is one line that says what to change.
    pub fn check(&self) -> Result<(), SimError> {
        self.testbed.check()?;
        match self.complaint() {
            Some(why) => Err(SimError::Point(why)),
            None => Ok(()),
        }
    }

    /// The rate, per second, at which every worker would serve all the time if tasks arrived without delay:
    /// workers over the mean service. Loads are shares of this rate. With slices it is the rate that fills
    /// the first slice. With labels it is the rate that first fills the workers that serve some set of
    /// classes.
    pub fn capacity_per_s(&self) -> f64 {
        self.rate_where_a_slice_fills(|class| class.service.mean_ns())
    }

    /// The rate, per second, that this policy cannot exceed on this testbed. It follows from the mean time
    /// of a worker per task:
    ///
    /// - Pushed tasks: receive + service + reply.
    /// - With n tokens: the same plus the token; and at most n tasks in service + the time from a task's
    ///   end to the next one's start (3.7 µs on "rain"), which is the limit for n = 1.
    /// - References: only the service.
    /// - A scheduler in a server: one decision at a time.
    /// - One server's dispatcher or allocator: one request at a time.
    ///
    /// Fetching a task's bytes adds to these times. Because of variation a policy saturates below this
    /// rate.
    pub fn limit_per_s(&self) -> f64 {
        let (mut cpu, mut refill) = self.policy.worker_times(&self.testbed);
        // A server's NIC handles tokens, and has the next task ready when a core has finished one.
        if self.testbed.servers.depth.is_some() && matches!(self.policy, Policy::Program(_)) {
            let Testbed { worker, cores, .. } = &self.testbed;
            (cpu, refill) = ((worker.receive + worker.send + cores.descriptor).0 as f64, 0.0);
        }
        let quota = f64::from(self.policy.quota().max(1));
        let fetch = if self.policy.fetches_large() { self.testbed.fetch().0 as f64 } else { 0.0 };
        let of_workers = self.rate_where_a_slice_fills(|class| {
            let service = class.service.mean_ns() + class.large * fetch;
            (service + cpu).max((service + refill) / quota)
        });
        match self.policy {
            Policy::Server(orchestration) => {
                of_workers.min(orchestration.rate_max_per_s(&self.testbed.cores))
            }
            Policy::Program(choice) => match choice.traits().software {
                Some(Software { decision, .. }) if decision > Nanos(0) => {
                    of_workers.min(1e9 / decision.0 as f64)
                }
                _ => of_workers,
            },
            Policy::Sparrow(sparrow) => of_workers.min(sparrow.rate_max_per_s()),
            Policy::Reference(_) | Policy::Datacenter(_) | Policy::Overload(_) => of_workers,
            Policy::Fabric(scheme) => {
                self.flow_run(scheme).map_or(of_workers, |run| of_workers.min(run.rate_max_per_s()))
            }
        }
    }

    /// The tasks of a replication, the same for every policy.
    pub fn requests(&self, replication: u32) -> Requests {
        Requests::new(&self.workload, self.rate_per_s, self.seed, replication)
    }

    /// Each class's limit for an answer in time; none if nobody asks. An error is one line that says what
    /// to change.
    fn limits(&self) -> Result<Vec<Nanos>, String> {
        let within = self.within.as_ref().map(|within| within.limits(&self.workload.classes));
        within.unwrap_or(Ok(Vec::new()))
    }

    /// The flows that cross the testbed's fabric; an error is one line that says what to change.
    pub(crate) fn flow_run(&self, scheme: Scheme) -> Result<FlowRun<'_>, String> {
        let policy = &self.policy;
        let fabric = self.testbed.fabric.as_ref().ok_or_else(|| {
            format!(
                "{policy} spreads flows over a fabric, and testbed `{}` has none: take hf2t",
                self.testbed.name
            )
        })?;
        let flows = self.workload.flows().ok_or_else(|| {
            format!("{policy} spreads flows, and no tasks: write a workload such as flows:web-search")
        })?;
        Ok(FlowRun { scheme, fabric, flows, rate_per_s: self.rate_per_s })
    }

    /// The settings of the recorder.
    pub(crate) fn recording(&self) -> Recording {
        let mean_services_ns = self.workload.classes.iter().map(|class| class.service.mean_ns()).collect();
        Recording {
            mean_services_ns,
            tasks: self.tasks,
            warmup: self.warmup,
            parts: self.parts(),
            way_home: self.testbed.way_home(),
            passed_over_at_random: Some(self.passed_over_at_random()),
            within: self.limits().unwrap_or_default(),
        }
    }

    /// A worker that serves a stream of its own (M/G/1) at a load of ρ is idle for the share 1 − ρ, and
    /// ρ²(1 + c²)/2(1 − ρ) tasks wait for it. So the product is at most (1 + c²)/2 per worker, whatever the
    /// load.
    fn passed_over_at_random(&self) -> f64 {
        f64::from(self.testbed.workers) * (1.0 + self.workload.squared_variation()) / 2.0
    }

    /// The parts of a run that follows a plan differ for other reasons than chance.
    fn parts(&self) -> u32 {
        match &self.workload.arrivals {
            _ if self.repeats => 0,
            Arrivals::Plan(_) => 1,
            _ => PARTS,
        }
    }

    pub(crate) fn slice_of(&self, class: &Class) -> usize {
        let slices = self.slices.iter().flatten();
        let mut names = slices.map(|(names, _)| names.split('+').any(|name| name == class.name));
        names.position(|is_named| is_named).unwrap_or(0)
    }

    pub(crate) fn workers_by_slice(&self) -> Vec<u32> {
        match &self.slices {
            Some(slices) => slices.iter().map(|(_, workers)| *workers).collect(),
            None => vec![self.testbed.workers],
        }
    }

    /// The labels of workers and tasks, if there are any; an error is one line that says what to change.
    pub fn suits(&self) -> Result<Option<LabelCompatibility>, String> {
        let all: [Sliced<'_>; 1] = [(None, self.testbed.workers)];
        let slices = self.slices.as_ref().map(|slices| {
            slices.iter().map(|(names, workers)| (Some(names.as_str()), *workers)).collect::<Vec<_>>()
        });
        let slices = slices.as_deref().unwrap_or(&all);
        LabelCompatibility::of(&self.testbed, &self.workload.classes, slices, |class| self.slice_of(class))
    }

    fn rate_where_a_slice_fills(&self, time_ns: impl Fn(&Class) -> f64) -> f64 {
        let mut work_ns = vec![0.0; self.workers_by_slice().len()];
        for class in &self.workload.classes {
            work_ns[self.slice_of(class)] += class.share * time_ns(class);
        }
        let fills = |(workers, work_ns): (&u32, &f64)| f64::from(*workers) * 1e9 / work_ns;
        let all = self.workers_by_slice().iter().zip(&work_ns).map(fills).fold(f64::INFINITY, f64::min);
        let Ok(Some(suits)) = self.suits() else { return all };
        let work_ns = |class: &Class| class.share * time_ns(class);
        suits.rate_max_per_s(&self.workload.classes, |class| self.slice_of(class), work_ns).min(all)
    }

    fn complaint(&self) -> Option<String> {
        if self.tasks == 0 {
            return Some("no task is to be measured: ask for one at least".to_owned());
        }
        self.bad_slices()
            .or_else(|| self.bad_labels())
            .or_else(|| self.bad_rings())
            .or_else(|| self.bad_target())
            .or_else(|| self.bad_server())
            .or_else(|| self.bad_cores())
            .or_else(|| self.bad_racks())
            .or_else(|| self.bad_budgets())
            .or_else(|| self.bad_rate())
            .or_else(|| self.limits().err())
            .or_else(|| self.bad_flows())
            .or_else(|| self.bad_fabric())
            .or_else(|| self.not_the_traces_rate())
    }

    /// Why a trace has another rate than this point; a trace has one rate, unless its times are scaled.
    fn not_the_traces_rate(&self) -> Option<String> {
        let trace = self.workload.trace().filter(|trace| self.repeats && !trace.is_scaled())?;
        let own_per_s = trace.rate_per_s();
        ((self.rate_per_s / own_per_s - 1.0).abs() > TRACE_RATE_OFF_MAX).then(|| {
            format!(
                "{} brings {own_per_s:.0} tasks per second, a load of {:.3}, and not {:.0}: leave the rate out, or write \
                 scaled-trace:{} to have its times stretched to the rate that you ask for",
                trace.label(),
                own_per_s / self.capacity_per_s(),
                self.rate_per_s,
                trace.label()
            )
        })
    }

    fn bad_rate(&self) -> Option<String> {
        let rate = self.rate_per_s;
        if !(rate.is_finite() && rate > 0.0) {
            return Some(format!("a rate of {rate} tasks per second makes no sense: give one above 0"));
        }
        if self.transient {
            return None;
        }
        let mean_busy = rate * self.workload.mean_service_ns() / 1e9;
        let peak = if self.workload.is_steady() { 1.0 } else { self.workload.busy_workers(rate) / mean_busy };
        let load = rate * peak / self.capacity_per_s();
        (load >= 1.0).then(|| {
            format!(
                "{rate:.0} tasks per second are {:.1} % of what all workers can serve ({:.0}): there is no steady state; \
                 ask for less, or for a transient run",
                load * 100.0,
                self.capacity_per_s() / peak
            )
        })
    }

    /// Why the rings do not fit: each slice has a ring for each class, and all rings share one chip.
    fn bad_rings(&self) -> Option<String> {
        let Policy::Program(choice) = &self.policy else { return None };
        let (slices, testbed) = (self.workers_by_slice(), &self.testbed);
        let room = Capacity::of(testbed, choice);
        let most = room.queue_max(&slices, choice.traits().classes, testbed.clients);
        (testbed.queue > most).then(|| {
            format!(
                "a queue of {} tasks is too long: the switch has {} places for {} slices of {} classes, and \
                 {CELLS_MAX} for tasks outstanding; lower `queue` in the testbed to {most} at most",
                testbed.queue,
                choice.traits().tasks_max,
                slices.len(),
                choice.traits().classes
            )
        })
    }

    /// Why tasks cannot have their budgets here.
    fn bad_budgets(&self) -> Option<String> {
        let round_trip = self.testbed.zero_load();
        self.workload.classes.iter().find_map(|class| {
            let (name, budget) = (&class.name, class.budget?);
            if !matches!(self.policy, Policy::Program(_) | Policy::Datacenter(_)) {
                return Some(format!(
                    "{} looks at no budget, and tasks of `{name}` have one: leave it out, or take a \
                     program of the switch such as rain:2",
                    self.policy
                ));
            }
            (budget < round_trip).then(|| {
                let (budget, least) = (show_span(budget), show_span(round_trip));
                format!(
                    "a budget of {budget} for tasks of `{name}` is below a round trip of {least} here, so a \
                     refusal comes after it is spent: give at least {least}, or none"
                )
            })
        })
    }

    /// Why the policy's target is no wait that is worth having: it is shorter than a service or a round trip.
    fn bad_target(&self) -> Option<String> {
        let Policy::Program(choice) = &self.policy else { return None };
        let target = choice.traits().target?;
        let (service, round) = (self.workload.mean_service_ns(), self.testbed.zero_load().0 as f64);
        let least = [(service, "one service takes on average"), (round, "a round trip takes")];
        let (least, what) = least.into_iter().find(|(least, _)| (target.0 as f64) < *least)?;
        Some(format!(
            "{} has a target that is shorter than what {what}, {:.1} us, so that it would refuse tasks \
             that could be served in time: give a longer one",
            self.policy,
            least / 1e3
        ))
    }

    fn bad_server(&self) -> Option<String> {
        let (testbed, classes, policy) = (&self.testbed, &self.workload.classes, &self.policy);
        let Policy::Server(orchestration) = *policy else {
            let no_batch = || format!("{policy} runs no batch service: leave cores.batch out");
            return testbed.cores.batch.then(no_batch);
        };
        OrchestratedServer { orchestration, testbed, classes }.complaint()
    }

    /// Why this policy does not fit servers of many cores: they take tasks for tokens, as many as their
    /// cores have room for.
    fn bad_cores(&self) -> Option<String> {
        self.testbed.servers.depth?;
        let policy = &self.policy;
        match policy {
            Policy::Program(choice) if !choice.traits().hosts_choose_depth => Some(format!(
                "{policy} decides itself how many tasks a worker holds, and servers of many cores go by the \
                 room that their cores have: take rain:1, or leave servers.depth out"
            )),
            Policy::Program(choice) if choice.unfit_for_cores().is_some() => {
                let what = choice.unfit_for_cores().unwrap_or_default();
                Some(format!(
                    "servers of many cores take as many tasks as their cores have room for, and {policy} has \
                     {what}: take rain:1, or leave servers.depth out"
                ))
            }
            Policy::Program(_) if self.slices.is_some() => Some(
                "servers of many cores serve all classes, those of each priority as a slice: leave the \
                 slices out, or servers.depth"
                    .to_owned(),
            ),
            Policy::Program(_) => CoresLayout::of(&self.testbed, &self.workload.classes)
                .as_ref()
                .and_then(CoresLayout::complaint),
            Policy::Reference(_) => None,
            _ => {
                Some(format!("{policy} knows no servers of many cores below a rack: leave servers.depth out"))
            }
        }
    }

    /// Why a policy for flows and the rest of the point do not fit: fabrics carry flows, and nothing else.
    fn bad_flows(&self) -> Option<String> {
        match self.policy {
            Policy::Fabric(scheme) => match self.flow_run(scheme) {
                Ok(run) => run.complaint(),
                Err(why) => Some(why),
            },
            _ => self.workload.flows().map(|_| {
                let policy = &self.policy;
                format!(
                    "{policy} schedules tasks, and {} are flows: take a policy such as letflow",
                    self.workload
                )
            }),
        }
    }

    /// Why the rack cannot be on a fabric: it needs a program in its switch, and packets that fit frames.
    fn bad_fabric(&self) -> Option<String> {
        self.testbed.background()?;
        match &self.policy {
            Policy::Program(choice) if choice.traits().software.is_none() => {
                JoinedFabric::complaint(&self.testbed, &self.workload.classes)
            }
            Policy::Datacenter(_) => JoinedFabric::complaint(&self.testbed, &self.workload.classes),
            Policy::Reference(_) => None,
            policy => Some(format!(
                "{policy} is no program of racks' switches, and this testbed's fabric has a rack on it: \
                 leave [fabric.background] out, or take a policy such as rain:2"
            )),
        }
    }

    /// Why the policy does not fit the racks: a datacenter's policies need racks, and a rack's need one
    /// switch.
    fn bad_racks(&self) -> Option<String> {
        let (policy, testbed) = (&self.policy, &self.testbed);
        match policy {
            Policy::Datacenter(_) if testbed.racks.are_none() => Some(format!(
                "{policy} is for racks below spines, and this testbed has none: write [racks] with spines \
                 and workers into it"
            )),
            Policy::Datacenter(system) if testbed.racks.detour > Nanos(0) && system.tokens() > 0 => {
                Some(format!(
                    "{policy} has its leaves in switches, past which its replies go: leave racks.detour out, \
                     or take another policy of a datacenter"
                ))
            }
            Policy::Datacenter(system) if system.tokens() > 0 && self.leaf_ring() > Config::LEAF_TASKS => {
                Some(format!(
                    "a queue of {} tasks is too long: a leaf of {policy} has {} places; lower `queue` in the \
                     testbed",
                    testbed.queue,
                    Config::LEAF_TASKS
                ))
            }
            Policy::Datacenter(_) if testbed.stalls.per_s > 0.0 || testbed.slow.is_any() => {
                Some(format!("{policy} runs without stalls and slow workers: leave [stalls] and [slow] out"))
            }
            Policy::Reference(_) if !testbed.racks.outages.is_empty() => Some(format!(
                "{policy} knows no switches that are out: leave racks.outages out, or take a policy of a \
                 datacenter"
            )),
            Policy::Program(_) | Policy::Server(_) if !testbed.racks.are_none() => Some(format!(
                "{policy} is for one switch, and this testbed has racks below spines: leave [racks] out, or \
                 take a policy of a datacenter (dc-horus, dc-rs-h, dc-rs-lb, dc-rain) or a reference"
            )),
            _ => None,
        }
    }

    /// The cells of the longest ring of tasks at a leaf that parks tokens.
    fn leaf_ring(&self) -> u32 {
        let Policy::Datacenter(system) = &self.policy else { return 0 };
        let workers = self.testbed.racks.sizes(self.testbed.workers).into_iter().max().unwrap_or(0);
        (self.testbed.queue + workers * u32::from(system.tokens())).next_power_of_two()
    }

    /// Why the policy does not fit the labels: not every policy uses labels.
    fn bad_labels(&self) -> Option<String> {
        let suits = match self.suits() {
            Ok(suits) => suits?,
            Err(why) => return Some(why),
        };
        let kinds = match &self.policy {
            Policy::Program(choice) => choice.traits().kinds,
            _ => 1,
        };
        let policy = self.policy.to_string();
        let told = |slice: &SliceCompatibility| {
            check_told_apart(&slice.called, &slice.serving, kinds, &policy).err()
        };
        suits.slices.iter().find_map(told)
    }

    fn bad_slices(&self) -> Option<String> {
        let slices = self.slices.as_ref()?;
        if !matches!(self.policy, Policy::Program(_)) {
            let policy = &self.policy;
            return Some(format!("{policy} has one queue of workers for all classes: leave the slices out"));
        }
        let known: Vec<&str> = self.workload.classes.iter().map(|class| class.name.as_str()).collect();
        let named = || slices.iter().flat_map(|(names, _)| names.split('+'));
        if let Some(unknown) = named().find(|name| !known.contains(name)) {
            return Some(sluice_units::unknown("class", unknown, known));
        }
        if let Some(missing) = known.iter().find(|class| named().filter(|name| name == *class).count() != 1) {
            return Some(format!("class `{missing}` must have exactly one slice: name it in one"));
        }
        if let Some((names, _)) = slices.iter().find(|(_, workers)| *workers == 0) {
            return Some(format!("the slice of `{names}` has no workers: give it one at least"));
        }
        let classes = &self.workload.classes;
        let of_type = |class: &Class| classes.iter().find(|other| other.task_type == class.task_type);
        let apart = |class: &&Class| of_type(class).is_some_and(|o| self.slice_of(o) != self.slice_of(class));
        if let Some(Class { name, task_type, .. }) = classes.iter().find(apart) {
            return Some(format!(
                "a type goes to one slice: class `{name}` has type {task_type} of one in another"
            ));
        }
        let (of_slices, all) = (self.workers_by_slice().iter().sum::<u32>(), self.testbed.workers);
        (of_slices != all)
            .then(|| format!("the slices have {of_slices} workers, the testbed {all}: make them the same"))
    }
}
