//! The switch on a plain socket: one thread that passes batches of datagrams through a
//! [`Program`](sluice_switch::Program).
//!
//! Between two batches the thread carries out the controller's table steps. A recirculated packet
//! ([`Verdict::Again`]) waits until the packets that arrived meanwhile have passed. A payload that does not
//! fit into its queue entry waits in a bounded slab; its cell is reserved before the pass, and freed if the
//! task need not wait. With [`Delays`], arrivals and departures are delayed by the time that a testbed's
//! links and passes would take. A task's age includes the time that it spent in the socket, which the
//! kernel's timestamps tell.
//!
//! There is no lock, allocation or system call per packet; other threads see the counters after each batch.
//!
//! [`Verdict::Again`]: sluice_switch::Verdict::Again

mod config;
mod counters;
mod delays;
mod mailbox;
mod metrics;
mod plane;
mod slab;
mod traces;
mod writes;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use sluice_switch::Parked;
use sluice_wire::{Nanos, SliceId};

pub use config::{SLAB_BYTES, SwitchConfig, SwitchPlace};
pub use counters::{Count, SwitchCounters};
pub use delays::Delays;
pub use mailbox::{Mailbox, TablePort};

use crate::detour;
use sluice_net::NetError;
use sluice_net::clock::monotonic;
use sluice_net::pin::{pin_thread, sharpen_timers};
use sluice_net::udp::{BATCH, Socket, SocketOptions, Wait, Waker};

use plane::Plane;

/// How often the kernel is asked how many datagrams it dropped.
const DROPS_EVERY: Nanos = Nanos::from_millis(100);

/// A bound switch, to be run on a thread of its own.
pub struct SwitchDriver {
    socket: Socket,
    plane: Plane,
    mailbox: Mailbox,
    handle: SwitchHandle,
    core: Option<usize>,
    drops_asked: Nanos,
}

/// A running switch as other threads see it.
#[derive(Clone)]
pub struct SwitchHandle {
    tables: TablePort,
    counters: SwitchCounters,
    end: Arc<SwitchEnd>,
    waker: Waker,
    local: SocketAddr,
}

/// How far a switch is with its end.
#[derive(Debug, Default)]
struct SwitchEnd {
    /// New tasks are no longer taken.
    drains: AtomicBool,
    /// While it drains: no task is in the switch.
    rests: AtomicBool,
    stop: AtomicBool,
}

impl SwitchDriver {
    /// Binds the socket and allocates the program's tables.
    ///
    /// # Errors
    /// [`NetError::Bind`] if the address cannot be bound, [`NetError::Socket`] if the kernel refuses an
    /// option.
    ///
    /// # Panics
    /// If the program's size is invalid; see
    /// [`ProgramSettings::build`](sluice_switch::registry::ProgramSettings::build).
    pub fn new(config: &SwitchConfig) -> Result<Self, NetError> {
        let options = SocketOptions {
            datagram_max: config.datagram_max + config.behind.map_or(0, |_| detour::HEAD_BYTES),
            // A plain server handles one datagram after the other.
            batch: if config.program.traits().software.is_some() { 1 } else { BATCH },
            // Timestamps: the time that a SUBMIT spends in the socket while this process stands still adds
            // to its task's age.
            stamps: true,
            refusals: false,
            waiting: config.waiting,
            faults: config.faults.clone(),
        };
        let socket = Socket::bind(config.at, &options)?;
        let (tables, mailbox) = Mailbox::new(socket.waker());
        let handle = SwitchHandle::new(tables, &socket);
        let plane = Plane::new(config, socket.local());
        Ok(Self { socket, plane, mailbox, handle, core: config.core, drops_asked: Nanos(0) })
    }

    /// The address on which the switch listens.
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// For other threads.
    pub fn handle(&self) -> SwitchHandle {
        self.handle.clone()
    }

    /// Runs the switch until it is stopped.
    ///
    /// # Errors
    /// [`NetError::Pin`] if the thread cannot be pinned to its core, [`NetError::Socket`] if the socket
    /// fails.
    pub fn run(mut self) -> Result<(), NetError> {
        if let Some(core) = self.core {
            pin_thread(core)?;
        }
        sharpen_timers();
        while !self.handle.is_stopped() {
            self.step()?;
        }
        self.socket.flush();
        Ok(())
    }

