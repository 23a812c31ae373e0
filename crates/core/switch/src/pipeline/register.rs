//! Memory that a packet may touch once a pass.

use alloc::boxed::Box;
use alloc::vec;

use super::{Column, Layout, Pass};

/// An array of words in one stage. A word that no array of the chip holds is [`split`](Self::split).
#[derive(Debug)]
pub struct Register<T> {
    cells: Box<[T]>,
    name: &'static str,
    stage: u8,
    id: u8,
}

impl<T: Copy> Register<T> {
    /// `cells` words of `bits` bits in `stage`, all `initial`.
    pub fn new(
        layout: &mut Layout,
        name: &'static str,
        stage: u8,
        bits: u32,
        cells: usize,
        initial: T,
    ) -> Self {
        Self::split(layout, name, &[Column { name, stage, bits }], cells, initial)
    }

    /// `cells` words that the chip holds as `columns`. Each column decides by what the columns before it
    /// found, so the word is known behind the last one.
    pub fn split(
        layout: &mut Layout,
        name: &'static str,
        columns: &[Column],
        cells: usize,
        initial: T,
    ) -> Self {
        let id = layout.columns(columns, cells);
        let stage = columns.iter().map(|column| column.stage).max().unwrap_or(0);
        Self { cells: vec![initial; cells].into_boxed_slice(), name, stage, id }
    }

    /// Compares one word; writes what `then` or `otherwise` makes of it; returns the old word.
    #[inline]
    pub fn branch(
        &mut self,
        pass: &mut Pass,
        index: usize,
        when: impl FnOnce(T) -> bool,
        then: impl FnOnce(T) -> T,
        otherwise: impl FnOnce(T) -> T,
    ) -> T {
        pass.touch(self.id, self.name, self.stage);
        let cell = &mut self.cells[index];
        let old = *cell;
        *cell = if when(old) { then(old) } else { otherwise(old) };
        old
    }

    /// Writes what `with` makes of one word; returns the old word.
    #[inline]
    pub fn update(&mut self, pass: &mut Pass, index: usize, with: impl FnOnce(T) -> T) -> T {
        self.branch(pass, index, |_| true, with, |word| word)
    }

    /// Reads one word.
    #[inline]
    pub fn read(&mut self, pass: &mut Pass, index: usize) -> T {
        self.update(pass, index, |word| word)
    }

    /// Writes one word.
    #[inline]
    pub fn write(&mut self, pass: &mut Pass, index: usize, word: T) {
        self.update(pass, index, |_| word);
    }

    /// Reads one word outside any pass, as the controller may.
    pub fn peek(&self, index: usize) -> T {
        self.cells[index]
    }

    /// Writes one word outside any pass, as the controller may.
    pub fn poke(&mut self, index: usize, word: T) {
        self.cells[index] = word;
    }

    /// Writes `len` words outside any pass, as the controller may.
    pub fn fill(&mut self, from: usize, len: usize, word: T) {
        self.cells[from..from + len].fill(word);
    }
}

/// The entries of a queue, striped over stages: each [`Column`] is an array of its own on the chip. All
/// columns have the same index, known before the first, so a packet reads or writes one row a pass.
#[derive(Debug)]
pub struct Ring<T> {
    rows: Box<[T]>,
    name: &'static str,
    stage: u8,
    id: u8,
}

impl<T: Copy> Ring<T> {
    /// `rows` entries that the chip holds as `columns`.
    pub fn new(layout: &mut Layout, name: &'static str, columns: &[Column], rows: usize, initial: T) -> Self {
        let id = layout.columns(columns, rows);
        let stage = columns.iter().map(|column| column.stage).min().unwrap_or(0);
        Self { rows: vec![initial; rows].into_boxed_slice(), name, stage, id }
    }

    /// Reads one row.
    #[inline]
    pub fn read(&self, pass: &mut Pass, index: usize) -> T {
        pass.touch(self.id, self.name, self.stage);
        self.rows[index]
    }

    /// Writes one row.
    #[inline]
    pub fn write(&mut self, pass: &mut Pass, index: usize, row: T) {
        pass.touch(self.id, self.name, self.stage);
        self.rows[index] = row;
    }

    /// Compares one row; writes what `then` makes of it, or leaves it; returns the old row. On the chip
    /// each column decides by the word that an earlier column read.
    #[inline]
    pub fn branch(
        &mut self,
        pass: &mut Pass,
        index: usize,
        when: impl FnOnce(T) -> bool,
        then: impl FnOnce(T) -> T,
    ) -> T {
        pass.touch(self.id, self.name, self.stage);
        let row = &mut self.rows[index];
        let old = *row;
        if when(old) {
            *row = then(old);
        }
        old
    }

    /// Reads one row outside of any pass.
    pub fn peek(&self, index: usize) -> T {
        self.rows[index]
    }
}
