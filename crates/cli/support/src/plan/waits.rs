//! The longest wait in the switch that is worth having, slice by slice: as the plan says, or as follows from
//! a latency.

use std::ops::RangeInclusive;
use std::time::Duration;

use sluice_testbed::Testbed;
use sluice_units::show_span;
use sluice_wire::Nanos;

use super::parts::{LoadPlan, Plan, SlicePlan};
use super::request::{Request, Spread};

/// The share of a slice's tasks whose services may take longer than a latency allows for.
const BEYOND: f64 = 0.01;
/// If the services' 99th percentile is above so many means, a task that waits at its worker may wait for a
/// service of that length.
const MUCH_LONGER: u64 = 5;
/// Which targets a switch takes.
const TARGETS: RangeInclusive<Nanos> = Nanos::from_micros(1)..=Nanos::from_millis(1_000);

impl Plan {
    /// The longest wait in the switch that is worth having for a slice's tasks; `None` if any wait is.
    ///
    /// # Errors
    /// A latency that leaves no time for a wait.
    pub fn target(&self, slice: &SlicePlan) -> Result<Option<Nanos>, String> {
        match (slice.target, slice.latency) {
            (Some(target), _) => Ok(Some(nanos(target))),
            (None, Some(latency)) => self.left_of(slice, nanos(latency)).map(Some),
            (None, None) => Ok(self.program().traits().target),
        }
    }

    /// The mean service of a slice's tasks, if the plan knows it.
    pub fn service(&self, slice: &SlicePlan) -> Option<Nanos> {
        self.services(slice).map(|of| of.mean())
    }

    /// What a latency leaves for the wait in the switch: less the services at their 99th percentile, the
    /// round trip, and the tasks before it at its worker.
    fn left_of(&self, slice: &SlicePlan, latency: Nanos) -> Result<Nanos, String> {
        let services = self.services(slice);
        let workers = self.workers.iter().filter(|worker| worker.is_of(&slice.name));
        let quota = workers.map(|worker| self.quota(worker)).max();
        let before = u64::from(quota.unwrap_or_else(|| self.program().traits().quota).saturating_sub(1));
        let (p99, mean) = services.map_or_else(Default::default, |of| (of.p99(), of.mean()));
        let each = if p99 > mean.times(MUCH_LONGER) { p99 } else { mean };
        let (round, queued) = (self.round_trip(), each.times(before));
        let taken = p99 + round + queued;
        if latency >= taken + *TARGETS.start() {
            return Ok(latency.since(taken));
        }
        Err(format!(
            "slice `{}`: a latency of {} leaves no time to wait in the switch, because services take {} at \
             their 99th percentile, the round trip {}, and tasks before it at its worker {}; raise latency",
            slice.name,
            show_span(latency),
            show_span(p99),
            show_span(round),
            show_span(queued)
        ))
    }

    /// The round trip of a task in the paper's rack, without its service, as long as this plan makes it.
    fn round_trip(&self) -> Nanos {
        Testbed::rain().zero_load().times(self.dilation.into())
    }

    /// The services of a slice's tasks under the plan's load; `None` if the plan does not know all of them.
    fn services(&self, slice: &SlicePlan) -> Option<Services> {
        let load = self.load.as_ref()?;
        let sent = load.mix.iter().filter(|(name, share)| *share > 0.0 && slice.types.contains(name));
        let of = |(name, share): &(String, f64)| {
            let (mean, spread) = service(load, name)?;
            Some((*share, nanos(mean).times(self.dilation.into()), spread))
        };
        let parts = sent.map(of).collect::<Option<Vec<_>>>()?;
        (!parts.is_empty()).then_some(Services(parts))
    }
}

