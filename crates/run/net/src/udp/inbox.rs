//! The receiving half of a socket.

use std::io;
use std::os::fd::BorrowedFd;

use sluice_netem::{DelayQueue, DelayedBytes};
use sluice_netem::{FaultCounts, FaultPlan, Faults};
use sluice_wire::{Endpoint, Nanos};

use super::ring::{BATCH, ReceiveRing};
use crate::clock::Clock;

/// How many overtaken packets a socket holds.
pub(super) const HELD_MAX: usize = 4_096;

/// A received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    pub from: Endpoint,
    pub bytes: &'a [u8],
    /// When the datagram arrived: the kernel's stamp, or the time of the receive call if the socket takes
    /// no stamps.
    pub received: Nanos,
}

/// The receiving half of a socket: the datagrams of the last batch.
pub struct Inbox {
    ring: ReceiveRing,
    ready: Vec<Ready>,
    clock: Clock,
    taken: Nanos,
    /// Nothing in the batch can have come earlier: the socket was empty at that time.
    earliest: Nanos,
    /// Whether the last batch emptied the socket.
    is_drained: bool,
    faults: Option<Faults>,
    held: DelayQueue<(Endpoint, Nanos)>,
    received: u64,
    oversized: u64,
    overrun: u64,
}

#[derive(Clone, Copy)]
enum Ready {
    Ring(u8),
    Held { cell: DelayedBytes, from: Endpoint, received: Nanos },
}

impl Inbox {
    /// An inbox for datagrams of at most `datagram_max` bytes, `batch` per system call.
    pub(super) fn new((datagram_max, batch): (usize, usize), stamps: bool, faults: &FaultPlan) -> Self {
        Self {
            ring: ReceiveRing::new(datagram_max, batch, stamps),
            ready: Vec::with_capacity(2 * BATCH),
            clock: Clock::start(),
            taken: Nanos(0),
            earliest: Nanos(0),
            is_drained: false,
            faults: faults.receiving(),
            held: DelayQueue::new(HELD_MAX),
            received: 0,
            oversized: 0,
            overrun: 0,
        }
    }

    /// The number of datagrams in the last batch.
    #[inline]
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Whether the last batch is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// When the last batch was asked for. A datagram that came since counts as received then.
    #[inline]
    pub fn asked_at(&self) -> Nanos {
        self.taken
    }

