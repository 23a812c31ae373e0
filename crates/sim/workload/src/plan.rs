//! The arrivals of tasks: at random, evenly, at a rate that changes with time, or from a trace.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use sluice_wire::Nanos;

use super::flows::Flows;
use super::text::{number, show_span, span};
use super::{Service, Trace, WorkloadError};

/// How tasks follow one another.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Arrivals {
    /// Independent arrivals at a constant rate.
    #[default]
    Poisson,
    /// Equal gaps.
    Even,
    /// Independent arrivals, at a rate and with a mix that change with time.
    Plan(PhasePlan),
    Trace(Arc<Trace>),
    /// Flows of a fabric's hosts: independent arrivals, each to another host.
    Flows(Arc<Flows>),
}

/// The changes with time.
#[derive(Clone, Debug, PartialEq)]
pub struct PhasePlan {
    /// The phases, one after the other. The last one's final rate and its mix stay for ever, unless the
    /// plan repeats.
    pub phases: Vec<Phase>,
    /// Whether the first phase follows the last again.
    pub repeat: bool,
}

/// One phase of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// The phase's length.
    pub lasts: Nanos,
    /// The factor of the rate at the phase's start.
    pub from: f64,
    /// The factor of the rate at the phase's end; it changes linearly in between.
    pub to: f64,
    /// How the phase's mix differs from the workload's. The next phase starts from the workload's mix
    /// again.
    pub changes: Vec<Change>,
}

/// The changes of one class during a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The index of the class in the workload.
    pub class: usize,
    /// The class's share of the tasks.
    pub share: Option<f64>,
    pub service: Option<Service>,
}

const USAGE: &str =
    "poisson, even, steps:FACTOR@SPAN:…:FACTOR, ramp:FROM:TO:SPAN or burst:FACTOR:LENGTH:EVERY";
const FACTOR_MAX: f64 = 1e6;
const FOREVER: Nanos = Nanos(0);

impl Arrivals {
    /// Reads `poisson`, `even`, `steps:1@50ms:2`, `ramp:0.5:2:100ms` or `burst:5:1ms:10ms`.
    ///
    /// Steps that all have a span repeat; a last step without a span stays. `0.5..2@10ms` is a step whose
    /// rate grows.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let plan = match name {
            "poisson" if rest.is_empty() => return Ok(Self::Poisson),
            "even" if rest.is_empty() => return Ok(Self::Even),
            "steps" => read_steps(rest),
            "ramp" => read_ramp(rest),
            "burst" => read_burst(rest),
            _ => Err(format!("it is none of {USAGE}")),
        };
        let checked = plan.and_then(|plan| plan.check().map(|()| plan));
        let wrong = |why| WorkloadError::Arrivals { text: text.to_owned(), why };
        checked.map(Self::Plan).map_err(wrong)
    }

    /// Reads arrivals, or a trace of classes with these names, whose file is searched in `folder`.
    pub(super) fn parse_in(text: &str, folder: &Path, names: &[String]) -> Result<Self, WorkloadError> {
        match Trace::named(text, folder, Some(names)) {
            Some(trace) => Ok(Self::Trace(Arc::new(trace?))),
            None => Self::parse(text),
        }
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson => f.write_str("poisson"),
            Self::Even => f.write_str("even"),
            Self::Plan(plan) => plan.fmt(f),
            Self::Trace(trace) => f.write_str(&trace.text()),
            Self::Flows(flows) => f.write_str(&flows.text()),
        }
    }
}

impl PhasePlan {
    /// Whether the mix changes too, which the short form cannot express.
    pub fn changes_the_mix(&self) -> bool {
        self.phases.iter().any(|phase| !phase.changes.is_empty())
    }

    /// Checks that time goes on and tasks arrive.
    pub(super) fn check(&self) -> Result<(), String> {
        let legal = |factor: &f64| (0.0..=FACTOR_MAX).contains(factor);
        if let Some(wrong) = self.phases.iter().flat_map(|phase| [phase.from, phase.to]).find(|f| !legal(f)) {
            return Err(format!("the factor {wrong} is not from 0 to {FACTOR_MAX}"));
        }
        let Some((last, before)) = self.phases.split_last() else {
            return Err("there is no phase: write at least one".to_owned());
        };
        let endless = !self.repeat;
        if before.iter().any(|phase| phase.lasts == FOREVER) || (last.lasts == FOREVER && !endless) {
            return Err("only the last phase may be without a span, or take no time".to_owned());
        }
        let comes = |phase: &Phase| phase.lasts > FOREVER && phase.from + phase.to > 0.0;
        let stays = endless && last.to > 0.0;
        if !stays && !self.phases.iter().any(comes) {
            return Err("every factor is 0, so that no task ever comes".to_owned());
        }
        Ok(())
    }
}

impl fmt::Display for PhasePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("steps")?;
        for phase in &self.phases {
            write!(f, ":{}", phase.from)?;
            if phase.from.to_bits() != phase.to.to_bits() {
                write!(f, "..{}", phase.to)?;
            }
            if phase.lasts > FOREVER {
                write!(f, "@{}", show_span(phase.lasts))?;
            }
        }
        match self.phases.last() {
            Some(last) if !self.repeat && last.lasts > FOREVER => write!(f, ":{}", last.to),
            _ => Ok(()),
        }
    }
}

fn read_steps(rest: &str) -> Result<PhasePlan, String> {
    let phases: Result<Vec<Phase>, String> = rest.split(':').map(read_step).collect();
    let phases = phases.map_err(|why| format!("{why}; write steps:FACTOR@SPAN:…:FACTOR"))?;
    let repeat = phases.last().is_some_and(|last| last.lasts > FOREVER);
    Ok(PhasePlan { phases, repeat })
}

fn read_step(step: &str) -> Result<Phase, String> {
    let (factors, lasts) = match step.split_once('@') {
        Some((factors, lasts)) => (factors, span(lasts)?),
        None => (step, FOREVER),
    };
    let (from, to) = factors.split_once("..").unwrap_or((factors, factors));
    Ok(Phase { lasts, from: factor(from)?, to: factor(to)?, changes: Vec::new() })
}

fn read_ramp(rest: &str) -> Result<PhasePlan, String> {
    let [from, to, lasts] = three(rest).ok_or("write ramp:FROM:TO:SPAN, such as ramp:0.5:2:100ms")?;
    let (from, to) = (factor(from)?, factor(to)?);
    let ramp = Phase { lasts: span(lasts)?, from, to, changes: Vec::new() };
    Ok(PhasePlan { phases: vec![ramp, steady(to, FOREVER)], repeat: false })
}

fn read_burst(rest: &str) -> Result<PhasePlan, String> {
    let [height, length, every] =
        three(rest).ok_or("write burst:FACTOR:LENGTH:EVERY, such as burst:5:1ms:10ms")?;
    let (height, length, every) = (factor(height)?, span(length)?, span(every)?);
    if length >= every {
        return Err(format!("a burst of {} leaves nothing of {}", show_span(length), show_span(every)));
    }
    Ok(PhasePlan { phases: vec![steady(height, length), steady(1.0, every - length)], repeat: true })
}

fn steady(factor: f64, lasts: Nanos) -> Phase {
    Phase { lasts, from: factor, to: factor, changes: Vec::new() }
}

fn factor(text: &str) -> Result<f64, String> {
    number(text).map_err(|why| format!("the factor {why}"))
}

fn three(rest: &str) -> Option<[&str; 3]> {
    rest.split(':').collect::<Vec<_>>().try_into().ok()
}
