//! How a command that did not end well says so.

use std::process::ExitCode;

use crate::fail::Failure;
use crate::print;

impl Failure {
    /// Prints it (stderr; with `json` an error object on stdout as well) and gives the exit code.
    pub fn report(&self, json: bool) -> ExitCode {
        print::aside(format_args!("sluice: {}", self.message));
        if json && !self.result_shown {
            // What cannot be said here was said on stderr.
            print::line(self.to_json()).ok();
        }
        self.kind.into()
    }
}
