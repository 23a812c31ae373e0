//! One timer per task: a four-way heap that records where each timer stands. So setting and clearing a
//! timer take O(log n) steps, and no dead entry stays in the heap.

use alloc::vec::Vec;

use sluice_wire::Nanos;

/// The place of a timer that is not set.
const NOWHERE: u32 = u32::MAX;
const ARITY: usize = 4;

/// Timers, named by slab indices.
#[derive(Debug, Default)]
pub(super) struct Timers {
    heap: Vec<(Nanos, u32)>,
    places: Vec<u32>,
}

impl Timers {
    /// The timer that is due first.
    pub(super) fn first(&self) -> Option<(Nanos, u32)> {
        self.heap.first().copied()
    }

    /// When timer `id` is due, if it is set.
    pub(super) fn at(&self, id: u32) -> Option<Nanos> {
        let place = self.places.get(id as usize).filter(|place| **place != NOWHERE)?;
        Some(self.heap[*place as usize].0)
    }

    /// Sets timer `id`, or moves it.
    pub(super) fn set(&mut self, id: u32, at: Nanos) {
        let index = id as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, NOWHERE);
        }
        let mut place = self.places[index] as usize;
        if self.places[index] == NOWHERE {
            place = self.heap.len();
            self.heap.push((at, id));
        } else {
            self.heap[place].0 = at;
        }
        self.settle(place);
    }

    /// Clears timer `id`, if it is set.
    pub(super) fn clear(&mut self, id: u32) {
        let place = self.places.get(id as usize).map_or(NOWHERE, |place| *place);
        if place == NOWHERE {
            return;
        }
        self.places[id as usize] = NOWHERE;
        self.heap.swap_remove(place as usize);
        if (place as usize) < self.heap.len() {
            self.settle(place as usize);
        }
    }

    /// Moves the entry at `place` up or down to where it belongs.
    fn settle(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 && entry.0 < self.heap[(place - 1) / ARITY].0 {
            place = self.shift((place - 1) / ARITY, place);
        }
        while let Some(child) = self.earliest_child(place).filter(|child| self.heap[*child].0 < entry.0) {
            place = self.shift(child, place);
        }
        self.heap[place] = entry;
        self.places[entry.1 as usize] = place as u32;
    }

    /// Moves the entry at `from` into `to`, and returns the place that this freed.
    fn shift(&mut self, from: usize, to: usize) -> usize {
        let entry = self.heap[from];
        self.heap[to] = entry;
        self.places[entry.1 as usize] = to as u32;
        from
    }

    fn earliest_child(&self, place: usize) -> Option<usize> {
        let first = place * ARITY + 1;
        (first..(first + ARITY).min(self.heap.len())).min_by_key(|child| self.heap[*child].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    /// A small generator: the test needs variety, not quality.
    fn draws() -> impl FnMut(u64) -> u64 {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        }
    }

    #[test]
    fn whatever_is_set_moved_and_cleared_the_first_is_the_earliest() {
        let mut draw = draws();
        let (mut timers, mut model) = (Timers::default(), BTreeMap::new());
        for _ in 0..20_000 {
            let id = draw(200) as u32;
            if draw(3) == 0 {
                timers.clear(id);
                model.remove(&id);
            } else {
                let at = Nanos(draw(1_000));
                timers.set(id, at);
                model.insert(id, at);
            }
            assert_eq!(timers.first().map(|(at, _)| at), model.values().min().copied());
            assert!(timers.first().is_none_or(|(at, id)| model[&id] == at));
            assert_eq!(timers.at(id), model.get(&id).copied());
            let is_below = |place: usize| timers.heap[(place - 1) / ARITY].0 <= timers.heap[place].0;
            assert!((1..timers.heap.len()).all(is_below));
        }
    }

    #[test]
    fn it_holds_one_entry_per_timer_however_often_it_moves() {
        let mut timers = Timers::default();
        for at in 0..1_000 {
            timers.set(at as u32 % 4, Nanos(at));
        }
        assert_eq!(timers.heap.len(), 4);
    }
}
