//! The plan beside its results: what ran, flags and all, so that it runs again from that file alone.

use std::fs;
use std::path::PathBuf;

use super::files;
use crate::fail::{Failure, Outcome};
use crate::plan::Plan;

/// The file, in the folder of results.
pub const PLAN: &str = "plan.toml";

/// Who keeps a plan, and where it is from.
#[derive(Clone, Debug)]
pub struct Keeper {
    /// The command, as it was typed.
    pub command: String,
    /// The plan's file, or what stands for one.
    pub from: String,
}

impl Keeper {
    /// Writes the plan into its folder of results and says where it is. What reads it finds all of it, also
    /// where the file is the one that the plan was read from.
    pub fn keep(&self, plan: &Plan) -> Outcome<PathBuf> {
        let text = format!("{}\n{}", self.first_line(), plan.to_toml()?);
        let path = plan.out.join(PLAN);
        if Plan::from_text(&path.display().to_string(), &text)? != *plan {
            let why = "it would be another one when it is read";
            return Err(Failure::broken(format!("the plan cannot be kept, a bug: {why}; please report it")));
        }
        let half = format!("{PLAN}.half");
        files::save(&plan.out, &half, &text)?;
        fs::rename(plan.out.join(half), &path).map_err(|why| {
            Failure::broken(format!("{} cannot be written: {why}; choose another folder", path.display()))
        })?;
        Ok(path)
    }

    /// Nothing in it ends the line.
    fn first_line(&self) -> String {
        let (command, from) = (self.command.escape_debug(), self.from.escape_debug());
        format!("# Kept by `{command}`: the plan from {from}, with what flags said.")
    }
}
