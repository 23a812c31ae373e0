//! A registered client: its row in the switch, and its address.

use sluice_wire::tables::ClientRow;
use sluice_wire::{Endpoint, Key, Nanos, Serial};

use crate::message::ClientHello;
use crate::registration::{Fate, Holder, Registration};

/// A registered client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) registration: Registration,
    /// The client's row as last written to the switch, or as it will be written first.
    pub(crate) row: ClientRow,
    /// Whether the switch has a row for the client.
    pub(crate) in_switch: bool,
    pub(crate) at: Endpoint,
    /// The client's oldest outstanding sequence number.
    pub(crate) floor: Serial,
    pub(crate) fate: Fate,
    /// Whether another spine's controller has granted the client since it last called here.
    pub(crate) is_elsewhere: bool,
    /// The write of the client's row that is under way.
    pub(crate) writing: Option<Writing>,
}

/// A write of a client's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    Setting,
    Clearing,
}

impl Holder for Client {
    fn registration(&self) -> &Registration {
        &self.registration
    }

    fn registration_mut(&mut self) -> &mut Registration {
        &mut self.registration
    }
}

impl Client {
    pub(crate) fn joining(now: Nanos, hello: ClientHello) -> Self {
        let row = ClientRow { key: Key(0), at: hello.at, incarnation: hello.incarnation };
        Self {
            registration: Registration::new(Some(hello.name), hello.incarnation.0, now),
            row,
            in_switch: false,
            at: hello.at,
            floor: hello.floor,
            fate: Fate::Stays,
            is_elsewhere: false,
            writing: None,
        }
    }

    /// A client whose row was read back, and which has not called yet.
    pub(crate) fn read_back(now: Nanos, row: ClientRow) -> Self {
        Self {
            registration: Registration::new(None, row.incarnation.0, now),
            row,
            in_switch: true,
            at: row.at,
            floor: Serial(0),
            fate: Fate::Stays,
            is_elsewhere: false,
            writing: None,
        }
    }

    /// Goes on from the row that was just read back from the switch.
    pub(crate) fn restore(&mut self, row: ClientRow) {
        (self.row, self.in_switch, self.writing) = (row, true, None);
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.in_switch && self.writing.is_none() && self.fate == Fate::Stays && self.row.at == self.at
    }
}
