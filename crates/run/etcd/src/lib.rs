//! Which of several controllers above a datacenter's spines leads, and where hosts are registered, in etcd.
//!
//! The leader's key is made with a lease that its process keeps alive. Who leads stores where hosts are, and
//! the store takes that only while the leader's key is the one that this process made. So a former leader
//! stores nothing, whatever it believes. What a controller writes to a switch does not depend on etcd: the
//! switch compares terms (`sluice_control`).
#![forbid(unsafe_code)]

mod contention;
mod options;
mod session;
mod shared;

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use contention::Contention;
pub use options::{EtcdError, EtcdOptions};
use session::EtcdSession;
pub use shared::{EtcdLead, OnLead};

/// How long an etcd that does not answer is waited for at the start, and the pause between two attempts.
const START_PATIENCE: Duration = Duration::from_secs(3);
const START_PAUSE: Duration = Duration::from_millis(100);

/// A connection to etcd. It contends for the lead once it is told to, and gives the lead up when it is
/// dropped.
#[derive(Debug)]
pub struct Etcd {
    options: EtcdOptions,
    lead: EtcdLead,
    /// Until it contends.
    runtime: Option<Runtime>,
    thread: Option<JoinHandle<()>>,
}

impl Etcd {
    /// Connects, and checks that etcd answers. An etcd that was just started has some time for that.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn connect(options: EtcdOptions) -> Result<Self, EtcdError> {
        let runtime = Builder::new_current_thread().enable_all().build().map_err(EtcdError::Thread)?;
        options.check()?;
        let unusable = |why: String| {
            let next = options.next_step(&why);
            EtcdError::Unusable { at: options.endpoints.join(","), why, next }
        };
        runtime.block_on(answers(&options)).map_err(unusable)?;
        let lead = EtcdLead::new(options.lease());
        Ok(Self { options, lead, runtime: Some(runtime), thread: None })
    }

    /// Whether this process leads. Clones share what is known.
    pub fn lead(&self) -> EtcdLead {
        self.lead.clone()
    }

    /// Contends for the lead from now on, on a thread of its own, as the controller at `at`.
    ///
    /// # Errors
    /// [`EtcdError::Thread`] if the system has no thread left.
    pub fn contend(&mut self, at: String, on_lead: OnLead) -> Result<(), EtcdError> {
        let Some(runtime) = self.runtime.take() else { return Ok(()) };
        let contention = Contention::new(self.options.clone(), Arc::clone(&self.lead.0), at, on_lead);
        let run = move || runtime.block_on(contention.run());
        self.thread =
            Some(thread::Builder::new().name("etcd".to_owned()).spawn(run).map_err(EtcdError::Thread)?);
        Ok(())
    }
}

/// Waits until etcd answers.
async fn answers(options: &EtcdOptions) -> Result<(), String> {
    let began = Instant::now();
    let mut member = 0;
    loop {
        let answer = async { EtcdSession::open(options, member).await?.load().await };
        match Box::pin(answer).await {
            Ok(_) => return Ok(()),
            Err(why) if began.elapsed() >= START_PATIENCE => return Err(why),
            Err(_) => sleep(START_PAUSE).await,
        }
        member += 1;
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.lead.0.end();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; the lease ends by itself.
            thread.join().ok();
        }
    }
}
