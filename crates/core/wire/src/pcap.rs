//! Captures in the file format that tcpdump, tshark and scapy read, with Ethernet frames and times in
//! nanoseconds.
//!
//! A file is [`FILE_HEADER`], then for each frame its [`record_header`] and its bytes. Left out: reading.

use crate::Nanos;

/// The longest frame in bytes, which the file header announces.
const SNAP_BYTES: u32 = 1 << 18;

/// The first bytes of a file.
pub const FILE_HEADER: [u8; 24] = {
    let [snap_0, snap_1, snap_2, snap_3] = SNAP_BYTES.to_le_bytes();
    // Magic number (nanoseconds, little endian), version 2.4, time zone, accuracy, length, Ethernet.
    [0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, snap_0, snap_1, snap_2, snap_3, 1, 0, 0, 0]
};

/// The header of a frame of `bytes` bytes, captured at this time since 1970.
pub fn record_header(at: Nanos, bytes: u32) -> [u8; 16] {
    let (seconds, rest) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
    let mut header = [0; 16];
    for (place, number) in header.chunks_exact_mut(4).zip([seconds as u32, rest as u32, bytes, bytes]) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_dated_in_seconds_and_nanoseconds_and_is_whole() {
        let header = record_header(Nanos(3_000_000_259), 66);
        assert_eq!(header, [3, 0, 0, 0, 3, 1, 0, 0, 66, 0, 0, 0, 66, 0, 0, 0]);
        assert_eq!(FILE_HEADER[16..20], [0, 0, 4, 0], "frames of 256 KiB");
    }
}
