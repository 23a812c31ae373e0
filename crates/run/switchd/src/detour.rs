//! How packets reach a leaf that runs on a server of its rack, and leave it (Horus §3.5): through the rack's
//! switch, which only forwards. On the way between the two the address of who sent a packet, or of who is to
//! get it, lies before its bytes.
//!
//! Nothing but that switch's address tells its packets from others: what lies before them is no more secret
//! than the rest of a rack's packets.

use sluice_wire::Endpoint;

/// What lies before a packet's bytes.
pub const HEAD_BYTES: usize = 18;

/// Puts an address before the bytes that `write` writes, and says how many there are then: 0 if there are
/// none, or no room.
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

/// The address before a packet's bytes, and these.
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
