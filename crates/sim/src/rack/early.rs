//! Early tokens in a simulated rack: what services say of the time that they will take, and the token that leaves while
//! one runs.
//!
//! No worker is ever handed a drawn service time, only an estimate of it with the stated error: a factor for each task,
//! normal around 1, that holds until the task ends. (Services that count what is left do better: their word gets better
//! as the end comes near.) A token that leaves early takes the core its time from the service.

use sluice_host::worker::{Action, Outlook};
use sluice_switch::early::Early;
use sluice_wire::Nanos;

use super::stage::{Cue, Stage, What};
use super::workers::{Run, Workers};
use crate::dice::Dice;
use crate::stats::Observer;

/// What services say of themselves.
#[derive(Debug)]
pub(super) struct Estimates {
    early: Early,
    dice: Dice,
}

impl Estimates {
    pub(super) fn new(early: Early, seed: u64, replication: u32) -> Self {
        Self { early, dice: Dice::named(seed, "estimates", replication) }
    }

    fn outlook(&mut self, service: Nanos) -> Outlook {
        match self.early {
            Early::Told { error_percent } => {
                let factor = 1.0 + f64::from(error_percent) / 100.0 * self.dice.normal();
                Outlook::Left(Nanos((service.0 as f64 * factor.max(0.0)) as u64))
            }
            Early::Learned => Outlook::Units(1),
        }
    }
}

impl Workers {
    /// A service that starts says what it will take; the worker may want its early token sent before it ends.
    #[inline]
    pub(super) fn expect<O: Observer>(
        &mut self,
        stage: &mut Stage<O>,
        worker: u32,
        run: Run,
        service: Nanos,
        ends: Nanos,
    ) {
        let Some(estimates) = &mut self.estimates else { return };
        let outlook = estimates.outlook(service);
        let (machine, settings) = self.machine(worker);
        machine.expect(run.started, run.slot, outlook);
        let due = machine.early_at(settings).map(|at| at.max(run.started));
        if let Some(at) = due.filter(|at| *at < ends) {
            stage.cue(at, Cue::Host(self.at.at(worker), What::Early));
        }
    }

    /// The early token leaves; the service goes on afterwards.
    pub(super) fn early_token<O: Observer>(&mut self, stage: &mut Stage<O>, worker: u32) {
        let mut actions = std::mem::take(&mut self.actions);
        let now = stage.now();
        let (machine, settings) = self.machine(worker);
        machine.early(now, settings, &mut actions);
        for action in actions.drain(..) {
            if let Action::ToSwitch(packet) = action {
                let send = self.costs.send;
                let leaves = self.cores.spend(worker, now, send);
                stage.send(self.at.at(worker), self.switch, leaves, &packet);
                let ends = self.goes_on_for(worker, now, send);
                stage.world.engine.alarm(self.alarm(worker), ends);
            }
        }
        self.actions = actions;
    }
}