    /// Waits for one batch and handles it. Returns how many datagrams it had. For callers with a loop of
    /// their own.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the socket fails.
    pub fn step(&mut self) -> Result<usize, NetError> {
        let wait = match self.plane.next_due() {
            Some(Nanos(0)) => Wait::Poll,
            Some(due) => Wait::Until(due),
            None => Wait::Forever,
        };
        let taken = self.socket.receive(wait)?;
        let now = monotonic();
        self.turn(now);
        if now.since(self.drops_asked) > DROPS_EVERY {
            self.drops_asked = now;
            self.plane.tally.set(Count::KernelDropped, self.socket.kernel_drops());
        }
        Ok(taken)
    }

    /// Handles all packets that have arrived, without waiting, until none recirculates, and carries out the
    /// controller's steps. `now` is the time of all passes. For tests that compare data planes.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the socket fails.
    pub fn step_at(&mut self, now: Nanos) -> Result<usize, NetError> {
        let mut taken = 0;
        loop {
            taken += self.socket.receive_at(now)?;
            self.turn(now);
            if self.plane.next_due() != Some(Nanos(0)) {
                return Ok(taken);
            }
        }
    }

    /// The contents of a slice's queue. For tests that compare data planes.
    pub fn parked(&self, slice: SliceId) -> Parked {
        self.plane.program.parked(slice)
    }

    /// Runs the switch on a new thread. The error type is the caller's, who may run other kinds of switches
    /// too.
    ///
    /// # Errors
    /// [`NetError::Thread`] if the system has no thread left.
    pub fn spawn<E: From<NetError> + Send + 'static>(self) -> Result<JoinHandle<Result<(), E>>, NetError> {
        let builder = thread::Builder::new().name("switch".to_owned());
        builder.spawn(|| Ok(self.run()?)).map_err(|why| NetError::Thread { name: "switch", why })
    }

    /// Handles the last batch and the controller's steps, and sends the resulting packets.
    fn turn(&mut self, now: Nanos) {
        let (inbox, outbox) = self.socket.split();
        self.plane.takes_tasks = !self.handle.end.drains.load(Ordering::Relaxed);
        self.plane.batch(now, inbox, outbox);
        let refused = self.mailbox.answer(|op| self.plane.table(now, op, outbox));
        self.plane.tally.add_many(Count::Superseded, refused);
        outbox.flush();
        self.plane.tally.socket(&self.socket.counts());
        self.plane.tally.publish(self.plane.program.refusals(), &self.handle.counters);
        if let Some(traces) = &mut self.plane.traces {
            traces.hand_over();
        }
        if !self.plane.takes_tasks {
            self.handle.end.rests.store(self.plane.rests(), Ordering::Relaxed);
        }
    }
}

impl SwitchHandle {
    /// The handle of a switch whose thread sleeps in this socket.
    pub fn new(tables: TablePort, socket: &Socket) -> Self {
        Self::beside(tables, socket.waker(), socket.local())
    }

    /// The handle of a switch at `local` whose thread this waker wakes.
    pub fn beside(tables: TablePort, waker: Waker, local: SocketAddr) -> Self {
        Self { tables, counters: SwitchCounters::new(), end: Arc::default(), waker, local }
    }

    /// The sender of table steps.
    pub fn tables(&self) -> TablePort {
        self.tables.clone()
    }

    /// The switch's counters.
    pub fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// The address on which the switch listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether the switch's thread was told to end.
    pub fn is_stopped(&self) -> bool {
        self.end.stop.load(Ordering::Relaxed)
    }

    /// Makes a switch on a socket take no new tasks, and go on with all else. Clients hear nothing of the
    /// tasks that it does not take, and submit them again to the next life of the switch.
    pub fn drain(&self) {
        self.end.drains.store(true, Ordering::Relaxed);
        self.waker.wake();
    }

    /// Whether a switch that drains holds no task any more.
    pub fn rests(&self) -> bool {
        self.end.rests.load(Ordering::Relaxed)
    }

    /// Ends the switch's thread after its present batch.
    pub fn stop(&self) {
        self.end.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}