/// Checks each slice's target against what the plan knows of its tasks, and against the policy.
pub(super) fn check(plan: &Plan) -> Result<(), String> {
    for slice in &plan.slices {
        let called = format!("slice `{}`", slice.name);
        let own = match (slice.target, slice.latency) {
            (Some(_), Some(_)) => {
                return Err(format!(
                    "{called} has a `target` and a `latency` from which a target follows; keep one"
                ));
            }
            (Some(_), None) => "target",
            (None, Some(_)) => "latency",
            (None, None) => "",
        };
        if !own.is_empty() {
            check_policy(plan, &called, own)?;
            if !plan.workers.is_empty() && !plan.workers.iter().any(|worker| worker.is_of(&slice.name)) {
                return Err(format!(
                    "{called} has a `{own}` and no worker, so that no task could keep it; add a [[worker]] \
                     with slice = \"{}\", or leave `{own}` out",
                    slice.name
                ));
            }
        }
        if let Some(target) = plan.target(slice)? {
            check_target(plan, slice, &called, target)?;
        }
    }
    Ok(())
}

fn check_policy(plan: &Plan, called: &str, own: &str) -> Result<(), String> {
    if plan.racks.is_some() {
        return Err(format!("{called} has a `{own}`, and no slice below spines has one; leave it out"));
    }
    if plan.program().traits().takes_targets {
        return Ok(());
    }
    Err(format!(
        "{called} has a `{own}`, and `{}` refuses no task because it would wait too long; take rain:2, or \
         leave `{own}` out",
        plan.policy
    ))
}

fn check_target(plan: &Plan, slice: &SlicePlan, called: &str, target: Nanos) -> Result<(), String> {
    if !TARGETS.contains(&target) {
        let (from, to) = (show_span(*TARGETS.start()), show_span(*TARGETS.end()));
        return Err(format!("{called}: a target of {} is not between {from} and {to}", show_span(target)));
    }
    let mean = plan.services(slice).map_or(Nanos(0), |of| of.mean());
    let least = [(mean, "one service takes on average"), (plan.round_trip(), "a round trip takes")];
    match least.into_iter().find(|(least, _)| target < *least) {
        None => Ok(()),
        Some((least, what)) => Err(format!(
            "{called}: a target of {} is shorter than what {what}, {}, so that tasks would be refused which \
             could be served in time; give {1} at least",
            show_span(target),
            show_span(least)
        )),
    }
}

/// Services: each part's share, mean, and how it varies.
struct Services(Vec<(f64, Nanos, Spread)>);

impl Services {
    fn share(&self) -> f64 {
        self.0.iter().map(|(share, ..)| share).sum()
    }

    fn mean(&self) -> Nanos {
        let sum: f64 = self.0.iter().map(|(share, mean, _)| share * mean.0 as f64).sum();
        Nanos((sum / self.share()) as u64)
    }

    /// The time that a hundredth of the services exceeds.
    fn p99(&self) -> Nanos {
        let beyond = |ns: f64| {
            let of = |(share, mean, spread): &(f64, Nanos, Spread)| match spread {
                Spread::Constant => share * f64::from(u8::from(ns < mean.0 as f64)),
                Spread::Exponential => share * (-ns / mean.0.max(1) as f64).exp(),
            };
            self.0.iter().map(of).sum::<f64>() / self.share()
        };
        let longest = self.0.iter().map(|(_, mean, _)| mean.0).max().unwrap_or(0) as f64;
        let (mut low, mut high) = (0.0, longest * -BEYOND.ln() + 1.0);
        while high - low > 1.0 {
            let middle = f64::midpoint(low, high);
            (low, high) = if beyond(middle) > BEYOND { (middle, high) } else { (low, middle) };
        }
        Nanos(high as u64)
    }
}

/// The expected service of a type's tasks, and how it varies; `None` if the plan does not know it.
fn service(load: &LoadPlan, name: &str) -> Option<(Duration, Spread)> {
    let (_, request) = load.requests.iter().find(|(of, _)| of == name)?;
    match *request {
        Request::Busy { span, spread } => Some((span, spread)),
        Request::Get { keys, spread, each } => Some((each?.saturating_mul(keys), spread)),
        Request::Scan { rows, spread, each } => Some((each?.saturating_mul(rows), spread)),
        Request::Text(_) => None,
    }
}

fn nanos(span: Duration) -> Nanos {
    Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}
