//! Every packet of the protocol, as a value that can only be legal.

use core::fmt;

use crate::{
    Age, Attempt, Budget, ClientId, Endpoint, Epoch, Generation, Key, Kind, MeanQueue, Nonce, Payload, Rank,
    Serial, SliceId, Submit, TaskId, TaskJob, TaskType, WorkerId,
};

/// Where the first bytes of a DISPATCH's large payload are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In the packet: behind the header, or in it.
    #[default]
    Here,
    /// In a ring in the memory of the worker's server, if the WRITE arrived and no later one has
    /// overwritten it.
    Ahead {
        /// The slice whose tasks the ring holds.
        slice: SliceId,
        /// The low bits ([`TICKET_MASK`](crate::sizes::TICKET_MASK)) of the task's number in its slice's
        /// queue; its slot is this number modulo the ring's length.
        ticket: u32,
    },
    /// With the client only.
    AtClient,
}

/// A task on its way from the switch to the worker whose token it met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dispatch {
    pub epoch: Epoch,
    /// The worker whose token was spent.
    pub worker: WorkerId,
    /// The generation of that token.
    pub generation: Generation,
    /// How many tasks the switch has sent to this worker in this generation, this one included.
    pub sent: Serial,
    /// How many of the worker's tokens the switch has granted.
    pub seen: Serial,
    pub client: ClientId,
    /// Where the reply goes.
    pub client_at: Endpoint,
    pub task: TaskId,
    /// Which try this is.
    pub attempt: Attempt,
    pub task_type: TaskType,
    /// The priority, as submitted.
    pub priority: u8,
    /// The labels, as submitted.
    pub constraints: u8,
    /// How long the task waited in the switch's queue, in nanoseconds, saturating at 4.29 s.
    pub wait_ns: u32,
    /// How many tasks were left waiting when this one was dispatched, saturating. From a spine: what it
    /// knows of the rack's queues.
    pub occupancy: u16,
    /// What is left of the task's budget after its wait in the switch.
    pub budget: Budget,
    /// How old the task is: its age when its client sent it, plus its time in the switch. An earlier try of
    /// the task may have run elsewhere so long ago, plus the time that packets were on their way.
    pub age: Age,
    /// The task's bytes.
    pub payload: Payload,
    /// Where these bytes are; a payload that is not large is in the packet.
    pub place: Place,
}

/// How a worker's reply ends a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyStatus {
    /// The service's answer is in the payload.
    #[default]
    Done,
    /// The service failed or panicked; the task is not retried. The payload may say why.
    Failed,
    /// The task ran, but its reply is no longer kept: the client's outcome is Unknown.
    Gone,
    /// The task is so old that the worker may have run and forgotten it, so the worker does not run it. The
    /// client's outcome is Unknown.
    Old,
    /// The task's budget was spent before the task could begin. It did not run, and will not run at this
    /// worker.
    Late,
}

/// A worker's answer to a task, sent straight to the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reply {
    /// The newest epoch of the switch that the worker knows.
    pub epoch: Epoch,
    pub worker: WorkerId,
    /// The client that submitted the task.
    pub client: ClientId,
    pub task: TaskId,
    /// The try that this answers.
    pub attempt: Attempt,
    pub task_type: TaskType,
    pub status: ReplyStatus,
    /// Time in the switch's queue, in nanoseconds, saturating.
    pub switch_wait_ns: u32,
    /// Time from arrival at the worker to the start of service, in nanoseconds, saturating.
    pub worker_wait_ns: u32,
    /// Service time, in nanoseconds, saturating.
    pub service_ns: u32,
    /// Tasks that the worker still holds.
    pub load: u32,
    /// The address at which to ask for the rest of a long answer.
    pub worker_at: Endpoint,
    pub payload: Payload,
}

/// The switch's answer to a TOKEN that it does not keep: no task waits. It spends the token and takes a
/// number, as a DISPATCH would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Empty {
    pub epoch: Epoch,
    /// The worker whose token was spent.
    pub worker: WorkerId,
    /// The generation of that token.
    pub generation: Generation,
    /// How many packets the switch has numbered for this worker in this generation, this one included.
    pub sent: Serial,
    /// How many of the worker's tokens the switch has granted.
    pub seen: Serial,
}

/// A worker's word that it has room for one more task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Token {
    /// The epoch of the switch that the worker knows.
    pub epoch: Epoch,
    pub key: Key,
    pub worker: WorkerId,
    pub generation: Generation,
    /// Identifies this packet in its answer, if it gets one.
    pub nonce: Nonce,
    /// How many tokens the worker has issued in this generation, this one included.
    pub issued: Serial,
    /// How many tasks stand before the token at the worker. A hint: a wrong rank costs time only.
    pub rank: Rank,
}

