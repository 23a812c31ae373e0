//! A host's line to the controller: registers, renews, and says when either fails.
//!
//! A [`Registrar`] has a thread of its own, so that the host's packet thread never waits for the controller.
//! It repeats one call: what it is told with `set_hello` goes there, what comes back is a [`RegistrarEvent`],
//! and after each event the host's thread is woken. Calls go out as often as the controller asks for, and at
//! once when the host says so ([`Registrar::renew_now`]). While the controller cannot be reached it is tried
//! again and again, ever more rarely up to once a second (where something is registered, twice a lease), and
//! the log says so. A registration that the controller refuses is asked for again every second: who was
//! registered once is never left out for good because of one refusal.
//!
//! A host may have several [`Controllers`], each with a switch of its own: spines. It stays with the first,
//! its home. When that has been silent for a lease it registers with the next one, and goes back once its
//! home answers again.

mod calls;
mod controllers;
mod role;
mod session;
mod shared;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use sluice_control::{ClientHello, ServerHello, WorkerHello};
use sluice_wire::Serial;
use tokio::runtime::Builder;

use crate::RpcError;
pub use controllers::Controllers;
pub use role::{ClientRole, Role, ServerRole, WorkerRole};
use session::Session;
pub use shared::RegistrarEvent;
use shared::RegistrarShared;

/// A worker's line to the controller.
pub type WorkerRegistrar = Registrar<WorkerRole>;
/// A client's line to the controller.
pub type ClientRegistrar = Registrar<ClientRole>;

/// A server's line to the controller.
pub type ServerRegistrar = Registrar<ServerRole>;

/// A host's line to the controller; dropping it hangs up without leaving.
pub struct Registrar<R: Role> {
    shared: Arc<RegistrarShared<R>>,
    thread: Option<JoinHandle<()>>,
}

impl Registrar<WorkerRole> {
    /// Registers a worker with the controller and keeps it registered. `held` in `hello` is filled in by
    /// itself. `wake` is called after each event, on another thread.
    ///
    /// # Errors
    /// [`RpcError::Thread`] when the system has no thread left.
    pub fn worker(
        controllers: impl Into<Controllers>,
        hello: WorkerHello,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, RpcError> {
        Self::start(controllers.into(), hello, Serial(0), Box::new(wake))
    }
}

impl Registrar<ClientRole> {
    /// Registers a client with the controller and keeps it registered. `held` in `hello` is filled in by
    /// itself, `floor` is kept up with [`Registrar::set_floor`]. `wake` is called after each event, on
    /// another thread.
    ///
    /// # Errors
    /// [`RpcError::Thread`] when the system has no thread left.
    pub fn client(
        controllers: impl Into<Controllers>,
        hello: ClientHello,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, RpcError> {
        let floor = hello.floor;
        Self::start(controllers.into(), hello, floor, Box::new(wake))
    }

    /// The oldest outstanding sequence number, or the next. No lock and no system call: as often as it
    /// changes.
    pub fn set_floor(&self, floor: Serial) {
        self.shared.floor.store(floor.0, Ordering::Relaxed);
    }
}

impl Registrar<ServerRole> {
    /// Registers a server with the controller and keeps it registered. `wake` is called after each event, on
    /// another thread.
    ///
    /// # Errors
    /// [`RpcError::Thread`] when the system has no thread left.
    pub fn server(
        controllers: impl Into<Controllers>,
        hello: ServerHello,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, RpcError> {
        Self::start(controllers.into(), hello, Serial(0), Box::new(wake))
    }
}

impl<R: Role> Registrar<R> {
    fn start(
        controllers: Controllers,
        hello: R::Hello,
        floor: Serial,
        wake: Box<dyn Fn() + Send + Sync>,
    ) -> Result<Self, RpcError> {
        let failed = |why| RpcError::Thread { name: R::THREAD, why };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let shared = Arc::new(RegistrarShared::new(hello, floor, wake));
        let theirs = Arc::clone(&shared);
        let run = move || runtime.block_on(async { Session::new(controllers, theirs).run().await });
        let thread = thread::Builder::new().name(R::THREAD.to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// The oldest event that was not taken yet. Never blocks.
    pub fn try_next(&self) -> Option<RegistrarEvent<R::Grant>> {
        self.shared.events.pop()
    }

    /// Says something else from now on, and says it at once.
    pub fn set_hello(&self, hello: R::Hello) {
        self.set_hello_later(hello);
        self.renew_now();
    }

    /// Says something else from the next renewal on.
    pub fn set_hello_later(&self, hello: R::Hello) {
        self.shared.set_hello(hello);
    }

    /// Calls the controller at once instead of at the next renewal; may be said as often as one likes.
    pub fn renew_now(&self) {
        if !self.shared.hurry.swap(true, Ordering::Relaxed) {
            self.shared.bell.notify_one();
        }
    }

    /// Ends the registration; [`RegistrarEvent::Left`] says when it is done, within a few seconds even if the
    /// controller is gone.
    pub fn leave(&self) {
        self.shared.leaving.store(true, Ordering::Relaxed);
        self.shared.bell.notify_one();
    }
}

impl<R: Role> Drop for Registrar<R> {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.shared.bell.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

impl<R: Role> fmt::Debug for Registrar<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registrar").field("role", &R::THREAD).finish_non_exhaustive()
    }
}
