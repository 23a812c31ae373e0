//! Rings of waiting entries. A slice has one ring for each kind of entry that it tells apart; the rings of
//! all slices lie one behind the other.

use sluice_wire::SliceId;
use sluice_wire::tables::RingCounts;

use super::stages::ring_counts;
use crate::config::Config;
use crate::entry::cell;
use crate::pipeline::{Column, Layout, Pass, Register, Ring};

/// The rings of all slices of one sort: parked tokens, or waiting tasks.
#[derive(Debug)]
pub(super) struct RingSet<T> {
    head: Register<u32>,
    tail: Register<u32>,
    ring: Ring<T>,
    each: u8,
    /// Cells of each ring.
    cells: u32,
}

/// The names of the rings' arrays on the chip, and how many rings there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sort {
    pub(super) head: &'static str,
    pub(super) tail: &'static str,
    pub(super) ring: &'static str,
    /// Rings of a slice: 1, 2 or 4.
    pub(super) each: u8,
    /// Cells of each ring: a power of two.
    pub(super) cells: u32,
}

impl<T: Copy + Default> RingSet<T> {
    /// The heads and tails stand in stage `heads`, the entries as `columns` say.
    pub(super) fn new(
        layout: &mut Layout,
        config: &Config,
        sort: Sort,
        heads: u8,
        columns: &[Column],
    ) -> Self {
        let rings = config.slices as usize * sort.each as usize;
        let pointer = |layout: &mut Layout, name| {
            Register::new(layout, name, heads, 32, rings, config.counters_start.0)
        };
        let (head, tail) = (pointer(layout, sort.head), pointer(layout, sort.tail));
        let ring = Ring::new(layout, sort.ring, columns, rings * sort.cells as usize, T::default());
        Self { head, tail, ring, each: sort.each, cells: sort.cells }
    }

    /// How many rings each slice has.
    #[inline]
    pub(super) const fn each(&self) -> u8 {
        self.each
    }

    /// The index of a slice's ring among all rings.
    #[inline]
    pub(super) const fn of(&self, slice: SliceId, ring: u8) -> usize {
        slice.0 as usize * self.each as usize + ring as usize
    }

    /// Takes the next ticket at the end of a ring.
    #[inline(always)]
    pub(super) fn join(&mut self, pass: &mut Pass, ring: usize) -> u32 {
        self.tail.update(pass, ring, |tail| tail.wrapping_add(1))
    }

    #[inline(always)]
    pub(super) fn write(&mut self, pass: &mut Pass, ring: usize, ticket: u32, entry: T) {
        self.ring.write(pass, cell(ring, ticket, self.cells), entry);
    }

    /// Takes the oldest entry of a ring that has one, and its ticket.
    #[inline(always)]
    pub(super) fn pop(&mut self, pass: &mut Pass, ring: usize) -> (T, u32) {
        let ticket = self.head.update(pass, ring, |head| head.wrapping_add(1));
        (self.ring.read(pass, cell(ring, ticket, self.cells)), ticket)
    }

    /// How many entries ever entered each ring of a slice, and how many left it.
    pub(super) fn counts(&self, slice: usize) -> (RingCounts, RingCounts) {
        let of = |pointer| ring_counts(pointer, slice, self.each);
        (of(&self.tail), of(&self.head))
    }

    /// A slice's entries, ring by ring, the oldest first.
    pub(super) fn listed(&self, slice: SliceId) -> impl Iterator<Item = T> {
        (0..self.each).map(move |ring| self.of(slice, ring)).flat_map(move |ring| {
            let (head, tail) = (self.head.peek(ring), self.tail.peek(ring));
            let lie = tail.wrapping_sub(head).min(self.cells);
            let tickets = (0..lie).map(move |step| head.wrapping_add(step));
            tickets.map(move |ticket| self.ring.peek(cell(ring, ticket, self.cells)))
        })
    }

    /// Names an entry among all entries of its slice. The names of the slice's rings interleave, so a ring
    /// reuses a name only after as many entries as there are names for it.
    #[inline(always)]
    pub(super) const fn name(&self, ring: usize, ticket: u32) -> u32 {
        let turn = ring as u32 & (self.each - 1) as u32;
        ticket << self.each.trailing_zeros() | turn
    }
}
