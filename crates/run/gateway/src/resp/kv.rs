//! The tasks of a store of keys and values: what RESP's commands become. `sluice-services` has their bytes.

use sluice_services::kv::KV_TYPES;
pub(super) use sluice_services::kv::codec::{KV_KEY_BYTES_MAX, KV_VALUE_BYTES_MAX, add_key};
use sluice_services::kv::codec::{
    KvScan, KvSet, WriteNumber, decode_kv_del_reply, decode_kv_scan_reply, decode_kv_set_reply, split_value,
};
use sluice_wire::TaskType;

/// The tasks of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvTask {
    /// Values of keys.
    Get,
    /// Keys in order.
    Scan,
    /// Sets the value of a key.
    Set,
    /// Removes keys.
    Del,
}

impl KvTask {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Get, Self::Scan, Self::Set, Self::Del];

    /// The name of the task's type in plans.
    pub const fn name(self) -> &'static str {
        KV_TYPES[self as usize].0
    }

    /// The task's type, unless the rack's plan has another one for its name.
    pub const fn usual_type(self) -> TaskType {
        KV_TYPES[self as usize].1
    }
}

/// A reply of a worker that is not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Misread;

/// Begins a task that must see what was written up to here.
pub(super) fn begin_read(seen: u64, to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(&seen.to_be_bytes());
}

/// A scan behind a key, of at most [`KV_KEY_BYTES_MAX`] bytes.
pub(super) fn scan(seen: u64, most: u32, after: &[u8], to: &mut Vec<u8>) {
    to.clear();
    let scan = KvScan { seen: WriteNumber(seen), most, after };
    scan.encode(to).expect("the session asks for at least one key, and a cursor's key came from a store");
}

/// A key's new value, both of a length that a store takes.
pub(super) fn set(key: &[u8], value: &[u8], to: &mut Vec<u8>) {
    to.clear();
    KvSet { key, value }.encode(to).expect("the session has looked at the lengths");
}

/// The next value of a reply with values; `None` for a missing one.
pub(super) fn value<'a>(reply: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Misread> {
    let (value, rest) = split_value(reply).ok_or(Misread)?;
    *reply = rest;
    Ok(value)
}

/// The only value of a reply.
pub(super) fn only_value(mut reply: &[u8]) -> Result<Option<&[u8]>, Misread> {
    let value = value(&mut reply)?;
    if reply.is_empty() { Ok(value) } else { Err(Misread) }
}

/// The number of the write that set a value.
pub(super) fn written(reply: &[u8]) -> Result<u64, Misread> {
    decode_kv_set_reply(reply).map(|number| number.0).ok_or(Misread)
}

/// The number of the write that removed keys, and how many of them were there.
pub(super) fn removed(reply: &[u8]) -> Result<(u64, u32), Misread> {
    decode_kv_del_reply(reply).map(|deleted| (deleted.number.0, deleted.found)).ok_or(Misread)
}

/// Whether more keys follow those of a scan, and these.
pub(super) fn scanned(reply: &[u8]) -> Result<(bool, Vec<&[u8]>), Misread> {
    decode_kv_scan_reply(reply).map(|page| (page.more, page.keys.collect())).ok_or(Misread)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn tasks_have_the_layout_of_the_page() {
        let mut bytes = Vec::new();
        begin_read(7, &mut bytes);
        add_key(b"ab", &mut bytes);
        assert_eq!(bytes, b"\0\0\0\0\0\0\0\x07\0\x02ab");
        scan(7, 10, b"", &mut bytes);
        assert_eq!(bytes, b"\0\0\0\0\0\0\0\x07\0\0\0\x0a\0\0");
        set(b"k", b"v", &mut bytes);
        assert_eq!(bytes, b"\0\x01kv");
    }

    #[test]
    fn replies_are_read() {
        let mut reply = &b"\0\0\0\x01v\xff\xff\xff\xff\0\0\0\0"[..];
        assert_eq!(value(&mut reply), Ok(Some(&b"v"[..])));
        assert_eq!(value(&mut reply), Ok(None));
        assert_eq!(value(&mut reply), Ok(Some(&b""[..])));
        assert_eq!(value(&mut reply), Err(Misread));
        assert_eq!(only_value(b"\0\0\0\x01vx"), Err(Misread));
        assert_eq!(scanned(b"\x01\0\x01a\0\x02bc"), Ok((true, vec![&b"a"[..], b"bc"])));
        assert_eq!([&b""[..], b"\x02", b"\0\0", b"\0\0\x03a"].map(scanned), [const { Err(Misread) }; 4]);
        assert_eq!(written(b"\0\0\0\0\0\0\0\x09"), Ok(9));
        assert_eq!(removed(b"\0\0\0\0\0\0\0\x09\0\0\0\x02"), Ok((9, 2)));
    }

    proptest! {
        #[test]
        fn no_reply_breaks_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut rest = &bytes[..];
            while value(&mut rest).is_ok() {}
            scanned(&bytes).ok();
            only_value(&bytes).ok();
        }
    }
}
