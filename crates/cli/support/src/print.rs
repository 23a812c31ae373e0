//! Everything that the command prints goes through here: results to stdout, what is told meanwhile to stderr.
//!
//! A reader that has seen enough (`| head -1`) is no failure, nor is a terminal that was closed: what would
//! have been read is dropped, and the command goes on and ends as it would have. A result that cannot be
//! written for another reason (a full disk) is one. What is told on stderr is for whoever looks on; that
//! nobody does changes nothing.

use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use sluice_system::{Attempt, advice};

use crate::fail::{Failure, Outcome};

/// Prints a result, or a part of one, and ends the line.
pub fn line(what: impl Display) -> Outcome<()> {
    text(format_args!("{what}\n"))
}

/// Prints a result, or a part of one, as it is.
pub fn text(what: impl Display) -> Outcome<()> {
    let mut out = io::stdout().lock();
    judged(write!(out, "{what}").and_then(|()| out.flush()))
}

/// Prints a part of what goes on until it is stopped; says whether anybody still reads.
pub fn while_read(what: impl Display) -> Outcome<bool> {
    let mut out = io::stdout().lock();
    let written = write!(out, "{what}").and_then(|()| out.flush());
    let is_read = !matches!(&written, Err(why) if nobody_reads(why));
    judged(written).map(|()| is_read)
}

/// Tells whoever looks on a line.
pub fn aside(what: impl Display) {
    // In one piece, so that two threads' lines do not mix.
    io::stderr().lock().write_all(format!("{what}\n").as_bytes()).ok();
}

/// What becomes of a command whose result was written like this.
pub fn judged(written: io::Result<()>) -> Outcome<()> {
    match written {
        Err(why) if !nobody_reads(&why) => Err(Failure::broken(format!(
            "what was found cannot be written to stdout: {why}; {}",
            advice(Attempt::Print, &why)
        ))
        .with_result_shown()),
        _ => Ok(()),
    }
}

/// Whether a write failed because the other end of the pipe or the terminal is gone.
fn nobody_reads(why: &io::Error) -> bool {
    let is_device =
        || fstat(io::stdout()).is_ok_and(|of| FileType::from_raw_mode(of.st_mode).is_char_device());
    why.kind() == ErrorKind::BrokenPipe || Errno::from_io_error(why) == Some(Errno::IO) && is_device()
}

/// Many lines of a result, written in large pieces.
pub struct Lines {
    out: BufWriter<StdoutLock<'static>>,
    written: io::Result<()>,
}

impl Lines {
    /// None yet.
    pub fn begin() -> Self {
        Self { out: BufWriter::new(io::stdout().lock()), written: Ok(()) }
    }

    /// One more; nothing if one before could not be written.
    pub fn line(&mut self, what: impl Display) {
        if self.written.is_ok() {
            self.written = writeln!(self.out, "{what}");
        }
    }

    /// The end of them.
    pub fn end(mut self) -> Outcome<()> {
        judged(self.written.and_then(|()| self.out.flush()))
    }
}
