//! What is printed: figures to stdout, what is being measured to stderr. Nobody has to read either.

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

/// Tells whoever looks on a line.
pub(crate) fn aside(what: impl Display) {
    io::stderr().write_all(format!("{what}\n").as_bytes()).ok();
}
