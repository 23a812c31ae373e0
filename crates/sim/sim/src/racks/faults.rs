//! Fault runs over two hops: racks below spines under losses, repeats and overtaking, in which leaves,
//! spines, workers and all controllers die and return with an empty memory (Horus A.3). The runs check the
//! protocol's promises.
//!
//! One seed gives one run. The controller above spines is in `above`, racks' own controllers are in
//! `racks`.

mod controller_above;
mod knowledge;
mod oracle;
mod racks;
mod scenario;
mod strangers;
mod table_operations;

use std::ops::Range;

use controller_above::ControllerAbove;
use knowledge::Renewals;
use oracle::HopOracle;
use racks::RackControllers;
use scenario::{
    AboveStep, END, FAULTS_END, HopScenario, LAST_RENEWAL, LeadStep, QUIET, SETTLED, SUBMIT_END, UNDER_WAY,
};
use sluice_faults::{Broken, Many, Tally, run_each};
use sluice_wire::Nanos;
use table_operations::RENEW;

use super::downtime::OutageStep;
use super::placement::Placement;
use super::places::{LEAVES, Scheduled};
use super::world::SimulatedRacks;
use crate::policy::Policy;
use crate::system::System;

/// Runs a system, from the seed to the final check.
///
/// # Errors
/// The first promise that broke.
pub fn run_faults(system: System, seed: u64) -> Result<Tally, Broken> {
    let scenario = HopScenario::of(&Policy::Datacenter(system), seed);
    let point = &scenario.point;
    let watched = (point, Placement::of(point), HopOracle::new(SETTLED));
    let mut datacenter = SimulatedRacks::led(system, watched);
    let (leads, above) =
        (RackControllers::start(&mut datacenter, seed), ControllerAbove::start(&mut datacenter, seed));
    let mut trial = Trial { system, datacenter, leads, above, scenario: &scenario, rested: false };
    trial.renew();
    trial.run().map_err(|(at, what)| Broken { seed, at_ns: at.0, what })
}

/// Runs these seeds on so many threads, until one breaks a promise.
pub fn run_many_faults(system: System, seeds: Range<u64>, threads: usize) -> Many {
    run_each(|seed| run_faults(system, seed), seeds, threads, |_| true)
}

/// A step of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Outage(OutageStep),
    Lead(LeadStep),
    Above(AboveStep),
    Renew,
    /// Strangers send tasks to leaves.
    Strangers,
    FaultsEnd,
    SubmitEnd,
    Rests,
    Quiet,
    End,
}

/// One fault run: a datacenter with one pool, in which rack *i* is the rack of leaf *i*, and the run's steps.
struct Trial<'t> {
    system: System,
    datacenter: SimulatedRacks<HopOracle>,
    leads: RackControllers,
    above: ControllerAbove,
    scenario: &'t HopScenario,
    /// Whether no worker had a task at the last look.
    rested: bool,
}

