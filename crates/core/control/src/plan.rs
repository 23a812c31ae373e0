//! A controller's settings: slices, limits and times. They are checked once, at the start.

use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt::{self, Write};

use crate::name::{NameError, check_name};
use crate::rings::RdmaPlan;
use crate::tier::Tier;
use sluice_wire::registrations::Sizes;
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::{Endpoint, Nanos, Serial, TaskType};
use thiserror::Error;

/// The most task types that one worker may say it serves.
pub const WORKER_TYPES_MAX: usize = 256;

/// One slice: a queue in the switch, and the task types that it is for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlicePlan {
    /// The slice's name, for people and workers.
    pub name: String,
    /// The task types that go to the slice at the start.
    pub types: Vec<TaskType>,
    /// How many tasks may wait (C); `None`: the longest wait times the slice's service rate.
    pub limit: Option<u32>,
    /// The sizes that divide tasks into classes, if the switch tells classes apart and they go by size.
    pub sizes: Sizes,
    /// Which kind of worker serves which class of tasks, if the switch tells kinds apart.
    pub serving: Serving,
    /// The longest wait in the switch that is worth having, if the slice has one of its own.
    pub target: Option<Nanos>,
    /// How long a task of the slice takes its worker on average, if that is known before workers tell.
    pub service: Option<Nanos>,
}

/// All settings of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The slices; their order gives their indices.
    pub slices: Vec<SlicePlan>,
    /// The labels that workers may have and tasks may need, at most [`Labels::MAX`]; their order gives
    /// their bits.
    pub labels: Vec<String>,
    /// The labels that tasks of a type need, or wish for.
    pub needs: Vec<(TaskType, Labels)>,
    /// Names of types, for people. A type without a name is shown by its number.
    pub type_names: Vec<(TaskType, String)>,
    /// The address where hosts reach the switch.
    pub switch: Endpoint,
    /// Where the switch stands.
    pub tier: Tier,
    /// How long a registration lasts without a renewal.
    pub lease: Nanos,
    /// How often hosts renew.
    pub renew_every: Nanos,
    /// How long a task should wait at most: C is this times the slice's service rate.
    pub max_wait: Nanos,
    /// How long new clients wait for every slice to have a worker after a switch came up: the longest time
    /// that a living worker can take to renew. A worker that has not renewed by then is not coming back.
    pub gather_for: Nanos,
    /// The retry hint that a REJECT carries.
    pub retry_after: Nanos,
    /// How long clients may send a task again; afterwards workers need not remember the task. The usual
    /// value is the deadline.
    pub retry_for: Nanos,
    /// The longest time that the network holds a packet.
    pub packet_lifetime: Nanos,
    /// C of a slice whose workers have not told a service rate.
    pub unmeasured_limit: u32,
    /// Where the counters of a worker start in each generation.
    pub counters_start: Serial,
    /// How idle a slice has to be before it gives a worker away, in thousandths of a worker.
    pub idle_floor_milli: u32,
    /// How long the controller waits for the other agents after the first agent's tallies of an interval.
    pub gather_agents: Nanos,
    /// Settings for tasks that are written ahead.
    pub rdma: RdmaPlan,
}

impl Plan {
    /// A plan with the protocol's defaults: a lease of 1 s, renewed every 250 ms, a longest wait of 20 ms,
    /// retries for 5 s, and packets that live 1 s.
    pub fn new(switch: Endpoint, slices: Vec<SlicePlan>) -> Self {
        Self {
            slices,
            labels: Vec::new(),
            needs: Vec::new(),
            type_names: Vec::new(),
            switch,
            tier: Tier::Rack,
            lease: Nanos::from_millis(1_000),
            renew_every: Nanos::from_millis(250),
            max_wait: Nanos::from_millis(20),
            gather_for: Nanos::from_millis(1_000),
            retry_after: Nanos::from_millis(5),
            retry_for: Nanos::from_millis(5_000),
            packet_lifetime: Nanos::from_millis(1_000),
            unmeasured_limit: 4_096,
            counters_start: Serial(0),
            idle_floor_milli: 1_000,
            gather_agents: Nanos::from_millis(1),
            rdma: RdmaPlan::default(),
        }
    }

    /// How long workers keep the ids of finished tasks: until no try of them can come any more, unless a
    /// try waits in the switch for longer than the longest wait. Workers do not run such a try.
    pub fn retry_horizon(&self) -> Nanos {
        self.retry_for + self.max_wait + self.transit()
    }

    /// The longest time that the two packets which bring a task to its worker are on their way.
    pub fn transit(&self) -> Nanos {
        self.packet_lifetime.times(2)
    }

