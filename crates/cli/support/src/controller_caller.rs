//! Calls a controller, and writes its answers to the board.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_rpc::v1::{
    LeadRole, LinkState, StatusRequest, StatusResponse, TypeName, WatchRequest, WorkerPhase,
};
use sluice_rpc::{LEADER_HEADER, Remote, RenewedChannel};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};
use tonic::{Code, Status};

use crate::board::{Board, NoteKind, RackNow, SliceNow, SwitchNow, WorkerNow};
use crate::fail::{Failure, Outcome};
use crate::peers;
use crate::plan::Types;

/// The time limit of one call.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a call is repeated if the controller cannot answer it yet.
const WAITS: Duration = Duration::from_secs(10);
/// How often the board is updated, and how often a call is repeated that the controller cannot answer yet.
const ASK_EVERY: Duration = Duration::from_millis(200);

/// A caller of a controller; makes one call at a time.
pub struct ControllerCaller {
    runtime: Runtime,
    remote: Remote,
}

impl ControllerCaller {
    /// A caller of the controller at `remote`.
    pub fn new(remote: Remote) -> Outcome<Self> {
        Ok(Self { runtime: runtime()?, remote })
    }

    /// Makes a call that the controller may refuse; the error says why. A call that the controller cannot
    /// answer yet is repeated for a while.
    pub fn ask<T>(&self, call: impl AsyncFnMut(Calls) -> Result<T, Status>) -> Outcome<T> {
        self.runtime.block_on(ask(&self.remote, call))
    }

    /// Runs several calls, such as a change of the rack.
    pub fn change<T>(&self, change: impl AsyncFnOnce(&Remote) -> Outcome<T>) -> Outcome<T> {
        self.runtime.block_on(change(&self.remote))
    }

    /// The state of the rack; of several controllers, of which one leads, as the leader sees it.
    pub fn status(&self) -> Outcome<StatusResponse> {
        let mut left = self.remote.count();
        loop {
            let ask = async |mut calls: Calls| Ok(calls.status(StatusRequest {}).await?.into_inner().shown());
            let status = self.ask(ask)?;
            left -= 1;
            // A standby's answer turns to the next address.
            let is_standby =
                status.standing.as_ref().is_some_and(|standing| standing.role() == LeadRole::Standby);
            if !is_standby || left == 0 {
                return Ok(status);
            }
        }
    }
}

/// Makes a call that the controller may refuse; the error says why. A call that the controller cannot answer
/// yet is repeated for a while. Must be called inside a tokio runtime.
pub async fn ask<T>(remote: &Remote, mut call: impl AsyncFnMut(Calls) -> Result<T, Status>) -> Outcome<T> {
    let began = Instant::now();
    // Each call that fails turns to the next address.
    let mut left = remote.count();
    loop {
        let status = match timeout(PATIENCE, call(ControllerClient::new(remote.connect()))).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(status)) => status,
            Err(_) => Status::deadline_exceeded(""),
        };
        if sluice_rpc::is_silence(&status) {
            left = left.saturating_sub(1);
            if left == 0 {
                return Err(failed(remote, &status));
            }
            continue;
        }
        // A standby that is called alone cannot become another controller.
        let is_standby = status.metadata().contains_key(LEADER_HEADER) && remote.count() == 1;
        let says_not_now = status.code() == Code::Unavailable && status.source().is_none();
        if is_standby || !says_not_now || began.elapsed() > WAITS {
            return Err(failed(remote, &status));
        }
        sleep(ASK_EVERY).await;
    }
}

/// The state of the rack, asked for once. Must be called inside a tokio runtime.
pub async fn look(remote: &Remote, calls: &mut Calls) -> Outcome<StatusResponse> {
    match timeout(PATIENCE, calls.status(StatusRequest {})).await {
        Ok(Ok(answer)) => Ok(answer.into_inner().shown()),
        Ok(Err(status)) => Err(failed(remote, &status)),
        Err(_) => Err(failed(remote, &Status::deadline_exceeded(""))),
    }
}

/// The error for a call that ended with this status.
fn failed(remote: &Remote, status: &Status) -> Failure {
    let why = sluice_rpc::reason(status);
    if sluice_rpc::is_silence(status) {
        return silent(remote, &why);
    }
    Failure::bad_input(format!("the controller at {}: {why}", remote.url()))
}

/// The error if no controller answered.
fn silent(remote: &Remote, why: &str) -> Failure {
    let url = remote.url();
    Failure::bad_input(format!(
        "no controller answers at {url} ({why}); start one with `sluice switch`, or name it with --controller"
    ))
}

/// A connection to a controller.
pub type Calls = ControllerClient<RenewedChannel>;

fn runtime() -> Outcome<Runtime> {
    let built = Builder::new_current_thread().enable_all().build();
    built.map_err(|why| Failure::broken(format!("no runtime for gRPC: {why}")))
}

