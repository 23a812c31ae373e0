//! A few keys, with the smallest of them.

/// Keys in a group.
pub(crate) const GROUP: usize = 8;

/// The keys, and the smaller key of each pair of neighbours. A change compares one pair of neighbours, and
/// a search for the smallest key compares half as many. There are no branches that a processor could
/// mispredict, and independent comparisons run in parallel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    keys: [u128; GROUP],
    pairs: [u128; GROUP / 2],
}

impl Keys {
    /// A group in which all keys are this one.
    pub(crate) const fn of(key: u128) -> Self {
        Self { keys: [key; GROUP], pairs: [key; GROUP / 2] }
    }

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
