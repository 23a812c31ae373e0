//! Addresses of clients, learned from the tasks that spines hand down. A leaf has no table of clients, and
//! a waiting or recirculating task stores no address.

use alloc::boxed::Box;

use sluice_wire::{Endpoint, Incarnation, TaskId};

use crate::program::Verdict;

/// Clients per set. A further client replaces the one that was learned longest ago.
const EACH: usize = 4;

/// Clients by their incarnations. In each set, the most recently learned one comes first. A client's
/// incarnation is random, and so is its set.
#[derive(Debug)]
pub struct KnownClients {
    sets: Box<[[Known; EACH]]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    incarnation: Incarnation,
    at: Endpoint,
}

impl KnownClients {
    /// A cache that knows no client, with room for `sets` sets of four: a power of two.
    pub fn in_sets(sets: usize) -> Self {
        debug_assert!(sets.is_power_of_two(), "a set is found by its lowest bits");
        Self { sets: core::iter::repeat_n([Known::default(); EACH], sets).collect() }
    }

    /// Learns a client's address from a task that a spine handed down and the program accepted. Tasks from
    /// other senders, and old copies of the spine's packets, teach nothing.
    #[inline]
    pub fn handed_down(&mut self, verdict: &Verdict, task: TaskId, at: Endpoint) {
        // A spine whose row of the client ended meanwhile says nowhere.
        if !matches!(verdict, Verdict::Drop(_)) && at != Endpoint::default() {
            self.learn(task, at);
        }
    }

    #[inline]
    fn learn(&mut self, task: TaskId, at: Endpoint) {
        let known = Known { incarnation: task.incarnation, at };
        let index = self.set_of(task);
        let set = &mut self.sets[index];
        if set[0].incarnation != task.incarnation {
            let place = set.iter().position(|other| other.incarnation == task.incarnation);
            set[..=place.unwrap_or(EACH - 1)].rotate_right(1);
        }
        set[0] = known;
    }

    /// The address of a task's client. An unspecified address if it is not known; the client's next attempt
    /// tells it again.
    #[inline]
    pub fn of(&self, task: TaskId) -> Endpoint {
        let mut set = self.sets[self.set_of(task)].iter();
        set.find(|known| known.incarnation == task.incarnation)
            .map_or_else(Endpoint::default, |known| known.at)
    }

    const fn set_of(&self, task: TaskId) -> usize {
        task.incarnation.0 as usize & (self.sets.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::Serial;

    use super::*;
    use crate::refusal::Refusal;

    const SETS: usize = 1 << 12;

    fn task(of: usize) -> TaskId {
        TaskId { incarnation: Incarnation(of as u64), sequence: Serial(7) }
    }

    fn port(port: u16) -> Endpoint {
        Endpoint { ip: [1; 16], port }
    }

    #[test]
    fn a_client_is_where_its_newest_task_said() {
        let mut clients = KnownClients::in_sets(SETS);
        clients.learn(task(1), port(1));
        clients.learn(task(1), port(2));
        assert_eq!((clients.of(task(1)), clients.of(task(2))), (port(2), Endpoint::default()));
    }

    #[test]
    fn what_was_not_let_in_moves_no_client() {
        let mut clients = KnownClients::in_sets(SETS);
        clients.handed_down(&Verdict::Parked, task(1), port(1));
        for refusal in [Refusal::UnknownSource, Refusal::Replayed] {
            clients.handed_down(&Verdict::Drop(refusal), task(1), port(2));
        }
        clients.handed_down(&Verdict::Parked, task(1), Endpoint::default());
        assert_eq!(clients.of(task(1)), port(1), "a spine that does not know says nothing of it");
    }

    #[test]
    fn the_one_that_was_silent_longest_makes_room_in_its_set_and_no_other_is_forgotten() {
        let mut clients = KnownClients::in_sets(SETS);
        let of_one_set = |nth: usize| task(3 + nth * SETS);
        clients.learn(task(4), port(9));
        (0..EACH).for_each(|nth| clients.learn(of_one_set(nth), port(nth as u16)));
        clients.learn(of_one_set(0), port(20));
        clients.learn(of_one_set(EACH), port(21));
        let at = |nth| clients.of(of_one_set(nth));
        assert_eq!((at(0), at(1), at(EACH)), (port(20), Endpoint::default(), port(21)));
        assert!((2..EACH).all(|nth| at(nth) == port(nth as u16)));
        assert_eq!(clients.of(task(4)), port(9), "another set");
    }
}
