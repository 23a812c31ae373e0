//! The workload of a rack: classes of tasks with their service times, and when they arrive.
//!
//! Command lines use short forms (`exp:10us`, `get=0.9@const:8us+scan=0.1@const:107us;burst:5:1ms:10ms`),
//! plans use tables; `docs/manual/workloads.md` has all forms. One seed gives one stream of [`Requests`],
//! the same for every policy. Left out: closed loops, in which a slow rack would get fewer tasks.
#![forbid(unsafe_code)]

mod bounds;
mod class;
mod clock;
mod cluster;
mod complaint;
mod empirical;
mod error;
pub mod files;
mod flows;
mod form;
mod made;
mod moments;
mod parameters;
mod plan;
mod profile;
mod request;
mod requests;
mod service;
mod short;
mod sizes;
mod text;
mod trace;

use std::fmt;
use std::sync::Arc;

use sluice_wire::{Nanos, TaskType};

pub use bounds::{MEAN_MAX, SERVICE_MAX};
pub use class::{Class, LARGE_BYTES, check_budget, read_budget};
pub use complaint::{TomlComplaint, TomlStep, read_toml};
pub use empirical::Empirical;
pub use error::WorkloadError;
pub use flows::Flows;
pub use flows::published_sizes;
pub use form::{ClassTable, Factor, PhaseTable, WorkloadForm, WorkloadTable};
pub use plan::{Arrivals, Change, Phase, PhasePlan};
pub use profile::{PROFILE_SCHEMA, Profile, ProfileData, ProfileOperation};
pub use request::Request;
pub use requests::Requests;
pub use service::Service;
pub use sizes::equal_spans;
pub use sluice_events::dice::Dice;
pub use trace::{Trace, TraceWriter, TracedTask};

/// Classes of tasks, and their arrivals.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// At least one class; the shares add up to 1.
    pub classes: Vec<Class>,
    pub arrivals: Arrivals,
}

/// The name of the only class, if none was given.
const ONLY_CLASS: &str = "task";
impl Workload {
    /// Makes a workload of classes that fit together; an error says which do not.
    pub fn new(classes: Vec<Class>, arrivals: Arrivals) -> Result<Self, WorkloadError> {
        let workload = Self { classes, arrivals };
        workload.check().map_err(|why| WorkloadError::Workload { text: workload.to_string(), why })?;
        Ok(workload)
    }

    /// The mean service of a task over all classes, without the changes of phases, in nanoseconds.
    pub fn mean_service_ns(&self) -> f64 {
        mean_ns(&self.classes)
    }

    /// The squared coefficient of variation of a task's service, over all classes.
    pub fn squared_variation(&self) -> f64 {
        let square: f64 = self.classes.iter().map(|class| class.share * class.service.moments().1).sum();
        (square / (self.mean_service_ns() * self.mean_service_ns()) - 1.0).max(0.0)
    }

    /// How many tasks are due in the first `span_ns` on average; at least 1.
    pub fn tasks_within(&self, rate_per_s: f64, span_ns: u64) -> u64 {
        let Arrivals::Plan(plan) = &self.arrivals else {
            return (libm::ceil(rate_per_s * span_ns as f64 / 1e9) as u64).max(1);
        };
        let (mut left, mut tasks) = (span_ns as f64, 0.0);
        for (at, phase) in plan.phases.iter().enumerate().cycle() {
            let is_last = !plan.repeat && at + 1 == plan.phases.len();
            let span = if is_last { left } else { left.min(phase.lasts.0.max(1) as f64) };
            tasks += span / 1e9 * rate_per_s * f64::midpoint(phase.from, phase.to);
            left -= span;
            if left <= 0.0 {
                break;
            }
        }
        (libm::ceil(tasks) as u64).max(1)
    }

    /// How many workers `rate_per_s` keeps busy in the busiest phase, at least.
    ///
    /// A trace has a rate of its own, and only its mean over time is known.
    pub fn busy_workers(&self, rate_per_s: f64) -> f64 {
        match &self.arrivals {
            Arrivals::Trace(trace) if !trace.is_scaled() => trace.rate_per_s() * self.mean_service_ns() / 1e9,
            Arrivals::Poisson | Arrivals::Even | Arrivals::Flows(_) | Arrivals::Trace(_) => {
                rate_per_s * self.mean_service_ns() / 1e9
            }
            Arrivals::Plan(plan) => {
                let busy = plan.phases.iter().map(|phase| {
                    let mean_ns = mean_ns(&class::changed(&self.classes, &phase.changes));
                    rate_per_s * phase.from.max(phase.to) * mean_ns / 1e9
                });
                busy.fold(0.0, f64::max)
            }
        }
    }

    /// Whether there is a steady state: the rate and mix of arrivals must not change by plan.
    pub fn is_steady(&self) -> bool {
        matches!(self.arrivals, Arrivals::Poisson | Arrivals::Even | Arrivals::Flows(_))
    }

