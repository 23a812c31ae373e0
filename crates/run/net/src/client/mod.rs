//! The client library: `connect`, `submit`, and each task ends in exactly one of three outcomes.
//!
//! A [`Client`] owns a thread that only handles packets; any number of threads and async tasks may submit
//! through one client. If the switch or the client's share of a slice is full, `submit` waits: this is how
//! an application is pushed back. The library needs no async runtime, and works with any.

mod ended;
mod engine;
mod joining;
mod metrics;
mod outcome;
mod queue;
mod shared;
mod spine_clients;
mod submit_gate;
mod task_spec;
mod traces;
mod weights;

use std::fmt;
use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic;
use std::pin::pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use sluice_control::ClientHello;
use sluice_host::client::ClientSettings;
use sluice_wire::{Incarnation, Nanos, Serial, TASK_BYTES_MAX, TaskType, first_bytes_max};

pub use sluice_host::client::Urgency;

pub use ended::PendingTask;
pub use metrics::ClientMetrics;
pub use outcome::{CutOff, EndedTask, Outcome, RefusedWhy, TaskReply, UnknownWhy};
pub use queue::{Completed, CompletionQueue};
pub use shared::ClientReport;
pub use spine_clients::SpineClients;
pub use task_spec::{RequiredLabels, TaskSpec};

use crate::NetError;
use crate::clock::Clock;
use crate::first::{DATAGRAM_BYTES_MOST, FirstPacket, LINK_MTU};
use crate::pin::pin_thread;
use crate::udp::{Socket, SocketOptions, Waiting};
use ended::Completion;
use engine::{Engine, Parts};
pub use joining::{Joining, wait_until_joined};
use metrics::ClientMeter;
use shared::{ClientShared, Command, Task};
use sluice_netem::FaultPlan;
use sluice_rpc::Remote;
use sluice_rpc::registrar::{ClientRegistrar, Controllers};
use sluice_traces::Tracer;
use submit_gate::{GateAnswer, lane};
use traces::ClientTraces;

/// The settings of a client. [`ClientOptions::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The address of the controller.
    pub controller: Remote,
    /// The client's name: unique among running clients.
    pub name: String,
    /// The address at which switch and workers reach this client; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// How long to wait for the first registration.
    pub patience: Duration,
    /// Whether a task may be retried. If not, the first REJECT or timeout is final: for work that must not
    /// run twice.
    pub retry: bool,
    /// A factor for all network times, for dilated runs.
    pub dilation: u32,
    /// The longest packet that is sent, in bytes of UDP payload: what the rack's links can carry. The rack
    /// may limit it further. Longer ones are received too.
    pub datagram_max: usize,
    /// How the packet thread waits.
    pub waiting: Waiting,
    /// The core to which the packet thread is pinned.
    pub pin: Option<usize>,
    /// The injected faults.
    pub faults: FaultPlan,
    /// Where the client counts for Prometheus, if anybody wants that. Clients with clones of one value are
    /// counted together.
    pub metrics: Option<ClientMetrics>,
    /// Who takes the spans of one task in N, if anybody wants them.
    pub traces: Option<Tracer>,
}

impl ClientOptions {
    /// A client on this machine with a unique name. `controller` is `HOST:PORT` or a URL.
    ///
    /// # Errors
    /// [`NetError::Rpc`] if `controller` is not an address.
    pub fn new(controller: &str) -> Result<Self, NetError> {
        Ok(Self::of(Remote::new(controller, None)?))
    }

    /// Like [`Self::new`], for a controller that may need TLS.
    pub fn of(controller: Remote) -> Self {
        Self {
            name: controller.own_name("client"),
            controller,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            patience: Duration::from_secs(5),
            retry: true,
            dilation: 1,
            datagram_max: FirstPacket::fitting(LINK_MTU, None).datagram_max,
            waiting: Waiting::default(),
            pin: None,
            faults: FaultPlan::none(),
            metrics: None,
            traces: None,
        }
    }

