//! What goes into a controller and what comes out: calls from hosts and people, answers, table operations.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use sluice_wire::registrations::{ClientRegistration, WorkerRegistration};
use sluice_wire::tables::{Shape, TableAnswer, TableOp};
use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{
    ClientId, Endpoint, Generation, Incarnation, Key, Nanos, Serial, SliceId, TaskType, WorkerId,
};
use thiserror::Error;

use crate::name::NameError;
use crate::note::Note;
use crate::plan::WORKER_TYPES_MAX;
use crate::recent::RecentWork;
use crate::rings::{RingPlace, ServerGrant, ServerHello};

/// The driver's name for a call that it wants answered. Each is answered exactly once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What a worker says of itself, the same in registration, renewal and heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerHello {
    /// Its name, one holder at a time.
    pub name: String,
    /// 64 random bits per start of the host.
    pub life: u64,
    /// Where it sends from and is sent to.
    pub at: Endpoint,
    /// The slice it wants to join; empty for the first whose types it serves all. Heard when it joins; later
    /// only the controller moves it.
    pub slice: String,
    /// The task types it serves.
    pub types: Vec<TaskType>,
    /// The labels that it has, of those that the plan names.
    pub labels: Vec<String>,
    /// How many tasks it may have granted or held: 1 to what the switch believes.
    pub quota: u8,
    /// Tasks per second that it serves, as measured or declared; 0 for unknown.
    pub capacity: u32,
    /// What it did over the last seconds.
    pub recent: RecentWork,
    /// The server whose registered memory it shares; empty for none.
    pub server: String,
    /// How often it lost what its registration stood on, such as its server's queue pair: with a new number
    /// it is let in anew, in a new generation.
    pub rejoins: u32,
    /// How many workers it stands for, if it is a leaf that registers above its rack; else zero.
    pub workers: u16,
    /// The registration that it holds, if any.
    pub held: Option<(WorkerId, Key, Generation)>,
}

/// What a client says of itself, the same in registration, renewal and heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientHello {
    /// Its name, one holder at a time.
    pub name: String,
    /// 64 random bits per start of the host.
    pub incarnation: Incarnation,
    /// Where it sends from and is sent to.
    pub at: Endpoint,
    /// Its oldest outstanding sequence number, or the next: a new replay block starts there.
    pub floor: Serial,
    /// The registration that it holds, if any.
    pub held: Option<(ClientId, Key)>,
}

/// What a controller is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A switch can be reached; its tables are read back before anyone is answered.
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
    /// An agent's interval has ended; once the other agents had time to be heard, [`Action::TellAgent`] and
    /// the slice step follow.
    Tallies {
        server: String,
        /// Whether it changes nothing: the slice step is not for its workers then.
        advises: bool,
        /// One for each slice of the agent's workers.
        tallies: Vec<SliceTally>,
    },
    /// Someone looks at the [`View`](crate::View): keep the slices' balances fresh for the next two leases.
    Watch,
}

/// What a controller wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Do this on the switch. Answers come back in the order of these.
    Table(TableOp),
    /// Answer a call.
    Answer { call: CallId, answer: Answer },
    /// A worker's agent is to give it this depth.
    SetDepth {
        worker: WorkerId,
        /// Its depth from now on.
        depth: u8,
    },
    /// An agent that was heard is to know what its slices' workers on other servers did.
    TellAgent {
        server: String,
        /// One for each slice that it spoke of.
        others: Vec<SliceOthers>,
    },
    /// Something that people may want to see.
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
    /// The host has no registration any more.
    Left {
        /// The last `sent` number of a worker's last generation, if it is known: it may go when all up to
        /// this came.
        final_sent: Option<Serial>,
    },
    /// Not now: ask again.
    Wait {
        why: Waiting,
        /// When to ask again, from now.
        retry_after: Nanos,
    },
    /// No, and asking the same again will not help.
    Refused {
        /// Why, and what would help.
        why: Refusal,
    },
    /// Done.
    Done,
}

