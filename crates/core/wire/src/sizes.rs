//! How large the switch's tables have to be, and how clients share their room.

/// The most ranks of tokens, kinds of workers and classes of tasks that a switch tells apart.
pub const KINDS_MAX: usize = 4;

/// The largest quota of a worker, unless its policy asks for more: how many tasks it may have granted or
/// held together (N, Rain §3.2.2). The switch ignores a count of tokens that runs further ahead.
pub const QUOTA_MAX: u8 = 8;

/// The largest quota that any policy may ask for. A switch says which quota it accepts
/// ([`Shape::quota_max`](crate::tables::Shape::quota_max)).
pub const QUOTA_LIMIT: u8 = 16;

/// The bits of a ticket that a packet tells: its low ones. On a chip the number of a slice (4 bits) lies below
/// the count in one word, so that the word's low bits are the index of the ticket's cell.
pub const TICKET_MASK: u32 = (1 << 28) - 1;

/// How many cells a slice's ring of tokens needs. [`QUOTA_MAX`] for each worker is enough while no worker
/// moves. Twice as many are needed if stale tokens lie beside the live ones until they are swept.
pub const fn token_cells(workers: u32, for_each: u32) -> u32 {
    (workers * for_each).next_power_of_two()
}

/// How many replay cells a client needs for so many outstanding tasks: more than an eighth of them stays
/// free.
pub const fn replay_cells(outstanding: u32) -> u32 {
    (outstanding + outstanding / 7 + 1).next_power_of_two()
}

/// How many slots a ring in a server's memory needs, so that no slot is written again while its task may
/// still be copied: for the tasks that wait (C), those that were sent to workers (at most the tokens), and
/// those that pass while a worker is stopped.
pub const fn ring_slots(waiting: u32, tokens: u32, while_stopped: u32) -> u32 {
    (waiting + tokens + while_stopped).next_power_of_two()
}

/// How many of a slice's tasks each client may have outstanding: at least one. All of them together find
/// room, unless there are more clients than room.
pub fn share(outstanding: u32, clients: u32) -> u32 {
    (outstanding / clients.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_two_that_hold_what_was_asked_for() {
        assert_eq!([1, 4, 5, 32].map(|workers| token_cells(workers, 8)), [8, 32, 64, 256]);
        assert_eq!(ring_slots(100, 27, 1), 128);
        assert_eq!(ring_slots(100, 28, 1), 256);
        for outstanding in 0..10_000 {
            let cells = replay_cells(outstanding);
            assert!(outstanding < cells - cells / 8, "{outstanding} in {cells}");
            assert!(outstanding >= cells / 2 - cells / 16 || cells == 1, "{outstanding} in {cells}");
        }
    }

    #[test]
    fn shares_are_rounded_down_but_for_the_last_task() {
        assert_eq!([0, 1, 3, 11].map(|clients| share(10, clients)), [10, 10, 3, 1]);
    }
}
