//! What a host holds once the controller has let it in: told by the controller, taken by the hosts' machines.
//!
//! These are no packets and go rarely; [`ClientRegistration`] allocates.

use alloc::vec::Vec;

use crate::tables::Feed;
use crate::{ClientId, Endpoint, Epoch, Generation, Key, Nanos, Serial, SliceId, TaskType, WorkerId};

/// A worker's registration. Within an epoch, generations must grow from one grant of this worker's life to
/// the next, also when the index changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerRegistration {
    /// The worker's index.
    pub worker: WorkerId,
    /// Shown with each packet.
    pub key: Key,
    /// The switch's life.
    pub epoch: Epoch,
    /// The worker's generation; strictly newer means: start the counters anew.
    pub generation: Generation,
    /// Where its tokens go.
    pub slice: SliceId,
    /// Most tokens out and tasks held together (N); at most [`QUOTA_MAX`](crate::sizes::QUOTA_MAX). One is
    /// out at most when the worker polls, none when tasks are pushed.
    pub quota: u8,
    /// How the worker gets its tasks.
    pub feed: Feed,
    /// Where the counters of this generation start.
    pub start: Serial,
    /// Where the switch is.
    pub switch: Endpoint,
}

/// A client's registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientRegistration {
    /// The client's index.
    pub client: ClientId,
    /// Shown with each packet; a new one means that the replay block is new too.
    pub key: Key,
    /// The switch's life that this registration is good for.
    pub epoch: Epoch,
    /// Where the switch is.
    pub switch: Endpoint,
    /// Replay cells in the switch, one for each outstanding task: a power of two (of any other number only
    /// its largest such factor is used).
    pub replay_cells: u32,
    /// Which slice serves which type.
    pub slices: Vec<(TaskType, SliceId)>,
    /// How many tasks this client may have outstanding in each slice.
    pub shares: Vec<(SliceId, u32)>,
    /// How long after it was submitted a task may be sent again: later, the workers may have forgotten it.
    pub retry_for: Nanos,
}
