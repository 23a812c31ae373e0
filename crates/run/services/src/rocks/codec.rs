//! The messages between a client and the RocksDB service. All numbers are big-endian.
//!
//! | message | bytes |
//! |---|---|
//! | GET request | one or more keys, [`KEY_BYTES`] each |
//! | GET reply | keys found (2), digest of the values found (8), then for each key in order, as long as the packet has room: value length (2; `0xffff` for a missing key) and the value |
//! | SCAN request | rows wanted (4; with the top bit set they are sent, too), start key (the rest; any length, also none) |
//! | SCAN reply | rows read (4), bytes of their keys and values (8), digest of both (8); if they were asked for, the first rows as far as the longest reply goes: key length (2), key, value length (2), value |

use sluice_net::service::ServiceError;

/// Every key's length.
pub const KEY_BYTES: usize = 64;

/// How many bytes of a key hold its number.
const NUMBER_BYTES: usize = 16;

/// The length of a SCAN's start key, as in Rain's evaluation (Rain §5.3).
pub const SCAN_START_BYTES: usize = 1_024;

/// The largest number of rows in one SCAN.
pub const SCAN_ROWS_MAX: u32 = 100_000;

/// A bit in a SCAN request's number of rows: the reply shall contain the rows.
const SEND_ROWS: u32 = 1 << 31;

/// The length that stands for "no such key" in a GET reply.
const MISSING: u16 = u16::MAX;

/// The key with this number: the number in hexadecimal, so that the database sorts keys by number, then
/// padding.
pub fn key(number: u64) -> [u8; KEY_BYTES] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut key = [b'.'; KEY_BYTES];
    for (at, byte) in key.iter_mut().take(NUMBER_BYTES).enumerate() {
        *byte = HEX[(number >> (60 - 4 * at)) as usize & 15];
    }
    key
}

/// The start key of a SCAN from this number on. It sorts just before the number's key.
pub fn scan_start(number: u64) -> [u8; SCAN_START_BYTES] {
    let mut start = [b'-'; SCAN_START_BYTES];
    start[..NUMBER_BYTES].copy_from_slice(&key(number)[..NUMBER_BYTES]);
    start
}

/// The value of the key with this number. It is always the same, so any client can check an answer.
pub fn value(number: u64, bytes: usize) -> Vec<u8> {
    let mut value = Vec::with_capacity(bytes + 8);
    let mut state = number;
    while value.len() < bytes {
        state = mix(state.wrapping_add(0x9e37_79b9_7f4a_7c15));
        value.extend(state.to_be_bytes());
    }
    value.truncate(bytes);
    value
}

/// Writes a GET request for the keys with these numbers.
pub fn encode_get(numbers: impl IntoIterator<Item = u64>, request: &mut Vec<u8>) {
    for number in numbers {
        request.extend(key(number));
    }
}

/// Reads a GET request: the keys, at least one.
pub fn decode_get(request: &[u8]) -> Result<impl ExactSizeIterator<Item = &[u8]>, ServiceError> {
    if request.is_empty() || !request.len().is_multiple_of(KEY_BYTES) {
        return Err(ServiceError::new(format!(
            "a GET carries keys of {KEY_BYTES} bytes each, at least one; this one has {} bytes",
            request.len()
        )));
    }
    Ok(request.chunks_exact(KEY_BYTES))
}

/// Writes a SCAN request for `rows` rows from the key with this number on.
pub fn encode_scan(number: u64, rows: u32, request: &mut Vec<u8>) {
    request.extend(rows.to_be_bytes());
    request.extend(scan_start(number));
}

/// Like [`encode_scan`], for a reply that holds the rows.
pub fn encode_scan_for_rows(number: u64, rows: u32, request: &mut Vec<u8>) {
    encode_scan(number, rows | SEND_ROWS, request);
}

/// A SCAN request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan<'a> {
    /// How many rows to read, at most [`SCAN_ROWS_MAX`].
    pub rows: u32,
    /// Whether the reply shall contain the rows.
    pub sends_rows: bool,
    /// The first key; if it does not exist, the SCAN starts at the next one.
    pub start: &'a [u8],
}

/// Reads a SCAN request.
pub fn decode_scan(request: &[u8]) -> Result<Scan<'_>, ServiceError> {
    let Some((rows, start)) = request.split_first_chunk::<4>() else {
        return Err(ServiceError::new(format!("a SCAN takes at least 4 bytes, not {}", request.len())));
    };
    let stated = u32::from_be_bytes(*rows);
    let (rows, sends_rows) = (stated & !SEND_ROWS, stated & SEND_ROWS != 0);
    if rows > SCAN_ROWS_MAX {
        return Err(ServiceError::new(format!("a SCAN reads at most {SCAN_ROWS_MAX} rows, not {rows}")));
    }
    Ok(Scan { rows, sends_rows, start })
}

