//! Writes transport parts as bytes.

use zerocopy::FromBytes;

use super::layout::{
    ACK_REQUEST, AETH_BYTES, AcknowledgeHeader, Aeth, BTH_BYTES, Bth, DEFAULT_PARTITION, ICRC_BYTES,
    MIGRATED, RETH_BYTES, Reth, WriteHeader, acknowledge, to_3, write_only,
};
use super::{Acknowledge, Packet, Path, Psn, Qpn, Write};
use crate::EncodeError;

/// The largest RDMA MTU, and so the most bytes that one packet writes.
pub const MAX_WRITE_BYTES: usize = 4_096;

/// How many bytes behind the UDP header a WRITE of `payload` bytes takes.
pub const fn write_len(payload: usize) -> usize {
    BTH_BYTES + RETH_BYTES + payload.next_multiple_of(4) + ICRC_BYTES
}

/// How many bytes [`encode`] writes.
pub const fn encoded_len(packet: &Packet, payload: usize) -> usize {
    match packet {
        Packet::Write(_) => write_len(payload),
        Packet::Acknowledge(_) => BTH_BYTES + AETH_BYTES + ICRC_BYTES,
    }
}

/// Writes a WRITE or an acknowledgement; see [`encode_write`] and [`encode_acknowledge`].
pub fn encode(
    packet: &Packet,
    payload: &[u8],
    path: Option<&Path>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    match packet {
        Packet::Write(write) => encode_write(write, payload, path, out),
        Packet::Acknowledge(_) if !payload.is_empty() => {
            Err(EncodeError::Body { needs: 0, has: payload.len() })
        }
        Packet::Acknowledge(acknowledge) => encode_acknowledge(acknowledge, path, out),
    }
}

/// Writes a WRITE-Only to the front of `out` and returns how many bytes it wrote: [`write_len`] of the
/// payload's length.
///
/// The iCRC is computed for `path`. Without a path the iCRC is zero, for receivers that ignore it. Nothing
/// is written on an error.
#[inline]
pub fn encode_write(
    write: &Write,
    payload: &[u8],
    path: Option<&Path>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    encode_write_of(write, [&[], payload], path, out)
}

/// As [`encode_write`], with a payload in two pieces.
#[inline]
pub fn encode_write_of(
    write: &Write,
    [first, second]: [&[u8]; 2],
    path: Option<&Path>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let length = first.len().saturating_add(second.len());
    if length > MAX_WRITE_BYTES {
        return Err(EncodeError::PayloadLength);
    }
    let needs = write_len(length);
    let buffer = EncodeError::Buffer { needs, has: out.len() };
    let (transport, seal) = out.get_mut(..needs).and_then(<[u8]>::split_last_chunk_mut).ok_or(buffer)?;
    let (header, behind) = WriteHeader::mut_from_prefix(transport).map_err(|_| buffer)?;
    let (bytes, pad) = behind.split_at_mut(length);
    header.bth = bth(write_only(write.transport), pad.len(), write.to, write.ack_request, write.psn);
    header.reth =
        Reth { address: write.address.into(), rkey: write.rkey.0.into(), length: (length as u32).into() };
    let (place, rest) = bytes.split_at_mut(first.len());
    place.copy_from_slice(first);
    rest.copy_from_slice(second);
    pad.fill(0);
    *seal = sealed(path, transport);
    Ok(needs)
}

/// Writes an ACK or NAK to the front of `out` and returns how many bytes it wrote. `path` means the same as
/// for [`encode_write`].
pub fn encode_acknowledge(
    answer: &Acknowledge,
    path: Option<&Path>,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let needs = encoded_len(&Packet::Acknowledge(*answer), 0);
    let buffer = EncodeError::Buffer { needs, has: out.len() };
    let (transport, seal) = out.get_mut(..needs).and_then(<[u8]>::split_last_chunk_mut).ok_or(buffer)?;
    let (header, _) = AcknowledgeHeader::mut_from_prefix(transport).map_err(|_| buffer)?;
    header.bth = bth(acknowledge(), 0, answer.to, false, answer.psn);
    header.aeth = Aeth { syndrome: answer.syndrome.code(), messages: to_3(answer.messages.get()) };
    *seal = sealed(path, transport);
    Ok(needs)
}

#[inline]
fn bth(opcode: u8, padding: usize, to: Qpn, ack_request: bool, psn: Psn) -> Bth {
    Bth {
        opcode,
        flags: MIGRATED | (padding as u8) << 4,
        partition: DEFAULT_PARTITION.into(),
        variant: 0,
        destination: to_3(to.0),
        ack_request: if ack_request { ACK_REQUEST } else { 0 },
        psn: to_3(psn.get()),
    }
}

#[inline]
fn sealed(path: Option<&Path>, transport: &[u8]) -> [u8; ICRC_BYTES] {
    path.map_or([0; ICRC_BYTES], |path| path.prefix(transport.len() + ICRC_BYTES).icrc(transport))
}
