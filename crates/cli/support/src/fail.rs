//! The failure of a command: one line that says what failed, why, and what to do next; and an exit code.

use std::fmt;

use serde_json::json;
pub use sluice_net::exit::Kind;

/// The result of a command.
pub type Outcome<T> = Result<T, Failure>;

/// Why a command failed.
#[derive(Debug)]
pub struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    pub(crate) result_shown: bool,
}

impl Failure {
    /// A failure of `kind`. The message becomes one line that is safe for terminals and logs, whatever it
    /// quotes.
    pub fn new(kind: Kind, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<String> = lines.map(sluice_units::shown).collect();
        Self { kind, message: lines.join("; "), result_shown: false }
    }

    /// The input makes no sense, or cannot be handled on this machine.
    pub fn bad_input(message: impl fmt::Display) -> Self {
        Self::new(Kind::BadInput, message)
    }

    /// An unexpected failure.
    pub fn broken(message: impl fmt::Display) -> Self {
        Self::new(Kind::Broken, message)
    }

    /// Whether the failure is of this kind.
    pub fn is(&self, kind: Kind) -> bool {
        self.kind == kind
    }

    /// Marks that a printed result already contains the failure, so that with `--json` stdout has one
    /// object, not two.
    #[must_use]
    pub fn with_result_shown(self) -> Self {
        Self { result_shown: true, ..self }
    }

    /// Adds a second failure to the message.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let result_shown = self.result_shown || other.result_shown;
        Self { message: format!("{}; {}", self.message, other.message), result_shown, kind: self.kind }
    }

    /// The failure as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "schema": "sluice.error.v1",
            "error": { "kind": self.kind.name(), "exit_code": self.kind.code(), "message": self.message },
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_that_commands_no_terminal_whatever_it_quotes() {
        let said = Failure::bad_input("first \u{1b}[2J\0 line\r\n\n  second\u{202e}\n").to_string();
        assert_eq!(said, "first \\u{1b}[2J\\0 line; second\\u{202e}");
    }
}
