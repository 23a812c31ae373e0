//! Many hosts on one thread: workers that only hold their tasks, and a client that sends a schedule.
//!
//! For measuring a rack on a machine with fewer cores than hosts. Each host has its own socket,
//! registration and state machine; they share only the thread. The thread runs a host when its socket is
//! ready or its deadline has come, so one spinning core serves dozens of hosts within microseconds. Not for
//! services that compute, since one would delay all others.

mod replay;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use replay::Replay;
use sluice_net::clock::monotonic;
use sluice_net::pin::settle_thread;
use sluice_net::service::Service;
use sluice_net::udp::{Lateness, PublishedLateness, ReadySet, Socket, Waiting};
use sluice_net::worker::{EmulatedProcessor, SharedWorker, Stopper, Turn, WorkerReport};
use sluice_net::{ClientOptions, NetError, WorkerOptions};
use sluice_wire::Nanos;

use crate::processor::{HostCosts, TestbedProcessor};
use crate::start::ScheduleStart;

pub use replay::Player;

/// How often the group's state is published to other threads.
const PUBLISH_EVERY: Nanos = Nanos::from_millis(20);

/// Hosts that will share a thread.
pub struct HostGroup {
    hosts: Vec<Host>,
    ready: ReadySet,
    stopper: Stopper,
    pin: Option<usize>,
    standing: Arc<GroupStatus>,
    beginning: ScheduleStart,
}

/// A group's state, for other threads.
#[derive(Debug, Default)]
struct GroupStatus {
    late: PublishedLateness,
    serving: AtomicUsize,
}

struct Host {
    kind: Kind,
    due: Option<Nanos>,
    over: bool,
}

enum Kind {
    Worker(Box<SharedWorker<Box<dyn Service>>>),
    Replay(Box<Replay>),
}

/// A group's results.
#[derive(Clone, Debug)]
pub struct HostGroupReport {
    /// The reports of its workers, in the order in which they were added.
    pub workers: Vec<WorkerReport>,
    /// How late delayed packets left.
    pub late: Lateness,
}

impl HostGroup {
    /// An empty group. Its thread will wait as `waiting` says, pinned to a core if one is given.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the kernel has no file descriptors left.
    pub fn new(waiting: Waiting, pin: Option<usize>) -> Result<Self, NetError> {
        let ready = ReadySet::new(waiting)?;
        let stopper = Stopper::new(ready.waker());
        Ok(Self {
            hosts: Vec::new(),
            ready,
            stopper,
            pin,
            standing: Arc::default(),
            beginning: ScheduleStart::default(),
        })
    }

    /// The start time of the client's schedules.
    pub fn schedule_start(&self) -> ScheduleStart {
        self.beginning.clone()
    }

    /// Adds a worker, which starts to register. With `costs` it has a testbed's processor.
    ///
    /// # Errors
    /// As for [`SharedWorker::new`].
    pub fn worker(
        &mut self,
        options: &WorkerOptions,
        costs: Option<HostCosts>,
        service: Box<dyn Service>,
    ) -> Result<(), NetError> {
        let processor =
            costs.map(|costs| Box::new(TestbedProcessor::new(costs)) as Box<dyn EmulatedProcessor>);
        let worker = SharedWorker::new(options, service, self.stopper.clone(), processor)?;
        self.join(Kind::Worker(Box::new(worker)))
    }

    /// Adds a client that sends schedules; it starts to register.
    ///
    /// # Errors
    /// The socket's errors, and [`NetError::Unreachable`] for an address to which no one could send.
    pub fn player(&mut self, options: &ClientOptions) -> Result<Player, NetError> {
        let (replay, player) = Replay::new(options, self.ready.waker(), self.schedule_start())?;
        self.join(Kind::Replay(Box::new(replay)))?;
        Ok(player)
    }

