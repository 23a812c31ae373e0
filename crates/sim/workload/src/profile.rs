//! A service profile: the times of real operations on a real machine, as `sluice profile` measured them.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::text::{self, unknown};
use super::{Empirical, SERVICE_MAX, WorkloadError};
use crate::complaint::read_toml;
use crate::files;

/// Profiles that come with this program, by the names that stand for their files.
const KNOWN: [(&str, &str); 1] = [("rocksdb", include_str!("../../../../experiments/profiles/rocksdb.toml"))];

/// The schema in the first line of a profile's file.
pub const PROFILE_SCHEMA: &str = "sluice.profile.v1";

/// Measured operations, and how and where they were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// [`PROFILE_SCHEMA`].
    pub schema: String,
    /// The measured service, such as `rocksdb`.
    pub service: String,
    /// When the operations were measured, in seconds since 1970.
    pub measured_unix_s: u64,
    pub cpu: String,
    /// The clock: `wall`, or `cpu` for the time on the processor alone.
    pub clock: String,
    /// The cost of reading the clock, which was subtracted.
    pub clock_cost_ns: u64,
    /// The data that the operations worked on.
    pub data: ProfileData,
    pub operation: Vec<ProfileOperation>,
}

/// The data of a profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileData {
    /// How many keys the database held.
    pub keys: u64,
    /// Length of each key, in bytes.
    pub key_bytes: u32,
    /// Length of each value, in bytes.
    pub item_bytes: u32,
    /// Memory for cached blocks, in MiB.
    pub cache_mib: u32,
}

/// One measured operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileOperation {
    /// The operation's name, which is TYPE in `profile:FILE:TYPE`.
    pub name: String,
    /// Keys that one operation reads.
    pub keys: u32,
    /// Whether `keys` is the mean of an exponential number, rounded up.
    pub exponential: bool,
    /// How often the operation was measured.
    pub samples: u64,
    /// How often the kernel preempted the operation.
    pub preempted: u64,
    /// Mean of the samples, in nanoseconds.
    pub mean_ns: f64,
    /// `[nanoseconds, cumulative share]`, both rising, the last share 1.
    pub cdf: Vec<(u64, f64)>,
}

impl Profile {
    /// A profile that comes with this program, or the one in this file, searched in `folder`.
    pub fn find(name: &str, folder: &Path) -> Result<Self, WorkloadError> {
        match KNOWN.iter().find(|(known, _)| *known == name) {
            Some((known, text)) => Self::parse(Path::new(known), text),
            None => Self::read(&folder.join(name)),
        }
    }

    /// Reads a profile's file.
    pub fn read(path: &Path) -> Result<Self, WorkloadError> {
        let file = |source| WorkloadError::File { path: path.to_owned(), source };
        Self::parse(path, &files::read(path).map_err(file)?)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, WorkloadError> {
        let content =
            |(line, column), why| WorkloadError::Content { path: path.to_owned(), line, column, why };
        let profile: Self =
            read_toml(text).map_err(|error| content(text::place(text, error.at.unwrap_or(0)), error.why))?;
        profile.check().map_err(|why| content((1, 1), why))?;
        Ok(profile)
    }

    /// The distribution of the operation called `name`.
    pub fn distribution(&self, name: &str) -> Result<Empirical, String> {
        let names = || self.operation.iter().map(|operation| operation.name.as_str());
        let operation = self.operation.iter().find(|operation| operation.name == name);
        let operation = operation.ok_or_else(|| unknown("type", name, names()))?;
        Ok(Empirical::of_points(operation.cdf.iter().map(|(ns, up_to)| (sluice_wire::Nanos(*ns), *up_to))))
    }

    /// Checks what the types of the fields do not ensure.
    pub fn check(&self) -> Result<(), String> {
        if self.schema != PROFILE_SCHEMA {
            return Err(format!("the schema is `{}`, not `{PROFILE_SCHEMA}`: measure again", self.schema));
        }
        self.operation.iter().try_for_each(|operation| {
            operation.check().map_err(|why| format!("operation `{}`: {why}", operation.name))
        })
    }
}

impl ProfileOperation {
    fn check(&self) -> Result<(), String> {
        let grows = self.cdf.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1);
        let legal =
            |(ns, up_to): &(u64, f64)| (1..=SERVICE_MAX.0).contains(ns) && (0.0..=1.0).contains(up_to);
        if !grows || !self.cdf.iter().all(legal) {
            return Err("times and shares of the cdf must grow, from 1 ns and up to 1".to_owned());
        }
        match self.cdf.last() {
            Some((_, 1.0)) => Ok(()),
            last => Err(format!("the cdf ends at {}, not at 1", last.map_or(0.0, |last| last.1))),
        }
    }
}
