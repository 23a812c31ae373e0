//! The nearest known name to one that is not.

pub(crate) use sluice_units::unknown;
