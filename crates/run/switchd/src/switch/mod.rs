//! The switch on a plain socket: one thread that takes batches of datagrams through a
//! [`Program`](sluice_switch::Program).
//!
//! Between two batches it takes the controller's steps. What goes round ([`Verdict::Again`]) waits until what
//! arrived meanwhile has passed. A payload that does not fit its queue entry waits in a bounded slab; its
//! cell is reserved before the pass and given back if the task need not wait. With [`Delays`], arrivals and
//! departures are held as long as the links and passes of a testbed would take.
//! A task is older by the time that it lay in the socket, which the kernel's stamps tell.
//!
//! No lock, no allocation and no system call per packet; other threads see its counts after each batch.
//!
//! [`Verdict::Again`]: sluice_switch::Verdict::Again

mod config;
mod counters;
mod delays;
mod mailbox;
mod plane;
mod slab;
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

/// How often the kernel is asked what it dropped.
const DROPS_EVERY: Nanos = Nanos::from_millis(100);

/// A switch that listens, to be run on a thread of its own.
pub struct SwitchDriver {
    socket: Socket,
    plane: Plane,
    mailbox: Mailbox,
    handle: SwitchHandle,
    core: Option<usize>,
    drops_asked: Nanos,
}

/// What other threads hold of a running switch.
#[derive(Clone)]
pub struct SwitchHandle {
    tables: TablePort,
    counters: SwitchCounters,
    stop: Arc<AtomicBool>,
    waker: Waker,
    local: SocketAddr,
}

impl SwitchDriver {
    /// Binds the socket and lays out the program's memory.
    ///
    /// # Errors
    /// [`NetError::Bind`] when the address cannot be had, [`NetError::Socket`] when the kernel refuses an option.
    ///
    /// # Panics
    /// If the program's size is not sound; see
    /// [`ProgramSettings::build`](sluice_switch::registry::ProgramSettings::build).
    pub fn new(config: &SwitchConfig) -> Result<Self, NetError> {
        let options = SocketOptions {
            datagram_max: config.datagram_max + config.behind.map_or(0, |_| detour::HEAD_BYTES),
            // A plain server takes one datagram after the other.
            batch: if config.program.traits().software.is_some() { 1 } else { BATCH },
            // What lies in the socket while this process stands still makes its task older.
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

    /// Where it listens.
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// For other threads.
    pub fn handle(&self) -> SwitchHandle {
        self.handle.clone()
    }

    /// Switches until told to stop.
    ///
    /// # Errors
    /// [`NetError::Pin`] when the core cannot be had, [`NetError::Socket`] when the socket stops working.
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

    /// Waits for one batch and switches it; says how many datagrams it had. For a caller with a loop of its
    /// own.
    ///
    /// # Errors
    /// [`NetError::Socket`] when the socket stops working.
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

    /// Switches what has arrived, without waiting, until nothing goes round, all at a time that the caller
    /// says; and takes the controller's steps. For those that compare data planes.
    ///
    /// # Errors
    /// [`NetError::Socket`] when the socket stops working.
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

    /// What stands in a slice's queue. For those that compare data planes.
    pub fn parked(&self, slice: SliceId) -> Parked {
        self.plane.program.parked(slice)
    }

    /// Runs it on a new thread, with the errors of whoever has other switches too.
    ///
    /// # Errors
    /// [`NetError::Thread`] when the system has no thread left.
    pub fn spawn<E: From<NetError> + Send + 'static>(self) -> Result<JoinHandle<Result<(), E>>, NetError> {
        let builder = thread::Builder::new().name("switch".to_owned());
        builder.spawn(|| Ok(self.run()?)).map_err(|why| NetError::Thread { name: "switch", why })
    }

    /// The last batch, the controller's steps, and what both have to send.
    fn turn(&mut self, now: Nanos) {
        let (inbox, outbox) = self.socket.split();
        self.plane.batch(now, inbox, outbox);
        let refused = self.mailbox.answer(|op| self.plane.table(now, op, outbox));
        self.plane.tally.add_many(Count::Superseded, refused);
        outbox.flush();
        self.plane.tally.socket(&self.socket.counts());
        self.plane.tally.publish(self.plane.program.refusals(), &self.handle.counters);
    }
}

impl SwitchHandle {
    /// Of a switch whose thread sleeps in this socket.
    pub fn new(tables: TablePort, socket: &Socket) -> Self {
        Self {
            tables,
            counters: SwitchCounters::new(),
            stop: Arc::new(AtomicBool::new(false)),
            waker: socket.waker(),
            local: socket.local(),
        }
    }

    /// The way to the tables.
    pub fn tables(&self) -> TablePort {
        self.tables.clone()
    }

    /// What the switch has done so far.
    pub fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// Where it listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether the thread is to end.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends the switch's thread after its present batch.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
    }
}
