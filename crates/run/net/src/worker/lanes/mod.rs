//! A server of many cores that appears as several workers of a rack: one thread for packets, and cores
//! behind it (RingLeader under Rain).
//!
//! The packet thread replaces the NIC. It owns the socket, the lanes (workers with registrations of their
//! own over one memory of tasks, [`sluice_host::worker::Lanes`]) and the dispatcher of [`sluice_cores`]. A
//! task that comes over a lane goes to the dispatcher and from there to a core, which runs its service as a
//! coroutine; the packet thread answers tasks that have ended. Each service has a slice, a priority, and as
//! many lanes as its cores may hold tasks for. After each batch of packets, the thread adjusts each
//! service's tokens to the room that the cores have at its priority.
//!
//! Left out: adaptive depths, early tokens and patience, which the room makes unnecessary; an emulated
//! processor.

mod engine;
mod lane;
mod options;
#[allow(unsafe_code, reason = "a signal handler")]
mod overflow;
mod report;
mod serving;

use std::fmt;
use std::sync::Arc;

use sluice_control::WorkerHello;
use sluice_cores::{
    CoreDispatcher, CoreDispatcherSettings, CorePace, CoreThreads, RequestTable, ThreadSettings,
};
use sluice_host::worker::QUOTA_MAX;
use sluice_wire::{Nanos, TASK_BYTES_MAX};

use self::engine::{BehindLanes, LanesEngine};
use self::lane::ServerLane;
pub use self::options::{LaneServerOptions, LaneService};
use self::serving::ServiceHandler;
use super::options::bind;
use super::report::WorkerReport;
use super::stopper::Stopper;
use crate::NetError;
use crate::clock::Clock;
use crate::clock::monotonic;
use crate::pin::settle_thread;
use crate::service::Service;
use crate::sys;
use crate::udp::{Socket, Waiting};
use sluice_rpc::registrar::WorkerRegistrar;

/// How long an idle thread of cores polls before it sleeps, with adaptive waiting.
const SPINS: Nanos = Nanos::from_micros(20);
/// Longer than any task of a pool runs, even dilated: so a pool's tasks never yield.
const NEVER_YIELDS: Nanos = Nanos::from_millis(3_600_000);

/// A server of many cores that is ready to run.
pub struct LaneServer {
    engine: LanesEngine,
    pin: Option<usize>,
    stopper: Stopper,
}

impl LaneServer {
    /// Opens the socket, starts the cores and starts to register. Each coroutine serves with an instance
    /// from `make`, on the thread of its core.
    ///
    /// # Errors
    /// The socket's errors, [`NetError::Unreachable`] for an address to which no one could send, and
    /// [`NetError::NotForCores`] and [`NetError::Cores`] for unsupported settings.
    pub fn new<S: Service + 'static>(
        options: &LaneServerOptions,
        make: impl Fn() -> S + Send + Sync + 'static,
    ) -> Result<Self, NetError> {
        options.check()?;
        if options.batch && !make().batch(&|| ()) {
            let why = "its service has no such work (`Service::batch`)";
            return Err(NetError::NotForCores { what: "batch service", why });
        }
        let worker = &options.worker;
        let socket = bind(worker)?;
        let stopper = Stopper::new(socket.waker());
        let settings = engine::settings(options);
        let packet_max = sluice_wire::payload_bytes_max(worker.datagram_max);
        let lanes = lanes(options, &socket, &make().types())?;
        let table = RequestTable::new(lanes.len() * settings.held_max);
        let (dispatcher, seats) = CoreDispatcher::new(&behind(options)?, table.clone())?;
        let bell = socket.waker();
        let wake: Arc<dyn Fn() + Send + Sync> = Arc::new(move || bell.wake());
        let make: Arc<dyn Fn() -> ServiceHandler<S> + Send + Sync> =
            Arc::new(move || ServiceHandler::new(make(), TASK_BYTES_MAX as usize, packet_max));
        let threads = CoreThreads::spawn(seats, of_threads(options), &table, &make, &wake)?;
        let behind = BehindLanes { dispatcher, threads: Some(threads) };
        let engine = LanesEngine::new(options, settings, socket, lanes, behind, stopper.clone());
        Ok(Self { engine, pin: worker.pin, stopper })
    }

    /// What ends [`LaneServer::run`].
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Handles packets on this thread until the server is stopped and has finished the tasks that it holds.
    ///
    /// # Errors
    /// [`NetError::Refused`] if the controller refuses a lane, once the tasks of the others are answered;
    /// [`NetError::Pin`] if the thread cannot be pinned; [`NetError::Cores`] if a thread of cores has
    /// ended; and the error that ends the socket.
    pub fn run(self) -> Result<WorkerReport, NetError> {
        settle_thread(self.pin)?;
        self.engine.run()
    }
}

impl fmt::Debug for LaneServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaneServer").finish_non_exhaustive()
    }
}

/// Creates the lanes of all services, which start to register.
fn lanes(
    options: &LaneServerOptions,
    socket: &Socket,
    types: &[sluice_wire::TaskType],
) -> Result<Vec<ServerLane>, NetError> {
    let worker = &options.worker;
    let at = crate::identity::reachable(socket.local())?;
    let (each, now) = (options.lanes(), Clock::start().now());
    let of = options.services.iter().enumerate();
    let places = of.flat_map(|(service, of)| (1..=each).map(move |number| (service, of, number)));
    places
        .map(|(service, of, number)| {
            let hello = WorkerHello {
                name: format!("{}.{}.{number}", worker.name, of.slice),
                life: crate::identity::random_bits()?,
                at,
                slice: of.slice.clone(),
                types: types.to_vec(),
                labels: worker.labels.clone(),
                quota: QUOTA_MAX,
                capacity: worker.capacity / each as u32,
                recent: sluice_control::RecentWork::default(),
                refused_late: 0,
                server: worker.memory.as_ref().map_or_else(String::new, |memory| memory.server.clone()),
                rejoins: 0,
                workers: 0,
                held: None,
            };
            let bell = socket.waker();
            let line =
                WorkerRegistrar::worker(worker.controller.clone(), hello.clone(), move || bell.wake())?;
            Ok(ServerLane::new(options, hello, line, service, now))
        })
        .collect()
}

fn behind(options: &LaneServerOptions) -> Result<CoreDispatcherSettings, NetError> {
    let moves_every = options.moves_every();
    let LaneServerOptions { assignment, .. } = *options;
    let (nic, services, threads) = (options.nic()?, options.behind(), options.threads());
    Ok(CoreDispatcherSettings { nic, services, assignment, threads, moves_every })
}

fn of_threads(options: &LaneServerOptions) -> ThreadSettings {
    ThreadSettings {
        pace: CorePace {
            dilation: options.worker.dilation.max(1),
            yields_after: if options.pool { NEVER_YIELDS } else { CorePace::default().yields_after },
            ..CorePace::default()
        },
        clock: monotonic,
        batch: options.batch,
        spins: if options.worker.waiting == Waiting::Block { Nanos(0) } else { SPINS },
        stack_bytes: options.stack_bytes,
        on_stack: overflow::register_stack,
        on_start: |_| sys::sharpen_timers(),
    }
}
