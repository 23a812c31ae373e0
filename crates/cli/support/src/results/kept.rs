//! The plan beside its results: what ran, including flags, so that this file alone can run it again.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::files;
use crate::fail::{Failure, Outcome};
use crate::plan::Plan;

/// The file's name in the folder of results.
pub const PLAN: &str = "plan.toml";

/// A folder of results, locked by one rack as long as it runs: its processes read the plan there and write
/// their logs.
#[derive(Debug)]
pub struct HeldFolder {
    /// The lock; the kernel releases it when the process ends. `None` if folders cannot be locked.
    _folder: Option<File>,
}

impl HeldFolder {
    /// Locks an existing folder.
    ///
    /// # Errors
    /// Another running rack has locked it.
    pub fn take(folder: &Path) -> Outcome<Self> {
        let Ok(file) = File::open(folder) else { return Ok(Self { _folder: None }) };
        match file.try_lock() {
            Ok(()) => Ok(Self { _folder: Some(file) }),
            Err(TryLockError::Error(_)) => Ok(Self { _folder: None }),
            Err(TryLockError::WouldBlock) => Err(Failure::bad_input(format!(
                "{} is the folder of a rack that runs: end that one, or choose another with --out",
                folder.display()
            ))),
        }
    }
}

/// Stores a plan; knows the command and the plan's origin.
#[derive(Clone, Debug)]
pub struct Keeper {
    /// The command line.
    pub command: String,
    /// The plan's file, or a description of its origin.
    pub from: String,
}

impl Keeper {
    /// Writes the plan into its folder of results, and returns its path. The file is replaced in one step,
    /// since it may be the one from which the plan was read.
    pub fn keep(&self, plan: &Plan) -> Outcome<PathBuf> {
        let text = format!("{}\n{}", self.first_line(), plan.to_toml()?);
        let path = plan.out.join(PLAN);
        if Plan::from_text(&path.display().to_string(), &text)? != *plan {
            let why = "it would be another one when it is read";
            return Err(Failure::broken(format!("the plan cannot be kept, a bug: {why}; please report it")));
        }
        files::save(&plan.out, PLAN, &text)?;
        Ok(path)
    }

    /// A comment line that contains no line break.
    fn first_line(&self) -> String {
        let (command, from) = (self.command.escape_debug(), self.from.escape_debug());
        format!("# Kept by `{command}`: the plan from {from}, with what flags said.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_racks_until_that_has_ended() {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let first = HeldFolder::take(folder.path()).expect("nobody holds it");
        let said = HeldFolder::take(folder.path()).expect_err("the first one runs").to_string();
        assert!(said.contains("choose another with --out"), "{said}");
        drop(first);
        HeldFolder::take(folder.path()).expect("nobody holds it any more");
    }
}
