//! Reads bytes as a transport part.
//!
//! A receiver checks the parts in the order in which an adapter does: form, iCRC, queue pair, sequence,
//! opcode, length. So [`View::parse`] checks the form, and [`View::packet`] what the opcode requires.

use zerocopy::FromBytes;

use super::icrc::Prefix;
use super::layout::{
    ACK_REQUEST, AETH_BYTES, Aeth, BTH_BYTES, Bth, DEFAULT_PARTITION, ICRC_BYTES, Opcode, Reth, from_3,
};
use super::{Acknowledge, Packet, Path, Psn, Qpn, Rkey, Syndrome, Transport, Write};
use crate::RoceError;

/// Bytes with the form of a transport part: a base header of the supported version and partition, of RC or
/// UC, in whole words, with as much padding as it states.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    bth: &'a Bth,
    transport: Transport,
    opcode: Opcode,
    /// The bytes without the iCRC.
    covered: &'a [u8],
    /// The bytes behind the base header, without padding.
    body: &'a [u8],
    icrc: [u8; ICRC_BYTES],
}

impl<'a> View<'a> {
    /// Checks the form.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RoceError> {
        let (covered, icrc) = bytes.split_last_chunk::<ICRC_BYTES>().ok_or(RoceError::Short)?;
        let (bth, behind) = Bth::ref_from_prefix(covered).map_err(|_| RoceError::Short)?;
        if !behind.len().is_multiple_of(4) {
            return Err(RoceError::Words);
        }
        if bth.flags & 0x0f != 0 {
            return Err(RoceError::Version);
        }
        if bth.partition.get() | 0x8000 != DEFAULT_PARTITION {
            return Err(RoceError::Partition);
        }
        let (transport, opcode) = Opcode::from_code(bth.opcode).ok_or(RoceError::Transport)?;
        let padding = usize::from(bth.flags >> 4 & 0x3);
        let unpadded = behind.len().checked_sub(padding).ok_or(RoceError::Padding)?;
        Ok(Self { bth, transport, opcode, covered, body: &behind[..unpadded], icrc: *icrc })
    }

    /// The kind of connection.
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// What is asked for.
    pub const fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// The receiver's queue pair.
    pub const fn destination(&self) -> Qpn {
        Qpn(from_3(self.bth.destination))
    }

    /// The packet's number in the connection.
    pub const fn psn(&self) -> Psn {
        Psn::new(from_3(self.bth.psn))
    }

    /// Whether an answer is asked for.
    pub const fn ack_request(&self) -> bool {
        self.bth.ack_request & ACK_REQUEST != 0
    }

    /// Whether the iCRC is the one for this path, as a plain socket receives it.
    #[inline]
    pub fn icrc_holds(&self, path: &Path) -> bool {
        self.icrc_holds_behind(path.prefix(self.covered.len() + ICRC_BYTES))
    }

    #[inline]
    pub(super) fn icrc_holds_behind(&self, headers: Prefix) -> bool {
        self.icrc == headers.icrc(self.covered)
    }

    /// The packet and the bytes that it writes.
    #[inline]
    pub fn packet(&self) -> Result<(Packet, &'a [u8]), RoceError> {
        match self.opcode {
            Opcode::WriteOnly => self.write().map(|(write, bytes)| (Packet::Write(write), bytes)),
            Opcode::Acknowledge => self.acknowledge(),
            Opcode::Continued | Opcode::Other(_) => Err(RoceError::Opcode),
        }
    }

    /// The WRITE and its bytes; [`RoceError::Opcode`] if it is another packet.
    #[inline]
    pub fn write(&self) -> Result<(Write, &'a [u8]), RoceError> {
        if self.opcode != Opcode::WriteOnly {
            return Err(RoceError::Opcode);
        }
        let (reth, payload) = Reth::ref_from_prefix(self.body).map_err(|_| RoceError::Short)?;
        if usize::try_from(reth.length.get()) != Ok(payload.len()) {
            return Err(RoceError::Length);
        }
        let write = Write {
            transport: self.transport,
            to: self.destination(),
            psn: self.psn(),
            ack_request: self.ack_request(),
            address: reth.address.get(),
            rkey: Rkey(reth.rkey.get()),
        };
        Ok((write, payload))
    }

    fn acknowledge(&self) -> Result<(Packet, &'a [u8]), RoceError> {
        let (aeth, behind) = Aeth::ref_from_prefix(self.body).map_err(|_| RoceError::Short)?;
        if self.covered.len() != BTH_BYTES + AETH_BYTES {
            return Err(RoceError::Length);
        }
        let acknowledge = Acknowledge {
            to: self.destination(),
            psn: self.psn(),
            syndrome: Syndrome::from_code(aeth.syndrome).ok_or(RoceError::Syndrome)?,
            messages: Psn::new(from_3(aeth.messages)),
        };
        Ok((Packet::Acknowledge(acknowledge), behind))
    }
}