/// A worker's question for its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Probe {
    /// The epoch of the switch that the worker knows.
    pub epoch: Epoch,
    pub key: Key,
    pub worker: WorkerId,
    pub generation: Generation,
    /// Identifies this question in its answer.
    pub nonce: Nonce,
}

/// The counters that the switch holds of a worker: the answer to a PROBE, and to a TOKEN that granted
/// nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub epoch: Epoch,
    pub worker: WorkerId,
    /// The generation that the switch admits now.
    pub generation: Generation,
    pub nonce: Nonce,
    /// The counters, or `None` while the generation is changing.
    pub counters: Option<Counters>,
}

/// A worker's counters as the switch holds them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Tokens granted in this generation.
    pub seen: Serial,
    /// Tasks sent in this generation.
    pub sent: Serial,
}

/// Why the switch did not take a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectReason {
    /// The slice's queue holds as many tasks as it may.
    QueueFull,
    /// There is no room for a payload that would have to wait.
    NoRoom,
    /// The slice has no workers, or none with the labels that the task needs.
    NoWorkers,
    /// No slice serves this type.
    UnknownType,
    /// Too many stale tokens in a row met the task.
    StaleTokens,
    /// No worker of the slice is known to have the labels that the task needs.
    Unserved,
    /// The task would wait in the switch for longer than its slice's target.
    Busy,
    /// The task's budget is spent, or will be spent before a worker has room.
    Late,
}

impl RejectReason {
    /// All reasons, in the order of their codes.
    pub const ALL: [Self; 8] = [
        Self::QueueFull,
        Self::NoRoom,
        Self::NoWorkers,
        Self::UnknownType,
        Self::StaleTokens,
        Self::Unserved,
        Self::Busy,
        Self::Late,
    ];
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueueFull => "its slice's queue was full each time it was sent: send less, or start more workers",
            Self::NoRoom => "the switch had no room for its bytes while it would wait: send less at once, or start a server",
            Self::NoWorkers => {
                "its slice has no worker, or none with its labels: start one, or wait until one is back"
            }
            Self::UnknownType => "no slice takes its type: map it to one, or send another type",
            Self::StaleTokens => "it met only tokens of workers that are gone: send it again",
            Self::Unserved => {
                "no kind of workers of its slice has the labels that it needs: add one to the plan"
            }
            Self::Busy => {
                "it would have waited for longer than its slice's target: send less, or start more workers"
            }
            Self::Late => {
                "its budget was spent in the switch: give it a longer one, send less, or start workers"
            }
        })
    }
}

/// The switch's refusal of one try of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reject {
    pub epoch: Epoch,
    pub client: ClientId,
    pub task: TaskId,
    /// The try that was refused.
    pub attempt: Attempt,
    pub task_type: TaskType,
    pub reason: RejectReason,
    /// How many tasks behind this one in its [`TaskJob`] are refused for the same reason; 0 if it came
    /// alone.
    pub behind: u8,
    /// How long to wait before the next try, in nanoseconds; a hint. If the slice is busy, its target.
    pub retry_after_ns: u32,
    /// What clients share, if the slice is busy; else nothing.
    pub load: SliceLoad,
}

/// What the clients of a slice with a target share while more tasks come than it can serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SliceLoad {
    /// How many tasks may wait; zero if the switch does not tell.
    pub room: u32,
    /// How many clients the switch knows.
    pub clients: u32,
}

/// The answer to a SUBMIT of another epoch. It is no refusal: the task counts as unanswered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notice {
    pub epoch: Epoch,
    pub client: ClientId,
    pub task: TaskId,
    /// The try that was not taken.
    pub attempt: Attempt,
}

/// Which bytes a NEED asks for and a PART brings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BytesOf {
    /// Those of a task: a worker asks, and its client answers.
    #[default]
    Task,
    /// Those of a reply: the client asks, and the worker answers.
    Reply,
}

/// A request for bytes, straight from host to host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    pub of: BytesOf,
    /// The worker that runs or ran the task.
    pub worker: WorkerId,
    /// The address to which the bytes go.
    pub asker_at: Endpoint,
    /// The client that submitted the task.
    pub client: ClientId,
    pub task: TaskId,
    /// The try that the worker holds or answered.
    pub attempt: Attempt,
    /// The first missing byte.
    pub offset: u32,
    /// How many bytes are missing.
    pub length: u32,
}

