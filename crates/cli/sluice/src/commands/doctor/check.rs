//! The result of a check.

use std::fs;

/// The result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    Ok,
    Warn,
    Fail,
}

pub(super) struct Check {
    pub(super) what: &'static str,
    pub(super) health: Health,
    pub(super) found: String,
    pub(super) next: String,
}

impl Check {
    pub(super) fn ok(what: &'static str, found: impl Into<String>) -> Self {
        Self { what, health: Health::Ok, found: found.into(), next: String::new() }
    }

    pub(super) fn warn(what: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self { what, health: Health::Warn, found: found.into(), next: next.into() }
    }

    pub(super) fn fail(what: &'static str, found: impl Into<String>, next: impl Into<String>) -> Self {
        Self { what, health: Health::Fail, found: found.into(), next: next.into() }
    }
}

impl Health {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// The contents of a file in the kernel's file systems.
pub(super) fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
