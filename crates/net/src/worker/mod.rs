//! The worker driver: one thread that takes packets, runs the service and answers (Rain §3.2.1).
//!
//! The state machine decides; here are the socket, the service and the registration around it. While a
//! service runs, packets wait in the socket's buffer, and the kernel's stamps count that wait. Under dilation
//! the service's real time passes first; then the worker stays taken for (factor − 1) times as long, but
//! takes packets. A reply that is longer than a packet is kept, and its client asks for the rest.

mod early;
mod engine;
mod pace;
mod run;
mod slots;
mod telling;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::Serialize;
use sluice_control::WorkerHello;
use sluice_host::worker::WorkerStats;
use sluice_wire::Nanos;

use crate::NetError;
use crate::faults::FaultPlan;
use crate::pin::pin_thread;
use crate::registrar::WorkerRegistrar;
use crate::rpc::Remote;
use crate::service::Service;
use crate::udp::{DATAGRAM_BYTES, Socket, SocketCounts, SocketOptions, Waiting, Waker, sys};
pub(crate) use engine::Engine;
pub use pace::{HostCosts, Slowed};
pub use slots::ServerMemory;
use telling::Telling;

/// How a worker is set up. [`WorkerOptions::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Where the controller is.
    pub controller: Remote,
    /// The worker's name: unique among those that live.
    pub name: String,
    /// The address by which switch and clients reach this worker; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// The server whose memory it shares, if there is one.
    pub memory: Option<ServerMemory>,
    /// The slice to join; empty for the first whose types the service understands.
    pub slice: String,
    /// The labels that it has, of those that the plan names.
    pub labels: Vec<String>,
    /// Tasks granted or held at once (N), 1 to 8.
    pub quota: u8,
    /// Tasks per second that it is expected to serve; 0 to report what is measured.
    pub capacity: u32,
    /// Service times and times of the network, multiplied.
    pub dilation: u32,
    /// Whether tokens leave before their tasks end, where that can be told ([`crate::service::Task::left`]).
    pub early: bool,
    /// How many tasks have to wait in the switch before more than one is asked for; 0: none.
    pub patience: u8,
    /// The lines of its server's agent ([`crate::agent::Lines`]), if that finds its quota.
    pub agent: Option<PathBuf>,
    /// What a testbed's processor takes for packets, if this machine stands for one.
    pub costs: Option<HostCosts>,
    /// The longest packet, in bytes of UDP payload.
    pub datagram_max: usize,
    /// How the thread waits.
    pub waiting: Waiting,
    /// The core of the thread.
    pub pin: Option<usize>,
    /// What goes wrong on purpose.
    pub faults: FaultPlan,
}

impl WorkerOptions {
    /// A worker on this machine with a name of its own. The controller is at `controller` (`HOST:PORT` or a
    /// URL).
    ///
    /// # Errors
    /// [`NetError::Address`] if that is no address.
    pub fn new(controller: &str) -> Result<Self, NetError> {
        Ok(Self::of(Remote::new(controller, None)?))
    }

    /// The same, for a controller that may need TLS.
    pub fn of(controller: Remote) -> Self {
        Self {
            name: controller.own_name("worker"),
            controller,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            memory: None,
            slice: String::new(),
            labels: Vec::new(),
            quota: 2,
            capacity: 0,
            dilation: 1,
            early: false,
            patience: 0,
            agent: None,
            costs: None,
            datagram_max: DATAGRAM_BYTES,
            waiting: Waiting::default(),
            pin: None,
            faults: FaultPlan::none(),
        }
    }
}

/// A worker that is ready to run.
pub struct Worker<S> {
    engine: Engine<S>,
    pin: Option<usize>,
    stopper: Stopper,
}

