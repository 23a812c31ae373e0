//! The plan beside its results: what ran, flags and all, so that it runs again from that file alone.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::files;
use crate::fail::{Failure, Outcome};
use crate::plan::Plan;

/// The file, in the folder of results.
pub const PLAN: &str = "plan.toml";

/// A folder of results, held by one rack as long as it runs: its processes read the plan there, and write
/// their logs.
#[derive(Debug)]
pub struct HeldFolder {
    /// Locked; the kernel lets go of it with the process. Nothing, where folders cannot be locked.
    _folder: Option<File>,
}

impl HeldFolder {
    /// Holds a folder that is there.
    ///
    /// # Errors
    /// If another rack that runs holds it.
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
        files::save(&plan.out, PLAN, &text)?;
        Ok(path)
    }

    /// Nothing in it ends the line.
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
