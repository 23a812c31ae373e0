//! The registrations of workers and clients: the controller grants them, and the hosts' state machines use
//! them.
//!
//! They are no packets and are sent rarely; [`ClientRegistration`] allocates.

use alloc::vec::Vec;

use crate::tables::{Feed, KINDS_MAX};
use crate::{ClientId, Endpoint, Epoch, Generation, Key, Nanos, Serial, SliceId, TaskType, WorkerId};

/// A worker's registration. Within an epoch, generations must grow from one grant of this worker's life to
/// the next, even if its index changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerRegistration {
    pub worker: WorkerId,
    /// Every packet to the switch shows this key.
    pub key: Key,
    pub epoch: Epoch,
    /// The worker's generation. A newer one starts the counters anew.
    pub generation: Generation,
    /// The slice to which its tokens go.
    pub slice: SliceId,
    /// The most tokens out and tasks held together (N), at most [`QUOTA_LIMIT`](crate::sizes::QUOTA_LIMIT).
    /// A worker that polls has at most one token out, and one whose tasks are pushed has none.
    pub quota: u8,
    /// How the worker gets its tasks.
    pub feed: Feed,
    /// Where the counters of this generation start.
    pub start: Serial,
    /// The address of the switch.
    pub switch: Endpoint,
    /// Whether clients submit to spines above the switch. Replies that do not pass the switch then name no
    /// epoch, because a client would take it for its spine's.
    pub below_spines: bool,
}

/// A client's registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRegistration {
    pub client: ClientId,
    /// Every packet shows this key. A new key means that the replay cells are new too.
    pub key: Key,
    /// The epoch of the switch for which this registration is valid.
    pub epoch: Epoch,
    /// The address of the switch.
    pub switch: Endpoint,
    /// Replay cells in the switch, one for each outstanding task: a power of two. Of any other number only
    /// its largest factor that is a power of two is used.
    pub replay_cells: u32,
    /// Which slice serves which type.
    pub slices: Vec<(TaskType, SliceId)>,
    /// How many tasks this client may have outstanding in each slice.
    pub shares: Vec<(SliceId, u32)>,
    /// How many classes of tasks the switch tells apart, by their priority; 1 if it tells none.
    pub classes: u8,
    /// The most tasks in one submission; 1 if each task comes alone.
    pub jobs: u8,
    /// The sizes that divide tasks into classes, for slices where the class goes by size.
    pub sizes: Vec<(SliceId, Sizes)>,
    /// How long after its submission a task may be sent again; later the workers may have forgotten it.
    pub retry_for: Nanos,
}

/// The class of a task by its size, the work that it is expected to be: class 0 holds the smallest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The largest size of each class but the last, ascending, then zeros.
    ends: [Nanos; KINDS_MAX - 1],
    count: u8,
}

impl Sizes {
    /// Classes that end at these sizes, and one for larger tasks. `None` if the sizes do not ascend from
    /// above zero, or are more than a switch tells apart. Without ends all sizes are one class.
    pub fn new(ends: &[Nanos]) -> Option<Self> {
        let mut sizes = Self { count: ends.len() as u8, ..Self::default() };
        sizes.ends.get_mut(..ends.len())?.copy_from_slice(ends);
        let ascend = ends.first().is_none_or(|first| first.0 > 0) && ends.is_sorted_by(|a, b| a < b);
        ascend.then_some(sizes)
    }

    /// The largest size of each class but the last.
    pub fn ends(&self) -> &[Nanos] {
        &self.ends[..self.count.into()]
    }

    /// Whether there is one class for all sizes.
    pub const fn is_none(&self) -> bool {
        self.count == 0
    }

    /// The class of a task that is expected to be so much work.
    pub fn class_of(&self, work: Nanos) -> u8 {
        self.ends().iter().filter(|end| work > **end).count() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_ascend_and_each_class_ends_with_its_largest() {
        let sizes = Sizes::new(&[10, 40, 200].map(Nanos)).unwrap();
        assert_eq!(
            [0, 10, 11, 40, 41, 200, 201].map(|work| sizes.class_of(Nanos(work))),
            [0, 0, 1, 1, 2, 2, 3]
        );
        let alike = Sizes::new(&[]).unwrap();
        assert_eq!((alike.class_of(Nanos(u64::MAX)), alike.is_none(), sizes.is_none()), (0, true, false));
        let wrong = [&[0, 1][..], &[5, 5], &[5, 4], &[1, 2, 3, 4]];
        for ends in wrong {
            assert_eq!(Sizes::new(&ends.iter().map(|end| Nanos(*end)).collect::<Vec<_>>()), None, "{ends:?}");
        }
    }
}
