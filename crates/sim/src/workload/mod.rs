//! What a rack is asked to do: classes of tasks with their service times, and when they come.
//!
//! Short forms stand on command lines (`exp:10us`,
//! `get=0.9@const:8us+scan=0.1@const:107us;burst:5:1ms:10ms`), tables in plans; `docs/workloads.md` has them
//! all. One seed gives one stream of [`Requests`], the same for every policy. Left out are closed loops: a
//! slow rack gets no less to do.

mod clock;
mod cluster;
mod empirical;
mod error;
mod form;
mod made;
mod moments;
mod parameters;
mod plan;
mod profile;
mod requests;
mod service;
mod sizes;
pub(crate) mod text;
mod trace;

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use sluice_wire::sizes::KINDS_MAX;
use sluice_wire::{INLINE_BYTES, Nanos, TaskType};

pub use empirical::Empirical;
pub use error::WorkloadError;
pub use form::{ClassTable, Factor, PhaseTable, WorkloadForm, WorkloadTable};
pub use plan::{Arrivals, Change, Phase, Plan};
pub use profile::{Measurement, PROFILE_SCHEMA, Profile, ProfileData, ProfileOperation};
pub use requests::{Request, Requests};
pub use service::{MEAN_MAX, SERVICE_MAX, Service};
pub use sizes::equal_spans;
pub use trace::{Trace, TraceWriter, TracedTask};

/// Classes of tasks, and when they come.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// At least one; their shares add up to 1.
    pub classes: Vec<Class>,
    /// When tasks come.
    pub arrivals: Arrivals,
}

/// Tasks of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// What people call it.
    pub name: String,
    /// What the switch calls it.
    pub task_type: TaskType,
    /// Its share of all tasks.
    pub share: f64,
    /// How long its tasks take.
    pub service: Service,
    /// The share of its tasks that carry more than the 8 bytes that ride in a queue entry.
    pub large: f64,
    /// How many bytes those carry.
    pub bytes: u16,
    /// How urgent its tasks are, 0 first; none: their size alone tells.
    pub priority: Option<u8>,
}

/// What a large task carries unless something else is said: ten keys of 64 bytes.
pub const LARGE_BYTES: u16 = 640;
/// What fits one WRITE beside the task's id; a longer task's rest would go straight to its worker.
const BYTES_MAX: u16 = 4_084;
/// The last priority: no switch has more classes.
const PRIORITY_MAX: u8 = KINDS_MAX as u8 - 1;

/// The name of the class when there is one only and nobody named it.
const ONLY_CLASS: &str = "task";
const USAGE: &str = "write SERVICE, or NAME=SHARE@SERVICE+NAME=SHARE@SERVICE, each with `,large=SHARE`, \
                     `,bytes=NUMBER`, \
                     `,type=NUMBER` or `,priority=NUMBER` if need be, and `;ARRIVALS` behind it all";

impl Workload {
    /// Classes that fit together; else says what does not.
    pub fn new(classes: Vec<Class>, arrivals: Arrivals) -> Result<Self, WorkloadError> {
        let workload = Self { classes, arrivals };
        workload.check().map_err(|why| WorkloadError::Workload { text: workload.to_string(), why })?;
        Ok(workload)
    }

    /// Reads `exp:10us`, a mix, or `trace:FILE`; files are looked for from the working directory.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        Self::parse_in(text, Path::new(""))
    }

    /// The same, with files looked for from `folder`.
    pub fn parse_in(text: &str, folder: &Path) -> Result<Self, WorkloadError> {
        if let Some(table) = WorkloadTable::read(text) {
            return table?.resolve(folder);
        }
        if let Some(trace) = Trace::named(text, folder, None) {
            return Self::of_trace(trace?);
        }
        let (classes, arrivals) = match text.rsplit_once(';') {
            Some((classes, arrivals)) => (classes, Some(arrivals)),
            None => (text, None),
        };
        let classes = read_classes(classes, folder)?;
        let names: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
        let arrivals = arrivals.map(|text| read_arrivals(text, folder, &names)).transpose()?;
        Self::new(classes, arrivals.unwrap_or_default())
    }

    /// The mean service of a task, over all classes as they are outside of phases.
    pub fn mean_service_ns(&self) -> f64 {
        mean_ns(&self.classes)
    }

    /// The squared coefficient of variation of a task's service, over all classes.
    pub fn squared_variation(&self) -> f64 {
        let square: f64 = self.classes.iter().map(|class| class.share * class.service.moments().1).sum();
        (square / (self.mean_service_ns() * self.mean_service_ns()) - 1.0).max(0.0)
    }

    /// How many tasks are due in the first `span_ns`, on average; at least one.
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

    /// How many workers `rate_per_s` keeps busy at least, in the phase with the most to do.
    ///
    /// A trace has a rate of its own, and only its mean over time is known.
    pub fn busy_workers(&self, rate_per_s: f64) -> f64 {
        match &self.arrivals {
            Arrivals::Trace(trace) if !trace.is_scaled() => trace.rate_per_s() * self.mean_service_ns() / 1e9,
            Arrivals::Poisson | Arrivals::Even | Arrivals::Trace(_) => {
                rate_per_s * self.mean_service_ns() / 1e9
            }
            Arrivals::Plan(plan) => {
                let busy = plan.phases.iter().map(|phase| {
                    let mean_ns = mean_ns(&requests::changed(&self.classes, &phase.changes));
                    rate_per_s * phase.from.max(phase.to) * mean_ns / 1e9
                });
                busy.fold(0.0, f64::max)
            }
        }
    }

    /// A steady state needs arrivals whose rate and mix do not change by plan.
    pub fn is_steady(&self) -> bool {
        matches!(self.arrivals, Arrivals::Poisson | Arrivals::Even)
    }

    /// The trace whose tasks these are, if they are one's.
    pub fn trace(&self) -> Option<&Trace> {
        match &self.arrivals {
            Arrivals::Trace(trace) => Some(trace),
            _ => None,
        }
    }

    /// Checks what the types leave open.
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
            let classes = requests::changed(&self.classes, &phase.changes);
            let shares = classes.iter().try_for_each(Class::check);
            let shares =
                shares.and_then(|()| text::add_up(classes.iter().map(|class| class.share), "shares"));
            shares.map_err(|why| format!("phase {}: {why}", i + 1))?;
        }
        Ok(())
    }

    /// `trace:FILE` when the workload is what this file says, and nothing else.
    fn only_trace(&self) -> Option<String> {
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
        if let Some(trace) = self.only_trace() {
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
        }
        f.write_str(&arrivals)
    }
}