/// Keeps a board up to date until it is dropped.
pub struct Reporter {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Reporter {
    /// Starts to write the answers of these controllers (one for each spine) to `board`.
    pub fn start(controllers: Vec<Remote>, board: Board) -> Outcome<Self> {
        let runtime = runtime()?;
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let is_one = controllers.len() == 1;
            for (spine, remote) in (1..).zip(controllers.clone()) {
                let who = if is_one { String::new() } else { format!("spine {spine}: ") };
                // The task ends with the runtime.
                runtime.spawn(tell_events(remote, who, board.clone()));
            }
            runtime.block_on(tell_status(&controllers, &board, &seen));
        });
        Ok(Self { over, thread: Some(thread) })
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The results are on the board; a panic of the thread changes nothing.
            thread.join().ok();
        }
    }
}

async fn tell_status(controllers: &[Remote], board: &Board, over: &AtomicBool) {
    let mut controllers: Vec<Calls> =
        controllers.iter().map(|remote| ControllerClient::new(remote.connect())).collect();
    let mut last = vec![RackNow::default(); controllers.len()];
    while !over.load(Ordering::Relaxed) {
        for (controller, last) in controllers.iter_mut().zip(&mut last) {
            match timeout(PATIENCE, controller.status(StatusRequest {})).await {
                Ok(Ok(answer)) => *last = rack_now(&answer.into_inner().shown()),
                Ok(Err(_)) | Err(_) => last.switches.iter_mut().for_each(|switch| switch.up = false),
            }
        }
        board.show_rack(RackNow::all_of(&last));
        sleep(ASK_EVERY).await;
    }
}

/// Writes a controller's events to the board, each with the controller's name before it.
async fn tell_events(remote: Remote, who: String, board: Board) {
    loop {
        let mut controller = ControllerClient::new(remote.connect_patiently());
        if let Ok(answer) = controller.watch(WatchRequest {}).await {
            let mut events = answer.into_inner();
            while let Ok(Some(event)) = events.message().await {
                let event = event.shown();
                let news = board.decided().on_event(&event);
                for line in news {
                    board.note(kind(&event.kind), format!("{who}{line}"));
                }
            }
        }
        sleep(ASK_EVERY).await;
    }
}

/// What kind of note an event of the controller is, by its word.
pub fn kind(word: &str) -> NoteKind {
    match word {
        "worker-died" | "server-died" | "client-died" | "slice-closed" | "class-closed" | "switch-down"
        | "stalled" => NoteKind::Fault,
        "worker-joined" | "server-joined" | "slice-opened" | "class-opened" | "switch-up"
        | "switch-restarted" | "read-back" => NoteKind::Back,
        _ => NoteKind::Plain,
    }
}

/// A status in the form of the live view.
pub fn rack_now(status: &StatusResponse) -> RackNow {
    let switch = status.switch.clone().unwrap_or_default();
    let slice_name = |index: u32| {
        let slice = status.slices.iter().find(|slice| slice.slice == index);
        slice.map_or_else(String::new, |slice| slice.name.clone())
    };
    let slices = status.slices.iter().map(|slice| SliceNow {
        name: slice.name.clone(),
        balance: slice.balance.unwrap_or(0),
        tokens_max: slice.quotas,
        tasks_max: slice.limit,
    });
    let apart = peers::apart(status);
    let workers = status.workers.iter().zip(apart).map(|(worker, apart)| WorkerNow {
        recent: worker.recent.unwrap_or_default(),
        apart,
        index: worker.worker as u16,
        name: worker.name.clone(),
        slice: slice_name(worker.slice),
        quota: worker.quota,
        phase: phase(worker.phase()),
        stands_for: worker.workers,
    });
    let mut workers: Vec<WorkerNow> = workers.collect();
    workers.sort_by(|one, other| one.name.cmp(&other.name));
    let switches = vec![SwitchNow { epoch: switch.epoch, up: switch.link() == LinkState::Up }];
    RackNow { switches, slices: slices.collect(), workers }
}

/// The types of a rack, with the names from its plan.
pub fn types_of(status: &StatusResponse) -> Types {
    let number = |of: &TypeName| u16::try_from(of.task_type).ok();
    Types::of_rack(status.type_names.iter().filter_map(|of| Some((number(of)?, of.name.clone()))))
}

/// A worker's phase in one word.
pub const fn phase(phase: WorkerPhase) -> &'static str {
    match phase {
        WorkerPhase::Unspecified => "unknown",
        WorkerPhase::Joining => "joining",
        WorkerPhase::Open => "open",
        WorkerPhase::Changing => "changing",
        WorkerPhase::Leaving => "leaving",
        WorkerPhase::Dying => "dying",
    }
}

/// The switch's link in one word.
pub const fn link(link: LinkState) -> &'static str {
    match link {
        LinkState::Unspecified => "unknown",
        LinkState::Down => "down",
        LinkState::Reading => "reading",
        LinkState::Up => "up",
        LinkState::TooSmall => "too_small",
        LinkState::Superseded => "superseded",
        LinkState::Standby => "standby",
    }
}
