//! A child that does not outlive its parent, however that ends.

use std::os::unix::process::parent_id;

use rustix::process::{Signal, set_parent_process_death_signal};
use sluice_support::fail::{Failure, Outcome};

/// Asks the kernel to kill this process when its parent, whose number is `parent`, dies; nothing if there is
/// none.
///
/// It outlasts `exec`.
pub fn die_with(parent: Option<u32>) -> Outcome<()> {
    let Some(parent) = parent else { return Ok(()) };
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|why| Failure::broken(format!("cannot tie this process to its parent: {why}")))?;
    // It may have died before the kernel was asked.
    if parent_id() == parent { Ok(()) } else { Err(Failure::broken("the parent process is gone")) }
}