impl FromStr for Workload {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Class {
    fn check(&self) -> Result<(), String> {
        text::check_name(&self.name).map_err(|why| format!("the class {why}"))?;
        for (what, share) in [("share", self.share), ("large share", self.large)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("the {what} {share} of class `{}` is not from 0 to 1", self.name));
            }
        }
        if !(INLINE_BYTES as u16 + 1..=BYTES_MAX).contains(&self.bytes) {
            let (name, bytes) = (&self.name, self.bytes);
            return Err(format!("class `{name}`: bytes = {bytes} is not a number from 9 to {BYTES_MAX}"));
        }
        if let Some(priority) = self.priority.filter(|priority| *priority > PRIORITY_MAX) {
            return Err(format!(
                "class `{}`: priority = {priority} is not a number from 0 (first) to {PRIORITY_MAX}",
                self.name
            ));
        }
        Ok(())
    }
}

fn mean_ns(classes: &[Class]) -> f64 {
    classes.iter().map(|class| class.share * class.service.mean_ns()).sum()
}

/// A class of which a trace is all that is known: its service is what the trace's tasks took.
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
    })
}

fn read_arrivals(text: &str, folder: &Path, names: &[String]) -> Result<Arrivals, WorkloadError> {
    match Trace::named(text, folder, Some(names)) {
        Some(trace) => Ok(Arrivals::Trace(Arc::new(trace?))),
        None => Arrivals::parse(text),
    }
}

fn read_classes(text: &str, folder: &Path) -> Result<Vec<Class>, WorkloadError> {
    let wrong = |why| WorkloadError::Workload { text: text.to_owned(), why };
    if !starts_a_class(text) {
        let (service, Options { large, bytes, task_type, priority }) = options(text).map_err(wrong)?;
        let (name, task_type) = (ONLY_CLASS.to_owned(), TaskType(task_type.unwrap_or(0)));
        let service = Service::parse_in(service, folder)?;
        return Ok(vec![Class { name, task_type, share: 1.0, service, large, bytes, priority }]);
    }
    let parts = split_classes(text);
    let classes = parts.iter().enumerate().map(|(i, part)| {
        let complete = part.split_once('=').and_then(|(name, rest)| Some((name, rest.split_once('@')?)));
        let (name, (share, rest)) = complete.ok_or_else(|| wrong(format!("`{part}` has no `@`; {USAGE}")))?;
        let share = text::share(share).map_err(|why| wrong(format!("the share of `{name}`: {why}")))?;
        let (service, Options { large, bytes, task_type, priority }) = options(rest).map_err(wrong)?;
        let service = Service::parse_in(service, folder)?;
        Ok(Class {
            name: name.to_owned(),
            task_type: TaskType(task_type.unwrap_or(i as u16)),
            share,
            service,
            large,
            bytes,
            priority,
        })
    });
    classes.collect()
}

/// Splits at each `+` that starts a class; file names may hold others.
fn split_classes(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices('+') {
        if starts_a_class(&text[at + 1..]) {
            parts.push(&text[start..at]);
            start = at + 1;
        }
    }
    parts.push(&text[start..]);
    parts
}

fn starts_a_class(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| text::check_name(name).is_ok())
}

/// What may stand behind a service.
struct Options {
    large: f64,
    bytes: u16,
    task_type: Option<u16>,
    priority: Option<u8>,
}

/// Parts `SERVICE,large=SHARE,bytes=NUMBER,type=NUMBER,priority=NUMBER`.
fn options(text: &str) -> Result<(&str, Options), String> {
    let mut service = text;
    let mut options = Options { large: 0.0, bytes: LARGE_BYTES, task_type: None, priority: None };
    while let Some((rest, (key, value))) =
        service.rsplit_once(',').and_then(|(rest, option)| Some((rest, option.split_once('=')?)))
    {
        service = rest;
        match key {
            "large" => options.large = text::share(value).map_err(|why| format!("large: {why}"))?,
            "bytes" => {
                let wrong = |_| format!("bytes: `{value}` is not a number from 9 to {BYTES_MAX}");
                options.bytes = value.parse().map_err(wrong)?;
            }
            "type" => {
                let wrong = |_| format!("type: `{value}` is not a number from 0 to {}", u16::MAX);
                options.task_type = Some(value.parse().map_err(wrong)?);
            }
            "priority" => {
                let wrong = |_| format!("priority: `{value}` is not a number from 0 to {PRIORITY_MAX}");
                options.priority = Some(value.parse().map_err(wrong)?);
            }
            _ => return Err(text::unknown("option", key, ["large", "bytes", "type", "priority"])),
        }
    }
    Ok((service, options))
}
