//! A controller's input and output: calls from hosts and operators, answers, table operations.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use sluice_wire::registrations::{ClientRegistration, WorkerRegistration};
use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{
    ClientId, Endpoint, Generation, Incarnation, Key, Nanos, Serial, SliceId, TaskType, Term, WorkerId,
};
use thiserror::Error;

use crate::name::NameError;
use crate::note::Note;
use crate::plan::WORKER_TYPES_MAX;
use crate::recent::RecentWork;
use crate::rings::{RingPlace, ServerGrant, ServerHello};

/// The driver's id of a call. Each call is answered exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// A worker's registration request; renewals and heartbeats repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerHello {
    /// The worker's name, one holder at a time.
    pub name: String,
    /// 64 random bits per start of the host.
    pub life: u64,
    /// The address that the worker sends from and is sent to.
    pub at: Endpoint,
    /// The slice that the worker wants to join; if empty, the first slice whose types it serves all. Used
    /// when it joins; later only the controller moves it.
    pub slice: String,
    /// The task types the worker serves.
    pub types: Vec<TaskType>,
    /// The worker's labels, of those that the plan names.
    pub labels: Vec<String>,
    /// How many tasks the worker may have granted or held: from 1 to the largest quota that the switch
    /// accepts.
    pub quota: u8,
    /// Tasks per second that the worker serves, as measured or declared; 0 for unknown.
    pub capacity: u32,
    /// What the worker did over the last seconds.
    pub recent: RecentWork,
    /// How many tasks the worker refused in this life because their budget was spent.
    pub refused_late: u64,
    /// The server whose registered memory the worker shares; empty for none.
    pub server: String,
    /// How often the worker lost what its registration depends on, such as its server's queue pair. A new
    /// number gets it a new generation.
    pub rejoins: u32,
    /// If the worker is a leaf that registers above its rack: how many workers it stands for; else 0.
    pub workers: u16,
    /// The registration that the worker holds, if any.
    pub held: Option<(WorkerId, Key, Generation)>,
}

/// A client's registration request; renewals and heartbeats repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// The client's name, one holder at a time.
    pub name: String,
    /// 64 random bits per start of the host.
    pub incarnation: Incarnation,
    /// The address that the client sends from and is sent to.
    pub at: Endpoint,
    /// The client's oldest outstanding sequence number, or the next one: a new row's replay cells start
    /// there.
    pub floor: Serial,
    /// The registration that the client holds, if any.
    pub held: Option<(ClientId, Key)>,
}

/// An event for the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A switch can be reached; its tables are read back before any call is answered.
    SwitchUp(Shape),
    /// The switch cannot be reached. Answers to operations that are still open will never come.
    SwitchDown,
    /// The answer to the oldest open [`Action::Table`].
    TableAnswered(TableAnswer),
    /// A worker registers or renews.
    WorkerHello {
        /// To be answered with [`Answer::Worker`], `Wait` or `Refused`.
        call: CallId,
        hello: WorkerHello,
    },
    /// A worker leaves for good.
    WorkerLeave {
        /// To be answered with [`Answer::Left`], `Wait` or `Refused`.
        call: CallId,
        name: String,
        life: u64,
    },
    /// A client registers or renews.
    ClientHello {
        /// To be answered with [`Answer::Client`], `Wait` or `Refused`.
        call: CallId,
        hello: ClientHello,
    },
    /// A client leaves for good.
    ClientLeave {
        /// To be answered with [`Answer::Left`], `Wait` or `Refused`.
        call: CallId,
        name: String,
        incarnation: Incarnation,
    },
    /// Another spine's controller has granted this client, which may be registered here too.
    ClientElsewhere(Incarnation),
    /// A server registers or renews.
    ServerHello {
        /// To be answered with [`Answer::Server`], `Wait` or `Refused`.
        call: CallId,
        hello: ServerHello,
    },
    /// A server leaves for good.
    ServerLeave {
        /// To be answered with [`Answer::Left`].
        call: CallId,
        name: String,
        life: u64,
    },
    /// Move a worker to another slice.
    MoveWorker {
        /// To be answered with [`Answer::Done`], `Wait` or `Refused`.
        call: CallId,
        name: String,
        slice: String,
    },
    /// Map a task type to a slice, or to none.
    SetType {
        /// To be answered with [`Answer::Done`], `Wait` or `Refused`.
        call: CallId,
        task_type: TaskType,
        slice: Option<String>,
    },
    /// An agent's interval has ended. [`Action::TellAgent`] and the slice step follow when the other agents
    /// have had time to report.
    Tallies {
        server: String,
        /// Whether the agent only advises: then the slice step leaves its workers alone.
        advises: bool,
        /// One for each slice of the agent's workers.
        tallies: Vec<SliceTally>,
    },
    /// A controller that waits may take the switch over from the controller of this term.
    Lead(Term),
    /// A controller that leads is to wait again.
    StandBy,
    /// An operator looks at the [`View`](crate::View): keeps the slices' balances fresh for the next two
    /// leases.
    Watch,
}

