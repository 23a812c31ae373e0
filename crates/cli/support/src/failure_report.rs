//! Reports the failure of a command.

use std::process::ExitCode;

use sluice_log::LogEvent;

use crate::fail::Failure;
use crate::print;

impl Failure {
    /// Prints the failure on stderr (with `json` also an error object on stdout), and returns the exit
    /// code.
    pub fn report(&self, json: bool) -> ExitCode {
        if sluice_log::is_json() {
            sluice_log::tell(LogEvent::Failed, &self.message);
        } else {
            print::to_stderr(format_args!("sluice: {}", self.message));
        }
        if json && !self.result_shown {
            // If stdout fails, the message is still on stderr.
            print::line(self.to_json()).ok();
        }
        self.kind.into()
    }
}
