//! What C sees: numbers, handles and structs. The header has them in this order.

use std::ffi::{c_int, c_void};

/// The version of this header. The library refuses a header of another version.
pub const SLUICE_ABI: u32 = 1;

/// The longest task, and the longest reply, in bytes.
pub const SLUICE_BYTES_MAX: usize = 65_536;

/// As a time to wait: without end.
pub const SLUICE_FOREVER: u64 = u64::MAX;

/// What a function came to.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SluiceStatus {
    Ok = 0,
    /// A pointer is NULL where something must be.
    Null = 1,
    /// The handle was freed, or never was one of this kind.
    NoHandle = 2,
    /// The program was compiled with the header of another version.
    OtherAbi = 3,
    /// The option is unknown, or its value makes no sense.
    BadOption = 4,
    /// An argument makes no sense.
    BadArgument = 5,
    /// The task or the reply is longer than SLUICE_BYTES_MAX.
    TooLong = 6,
    /// There is no room for another task of this type now.
    Busy = 7,
    /// The client was closed, or its socket failed.
    Closed = 8,
    /// The handle was made before a fork, in the parent.
    Forked = 9,
    /// The controller did not answer in time.
    Unreachable = 10,
    /// The controller refuses this client or worker.
    TurnedAway = 11,
    /// The operating system, or a file, did not give what was needed.
    System = 12,
    /// A bug in the library.
    Internal = 13,
}

/// How a task ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SluiceKind {
    /// There is no outcome here.
    None = 0,
    /// A worker ran the task and answered.
    Reply = 1,
    /// A worker ran the task, and its service failed: the bytes are its text.
    Failed = 2,
    /// The task certainly did not run.
    Refused = 3,
    /// The task may have run.
    Unknown = 4,
}

/// Why a task was refused, or is unknown. sluice_why_text() gives the word, sluice_outcome_text() a sentence.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SluiceWhy {
    None = 0,
    QueueFull = 1,
    NoRoom = 2,
    NoWorkers = 3,
    StaleTokens = 4,
    Unserved = 5,
    NoSlice = 6,
    Busy = 7,
    NeverSent = 8,
    Late = 9,
    LongBudget = 10,
    TooLong = 11,
    UnknownLabel = 12,
    NoClass = 13,
    /// This one and those that follow are of tasks that may have run.
    Deadline = 14,
    ReplyGone = 15,
    TooOld = 16,
}

/// What the urgency of a task is.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SluiceUrgency {
    None = 0,
    /// A class; class 0 goes first.
    Class = 1,
    /// The expected service time, in nanoseconds.
    Work = 2,
}

/// Options of a client or a worker.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SluiceOptions {
    pub id: u64,
}

/// A registered client.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SluiceClient {
    pub id: u64,
}

/// A queue of outcomes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SluiceQueue {
    pub id: u64,
}

/// Labels that a task needs of its worker; an id of 0 is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SluiceLabels {
    pub id: u64,
}

/// A reply's bytes that the library keeps; an id of 0 is none.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SluiceBytes {
    pub id: u64,
}

/// A worker that runs in a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SluiceWorker {
    pub id: u64,
}

/// The reply to the task that a service runs: good until the service returns, and on its thread only.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SluiceReply {
    pub id: u64,
}

/// What a task is. If all but the type is 0, it is a task without urgency, budget and labels that has the
/// client's deadline.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SluiceSpec {
    /// The task's type: its number in the plan.
    pub r#type: u16,
    /// What `urgency` is, a sluice_urgency.
    pub urgency_is: u16,
    /// 0.
    pub reserved: u32,
    /// A class, or a time in nanoseconds.
    pub urgency: u64,
    /// The task ends so long after it was submitted at the latest; 0: as the client's options say.
    pub deadline_ns: u64,
    /// The task is worth beginning for so long; 0: until its deadline.
    pub budget_ns: u64,
    /// What its worker must have.
    pub labels: SluiceLabels,
}

/// How a task ended. Give it back with sluice_outcome_free().
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SluiceOutcome {
    pub kind: SluiceKindCode,
    /// Why, if the task was refused or is unknown.
    pub why: SluiceWhyCode,
    /// The tag under which it was submitted to a queue.
    pub tag: u64,
    /// The reply's bytes, or the text of a service that failed; never NULL.
    pub bytes: *const u8,
    pub length: usize,
    /// The number of the worker that answered.
    pub worker: u32,
    /// How many times the task was sent.
    pub attempts: u32,
    /// What sluice_outcome_text() tells besides.
    pub detail: u32,
    /// 0.
    pub reserved: u32,
    /// How long the task waited in the switch.
    pub switch_wait_ns: u64,
    /// How long the task waited at its worker.
    pub worker_wait_ns: u64,
    /// How long its service ran.
    pub service_ns: u64,
    /// For SLUICE_WHY_BUSY: another task has a chance after so long.
    pub retry_after_ns: u64,
    /// What the library keeps of it until it is given back.
    pub kept: SluiceBytes,
}

/// A [`SluiceKind`] in memory of the caller, which may be any number.
pub type SluiceKindCode = u32;

/// A [`SluiceWhy`] in memory of the caller, which may be any number.
pub type SluiceWhyCode = u32;

/// A task, as its service sees it. It is there until the service returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SluiceTask {
    /// The client's bytes: they may be anything. Never NULL.
    pub bytes: *const u8,
    pub length: usize,
    pub r#type: u16,
    /// The task's number in its client's life: a repeat has the same.
    pub number: u32,
    /// The client's life.
    pub client: u64,
    /// The longest reply.
    pub reply_max: usize,
    /// The longest reply that takes no further round trip.
    pub packet_max: usize,
}

/// Runs one task: writes its reply with sluice_reply_write(), and returns 0. Any other value fails the task,
/// with the text of sluice_reply_fail() if there is one. No exception and no longjmp may leave it.
pub type SluiceServe =
    unsafe extern "C" fn(context: *mut c_void, task: *const SluiceTask, reply: SluiceReply) -> c_int;

/// The code for the tasks of one type. A worker calls it on one thread, for one task at a time.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SluiceService {
    pub r#type: u16,
    pub serve: Option<SluiceServe>,
    /// The first argument of `serve`; the library does not look at it.
    pub context: *mut c_void,
}