/// An action for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Carry out this operation on the switch. Answers come back in the order of the operations.
    Table(TableOp),
    /// Answer a call.
    Answer { call: CallId, answer: Answer },
    /// Tell this worker's agent the depth that it should have.
    SetDepth {
        worker: WorkerId,
        /// The worker's depth from now on.
        depth: u8,
    },
    /// Tell an agent that reported what its slices' workers on other servers did.
    TellAgent {
        server: String,
        /// One for each slice that the agent reported on.
        others: Vec<SliceOthers>,
    },
    /// A note that people may want to see.
    Note(Note),
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The worker holds this registration.
    Worker(WorkerGrant),
    /// The client holds this registration.
    Client(Box<ClientGrant>),
    /// The server holds this registration.
    Server(ServerGrant),
    /// The host is not registered any more.
    Left {
        /// The last `sent` number of a worker's last generation, if it is known. The worker may exit after
        /// all tasks up to this number came.
        final_sent: Option<Serial>,
    },
    /// Not now: ask again later.
    Wait {
        why: Waiting,
        /// How long to wait before asking again.
        retry_after: Nanos,
    },
    /// No; the same call will be refused again.
    Refused {
        /// The reason, with what would help.
        why: Refusal,
    },
    /// Done.
    Done,
}

/// A worker's registration, and all else that its process needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerGrant {
    /// The part for the worker's state machine.
    pub registration: WorkerRegistration,
    /// Where the worker's server keeps the tasks that the switch wrote ahead for its slice, if the server
    /// does.
    pub ring: Option<RingPlace>,
    /// The last `sent` number of the worker's previous generation, if there was one and the number is
    /// known.
    pub final_sent: Option<Serial>,
    /// How long the worker keeps the ids of finished tasks.
    pub retry_horizon: Nanos,
    /// The longest time that the packets which brought a task may have been on their way.
    pub transit: Nanos,
    /// How long this registration lasts without a renewal.
    pub lease: Nanos,
    /// How often to renew the worker's registration.
    pub renew_every: Nanos,
}

impl Deref for WorkerGrant {
    type Target = WorkerRegistration;

    fn deref(&self) -> &WorkerRegistration {
        &self.registration
    }
}

/// A client's registration, and all else that its process needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientGrant {
    /// The part for the client's state machine.
    pub registration: ClientRegistration,
    /// The most bytes of a task that the client's first packet may bring.
    pub first_bytes: u32,
    /// The labels that the client's tasks may ask for, in the order of their bits; empty if any worker
    /// takes any task.
    pub labels: Vec<String>,
    /// Names of the client's types, as far as the plan gives any.
    pub type_names: Vec<(TaskType, String)>,
    /// How many workers serve each slice now; a leaf counts as the workers that it stands for. A client
    /// that submits to several spines draws them in proportion.
    pub workers: Vec<(SliceId, u32)>,
    /// How long this registration lasts without a renewal.
    pub lease: Nanos,
    /// How often to renew the client's registration.
    pub renew_every: Nanos,
}

impl Deref for ClientGrant {
    type Target = ClientRegistration;

    fn deref(&self) -> &ClientRegistration {
        &self.registration
    }
}

