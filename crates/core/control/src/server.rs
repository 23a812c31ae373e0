//! A registered server: the rows that it should have in the switch, and those that it has.

use alloc::collections::VecDeque;
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
    /// The most bytes of one WRITE; 0 until it calls after a read-back.
    pub(crate) mtu: u32,
    /// The rows that the server's last call asked for, and the number of the first WRITE.
    pub(crate) wanted: Option<(ServerRows, Psn)>,
    /// The server's rows in the switch, once they are written.
    pub(crate) written: Option<ServerRows>,
    /// The last few queue pairs that the switch has written to, or may have. They are kept because a call
    /// of a dead life may arrive after calls of the next life.
    used: Vec<Qpn>,
}

/// How many queue pairs are remembered of a server.
const USED_MAX: usize = 8;

/// The queue pairs of servers that are registered no more, by the servers' addresses, oldest first. A server
/// that stood still for a lease comes back with the pair that it had. If a call that it made with an earlier
/// pair arrives first, that call takes the seat, and only this memory tells that the later pair was in use.
#[derive(Debug, Default)]
pub(crate) struct PairsOfGone(VecDeque<(Endpoint, Vec<Qpn>)>);

/// How many servers are remembered that are registered no more.
const GONE_MAX: usize = 256;

impl PairsOfGone {
    /// The server is registered no more.
    pub(crate) fn keep(&mut self, server: &Server) {
        if self.0.len() == GONE_MAX {
            self.0.pop_front();
        }
        self.0.push_back((server.at, server.used.clone()));
    }

    /// The server is registered again: it remembers its pairs itself from now on.
    pub(crate) fn give_to(&mut self, server: &mut Server) {
        let at = server.at;
        let own = core::mem::take(&mut server.used);
        let before: Vec<Qpn> =
            self.0.iter().filter(|(gone, _)| *gone == at).flat_map(|(_, pairs)| pairs).copied().collect();
        self.0.retain(|(gone, _)| *gone != at);
        for pair in before.into_iter().chain(own) {
            server.use_pair(pair);
        }
    }
}

/// A server's rows in the switch.
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
        // A server offers rings only after it was registered; so this one registered at a time that the
        // controller does not remember.
        let used = if hello.rings.is_empty() { Vec::new() } else { Vec::from([hello.qpn]) };
        Self { registration, at: hello.at, mtu: hello.mtu, wanted: None, written: None, used }
    }

    /// A server whose rows were read back, and which has not called yet.
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

    /// The queue pair that it offers, if that pair cannot have a row. A row counts a reliable pair's WRITEs
    /// from its first number on, and WRITEs that came before have moved the pair further.
    pub(crate) fn spent_pair(&self) -> Option<Qpn> {
        let row = self.wanted.as_ref()?.0.row;
        let stands = self.written.as_ref().is_some_and(|rows| rows.row == row);
        (row.reliable && self.used.contains(&row.qpn) && !stands).then_some(row.qpn)
    }

    /// Remembers that the switch will write to this pair.
    pub(crate) fn use_pair(&mut self, pair: Qpn) {
        if self.used.contains(&pair) {
            return;
        }
        if self.used.len() == USED_MAX {
            self.used.remove(0);
        }
        self.used.push(pair);
    }

    /// Takes out the rings that stand beside this row in the switch. The row stays, and with it the number
    /// of the next WRITE.
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
