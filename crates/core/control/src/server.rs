//! A registered server: the rows that it wants, and those that the switch has.

use alloc::vec::Vec;

use sluice_wire::tables::{RingRow, ServerRow};
use sluice_wire::{Endpoint, Nanos, Psn, Qpn, SliceId};

use crate::registration::{Holder, Registration};
use crate::rings::{RingOffer, RingPlace, ServerHello};

/// A registered server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) registration: Registration,
    pub(crate) at: Endpoint,
    /// The most bytes of one WRITE; 0 until it is heard after a read-back.
    pub(crate) mtu: u32,
    /// Its rows as it last said they should be, and the number of the first WRITE.
    pub(crate) wanted: Option<(ServerRows, Psn)>,
    /// Its rows in the switch.
    pub(crate) written: Option<ServerRows>,
    /// The last few pairs that the switch has written to, or may have: a call of a dead life may come after
    /// those of the next one.
    used: Vec<Qpn>,
}

/// How many pairs are kept of a server.
const USED_MAX: usize = 8;

/// What stands in the switch of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerRows {
    pub(crate) row: ServerRow,
    pub(crate) rings: Vec<RingOffer>,
}

impl Holder for Server {
    fn registration(&self) -> &Registration {
        &self.registration
    }

    fn registration_mut(&mut self) -> &mut Registration {
        &mut self.registration
    }
}

impl Server {
    pub(crate) fn new(now: Nanos, hello: &ServerHello) -> Self {
        let registration = Registration::new(Some(hello.name.clone()), hello.life, now);
        // A server offers rings once it was registered: in a time that nobody remembers here.
        let used = if hello.rings.is_empty() { Vec::new() } else { Vec::from([hello.qpn]) };
        Self { registration, at: hello.at, mtu: hello.mtu, wanted: None, written: None, used }
    }

    /// Rows that were read back; their server has not been heard yet.
    pub(crate) fn read_back(now: Nanos, rows: ServerRows) -> Self {
        let registration = Registration::new(None, 0, now);
        let used = Vec::from([rows.row.qpn]);
        Self { registration, at: rows.row.at, mtu: 0, wanted: None, written: Some(rows), used }
    }

    pub(crate) fn hear(&mut self, now: Nanos, hello: &ServerHello) {
        self.registration.life = hello.life;
        self.registration.renewed = now;
        (self.at, self.mtu) = (hello.at, hello.mtu);
        let ServerHello { at, qpn, reliable, icrc, .. } = *hello;
        let rows = ServerRows { row: ServerRow { at, qpn, reliable, icrc }, rings: hello.rings.clone() };
        self.wanted = (!rows.rings.is_empty()).then_some((rows, hello.first));
    }

    /// The pair that it offers, if that cannot have a row: a row counts a reliable pair's WRITEs from its
    /// first number on, and WRITEs that came before have taken the pair further.
    pub(crate) fn spent_pair(&self) -> Option<Qpn> {
        let row = self.wanted.as_ref()?.0.row;
        let stands = self.written.as_ref().is_some_and(|rows| rows.row == row);
        (row.reliable && self.used.contains(&row.qpn) && !stands).then_some(row.qpn)
    }

    /// The switch will write to this pair.
    pub(crate) fn use_pair(&mut self, pair: Qpn) {
        if self.used.contains(&pair) {
            return;
        }
        if self.used.len() == USED_MAX {
            self.used.remove(0);
        }
        self.used.push(pair);
    }

    /// The rings that stand beside this row in the switch, which stays: with it the next WRITE's number.
    pub(crate) fn take_rings_beside(&mut self, row: &ServerRow) -> Option<Vec<RingOffer>> {
        self.written.take_if(|rows| rows.row == *row).map(|rows| rows.rings)
    }

    /// Its ring for a slice, once it is in the switch.
    pub(crate) fn ring(&self, slice: SliceId) -> Option<RingPlace> {
        let rings = &self.written.as_ref()?.rings;
        let RingRow { slots, slot_bytes, .. } = rings.iter().find(|ring| ring.slice == slice)?.row;
        Some(RingPlace { life: self.registration.life, slots, slot_bytes })
    }
}
