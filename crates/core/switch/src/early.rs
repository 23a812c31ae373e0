//! Early tokens, an option beside a program's own: `rain:1,early`. The program does not use it; the drivers
//! of hosts read it.

use core::fmt;

use crate::arguments::number;

/// How a worker knows when its running task will end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Early {
    /// The service tells the end, with a standard deviation of so many hundredths of the service time. Zero
    /// is perfect knowledge, which only simulated services have.
    Told { error_percent: u8 },
    /// The worker estimates the end from earlier tasks of the same type.
    Learned,
}

impl Early {
    /// The name of the option.
    const NAME: &'static str = "early";
    /// The largest error in percent. With a larger one the estimate would say nothing.
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

    /// Whether the end is known perfectly, as by a simulated service only.
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
