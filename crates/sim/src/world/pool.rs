//! Things that come and go, each under a number while it is there.

use std::marker::PhantomData;

/// Names a thing in a [`Reused`].
#[derive(Debug)]
pub(crate) struct Id<T>(u32, PhantomData<T>);

impl<T> Clone for Id<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Id<T> {}

/// Room that is used again, so that it grows to what was there at most.
#[derive(Debug)]
pub(crate) struct Reused<T> {
    things: Vec<T>,
    vacant: Vec<u32>,
}

impl<T> Default for Reused<T> {
    fn default() -> Self {
        Self { things: Vec::new(), vacant: Vec::new() }
    }
}

impl<T: Copy> Reused<T> {
    #[inline]
    pub(crate) fn keep(&mut self, thing: &T) -> Id<T> {
        if let Some(place) = self.vacant.pop() {
            self.things[place as usize] = *thing;
            return Id(place, PhantomData);
        }
        self.things.push(*thing);
        Id(self.things.len() as u32 - 1, PhantomData)
    }

    #[inline]
    pub(crate) fn get(&self, id: Id<T>) -> &T {
        &self.things[id.0 as usize]
    }

    /// Its place is free.
    #[inline]
    pub(crate) fn free(&mut self, id: Id<T>) {
        self.vacant.push(id.0);
    }
}
