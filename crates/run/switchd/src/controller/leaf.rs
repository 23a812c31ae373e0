//! A leaf's side of a fabric (Horus §3.2, A.3): its rack's controller, and a thread that keeps the leaf
//! registered with the controller above.
//!
//! The thread sleeps until the rack's pools change or the controller above answers. No task depends on it:
//! while the controller above is gone, spine and leaf continue with what they know of each other.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sluice_control::{LeafAction, LeafLine, WorkerHello};
use sluice_net::NetError;
use sluice_rpc::registrar::{Controllers, RegistrarEvent, WorkerRegistrar};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Endpoint, SliceId, sizes::QUOTA_MAX};

use super::runner::{ControllerObserver, LeafWake};
use super::start::{ControllerOptions, start};
use crate::SwitchdError;
use crate::rpc::RpcServer;
use crate::switch::TablePort;

/// The settings of a leaf.
pub struct LeafOptions {
    /// The rack's controller, whose switch is the leaf.
    pub rack: ControllerOptions,
    /// The leaf's name at the controller above. Its certificate must grant this name.
    pub name: String,
    /// The address at which its spine reaches the leaf.
    pub at: Endpoint,
    /// 64 random bits, drawn once per start.
    pub life: u64,
    /// The controller above, and the controllers of other spines, which stand in for it.
    pub above: Controllers,
    pub tables: TablePort,
}

/// A rack's controller, and its registration with the controller above. Dropping it ends both.
pub struct Leaf {
    server: RpcServer,
    /// Whether the spine was told that the leaf ends, and knows.
    has_left: Arc<AtomicBool>,
    bell: Sender<LeafWake>,
    thread: Option<JoinHandle<()>>,
}

impl Leaf {
    /// Starts the controller and the registration, each on a thread of its own.
    ///
    /// # Errors
    /// As [`start_controller`](super::start_controller).
    pub fn start(options: LeafOptions) -> Result<Self, SwitchdError> {
        let (bell, heard) = mpsc::channel();
        let LeafOptions { rack, name, at, life, above, tables } = options;
        let server = start(rack, ControllerObserver::Leaf(bell.clone()))?;
        let state = LeafLine::new(name, at, life, QUOTA_MAX);
        let has_left = Arc::new(AtomicBool::new(false));
        let line = LeafRegistration {
            state,
            above,
            tables,
            bell: bell.clone(),
            registrars: HashMap::new(),
            out: Vec::new(),
            again: Vec::new(),
            has_left: Arc::clone(&has_left),
        };
        let run = move || line.run(&heard);
        let thread = thread::Builder::new().name("leaf-line".to_owned()).spawn(run);
        let thread = thread.map_err(|why| NetError::Thread { name: "leaf-line", why })?;
        Ok(Self { server, has_left, bell, thread: Some(thread) })
    }

    /// The rack's controller.
    pub const fn server(&self) -> &RpcServer {
        &self.server
    }

    /// Tells the controller above that the leaf ends, so that its spine hands no more tasks down.
    pub fn leave(&self) {
        // Without its thread the leaf is not registered either.
        let _ = self.bell.send(LeafWake::End);
    }

    /// Whether the controller above has ended the registration.
    pub fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        // The thread may have ended already.
        let _ = self.bell.send(LeafWake::Stop);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

/// How long to wait before an action is repeated for which no thread could be started.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

struct LeafRegistration {
    state: LeafLine,
    above: Controllers,
    tables: TablePort,
    bell: Sender<LeafWake>,
    registrars: HashMap<SliceId, WorkerRegistrar>,
    out: Vec<LeafAction>,
    /// Actions that could not be carried out.
    again: Vec<LeafAction>,
    has_left: Arc<AtomicBool>,
}

impl LeafRegistration {
    fn run(mut self, heard: &Receiver<LeafWake>) {
        loop {
            let is_done = self.again.is_empty() && self.out.is_empty();
            let patience = if is_done { Duration::MAX } else { AGAIN_AFTER };
            match heard.recv_timeout(patience) {
                Ok(LeafWake::Sizes(sizes)) => self.state.sized(sizes, &mut self.out),
                Ok(LeafWake::Above) => self.listen(),
                Ok(LeafWake::End) => self.state.end(&mut self.out),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(LeafWake::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            let before = mem::take(&mut self.again);
            for action in before.into_iter().chain(mem::take(&mut self.out)) {
                if let Err(why) = self.perform(action.clone()) {
                    sluice_log::log!(LeafStepFailed, %why, "{why}; trying again in {AGAIN_AFTER:?}");
                    self.again.push(action);
                }
            }
            if self.state.has_ended() {
                self.has_left.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Takes the events of all registrars.
    fn listen(&mut self) {
        let mut left = Vec::new();
        for (pool, registrar) in &self.registrars {
            while let Some(event) = registrar.try_next() {
                match event {
                    RegistrarEvent::Granted(grant) => self.state.granted(*pool, &grant, &mut self.out),
                    RegistrarEvent::Left { .. } => left.push(*pool),
                    // The registrar logs these events itself and continues.
                    RegistrarEvent::Wait { .. }
                    | RegistrarEvent::Refused { .. }
                    | RegistrarEvent::Lost { .. } => {}
                }
            }
        }
        for pool in left {
            self.registrars.remove(&pool);
            self.state.left(pool, &mut self.out);
        }
    }

    fn leave(&mut self, pool: SliceId) {
        if let Some(registrar) = self.registrars.get(&pool) {
            return registrar.leave();
        }
        // No registration of this pool was attempted yet, so its waiting actions are removed.
        let of = |action: &LeafAction| match action {
            LeafAction::Say { pool, .. } => Some(*pool),
            LeafAction::Leave(_) | LeafAction::Link(..) => None,
        };
        self.again.retain(|action| of(action) != Some(pool));
        self.state.left(pool, &mut self.out);
    }

    fn perform(&mut self, action: LeafAction) -> Result<(), SwitchdError> {
        match action {
            LeafAction::Say { pool, hello, at_once } => self.renew(pool, hello, at_once)?,
            LeafAction::Leave(pool) => self.leave(pool),
            LeafAction::Link(pool, row) => {
                let answers = self.tables.call(vec![TableOp::SetSpine(pool, row)])?;
                if answers != [TableAnswer::Done] {
                    let at = row.at;
                    sluice_log::log!(
                        LeafStepFailed,
                        %at,
                        "the leaf does not take its spine at {at}: {answers:?}"
                    );
                }
            }
        }
        Ok(())
    }

    fn renew(&mut self, pool: SliceId, hello: WorkerHello, at_once: bool) -> Result<(), NetError> {
        match self.registrars.get(&pool) {
            Some(registrar) if at_once => registrar.set_hello(hello),
            Some(registrar) => registrar.set_hello_later(hello),
            None => {
                let bell = self.bell.clone();
                // The receiving thread outlives its registrars.
                let wake = move || drop(bell.send(LeafWake::Above));
                self.registrars.insert(pool, WorkerRegistrar::worker(self.above.clone(), hello, wake)?);
            }
        }
        Ok(())
    }
}