    /// The client's socket, and its description for the controller: for callers with a driver of their own.
    ///
    /// # Errors
    /// The socket's errors, and [`NetError::Unreachable`] for an address to which no one could send.
    pub fn open(&self) -> Result<(Socket, ClientHello), NetError> {
        let options = SocketOptions {
            datagram_max: self.datagram_max.max(DATAGRAM_BYTES_MOST),
            waiting: self.waiting,
            faults: self.faults.clone(),
            ..SocketOptions::default()
        };
        let socket = Socket::bind(self.listen, &options)?;
        let hello = ClientHello {
            name: self.name.clone(),
            incarnation: Incarnation(crate::identity::random_bits()?),
            at: crate::identity::reachable(socket.local())?,
            floor: Serial(0),
            held: None,
        };
        Ok((socket, hello))
    }
}

/// The time from submission to deadline if the submitter states none, in a rack with this dilation.
pub fn deadline_default(dilation: u32) -> Duration {
    Duration::from_nanos(ClientSettings::dilated(dilation.into()).deadline_default.0)
}

/// Why a task was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The share or the switch is full: hold back, and try again later or use a blocking submit.
    #[error(
        "there is no room for another task of this type now: try again after an outcome, or wait with `submit`"
    )]
    Busy,
    /// The task is longer than any task may be: send less.
    #[error(
        "a task of {bytes} bytes is longer than the {most} that one may have: send less, or in several tasks"
    )]
    TooLong { bytes: usize, most: usize },
    /// The client was closed, or its socket failed.
    #[error("the client is closed, or its socket failed: connect a new one")]
    Closed,
}

impl SubmitError {
    /// The error in one word, the same in every language.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::TooLong { .. } => "too-long",
            Self::Closed => "closed",
        }
    }
}

/// A registered client. Dropping it ends outstanding tasks as unknown; [`Client::close`] waits for them.
pub struct Client {
    shared: Arc<ClientShared>,
    thread: Option<JoinHandle<Result<ClientReport, NetError>>>,
    clock: Clock,
    settings: ClientSettings,
    retry: bool,
    payload_max: usize,
}

impl Client {
    /// Registers with the controller, and waits for the registration.
    ///
    /// # Errors
    /// [`NetError::NotRegistered`] after [`ClientOptions::patience`], [`NetError::Refused`] if the
    /// controller refuses this client, and the socket's errors.
    pub fn connect(options: &ClientOptions) -> Result<Self, NetError> {
        Self::connect_at(options, options.controller.clone().into())
    }

    /// Registers with these controllers instead of the one in the options.
    fn connect_at(options: &ClientOptions, controllers: Controllers) -> Result<Self, NetError> {
        let home = controllers.here().url().to_owned();
        let (socket, hello) = options.open()?;
        let waker = socket.waker();
        let bell = waker.clone();
        let registrar = ClientRegistrar::client(controllers, hello.clone(), move || bell.wake())?;
        let shared = Arc::new(ClientShared::new(waker));
        let (joining, joined) = mpsc::channel();
        let settings = ClientSettings::dilated(options.dilation.into());
        let first_max = first_bytes_max(options.datagram_max);
        let parts = Parts {
            socket,
            settings,
            first_max,
            registrar,
            hello,
            shared: Arc::clone(&shared),
            joining,
            meter: ClientMeter::new(options.metrics.as_ref()),
            traces: ClientTraces::new(options.traces.clone()),
        };
        let thread = start(options.pin, parts)?;
        let client = Self {
            shared,
            thread: Some(thread),
            clock: Clock::start(),
            settings,
            retry: options.retry,
            payload_max: TASK_BYTES_MAX as usize,
        };
        wait_until_joined(&joined, &home, options.patience).map(|()| client)
    }

    /// The longest task, in bytes.
    pub fn payload_max(&self) -> usize {
        self.payload_max
    }

    /// A deadline that leaves time for faults: 5 s without dilation.
    pub fn deadline_default(&self) -> Duration {
        Duration::from_nanos(self.settings.deadline_default.0)
    }

    /// Submits a task that is to end within `deadline`; blocks while there is no room. Not for async code.
    pub fn submit(
        &self,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
    ) -> Result<PendingTask, SubmitError> {
        self.offer(spec.into(), bytes, deadline, |of| self.block_for_place(of), Completion::pending)
    }

