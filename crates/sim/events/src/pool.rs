//! Things that come and go, each under a number while it is there.

use std::marker::PhantomData;

/// Names a thing in a [`Reused`].
#[derive(Debug)]
pub struct Id<T>(u32, PhantomData<T>);

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

impl<T> Id<T> {
    /// Its number, for who passes it on where names have no kinds.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// What [`Id::number`] gave.
    pub const fn of(number: u32) -> Self {
        Self(number, PhantomData)
    }
}

/// Room that is used again, so that it grows to what was there at most.
#[derive(Debug)]
pub struct Reused<T> {
    things: Vec<T>,
    vacant: Vec<u32>,
    filler: T,
}

impl<T: Copy> Reused<T> {
    /// No room yet; what is made first is filled with this.
    pub fn new(filler: T) -> Self {
        Self { things: Vec::new(), vacant: Vec::new(), filler }
    }

    /// A thing comes from elsewhere.
    #[inline]
    pub fn keep(&mut self, thing: &T) -> Id<T> {
        self.make(|place| *place = *thing)
    }

    /// A thing is made where it will lie. One that is made elsewhere and moved there is copied in words that
    /// nobody has written as a whole, and a processor waits for those.
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

    /// A thing that is there.
    #[inline]
    pub fn get(&self, id: Id<T>) -> &T {
        &self.things[id.0 as usize]
    }

    /// A thing that is there, to change it.
    #[inline]
    pub fn get_mut(&mut self, id: Id<T>) -> &mut T {
        &mut self.things[id.0 as usize]
    }

    /// It leaves.
    #[inline]
    pub fn take(&mut self, id: Id<T>) -> T {
        self.free(id);
        self.things[id.0 as usize]
    }

    /// Its place is free.
    #[inline]
    pub fn free(&mut self, id: Id<T>) {
        self.vacant.push(id.0);
    }
}
