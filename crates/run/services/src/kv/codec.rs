//! The messages between a client and a key-value service. All numbers are big-endian.
//!
//! | message | bytes |
//! |---|---|
//! | `kv-get` request | `seen` (8), then keys, at least one: length (2), bytes |
//! | its reply | for each key in order: length of the value (4; `0xffffffff` for a missing key), value |
//! | `kv-scan` request | `seen` (8), most keys (4), the key to begin behind: length (2; may be 0), bytes |
//! | its reply | 1 if more keys follow, else 0 (1), then keys in order: length (2), bytes |
//! | `kv-set` request | length of the key (2), key, value (the rest) |
//! | its reply | number of the write (8) |
//! | `kv-del` request | keys as of a `kv-get`, without `seen` |
//! | its reply | number of the write (8), how many of the keys were there (4) |
//!
//! `seen` is the number of a write that the read must not miss. Keys have 1 to [`KV_KEY_BYTES_MAX`] bytes,
//! values up to [`KV_VALUE_BYTES_MAX`]. Both sides check all that they write and read.

use core::fmt;

use sluice_net::service::ServiceError;
use sluice_wire::TASK_BYTES_MAX;

/// The longest key, in bytes.
pub const KV_KEY_BYTES_MAX: usize = 512;

/// The longest value, in bytes.
pub const KV_VALUE_BYTES_MAX: usize = 65_000;

/// The length that stands for "no such key" in a reply.
const MISSING: u32 = u32::MAX;

/// The number of a write to a database. Later writes have larger numbers; 0 is before the first write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WriteNumber(pub u64);

impl WriteNumber {
    /// As `seen`, this number asks for nothing: any state will do.
    pub const ANY: Self = Self(0);
}

impl fmt::Display for WriteNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why bytes are no message of a key-value service, or cannot become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KvMessageError {
    /// A key is empty or too long.
    #[error("a key has 1 to {KV_KEY_BYTES_MAX} bytes, not {bytes}")]
    KeyLength { bytes: usize },
    /// A value is too long: store it in several parts.
    #[error("a value has at most {KV_VALUE_BYTES_MAX} bytes, not {bytes}")]
    ValueLength { bytes: usize },
    /// A request names no key.
    #[error("the request names no key")]
    NoKeys,
    /// A scan asks for no keys.
    #[error("the scan asks for 0 keys; ask for at least 1")]
    NothingWanted,
    /// The message ends within one of its parts.
    #[error("the message of {bytes} bytes ends within {part}")]
    CutOff {
        /// The length of the whole message.
        bytes: usize,
        part: &'static str,
    },
    /// The message continues behind its last part.
    #[error("{bytes} bytes follow the end of the message")]
    TooMuch { bytes: usize },
    /// The message is too long: ask for fewer keys at a time.
    #[error("{bytes} bytes are more than the {most} that a message has: ask for fewer keys at a time")]
    TooLong { bytes: usize, most: usize },
}

impl From<KvMessageError> for ServiceError {
    fn from(why: KvMessageError) -> Self {
        Self::new(why.to_string())
    }
}

/// Keys that were checked, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvKeys<'a>(&'a [u8]);

impl<'a> Iterator for KvKeys<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (key, rest) = split_string(self.0)?;
        self.0 = rest;
        Some(key)
    }
}

/// A `kv-get` request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KvGet<'a> {
    /// The write that the read must not miss.
    pub seen: WriteNumber,
    /// At least one.
    pub keys: KvKeys<'a>,
}

/// Writes a `kv-get` request.
///
/// # Errors
/// A key without bytes or with too many, no key at all, or more keys than fit into one request.
pub fn encode_kv_get<'k>(
    seen: WriteNumber,
    keys: impl IntoIterator<Item = &'k [u8]>,
    request: &mut Vec<u8>,
) -> Result<(), KvMessageError> {
    request.extend(seen.0.to_be_bytes());
    add_keys(keys, request)
}

/// Reads a `kv-get` request.
pub fn decode_kv_get(request: &[u8]) -> Result<KvGet<'_>, KvMessageError> {
    let (seen, keys) = split_number(request, "`seen`")?;
    Ok(KvGet { seen, keys: checked_keys(keys, request.len())? })
}

