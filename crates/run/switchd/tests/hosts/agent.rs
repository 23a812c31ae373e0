//! Adaptive agents, moved workers and moved types, over real sockets and under load: no task is lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sluice_host::agent::{AgentSettings, Mode};
use sluice_net::agent::{AgentOptions, Lines, RunningAgent, start_agent};
use sluice_net::client::PendingTask;
use sluice_net::service::{Service, ServiceError, Task};
use sluice_net::{Client, TaskType};
use sluice_netem::Rates;
use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_rpc::v1::{
    AgentInterval, MoveWorkerRequest, SetTypeRequest, StatusRequest, StatusResponse, WatchRequest,
    WatchResponse,
};
use sluice_rpc::{Remote, RenewedChannel, is_silence};
use sluice_wire::Nanos;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tonic::{Code, Response, Status, Streaming};

use crate::DEADLINE;
use crate::rack::{ECHO, OTHER, Rack, Running, until};

/// Tasks that one client keeps outstanding.
const WINDOW: usize = 64;

/// A service for both types whose tasks take some time.
#[derive(Clone, Copy)]
struct Both(Duration);

impl Service for Both {
    fn types(&self) -> Vec<TaskType> {
        vec![ECHO, OTHER]
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        reply.extend(task.bytes);
        thread::sleep(self.0);
        Ok(())
    }
}

type Calls = ControllerClient<RenewedChannel>;

/// An operator who calls the controller.
pub(super) struct Person {
    runtime: Runtime,
    calls: Calls,
}

impl Person {
    pub(super) fn of(rack: &Rack) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().expect("tokio starts");
        let remote = Remote::new(&rack.controller(), None).expect("a legal address");
        let calls = runtime.block_on(async { ControllerClient::new(remote.connect()) });
        Self { runtime, calls }
    }

    /// The answer to a call. Calls once more if none came: a call has a second, and a busy machine may need
    /// longer.
    fn answer<T>(&self, call: impl AsyncFn(Calls) -> Result<Response<T>, Status>) -> Result<T, Status> {
        for _ in 0..100 {
            match self.runtime.block_on(call(self.calls.clone())) {
                Err(why) if is_silence(&why) => {}
                answer => return answer.map(Response::into_inner),
            }
        }
        panic!("nobody answers");
    }

    pub(super) fn status(&self) -> StatusResponse {
        self.answer(async |mut calls| calls.status(StatusRequest {}).await).expect("it answers")
    }

    fn moves(&self, worker: &str, slice: TaskType) -> Result<(), Status> {
        let request = MoveWorkerRequest { worker: worker.to_owned(), slice: slice.to_string() };
        self.answer(async |mut calls| calls.move_worker(request.clone()).await).map(|_| ())
    }

    fn maps(&self, task_type: TaskType, slice: TaskType) -> Result<(), Status> {
        let request = SetTypeRequest { task_type: task_type.0.into(), slice: Some(slice.to_string()) };
        self.answer(async |mut calls| calls.set_type(request.clone()).await).map(|_| ())
    }

    /// Waits for the first event that fits.
    fn hears(&self, fits: impl Fn(&WatchResponse) -> bool) -> WatchResponse {
        self.watches().first(fits)
    }

    /// Watches events from now on.
    fn watches(&self) -> Events<'_> {
        let mut calls = self.calls.clone();
        let stream = self.runtime.block_on(calls.watch(WatchRequest {})).expect("it answers").into_inner();
        Events { runtime: &self.runtime, stream }
    }

    fn quota(&self, worker: &str) -> u32 {
        let status = self.status();
        status.workers.iter().find(|known| known.name == worker).map_or(0, |worker| worker.quota)
    }

    /// Moves the last worker of a slice that is closed: the move happens once nothing waits in the slice.
    fn moves_last(&self, worker: &str, slice: TaskType) {
        until("an empty queue", || match self.moves(worker, slice) {
            Err(status) if status.code() == Code::Unavailable => {
                assert!(status.message().contains("tasks still wait"), "{status}");
                false
            }
            moved => moved.map(|()| true).expect("no type goes there any more"),
        });
    }

    fn slice(&self, worker: &str) -> u32 {
        let status = self.status();
        status.workers.iter().find(|known| known.name == worker).map_or(u32::MAX, |worker| worker.slice)
    }
}

