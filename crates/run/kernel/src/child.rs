//! Child processes that do not outlive who started them.

use std::io;
use std::os::unix::process::{CommandExt as _, parent_id};
use std::process::{Command, id};

use rustix::process::{Signal, set_parent_process_death_signal};

/// Lets the kernel kill the process that `command` starts as soon as the thread that starts it has ended,
/// also if that was killed. For programs that are not ours: ours ask for it themselves.
pub fn dies_with_this_thread(command: &mut Command) -> &mut Command {
    let parent = id();
    // SAFETY: between fork and exec the closure makes two system calls, and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the kernel was asked.
            if parent_id() == parent { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
        })
    }
}
