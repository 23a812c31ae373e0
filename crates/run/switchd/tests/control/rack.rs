//! Shared by the tests: a small switch with its controller, and hosts that only register.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sluice_control::{ClientHello, Plan, SlicePlan, WorkerHello};
use sluice_net::NetError;
use sluice_rpc::Remote;
use sluice_rpc::registrar::{ClientRegistrar, Registrar, RegistrarEvent, Role, WorkerRegistrar};
use sluice_switch::Config;
use sluice_switch::horus::FabricReading;
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{Guard, LocalSwitch, RpcServer};
use sluice_switchd::switch::{SwitchConfig, SwitchDriver, SwitchHandle, SwitchPlace};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Endpoint, Epoch, Incarnation, Nanos, Serial, TaskType, Term};
use tonic::{Response, Status};

/// Any free port of the loopback.
pub(crate) const ANY: &str = "127.0.0.1:0";

static SEEDS: AtomicU8 = AtomicU8::new(0);

const PATIENCE: Duration = Duration::from_mins(2);

/// A running switch; stopped, and its memory lost, when dropped.
pub(crate) struct Switch {
    pub(crate) handle: SwitchHandle,
    thread: Option<JoinHandle<Result<(), NetError>>>,
}

impl Switch {
    pub(crate) fn start(epoch: u32) -> Self {
        Self::obeying(epoch, Term(0))
    }

    /// A switch that starts with a stored term: the controller that it obeyed before.
    pub(crate) fn obeying(epoch: u32, term: Term) -> Self {
        Self::placed(epoch, term, SwitchPlace::Alone)
    }

    pub(crate) fn spine(epoch: u32) -> Self {
        Self::placed(epoch, Term(0), SwitchPlace::Spine(FabricReading::default()))
    }

    fn placed(epoch: u32, term: Term, place: SwitchPlace) -> Self {
        let size = Config {
            epoch: Epoch(epoch),
            term,
            workers: 8,
            clients: 4,
            slices: 2,
            types: 8,
            tasks_per_slice: 64,
            tokens_per_slice: 256,
            replay_cells: 16,
            servers: 0,
            counters_start: Serial(0),
            polls_ahead: 0,
            seed: 0,
        };
        let driver = SwitchDriver::new(&SwitchConfig { place, ..SwitchConfig::new(size) }).unwrap();
        Self { handle: driver.handle(), thread: Some(driver.spawn().unwrap()) }
    }

    pub(crate) fn at(&self) -> Endpoint {
        self.handle.local().into()
    }

    /// The term of the controller that the switch obeys now.
    pub(crate) fn term(&self) -> Term {
        let (give, take) = mpsc::channel();
        let tables = self.handle.tables();
        tables.send(vec![TableOp::ReadShape], move |answers| give.send(answers).unwrap()).unwrap();
        match take.recv().unwrap()[..] {
            [TableAnswer::Shape(shape)] => shape.term,
            ref other => panic!("{other:?}"),
        }
    }

    pub(crate) fn local(&self) -> LocalSwitch {
        LocalSwitch::new(self.handle.clone(), self.at())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.handle.stop();
        self.thread.take().map(JoinHandle::join);
    }
}

/// Options for a controller with the slices `get` (type 1) and `scan` (type 2). No lease ends while a busy
/// machine keeps a host from its turn.
pub(crate) fn options(switch: SwitchLink) -> ControllerOptions {
    let slice = |name: &str, task_type| SlicePlan {
        name: name.to_owned(),
        types: vec![TaskType(task_type)],
        limit: Some(32),
        ..SlicePlan::default()
    };
    ControllerOptions {
        at: ANY.parse().unwrap(),
        guard: Guard::Loopback,
        plan: Plan {
            lease: Nanos::from_millis(10_000),
            ..Plan::new(Endpoint::default(), vec![slice("get", 1), slice("scan", 2)])
        },
        // A new seed for each controller, so that a key that stays the same must have been read back.
        seed: [SEEDS.fetch_add(1, Ordering::Relaxed); 32],
        switch,
        standby: false,
        spine: 0,
    }
}

/// The same with leases whose end a test can wait for.
pub(crate) fn options_of_short_leases(switch: SwitchLink) -> ControllerOptions {
    let of = options(switch);
    ControllerOptions { plan: Plan { lease: Nanos::from_millis(1_000), ..of.plan }, ..of }
}

/// A controller in its switch's process.
pub(crate) fn embedded(switch: &Switch) -> RpcServer {
    start_controller(options(SwitchLink::Here(switch.local()))).unwrap()
}

