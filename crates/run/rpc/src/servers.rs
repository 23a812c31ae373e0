//! The messages between servers and the controller, converted from and to values.

use sluice_control::{RingNeed, RingOffer, ServerGrant, ServerHello};
use sluice_wire::tables::RingRow;
use sluice_wire::{Epoch, Nanos, Psn, Qpn, ServerId, SliceId};

use super::fields::{Malformed, endpoint, name, number, present, reachable};
use super::v1;

/// How many bits the numbers of queue pairs and packets have.
const NUMBER_BITS: u32 = 24;

impl From<&ServerHello> for v1::RenewServerRequest {
    fn from(hello: &ServerHello) -> Self {
        Self {
            name: hello.name.clone(),
            life: hello.life,
            at: hello.at.to_string(),
            qpn: hello.qpn.get(),
            psn: hello.first.get(),
            mtu: hello.mtu,
            reliable: hello.reliable,
            icrc: hello.icrc,
            rings: hello.rings.iter().map(v1::Ring::from).collect(),
        }
    }
}

impl TryFrom<v1::RenewServerRequest> for ServerHello {
    type Error = Malformed;

    fn try_from(message: v1::RenewServerRequest) -> Result<Self, Malformed> {
        let rings = message.rings.into_iter().map(RingOffer::try_from);
        let too_large = |field| Malformed::new(field, format!("has more than {NUMBER_BITS} bits"));
        if message.psn >> NUMBER_BITS != 0 {
            return Err(too_large("psn"));
        }
        Ok(Self {
            name: name("name", message.name)?,
            life: message.life,
            at: reachable("at", &message.at)?,
            qpn: Qpn::new(message.qpn).ok_or_else(|| too_large("qpn"))?,
            first: Psn::new(message.psn),
            mtu: message.mtu,
            reliable: message.reliable,
            icrc: message.icrc,
            rings: rings.collect::<Result<_, _>>()?,
        })
    }
}

impl From<&RingOffer> for v1::Ring {
    fn from(ring: &RingOffer) -> Self {
        Self { slice: ring.slice.0.into(), row: Some(ring.row.into()) }
    }
}

impl TryFrom<v1::Ring> for RingOffer {
    type Error = Malformed;

    fn try_from(message: v1::Ring) -> Result<Self, Malformed> {
        let row = RingRow::from(present("rings.row", message.row)?);
        Ok(Self { slice: SliceId(number("rings.slice", message.slice)?), row })
    }
}

impl From<&ServerGrant> for v1::ServerGrant {
    fn from(grant: &ServerGrant) -> Self {
        let need = |need: &RingNeed| v1::RingNeed {
            slice: need.slice.0.into(),
            name: need.name.clone(),
            slots: need.slots,
            slot_bytes: need.slot_bytes,
        };
        Self {
            server: grant.server.0.into(),
            epoch: grant.epoch.0,
            switch: grant.switch.to_string(),
            rings: grant.rings.iter().map(need).collect(),
            lease_ns: grant.lease.0,
            renew_every_ns: grant.renew_every.0,
            without_icrc: grant.without_icrc,
            spent_pair: grant.spent_pair.map(|pair| pair.0),
        }
    }
}

impl TryFrom<v1::ServerGrant> for ServerGrant {
    type Error = Malformed;

    fn try_from(message: v1::ServerGrant) -> Result<Self, Malformed> {
        let need = |need: v1::RingNeed| -> Result<_, Malformed> {
            let slice = SliceId(number("rings.slice", need.slice)?);
            Ok(RingNeed { slice, name: need.name, slots: need.slots, slot_bytes: need.slot_bytes })
        };
        Ok(Self {
            server: ServerId(number("server", message.server)?),
            epoch: Epoch(message.epoch),
            switch: endpoint("switch", &message.switch)?,
            rings: message.rings.into_iter().map(need).collect::<Result<_, _>>()?,
            lease: Nanos(message.lease_ns),
            renew_every: Nanos(message.renew_every_ns),
            without_icrc: message.without_icrc,
            spent_pair: message.spent_pair.map(Qpn),
        })
    }
}
