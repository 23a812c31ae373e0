//! What is asked of early tokens beside a program: `rain:1,early`. The program itself knows nothing of them;
//! the drivers of hosts read it from the choice.

use core::fmt;

use crate::arguments::number;

/// How a worker knows when its running task will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// Its service says so, and is off by so many hundredths of the time (standard deviation). Zero is
    /// perfect knowledge, which simulated services alone can have.
    Told { error_percent: u8 },
    /// From what tasks of the same type took before.
    Learned,
}

impl Early {
    /// What the option is called.
    const NAME: &'static str = "early";
    /// Further off nothing is known.
    const ERROR_PERCENT_MAX: u8 = 200;

    /// Reads `early`, `early=10%` or `early=learned`.
    pub(crate) fn take(argument: &str) -> Option<Self> {
        match argument.split_once('=') {
            None if argument == Self::NAME => Some(Self::Told { error_percent: 0 }),
            Some((Self::NAME, "learned")) => Some(Self::Learned),
            Some((Self::NAME, error)) => {
                let error_percent = number(error.strip_suffix('%')?, 0..=Self::ERROR_PERCENT_MAX)?;
                Some(Self::Told { error_percent })
            }
            _ => None,
        }
    }

    /// Whether no service on earth knows as much.
    #[must_use]
    pub const fn is_perfect(self) -> bool {
        matches!(self, Self::Told { error_percent: 0 })
    }
}

impl fmt::Display for Early {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAME)?;
        match self {
            Self::Told { error_percent: 0 } => Ok(()),
            Self::Told { error_percent } => write!(f, "={error_percent}%"),
            Self::Learned => f.write_str("=learned"),
        }
    }
}
