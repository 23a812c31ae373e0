//! The values in the program's maps, laid out as in `targets/ebpf/tables.h`.

use std::net::SocketAddr;

use sluice_switch::rain::{FIRST_WINDOW, UNMEASURED};
use sluice_wire::tables::{ClientRow, SliceRow, WorkerRow};
use sluice_wire::{
    ClientId, Endpoint, Generation, Incarnation, Key, Nanos, Serial, SliceId, TaskId, WorkerId,
};
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// An address and port, in network byte order.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct NetAddress {
    ip: [u8; 16],
    port: [u8; 2],
}

impl From<Endpoint> for NetAddress {
    fn from(at: Endpoint) -> Self {
        Self { ip: at.ip, port: at.port.to_be_bytes() }
    }
}

impl From<NetAddress> for Endpoint {
    fn from(at: NetAddress) -> Self {
        Self { ip: at.ip, port: u16::from_be_bytes(at.port) }
    }
}

/// The layout of the maps for a shape: a program can use pinned maps only if their layout is equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Layout {
    pub(super) version: u32,
    pub(super) shape: MapShape,
}

/// The sizes of the maps, as the program knows them: the constant `shape` of `tables.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct MapShape {
    pub(super) workers: u32,
    pub(super) clients: u32,
    pub(super) slices: u32,
    pub(super) types: u32,
    pub(super) tokens_per_slice: u32,
    pub(super) replay_cells: u32,
    /// The binary logarithm of the number of cells in a slice's ring.
    pub(super) ring_bits: u32,
    /// How many cells ahead of the newest entry must be free in a ring.
    pub(super) ahead: u32,
    /// Whether the time comes from [`Life`] instead of the kernel's clock.
    pub(super) test_mode: u32,
    pub(super) servers: u32,
    /// The first ticket of a waiting task.
    pub(super) tickets_start: u32,
}

/// `LAYOUT_VERSION` of `tables.h`.
pub(super) const LAYOUT_VERSION: u32 = 6;

#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Worker {
    there: u32,
    key: u32,
    generation: u32,
    slice: u16,
    open: u16,
    at: NetAddress,
    unused: [u8; 6],
    life: u64,
}

impl Worker {
    pub(super) fn new(row: &WorkerRow) -> Self {
        Self {
            there: 1,
            key: row.key.0,
            generation: row.generation.0,
            slice: row.slice.0,
            open: row.open.into(),
            at: row.at.into(),
            unused: [0; 6],
            life: row.life,
        }
    }

    pub(super) fn row(&self) -> Option<WorkerRow> {
        (self.there != 0).then_some(WorkerRow {
            key: Key(self.key),
            at: self.at.into(),
            slice: SliceId(self.slice),
            generation: Generation(self.generation),
            open: self.open != 0,
            life: self.life,
            kind: 0,
            workers: 0,
        })
    }
}

#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Client {
    there: u32,
    key: u32,
    at: NetAddress,
    unused: [u8; 6],
    incarnation: u64,
}

impl Client {
    pub(super) fn new(row: &ClientRow) -> Self {
        Self { there: 1, key: row.key.0, at: row.at.into(), unused: [0; 6], incarnation: row.incarnation.0 }
    }

    pub(super) fn row(&self) -> Option<ClientRow> {
        (self.there != 0).then_some(ClientRow {
            key: Key(self.key),
            at: self.at.into(),
            incarnation: Incarnation(self.incarnation),
        })
    }
}

#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Slice {
    open: u32,
    limit: u32,
    retry_after_ns: u64,
    target_ns: u64,
    expected: u32,
    unused: u32,
}

impl From<SliceRow> for Slice {
    fn from(row: SliceRow) -> Self {
        Self {
            open: row.open.into(),
            limit: row.limit,
            retry_after_ns: row.retry_after.0,
            target_ns: row.target.0,
            expected: row.expected,
            unused: 0,
        }
    }
}

impl From<Slice> for SliceRow {
    fn from(row: Slice) -> Self {
        let (open, retry_after) = (row.open != 0, Nanos(row.retry_after_ns));
        let (target, expected) = (Nanos(row.target_ns), row.expected);
        Self { open, limit: row.limit, retry_after, target, expected, ..Self::default() }
    }
}

/// Two copies of a row, and which of them is valid; for a worker, also the generation that popped tokens
/// must have.
#[derive(Clone, Copy, Debug, Default, FromBytes)]
#[repr(C)]
pub(super) struct Rows<R> {
    pub(super) current: u32,
    pub(super) gen_out: u32,
    copies: [R; 2],
}

impl<R: Copy> Rows<R> {
    /// The size of the part before the copies.
    pub(super) const HEAD: usize = 8;

    /// The valid copy.
    pub(super) const fn holds(&self) -> R {
        self.copies[(self.current & 1) as usize]
    }
}

/// How many tokens were granted to a worker, and how many tasks were sent to it. The worker's path follows
/// in the map; only the program uses it.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct WorkerCounters {
    pub(super) seen: u32,
    pub(super) seen_out: u32,
    pub(super) sent: u32,
    pub(super) unused: u32,
}

impl WorkerCounters {
    /// The counters of a worker whose sequence numbers start at `at`.
    pub(super) const fn starting(at: u32) -> Self {
        Self { seen: at, seen_out: at, sent: at, unused: 0 }
    }
}