    /// A datagram of the last batch.
    ///
    /// # Panics
    /// If the index is out of range.
    #[inline]
    pub fn datagram(&self, index: usize) -> Datagram<'_> {
        let (from, bytes) = self.unstamped(index);
        Datagram { from, bytes, received: self.received_at(index) }
    }

    /// A datagram of the last batch without its arrival time.
    ///
    /// # Panics
    /// If the index is out of range.
    #[inline]
    pub fn unstamped(&self, index: usize) -> (Endpoint, &[u8]) {
        match self.ready[index] {
            Ready::Ring(slot) => (self.ring.from(slot as usize), self.ring.bytes(slot as usize)),
            Ready::Held { cell, from, .. } => (from, self.held.bytes(cell)),
        }
    }

    /// When a datagram of the last batch arrived: [`Datagram::received`].
    ///
    /// # Panics
    /// If the index is out of range.
    #[inline]
    pub fn received_at(&self, index: usize) -> Nanos {
        match self.ready[index] {
            Ready::Ring(slot) => {
                let stamp = self.ring.stamp(slot as usize);
                let span = (self.earliest, self.taken);
                stamp.map_or(self.taken, |stamp| self.clock.from_realtime(stamp, span))
            }
            Ready::Held { received, .. } => received,
        }
    }

    /// The datagrams of the last batch, in order.
    #[inline]
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        (0..self.len()).map(|index| self.datagram(index))
    }

    /// Receives the next batch, without waiting.
    pub(super) fn take(&mut self, fd: BorrowedFd<'_>, now: Nanos) -> io::Result<usize> {
        self.release();
        if std::mem::take(&mut self.is_drained) {
            self.earliest = self.taken;
        }
        self.taken = now;
        let taken = self.ring.receive(fd)?;
        self.is_drained = taken < self.ring.batch();
        if taken > 0 {
            self.keep_clock(now, taken - 1);
        }
        for slot in 0..taken {
            if self.ring.is_cut(slot) {
                self.oversized += 1;
            } else if self.faults.is_some() {
                self.apply_fault(slot, now);
            } else {
                self.ready.push(Ready::Ring(slot as u8));
            }
        }
        self.received += taken as u64;
        while self.ready.len() < 2 * BATCH
            && let Some(due) = self.held.pop_due(now)
        {
            self.ready.push(Ready::Held { cell: due.cell, from: due.item.0, received: due.item.1 });
        }
        Ok(self.ready.len())
    }

    /// Receives the next batch as if all of it arrived now.
    pub(super) fn take_at(&mut self, fd: BorrowedFd<'_>, now: Nanos) -> io::Result<usize> {
        (self.taken, self.is_drained) = (now, true);
        self.take(fd, now)
    }

    /// Brings the clock up to date; at once if the batch's last stamp is impossible.
    fn keep_clock(&mut self, now: Nanos, last: usize) {
        let span = (self.earliest, now);
        let step = self.clock.keep(now);
        let step = step.or_else(|| self.clock.check_stamp(self.ring.stamp(last)?, span));
        if let Some(by_ns) = step {
            let by_s = by_ns as f64 / 1e9;
            sluice_log::log!(ClockSet, by_s, "this machine's wall clock was set by {by_s:+.3} s");
        }
    }

    /// When the next overtaken datagram is due.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.held.next_due()
    }

    pub(super) const fn received(&self) -> u64 {
        self.received
    }

    pub(super) const fn oversized(&self) -> u64 {
        self.oversized
    }

    pub(super) const fn overrun(&self) -> u64 {
        self.overrun
    }

    pub(super) fn faults(&self) -> FaultCounts {
        self.faults.as_ref().map(Faults::counts).unwrap_or_default()
    }

    fn apply_fault(&mut self, slot: usize, now: Nanos) {
        let Some(fate) = self.faults.as_mut().map(Faults::fate) else { return };
        for _ in 0..fate.copies {
            let Some(late) = fate.held else {
                self.ready.push(Ready::Ring(slot as u8));
                continue;
            };
            let due = now + late;
            if !self.held.put(due, (self.ring.from(slot), due), self.ring.bytes(slot)) {
                self.overrun += 1;
            }
        }
    }

    fn release(&mut self) {
        for ready in self.ready.drain(..) {
            if let Ready::Held { cell, .. } = ready {
                self.held.release(cell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::fd::AsFd;

    use super::*;
    use crate::sys;

    /// The wall clock was set back by an hour, and has not been compared since.
    #[test]
    fn nothing_came_before_the_socket_was_empty_last_whatever_its_stamp_says() {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback has free ports");
        sys::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1).expect("an option");
        let mut inbox = Inbox::new((64, 4), true, &FaultPlan::none());
        let empty = sys::monotonic();
        inbox.clock = Clock::wrong_by(Nanos::from_millis(3_600_000));
        assert_eq!(inbox.take(socket.as_fd(), empty).expect("it works"), 0);
        socket.send_to(&[1], socket.local_addr().expect("it is bound")).expect("it works");
        let mut now = sys::monotonic();
        while inbox.take(socket.as_fd(), now).expect("it works") == 0 {
            now = sys::monotonic();
            assert!(now.since(empty) < Nanos::from_millis(60_000), "nothing came");
        }
        let received = inbox.datagram(0).received;
        assert!(empty <= received && received <= now, "{empty:?} to {received:?} to {now:?}");
    }
}