impl Trial<'_> {
    fn run(mut self) -> Result<Tally, (Nanos, String)> {
        for (at, step) in self.steps() {
            self.run_until(at)?;
            match step {
                Step::Outage(turn) => {
                    self.datacenter.on_outage(turn);
                    self.leads.on_outage(&mut self.datacenter, turn);
                    self.above.on_outage(&mut self.datacenter, turn);
                }
                Step::Lead(step) => self.leads.on_lead_step(&mut self.datacenter, step),
                Step::Above(AboveStep::Dies) => self.above.stop(),
                Step::Above(AboveStep::Back) => self.above.begin(&mut self.datacenter),
                Step::Renew => self.renew(),
                Step::Strangers => strangers::send_strangers_tasks(&mut self.datacenter),
                Step::FaultsEnd => self.datacenter.world.network.injector = None,
                Step::SubmitEnd => self.datacenter.end_requests(),
                Step::Rests => self.rested = self.is_idle(),
                Step::Quiet => self.check_spines(Renewals::None).map_err(|what| (at, what))?,
                Step::End => self.check_spines(Renewals::Many).map_err(|what| (at, what))?,
            }
        }
        let oracle = &self.datacenter.pools[0].meter.observer;
        oracle.close().map_err(|what| (END, what))
    }

    /// Whether no worker has a task.
    fn is_idle(&self) -> bool {
        let now = self.datacenter.world.now;
        self.datacenter.workers.are_idle(now)
    }

    /// Checks what spines know of their racks, if nothing is under way: workers have been idle for the time
    /// that an UPDATE takes, and no client has sent a task.
    fn check_spines(&mut self, since: Renewals) -> Result<(), String> {
        let oracle = &self.datacenter.pools[0].meter.observer;
        let is_quiet = oracle.has_seen_nothing_for(self.datacenter.world.now, UNDER_WAY);
        if !(self.rested && is_quiet && self.is_idle()) {
            return Ok(());
        }
        knowledge::wrong(self.system, &mut self.datacenter, since).map_or(Ok(()), Err)
    }

    fn renew(&mut self) {
        self.above.renew(&mut self.datacenter);
        self.leads.renew(&mut self.datacenter, &mut self.above);
    }

    /// The steps in order of time; steps of the same time stay in the order of the list.
    fn steps(&self) -> Vec<(Nanos, Step)> {
        let turns = self.scenario.turns.iter().map(|(at, turn)| (*at, Step::Outage(*turn)));
        let leads = self.scenario.leads.iter().map(|(at, step)| (*at, Step::Lead(*step)));
        let above = self.scenario.above.iter().map(|(at, step)| (*at, Step::Above(*step)));
        let renewals = (1..END.0 / RENEW.0).map(|number| RENEW.times(number));
        let renewals = renewals.filter(|at| *at <= LAST_RENEWAL || *at > QUIET).map(|at| (at, Step::Renew));
        let strangers = self.scenario.strangers.iter().map(|at| (*at, Step::Strangers));
        let ends = [
            (FAULTS_END, Step::FaultsEnd),
            (SUBMIT_END, Step::SubmitEnd),
            (QUIET - UNDER_WAY, Step::Rests),
            (QUIET, Step::Quiet),
            (END - UNDER_WAY, Step::Rests),
            (END, Step::End),
        ];
        let mut steps: Vec<_> =
            turns.chain(leads).chain(above).chain(renewals).chain(strangers).chain(ends).collect();
        steps.sort_by_key(|(at, _)| *at);
        steps
    }

    /// Carries out all events until `end`.
    fn run_until(&mut self, end: Nanos) -> Result<(), (Nanos, String)> {
        self.datacenter.world.engine.schedule(end, LEAVES, Scheduled::Look);
        loop {
            let Some((at, what)) = self.datacenter.world.next() else { return Ok(()) };
            let now = self.datacenter.world.now;
            self.datacenter.pools[0].meter.observer.set_now(now);
            if now == end && matches!(what, sluice_events::WorldEvent::Scheduled(Scheduled::Look)) {
                return Ok(());
            }
            self.datacenter.on_event(at, what);
            if let Some(what) = &self.datacenter.pools[0].meter.observer.broken {
                return Err((now, what.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keeps(system: &str, seeds: u64) -> Tally {
        let system = System::parse(system).expect("a system").expect("it reads");
        let many = run_many_faults(system, 0..seeds, 2);
        assert!(
            many.broken.is_none(),
            "{system}: {}",
            many.broken.map_or_else(String::new, |b| b.to_string())
        );
        many.tally
    }

    #[test]
    fn seeds_with_dying_leaves_and_spines_keep_their_promises_over_two_hops() {
        for (system, seeds) in
            [("dc-horus", 300), ("dc-horus:idle-rack=random", 150), ("dc-horus:told=replies", 150)]
                .into_iter()
                .chain([("dc-rs-h", 150), ("dc-rs-lb", 150), ("dc-rain:2", 150)])
        {
            let tally = keeps(system, seeds);
            assert!(
                tally.run_again > 0,
                "{system}: no try ran after another: the faults are too kind; {tally}"
            );
            assert!(tally.unknown + tally.refused > 0, "{system}: the faults are too kind; {tally}");
            assert!(tally.replied * 10 > tally.submitted * 8, "{system}: {tally}");
        }
    }

    /// Horus A.4: a worker answers a task that it has run from memory, if the next try comes to it.
    #[test]
    fn tries_that_follow_each_other_run_less_often_and_keep_the_same_promises() {
        let [anywhere, kept] =
            ["dc-horus:told=replies", "dc-horus:told=replies,affinity=20ms"].map(|system| keeps(system, 150));
        assert_eq!(anywhere.submitted, kept.submitted, "the same tasks");
        assert!(kept.run_again * 2 < anywhere.run_again, "{kept} against {anywhere}");
    }

    #[test]
    fn one_seed_is_one_run() {
        let system = System::Hierarchy { even_spines: false, by_size: false };
        assert_eq!(run_faults(system, 7), run_faults(system, 7));
    }
}
