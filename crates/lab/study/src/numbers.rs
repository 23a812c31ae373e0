//! Rates, loads, counts and ranges in the notation of flags and plans: `2000k`, `0.8`, `1M`,
//! `0.1..0.9/0.1`, `200k,400k`.

use super::error::StudyError;

/// Reads tasks per second, such as `2000k`, `2.8M` or `500000`.
pub fn rate(text: &str) -> Result<f64, StudyError> {
    sluice_units::rate(text).map_err(|why| StudyError::unreadable("rate", text, why))
}

/// Reads a number of tasks, such as `1M` or `200k`.
pub fn count(text: &str) -> Result<u64, StudyError> {
    sluice_units::count(text).map_err(|why| StudyError::unreadable("count", text, why))
}

/// Reads a load: the share of time for which workers would be busy if there were only service times.
pub fn load(text: &str) -> Result<f64, StudyError> {
    sluice_units::load(text).map_err(|why| StudyError::unreadable("load", text, why))
}

/// Reads a list of numbers (`1,2,3`) or a range with its step (`0.1..0.9/0.1`, both ends included), each
/// with `read`.
pub fn several(text: &str, read: fn(&str) -> Result<f64, StudyError>) -> Result<Vec<f64>, StudyError> {
    sluice_units::several(text, read, |text, why| StudyError::unreadable("range", text, why))
}
