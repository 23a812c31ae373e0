//! Where scans go on: a bounded table of cursors, each with the last key that its client was told.
//!
//! A cursor stays until so many others were given that its place is needed; it may be used again and again.
//! The first number is random, so that a cursor of an earlier life of the gateway is unknown and not
//! another's.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};

/// How many cursors are kept.
pub(super) const CURSORS_MAX: usize = 65_536;
/// How many bytes their keys may have together.
const KEY_BYTES_MAX: usize = 16 << 20;
/// Cursors stay below this: clients keep them as signed integers of 64 bits, and some as floating point.
const CURSOR_BITS: u32 = 52;

/// The table.
#[derive(Debug)]
pub struct Cursors {
    /// The number of the first key.
    first: u64,
    keys: VecDeque<Box<[u8]>>,
    bytes: usize,
}

impl Default for Cursors {
    fn default() -> Self {
        Self::from(RandomState::new().hash_one(0))
    }
}

impl Cursors {
    fn from(chance: u64) -> Self {
        // Far from the end, so that none is reached.
        let first = (chance >> (u64::BITS - CURSOR_BITS + 1)).max(1);
        Self { first, keys: VecDeque::new(), bytes: 0 }
    }

    /// A cursor behind this key.
    pub(super) fn put(&mut self, key: &[u8]) -> u64 {
        self.bytes += key.len();
        self.keys.push_back(key.into());
        while self.keys.len() > CURSORS_MAX || self.bytes > KEY_BYTES_MAX {
            let Some(gone) = self.keys.pop_front() else { break };
            self.bytes -= gone.len();
            self.first += 1;
        }
        self.first + self.keys.len() as u64 - 1
    }

    /// The key behind which a cursor goes on; the empty one for cursor 0, which is the beginning.
    pub(super) fn key(&self, cursor: u64) -> Option<&[u8]> {
        if cursor == 0 {
            return Some(&[]);
        }
        let place = usize::try_from(cursor.checked_sub(self.first)?).ok()?;
        self.keys.get(place).map(|key| &**key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_to_its_key_until_it_is_too_old() {
        let mut cursors = Cursors::default();
        let first = cursors.put(b"a");
        let second = cursors.put(b"b");
        assert_eq!([0, first, second].map(|at| cursors.key(at)), [Some(&b""[..]), Some(b"a"), Some(b"b")]);
        assert_eq!([first - 1, second + 1, u64::MAX].map(|at| cursors.key(at)), [None; 3]);
        for _ in 0..CURSORS_MAX {
            cursors.put(b"c");
        }
        assert_eq!(cursors.key(second), None);
        assert_eq!(cursors.keys.len(), CURSORS_MAX);
    }

    #[test]
    fn long_keys_have_fewer_cursors() {
        let mut cursors = Cursors::default();
        let first = cursors.put(&[1; 512]);
        for _ in 0..KEY_BYTES_MAX / 512 {
            cursors.put(&[1; 512]);
        }
        assert_eq!(cursors.key(first), None);
        assert!(cursors.bytes <= KEY_BYTES_MAX);
    }

    #[test]
    fn clients_with_small_integers_can_hold_a_cursor() {
        for chance in [0, 1, u64::MAX] {
            let mut cursors = Cursors::from(chance);
            let cursor = cursors.put(b"a");
            assert!(cursor > 0 && cursor < 1 << CURSOR_BITS, "{cursor}");
        }
    }
}
