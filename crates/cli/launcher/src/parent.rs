//! Ties a child process to its parent, so that it does not outlive the parent.

use std::os::unix::process::parent_id;

use rustix::process::{Signal, set_parent_process_death_signal};
use sluice_support::fail::{Failure, Outcome};

/// Asks the kernel to kill this process when its parent, the process with the number `parent`, dies. Does
/// nothing if there is no `parent`.
///
/// The setting survives `exec`.
pub fn die_with(parent: Option<u32>) -> Outcome<()> {
    let Some(parent) = parent else { return Ok(()) };
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|why| Failure::broken(format!("cannot tie this process to its parent: {why}")))?;
    // The parent may have died before the kernel was asked.
    if parent_id() == parent { Ok(()) } else { Err(Failure::broken("the parent process is gone")) }
}