/// Events since this watch began.
struct Events<'p> {
    runtime: &'p Runtime,
    stream: Streaming<WatchResponse>,
}

impl Events<'_> {
    /// Waits for the first event that fits.
    fn first(mut self, fits: impl Fn(&WatchResponse) -> bool) -> WatchResponse {
        let mut others = Vec::new();
        let listen = async {
            loop {
                let event = self.stream.message().await.expect("it goes on").expect("it goes on");
                if fits(&event) {
                    return event;
                }
                others.push(event.text);
            }
        };
        let found = self.runtime.block_on(async { tokio::time::timeout(DEADLINE, listen).await });
        found.unwrap_or_else(|_| panic!("it never happened, but this did: {others:#?}"))
    }
}

/// A client that keeps a number of tasks outstanding until it is stopped. Returns how many ended well,
/// which must be all.
struct Load {
    over: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Load {
    fn start(client: Client, types: &'static [TaskType]) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let (mut ended, mut sent) = (0, 0_u32);
            let mut outstanding: VecDeque<(u32, PendingTask)> = VecDeque::new();
            while !seen.load(Ordering::Relaxed) || !outstanding.is_empty() {
                while outstanding.len() < WINDOW && !seen.load(Ordering::Relaxed) {
                    let task_type = types[sent as usize % types.len()];
                    let pending = client.submit(task_type, &sent.to_be_bytes(), DEADLINE).expect("it fits");
                    outstanding.push_back((sent, pending));
                    sent += 1;
                }
                let Some((number, pending)) = outstanding.pop_front() else { continue };
                let outcome = pending.wait().outcome;
                assert_eq!(outcome.done(), Some(&number.to_be_bytes()[..]), "task {number}: {outcome}");
                ended += 1;
            }
            ended
        });
        Self { over, thread }
    }

    fn end(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("every task ended well")
    }
}

struct Server {
    folder: TempDir,
    _agent: RunningAgent,
}

impl Server {
    fn start(rack: &Rack, mode: Mode) -> Self {
        let folder = tempfile::tempdir().expect("there is room");
        let lines = Lines::make(&folder.path().join("agent"), 8).expect("there is room");
        let settings = AgentSettings {
            mode,
            sample_every: Nanos::from_micros(200),
            interval: Nanos::from_millis(100),
            ..AgentSettings::default()
        };
        let options = AgentOptions {
            controller: Remote::new(&rack.controller(), None).expect("a legal address"),
            server: "s".to_owned(),
            lines,
            settings,
            begins: None,
        };
        Self { folder, _agent: start_agent(options).expect("sound settings") }
    }

    fn worker(&self, rack: &Rack, name: &str, slice: TaskType) -> Running {
        rack.worker_with(name, Both(Duration::from_millis(1)), |options| {
            options.slice = slice.to_string();
            options.agent = Some(self.folder.path().join("agent"));
        })
    }
}

fn both_slices() -> Rack {
    Rack::with(Rates::default(), &[ECHO, OTHER], 1_000)
}

#[test]
fn an_agent_deepens_the_workers_of_a_full_slice_and_borrows_from_an_idle_one() {
    let rack = both_slices();
    let server = Server::start(&rack, Mode::On);
    let _busy = server.worker(&rack, "busy", ECHO);
    let _idle = ["idle-1", "idle-2", "idle-3"].map(|name| server.worker(&rack, name, OTHER));
    let person = Person::of(&rack);
    until("four workers", || person.status().workers.len() == 4);
    // The watch begins before anything happens, since past events are not repeated.
    let listener = Person::of(&rack);
    let events = listener.watches();
    let load = Load::start(rack.client("c"), &[ECHO]);
    // The slice whose worker started first comes first.
    let has_tasks = |found: &AgentInterval| found.slices.iter().any(|slice| slice.tasks > 0);
    let lent = thread::scope(|scope| {
        // Listens all the time: the controller hangs up on a caller that answers no ping.
        let lent = scope.spawn(|| events.first(|event| event.kind == "worker-lent"));
        let told = person.hears(|event| event.interval.as_ref().is_some_and(has_tasks));
        assert_eq!(
            (told.kind.as_str(), told.interval.expect("it fits").server),
            ("interval-ended", "s".to_owned())
        );
        until("its largest depth", || person.quota("busy") == 8);
        lent.join().expect("it is told")
    });
    let lending = lent.step.and_then(|step| step.lending).expect("a worker moves");
    assert_eq!(lending.from, OTHER.to_string());
    let is_lent = |name| person.slice(name) == 0;
    until("a borrowed worker", || ["idle-1", "idle-2", "idle-3"].into_iter().any(is_lent));
    assert!(load.end() > 0);
}