/// Writes a GET reply. Its header is written last, once it is known.
#[derive(Debug)]
pub struct GetReplyWriter<'a> {
    reply: &'a mut Vec<u8>,
    reply_max: usize,
    found: u16,
    digest: Digest,
    full: bool,
}

impl<'a> GetReplyWriter<'a> {
    /// Starts a reply of at most `reply_max` bytes.
    pub fn new(reply: &'a mut Vec<u8>, reply_max: usize) -> Self {
        reply.clear();
        reply.resize(GET_HEAD_BYTES, 0);
        Self { reply, reply_max, found: 0, digest: Digest::default(), full: false }
    }

    /// Adds the result of the next key's look-up.
    pub fn add(&mut self, value: Option<&[u8]>) {
        if let Some(value) = value {
            self.found = self.found.saturating_add(1);
            self.digest.add(value);
        }
        let bytes = value.unwrap_or_default();
        let length = value.map_or(MISSING, |value| value.len().min(usize::from(MISSING)) as u16);
        let fits = self.reply.len() + 2 + bytes.len() <= self.reply_max;
        let can_say_its_length = value.is_none() || length != MISSING;
        self.full |= !fits || !can_say_its_length;
        if !self.full {
            self.reply.extend(length.to_be_bytes());
            self.reply.extend(bytes);
        }
    }

    /// Writes the head.
    pub fn finish(self) {
        self.reply[..2].copy_from_slice(&self.found.to_be_bytes());
        self.reply[2..GET_HEAD_BYTES].copy_from_slice(&self.digest.value().to_be_bytes());
    }
}

const GET_HEAD_BYTES: usize = 10;

/// A GET reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetReply<'a> {
    /// How many of the keys exist.
    pub found: u16,
    /// Digest of the found values, in the order of the request.
    pub digest: u64,
    values: &'a [u8],
}

impl<'a> GetReply<'a> {
    /// The values that the packet had room for, in the order of the request; `None` for a missing key.
    pub fn values(&self) -> impl Iterator<Item = Option<&'a [u8]>> {
        let mut rest = self.values;
        core::iter::from_fn(move || {
            let (value, after) = split_value(rest)?;
            rest = after;
            Some(value)
        })
    }
}

/// Reads a GET reply; `None` if the bytes are not one.
pub fn decode_get_reply(reply: &[u8]) -> Option<GetReply<'_>> {
    let (found, rest) = reply.split_first_chunk::<2>()?;
    let (digest, values) = rest.split_first_chunk::<8>()?;
    let mut rest = values;
    while !rest.is_empty() {
        rest = split_value(rest)?.1;
    }
    Some(GetReply { found: u16::from_be_bytes(*found), digest: u64::from_be_bytes(*digest), values })
}

fn split_value(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    match u16::from_be_bytes(*length) {
        MISSING => Some((None, rest)),
        length => rest.split_at_checked(usize::from(length)).map(|(value, rest)| (Some(value), rest)),
    }
}

/// The length of a SCAN reply without rows, in bytes.
pub const SCAN_HEAD_BYTES: usize = 20;

/// Adds a row to a SCAN reply of at most `reply_max` bytes. Returns whether it fitted.
pub fn add_row(key: &[u8], value: &[u8], reply: &mut Vec<u8>, reply_max: usize) -> bool {
    let (Ok(key_len), Ok(value_len)) = (u16::try_from(key.len()), u16::try_from(value.len())) else {
        return false;
    };
    let fits = reply.len() + 4 + key.len() + value.len() <= reply_max;
    if fits {
        reply.extend(key_len.to_be_bytes());
        reply.extend(key);
        reply.extend(value_len.to_be_bytes());
        reply.extend(value);
    }
    fits
}

/// The rows in a SCAN reply: keys and values.
pub fn rows_of(reply: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = reply.get(SCAN_HEAD_BYTES..).unwrap_or_default();
    core::iter::from_fn(move || {
        let (key, after) = split_string(rest)?;
        let (value, after) = split_string(after)?;
        rest = after;
        Some((key, value))
    })
}

fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

/// A SCAN reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanReply {
    /// How many rows were read.
    pub rows: u32,
    /// How many bytes the rows' keys and values have.
    pub bytes: u64,
    /// Digest of keys and values, in order.
    pub digest: u64,
}

