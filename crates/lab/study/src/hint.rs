//! Finds the known name that is nearest to an unknown one.

pub(crate) use sluice_units::unknown;