/// A worker's registration, and everything else that its process needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerGrant {
    /// What its machine takes.
    pub registration: WorkerRegistration,
    /// Where its server keeps what the switch wrote ahead for its slice, if it does.
    pub ring: Option<RingPlace>,
    /// The last `sent` number of its previous generation, if there was one and it is known.
    pub final_sent: Option<Serial>,
    /// How long it keeps the ids of finished tasks.
    pub retry_horizon: Nanos,
    /// The longest that the packets which brought a task may have been on their way.
    pub transit: Nanos,
    /// How long this registration stands.
    pub lease: Nanos,
    /// How often to renew it.
    pub renew_every: Nanos,
}

impl Deref for WorkerGrant {
    type Target = WorkerRegistration;

    fn deref(&self) -> &WorkerRegistration {
        &self.registration
    }
}

/// A client's registration, and everything else that its process needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientGrant {
    /// What its machine takes.
    pub registration: ClientRegistration,
    /// The most bytes of a task that its first packet may bring.
    pub first_bytes: u32,
    /// The labels that its tasks may ask for, in the order of their bits; none where any worker takes any
    /// task.
    pub labels: Vec<String>,
    /// What people call its types, as far as the plan says so.
    pub type_names: Vec<(TaskType, String)>,
    /// How many workers serve each slice now; a leaf counts as those that it stands for. Who submits to one
    /// of several spines draws them by it.
    pub workers: Vec<(SliceId, u32)>,
    /// How long this registration stands.
    pub lease: Nanos,
    /// How often to renew it.
    pub renew_every: Nanos,
}

impl Deref for ClientGrant {
    type Target = ClientRegistration;

    fn deref(&self) -> &ClientRegistration {
        &self.registration
    }
}

/// What a host is asked to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// The controller cannot reach the switch.
    SwitchDown,
    /// Another controller has taken the switch over.
    Superseded,
    /// The controller reads its tables back from the switch.
    ReadingBack,
    /// After a read-back, rows whose names are not known yet may be this name's.
    NamesUnknown,
    /// The switch is new and not every slice has a worker yet: tasks would only be rejected.
    WorkersGathering,
    /// Another life holds the name; its lease has to end first.
    NameHeld,
    /// The name's last registration is being taken down.
    Leaving,
    /// Indices or ring places are free again once stale tokens are swept out.
    Sweeping,
    /// Tasks may still wait in the slice whose last worker would go.
    SliceEmptying,
    /// Tasks may still wait in the slice that were of its types before, and that the worker does not serve.
    FormerTypes,
    /// Tokens of a worker that is leaving the slice, and does not serve the type, may still bring it tasks.
    WorkersLeaving,
    /// Too many calls for one name at once; a newer one took this one's place.
    TooManyCalls,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SwitchDown => "the controller cannot reach the switch",
            Self::Superseded => {
                "another controller has taken the switch over, and this one does nothing any more: ask the other one"
            }
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