impl ScanReply {
    /// Writes the reply's header into the first [`SCAN_HEAD_BYTES`].
    pub fn encode(&self, reply: &mut [u8]) {
        reply[..4].copy_from_slice(&self.rows.to_be_bytes());
        reply[4..12].copy_from_slice(&self.bytes.to_be_bytes());
        reply[12..SCAN_HEAD_BYTES].copy_from_slice(&self.digest.to_be_bytes());
    }
}

/// Reads a SCAN reply's header; `None` if the bytes are not one. [`rows_of`] reads the rows.
pub fn decode_scan_reply(reply: &[u8]) -> Option<ScanReply> {
    let (rows, rest) = reply.split_first_chunk::<4>()?;
    let (bytes, rest) = rest.split_first_chunk::<8>()?;
    let (digest, _) = rest.split_first_chunk::<8>()?;
    Some(ScanReply {
        rows: u32::from_be_bytes(*rows),
        bytes: u64::from_be_bytes(*bytes),
        digest: u64::from_be_bytes(*digest),
    })
}

/// A fingerprint of a sequence of byte strings. Computing it costs little beside reading the strings.
///
/// For each string: its length, then its bytes in words of 8, big-endian, the last one zero-padded, each
/// folded in by `d = (rotl(d, 29) xor word) * 0x9e37_79b9_7f4a_7c15`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest(u64);

impl Digest {
    /// Adds one string to the digest.
    pub fn add(&mut self, bytes: &[u8]) {
        self.fold(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.fold(u64::from_be_bytes(*word));
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.fold(u64::from_be_bytes(last));
        }
    }

    /// The fingerprint so far.
    pub const fn value(self) -> u64 {
        self.0
    }

    const fn fold(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(29) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Spreads a number over all 64 bits (the finaliser of SplitMix64).
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn keys_sort_as_their_numbers_do() {
        assert!(key(9) < key(10));
        assert!(key(255) < key(256));
        assert_eq!(&key(0xab)[..18], b"00000000000000ab..");
    }

    #[test]
    fn a_get_reply_leaves_out_the_values_that_do_not_fit() {
        let mut reply = Vec::new();
        let mut writer = GetReplyWriter::new(&mut reply, 40);
        writer.add(Some(&[1; 20]));
        writer.add(None);
        writer.add(Some(&[2; 20]));
        writer.add(Some(&[3; 1]));
        writer.finish();
        let read = decode_get_reply(&reply).expect("it was just written");
        assert!(reply.len() <= 40);
        assert_eq!(read.found, 3);
        assert_eq!(read.values().collect::<Vec<_>>(), [Some(&[1; 20][..]), None]);
    }

    #[test]
    fn the_digest_depends_on_order_and_borders() {
        let of = |parts: &[&[u8]]| {
            let mut digest = Digest::default();
            for part in parts {
                digest.add(part);
            }
            digest.value()
        };
        assert_ne!(of(&[b"ab", b"c"]), of(&[b"a", b"bc"]));
        assert_ne!(of(&[b"a", b"b"]), of(&[b"b", b"a"]));
    }

    #[test]
    fn a_scan_starts_before_its_first_key_and_after_the_one_before() {
        for number in [1, 7, 200_000, u64::MAX] {
            let start = scan_start(number);
            assert!(start[..] < key(number)[..] && start[..] > key(number - 1)[..], "{number}");
        }
    }

    proptest! {
        #[test]
        fn requests_come_back_as_they_were(numbers in prop::collection::vec(any::<u64>(), 1..20), rows in 0..=SCAN_ROWS_MAX) {
            let mut get = Vec::new();
            encode_get(numbers.iter().copied(), &mut get);
            let keys: Vec<_> = decode_get(&get).expect("legal").map(<[u8]>::to_vec).collect();
            prop_assert_eq!(keys, numbers.iter().map(|n| key(*n).to_vec()).collect::<Vec<_>>());

            let mut scan = Vec::new();
            encode_scan(numbers[0], rows, &mut scan);
            let start = &scan_start(numbers[0]);
            prop_assert_eq!(decode_scan(&scan).expect("legal"), Scan { rows, sends_rows: false, start });
            scan.clear();
            encode_scan_for_rows(numbers[0], rows, &mut scan);
            prop_assert_eq!(decode_scan(&scan).expect("legal"), Scan { rows, sends_rows: true, start });
        }

        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode_get(&bytes).map(Iterator::count);
            let _ = decode_scan(&bytes);
            let _ = decode_get_reply(&bytes).map(|reply| reply.values().count());
            let _ = decode_scan_reply(&bytes);
            let _ = rows_of(&bytes).count();
        }
    }
}