impl<S: Service> Worker<S> {
    /// Opens the socket and begins to register.
    ///
    /// # Errors
    /// What the socket says, and [`NetError::Unreachable`] for an address that nobody could send to.
    pub fn new(options: &WorkerOptions, service: S) -> Result<Self, NetError> {
        let socket = bind(options)?;
        let stopper = Stopper::new(socket.waker());
        let engine = engine(options, socket, service, stopper.clone())?;
        Ok(Self { engine, pin: options.pin, stopper })
    }

    /// The same for a worker that shares its thread with others, whom the same stopper ends.
    pub(crate) fn of_crew(
        options: &WorkerOptions,
        service: S,
        stopper: Stopper,
    ) -> Result<Engine<S>, NetError> {
        let mut socket = bind(options)?;
        socket.share_waker(stopper.waker.clone());
        engine(options, socket, service, stopper)
    }

    /// What ends [`Worker::run`].
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Works on this thread until it is stopped and has finished what it holds.
    ///
    /// # Errors
    /// [`NetError::Refused`] when the controller will not have this worker, [`NetError::Pin`] when the core
    /// is not to be had, and what ends the socket.
    pub fn run(self) -> Result<WorkerReport, NetError> {
        if let Some(core) = self.pin {
            pin_thread(core)?;
        }
        sys::sharpen_timers();
        self.engine.run()
    }
}

fn bind(options: &WorkerOptions) -> Result<Socket, NetError> {
    let of_socket = SocketOptions {
        datagram_max: options.datagram_max,
        waiting: options.waiting,
        faults: options.faults.clone(),
        ..SocketOptions::default()
    };
    Socket::bind(options.listen, &of_socket)
}

/// What a worker's thread runs; it begins to register.
fn engine<S: Service>(
    options: &WorkerOptions,
    socket: Socket,
    service: S,
    stopper: Stopper,
) -> Result<Engine<S>, NetError> {
    let hello = WorkerHello {
        name: options.name.clone(),
        life: crate::identity::random_bits()?,
        at: crate::identity::reachable(socket.local())?,
        slice: options.slice.clone(),
        types: service.types(),
        labels: options.labels.clone(),
        quota: options.quota,
        capacity: options.capacity,
        server: options.memory.as_ref().map_or_else(String::new, |memory| memory.server.clone()),
        rejoins: 0,
        held: None,
    };
    let telling = options.agent.clone().map(|file| Telling::new(file, options.name.clone()));
    let bell = socket.waker();
    let registrar = WorkerRegistrar::worker(options.controller.clone(), hello.clone(), move || bell.wake())?;
    Ok(Engine::new(options, socket, hello, (registrar, telling), service, stopper))
}

impl<S> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

/// Ends a worker from any thread.
#[derive(Clone, Debug)]
pub struct Stopper {
    asked: Arc<AtomicU8>,
    waker: Waker,
}

/// What was asked of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    /// Finish what is held, leave, and end.
    Drain,
    /// End now.
    Abort,
}

impl Stopper {
    pub(crate) fn new(waker: Waker) -> Self {
        Self { asked: Arc::new(AtomicU8::new(0)), waker }
    }

    /// Asks the worker to finish what it holds and end; asked again, it ends at once.
    pub fn stop(&self) {
        let more = |asked: u8| Some(asked.saturating_add(1));
        // The closure always gives a value, so that the update cannot fail.
        self.asked.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok();
        self.waker.wake();
    }

    fn asked(&self) -> Asked {
        match self.asked.load(Ordering::Acquire) {
            0 => Asked::Nothing,
            1 => Asked::Drain,
            _ => Asked::Abort,
        }
    }
}

