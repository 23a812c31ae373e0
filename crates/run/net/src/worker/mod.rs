//! The worker's driver: one thread that receives packets, runs the service and answers (Rain §3.2.1).
//!
//! The state machine decides; this module adds the socket, the service and the registration. While a
//! service runs, packets wait in the socket's buffer, and the kernel's timestamps account for that wait.
//! Under dilation the service's real time passes first; then the worker stays busy for (factor − 1) times
//! as long, but receives packets. A reply that is longer than a packet is kept, and its client asks for the
//! rest.

mod agent_reporter;
mod draining;
mod early;
mod engine;
mod lanes;
mod metrics;
mod options;
mod recent;
mod report;
mod run;
mod slots;
mod stopper;
mod traces;
mod turn;

use std::fmt;

use sluice_control::WorkerHello;

use crate::NetError;
use crate::pin::settle_thread;
use crate::service::Service;
use crate::udp::Socket;
use agent_reporter::AgentReporter;
pub use engine::EmulatedProcessor;
use engine::Engine;
pub use lanes::{LaneServer, LaneServerOptions, LaneService};
pub use metrics::WorkerMetrics;
use options::bind;
pub use options::{DRAIN_LIMIT, WorkerOptions};
pub use report::{Dropped, Packets, WorkerReport};
pub use slots::ServerMemory;
use sluice_rpc::registrar::WorkerRegistrar;
pub use stopper::Stopper;
pub use turn::Turn;

/// A worker that is ready to run.
pub struct Worker<S> {
    engine: Engine<S>,
    pin: Option<usize>,
    stopper: Stopper,
}

impl<S: Service> Worker<S> {
    /// Opens the socket and starts to register.
    ///
    /// # Errors
    /// The socket's errors, and [`NetError::Unreachable`] for an address to which no one could send.
    pub fn new(options: &WorkerOptions, service: S) -> Result<Self, NetError> {
        let socket = bind(options)?;
        let stopper = Stopper::new(socket.waker());
        let engine = engine(options, socket, service, (stopper.clone(), None))?;
        Ok(Self { engine, pin: options.pin, stopper })
    }

    /// What ends [`Worker::run`].
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Works on this thread until the worker is stopped and has drained: it takes no more tasks, and finishes
    /// those that it holds or that are on their way to it. [`WorkerReport::drained`] says whether it did so
    /// within [`WorkerOptions::drain_limit`].
    ///
    /// # Errors
    /// [`NetError::Refused`] if the controller refuses this worker, [`NetError::Pin`] if the thread cannot
    /// be pinned, and the error that ends the socket.
    pub fn run(self) -> Result<WorkerReport, NetError> {
        settle_thread(self.pin)?;
        self.engine.run()
    }
}

/// A worker that shares its thread with others; the owner of the thread calls each in turn.
pub struct SharedWorker<S>(Engine<S>);

impl<S: Service> SharedWorker<S> {
    /// Opens the socket and starts to register. The stopper ends all workers of the thread, and its waker
    /// also wakes the thread for this worker. The thread's owner decides about the core and the way of
    /// waiting, so these options are ignored. With a `processor`, the worker runs in that processor's time.
    ///
    /// # Errors
    /// As for [`Worker::new`].
    pub fn new(
        options: &WorkerOptions,
        service: S,
        stopper: Stopper,
        processor: Option<Box<dyn EmulatedProcessor>>,
    ) -> Result<Self, NetError> {
        let mut socket = bind(options)?;
        socket.share_waker(stopper.waker());
        engine(options, socket, service, (stopper, processor)).map(Self)
    }

    /// Handles what has arrived and what is due, without waiting.
    ///
    /// # Errors
    /// As for [`Worker::run`].
    pub fn turn(&mut self) -> Result<Turn, NetError> {
        self.0.turn()
    }

    /// The worker's socket, to wait for.
    pub fn socket(&mut self) -> &mut Socket {
        self.0.socket()
    }

    /// Whether the worker is registered.
    pub fn is_serving(&self) -> bool {
        self.0.is_serving()
    }

    /// The worker's report over its whole life.
    pub fn into_report(self) -> WorkerReport {
        self.0.into_report()
    }
}

/// Creates the engine of a worker, which starts to register.
fn engine<S: Service>(
    options: &WorkerOptions,
    socket: Socket,
    service: S,
    (stopper, processor): (Stopper, Option<Box<dyn EmulatedProcessor>>),
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
        recent: sluice_control::RecentWork::default(),
        refused_late: 0,
        server: options.memory.as_ref().map_or_else(String::new, |memory| memory.server.clone()),
        rejoins: 0,
        workers: 0,
        held: None,
    };
    let reporter = options.agent.clone().map(|file| AgentReporter::new(file, options.name.clone()));
    let bell = socket.waker();
    let registrar = WorkerRegistrar::worker(options.controller.clone(), hello.clone(), move || bell.wake())?;
    Ok(Engine::new(options, socket, hello, (registrar, reporter), service, (stopper, processor)))
}

impl<S> fmt::Debug for Worker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}
