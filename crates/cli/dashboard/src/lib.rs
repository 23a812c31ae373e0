//! `sluice dashboard`: a page that shows racks as they run, a study as it grows, or two results beside each
//! other. What `status`, `move` and `map` do is one click there.
//!
//! One thread asks the controllers once a second and keeps the last minutes; the same thread serves the
//! page, its ES modules and `state.json` (`schemas/dashboard.v1.json`) over HTTP/1.1. Charts are made here,
//! by the report's code; the page puts them in their places. Without TLS only this machine is served. With
//! TLS a browser shows a certificate, whose role says what it may do: a reader sees, an operator changes.
//!
//! Left out: passwords, several users' settings, anything kept on disk.
#![forbid(unsafe_code)]

mod answer;
mod assets;
mod document;
mod door;
mod port;
mod racks;
mod shown;
mod visitor;
mod watched;

use std::rc::Rc;
use std::thread::{self, JoinHandle};

use sluice_support::fail::{Failure, Outcome};
use sluice_system::{Attempt, advice};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

pub use port::DashboardPort;
pub use watched::{CONTROLLERS_MAX, Watched};

use shown::Prepared;

/// A page that is served; dropping it ends that.
#[derive(Debug)]
#[must_use = "the page is served until it is dropped"]
pub struct Dashboard {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Dashboard {
    /// Serves the page on a thread of its own.
    ///
    /// # Errors
    /// More controllers than [`CONTROLLERS_MAX`]; results that cannot be read; a system without a thread.
    pub fn start(port: DashboardPort, watched: Watched) -> Outcome<Self> {
        let prepared = Prepared::of(watched)?;
        let failed = |why: std::io::Error| {
            let helps = advice(Attempt::Thread, &why);
            Failure::broken(format!("cannot start the dashboard's thread: {why}; {helps}"))
        };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            let serving = async {
                tokio::task::spawn_local(port.serve(Rc::new(prepared.show())));
                // Dropping the sender stops the thread, with all that it serves, as a message does.
                stopped.await.ok();
            };
            LocalSet::new().block_on(&runtime, serving);
        };
        let thread = thread::Builder::new().name("sluice-page".to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Whether it still runs; if not, the log says why.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing left to stop.
            thread.join().ok();
        }
    }
}
