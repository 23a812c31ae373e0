//! Where requests wait on the NIC: one FIFO for each service, all in one memory (RingLeader §6: 800 KB).
//!
//! The memory is counted in words of 64 bytes, the width of the paper's data path, and a request takes
//! whole words. So there are never more requests than words, and nothing is allocated after construction.
//! Left out: the bytes themselves, which stay with the driver.

use alloc::vec;
use alloc::vec::Vec;

use sluice_wire::Nanos;

use super::error::OrchestratorSetupError;
use super::ids::{RequestHandle, SERVICES_MAX, ServiceId};

pub(super) const WORD_BYTES: u32 = 64;
const WORDS_MAX: u32 = 1 << 20;
/// No slot.
const NIL: u32 = u32::MAX;

/// A request that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffered {
    pub(super) handle: RequestHandle,
    pub(super) bytes: u32,
    pub(super) arrived: Nanos,
}

#[derive(Clone, Debug)]
pub(super) struct RequestBuffer {
    slots: Vec<Slot>,
    free: u32,
    fifos: [Fifo; SERVICES_MAX],
    words: u32,
    words_free: u32,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    request: Buffered,
    next: u32,
    previous: u32,
}

#[derive(Clone, Copy, Debug)]
struct Fifo {
    first: u32,
    last: u32,
    length: u32,
    words: u32,
}

const EMPTY: Fifo = Fifo { first: NIL, last: NIL, length: 0, words: 0 };

impl RequestBuffer {
    pub(super) fn new(bytes: u32) -> Result<Self, OrchestratorSetupError> {
        let words = bytes / WORD_BYTES;
        if words == 0 || words > WORDS_MAX {
            return Err(OrchestratorSetupError::Buffer(bytes));
        }
        let nothing = Buffered { handle: RequestHandle(0), bytes: 0, arrived: Nanos(0) };
        let mut slots = vec![Slot { request: nothing, next: NIL, previous: NIL }; words as usize];
        for (slot, next) in slots.iter_mut().zip(1..words) {
            slot.next = next;
        }
        Ok(Self { slots, free: 0, fifos: [EMPTY; SERVICES_MAX], words, words_free: words })
    }

    pub(super) fn bytes(&self) -> u32 {
        self.words * WORD_BYTES
    }

    pub(super) fn words_free(&self) -> u32 {
        self.words_free
    }

    /// How many requests of a service wait.
    #[inline]
    pub(super) fn length(&self, service: ServiceId) -> u32 {
        self.fifos[service.index()].length
    }

    /// How many words a service's requests take.
    pub(super) fn words(&self, service: ServiceId) -> u32 {
        self.fifos[service.index()].words
    }

    /// The request that has waited longest.
    #[inline]
    pub(super) fn first(&self, service: ServiceId) -> Option<&Buffered> {
        self.slots.get(self.fifos[service.index()].first as usize).map(|slot| &slot.request)
    }

    /// Appends a request; the caller has checked that there is room.
    #[inline]
    pub(super) fn push(&mut self, service: ServiceId, request: Buffered) {
        let words = words_of(request.bytes);
        debug_assert!(words <= self.words_free, "a request that does not fit");
        let (at, fifo) = (self.free, &mut self.fifos[service.index()]);
        self.free = self.slots[at as usize].next;
        self.slots[at as usize] = Slot { request, next: NIL, previous: fifo.last };
        match self.slots.get_mut(fifo.last as usize) {
            Some(last) => last.next = at,
            None => fifo.first = at,
        }
        *fifo = Fifo { last: at, length: fifo.length + 1, words: fifo.words + words, ..*fifo };
        self.words_free -= words;
    }

    /// Takes the first.
    #[inline]
    pub(super) fn pop(&mut self, service: ServiceId) -> Option<Buffered> {
        let fifo = &mut self.fifos[service.index()];
        let at = fifo.first;
        let Slot { request, next, .. } = *self.slots.get(at as usize)?;
        fifo.first = next;
        match self.slots.get_mut(next as usize) {
            Some(first) => first.previous = NIL,
            None => fifo.last = NIL,
        }
        self.release(service, at);
        Some(request)
    }

    /// Removes the newest request, so that the caller drops it.
    pub(super) fn pop_last(&mut self, service: ServiceId) -> Option<Buffered> {
        let fifo = &mut self.fifos[service.index()];
        let at = fifo.last;
        let Slot { request, previous, .. } = *self.slots.get(at as usize)?;
        fifo.last = previous;
        match self.slots.get_mut(previous as usize) {
            Some(last) => last.next = NIL,
            None => fifo.first = NIL,
        }
        self.release(service, at);
        Some(request)
    }

    fn release(&mut self, service: ServiceId, at: u32) {
        let words = words_of(self.slots[at as usize].request.bytes);
        let fifo = &mut self.fifos[service.index()];
        fifo.length -= 1;
        fifo.words -= words;
        self.words_free += words;
        self.slots[at as usize].next = self.free;
        self.free = at;
    }
}

/// The words that a request takes: one at least.
pub(super) fn words_of(bytes: u32) -> u32 {
    bytes.div_ceil(WORD_BYTES).max(1)
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_fifo_gives_back_in_order_what_it_took(
            steps in proptest::collection::vec((0_usize..3, 0_usize..4, 0_u32..300), 1..400)
        ) {
            let mut buffer = RequestBuffer::new(40 * WORD_BYTES).unwrap();
            let mut model = vec![VecDeque::new(); 4];
            for (n, (what, service, bytes)) in steps.into_iter().enumerate() {
                let id = ServiceId::new(service).unwrap();
                let line = &mut model[service];
                match what {
                    0 if words_of(bytes) <= buffer.words_free() => {
                        let handle = RequestHandle(n as u64);
                        let request = Buffered { handle, bytes, arrived: Nanos(n as u64) };
                        buffer.push(id, request);
                        line.push_back(request);
                    }
                    1 => prop_assert_eq!(buffer.pop(id), line.pop_front()),
                    _ => prop_assert_eq!(buffer.pop_last(id), line.pop_back()),
                }
                prop_assert_eq!(buffer.length(id) as usize, line.len());
                prop_assert_eq!(buffer.first(id), line.front());
                let taken: u32 = model.iter().flatten().map(|request| words_of(request.bytes)).sum();
                prop_assert_eq!(buffer.words_free(), 40 - taken);
            }
        }
    }
}