/// A controller on a port that its predecessor may just have left.
pub(crate) fn controller_at(at: SocketAddr, switch: SwitchLink) -> RpcServer {
    start_controller(ControllerOptions { at, ..options(switch) }).unwrap()
}

/// What a call answers that may be made again: a call has a second, and a busy machine may need longer.
pub(crate) async fn answered<T>(mut call: impl AsyncFnMut() -> Result<Response<T>, Status>) -> T {
    let mut refused = None;
    for _ in 0..100 {
        match call().await {
            Ok(answer) => return answer.into_inner(),
            Err(why) => refused = Some(why),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not answered: {refused:?}");
}

pub(crate) fn remote(server: &RpcServer) -> Remote {
    Remote::new(&server.local().to_string(), None).unwrap()
}

pub(crate) fn worker_hello(name: &str) -> WorkerHello {
    WorkerHello {
        labels: Vec::new(),
        name: name.to_owned(),
        life: name.bytes().map(u64::from).sum(),
        at: endpoint(9_001),
        slice: "get".to_owned(),
        types: vec![TaskType(1), TaskType(2)],
        quota: 2,
        capacity: 1_000,
        recent: sluice_control::RecentWork::default(),
        refused_late: 0,
        server: String::new(),
        rejoins: 0,
        workers: 0,
        held: None,
    }
}

pub(crate) fn client_hello(name: &str) -> ClientHello {
    ClientHello {
        name: name.to_owned(),
        incarnation: Incarnation(name.bytes().map(u64::from).sum()),
        at: endpoint(9_002),
        floor: Serial(0),
        held: None,
    }
}

pub(crate) fn endpoint(port: u16) -> Endpoint {
    SocketAddr::from(([127, 0, 0, 1], port)).into()
}

/// A host that registers, and sleeps until it is woken for an event, as a packet thread does.
pub(crate) struct Host<R: Role> {
    pub(crate) line: Registrar<R>,
    woken: Receiver<()>,
}

pub(crate) fn worker(controller: Remote, hello: WorkerHello) -> Host<sluice_rpc::registrar::WorkerRole> {
    let (wake, woken) = mpsc::channel();
    let line = WorkerRegistrar::worker(controller, hello, move || wake.send(()).unwrap_or_default()).unwrap();
    Host { line, woken }
}

pub(crate) fn client(controller: Remote, hello: ClientHello) -> Host<sluice_rpc::registrar::ClientRole> {
    let (wake, woken) = mpsc::channel();
    let line = ClientRegistrar::client(controller, hello, move || wake.send(()).unwrap_or_default()).unwrap();
    Host { line, woken }
}

impl<R: Role> Host<R>
where
    R::Grant: Debug,
{
    /// The first event for which `wanted` returns a value; the test fails if none comes.
    pub(crate) fn until<T>(&self, wanted: impl Fn(RegistrarEvent<R::Grant>) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        let mut heard = Vec::new();
        loop {
            while let Some(event) = self.line.try_next() {
                heard.push(format!("{event:?}"));
                if let Some(found) = wanted(event) {
                    return found;
                }
            }
            let left = end.saturating_duration_since(Instant::now());
            assert!(self.woken.recv_timeout(left).is_ok(), "not heard in time; heard: {heard:#?}");
        }
    }

    pub(crate) fn granted(&self) -> R::Grant {
        self.until(|event| match event {
            RegistrarEvent::Granted(grant) => Some(grant),
            _ => None,
        })
    }

    pub(crate) fn granted_where(&self, fits: impl Fn(&R::Grant) -> bool) -> R::Grant {
        self.until(|event| match event {
            RegistrarEvent::Granted(grant) if fits(&grant) => Some(grant),
            _ => None,
        })
    }

    pub(crate) fn lost(&self) -> String {
        self.until(|event| match event {
            RegistrarEvent::Lost { why } => Some(why),
            _ => None,
        })
    }

    pub(crate) fn waiting(&self) -> String {
        self.until(|event| match event {
            RegistrarEvent::Wait { why, .. } => Some(why),
            _ => None,
        })
    }

    pub(crate) fn refused(&self) -> String {
        self.until(|event| match event {
            RegistrarEvent::Refused { why } => Some(why),
            _ => None,
        })
    }

    pub(crate) fn left(&self) -> Option<Serial> {
        self.until(|event| match event {
            RegistrarEvent::Left { final_sent } => Some(final_sent),
            _ => None,
        })
    }
}