/// Adds the value of the next key, or that there is none, to the reply of a `kv-get`.
///
/// # Errors
/// If the reply would be longer than `reply_max`.
pub fn add_value(value: Option<&[u8]>, reply: &mut Vec<u8>, reply_max: usize) -> Result<(), KvMessageError> {
    let bytes = reply.len() + 4 + value.map_or(0, <[u8]>::len);
    if bytes > reply_max {
        return Err(KvMessageError::TooLong { bytes, most: reply_max });
    }
    reply.extend(value.map_or(MISSING, |value| value.len() as u32).to_be_bytes());
    reply.extend(value.unwrap_or_default());
    Ok(())
}

/// Reads the reply of a `kv-get` for this many keys; `None` if the bytes are not one.
pub fn decode_kv_get_reply(reply: &[u8], keys: usize) -> Option<Vec<Option<&[u8]>>> {
    let mut values = Vec::new();
    let mut rest = reply;
    while !rest.is_empty() {
        let (value, after) = split_value(rest)?;
        values.push(value);
        rest = after;
    }
    (values.len() == keys).then_some(values)
}

/// A `kv-scan` request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvScan<'a> {
    /// The write that the read must not miss.
    pub seen: WriteNumber,
    /// The most keys wanted, at least one.
    pub most: u32,
    /// The key behind which to begin, which need not exist; empty: at the first key.
    pub after: &'a [u8],
}

impl KvScan<'_> {
    /// Writes the request.
    ///
    /// # Errors
    /// If `after` is too long, or `most` is 0.
    pub fn encode(&self, request: &mut Vec<u8>) -> Result<(), KvMessageError> {
        self.check()?;
        request.extend(self.seen.0.to_be_bytes());
        request.extend(self.most.to_be_bytes());
        add_key(self.after, request);
        Ok(())
    }

    fn check(&self) -> Result<(), KvMessageError> {
        if self.after.len() > KV_KEY_BYTES_MAX {
            return Err(KvMessageError::KeyLength { bytes: self.after.len() });
        }
        if self.most == 0 { Err(KvMessageError::NothingWanted) } else { Ok(()) }
    }
}

/// Reads a `kv-scan` request.
pub fn decode_kv_scan(request: &[u8]) -> Result<KvScan<'_>, KvMessageError> {
    let cut_off = |part| KvMessageError::CutOff { bytes: request.len(), part };
    let (seen, rest) = split_number(request, "`seen`")?;
    let (most, rest) = rest.split_first_chunk::<4>().ok_or_else(|| cut_off("the number of keys"))?;
    let (after, rest) = split_string(rest).ok_or_else(|| cut_off("the key behind which it begins"))?;
    let scan = KvScan { seen, most: u32::from_be_bytes(*most), after };
    scan.check()?;
    nothing_left(rest)?;
    Ok(scan)
}

/// The part of the keys that one `kv-scan` found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPage<'a> {
    /// Whether more keys follow the last one here.
    pub more: bool,
    pub keys: KvKeys<'a>,
}

/// Writes the reply of a `kv-scan`.
#[derive(Debug)]
pub struct KeyPageWriter<'a> {
    reply: &'a mut Vec<u8>,
    reply_max: usize,
    left: u32,
}

impl<'a> KeyPageWriter<'a> {
    /// Starts a reply of at most `most` keys and `reply_max` bytes.
    pub fn new(most: u32, reply: &'a mut Vec<u8>, reply_max: usize) -> Self {
        reply.clear();
        reply.push(0);
        Self { reply, reply_max, left: most }
    }

    /// Adds the next key. Returns `false` if it has no place; then the reply says that more keys follow, and
    /// is complete.
    pub fn add(&mut self, key: &[u8]) -> bool {
        let fits = self.left > 0 && self.reply.len() + 2 + key.len() <= self.reply_max;
        if fits {
            self.left -= 1;
            add_key(key, self.reply);
        } else {
            self.reply[0] = 1;
        }
        fits
    }
}

/// Reads the reply of a `kv-scan`; `None` if the bytes are not one.
pub fn decode_kv_scan_reply(reply: &[u8]) -> Option<KeyPage<'_>> {
    let (more, keys) = reply.split_first()?;
    let more = match more {
        0 => false,
        1 => true,
        _ => return None,
    };
    let keys = if keys.is_empty() { KvKeys(keys) } else { checked_keys(keys, reply.len()).ok()? };
    Some(KeyPage { more, keys })
}

/// A `kv-set` request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvSet<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl KvSet<'_> {
    /// Writes the request.
    ///
    /// # Errors
    /// If the key has no bytes, or key or value has too many.
    pub fn encode(&self, request: &mut Vec<u8>) -> Result<(), KvMessageError> {
        check_key(self.key)?;
        check_value(self.value)?;
        add_key(self.key, request);
        request.extend(self.value);
        Ok(())
    }
}

