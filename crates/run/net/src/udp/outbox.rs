//! The sending half of a socket.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use sluice_netem::DelayQueue;
use sluice_netem::{FaultCounts, FaultPlan, Faults};
use sluice_wire::{Endpoint, Nanos};

use super::inbox::HELD_MAX;
use super::lateness::Lateness;
use super::name::Family;
use super::ring::{SendRing, next_error};
use crate::sys;

/// How many refusing peers are remembered until they are asked for.
const REFUSED_MAX: usize = 64;
/// How often a datagram is tried if the kernel reports errors of older datagrams instead.
const TRIES_MAX: usize = 4;

/// The sending half of a socket: datagrams are queued until the next flush.
pub struct Outbox {
    fd: Arc<OwnedFd>,
    family: Family,
    ring: SendRing,
    faults: Option<Faults>,
    held: DelayQueue<Endpoint>,
    refused: Vec<Endpoint>,
    sent: u64,
    failed: u64,
    overrun: u64,
    late: Lateness,
}

impl Outbox {
    /// An outbox for datagrams of at most `datagram_max` bytes, `batch` per system call.
    pub(super) fn new(
        fd: Arc<OwnedFd>,
        family: Family,
        (datagram_max, batch): (usize, usize),
        faults: &FaultPlan,
    ) -> Self {
        Self {
            fd,
            family,
            ring: SendRing::new(datagram_max, batch),
            faults: faults.sending(),
            held: DelayQueue::new(HELD_MAX),
            refused: Vec::new(),
            sent: 0,
            failed: 0,
            overrun: 0,
            late: Lateness::default(),
        }
    }

    /// Queues a datagram that `write` writes. `write` returns its length; 0 sends nothing.
    #[inline]
    pub fn send_with(&mut self, to: Endpoint, write: impl FnOnce(&mut [u8]) -> usize) {
        if self.ring.is_full() {
            self.flush();
        }
        let length = write(self.ring.next());
        if length == 0 {
            return;
        }
        if self.faults.is_some() {
            self.apply_fault(to, length);
        } else {
            self.push(to, length);
        }
    }

    /// Queues a copy of `bytes`, or nothing if they are longer than this socket's datagrams may be.
    pub fn send(&mut self, to: Endpoint, bytes: &[u8]) {
        self.send_with(to, |out| {
            let Some(out) = out.get_mut(..bytes.len()) else { return 0 };
            out.copy_from_slice(bytes);
            bytes.len()
        });
    }

    /// Like [`Outbox::send_with`], but the datagram leaves at `due`, for testbed delays: it goes with the
    /// first flush or receive after that time.
    pub fn send_at(&mut self, due: Nanos, to: Endpoint, write: impl FnOnce(&mut [u8]) -> usize) {
        if self.ring.is_full() {
            self.flush();
        }
        let length = write(self.ring.next());
        let fate = self.faults.as_mut().map(Faults::fate);
        let copies = if length == 0 { 0 } else { fate.map_or(1, |fate| fate.copies) };
        let late = fate.and_then(|fate| fate.held).unwrap_or_default();
        for _ in 0..copies {
            self.hold(due + late, to, length);
        }
    }

    /// Queues a datagram for the next flush; the kernel's fair queue sends it at `leaves`. Injects no
    /// faults. The socket must support departure times.
    pub(crate) fn send_leaving(
        &mut self,
        leaves: Nanos,
        to: Endpoint,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) {
        if self.ring.is_full() {
            self.flush();
        }
        let length = write(self.ring.next());
        if length > 0 {
            self.ring.leaves(leaves);
            self.push(to, length);
        }
    }

    /// Sends what is queued.
    pub fn flush(&mut self) {
        let mut tries = 0;
        while !self.ring.is_empty() {
            let Err(why) = self.ring.send(self.fd.as_fd()) else { break };
            tries += 1;
            // If an error of an older datagram is pending, the kernel reports it instead of sending this
            // one.
            let older = sys::is_of_a_peer(&why) && self.take_errors() > 0;
            if !older || tries == TRIES_MAX {
                self.failed += 1;
                self.sent = self.sent.saturating_sub(1);
                self.ring.skip();
                tries = 0;
            }
        }
    }

    /// The peers at which no socket listened when a datagram was sent, since the last call. Only for
    /// sockets that report refusals.
    pub fn refused(&mut self) -> impl Iterator<Item = Endpoint> + '_ {
        self.refused.drain(..)
    }

    /// Queues the datagrams that were held until `now`.
    pub(super) fn release(&mut self, now: Nanos) {
        while let Some(due) = self.held.pop_due(now) {
            if self.ring.is_full() {
                self.flush();
            }
            let bytes = self.held.bytes(due.cell);
            let length = bytes.len();
            self.ring.next()[..length].copy_from_slice(bytes);
            self.held.release(due.cell);
            self.late.add(now.since(due.at));
            self.push(due.item, length);
        }
    }

    /// When the next held datagram leaves.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.held.next_due()
    }

    /// Reads the socket's error queue. Returns how many errors it held.
    pub(super) fn take_errors(&mut self) -> usize {
        let mut taken = 0;
        while let Some((to, errno)) = next_error(self.fd.as_fd()) {
            taken += 1;
            if errno == libc::ECONNREFUSED && self.refused.len() < REFUSED_MAX {
                self.refused.push(to);
            }
        }
        taken
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(super) const fn sent(&self) -> u64 {
        self.sent
    }

    pub(super) const fn failed(&self) -> u64 {
        self.failed
    }

    pub(super) const fn overrun(&self) -> u64 {
        self.overrun
    }

    pub(super) const fn late(&self) -> Lateness {
        self.late
    }

    pub(super) fn faults(&self) -> FaultCounts {
        self.faults.as_ref().map(Faults::counts).unwrap_or_default()
    }

    #[inline]
    fn push(&mut self, to: Endpoint, length: usize) {
        if self.ring.push(to, self.family, length) {
            self.sent += 1;
        } else {
            self.failed += 1;
        }
    }

    fn hold(&mut self, due: Nanos, to: Endpoint, length: usize) {
        if !self.held.put(due, to, &self.ring.next()[..length]) {
            self.overrun += 1;
        }
    }

    /// Applies the injected fault to the datagram in the next slot.
    fn apply_fault(&mut self, to: Endpoint, length: usize) {
        let Some(fate) = self.faults.as_mut().map(Faults::fate) else { return };
        if let Some(late) = fate.held {
            let due = sys::monotonic() + late;
            (0..fate.copies).for_each(|_| self.hold(due, to, length));
            return;
        }
        if fate.copies == 2 {
            self.hold(Nanos(0), to, length);
        }
        if fate.copies > 0 {
            self.push(to, length);
        }
    }
}