#[test]
fn an_adviser_tells_and_changes_nothing() {
    let rack = both_slices();
    let server = Server::start(&rack, Mode::Advise);
    let _busy = server.worker(&rack, "busy", ECHO);
    let _idle = ["idle-1", "idle-2"].map(|name| server.worker(&rack, name, OTHER));
    let person = Person::of(&rack);
    until("three workers", || person.status().workers.len() == 3);
    let load = Load::start(rack.client("c"), &[ECHO]);
    for _ in 0..3 {
        // If the machine delays the worker, an interval or two only report overload.
        let told = person.hears(|event| event.text.contains("would go from depth 2 to 3"));
        assert!(told.text.contains("slice 9: worker"), "{}", told.text);
        let judged = told.interval.expect("it tells numbers");
        assert!(judged.advises);
        let judgements: Vec<_> = judged.slices.iter().flat_map(|slice| &slice.judgements).collect();
        assert!(judgements.iter().any(|of| of.slowdown_p99 > 10.0), "{judgements:?}");
    }
    assert_eq!((person.quota("busy"), person.slice("idle-1"), person.slice("idle-2")), (2, 1, 1));
    assert!(load.end() > 0);
}

#[test]
fn a_worker_that_has_nothing_to_do_hears_of_its_move_before_it_renews() {
    // The worker's next renewal is an hour away.
    let rack = Rack::renewing_every(Nanos::from_millis(3_600_000), &[ECHO, OTHER]);
    let slow = |name: &str| {
        rack.worker_with(name, Both(Duration::ZERO), |options| {
            options.slice = ECHO.to_string();
            // The worker's first probe comes after the task's deadline.
            options.dilation = 50_000;
        })
    };
    let _workers = [slow("a"), slow("b")];
    let person = Person::of(&rack);
    until("two workers", || person.status().workers.len() == 2);
    let client = rack.client("c");
    person.moves("a", OTHER).expect("it serves that");
    let ended = client.submit(OTHER, b"now", DEADLINE).expect("it fits").wait();
    assert_eq!(ended.outcome.done(), Some(&b"now"[..]), "{}", ended.outcome);
}

#[test]
fn types_and_workers_move_under_load_without_losing_a_task() {
    let rack = both_slices();
    let worker = |name: &str, slice: TaskType| {
        rack.worker_with(name, Both(Duration::from_micros(200)), |options| options.slice = slice.to_string())
    };
    let _echo = [worker("echo-1", ECHO), worker("echo-2", ECHO)];
    let _other = [worker("other-1", OTHER), worker("other-2", OTHER)];
    let person = Person::of(&rack);
    until("four workers", || person.status().workers.len() == 4);
    let loads = ["a", "b"].map(|name| Load::start(rack.client(name), &[ECHO, OTHER]));
    for _ in 0..4 {
        person.maps(ECHO, OTHER).expect("a slice with workers of that type");
        person.moves("echo-2", OTHER).expect("another is left");
        person.moves_last("echo-1", OTHER);
        until("an empty slice", || person.status().slices[0].workers == 0);
        person.moves("echo-1", ECHO).expect("it serves that");
        person.moves("echo-2", ECHO).expect("it serves that");
        person.maps(ECHO, ECHO).expect("a slice with workers of that type");
    }
    person.moves("other-1", ECHO).expect("another is left");
    let last = person.moves("other-2", ECHO).expect_err("tasks go there");
    assert!(last.message().contains("is the last one of slice"), "{last}");
    let ended: u64 = loads.map(Load::end).iter().sum();
    assert!(ended > 100, "{ended}");
}