/// Reads a `kv-set` request.
pub fn decode_kv_set(request: &[u8]) -> Result<KvSet<'_>, KvMessageError> {
    let cut_off = KvMessageError::CutOff { bytes: request.len(), part: "its key" };
    let (key, value) = split_string(request).ok_or(cut_off)?;
    check_key(key)?;
    check_value(value)?;
    Ok(KvSet { key, value })
}

/// Writes the reply of a `kv-set`.
pub fn encode_kv_set_reply(number: WriteNumber, reply: &mut Vec<u8>) {
    reply.extend(number.0.to_be_bytes());
}

/// Reads the reply of a `kv-set`; `None` if the bytes are not one.
pub fn decode_kv_set_reply(reply: &[u8]) -> Option<WriteNumber> {
    reply.try_into().ok().map(|number| WriteNumber(u64::from_be_bytes(number)))
}

/// Writes a `kv-del` request.
///
/// # Errors
/// As [`encode_kv_get`].
pub fn encode_kv_del<'k>(
    keys: impl IntoIterator<Item = &'k [u8]>,
    request: &mut Vec<u8>,
) -> Result<(), KvMessageError> {
    add_keys(keys, request)
}

/// Reads a `kv-del` request: the keys, at least one.
pub fn decode_kv_del(request: &[u8]) -> Result<KvKeys<'_>, KvMessageError> {
    checked_keys(request, request.len())
}

/// The reply of a `kv-del`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvDeleted {
    /// The number of the write; if no key was there, of the write before.
    pub number: WriteNumber,
    /// How many of the keys were there; one that is named twice counts once.
    pub found: u32,
}

impl KvDeleted {
    /// Writes the reply.
    pub fn encode(&self, reply: &mut Vec<u8>) {
        reply.extend(self.number.0.to_be_bytes());
        reply.extend(self.found.to_be_bytes());
    }
}

/// Reads the reply of a `kv-del`; `None` if the bytes are not one.
pub fn decode_kv_del_reply(reply: &[u8]) -> Option<KvDeleted> {
    let (number, found) = reply.split_first_chunk::<8>()?;
    let found = u32::from_be_bytes(found.try_into().ok()?);
    Some(KvDeleted { number: WriteNumber(u64::from_be_bytes(*number)), found })
}

fn add_keys<'k>(
    keys: impl IntoIterator<Item = &'k [u8]>,
    request: &mut Vec<u8>,
) -> Result<(), KvMessageError> {
    let before = request.len();
    for key in keys {
        check_key(key)?;
        add_key(key, request);
    }
    let (bytes, most) = (request.len(), TASK_BYTES_MAX as usize);
    if bytes > most {
        return Err(KvMessageError::TooLong { bytes, most });
    }
    if bytes == before { Err(KvMessageError::NoKeys) } else { Ok(()) }
}

/// The keys in `bytes`, which end a message of `whole` bytes.
fn checked_keys(bytes: &[u8], whole: usize) -> Result<KvKeys<'_>, KvMessageError> {
    if bytes.is_empty() {
        return Err(KvMessageError::NoKeys);
    }
    let mut rest = bytes;
    while !rest.is_empty() {
        let (key, after) =
            split_string(rest).ok_or(KvMessageError::CutOff { bytes: whole, part: "a key" })?;
        check_key(key)?;
        rest = after;
    }
    Ok(KvKeys(bytes))
}

const fn check_key(key: &[u8]) -> Result<(), KvMessageError> {
    match key.len() {
        1..=KV_KEY_BYTES_MAX => Ok(()),
        bytes => Err(KvMessageError::KeyLength { bytes }),
    }
}

const fn check_value(value: &[u8]) -> Result<(), KvMessageError> {
    match value.len() {
        0..=KV_VALUE_BYTES_MAX => Ok(()),
        bytes => Err(KvMessageError::ValueLength { bytes }),
    }
}

const fn nothing_left(rest: &[u8]) -> Result<(), KvMessageError> {
    match rest.len() {
        0 => Ok(()),
        bytes => Err(KvMessageError::TooMuch { bytes }),
    }
}

/// Adds a key, or the key behind which a scan begins: at most [`KV_KEY_BYTES_MAX`] bytes, unchecked.
pub fn add_key(bytes: &[u8], to: &mut Vec<u8>) {
    to.extend((bytes.len() as u16).to_be_bytes());
    to.extend(bytes);
}

fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

/// The next value in the reply of a `kv-get`, and what follows; `None` if the bytes do not begin with one.
pub fn split_value(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    match u32::from_be_bytes(*length) {
        MISSING => Some((None, rest)),
        length => rest.split_at_checked(length as usize).map(|(value, rest)| (Some(value), rest)),
    }
}

fn split_number<'a>(
    message: &'a [u8],
    part: &'static str,
) -> Result<(WriteNumber, &'a [u8]), KvMessageError> {
    let (number, rest) =
        message.split_first_chunk::<8>().ok_or(KvMessageError::CutOff { bytes: message.len(), part })?;
    Ok((WriteNumber(u64::from_be_bytes(*number)), rest))
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The longest reply of a worker.
    const REPLY_MAX: usize = TASK_BYTES_MAX as usize;

    fn key() -> impl Strategy<Value = Vec<u8>> {
        vec(any::<u8>(), 1..40)
    }

    fn slices(keys: &[Vec<u8>]) -> Vec<&[u8]> {
        keys.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn the_longest_key_with_the_longest_value_is_one_request_and_one_reply() {
        let (key, value) = ([7; KV_KEY_BYTES_MAX], vec![8; KV_VALUE_BYTES_MAX]);
        let (mut request, mut reply) = (Vec::new(), Vec::new());
        KvSet { key: &key, value: &value }.encode(&mut request).expect("legal");
        assert!(request.len() <= TASK_BYTES_MAX as usize);
        assert_eq!(decode_kv_set(&request), Ok(KvSet { key: &key, value: &value }));
        add_value(Some(&value), &mut reply, REPLY_MAX).expect("it fits");
        assert_eq!(decode_kv_get_reply(&reply, 1), Some(vec![Some(&value[..])]));
    }

    #[test]
    fn what_is_too_long_too_short_or_nothing_is_refused_by_both_sides() {
        let (long_key, long_value) = ([7; KV_KEY_BYTES_MAX + 1], vec![8; KV_VALUE_BYTES_MAX + 1]);
        let into = &mut Vec::new();
        let key_of = |bytes| Err(KvMessageError::KeyLength { bytes });
        assert_eq!(encode_kv_get(WriteNumber::ANY, [&b""[..]], into), key_of(0));
        assert_eq!(encode_kv_del([&long_key[..]], into), key_of(513));
        assert_eq!(KvSet { key: b"", value: b"" }.encode(into), key_of(0));
        let set = KvSet { key: b"k", value: &long_value }.encode(into);
        assert_eq!(set, Err(KvMessageError::ValueLength { bytes: KV_VALUE_BYTES_MAX + 1 }));
        assert_eq!(encode_kv_get(WriteNumber::ANY, [], &mut Vec::new()), Err(KvMessageError::NoKeys));
        let many = vec![&long_key[1..]; 128];
        assert!(matches!(encode_kv_del(many, &mut Vec::new()), Err(KvMessageError::TooLong { .. })));
        let scan = KvScan { seen: WriteNumber::ANY, most: 1, after: &long_key };
        assert_eq!(scan.encode(into), key_of(513));
        let nothing = KvScan { most: 0, after: b"", ..scan };
        assert_eq!(nothing.encode(into), Err(KvMessageError::NothingWanted));

        assert_eq!(decode_kv_get(&[0; 8]), Err(KvMessageError::NoKeys));
        assert_eq!(decode_kv_get(&[0; 10]), Err(KvMessageError::KeyLength { bytes: 0 }));
        assert_eq!(decode_kv_del(&[0, 2, 9]), Err(KvMessageError::CutOff { bytes: 3, part: "a key" }));
        let value = [&[0, 1, 9][..], &long_value].concat();
        assert!(matches!(decode_kv_set(&value), Err(KvMessageError::ValueLength { .. })));
        assert_eq!(decode_kv_scan(&[0; 14]), Err(KvMessageError::NothingWanted));
        let mut longer = Vec::new();
        KvScan { seen: WriteNumber(1), most: 1, after: b"" }.encode(&mut longer).expect("legal");
        longer.push(0);
        assert_eq!(decode_kv_scan(&longer), Err(KvMessageError::TooMuch { bytes: 1 }));
        assert_eq!(decode_kv_set_reply(&[0; 9]), None);
        assert_eq!(decode_kv_del_reply(&[0; 11]), None);
        assert_eq!(decode_kv_scan_reply(&[2]), None);
        assert_eq!(decode_kv_get_reply(&[0, 0, 0, 0], 2), None, "one value for two keys");
    }

    #[test]
    fn a_reply_that_has_no_room_for_all_values_is_an_error_that_says_what_helps() {
        let mut reply = Vec::new();
        add_value(Some(&[1; 20]), &mut reply, 40).expect("it fits");
        let why = add_value(Some(&[2; 20]), &mut reply, 40).expect_err("it does not fit").to_string();
        assert!(why.contains("48 bytes") && why.contains("fewer keys"), "{why}");
        assert_eq!(reply.len(), 24, "nothing was added");
    }

    #[test]
    fn a_page_of_keys_says_whether_more_follow() {
        for (most, reply_max, page) in
            [(5, 100, (false, 3)), (3, 100, (false, 3)), (2, 100, (true, 2)), (5, 9, (true, 2))]
        {
            let mut reply = Vec::new();
            let mut writer = KeyPageWriter::new(most, &mut reply, reply_max);
            let added = [b"aa", b"bb", b"cc"].into_iter().take_while(|key| writer.add(&key[..])).count();
            let read = decode_kv_scan_reply(&reply).expect("a page");
            assert_eq!((read.more, read.keys.count()), page);
            assert_eq!(added, page.1);
        }
    }

    proptest! {
        #[test]
        fn requests_come_back_as_they_were(
            keys in vec(key(), 1..20),
            seen: u64,
            most in 1..u32::MAX,
            value: Vec<u8>,
        ) {
            let (seen, mut get, mut del) = (WriteNumber(seen), Vec::new(), Vec::new());
            encode_kv_get(seen, slices(&keys), &mut get).expect("legal");
            let read = decode_kv_get(&get).expect("legal");
            prop_assert_eq!((read.seen, read.keys.collect::<Vec<_>>()), (seen, slices(&keys)));

            encode_kv_del(slices(&keys), &mut del).expect("legal");
            prop_assert_eq!(decode_kv_del(&del).expect("legal").collect::<Vec<_>>(), slices(&keys));

            for after in [&b""[..], &keys[0]] {
                let (scan, mut request) = (KvScan { seen, most, after }, Vec::new());
                scan.encode(&mut request).expect("legal");
                prop_assert_eq!(decode_kv_scan(&request), Ok(scan));
            }
            let (set, mut request) = (KvSet { key: &keys[0], value: &value }, Vec::new());
            set.encode(&mut request).expect("legal");
            prop_assert_eq!(decode_kv_set(&request), Ok(set));
        }

        #[test]
        fn replies_come_back_as_they_were(
            values in vec(any::<Option<Vec<u8>>>(), 1..20),
            keys in vec(key(), 0..20),
            number: u64,
            found: u32,
        ) {
            let (mut get, mut scan, mut set, mut del) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for value in &values {
                add_value(value.as_deref(), &mut get, REPLY_MAX).expect("it fits");
            }
            let written: Vec<_> = values.iter().map(Option::as_deref).collect();
            prop_assert_eq!(decode_kv_get_reply(&get, values.len()), Some(written));

            let mut writer = KeyPageWriter::new(u32::MAX, &mut scan, REPLY_MAX);
            prop_assert!(keys.iter().all(|key| writer.add(key)));
            let page = decode_kv_scan_reply(&scan).expect("a page");
            prop_assert_eq!((page.more, page.keys.collect::<Vec<_>>()), (false, slices(&keys)));

            encode_kv_set_reply(WriteNumber(number), &mut set);
            prop_assert_eq!(decode_kv_set_reply(&set), Some(WriteNumber(number)));
            let deleted = KvDeleted { number: WriteNumber(number), found };
            deleted.encode(&mut del);
            prop_assert_eq!(decode_kv_del_reply(&del), Some(deleted));
        }

        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in vec(any::<u8>(), 0..200), keys in 0..10_usize) {
            let _ = decode_kv_get(&bytes).map(|get| get.keys.count());
            let _ = decode_kv_scan(&bytes);
            let _ = decode_kv_set(&bytes);
            let _ = decode_kv_del(&bytes).map(Iterator::count);
            let _ = decode_kv_get_reply(&bytes, keys);
            let _ = decode_kv_scan_reply(&bytes).map(|page| page.keys.count());
            let _ = (decode_kv_set_reply(&bytes), decode_kv_del_reply(&bytes));
        }
    }
}
