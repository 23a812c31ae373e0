//! The client library: `connect`, `submit`, and each task ends in exactly one of three outcomes.
//!
//! A [`Client`] owns a thread that does nothing but move its packets; any number of threads and async tasks
//! may submit through one client. When the switch or the client's share of a slice is full, `submit` waits:
//! that is how the application is pushed back. No async runtime is needed, and any may be used.

mod ended;
mod engine;
mod joining;
mod shared;
mod spine_clients;
mod submit_gate;
mod task_spec;
mod weights;

use std::fmt;
use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::panic;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use sluice_control::ClientHello;
use sluice_host::client::ClientSettings;
use sluice_wire::{HEADER_BYTES, Incarnation, Nanos, Serial, TASK_BYTES_MAX, TaskType};

pub use sluice_host::client::Urgency;

pub use ended::{Answer, Ended, Outcome, Pending, RefusedWhy, UnknownWhy};
pub use shared::ClientReport;
pub use spine_clients::SpineClients;
pub use task_spec::{Needs, TaskSpec};

use crate::NetError;
use crate::clock::Clock;
use crate::first::{FirstPacket, LINK_MTU};
use crate::pin::pin_thread;
use crate::udp::{Socket, SocketOptions, Waiting};
use ended::Completion;
use engine::{Engine, Parts};
pub use joining::{Joining, wait_until_joined};
use shared::{ClientShared, Command, Task};
use sluice_netem::FaultPlan;
use sluice_rpc::Remote;
use sluice_rpc::registrar::{ClientRegistrar, Controllers};
use submit_gate::{GateAnswer, lane};

/// How a client is set up. [`ClientOptions::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Where the controller is.
    pub controller: Remote,
    /// The client's name: unique among those that live.
    pub name: String,
    /// The address by which switch and workers reach this client; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// How long to wait for the first registration.
    pub patience: Duration,
    /// Whether a task may be tried again. Without, its first REJECT is final, and so is silence: for work
    /// that must not run twice.
    pub retry: bool,
    /// Times of the network, multiplied: for dilated runs.
    pub dilation: u32,
    /// The longest packet that is taken, in bytes of UDP payload: what the rack's links pass. What is sent is
    /// as short as the rack says.
    pub datagram_max: usize,
    /// How the packet thread waits.
    pub waiting: Waiting,
    /// The core of the packet thread.
    pub pin: Option<usize>,
    /// What goes wrong on purpose.
    pub faults: FaultPlan,
}

impl ClientOptions {
    /// A client on this machine with a name of its own. The controller is at `controller` (`HOST:PORT` or a
    /// URL).
    ///
    /// # Errors
    /// [`NetError::Rpc`] if that is no address.
    pub fn new(controller: &str) -> Result<Self, NetError> {
        Ok(Self::of(Remote::new(controller, None)?))
    }

