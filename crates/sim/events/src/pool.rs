//! A pool of things, each with an id while it exists.

use std::marker::PhantomData;

/// The id of a thing in a [`Reused`].
#[derive(Debug)]
pub struct Id<T>(u32, PhantomData<T>);

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> Id<T> {
    /// The number of the id, for callers that pass it on without its type.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The id with this number, which [`Id::number`] returned.
    pub const fn of(number: u32) -> Self {
        Self(number, PhantomData)
    }
}

/// A pool whose cells are used again, so that it grows to the largest number of things that existed at
/// once.
#[derive(Debug)]
pub struct Reused<T> {
    things: Vec<T>,
    vacant: Vec<u32>,
    filler: T,
}

impl<T: Copy> Reused<T> {
    /// An empty pool. New cells are filled with `filler`.
    pub fn new(filler: T) -> Self {
        Self { things: Vec::new(), vacant: Vec::new(), filler }
    }

    /// Copies a thing into the pool.
    #[inline]
    pub fn keep(&mut self, thing: &T) -> Id<T> {
        self.make(|place| *place = *thing)
    }

    /// Makes a thing in its cell. A thing that is made elsewhere and moved is copied in wider words than
    /// those that wrote it, and the processor stalls on such reads.
    #[inline]
    pub fn make(&mut self, make: impl FnOnce(&mut T)) -> Id<T> {
        let place = match self.vacant.pop() {
            Some(place) => place,
            None => self.grow(),
        };
        make(&mut self.things[place as usize]);
        Id(place, PhantomData)
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        self.things.push(self.filler);
        self.things.len() as u32 - 1
    }

    /// The thing with this id, which must exist.
    #[inline]
    pub fn get(&self, id: Id<T>) -> &T {
        &self.things[id.0 as usize]
    }

    /// The thing with this id, which must exist, for changes.
    #[inline]
    pub fn get_mut(&mut self, id: Id<T>) -> &mut T {
        &mut self.things[id.0 as usize]
    }

    /// Takes a thing out of the pool.
    #[inline]
    pub fn take(&mut self, id: Id<T>) -> T {
        self.free(id);
        self.things[id.0 as usize]
    }

    /// Frees the cell of a thing.
    #[inline]
    pub fn free(&mut self, id: Id<T>) {
        self.vacant.push(id.0);
    }
}
