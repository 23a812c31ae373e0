//! All output of commands: results to stdout, progress and messages to stderr.
//!
//! A reader that stops early (`| head -1`) or a closed terminal is no failure: the rest of the output is
//! dropped, and the command ends as usual. Any other write error of a result (a full disk) is a failure.
//! Errors on stderr are ignored.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use sluice_log::LogEvent;
use sluice_system::{Attempt, advice};

use crate::fail::{Failure, Outcome};

/// Prints a result, or a part of one, and ends the line.
pub fn line(what: impl Display) -> Outcome<()> {
    text(format_args!("{what}\n"))
}

/// Prints a result, or a part of one, unchanged.
pub fn text(what: impl Display) -> Outcome<()> {
    let mut out = io::stdout().lock();
    outcome_of_write(write!(out, "{what}").and_then(|()| out.flush()))
}

/// Prints a part of an endless output. Returns whether it is still read.
pub fn while_read(what: impl Display) -> Outcome<bool> {
    let mut out = io::stdout().lock();
    let written = write!(out, "{what}").and_then(|()| out.flush());
    let is_read = !matches!(&written, Err(why) if is_reader_gone(why));
    outcome_of_write(written).map(|()| is_read)
}

/// Prints a line to stderr, as a log line where logs are JSON.
pub fn to_stderr(what: impl Display) {
    sluice_log::tell(LogEvent::Said, what);
}

/// The result of a command whose output was written with this success.
pub fn outcome_of_write(written: io::Result<()>) -> Outcome<()> {
    match written {
        Err(why) if !is_reader_gone(&why) => Err(Failure::broken(format!(
            "what was found cannot be written to stdout: {why}; {}",
            advice(Attempt::Print, &why)
        ))
        .with_result_shown()),
        _ => Ok(()),
    }
}

/// Whether a write failed because the other end of the pipe or terminal is gone.
fn is_reader_gone(why: &io::Error) -> bool {
    let is_device =
        || fstat(io::stdout()).is_ok_and(|of| FileType::from_raw_mode(of.st_mode).is_char_device());
    why.kind() == ErrorKind::BrokenPipe || Errno::from_io_error(why) == Some(Errno::IO) && is_device()
}

/// Prints many lines of a result in large pieces.
pub struct Lines {
    out: BufWriter<StdoutLock<'static>>,
    written: io::Result<()>,
}

impl Lines {
    /// Starts without lines.
    pub fn begin() -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), written: Ok(()) }
    }

    /// Adds a line; does nothing after a failed write.
    pub fn line(&mut self, what: impl Display) {
        if self.written.is_ok() {
            self.written = writeln!(self.out, "{what}");
        }
    }

    /// Writes the rest.
    pub fn end(mut self) -> Outcome<()> {
        outcome_of_write(self.written.and_then(|()| self.out.flush()))
    }
}