    /// The trace, if the tasks come from one.
    pub fn trace(&self) -> Option<&Trace> {
        match &self.arrivals {
            Arrivals::Trace(trace) => Some(trace),
            _ => None,
        }
    }

    /// The flows, if hosts send some over a fabric.
    pub fn flows(&self) -> Option<&Flows> {
        match &self.arrivals {
            Arrivals::Flows(flows) => Some(flows),
            _ => None,
        }
    }

    /// Checks what the types do not ensure.
    fn check(&self) -> Result<(), String> {
        if self.classes.is_empty() || self.classes.len() > trace::CLASSES_MAX {
            return Err(format!("there are {} classes, not 1 to {}", self.classes.len(), trace::CLASSES_MAX));
        }
        for (i, class) in self.classes.iter().enumerate() {
            class.check()?;
            if self.classes[..i].iter().any(|other| other.name == class.name) {
                return Err(format!("two classes are called `{}`: rename one", class.name));
            }
        }
        text::add_up(self.classes.iter().map(|class| class.share), "shares")?;
        let Arrivals::Plan(plan) = &self.arrivals else { return Ok(()) };
        plan.check()?;
        for (i, phase) in plan.phases.iter().enumerate() {
            let classes = class::changed(&self.classes, &phase.changes);
            let shares = classes.iter().try_for_each(Class::check);
            let shares =
                shares.and_then(|()| text::add_up(classes.iter().map(|class| class.share), "shares"));
            shares.map_err(|why| format!("phase {}: {why}", i + 1))?;
        }
        Ok(())
    }

    /// `trace:FILE` or `flows:NAME`, if the workload consists of this file and nothing else.
    fn only_file(&self) -> Option<String> {
        if let Arrivals::Flows(flows) = &self.arrivals {
            return Some(flows.text());
        }
        let Arrivals::Trace(trace) = &self.arrivals else { return None };
        let text = trace.text();
        self.classes.iter().all(|class| class.service.to_string() == text).then_some(text)
    }

    fn of_trace(trace: Trace) -> Result<Self, WorkloadError> {
        let classes = (0..trace.classes().len()).map(|class| traced_class(&trace, class));
        let classes = classes.collect::<Result<_, _>>()?;
        Self::new(classes, Arrivals::Trace(Arc::new(trace)))
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(trace) = self.only_file() {
            return f.write_str(&trace);
        }
        let arrivals = match &self.arrivals {
            Arrivals::Poisson => String::new(),
            Arrivals::Plan(plan) if plan.changes_the_mix() => format!(";{plan} with changes of the mix"),
            other => format!(";{other}"),
        };
        for (i, class) in self.classes.iter().enumerate() {
            let plus = if i == 0 { "" } else { "+" };
            match &self.classes[..] {
                [only] if only.name == ONLY_CLASS => write!(f, "{}", class.service)?,
                _ => write!(f, "{plus}{}={}@{}", class.name, class.share, class.service)?,
            }
            if class.large > 0.0 {
                write!(f, ",large={}", class.large)?;
            }
            if class.bytes != LARGE_BYTES {
                write!(f, ",bytes={}", class.bytes)?;
            }
            if usize::from(class.task_type.0) != i {
                write!(f, ",type={}", class.task_type)?;
            }
            if let Some(priority) = class.priority {
                write!(f, ",priority={priority}")?;
            }
            if let Some(budget) = class.budget {
                write!(f, ",budget={}", text::show_span(budget))?;
            }
        }
        f.write_str(&arrivals)
    }
}

fn mean_ns(classes: &[Class]) -> f64 {
    classes.iter().map(|class| class.share * class.service.mean_ns()).sum()
}

/// A class that only a trace describes: its services are those of the trace's tasks.
fn traced_class(trace: &Trace, class: usize) -> Result<Class, WorkloadError> {
    let name = &trace.classes()[class];
    let tasks = || trace.tasks().iter().filter(|task| usize::from(task.class) == class);
    let services: Vec<Nanos> = tasks().filter_map(|task| task.service).collect();
    if services.is_empty() {
        return Err(WorkloadError::Workload {
            text: trace.text(),
            why: format!(
                "no line says how long a `{name}` takes: add a third column, or name the classes before it \
                          (`{name}=1@exp:10us;{}`)",
                trace.text()
            ),
        });
    }
    let larges = tasks().filter(|task| task.large == Some(true)).count();
    let count = tasks().count() as f64;
    Ok(Class {
        name: name.clone(),
        task_type: TaskType(class as u16),
        share: count / trace.tasks().len() as f64,
        service: Service::of_values(&trace.text(), services),
        large: larges as f64 / count,
        bytes: LARGE_BYTES,
        priority: trace.priority(class),
        budget: None,
    })
}