/// The reason why a host has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// The controller cannot reach the switch.
    SwitchDown,
    /// Another controller has taken the switch over.
    Superseded,
    /// The controller waits for the lead.
    Standby,
    /// The controller is reading its tables back from the switch.
    ReadingBack,
    /// After a read-back, a row whose name is not known yet may belong to this name.
    NamesUnknown,
    /// The switch is new and some slice has no worker yet: tasks would only be rejected.
    WorkersGathering,
    /// Another life holds the name, and its lease has to end first.
    NameHeld,
    /// The name's last registration is being removed.
    Leaving,
    /// Indices or ring places become free when stale tokens are swept out.
    Sweeping,
    /// The worker is the last of its slice, and tasks may still wait there.
    SliceEmptying,
    /// Tasks of types that the slice had before may still wait there, and the worker does not serve them.
    FormerTypes,
    /// A worker that is leaving the slice does not serve the type, and its tokens may still bring it tasks.
    WorkersLeaving,
    /// Too many calls of one name waited; a newer one took the place of this one.
    TooManyCalls,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SwitchDown => "the controller cannot reach the switch",
            Self::Superseded => {
                "another controller has taken the switch over, and this one does nothing any more: ask the other one"
            }
            Self::Standby => "this controller is a standby and does not lead: ask the one that leads",
            Self::ReadingBack => "the controller is reading the switch's tables back",
            Self::NamesUnknown => "the controller restarted and does not know yet who holds this name",
            Self::WorkersGathering => {
                "not every slice has a worker yet, and the switch has only just come up"
            }
            Self::NameHeld => "another life holds this name, until its lease ends",
            Self::Leaving => "the last registration of this name is being taken down",
            Self::Sweeping => "stale tokens are being swept to make room",
            Self::SliceEmptying => "tasks still wait in the slice whose last worker would go",
            Self::FormerTypes => {
                "tasks of a type that was mapped to this slice before may still wait in it, and this worker does not \
                 serve them; that is over once they were run"
            }
            Self::WorkersLeaving => {
                "a worker that does not serve this type is still leaving the slice; that is over in milliseconds"
            }
            Self::TooManyCalls => "too many calls for this name at once",
        })
    }
}

