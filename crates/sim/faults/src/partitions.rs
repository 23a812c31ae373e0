//! Partitions between two ends of a rack, and which of them are closed.

use sluice_events::Address;
use sluice_wire::Nanos;

use super::hosts::{Host, SWITCH};

/// One end of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Anyone,
    Switch,
    Controller,
    Host(Host),
}

impl End {
    /// The end at this address, if there is one.
    pub(super) fn at(address: Address) -> Option<Self> {
        if address == SWITCH { Some(Self::Switch) } else { Host::at(address).map(Self::Host) }
    }

    fn is_met_by(self, end: Option<Self>) -> bool {
        self == Self::Anyone || end == Some(self)
    }
}

/// The partitions that are closed now.
#[derive(Debug, Default)]
pub(super) struct Partitions {
    closed: Vec<(End, End, Nanos)>,
}

impl Partitions {
    pub(super) fn close(&mut self, from: End, to: End, until: Nanos) {
        self.closed.push((from, to, until));
    }

    pub(super) fn is_closed(&self, now: Nanos, from: Option<End>, to: Option<End>) -> bool {
        let meets = |(a, b, until): &(End, End, Nanos)| now < *until && a.is_met_by(from) && b.is_met_by(to);
        self.closed.iter().any(meets)
    }
}
