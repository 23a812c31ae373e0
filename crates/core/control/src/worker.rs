//! A registered worker: its state in the switch, and the state that it should have there.

use alloc::string::String;
use alloc::vec::Vec;

use sluice_wire::serving::Labels;
use sluice_wire::sizes::QUOTA_MAX;
use sluice_wire::tables::WorkerRow;
use sluice_wire::{Endpoint, Nanos, Serial, SliceId, TaskType};

use crate::message::WorkerHello;
use crate::recent::RecentWork;
use crate::registration::{Fate, Holder, Registration};

/// A registered worker.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) registration: Registration,
    /// The worker's row as last written to the switch, or as it will be written first.
    pub(crate) row: WorkerRow,
    /// Whether the switch has a row for the worker.
    pub(crate) in_switch: bool,
    /// Whether the counters in the switch belong to the row's generation.
    pub(crate) counted: bool,
    /// The address that the worker should have.
    pub(crate) at: Endpoint,
    /// The slice that the worker should be in.
    pub(crate) slice: SliceId,
    /// The slice in which the worker is open.
    pub(crate) serves: Option<SliceId>,
    pub(crate) types: Vec<TaskType>,
    pub(crate) labels: Labels,
    pub(crate) quota: u8,
    /// The depth with which the worker starts in the slice that it was lent to, until it reports that
    /// depth.
    pub(crate) start_quota: Option<u8>,
    /// Tasks per second; 0 while unknown.
    pub(crate) capacity: u32,
    /// What the worker did over the last seconds.
    pub(crate) recent: RecentWork,
    /// How many tasks the worker had refused because their budget was spent, when it called last.
    pub(crate) refused_late: u64,
    pub(crate) server: String,
    /// If the worker is a leaf: how many workers it stands for.
    pub(crate) workers: u16,
    /// The worker's number of rejoins when its present generation began.
    rejoins: Option<u32>,
    /// Whether the worker asks for a new generation.
    pub(crate) rejoin: bool,
    pub(crate) fate: Fate,
    pub(crate) step: Option<Step>,
    /// The final `sent` of the worker's last generation.
    pub(crate) final_sent: Option<Serial>,
}

/// The step that a worker's change waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The worker's row is closed, and packets that saw it open drain.
    Closing,
    /// The worker's generation is raised, so that tokens of older generations no longer match.
    Raising,
    /// The final `sent` is read, and how far the token ring had got.
    Reading,
    /// The worker's counters are reset.
    Resetting,
    /// Stale tokens have to leave the ring, to make room for new ones.
    Sweeping,
    /// The worker's row is opened in the new generation.
    Opening,
    /// The worker's address or weight is changed within its generation.
    Readdressing,
    Clearing,
}

impl Holder for Worker {
    fn registration(&self) -> &Registration {
        &self.registration
    }

    fn registration_mut(&mut self) -> &mut Registration {
        &mut self.registration
    }
}

impl Worker {
    /// A worker that was just admitted; the switch has no row of it yet.
    pub(crate) fn joining(now: Nanos, hello: WorkerHello, labels: Labels, row: WorkerRow) -> Self {
        Self {
            registration: Registration::new(Some(hello.name), hello.life, now),
            in_switch: false,
            counted: false,
            types: hello.types,
            labels,
            quota: hello.quota,
            capacity: hello.capacity,
            recent: hello.recent,
            refused_late: hello.refused_late,
            server: hello.server,
            workers: hello.workers,
            rejoins: Some(hello.rejoins),
            ..Self::read_back(now, row)
        }
    }

    /// A worker whose row was read back, and which has not called yet.
    pub(crate) fn read_back(now: Nanos, row: WorkerRow) -> Self {
        Self {
            registration: Registration::new(None, row.life, now),
            at: row.at,
            slice: row.slice,
            row,
            in_switch: true,
            counted: true,
            serves: None,
            types: Vec::new(),
            labels: Labels::NONE,
            quota: QUOTA_MAX,
            start_quota: None,
            capacity: 0,
            recent: RecentWork::default(),
            refused_late: 0,
            server: String::new(),
            workers: row.workers,
            rejoins: None,
            rejoin: false,
            fate: Fate::Stays,
            step: None,
            final_sent: None,
        }
    }

    /// Asks for a new generation if the worker's number of rejoins has changed. After a read-back the first
    /// number counts as the old one.
    pub(crate) fn rejoin_if_lost(&mut self, rejoins: u32) {
        let known = self.rejoins.replace(rejoins);
        self.rejoin |= known.is_some_and(|known| known != rejoins);
    }

    /// Whether its state in the switch is as it should be.
    pub(crate) fn is_settled(&self) -> bool {
        self.step.is_none()
            && self.fate == Fate::Stays
            && self.in_switch
            && self.row.open
            && self.row.at == self.at
            && self.row.workers == self.workers
            && self.row.slice == self.slice
            && !self.rejoin
    }

    /// Whether a token of it may meet a task in this slice, until the change under way is done.
    pub(crate) fn may_have_tokens_in(&self, slice: SliceId) -> bool {
        self.row.slice == slice && (self.in_switch || self.step.is_some())
    }

    /// Whether live tokens of it take room in this slice's ring. In a change they do until they count as
    /// stale.
    pub(crate) fn takes_room_in(&self, slice: SliceId) -> bool {
        let not_stale_yet = matches!(self.step, Some(Step::Closing | Step::Raising | Step::Reading));
        self.row.slice == slice && (self.row.open || not_stale_yet)
    }

    /// Whether tokens of it may be in this slice's ring, now or soon.
    pub(crate) fn needs_room_in(&self, slice: SliceId) -> bool {
        self.row.slice == slice || self.slice == slice
    }
}
