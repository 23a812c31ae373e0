//! The parameters and the result of a measurement of the RocksDB service, as the measuring program takes
//! and prints them.

use serde::{Deserialize, Serialize};

use super::{GET_KEYS_MAX, RocksArgs, codec};
use crate::AppError;

/// The flags that say which operations are measured, and how.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args, Serialize, Deserialize)]
pub struct MeasureArgs {
    /// What they read.
    #[command(flatten)]
    pub data: RocksArgs,
    /// Measure GETs of so many keys each; none if no number follows.
    #[arg(long, value_name = "KEYS", num_args = 0..=1, value_delimiter = ',', default_value = "10")]
    pub get: Vec<u32>,
    /// Measure SCANs of so many keys each; none if no number follows.
    #[arg(long, value_name = "KEYS", num_args = 0..=1, value_delimiter = ',', default_value = "500")]
    pub scan: Vec<u32>,
    /// Let the numbers of keys vary: exponential with these means, rounded up.
    #[arg(long)]
    pub exponential: bool,
    /// How often to measure each.
    #[arg(long, value_name = "COUNT", default_value_t = 20_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    pub samples: u64,
    /// Which time counts: all of it, or only while the kernel runs this process.
    #[arg(long, value_name = "CLOCK", default_value = "wall")]
    pub clock: Clock,
    /// Seeds which keys are read.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl MeasureArgs {
    /// The operations to measure, in order.
    ///
    /// # Errors
    /// [`AppError::Keys`] for a number of keys that an operation cannot have; [`AppError::Twice`] for an
    /// operation that the flags name twice.
    pub fn operations(&self) -> Result<Vec<Operation>, AppError> {
        let gets = self.get.iter().map(|keys| (Verb::Get, *keys));
        let scans = self.scan.iter().map(|keys| (Verb::Scan, *keys));
        let mut operations: Vec<Operation> = Vec::new();
        for (verb, keys) in gets.chain(scans) {
            let (flag, most) = (verb.flag(), verb.keys_max());
            if keys == 0 || keys > most {
                return Err(AppError::Keys { flag, keys, most });
            }
            let operation = Operation { verb, keys, exponential: self.exponential };
            if operations.contains(&operation) {
                return Err(AppError::Twice { flag, keys });
            }
            operations.push(operation);
        }
        Ok(operations)
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    pub verb: Verb,
    /// How many keys the operation reads.
    pub keys: u32,
    /// Whether `keys` is the mean of an exponentially distributed number.
    pub exponential: bool,
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Reads keys at random positions.
    Get,
    /// Reads consecutive keys.
    Scan,
}

impl Verb {
    /// The largest number of keys in one operation.
    pub const fn keys_max(self) -> u32 {
        match self {
            Self::Get => GET_KEYS_MAX,
            Self::Scan => codec::SCAN_ROWS_MAX,
        }
    }

    const fn flag(self) -> &'static str {
        match self {
            Self::Get => "--get",
            Self::Scan => "--scan",
        }
    }
}

/// The result of one run, as the measuring program prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measurement {
    /// The cost of reading the clock in nanoseconds, which was subtracted.
    pub clock_cost_ns: u64,
    /// The operations, in the requested order.
    pub operation: Vec<MeasuredOperation>,
}

/// One measured operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredOperation {
    /// The operation's name in a profile.
    pub name: String,
    /// How many keys one operation reads.
    pub keys: u32,
    /// Whether `keys` is the mean of an exponentially distributed number, rounded up.
    pub exponential: bool,
    /// How often the operation was measured.
    pub samples: u64,
    /// How often the kernel preempted the measuring thread.
    pub preempted: u64,
    /// The mean of the samples, in nanoseconds.
    pub mean_ns: f64,
    /// Pairs `[nanoseconds, cumulative share]`, both rising; the last share is 1.
    pub cdf: Vec<(u64, f64)>,
}

/// The clock that measures operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Real time.
    Wall,
    /// Time on a processor.
    Cpu,
}

impl Clock {
    /// The clock's name in flags and profiles.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wall => "wall",
            Self::Cpu => "cpu",
        }
    }
}