    /// Runs the hosts on a new thread until they are stopped.
    ///
    /// # Errors
    /// [`NetError::Thread`] if the system has no thread left.
    pub fn spawn(self) -> Result<RunningHostGroup, NetError> {
        let (stopper, standing) = (self.stopper.clone(), Arc::clone(&self.standing));
        let builder = thread::Builder::new().name("hosts".to_owned());
        let thread = builder.spawn(|| self.run()).map_err(|why| NetError::Thread { name: "hosts", why })?;
        Ok(RunningHostGroup { stopper, standing, thread })
    }

    fn join(&mut self, mut kind: Kind) -> Result<(), NetError> {
        self.ready.add(kind.socket().fd(), self.hosts.len())?;
        self.hosts.push(Host { kind, due: Some(Nanos(0)), over: false });
        Ok(())
    }

    fn run(mut self) -> Result<HostGroupReport, NetError> {
        settle_thread(self.pin)?;
        let mut publish_at = Nanos(0);
        while self.is_running() {
            let due = self.hosts.iter().filter_map(|host| host.due).chain([publish_at]).min();
            let called = self.ready.wait(due)?;
            for ready in self.ready.ready() {
                let host = &mut self.hosts[ready.token];
                if ready.error {
                    host.kind.socket().take_errors();
                }
                host.due = Some(Nanos(0));
            }
            let now = monotonic();
            for host in &mut self.hosts {
                if called || host.due.is_some_and(|due| due <= now) {
                    host.turn()?;
                }
            }
            if publish_at <= now {
                publish_at = now + PUBLISH_EVERY;
                self.publish();
            }
        }
        Ok(self.report())
    }

    /// Whether one of the workers still runs; without workers, whether the group was not stopped.
    fn is_running(&self) -> bool {
        let mut workers = self.hosts.iter().filter(|host| matches!(host.kind, Kind::Worker(_))).peekable();
        if workers.peek().is_none() { !self.stopper.is_asked() } else { workers.any(|host| !host.over) }
    }

    fn publish(&mut self) {
        let late = self.lateness();
        self.standing.late.store(late);
        let serving = self.hosts.iter().filter(|host| match &host.kind {
            Kind::Worker(worker) => worker.is_serving(),
            Kind::Replay(_) => false,
        });
        self.standing.serving.store(serving.count(), Ordering::Relaxed);
    }

    fn lateness(&mut self) -> Lateness {
        let late = self.hosts.iter_mut().map(|host| host.kind.socket().counts().late);
        late.fold(Lateness::default(), Lateness::and)
    }

    fn report(mut self) -> HostGroupReport {
        let late = self.lateness();
        let workers = self.hosts.into_iter().filter_map(|host| match host.kind {
            Kind::Worker(worker) => Some(worker.into_report()),
            Kind::Replay(_) => None,
        });
        HostGroupReport { workers: workers.collect(), late }
    }
}

impl Host {
    fn turn(&mut self) -> Result<(), NetError> {
        let turn = match &mut self.kind {
            _ if self.over => Turn::Over,
            Kind::Worker(worker) => worker.turn()?,
            Kind::Replay(replay) => replay.turn()?,
        };
        self.due = match turn {
            Turn::At(due) => due,
            Turn::Over => {
                self.over = true;
                None
            }
        };
        Ok(())
    }
}

impl Kind {
    fn socket(&mut self) -> &mut Socket {
        match self {
            Self::Worker(worker) => worker.socket(),
            Self::Replay(replay) => replay.socket(),
        }
    }
}

/// A running group.
pub struct RunningHostGroup {
    stopper: Stopper,
    standing: Arc<GroupStatus>,
    thread: JoinHandle<Result<HostGroupReport, NetError>>,
}

impl RunningHostGroup {
    /// Lets the workers finish the tasks that they hold and leave, and waits for them.
    ///
    /// # Errors
    /// The error that ended the group early.
    pub fn end(self) -> Result<HostGroupReport, NetError> {
        self.stopper.stop();
        self.thread.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
    }

    /// How many of the workers are registered.
    pub fn serving(&self) -> usize {
        self.standing.serving.load(Ordering::Relaxed)
    }

    /// How late delayed packets left, as last published.
    pub fn lateness(&self) -> Lateness {
        self.standing.late.load()
    }

    /// Whether the group's thread has ended.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }
}
