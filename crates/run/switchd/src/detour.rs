//! Packets of a leaf that runs on a server of its rack (Horus §3.5). All of them pass the rack's switch,
//! which only forwards them. Between the two, the address of a packet's sender or receiver stands before
//! the packet's bytes.
//!
//! Packets of the rack's switch are recognised by its address alone. The address before a packet's bytes
//! needs no protection of its own: the other packets of a rack show the same addresses.

use sluice_wire::Endpoint;

/// The length of the address before a packet, in bytes.
pub const HEAD_BYTES: usize = 18;

/// Writes an address, followed by the bytes that `write` writes. Returns the total length: 0 if `write`
/// wrote nothing or there is no room.
pub fn put(peer: Endpoint, out: &mut [u8], write: impl FnOnce(&mut [u8]) -> usize) -> usize {
    let Some((head, rest)) = out.split_at_mut_checked(HEAD_BYTES) else { return 0 };
    let (ip, port) = head.split_at_mut(peer.ip.len());
    ip.copy_from_slice(&peer.ip);
    port.copy_from_slice(&peer.port.to_be_bytes());
    match write(rest) {
        0 => 0,
        length => HEAD_BYTES + length,
    }
}

/// Splits a packet into the address before it and its bytes; `None` if it is too short.
pub fn take(bytes: &[u8]) -> Option<(Endpoint, &[u8])> {
    let (ip, rest) = bytes.split_first_chunk()?;
    let (port, rest) = rest.split_first_chunk()?;
    Some((Endpoint { ip: *ip, port: u16::from_be_bytes(*port) }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_before_a_packet_is_taken_off_again() {
        let peer = Endpoint { ip: [7; 16], port: 513 };
        let mut out = [0; 32];
        let length = put(peer, &mut out, |rest| {
            rest[..3].copy_from_slice(b"abc");
            3
        });
        assert_eq!(take(&out[..length]), Some((peer, &b"abc"[..])));
        assert_eq!(put(peer, &mut out, |_| 0), 0, "nothing is sent for nothing");
        assert_eq!(put(peer, &mut out[..HEAD_BYTES - 1], |_| 1), 0, "there is no room");
        assert_eq!(take(&out[..HEAD_BYTES - 1]), None);
    }
}