/// Bytes that a NEED asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    pub of: BytesOf,
    /// The worker that runs or ran the task.
    pub worker: WorkerId,
    /// The client that submitted the task.
    pub client: ClientId,
    pub task: TaskId,
    /// The try that the worker holds or answered.
    pub attempt: Attempt,
    /// The offset of these bytes in the task or reply.
    pub offset: u32,
    /// The bytes.
    pub payload: Payload,
}

/// The entries that a SWEEP looks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SweepOf {
    /// Parked tokens: live tokens park again, stale ones are dropped.
    #[default]
    Tokens,
    /// Waiting tasks of a slice without workers: each is rejected.
    Tasks,
}

/// The controller's sweep, which recirculates through a slice's queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    pub epoch: Epoch,
    pub slice: SliceId,
    /// The entries that the sweep looks for.
    pub of: SweepOf,
    /// How many entries the sweep may still visit.
    pub left: u16,
    /// A live token that the sweep carries, to park it in the next pass.
    pub carried: Option<(WorkerId, Generation)>,
}

/// The news of a rack's workers that its switch sends to its spine (Horus §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    /// The epoch of the spine to which the update goes.
    pub epoch: Epoch,
    /// The number of the rack's switch at the spine.
    pub leaf: WorkerId,
    /// The generation in which it has that number.
    pub generation: Generation,
    /// The pool of these workers: a slice of the spine.
    pub pool: SliceId,
    pub news: RackNews,
}

/// What is new in a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RackNews {
    /// Some worker is idle now (the paper's *idleAdd*).
    Idle,
    /// No worker is idle any more (*idleRemove*).
    Busy,
    /// The mean queue of the rack's workers (*loadUpdate*).
    Load(MeanQueue),
}

/// Any packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Client to switch: a task.
    Submit(Submit),
    /// Switch to worker: a task.
    Dispatch(Dispatch),
    /// Worker to client: the answer to a task.
    Reply(Reply),
    /// Worker to switch: room for one more task.
    Token(Token),
    /// Worker to switch: asks for its counters.
    Probe(Probe),
    /// Switch to worker: its counters.
    Answer(Answer),
    /// Switch to client: the task was not taken.
    Reject(Reject),
    /// Switch to client: the switch has another epoch.
    Notice(Notice),
    /// Worker to client or client to worker: asks for missing bytes.
    Need(Need),
    /// The answer to a NEED: missing bytes.
    Part(Part),
    /// Controller to switch, where it recirculates.
    Sweep(Sweep),
    /// Switch to worker: no task waits.
    Empty(Empty),
    /// A rack's switch to its spine: news of the rack.
    Update(Update),
    /// Client to switch: several tasks in one submission.
    Job(TaskJob),
}

impl Packet {
    /// How many bytes of payload stand behind the header.
    pub const fn body_len(&self) -> usize {
        match self {
            Self::Dispatch(Dispatch { place: Place::Ahead { .. } | Place::AtClient, .. }) => 0,
            _ => match self.payload() {
                Some(payload) if payload.is_large() => payload.len as usize,
                _ => 0,
            },
        }
    }

    /// The payload, for kinds that have one.
    pub const fn payload(&self) -> Option<&Payload> {
        match self {
            Self::Submit(p) => Some(&p.payload),
            Self::Dispatch(p) => Some(&p.payload),
            Self::Reply(p) => Some(&p.payload),
            Self::Part(p) => Some(&p.payload),
            _ => None,
        }
    }

    /// The payload, to change its handle.
    pub const fn payload_mut(&mut self) -> Option<&mut Payload> {
        match self {
            Self::Submit(p) => Some(&mut p.payload),
            Self::Dispatch(p) => Some(&mut p.payload),
            Self::Reply(p) => Some(&mut p.payload),
            Self::Part(p) => Some(&mut p.payload),
            _ => None,
        }
    }

    /// The packet's kind.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Submit(_) => Kind::Submit,
            Self::Dispatch(_) => Kind::Dispatch,
            Self::Reply(_) => Kind::Reply,
            Self::Token(_) => Kind::Token,
            Self::Probe(_) => Kind::Probe,
            Self::Answer(_) => Kind::Answer,
            Self::Reject(_) => Kind::Reject,
            Self::Notice(_) => Kind::Notice,
            Self::Need(_) => Kind::Need,
            Self::Part(_) => Kind::Part,
            Self::Sweep(_) => Kind::Sweep,
            Self::Empty(_) => Kind::Empty,
            Self::Update(_) => Kind::Update,
            Self::Job(_) => Kind::Job,
        }
    }

    /// The kind's name, as the protocol writes it.
    pub const fn name(&self) -> &'static str {
        self.kind().name()
    }
}
