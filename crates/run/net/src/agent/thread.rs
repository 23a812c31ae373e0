//! The agent's thread: it reads the lines several times in an interval, and reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sluice_rpc::v1::ReportIntervalRequest;
use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_rpc::{Malformed, RenewedChannel, reason, v1};
use sluice_wire::tallies::SliceOthers;
use sluice_wire::{Nanos, WorkerId};
use tokio::runtime::Builder;
use tokio::sync::{Notify, mpsc};
use tokio::time::{sleep, timeout};

use super::server_agent::ServerAgent;
use super::{AgentOptions, messages};
use crate::NetError;
use crate::clock::Clock;
use crate::sys;

/// How often an interval's lines are read: a worker that ends a task with each sample must not fill its
/// ring in between.
const LOOKS: u64 = 8;
const LOOK_MIN: Nanos = Nanos::from_millis(1);
/// The shortest time limit of a report.
const PATIENCE: Duration = Duration::from_secs(1);

/// A running agent; dropping it stops the agent.
#[derive(Debug)]
pub struct RunningAgent {
    over: Arc<StopSignal>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct StopSignal {
    is_over: AtomicBool,
    bell: Notify,
}

/// Starts an agent on a thread of its own.
///
/// # Errors
/// [`NetError::Agent`] if a setting is out of its range, [`NetError::Thread`] if the system has no thread
/// left.
pub fn start_agent(options: AgentOptions) -> Result<RunningAgent, NetError> {
    options.settings.check()?;
    let failed = |why| NetError::Thread { name: "agent", why };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let over = Arc::new(StopSignal::default());
    let theirs = Arc::clone(&over);
    let run = move || {
        runtime.block_on(async {
            tokio::select! {
                () = AgentLoop::new(options).run() => {}
                () = theirs.came() => {}
            }
        });
    };
    let thread = std::thread::Builder::new().name("agent".to_owned()).spawn(run).map_err(failed)?;
    Ok(RunningAgent { over, thread: Some(thread) })
}

impl StopSignal {
    async fn came(&self) {
        while !self.is_over.load(Ordering::Acquire) {
            self.bell.notified().await;
        }
    }
}

impl Drop for RunningAgent {
    fn drop(&mut self) {
        self.over.is_over.store(true, Ordering::Release);
        self.over.bell.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing left to stop.
            thread.join().ok();
        }
    }
}

/// The controller's answer to a report.
type ReportAnswer = Result<ReportReply, String>;

struct ReportReply {
    /// When the reported interval ended.
    ended: Nanos,
    depths: Vec<(WorkerId, u8)>,
    others: Vec<SliceOthers>,
}

/// The agent's driver, and its connection to the controller.
struct AgentLoop {
    options: AgentOptions,
    clock: Clock,
    calls: ControllerClient<RenewedChannel>,
    answers: (mpsc::Sender<ReportAnswer>, mpsc::Receiver<ReportAnswer>),
    is_reporting: bool,
    complained: bool,
}

impl AgentLoop {
    fn new(options: AgentOptions) -> Self {
        Self {
            calls: ControllerClient::new(options.controller.connect()),
            clock: Clock::start(),
            answers: mpsc::channel(1),
            is_reporting: false,
            complained: false,
            options,
        }
    }

    async fn run(mut self) {
        let begins = self.first_interval_at();
        until(&self.clock, begins).await;
        let desk = ServerAgent::new(begins, self.options.settings, &self.options.lines);
        let mut desk = desk.expect("its settings were checked before the thread began");
        let pause = Nanos(self.options.settings.interval.0 / LOOKS).max(LOOK_MIN);
        loop {
            let next = desk.deadline().min(self.clock.now() + pause);
            tokio::select! {
                () = until(&self.clock, next) => {}
                answer = self.answers.1.recv() => self.on_report_answer(&mut desk, answer),
            }
            let now = self.clock.now();
            desk.read_samples(now);
            while let Some(interval) = desk.close(now) {
                let ago = now.since(interval.ended);
                let message =
                    messages::message(&self.options, &interval, sys::realtime().saturating_sub(ago.0));
                self.report(interval.ended, message);
                // Tasks that ended later belong to the next interval.
                desk.read_samples(now);
            }
        }
    }

    /// The start of the first interval: the last multiple of its length, or as the options say.
    fn first_interval_at(&self) -> Nanos {
        let (now, wall) = (self.clock.now(), sys::realtime());
        let into = wall % self.options.settings.interval.0;
        self.options.begins.unwrap_or(Nanos(now.0.saturating_sub(into)))
    }

    /// Sends one report at a time. An interval that ends while the controller does not answer is not
    /// reported.
    fn report(&mut self, ended: Nanos, interval: v1::AgentInterval) {
        if self.is_reporting {
            return;
        }
        self.is_reporting = true;
        let (mut calls, answers) = (self.calls.clone(), self.answers.0.clone());
        let patience = PATIENCE.max(Duration::from_nanos(interval.lasted_ns));
        tokio::spawn(async move {
            let request = ReportIntervalRequest { interval: Some(interval) };
            let answer = match timeout(patience, calls.report_interval(request)).await {
                Ok(Ok(answer)) => {
                    parse_reply(ended, &answer.into_inner()).map_err(|malformed| malformed.to_string())
                }
                Ok(Err(status)) => Err(reason(&status)),
                Err(_) => Err(format!("no answer within {patience:?}")),
            };
            // The agent may have ended.
            answers.send(answer).await.ok();
        });
    }

    fn on_report_answer(&mut self, desk: &mut ServerAgent, answer: Option<ReportAnswer>) {
        self.is_reporting = false;
        match answer {
            Some(Ok(ReportReply { ended, depths, others })) => {
                if std::mem::take(&mut self.complained) {
                    let server = &self.options.server;
                    sluice_log::log!(AgentHeard, server, "agent of {server}: the controller hears it again");
                }
                desk.set_depths(self.clock.now(), &depths);
                desk.add_others(ended, &others);
            }
            Some(Err(why)) if !self.complained => {
                self.complained = true;
                let (server, url) = (&self.options.server, self.options.controller.url());
                sluice_log::log!(
                    AgentUnheard,
                    server,
                    controller = url,
                    %why,
                    "agent of {server}: the controller at {url} does not hear it: {why}"
                );
            }
            Some(Err(_)) | None => {}
        }
    }
}

fn parse_reply(ended: Nanos, answer: &v1::ReportIntervalResponse) -> Result<ReportReply, Malformed> {
    Ok(ReportReply {
        ended,
        depths: answer.depths.iter().copied().map(messages::worker_depth).collect::<Result<_, _>>()?,
        others: answer.others.iter().copied().map(messages::others).collect::<Result<_, _>>()?,
    })
}

async fn until(clock: &Clock, at: Nanos) {
    sleep(Duration::from_nanos(at.since(clock.now()).0)).await;
}