/// Why a call is refused. Each reason says what would help.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
pub enum Refusal {
    /// Another host holds the name and keeps renewing it.
    #[error("`{}` is held by another host that keeps renewing it; choose another name", .name.escape_debug())]
    NameHeld { name: String },
    /// The name is not valid.
    #[error("{0}")]
    BadName(#[from] NameError),
    /// The host's address and the switch's are of two families (IPv4, IPv6).
    #[error(
        "the switch is at {switch}, and packets do not get from there to {at}: listen on an address of the \
         same family (--listen)"
    )]
    OtherFamily {
        /// The host's address.
        at: Endpoint,
        /// The switch's address.
        switch: Endpoint,
    },
    /// The quota lies outside what the switch accepts.
    #[error("a quota of {quota} is outside 1 to {most}: give one of those")]
    BadQuota {
        /// The largest quota that the switch accepts.
        most: u8,
        quota: u8,
    },
    /// Too many task types.
    #[error("a worker may serve {WORKER_TYPES_MAX} types at most: start several, each for a part of them")]
    TooManyTypes,
    /// The rule: a leaf has a weight, the number of workers that its rack has in the pool.
    #[error(
        "`{}` says that it stands for no workers, and this is a spine's controller: a worker registers with \
         the leaf of its rack, and a leaf with at least one worker in the pool", .name.escape_debug()
    )]
    NoLeaf { name: String },
    /// The rule: a rack has workers and no leaves.
    #[error(
        "`{}` says that it stands for {workers} workers, as a leaf does, and this is no spine's controller: \
         give the leaf the address of the one above", .name.escape_debug()
    )]
    NoSpine { name: String, workers: u16 },
    /// The rule: a leaf takes tasks from its spine only.
    #[error(
        "client `{}` would send to a leaf, which takes tasks from its spine only: give it the controller of \
         the spine",
        .name.escape_debug()
    )]
    LeafOnly { name: String },
    /// The rule: a controller above several spines accepts the racks of its plan only.
    #[error(
        "`{}` is of no rack of this datacenter's plan; known: {known}: add its rack to the plan, or call the \
         leaf as the plan does", .name.escape_debug()
    )]
    UnknownRack { name: String, known: String },
    /// The rule: spine and leaves share one map of types and pools.
    #[error("pools and types of racks below a spine stand in their plan: change it, and start them anew")]
    FixedAbove,
    /// There is no slice of that name.
    #[error("there is no slice `{}`; known: {known}", .asked.escape_debug())]
    UnknownSlice {
        /// The name that was asked for.
        asked: String,
        known: String,
    },
    /// There is no slice whose types the worker serves all.
    #[error(
        "no slice takes only types that this worker serves ({served}); known: {known}: give the plan a slice for its types, or \
         start a service that serves all types of one"
    )]
    NoSliceForTypes {
        served: String,
        /// The slices and their types.
        known: String,
    },
    /// A worker's tokens may meet any task of its slice, and this worker does not serve all of them.
    #[error(
        "slice `{}` takes types {needed}, worker `{}` serves {served}; it has to serve all of them", .slice.escape_debug(), .worker.escape_debug()
    )]
    TypesNotServed { worker: String, slice: String, needed: String, served: String },
    /// The plan names no such label.
    #[error("the plan names no label `{}`; known: {known}", .asked.escape_debug())]
    UnknownLabel {
        /// The label that was asked for.
        asked: String,
        known: String,
    },
    /// The slice knows no kind of workers with so few labels.
    #[error(
        "worker `{}` has {has}, and slice `{}` knows these kinds: {kinds}; give it the labels of one",
        .worker.escape_debug(), .slice.escape_debug()
    )]
    NoKind {
        worker: String,
        has: String,
        slice: String,
        /// The kinds that the slice knows.
        kinds: String,
    },
    /// No kind of workers of the slice has all labels that tasks of the type need.
    #[error(
        "no kind of workers of slice `{}` has all labels that task type {task_type} needs: map it to another",
        .slice.escape_debug()
    )]
    Unserved { slice: String, task_type: String },
    /// No index is free.
    #[error(
        "the switch has room for {limit} hosts of this kind and all are registered: stop one, or start another rack"
    )]
    TableFull {
        /// How many hosts of this kind there can be.
        limit: u16,
    },
    /// The slice's token ring has no room for the tokens of one more worker.
    #[error(
        "slice `{}` has room for {limit} tokens and its workers may need them all; use another slice", .slice.escape_debug()
    )]
    RingFull {
        slice: String,
        /// How many tokens the ring can hold.
        limit: u32,
    },
    /// The worker is the last one of a slice that takes tasks.
    #[error(
        "worker `{}` is the last one of slice `{}`, which takes types {types}: let another join it, or map them \
         to another slice first", .worker.escape_debug(), .slice.escape_debug()
    )]
    LastWorker { worker: String, slice: String, types: String },
    /// No worker of that name is registered.
    #[error("no worker `{}` is registered: `sluice status` lists those that are", .name.escape_debug())]
    UnknownWorker { name: String },
    /// The worker left or died before the move was done.
    #[error("worker `{}` left or died before it was moved: start it again, or move another", .name.escape_debug())]
    WorkerGone { name: String },
    /// The type is larger than the switch can map.
    #[error(
        "task type {task_type} is not below {limit}, which is what this switch can map: give it a smaller number, or name it in the \
         plan that the switch is started with"
    )]
    UnknownType {
        task_type: String,
        /// How many types there can be.
        limit: u16,
    },
    /// The switch writes no tasks ahead.
    #[error(
        "this switch writes no tasks ahead: start it with room for servers, under a policy that uses them"
    )]
    NoServers,
    /// The rule: a switch that computes no iCRC does not read the answers to its WRITEs either.
    #[error(
        "server `{}` asks for a reliable queue pair, and this switch writes over unreliable ones only: start it without \
         --reliable, or set transport = \"uc\" in the plan", .server.escape_debug()
    )]
    UnreliableOnly { server: String },
    /// The rule: a task's first packet and its id are one WRITE, at most as long as the RDMA MTU.
    #[error(
        "server `{}` has an RDMA MTU of {mtu} bytes, and a task's first packet with its id takes {needed}: raise the \
         server's, or lower the rack's", .server.escape_debug()
    )]
    MtuTooSmall {
        server: String,
        /// The most bytes that the server takes in one WRITE.
        mtu: u32,
        /// The bytes that the longest WRITE would have.
        needed: u32,
    },
    /// The server's ring cannot be used.
    #[error("server `{}`, ring of slice {slice}: {why}", .server.escape_debug())]
    BadRing {
        server: String,
        slice: SliceId,
        /// What is wrong with the ring.
        why: &'static str,
    },
    /// The rule: a ring has a slot for each task that waits, that a worker holds, or that passes during the
    /// longest stall.
    #[error(
        "server `{}` has {slots} slots for slice `{}`, which needs {needed}: the tasks that wait, those that \
         workers hold, and those that pass while one is stopped", .server.escape_debug(), .slice.escape_debug()
    )]
    RingTooSmall { server: String, slice: String, slots: u32, needed: u32 },
    /// The rule: a worker's server keeps a ring for the worker's slice.
    #[error(
        "worker `{}` is on server `{}`, which keeps no ring for slice `{}`: register one, or choose another \
         slice", .worker.escape_debug(), .server.escape_debug(), .slice.escape_debug()
    )]
    SliceWithoutServer { worker: String, server: String, slice: String },
    /// The switch is too small for the plan.
    #[error(
        "the switch has {slices} slices and {types} task types, and the plan needs more, or its \
         labels another scheduler: ask for `labels`"
    )]
    SwitchTooSmall {
        /// How many slices the switch has.
        slices: u16,
        /// How many types the switch can map.
        types: u16,
    },
}