/// A slice's queue: how many tokens and tasks have come, how many cells of each quarter of its ring were
/// used up, and how many tasks had to wait.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Queue {
    tokens: u32,
    unused: u32,
    tasks: u32,
    /// How many tasks waited, above a bit that absorbs the carry of the field below.
    waits: u32,
    released: [u32; 4],
    pub(super) window: u64,
    /// How many tasks may wait by the slice's target, with a fraction.
    pub(super) limit: u32,
    pub(super) span: u32,
    /// How many tasks were refused because of that limit.
    pub(super) refused_busy: u64,
    unused_too: [u32; 2],
}

impl Queue {
    /// An empty queue whose ring has 2^`bits` cells and whose numbers start at `at`.
    pub(super) fn starting(at: u32, bits: u32) -> Self {
        let quarter = 1 << (bits - 2);
        let (laps, within) = (at >> bits, at & ((1 << bits) - 1));
        let released = |index: u32| laps * quarter + within.saturating_sub(index * quarter).min(quarter);
        let released = [0, 1, 2, 3].map(released);
        Self { tokens: at, tasks: at, released, limit: UNMEASURED, window: FIRST_WINDOW, ..Self::default() }
    }

    /// Parked tokens if positive, waiting tasks if negative.
    pub(super) const fn balance(&self) -> i32 {
        self.tokens.wrapping_sub(self.tasks) as i32
    }

    /// How many tokens came, and how many of them met a task; parked tokens lie between the two numbers.
    pub(super) const fn tokens(&self) -> [u32; 2] {
        [self.tokens, if self.balance() > 0 { self.tasks } else { self.tokens }]
    }

    /// How many tasks have met a token.
    pub(super) const fn tasks_out(&self) -> u32 {
        if self.balance() < 0 { self.tokens } else { self.tasks }
    }

    /// The numbers of waiting tasks and of parked tokens, oldest first.
    pub(super) fn waiting(&self) -> [Vec<u32>; 2] {
        let numbers = |from: u32, count: i32| {
            (0..count.max(0) as u32).map(move |step| from.wrapping_add(step)).collect()
        };
        [numbers(self.tokens, -self.balance()), numbers(self.tasks, self.balance())]
    }
}

/// A ring's cell, with the fields that a reader needs.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Cell {
    pub(super) word: u64,
    times: u64,
    incarnation_high: [u8; 4],
    incarnation_low: [u8; 4],
    sequence: [u8; 4],
    attempt: [u8; 2],
    length: [u8; 2],
    bytes: [u8; 8],
    task_type: [u8; 2],
    priority: u8,
    constraints: u8,
    client: [u8; 2],
    unused: [u8; 18],
}

impl Cell {
    pub(super) const fn client(&self) -> ClientId {
        ClientId(u16::from_be_bytes(self.client))
    }

    /// The task, as it would leave now: the upper half of its incarnation is its client's, if that has a row.
    pub(super) fn task(&self, client: Option<ClientRow>) -> TaskInRing {
        let high = client.map_or(0, |row| row.incarnation.high());
        TaskInRing {
            client: self.client(),
            task: TaskId {
                incarnation: Incarnation::of(high, u32::from_be_bytes(self.incarnation_low)),
                sequence: Serial(u32::from_be_bytes(self.sequence)),
            },
            attempt: u16::from_be_bytes(self.attempt),
        }
    }

    pub(super) const fn token(&self) -> TokenInRing {
        TokenInRing { worker: WorkerId((self.word >> 32) as u16), generation: Generation(self.word as u32) }
    }
}

/// A task that waits in the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskInRing {
    pub client: ClientId,
    pub task: TaskId,
    pub attempt: u16,
}

/// A parked token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenInRing {
    pub worker: WorkerId,
    /// The generation in which the token was granted.
    pub generation: Generation,
}

/// The contents of a slice's queue, oldest first. One of the two lists is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SliceQueue {
    /// Tasks that wait.
    pub tasks: Vec<TaskInRing>,
    /// Parked tokens.
    pub tokens: Vec<TokenInRing>,
}

/// The epoch of the registers, and the switch's address.
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Life {
    pub(super) epoch: u32,
    pub(super) port: [u8; 2],
    pub(super) unused: u16,
    pub(super) at4: [u8; 4],
    pub(super) at6: [u8; 16],
    /// The term of the controller that the switch obeys; the program does not read it.
    pub(super) term: u32,
    pub(super) now_ns: u64,
    /// How many clients are registered.
    pub(super) clients: u32,
    pub(super) unused_too: u32,
}

impl Life {
    /// The switch's address; it is the same on all links.
    pub(super) fn at(&self) -> SocketAddr {
        let port = u16::from_be_bytes(self.port);
        match self.at4 {
            [0, 0, 0, 0] => SocketAddr::from((self.at6, port)),
            at4 => SocketAddr::from((at4, port)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_long_as_in_the_program() {
        assert_eq!(
            (size_of::<Rows<Worker>>(), size_of::<Rows<Client>>(), size_of::<Rows<Slice>>()),
            (104, 88, 72)
        );
        assert_eq!((size_of::<Queue>(), size_of::<Cell>(), size_of::<Life>()), (64, 64, 48));
        assert_eq!(size_of::<Layout>(), 48);
    }

    #[test]
    fn a_ring_that_starts_somewhere_has_given_back_all_before() {
        let queue = Queue::starting(u32::MAX - 7, 6);
        let all: u32 = queue.released.iter().fold(0, |sum, count| sum.wrapping_add(*count));
        assert_eq!(all, u32::MAX - 7);
        assert_eq!(Queue::starting(21, 4).released, [8, 5, 4, 4]);
    }
}