    /// The same, for a controller that may need TLS.
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
        }
    }

    /// The client's socket, and what it says of itself to the controller: for a driver of one's own.
    ///
    /// # Errors
    /// What the socket says, and [`NetError::Unreachable`] for an address that nobody could send to.
    pub fn open(&self) -> Result<(Socket, ClientHello), NetError> {
        let options = SocketOptions {
            datagram_max: self.datagram_max,
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

/// How long a task may take when its submitter does not say, in a rack of this dilation.
pub fn deadline_default(dilation: u32) -> Duration {
    Duration::from_nanos(ClientSettings::dilated(dilation.into()).deadline_default.0)
}

/// Why a task was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The share or the switch is full: hold back, and try again later or wait in a blocking submit.
    #[error(
        "there is no room for another task of this type now: try again after an outcome, or wait with `submit`"
    )]
    Busy,
    /// No task may be so long: send less.
    #[error(
        "a task of {bytes} bytes is longer than the {most} that one may have: send less, or in several tasks"
    )]
    TooLong { bytes: usize, most: usize },
    /// The client was closed, or its socket failed.
    #[error("the client is closed, or its socket failed: connect a new one")]
    Closed,
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
    /// Registers with the controller and waits until that is done.
    ///
    /// # Errors
    /// [`NetError::NotRegistered`] after [`ClientOptions::patience`], [`NetError::Refused`] when the controller
    /// will not have this client, and what the socket says.
    pub fn connect(options: &ClientOptions) -> Result<Self, NetError> {
        Self::connect_at(options, options.controller.clone().into())
    }

    /// The same, where these controllers stand for the options' one.
    fn connect_at(options: &ClientOptions, controllers: Controllers) -> Result<Self, NetError> {
        let home = controllers.here().url().to_owned();
        let (socket, hello) = options.open()?;
        let waker = socket.waker();
        let bell = waker.clone();
        let registrar = ClientRegistrar::client(controllers, hello.clone(), move || bell.wake())?;
        let shared = Arc::new(ClientShared::new(waker));
        let (joining, joined) = mpsc::channel();
        let settings = ClientSettings::dilated(options.dilation.into());
        let first_max = options.datagram_max.saturating_sub(HEADER_BYTES);
        let parts =
            Parts { socket, settings, first_max, registrar, hello, shared: Arc::clone(&shared), joining };
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
    ) -> Result<Pending, SubmitError> {
        self.offer(spec.into(), bytes, deadline, |of| self.block_for_place(of), Completion::pending)
    }

    /// As [`Client::submit`], for async code: waits for room without blocking a thread.
    pub async fn submit_async(
        &self,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
    ) -> Result<Pending, SubmitError> {
        let spec = spec.into();
        self.check(bytes)?;
        poll_fn(|context| self.poll_place(spec.of, context)).await?;
        self.offer(spec, bytes, deadline, |_| Ok(()), Completion::pending)
    }

    /// As [`Client::submit`], but says [`SubmitError::Busy`] instead of waiting.
    pub fn try_submit(
        &self,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
    ) -> Result<Pending, SubmitError> {
        self.offer(spec.into(), bytes, deadline, |of| self.try_place(of), Completion::pending)
    }

    /// Submits a task whose outcome goes to `callback`, on the packet thread: it must be brief and must not
    /// wait for anything. Blocks while there is no room; called from a callback, it says
    /// [`SubmitError::Busy`] instead.
    pub fn submit_with(
        &self,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
        callback: impl FnOnce(Ended) + Send + 'static,
    ) -> Result<(), SubmitError> {
        let completion = || (Completion::callback(Box::new(callback)), ());
        self.offer(spec.into(), bytes, deadline, |of| self.block_for_place(of), completion)
    }

    /// As [`Client::submit_with`], but says [`SubmitError::Busy`] instead of waiting. The callback is then
    /// dropped.
    pub fn try_submit_with(
        &self,
        spec: impl Into<TaskSpec>,
        bytes: &[u8],
        deadline: Duration,
        callback: impl FnOnce(Ended) + Send + 'static,
    ) -> Result<(), SubmitError> {
        let completion = || (Completion::callback(Box::new(callback)), ());
        self.offer(spec.into(), bytes, deadline, |of| self.try_place(of), completion)
    }

    /// How many workers serve a type where this client is registered, as far as it has heard.
    fn workers_of(&self, task_type: TaskType) -> u32 {
        self.shared.weights.of(task_type)
    }

    /// What was counted so far.
    ///
    /// # Errors
    /// [`SubmitError::Closed`] when the packet thread has ended.
    pub fn report(&self) -> Result<ClientReport, SubmitError> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.command(Command::Report(sender));
        receiver.blocking_recv().map_err(|_| SubmitError::Closed)
    }

    /// What people call types, as far as the rack's plan says so.
    pub fn type_names(&self) -> Vec<(TaskType, String)> {
        self.shared.type_names()
    }

    /// Takes no more tasks, waits until each has its outcome, and leaves the controller.
    ///
    /// # Errors
    /// What ended the packet thread early, if anything did.
    pub fn close(mut self) -> Result<ClientReport, NetError> {
        self.shared.room.close();
        self.command(Command::Close);
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

    /// Hands a task to the packet thread, once it is no longer than it may be and `place` has found room for
    /// it. Who is to be told of its end is asked then: a completion that is dropped tells, too.
    fn offer<T>(
        &self,
        spec: TaskSpec,
        bytes: &[u8],
        deadline: Duration,
        place: impl FnOnce(TaskType) -> Result<(), SubmitError>,
        completion: impl FnOnce() -> (Completion, T),
    ) -> Result<T, SubmitError> {
        self.check(bytes)?;
        place(spec.of)?;
        let deadline = self.clock.now() + Nanos(u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX));
        let (completion, waits) = completion();
        let task = Task { spec, bytes: bytes.to_vec(), deadline, retry: self.retry, completion };
        self.command(Command::Task(task));
        Ok(waits)
    }

    fn command(&self, command: Command) {
        self.shared.commands.push(command);
        self.shared.waker.wake();
        if self.shared.over.load(Ordering::SeqCst) {
            self.shared.drain();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.shared.room.close();
            self.command(Command::Abort);
            // Nobody is left to hear how the thread ended.
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
        // The starter waits for this message; the thread ends with it if the core is not to be had.
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

/// Runs a future on this thread, which sleeps in between.
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
