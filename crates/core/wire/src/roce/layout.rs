//! Where each field of the transport part stands. All numbers but the iCRC are big endian.

use core::mem::size_of;

use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Transport;

pub(super) const IPV4_BYTES: usize = 20;
pub(super) const IPV6_BYTES: usize = 40;
pub(super) const UDP_BYTES: usize = 8;

/// Base transport header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Bth {
    pub(super) opcode: u8,
    /// Solicited event (1 bit), migration state (1), pad count (2), version (4).
    pub(super) flags: u8,
    pub(super) partition: U16,
    /// Two congestion bits and six reserved ones, which may change on the way.
    pub(super) variant: u8,
    pub(super) destination: [u8; 3],
    /// Whether an acknowledgement is asked for (1 bit); reserved (7).
    pub(super) ack_request: u8,
    pub(super) psn: [u8; 3],
}

/// RDMA extended transport header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Reth {
    pub(super) address: U64,
    pub(super) rkey: U32,
    pub(super) length: U32,
}

/// Acknowledgement extended transport header.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct Aeth {
    pub(super) syndrome: u8,
    pub(super) messages: [u8; 3],
}

/// The headers in front of a WRITE's bytes.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct WriteHeader {
    pub(super) bth: Bth,
    pub(super) reth: Reth,
}

/// The headers of an acknowledgement.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(super) struct AcknowledgeHeader {
    pub(super) bth: Bth,
    pub(super) aeth: Aeth,
}

pub(super) const BTH_BYTES: usize = size_of::<Bth>();
pub(super) const RETH_BYTES: usize = size_of::<Reth>();
pub(super) const AETH_BYTES: usize = size_of::<Aeth>();
pub(crate) const ICRC_BYTES: usize = 4;

/// Offset of the one byte of the BTH that may change on the way.
pub(super) const VARIANT_AT: usize = core::mem::offset_of!(Bth, variant);

/// The partition of which every host is a member; the upper bit means full membership.
pub(super) const DEFAULT_PARTITION: u16 = 0xffff;
/// The migration bit: set, as adapters set it while no connection migrates.
pub(super) const MIGRATED: u8 = 0x40;
pub(super) const ACK_REQUEST: u8 = 0x80;

/// A number of 24 bits as bytes on the wire.
pub(super) const fn to_3(number: u32) -> [u8; 3] {
    let [_, high, middle, low] = number.to_be_bytes();
    [high, middle, low]
}

/// The number of 24 bits that these bytes hold.
pub(super) const fn from_3([high, middle, low]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, high, middle, low])
}

const WRITE_MIDDLE: u8 = 0x07;
const WRITE_LAST_WITH_IMMEDIATE: u8 = 0x09;
const WRITE_ONLY: u8 = 0x0a;
const ACKNOWLEDGE: u8 = 0x11;
const SEND_MIDDLE: u8 = 0x01;
const SEND_LAST_WITH_IMMEDIATE: u8 = 0x03;

/// The opcode of a packet, without its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// A WRITE of one packet.
    WriteOnly,
    /// The middle or end of a message of several packets.
    Continued,
    /// An acknowledgement, positive or negative.
    Acknowledge,
    /// Anything else.
    Other(u8),
}

impl Opcode {
    /// The opcode and its transport; `None` for a transport that is neither RC nor UC.
    #[inline]
    pub(super) fn from_code(code: u8) -> Option<(Transport, Self)> {
        let transport = match code >> 5 {
            0 => Transport::Rc,
            1 => Transport::Uc,
            _ => return None,
        };
        let opcode = match code & 0x1f {
            WRITE_ONLY => Self::WriteOnly,
            ACKNOWLEDGE if transport == Transport::Rc => Self::Acknowledge,
            WRITE_MIDDLE..=WRITE_LAST_WITH_IMMEDIATE | SEND_MIDDLE..=SEND_LAST_WITH_IMMEDIATE => {
                Self::Continued
            }
            other => Self::Other(other),
        };
        Some((transport, opcode))
    }
}

/// The code of a WRITE of one packet.
pub(super) const fn write_only(transport: Transport) -> u8 {
    match transport {
        Transport::Rc => WRITE_ONLY,
        Transport::Uc => 0x20 | WRITE_ONLY,
    }
}

/// The code of an acknowledgement, which only reliable connections have.
pub(super) const fn acknowledge() -> u8 {
    ACKNOWLEDGE
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE_FIRST: u8 = 0x06;

    #[test]
    fn the_first_of_many_is_not_understood_and_the_others_are_out_of_place() {
        let opcode = |code| Opcode::from_code(code).map(|(_, opcode)| opcode);
        assert_eq!(opcode(WRITE_FIRST), Some(Opcode::Other(WRITE_FIRST)));
        assert_eq!(opcode(0x20 | WRITE_MIDDLE), Some(Opcode::Continued));
        assert_eq!(
            opcode(0x31),
            Some(Opcode::Other(ACKNOWLEDGE)),
            "unreliable connections acknowledge nothing"
        );
        assert_eq!(opcode(0x64), None, "datagrams are another transport");
    }
}
