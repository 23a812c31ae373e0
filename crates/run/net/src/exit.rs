//! Exit codes of all our programs: the command, services and benches.

use std::process::ExitCode;

/// Why a program did not end well; the exit code of success is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Something failed that should not have.
    Broken,
    /// The input makes no sense, or this machine cannot do what was asked.
    BadInput,
    /// The run was complete, but its result violates a bound or a promise.
    GateFailed,
    /// Stopped from outside before its end.
    Aborted,
    /// The run was complete, but too short to decide whether its result holds.
    Undecided,
}

/// The meaning of exit code 0.
pub const WELL: &str = "all is well, also where whoever read the output closed it early";

impl Kind {
    /// All kinds, in the order of their codes.
    pub const ALL: [Self; 5] =
        [Self::Broken, Self::BadInput, Self::GateFailed, Self::Aborted, Self::Undecided];

    /// The exit code.
    pub const fn code(self) -> u8 {
        match self {
            Self::Broken => 1,
            Self::BadInput => 2,
            Self::GateFailed => 3,
            Self::Aborted => 4,
            Self::Undecided => 5,
        }
    }

    /// The meaning of the code, for people.
    pub const fn means(self) -> &'static str {
        match self {
            Self::Broken => {
                "something failed that should not have, such as a process that died or a full disk"
            }
            Self::BadInput => {
                "the input was wrong, or this machine cannot do it: one line says what, why and what next"
            }
            Self::GateFailed => {
                "a gate was missed: the run is complete, printed and kept, but does not hold what it must"
            }
            Self::Aborted => {
                "stopped before its end by Ctrl-C, SIGTERM or a closed terminal; what was done is kept"
            }
            Self::Undecided => "undecided: the run is complete, printed and kept, but too short to decide",
        }
    }

    /// The name of the kind in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::BadInput => "bad_input",
            Self::GateFailed => "gate_failed",
            Self::Aborted => "aborted",
            Self::Undecided => "undecided",
        }
    }

    /// The kind of an exit code; unknown codes count as broken.
    pub fn of_code(code: i32) -> Self {
        Self::ALL.into_iter().find(|kind| i32::from(kind.code()) == code).unwrap_or(Self::Broken)
    }
}

impl From<Kind> for ExitCode {
    fn from(kind: Kind) -> Self {
        Self::from(kind.code())
    }
}
