//! The process of `simple_switch`.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::error::Bmv2Error;

/// The switch's process, which ends with this value.
pub(crate) struct Process {
    child: Child,
    /// Where it writes what it has to say.
    log: Option<PathBuf>,
}

impl Process {
    /// Starts the process in a process group of its own, so that Ctrl-C does not reach it.
    pub(crate) fn start(command: &mut Command, log: Option<&Path>) -> Result<Self, Bmv2Error> {
        let said = log.map(File::create).transpose().map_err(Bmv2Error::system("write BMv2's log"))?;
        let both = said.map(|said| said.try_clone().map(|other| (said, other))).transpose();
        let (out, err) = both
            .map_err(Bmv2Error::system("write BMv2's log"))?
            .map_or_else(|| (Stdio::null(), Stdio::null()), |(out, err)| (out.into(), err.into()));
        let started = command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0).spawn();
        let child = started.map_err(Bmv2Error::system("start simple_switch"))?;
        Ok(Self { child, log: log.map(Path::to_owned) })
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// An error with its last words if the process has ended.
    pub(crate) fn check(&mut self) -> Result<(), Bmv2Error> {
        let Ok(Some(status)) = self.child.try_wait() else { return Ok(()) };
        let said = self.log.as_ref().and_then(|log| fs::read_to_string(log).ok()).unwrap_or_default();
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.map_or_else(String::new, |line| format!(": {line}"));
        Err(Bmv2Error::Gone(format!("ended by itself, {status}{last}")))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
