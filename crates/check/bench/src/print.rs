//! Prints figures to stdout, and the running measurement to stderr. It is no error if no one reads either.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::error::BenchError;

/// Prints a line of the result.
pub(crate) fn line(what: impl Display) -> Result<(), BenchError> {
    match writeln!(io::stdout(), "{what}") {
        Err(why) if why.kind() != ErrorKind::BrokenPipe => Err(BenchError::Print(why)),
        _ => Ok(()),
    }
}

/// Prints a line to stderr.
pub(crate) fn aside(what: impl Display) {
    io::stderr().write_all(format!("{what}\n").as_bytes()).ok();
}