/// What a worker did, as its summary and its JSON say it.
#[derive(Clone, Debug, Serialize)]
pub struct WorkerReport {
    /// Which fields to expect, and their meaning.
    pub schema: &'static str,
    /// The worker's name.
    pub name: String,
    /// How long it ran, seconds.
    pub ran_s: f64,
    /// The share of that time in which a task was being served, dilation included.
    pub busy: f64,
    /// How many times real time its service took.
    pub dilation: u32,
    /// Whether it finished everything it held before it ended.
    pub drained: bool,
    /// Tasks run to their end.
    pub finished: u64,
    /// Tasks whose service said no.
    pub failed: u64,
    /// Tasks whose service panicked.
    pub panicked: u64,
    /// Tasks that had been held or finished already, and were answered without running again.
    pub repeated: u64,
    /// Tasks that came after they had been given up, and were run.
    pub late: u64,
    /// Tasks given up as lost on the way from the switch.
    pub written_off: u64,
    /// Tokens sent again.
    pub repeated_tokens: u64,
    /// Tokens sent before the running task ended.
    pub early_tokens: u64,
    /// Questions to the switch.
    pub probes: u64,
    /// Large tasks whose bytes had been written ahead, and were right.
    pub copied: u64,
    /// Large tasks whose bytes should have been written ahead and were not there, or not theirs any more.
    pub missed: u64,
    /// Packets that were not for this worker, could not be read, or found no room.
    pub dropped: Dropped,
    /// The socket's counters.
    pub packets: Packets,
}

/// Packets that changed nothing, by reason.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Dropped {
    /// Not a legal packet, or its payload was not the one it described.
    pub unreadable: u64,
    /// From another address than the switch's.
    pub foreign: u64,
    /// Duplicates, or too late to tell.
    pub duplicate: u64,
    /// Not this worker's, or no room for late ones.
    pub unwanted: u64,
    /// No room for the payload.
    pub no_room: u64,
}

/// What went through the socket.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Packets {
    /// Datagrams taken.
    pub received: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that could not be sent.
    pub failed: u64,
    /// Datagrams lost on purpose, both ways.
    pub lost_on_purpose: u64,
    /// Datagrams doubled on purpose, both ways.
    pub doubled_on_purpose: u64,
    /// Datagrams held back on purpose, both ways.
    pub held_on_purpose: u64,
}

impl From<SocketCounts> for Packets {
    fn from(counts: SocketCounts) -> Self {
        let (inward, outward) = (counts.faults_in, counts.faults_out);
        Self {
            received: counts.received,
            sent: counts.sent,
            failed: counts.failed,
            lost_on_purpose: inward.lost + outward.lost,
            doubled_on_purpose: inward.doubled + outward.doubled,
            held_on_purpose: inward.held + outward.held,
        }
    }
}

impl fmt::Display for WorkerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} tasks in {:.1} s, busy {:.0} %, {} failed, {} repeated",
            self.name,
            self.finished,
            self.ran_s,
            self.busy * 100.0,
            self.failed + self.panicked,
            self.repeated
        )?;
        if self.drained { Ok(()) } else { f.write_str("; ended before it had finished what it held") }
    }
}

/// Service outcomes and times that the state machine does not count.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    tasks: u64,
    failed: u64,
    panicked: u64,
    busy: Nanos,
}

fn report(
    options: (&str, u32),
    ran: Nanos,
    drained: bool,
    served: Served,
    (stats, (copied, missed)): (WorkerStats, (u64, u64)),
    dropped: Dropped,
    packets: Packets,
) -> WorkerReport {
    let (name, dilation) = options;
    WorkerReport {
        schema: "sluice.worker.v1",
        name: name.to_owned(),
        ran_s: ran.0 as f64 / 1e9,
        busy: served.busy.0 as f64 / ran.0.max(1) as f64,
        dilation,
        drained,
        finished: stats.finished,
        failed: served.failed,
        panicked: served.panicked,
        repeated: stats.repeated_tasks,
        late: stats.late,
        written_off: stats.written_off.into(),
        repeated_tokens: stats.repeated_tokens.into(),
        early_tokens: stats.early_tokens,
        probes: stats.probes.into(),
        copied,
        missed,
        dropped: Dropped { duplicate: stats.duplicates, unwanted: stats.dropped.into(), ..dropped },
        packets,
    }
}