    /// A type as people read it: its name and its number, or the number alone.
    pub fn type_shown(&self, task_type: TaskType) -> String {
        match self.type_names.iter().find(|(of, _)| *of == task_type) {
            Some((_, name)) => format!("{} ({task_type})", name.escape_debug()),
            None => task_type.to_string(),
        }
    }

    /// Types as people read them, with commas between, or "none".
    pub(crate) fn types_shown(&self, types: &[TaskType]) -> String {
        if types.is_empty() {
            return "none".to_string();
        }
        types.iter().map(|of| self.type_shown(*of)).collect::<Vec<_>>().join(", ")
    }

    /// The labels that tasks of a type need, beside those that a task names itself.
    pub fn needs_of(&self, task_type: TaskType) -> Labels {
        self.needs.iter().find(|(of, _)| *of == task_type).map_or(Labels::NONE, |(_, needs)| *needs)
    }

    /// Whether some worker may not serve some task of its slice.
    pub fn tells_kinds(&self) -> bool {
        let binds = |serving: Serving| serving != Serving::default() && !serving.is_wished();
        self.slices.iter().any(|slice| binds(slice.serving))
    }

    /// Checks that the plan can be run.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.slices.is_empty() {
            return Err(PlanError::NoSlices);
        }
        if self.slices.len() > usize::from(u16::MAX) {
            return Err(PlanError::TooManySlices { count: self.slices.len() });
        }
        for (i, slice) in self.slices.iter().enumerate() {
            self.check_slice(i, slice)?;
        }
        self.check_labels()?;
        self.check_times()
    }

    fn check_slice(&self, i: usize, slice: &SlicePlan) -> Result<(), PlanError> {
        check_name(&slice.name).map_err(PlanError::SliceName)?;
        if slice.limit == Some(0) {
            return Err(PlanError::NoLimit { slice: slice.name.clone() });
        }
        for earlier in &self.slices[..i] {
            if earlier.name == slice.name {
                return Err(PlanError::SliceTwice { slice: slice.name.clone() });
            }
            if let Some(&task_type) = slice.types.iter().find(|t| earlier.types.contains(t)) {
                return Err(PlanError::TypeTwice {
                    task_type: self.type_shown(task_type),
                    first: earlier.name.clone(),
                    second: slice.name.clone(),
                });
            }
        }
        Ok(())
    }

    fn check_labels(&self) -> Result<(), PlanError> {
        if self.labels.len() > Labels::MAX {
            return Err(PlanError::TooManyLabels { count: self.labels.len() });
        }
        for (i, label) in self.labels.iter().enumerate() {
            check_name(label).map_err(PlanError::LabelName)?;
            if self.labels[..i].contains(label) {
                return Err(PlanError::LabelTwice { label: label.clone() });
            }
        }
        for slice in self.slices.iter().filter(|slice| slice.serving != Serving::default()) {
            let unserved = |t: &&TaskType| slice.serving.class_of(self.needs_of(**t)).is_none();
            if let Some(task_type) = slice.types.iter().find(unserved) {
                let task_type = self.type_shown(*task_type);
                return Err(PlanError::Unserved { task_type, slice: slice.name.clone() });
            }
        }
        Ok(())
    }

    /// A number that two plans share if they are the same, apart from the address of the switch.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        let same = Self { switch: Endpoint::default(), ..self.clone() };
        // Writing to a hash cannot fail.
        let _ = write!(hash, "{same:?}");
        hash.0
    }

    fn check_times(&self) -> Result<(), PlanError> {
        if self.renew_every == Nanos(0) || self.lease < self.renew_every.times(2) {
            return Err(PlanError::Lease { lease: self.lease, renew_every: self.renew_every });
        }
        if self.max_wait == Nanos(0) || self.unmeasured_limit == 0 {
            return Err(PlanError::NoWait);
        }
        Ok(())
    }
}

/// The hash FNV-1a of what is written.
struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        Ok(())
    }
}

