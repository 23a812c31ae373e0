//! Plans: a rack, its load and its faults in one TOML file.
//!
//! Reading a plan (`form`) gives values that are legal one by one (`keys`) and together (`check`); nothing
//! later has to doubt them. Flags change a plan (`changes`) before anything is done with it, and what came of
//! it is written so that reading gives the same plan again.

mod changes;
pub mod check;
mod conflict;
mod cores;
mod form;
mod keys;
mod labels;
mod parts;
mod racks;
mod rdma;
mod request;
mod runs_live;
mod stages;
mod store;
mod target;
mod threshold;
mod types;
mod waits;
mod workers;

use std::path::Path;

pub use changes::{Changes, STAGED};
pub use parts::{
    Arrivals, CoresPlan, Event, FAILED_MAX, LoadPlan, POLICY_DEFAULT, POLICY_OF_CORES, Plan, REFUSED_MAX,
    RacksPlan, ServicePlan, SlicePlan, SwitchPlan, WorkerPlan,
};
pub use racks::SwitchRole;
pub use rdma::{RdmaPlan, SERVERS_MAX};
pub use request::{Request, Spread};
pub use runs_live::live_program;
pub use stages::{RateStage, RateStages};
pub use target::Target;
pub use threshold::{BoundUnit, LoadNumber, LoadShare, LoadTime, SpreadPart, Threshold};
pub use types::Types;

pub use sluice_experiment::PlanKind;
use sluice_experiment::figures::is_figure;
use sluice_switch::registry::Choice;
use sluice_system::text;

use crate::fail::{Failure, Outcome};

/// The default plan of `sluice up`.
const DEMO: &str = include_str!("../../../../../experiments/demo.toml");

impl Plan {
    /// The plan in `path`, or the demo's.
    pub fn load(path: Option<&Path>) -> Outcome<Self> {
        let Some(path) = path else { return Self::from_text("demo (built in)", DEMO) };
        let text = text::read(path).map_err(|why| {
            let path = path.display().to_string();
            if is_figure(&path) {
                return Failure::bad_input(PlanKind::Study.is_no_other(&path));
            }
            if Choice::parse(&path).is_ok() {
                return Failure::bad_input(format!("{path} is a policy, not a plan: give --policy {path}"));
            }
            Failure::bad_input(format!("plan {path} cannot be read: {why}"))
        })?;
        Self::from_text(&path.display().to_string(), &text)
    }

    /// The plan in `text`; `name` is for error messages.
    pub fn from_text(name: &str, text: &str) -> Outcome<Self> {
        if PlanKind::of(text) == Some(PlanKind::Study) {
            return Err(Failure::bad_input(PlanKind::Study.is_no_other(name)));
        }
        let plan = form::read(name, text)?;
        check::check(&plan).map_err(|why| Failure::bad_input(format!("plan {name}: {why}")))?;
        Ok(plan)
    }

    /// An empty plan: every key has its default. It cannot run, since it has no slice.
    pub fn empty() -> Self {
        form::read("", "").expect("no key is needed at the top")
    }

    /// The text that reads as this plan.
    ///
    /// # Errors
    /// A path that is not valid UTF-8, which a flag may contain.
    pub fn to_toml(&self) -> Outcome<String> {
        form::write(self).map_err(Failure::bad_input)
    }
}
