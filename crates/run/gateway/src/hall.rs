//! What all connections of a gateway share: the rack, who waits for room in it, cursors and counts.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use sluice_net::TaskType;
use sluice_net::client::CompletionQueue;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::counts::{Counting, Protocol};
use crate::outcome::{CommandOutcome, NotDone};
use crate::rack::{GatewayRack, TaskLimits};
use crate::resp::{Cursors, KvTask, NotTaken, RespDesk, RespStanding};
use crate::talk::Talk;

/// With so many bytes of replies unread by all clients together, those that have some get no more.
const UNREAD_ALL_MAX: usize = 256 << 20;

/// How often connections that wait for room are woken, whoever has ended.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The hall.
pub(crate) struct Hall {
    rack: GatewayRack,
    counting: Counting,
    queue: CompletionQueue,
    talks: RefCell<HashMap<u32, Rc<Talk>>>,
    next: Cell<u32>,
    /// Connections that wait for room for a task of each kind, the first first.
    waiting: RefCell<[VecDeque<u32>; 4]>,
    cursors: RefCell<Cursors>,
    unread: Cell<usize>,
    began: Instant,
    connections_max: usize,
    drains: watch::Receiver<bool>,
    /// gRPC's methods, and the types of their tasks.
    methods: HashMap<String, TaskType>,
}

impl Hall {
    pub(crate) fn new(
        rack: GatewayRack,
        counting: Counting,
        connections_max: usize,
        drains: watch::Receiver<bool>,
        methods: HashMap<String, TaskType>,
    ) -> Self {
        Self {
            rack,
            counting,
            queue: CompletionQueue::new(),
            talks: RefCell::default(),
            next: Cell::new(1),
            waiting: RefCell::default(),
            cursors: RefCell::default(),
            unread: Cell::new(0),
            began: Instant::now(),
            connections_max,
            drains,
            methods,
        }
    }

    pub(crate) const fn rack(&self) -> &GatewayRack {
        &self.rack
    }

    pub(crate) const fn counting(&self) -> &Counting {
        &self.counting
    }

    pub(crate) const fn queue(&self) -> &CompletionQueue {
        &self.queue
    }

    pub(crate) const fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// The type of a gRPC method's tasks.
    pub(crate) fn method(&self, path: &str) -> Option<TaskType> {
        self.methods.get(path).copied()
    }

    /// Whether the gateway takes nothing new any more.
    pub(crate) fn is_draining(&self) -> bool {
        *self.drains.borrow()
    }

    /// Wakes all connections that speak RESP, when the gateway drains.
    pub(crate) async fn tell_of_drain(&self) {
        self.drains().await;
        self.talks.borrow().values().for_each(|talk| talk.wake());
    }

    /// Wakes connections that wait for room which callers left who are gone.
    pub(crate) async fn look_for_room(&self) {
        loop {
            sleep(LOOK_EVERY).await;
            self.wake_waiting(usize::MAX);
        }
    }

    /// Waits until the gateway takes nothing new any more.
    pub(crate) async fn drains(&self) {
        let mut drains = self.drains.clone();
        // A sender that is gone ends the thread.
        drains.wait_for(|drains| *drains).await.ok();
    }

    /// Runs one task for HTTP or gRPC, and counts it.
    pub(crate) async fn run(
        &self,
        protocol: Protocol,
        of: TaskType,
        bytes: &[u8],
        limits: TaskLimits,
    ) -> Result<Vec<u8>, NotDone> {
        let began = self.now();
        let done = self.rack.run(of, bytes, limits).await;
        let outcome = done.as_ref().map_or_else(|why| why.kind.outcome(), |_| CommandOutcome::Done);
        self.counting.command(protocol, outcome, self.now() - began);
        self.counting.publish();
        self.wake_waiting(1);
        done
    }

    /// Counts a request that is no task.
    pub(crate) fn malformed(&self, protocol: Protocol) {
        self.counting.command(protocol, CommandOutcome::Malformed, 0);
    }

