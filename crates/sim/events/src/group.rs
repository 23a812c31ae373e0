//! A few keys, of which the smallest is looked for.

/// So many keys.
pub(crate) const GROUP: usize = 8;

/// The keys, and the smaller one of each pair of neighbours: a change looks at one neighbour, and whoever
/// asks for the smallest of all at half as many. There is no branch that a processor could guess wrong, and
/// it compares those side by side that do not wait for each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    keys: [u128; GROUP],
    pairs: [u128; GROUP / 2],
}

impl Keys {
    /// All of them alike.
    pub(crate) const fn of(key: u128) -> Self {
        Self { keys: [key; GROUP], pairs: [key; GROUP / 2] }
    }

    /// Another key at this place.
    #[inline]
    pub(crate) fn set(&mut self, place: usize, key: u128) {
        self.keys[place % GROUP] = key;
        self.pairs[place % GROUP / 2] = key.min(self.keys[(place ^ 1) % GROUP]);
    }

    /// The smallest key.
    #[inline]
    pub(crate) fn earliest(&self) -> u128 {
        let [a, b, c, d] = self.pairs;
        a.min(b).min(c.min(d))
    }
}