/// Why a call is refused. Each says what would help.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
pub enum Refusal {
    /// Another host holds the name and keeps renewing it.
    #[error("`{}` is held by another host that keeps renewing it; choose another name", .name.escape_debug())]
    NameHeld { name: String },
    /// The name is none.
    #[error("{0}")]
    BadName(#[from] NameError),
    /// Host and switch have addresses of two families.
    #[error(
        "the switch is at {switch}, and packets do not get from there to {at}: listen on an address of the \
         same family (--listen)"
    )]
    OtherFamily {
        /// Where the host is.
        at: Endpoint,
        /// Where the switch is.
        switch: Endpoint,
    },
    /// The quota lies outside what the switch believes.
    #[error("a quota of {quota} is outside 1 to {most}: give one of those")]
    BadQuota {
        /// The largest that it believes.
        most: u8,
        quota: u8,
    },
    /// Too many task types.
    #[error("a worker may serve {WORKER_TYPES_MAX} types at most: start several, each for a part of them")]
    TooManyTypes,
    /// A leaf has a weight: how many workers its rack has in the pool.
    #[error(
        "`{}` says that it stands for no workers, and this is a spine's controller: a worker registers with \
         the leaf of its rack, and a leaf with at least one worker in the pool", .name.escape_debug()
    )]
    NoLeaf { name: String },
    /// A rack has workers, and no leaves.
    #[error(
        "`{}` says that it stands for {workers} workers, as a leaf does, and this is no spine's controller: \
         give the leaf the address of the one above", .name.escape_debug()
    )]
    NoSpine { name: String, workers: u16 },
    /// A leaf takes tasks from its spine only.
    #[error(
        "client `{}` would send to a leaf, which takes tasks from its spine only: give it the controller of \
         the spine",
        .name.escape_debug()
    )]
    LeafOnly { name: String },
    /// A controller above several spines knows the racks of its plan.
    #[error(
        "`{}` is of no rack of this datacenter's plan; known: {known}: add its rack to the plan, or call the \
         leaf as the plan does", .name.escape_debug()
    )]
    UnknownRack { name: String, known: String },
    /// Spine and leaves have one map of types and pools.
    #[error("pools and types of racks below a spine stand in their plan: change it, and start them anew")]
    FixedAbove,
    /// No slice of that name.
    #[error("there is no slice `{}`; known: {known}", .asked.escape_debug())]
    UnknownSlice {
        /// What was asked for.
        asked: String,
        known: String,
    },
    /// No slice whose types the worker serves all.
    #[error(
        "no slice takes only types that this worker serves ({served}); known: {known}: give the plan a slice for its types, or \
         start a service that serves all types of one"
    )]
    NoSliceForTypes {
        served: String,
        /// The slices and their types.
        known: String,
    },
    /// A worker's tokens may meet any task of its slice, and it does not serve all of them.
    #[error(
        "slice `{}` takes types {needed}, worker `{}` serves {served}; it has to serve all of them", .slice.escape_debug(), .worker.escape_debug()
    )]
    TypesNotServed { worker: String, slice: String, needed: String, served: String },
    /// The plan names no such label.
    #[error("the plan names no label `{}`; known: {known}", .asked.escape_debug())]
    UnknownLabel {
        /// What was asked for.
        asked: String,
        known: String,
    },
    /// The slice knows no kind of workers that has so little.
    #[error(
        "worker `{}` has {has}, and slice `{}` knows these kinds: {kinds}; give it the labels of one",
        .worker.escape_debug(), .slice.escape_debug()
    )]
    NoKind {
        worker: String,
        has: String,
        slice: String,
        /// What its workers may have.
        kinds: String,
    },
    /// No kind of workers of the slice has what tasks of the type need.
    #[error(
        "no kind of workers of slice `{}` has all labels that task type {task_type} needs: map it to another",
        .slice.escape_debug()
    )]
    Unserved { slice: String, task_type: String },
    /// No index is left.
    #[error(
        "the switch has room for {limit} hosts of this kind and all are registered: stop one, or start another rack"
    )]
    TableFull {
        /// How many there can be.
        limit: u16,
    },
    /// The slice's token ring cannot hold 8 more tokens.
    #[error(
        "slice `{}` has room for {limit} tokens and its workers may need them all; use another slice", .slice.escape_debug()
    )]
    RingFull {
        slice: String,
        /// How many tokens it can hold.
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
    /// The type lies outside what the switch can map.
    #[error(
        "task type {task_type} is not below {limit}, which is what this switch can map: give it a smaller number, or name it in the \
         plan that the switch is started with"
    )]
    UnknownType {
        task_type: String,
        /// How many types there can be.
        limit: u16,
    },
    /// The switch writes nothing ahead.
    #[error(
        "this switch writes no tasks ahead: start it with room for servers, under a policy that uses them"
    )]
    NoServers,
    /// The rule: a switch that computes no iCRC has no answers to its WRITEs either.
    #[error(
        "server `{}` asks for a reliable queue pair, and this switch writes over unreliable ones only: start it without \
         --reliable, or set transport = \"uc\" in the plan", .server.escape_debug()
    )]
    UnreliableOnly { server: String },
    /// The rule: a task's first packet and its id are one WRITE, of the RDMA MTU at most.
    #[error(
        "server `{}` has an RDMA MTU of {mtu} bytes, and a task's first packet with its id takes {needed}: raise the \
         server's, or lower the rack's", .server.escape_debug()
    )]
    MtuTooSmall {
        server: String,
        /// What it takes in one WRITE.
        mtu: u32,
        /// What it would get.
        needed: u32,
    },
    /// The region cannot be registered.
    #[error("server `{}`, ring of slice {slice}: {why}", .server.escape_debug())]
    BadRing {
        server: String,
        slice: SliceId,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The rule: a ring covers the tasks that wait, those that workers hold, and those of the longest stall.
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
        /// How many slices it has.
        slices: u16,
        /// How many types it can map.
        types: u16,
    },
}
