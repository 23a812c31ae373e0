//! The stream of tasks, the same for every policy.
//!
//! Arrivals, classes, services and sizes come from a stream of randomness each, which depends on the seed
//! and the replication alone. So two policies get the same tasks, and another rate gives the same tasks at
//! other times.

use std::sync::Arc;

use sluice_events::dice::Dice;
use sluice_wire::{Nanos, TaskType};

use super::class::changed;
use super::clock::ArrivalClock;
use super::plan::Arrivals;
use super::{Class, Request, Service, Trace, Workload};

/// The tasks of a workload in order of time, made one by one.
#[derive(Clone, Debug)]
pub struct Requests {
    source: Source,
    gaps: Dice,
    draws: Draws,
    /// The mix of each phase of a plan; without a plan one mix.
    mixes: Vec<Mix>,
}

#[derive(Clone, Debug)]
enum Source {
    Clock(ArrivalClock),
    Trace { trace: Arc<Trace>, rate_per_s: f64, next: usize },
    Nothing,
}

#[derive(Clone, Debug)]
struct Draws {
    classes: Dice,
    services: Dice,
    sizes: Dice,
}

#[derive(Clone, Debug)]
struct Mix(Vec<Part>);

#[derive(Clone, Debug)]
struct Part {
    up_to: f64,
    task_type: TaskType,
    service: Service,
    large: f64,
}

impl Requests {
    /// The tasks of `workload` at `rate_per_s`. A trace has its own times and ignores the rate, unless it
    /// is to be scaled.
    ///
    /// A rate that is not above 0 and finite gives no task.
    pub fn new(workload: &Workload, rate_per_s: f64, seed: u64, replication: u32) -> Self {
        let dice = |name| Dice::named(seed, name, replication);
        let draws = Draws { classes: dice("classes"), services: dice("services"), sizes: dice("sizes") };
        Self {
            source: Source::new(&workload.arrivals, rate_per_s),
            gaps: dice("arrivals"),
            draws,
            mixes: mixes(workload),
        }
    }
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        match &mut self.source {
            Source::Clock(clock) => {
                let at = clock.next(&mut self.gaps)?;
                let mix = &self.mixes[clock.phase()];
                Some(self.draws.request(at, mix))
            }
            Source::Trace { trace, rate_per_s, next } => {
                let task = *trace.tasks().get(*next)?;
                *next += 1;
                let part = &self.mixes[0].0[usize::from(task.class)];
                let service = task.service.unwrap_or_else(|| part.service.draw(&mut self.draws.services));
                let large = task.large.unwrap_or_else(|| self.draws.is_large(part));
                let at = trace.due(&task, *rate_per_s);
                Some(Request { at, class: task.class, task_type: part.task_type, service, large })
            }
            Source::Nothing => None,
        }
    }
}

impl Source {
    fn new(arrivals: &Arrivals, rate_per_s: f64) -> Self {
        if let Arrivals::Trace(trace) = arrivals {
            return Self::Trace { trace: Arc::clone(trace), rate_per_s, next: 0 };
        }
        let gap_ns = 1e9 / rate_per_s;
        if !(gap_ns.is_finite() && gap_ns > 0.0) {
            return Self::Nothing;
        }
        ArrivalClock::new(arrivals, gap_ns).map_or(Self::Nothing, Self::Clock)
    }
}

impl Draws {
    fn request(&mut self, at: Nanos, mix: &Mix) -> Request {
        let class = mix.pick(&mut self.classes);
        let part = &mix.0[class];
        let service = part.service.draw(&mut self.services);
        let large = self.is_large(part);
        Request { at, class: class as u8, task_type: part.task_type, service, large }
    }

    /// Draws a number only if the outcome is uncertain.
    fn is_large(&mut self, part: &Part) -> bool {
        part.large >= 1.0 || part.large > 0.0 && self.sizes.happens(part.large)
    }
}

impl Mix {
    fn new<'c>(classes: impl Iterator<Item = &'c Class>) -> Self {
        let mut sum = 0.0;
        let parts = classes.map(|class| {
            sum += class.share;
            let (task_type, large) = (class.task_type, class.large);
            Part { up_to: sum, task_type, service: class.service.clone(), large }
        });
        Self(parts.collect())
    }

    fn pick(&self, dice: &mut Dice) -> usize {
        if self.0.len() == 1 {
            return 0;
        }
        let drawn = dice.unit() * self.0[self.0.len() - 1].up_to;
        self.0.iter().position(|part| drawn <= part.up_to).unwrap_or(self.0.len() - 1)
    }
}

fn mixes(workload: &Workload) -> Vec<Mix> {
    match &workload.arrivals {
        Arrivals::Plan(plan) => {
            let classes = plan.phases.iter().map(|phase| changed(&workload.classes, &phase.changes));
            classes.map(|classes| Mix::new(classes.iter())).collect()
        }
        _ => vec![Mix::new(workload.classes.iter())],
    }
}
