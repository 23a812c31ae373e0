//! Keeps a host registered with the controller: registers it, renews the registration, and reports when
//! either fails.
//!
//! A [`Registrar`] has a thread of its own, so that the host's packet thread never waits for the
//! controller. The thread repeats one call: it sends what `set_hello` was given, turns the answer into a
//! [`RegistrarEvent`], and wakes the host's thread after each event. It calls as often as the controller
//! asks for, and at once after [`Registrar::renew_now`]. If the controller cannot be reached, the thread
//! retries after growing pauses of up to a second (twice a lease if the host is registered), and logs this.
//! If the controller refuses the registration, the thread asks again every second: one refusal must not
//! exclude a registered host for good.
//!
//! A host may have several [`Controllers`], each with its own switch (a spine). It uses the first one, its
//! home. If the home has been silent for a lease, the host registers with the next controller, and returns
//! once the home answers again.

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

/// Keeps a worker registered.
pub type WorkerRegistrar = Registrar<WorkerRole>;
/// Keeps a client registered.
pub type ClientRegistrar = Registrar<ClientRole>;

/// Keeps a server registered.
pub type ServerRegistrar = Registrar<ServerRole>;

/// Keeps a host registered with the controller. Dropping it stops the calls without leaving.
pub struct Registrar<R: Role> {
    shared: Arc<RegistrarShared<R>>,
    thread: Option<JoinHandle<()>>,
}

impl Registrar<WorkerRole> {
    /// Registers a worker and keeps it registered. The registrar fills in `held` in `hello`. `wake` is
    /// called after each event, on another thread.
    ///
    /// # Errors
    /// [`RpcError::Thread`] if the system has no thread left.
    pub fn worker(
        controllers: impl Into<Controllers>,
        hello: WorkerHello,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, RpcError> {
        Self::start(controllers.into(), hello, Serial(0), Box::new(wake))
    }
}

impl Registrar<ClientRole> {
    /// Registers a client and keeps it registered. The registrar fills in `held` in `hello`;
    /// [`Registrar::set_floor`] updates `floor`. `wake` is called after each event, on another thread.
    ///
    /// # Errors
    /// [`RpcError::Thread`] if the system has no thread left.
    pub fn client(
        controllers: impl Into<Controllers>,
        hello: ClientHello,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, RpcError> {
        let floor = hello.floor;
        Self::start(controllers.into(), hello, floor, Box::new(wake))
    }

    /// Sets the oldest outstanding sequence number, or the next one if none is outstanding. Takes no lock
    /// and makes no system call, so it may be called at every change.
    pub fn set_floor(&self, floor: Serial) {
        self.shared.floor.store(floor.0, Ordering::Relaxed);
    }
}

impl Registrar<ServerRole> {
    /// Registers a server and keeps it registered. `wake` is called after each event, on another thread.
    ///
    /// # Errors
    /// [`RpcError::Thread`] if the system has no thread left.
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

    /// Takes the oldest event; `None` if there is none. Never blocks.
    pub fn try_next(&self) -> Option<RegistrarEvent<R::Grant>> {
        self.shared.events.pop()
    }

    /// Replaces what the host states about itself, and calls the controller at once.
    pub fn set_hello(&self, hello: R::Hello) {
        self.set_hello_later(hello);
        self.renew_now();
    }

    /// Replaces what the host states about itself from the next renewal on.
    pub fn set_hello_later(&self, hello: R::Hello) {
        self.shared.set_hello(hello);
    }

    /// Calls the controller at once instead of at the next renewal. May be called as often as one likes.
    pub fn renew_now(&self) {
        if !self.shared.hurry.swap(true, Ordering::Relaxed) {
            self.shared.bell.notify_one();
        }
    }

    /// Ends the registration. [`RegistrarEvent::Left`] follows within a few seconds, even if the controller
    /// is gone.
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
