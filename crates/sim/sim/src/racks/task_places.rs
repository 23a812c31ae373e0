//! A record of where every task is: kept in test builds only, and checked at every event.
//!
//! Without faults, each task is in exactly one place. With faults a task may be under way in several copies
//! or none; then only the clients' counts are compared.

/// A place where a task may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Held back at the task's client.
    Backlog,
    ToSwitch,
    /// Waiting in the switch, or recirculating.
    InSwitch,
    ToWorker,
    /// In the worker's queue, or being received.
    AtWorker,
    Running,
    ToClient,
    Done,
    Refused,
    Unknown,
    /// Given up by a client whose backlog is full.
    PushedBack,
    /// Dropped by the switch.
    Lost,
}

const PLACES: usize = Place::Lost as usize + 1;

#[derive(Debug, Default)]
pub(super) struct TaskPlaces {
    at: [u64; PLACES],
    offered: u64,
    /// Of the tasks in the switch, those that recirculate.
    going_round: u64,
    has_copies: bool,
}

impl TaskPlaces {
    /// An empty record; `has_copies` says whether a task can be in several places.
    pub(super) fn new(has_copies: bool) -> Self {
        Self { has_copies, ..Self::default() }
    }

    /// A request is due.
    #[inline]
    pub(super) fn offered(&mut self) {
        if cfg!(debug_assertions) {
            self.offered += 1;
            self.at[Place::Backlog as usize] += 1;
        }
    }

    /// A task moves from one place to the next.
    #[inline]
    pub(super) fn move_task(&mut self, from: Place, to: Place) {
        if cfg!(debug_assertions) && !self.has_copies {
            let left = self.at[from as usize].checked_sub(1);
            assert!(left.is_some(), "no task is {from:?}, to go {to:?}: {self:?}");
            self.at[from as usize] = left.unwrap_or_default();
            self.at[to as usize] += 1;
        }
    }

    /// A task begins or ends a recirculation.
    #[inline]
    pub(super) fn set_recirculating(&mut self, goes: bool) {
        if cfg!(debug_assertions) {
            self.going_round = if goes { self.going_round + 1 } else { self.going_round - 1 };
        }
    }

    /// Checks: tasks in = held back + in flight + waiting + running + done + refused + lost. `outstanding`
    /// is what the clients count, `held_back` the length of their backlogs, `waiting` the program's count.
    pub(super) fn check(&self, outstanding: u64, held_back: u64, waiting: u32) {
        if !cfg!(debug_assertions) || self.has_copies {
            return;
        }
        let sum = |places: &[Place]| places.iter().map(|place| self.at[*place as usize]).sum::<u64>();
        let under_way = sum(&[
            Place::ToSwitch,
            Place::InSwitch,
            Place::ToWorker,
            Place::AtWorker,
            Place::Running,
            Place::ToClient,
            Place::Lost,
        ]);
        let ended = sum(&[Place::Done, Place::Refused, Place::Unknown, Place::PushedBack]);
        let in_switch = u64::from(waiting) + self.going_round;
        assert_eq!(in_switch, self.at[Place::InSwitch as usize], "{waiting} wait: {self:?}");
        assert_eq!(held_back, self.at[Place::Backlog as usize], "held back: {self:?}");
        assert_eq!(outstanding, under_way, "under way: {self:?}");
        assert_eq!(self.offered, held_back + under_way + ended, "tasks in and out: {self:?}");
    }
}