    /// The time since the gateway began, in ns.
    pub(crate) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// A new connection that speaks RESP.
    pub(crate) fn enter(&self) -> (u32, Rc<Talk>) {
        let mut talks = self.talks.borrow_mut();
        let mut id = self.next.get();
        while talks.contains_key(&id) {
            id = id.wrapping_add(1);
        }
        self.next.set(id.wrapping_add(1));
        let talk = Rc::new(Talk::new(id));
        talks.insert(id, Rc::clone(&talk));
        (id, talk)
    }

    /// The end of a connection. Outcomes of its tasks that are still to come are dropped.
    pub(crate) fn leave(&self, id: u32) {
        if let Some(talk) = self.talks.borrow_mut().remove(&id) {
            self.unread.set(self.unread.get() - talk.counted.get());
        }
    }

    /// All connections that speak RESP.
    pub(crate) fn talks(&self) -> Ref<'_, HashMap<u32, Rc<Talk>>> {
        self.talks.borrow()
    }

    /// Lets a connection wait until there may be room for a task of this kind.
    pub(crate) fn wait(&self, task: KvTask, id: u32) {
        let mut waiting = self.waiting.borrow_mut();
        let waiting = &mut waiting[task as usize];
        if waiting.back() != Some(&id) {
            waiting.push_back(id);
        }
    }

    /// Wakes so many connections for each kind of task. Whoever waited saw tasks before his own that had not
    /// been sent; each of them ends, and wakes somebody, unless its caller is gone.
    pub(crate) fn wake_waiting(&self, ended: usize) {
        let mut waiting = self.waiting.borrow_mut();
        for waiting in &mut *waiting {
            for _ in 0..ended.min(waiting.len()) {
                let id = waiting.pop_front();
                if let Some(talk) = id.and_then(|id| self.talks.borrow().get(&id).cloned()) {
                    talk.wake();
                }
            }
        }
    }

    /// Whether a connection with so many unread bytes may get more.
    pub(crate) fn may_go_on(&self, unread: usize) -> bool {
        unread == 0 || self.unread.get() <= UNREAD_ALL_MAX
    }

    /// Counts what a connection's client has not read now.
    pub(crate) fn count_unread(&self, talk: &Talk, unread: usize) {
        self.unread.set(self.unread.get() - talk.counted.replace(unread) + unread);
        self.counting.unread(self.unread.get());
    }

    /// What a session needs, for connection `id`.
    pub(crate) fn desk(&self, id: u32, now: u64) -> HallDesk<'_> {
        HallDesk { hall: self, id, now, cursors: self.cursors.borrow_mut() }
    }
}

/// The hall as one session sees it.
pub(crate) struct HallDesk<'h> {
    hall: &'h Hall,
    id: u32,
    now: u64,
    cursors: RefMut<'h, Cursors>,
}

impl RespDesk for HallDesk<'_> {
    fn submit(&mut self, tag: u32, task: KvTask, bytes: &[u8]) -> Result<(), NotTaken> {
        let tag = u64::from(self.id) << 32 | u64::from(tag);
        self.hall.rack.submit(&self.hall.queue, tag, task, bytes)
    }

    fn cursors(&mut self) -> &mut Cursors {
        &mut self.cursors
    }

    fn now(&self) -> u64 {
        self.now
    }

    fn count(&mut self, outcome: CommandOutcome, began: u64) {
        self.hall.counting.command(Protocol::Resp, outcome, self.now.saturating_sub(began));
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        self.hall.queue.recycle(bytes);
    }

    fn standing(&self) -> RespStanding {
        let metrics = self.hall.counting.metrics();
        RespStanding {
            clients: metrics.connections(Protocol::Resp),
            uptime_s: self.now / 1_000_000_000,
            commands: metrics.all_commands(Protocol::Resp),
        }
    }
}