    /// Like [`Client::submit`], for async code: waits for room without blocking a thread.
    pub async fn submit_async(
        &self,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
    ) -> Result<PendingTask, SubmitError> {
        let spec = spec.into();
        self.check(bytes)?;
        poll_fn(|context| self.poll_place(spec.of, context)).await?;
        self.offer(spec, bytes, deadline, |_| Ok(()), Completion::pending)
    }

    /// Like [`Client::submit`], but returns [`SubmitError::Busy`] instead of waiting.
    pub fn try_submit(
        &self,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
    ) -> Result<PendingTask, SubmitError> {
        self.offer(spec.into(), bytes, deadline, |of| self.try_place(of), Completion::pending)
    }

    /// Submits a task whose outcome goes to `callback`. The callback runs on the packet thread, so it must
    /// be brief and must not block. This call blocks while there is no room; inside a callback it returns
    /// [`SubmitError::Busy`] instead.
    pub fn submit_with(
        &self,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
        callback: impl FnOnce(EndedTask) + Send + 'static,
    ) -> Result<(), SubmitError> {
        let completion = || (Completion::callback(Box::new(callback)), ());
        self.offer(spec.into(), bytes, deadline, |of| self.block_for_place(of), completion)
    }

    /// Like [`Client::submit_with`], but returns [`SubmitError::Busy`] instead of waiting. The callback is
    /// then dropped.
    pub fn try_submit_with(
        &self,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
        callback: impl FnOnce(EndedTask) + Send + 'static,
    ) -> Result<(), SubmitError> {
        let completion = || (Completion::callback(Box::new(callback)), ());
        self.offer(spec.into(), bytes, deadline, |of| self.try_place(of), completion)
    }

    /// Submits a task whose outcome goes to `queue` with this tag. Blocks while there is no room.
    pub fn submit_to(
        &self,
        queue: &CompletionQueue,
        tag: u64,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
    ) -> Result<(), SubmitError> {
        let completion = || (Completion::queue(queue.clone(), tag), ());
        self.offer(spec.into(), bytes, deadline, |of| self.block_for_place(of), completion)
    }

    /// Like [`Client::submit_to`], but returns [`SubmitError::Busy`] instead of waiting.
    pub fn try_submit_to(
        &self,
        queue: &CompletionQueue,
        tag: u64,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
    ) -> Result<(), SubmitError> {
        let completion = || (Completion::queue(queue.clone(), tag), ());
        self.offer(spec.into(), bytes, deadline, |of| self.try_place(of), completion)
    }

    /// Like [`Client::try_submit_to`], but if there is no room, the context's waker is called when there may
    /// be some: [`CompletionQueue::waker`] wakes whoever waits for the queue.
    pub fn poll_submit_to(
        &self,
        queue: &CompletionQueue,
        tag: u64,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
        context: &Context<'_>,
    ) -> Poll<Result<(), SubmitError>> {
        let completion = || (Completion::queue(queue.clone(), tag), ());
        let place = |of| match self.poll_place(of, context) {
            Poll::Ready(answer) => answer,
            Poll::Pending => Err(SubmitError::Busy),
        };
        match self.offer(spec.into(), bytes, deadline, place, completion) {
            Err(SubmitError::Busy) => Poll::Pending,
            answer => Poll::Ready(answer),
        }
    }

    /// How many workers serve a type at the switch where this client is registered, as last reported.
    fn workers_of(&self, task_type: TaskType) -> u32 {
        self.shared.weights.of(task_type)
    }