/// Why a plan cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// The plan has no slice: add one.
    #[error("the plan has no slice, and a rack needs at least one: add one")]
    NoSlices,
    /// The plan has more slices than indices: merge some.
    #[error("the plan has {count} slices; {} is the most that can be numbered: merge some", u16::MAX)]
    TooManySlices {
        /// How many slices the plan has.
        count: usize,
    },
    /// A slice's name is not valid: rename it.
    #[error("a slice's name: {0}")]
    SliceName(NameError),
    /// Two slices have the same name: rename one.
    #[error("two slices are called `{}`: rename one", .slice.escape_debug())]
    SliceTwice { slice: String },
    /// A type can go to one slice only: take it out of the other.
    #[error("task type {task_type} goes to slice `{}` and to slice `{}`; keep it in one", .first.escape_debug(), .second.escape_debug())]
    TypeTwice {
        task_type: String,
        /// The slice that names the type first.
        first: String,
        /// The slice that names the type again.
        second: String,
    },
    /// No task may wait in a slice: give it a limit of at least 1, or no limit.
    #[error("slice `{}` has limit 0; leave it out, or let at least 1 task wait", .slice.escape_debug())]
    NoLimit { slice: String },
    /// The plan has more labels than bits: use fewer.
    #[error(
        "the plan has {count} labels, and {} are the most that can be told apart: leave some out",
        Labels::MAX
    )]
    TooManyLabels {
        /// How many labels the plan has.
        count: usize,
    },
    /// A label is not a valid name: rename it.
    #[error("a label: {0}")]
    LabelName(NameError),
    /// The plan names a label twice: remove one.
    #[error("label `{}` stands there twice: leave it out once", .label.escape_debug())]
    LabelTwice { label: String },
    /// No kind of workers has the labels that tasks of a type need: give some workers these labels.
    #[error(
        "no kind of workers of slice `{}` has all labels that task type {task_type} needs: give them to some",
        .slice.escape_debug()
    )]
    Unserved { task_type: String, slice: String },
    /// One late heartbeat would end a lease: lengthen the lease.
    #[error(
        "a lease of {} ns renewed every {} ns would end at the first late renewal; it needs twice that at least",
        lease.0, renew_every.0
    )]
    Lease {
        lease: Nanos,
        /// The time between renewals.
        renew_every: Nanos,
    },
    /// No task could wait: give a longest wait and a limit above zero.
    #[error("max_wait and unmeasured_limit must be above 0, or no task could ever wait")]
    NoWait,
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;

    use super::*;

    fn slice(name: &str, types: &[u16]) -> SlicePlan {
        SlicePlan {
            name: name.to_string(),
            types: types.iter().map(|t| TaskType(*t)).collect(),
            ..SlicePlan::default()
        }
    }

    fn plan(slices: Vec<SlicePlan>) -> Plan {
        Plan::new(Endpoint::default(), slices)
    }

    #[test]
    fn the_defaults_pass() {
        assert_eq!(plan(vec![slice("get", &[1]), slice("scan", &[2])]).check(), Ok(()));
    }

    #[test]
    fn a_plan_without_slices_is_refused() {
        assert_eq!(plan(vec![]).check(), Err(PlanError::NoSlices));
    }

    #[test]
    fn a_type_in_two_slices_is_refused_with_both_names() {
        let error = plan(vec![slice("get", &[1, 3]), slice("scan", &[2, 3])]).check().unwrap_err();
        assert_eq!(error.to_string(), "task type 3 goes to slice `get` and to slice `scan`; keep it in one");
    }

    #[test]
    fn two_slices_of_one_name_are_refused() {
        let error = plan(vec![slice("get", &[1]), slice("get", &[2])]).check();
        assert_eq!(error, Err(PlanError::SliceTwice { slice: "get".to_string() }));
    }

    #[test]
    fn a_lease_that_one_late_renewal_would_end_is_refused() {
        let mut plan = plan(vec![slice("get", &[1])]);
        plan.lease = plan.renew_every.times(2) - Nanos(1);
        assert!(matches!(plan.check(), Err(PlanError::Lease { .. })));
        plan.lease = plan.renew_every.times(2);
        assert_eq!(plan.check(), Ok(()));
    }

    #[test]
    fn only_as_many_slices_are_taken_as_have_an_index() {
        let names_are_looked_at = PlanError::SliceTwice { slice: "s".to_string() };
        assert_eq!(plan(vec![slice("s", &[]); 65_535]).check(), Err(names_are_looked_at));
        let too_many = PlanError::TooManySlices { count: 65_536 };
        assert_eq!(plan(vec![slice("s", &[]); 65_536]).check(), Err(too_many));
    }

    #[test]
    fn a_task_is_known_for_as_long_as_a_try_of_it_may_wait_and_be_on_its_way() {
        let plan = plan(vec![]);
        assert_eq!(plan.transit(), Nanos::from_millis(2_000));
        assert_eq!(plan.retry_horizon(), Nanos::from_millis(5_000 + 20 + 2_000));
    }

    #[test]
    fn a_plan_in_which_nothing_could_wait_is_refused() {
        let sound = plan(vec![slice("get", &[1])]);
        let [no_time, no_room] =
            [Plan { max_wait: Nanos(0), ..sound.clone() }, Plan { unmeasured_limit: 0, ..sound }];
        assert_eq!((no_time.check(), no_room.check()), (Err(PlanError::NoWait), Err(PlanError::NoWait)));
    }

    #[test]
    fn a_slice_in_which_nothing_may_wait_is_refused() {
        let mut plan = plan(vec![slice("get", &[1])]);
        plan.slices[0].limit = Some(0);
        assert!(matches!(plan.check(), Err(PlanError::NoLimit { .. })));
    }
}