    /// The counters so far.
    ///
    /// # Errors
    /// [`SubmitError::Closed`] if the packet thread has ended.
    pub fn report(&self) -> Result<ClientReport, SubmitError> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.shared.command(Command::Report(sender));
        receiver.blocking_recv().map_err(|_| SubmitError::Closed)
    }

    /// The names of task types in the rack's plan.
    pub fn type_names(&self) -> Vec<(TaskType, String)> {
        self.shared.type_names()
    }

    /// Accepts no more tasks: whoever waits for room is answered [`SubmitError::Closed`]. Tasks that were
    /// accepted go on.
    pub fn accept_no_more(&self) {
        self.shared.room.close();
    }

    /// Accepts no more tasks, waits until each has its outcome, and ends the registration.
    ///
    /// # Errors
    /// The error that ended the packet thread early, if any.
    pub fn close(mut self) -> Result<ClientReport, NetError> {
        self.accept_no_more();
        self.shared.command(Command::Close);
        self.join()
    }

    fn join(&mut self) -> Result<ClientReport, NetError> {
        let Some(thread) = self.thread.take() else { return Ok(ClientReport::default()) };
        thread.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))
    }

    fn check(&self, bytes: &[u8]) -> Result<(), SubmitError> {
        let (bytes, most) = (bytes.len(), self.payload_max);
        if bytes > most { Err(SubmitError::TooLong { bytes, most }) } else { Ok(()) }
    }

    fn try_place(&self, task_type: TaskType) -> Result<(), SubmitError> {
        match self.shared.room.take(lane(task_type)) {
            GateAnswer::Taken => Ok(()),
            GateAnswer::Full => Err(SubmitError::Busy),
            GateAnswer::Closed => Err(SubmitError::Closed),
        }
    }

    fn poll_place(&self, task_type: TaskType, context: &Context<'_>) -> Poll<Result<(), SubmitError>> {
        match self.shared.room.take_or_sleep(lane(task_type), context.waker()) {
            GateAnswer::Taken => Poll::Ready(Ok(())),
            GateAnswer::Full => Poll::Pending,
            GateAnswer::Closed => Poll::Ready(Err(SubmitError::Closed)),
        }
    }

    fn block_for_place(&self, task_type: TaskType) -> Result<(), SubmitError> {
        match self.try_place(task_type) {
            Err(SubmitError::Busy) => {}
            answer => return answer,
        }
        let here = thread::current();
        if self.thread.as_ref().is_some_and(|thread| thread.thread().id() == here.id()) {
            return Err(SubmitError::Busy);
        }
        block_on(here, poll_fn(|context| self.poll_place(task_type, context)))
    }

    /// Hands a task to the packet thread, after checking its length and reserving room with `place`. The
    /// completion is created only then, since dropping one would report an outcome.
    fn offer<T>(
        &self,
        spec: TaskSpec,
        bytes: &[u8],
        deadline: Duration,
        place: impl FnOnce(TaskType) -> Result<(), SubmitError>,
        completion: impl FnOnce() -> (Completion, T),
    ) -> Result<T, SubmitError> {
        self.check(bytes)?;
        let nanos = |span: Duration| Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
        let begin_by = spec.budget.map(|budget| self.clock.now() + nanos(budget));
        place(spec.of)?;
        let submitted = self.clock.now();
        let deadline = submitted + nanos(deadline);
        let (completion, waits) = completion();
        let (bytes, retry) = (self.shared.keep(bytes), self.retry);
        let task = Task { spec, bytes, submitted, deadline, begin_by, retry, completion };
        self.shared.command(Command::Task(task));
        Ok(waits)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.accept_no_more();
            self.shared.command(Command::Abort);
            // The error of the thread is ignored: no caller is left to report it to.
            self.join().ok();
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("payload_max", &self.payload_max).finish_non_exhaustive()
    }
}

fn start(pin: Option<usize>, parts: Parts) -> Result<JoinHandle<Result<ClientReport, NetError>>, NetError> {
    let (pinned, is_pinned) = mpsc::channel();
    let work = move || {
        // The starting thread waits for this message. If the thread could not be pinned, it ends.
        let answer = pin.map_or(Ok(()), pin_thread);
        let failed = answer.is_err();
        pinned.send(answer).ok();
        if failed { Ok(ClientReport::default()) } else { Engine::new(parts).run() }
    };
    let thread = thread::Builder::new()
        .name("sluice-client".into())
        .spawn(work)
        .map_err(|why| NetError::Thread { name: "sluice-client", why })?;
    match is_pinned.recv() {
        Ok(answer) => answer.map(|()| thread),
        Err(_) => Ok(thread),
    }
}

/// Runs a future on this thread, which sleeps while the future waits.
fn block_on<T>(here: Thread, future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(here)).into();
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        thread::park();
    }
}
