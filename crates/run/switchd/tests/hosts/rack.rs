//! A rack inside the test's process: a switch with its controller, and workers on threads.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sluice_control::{Plan, RdmaPlan, SlicePlan};
use sluice_net::client::{Outcome, PendingTask, RefusedWhy};
use sluice_net::service::{Service, ServiceError, Task};
use sluice_net::worker::{Stopper, WorkerReport};
use sluice_net::{Client, ClientOptions, NetError, TaskType, Worker, WorkerOptions};
use sluice_netem::{FaultPlan, Rates};
use sluice_switch::Config;
use sluice_switch::registry::Choice;
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{Guard, LocalSwitch, RpcServer};
use sluice_switchd::switch::{Delays, SwitchConfig, SwitchDriver, SwitchHandle};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Epoch, Nanos, RejectReason};

use crate::DEADLINE;
use crate::agent::Person;

/// The type of the tests' tasks.
pub(crate) const ECHO: TaskType = TaskType(9);
/// A second type, in a slice of its own.
pub(crate) const OTHER: TaskType = TaskType(10);

/// A client's outcome while no worker is registered.
pub(crate) const NOBODY: Outcome = Outcome::Refused(RefusedWhy::Rejected(RejectReason::NoWorkers));
/// How often a refused task is submitted again before the test fails.
const AGAIN_MAX: u32 = 100;
const AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The default of controllers.
const RENEW_EVERY: Nanos = Nanos::from_millis(250);
/// As in live studies: no lease ends while a busy machine keeps a host from its turn.
const RENEW_SELDOM: Nanos = Nanos::from_millis(10_000);

/// The switch and its controller.
pub(crate) struct Rack {
    faults: Rates,
    program: Choice,
    delays: Delays,
    slices: Vec<SlicePlan>,
    /// All labels, and the labels that each type of task needs.
    labels: Vec<String>,
    needs: Vec<(TaskType, Labels)>,
    /// Room for servers in the switch, and their settings at the controller.
    servers: u16,
    rdma: RdmaPlan,
    /// How often hosts renew; a lease lasts four times as long.
    renew_every: Nanos,
    life: Option<Life>,
    /// The address of the controller and of the switch. Nobody else gets it while they restart.
    at: SocketAddr,
}

struct Life {
    switch: SwitchHandle,
    thread: JoinHandle<Result<(), NetError>>,
    controller: RpcServer,
}

static EPOCHS: AtomicU32 = AtomicU32::new(1);
static SEEDS: AtomicU64 = AtomicU64::new(1);

impl Rack {
    /// A rack with one slice, for [`ECHO`].
    pub(crate) fn start() -> Self {
        Self::with(Rates::default(), &[ECHO], 1_000)
    }

    /// A rack with faults on every socket, a slice for each type (named like its number), and a limit on
    /// waiting tasks.
    pub(crate) fn with(faults: Rates, types: &[TaskType], limit: u32) -> Self {
        Self::made_of(faults, Choice::default(), Delays::NONE, types, limit)
    }

    /// A rack with one slice, for [`ECHO`], under this program, with these delays and long leases.
    pub(crate) fn under(program: Choice, delays: Delays) -> Self {
        let mut rack = Self::of(vec![one_slice(ECHO, 1_000)]);
        (rack.program, rack.delays, rack.renew_every) = (program, delays, RENEW_SELDOM);
        rack.begin()
    }

    /// A rack with one slice under this program, with faults on every socket and no delays.
    pub(crate) fn under_faults(faults: Rates, program: Choice) -> Self {
        Self::of_room(faults, program, 1_000)
    }

    /// A rack as [`Self::under_faults`], with a limit on waiting tasks.
    pub(crate) fn of_room(faults: Rates, program: Choice, limit: u32) -> Self {
        Self::made_of(faults, program, Delays::NONE, &[ECHO], limit)
    }

    fn made_of(faults: Rates, program: Choice, delays: Delays, types: &[TaskType], limit: u32) -> Self {
        let mut rack = Self::of(types.iter().map(|of| one_slice(*of, limit)).collect());
        (rack.faults, rack.program, rack.delays) = (faults, program, delays);
        rack.begin()
    }

    /// A rack with faults on every socket and one slice, for [`ECHO`], whose tasks are written ahead to
    /// servers.
    pub(crate) fn with_servers(faults: Rates, rdma: RdmaPlan) -> Self {
        // The limit is so low that no task waits for as long as its client's first timeout, even on a busy
        // machine.
        let slice =
            SlicePlan { name: ECHO.to_string(), types: vec![ECHO], limit: Some(64), ..SlicePlan::default() };
        let mut rack = Self::of(vec![slice]);
        (rack.faults, rack.servers, rack.rdma) = (faults, 2, rdma);
        rack.begin()
    }

    /// A rack with a slice for [`ECHO`], which needs no label, and one for [`OTHER`], which needs the label
    /// `gpu`. No kind of worker has `ssd` together with another label.
    pub(crate) fn with_labels(program: &str) -> Self {
        let (none, gpu) = (Labels::NONE, Labels(1));
        let serving = Serving::of(&[none, gpu], &[none, gpu]).expect("all are served");
        let (name, types) = ("main".to_owned(), vec![ECHO, OTHER]);
        let mut rack = Self::of(vec![SlicePlan { name, types, serving, ..SlicePlan::default() }]);
        rack.labels = ["gpu", "ssd"].map(str::to_owned).to_vec();
        rack.needs = vec![(OTHER, gpu)];
        rack.program = Choice::parse(program).expect("it is known");
        rack.begin()
    }

    /// A rack with default settings that is not started yet.
    fn of(slices: Vec<SlicePlan>) -> Self {
        Self {
            faults: Rates::default(),
            program: Choice::default(),
            delays: Delays::NONE,
            slices,
            labels: Vec::new(),
            needs: Vec::new(),
            servers: 0,
            rdma: RdmaPlan::default(),
            renew_every: RENEW_EVERY,
            life: None,
            at: sluice_ports::free_address(),
        }
    }

    /// A rack with a slice for each type, in which hosts renew at this interval.
    pub(crate) fn renewing_every(renew_every: Nanos, types: &[TaskType]) -> Self {
        let mut rack = Self::with(Rates::default(), types, 1_000);
        rack.renew_every = renew_every;
        rack.restart();
        rack
    }

    fn begin(mut self) -> Self {
        self.life = Some(self.live());
        self
    }

    /// Carries out one step on the switch's tables.
    pub(crate) fn table(&self, op: TableOp) -> TableAnswer {
        let tables = self.life.as_ref().expect("it runs").switch.tables();
        tables.call(vec![op]).expect("the switch runs").remove(0)
    }

    /// The running switch.
    pub(crate) fn switch(&self) -> SwitchHandle {
        self.life.as_ref().expect("it runs").switch.clone()
    }

    /// The value of a counter since the switch's last start.
    pub(crate) fn counted(&self, name: &str) -> u64 {
        let life = self.life.as_ref().expect("it runs");
        life.switch.counters().all().find(|(known, _)| *known == name).map_or(0, |(_, count)| count)
    }

    /// Stops the switch and its controller, and starts both again at the same addresses.
    pub(crate) fn restart(&mut self) {
        self.end();
        self.life = Some(self.live());
    }

    /// Waits until so many workers serve the first slice.
    pub(crate) fn until_serving(&self, workers: u32) {
        let person = Person::of(self);
        until("its workers", || person.status().slices[0].workers == workers);
    }

    /// Waits until each slice has a worker. Most of a burst that comes before them is refused: all tasks of a
    /// client share one small budget of repeats.
    pub(crate) fn until_served(&self) {
        let person = Person::of(self);
        until("a worker for each slice", || person.status().slices.iter().all(|slice| slice.workers > 0));
    }

    pub(crate) fn controller(&self) -> String {
        self.at.to_string()
    }

    pub(crate) fn client(&self, name: &str) -> Client {
        Client::connect(&self.client_options(name)).expect("the controller takes clients")
    }

    /// A client whose network times are this many times as long.
    pub(crate) fn client_dilated(&self, name: &str, dilation: u32) -> Client {
        let options = ClientOptions { dilation, ..self.client_options(name) };
        Client::connect(&options).expect("the controller takes clients")
    }

    pub(crate) fn client_options(&self, name: &str) -> ClientOptions {
        ClientOptions {
            name: name.to_owned(),
            faults: self.faults(name),
            patience: Duration::from_mins(2),
            ..ClientOptions::new(&self.controller()).expect("a legal address")
        }
    }

    pub(crate) fn worker(&self, name: &str, service: impl Service + 'static) -> Running {
        self.worker_with(name, service, |_| {})
    }

    pub(crate) fn worker_with(
        &self,
        name: &str,
        service: impl Service + 'static,
        change: impl FnOnce(&mut WorkerOptions),
    ) -> Running {
        let mut options = WorkerOptions::new(&self.controller()).expect("a legal address");
        name.clone_into(&mut options.name);
        options.faults = self.faults(name);
        change(&mut options);
        Running::start(&options, service)
    }

    pub(crate) fn faults(&self, socket: &str) -> FaultPlan {
        FaultPlan::both(SEEDS.fetch_add(1, Ordering::Relaxed), socket, self.faults)
    }

    fn live(&self) -> Life {
        let epoch = Epoch(EPOCHS.fetch_add(1, Ordering::Relaxed));
        let size = self.program.traits().full_size(epoch);
        let config = SwitchConfig {
            at: self.at,
            program: self.program,
            delays: self.delays,
            faults: self.faults("switch"),
            ..SwitchConfig::new(Config { servers: self.servers, ..size })
        };
        let driver = SwitchDriver::new(&config).expect("the loopback has free ports");
        let switch = driver.handle();
        let thread = driver.spawn().expect("the system has threads");
        let at = switch.local().into();
        let controller = start_controller(ControllerOptions {
            at: self.at,
            guard: Guard::Loopback,
            plan: Plan {
                rdma: self.rdma,
                labels: self.labels.clone(),
                needs: self.needs.clone(),
                renew_every: self.renew_every,
                lease: self.renew_every.times(4),
                retry_for: crate::RETRY_FOR,
                ..Plan::new(at, self.slices.clone())
            },
            seed: [7; 32],
            switch: SwitchLink::Here(LocalSwitch::new(switch.clone(), at)),
            standby: false,
            spine: 0,
        });
        Life { switch, thread, controller: controller.expect("the port is free") }
    }

    fn end(&mut self) {
        let Some(Life { switch, thread, controller }) = self.life.take() else { return };
        drop(controller);
        switch.stop();
        thread.join().expect("no panic").expect("no error");
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        self.end();
    }
}

/// A worker on its thread; dropping it stops it at once.
pub(crate) struct Running {
    stopper: Stopper,
    thread: Option<JoinHandle<Result<WorkerReport, NetError>>>,
}

impl Running {
    pub(crate) fn start(options: &WorkerOptions, service: impl Service + 'static) -> Self {
        let worker = Worker::new(options, service).expect("the loopback has free ports");
        let stopper = worker.stopper();
        Self { stopper, thread: Some(thread::spawn(|| worker.run())) }
    }

    /// Stops the worker once it has finished the tasks that it holds.
    pub(crate) fn drain(mut self) -> WorkerReport {
        self.stopper.stop();
        self.join()
    }

    /// Stops the worker at once, as kill -9 would.
    pub(crate) fn kill(mut self) -> WorkerReport {
        self.stopper.stop();
        self.stopper.stop();
        self.join()
    }

    fn join(&mut self) -> WorkerReport {
        let thread = self.thread.take().expect("joined once");
        thread.join().expect("no panic").expect("no error")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stopper.stop();
            self.stopper.stop();
            thread.join().ok();
        }
    }
}

/// A service that echoes the task's bytes, optionally after a delay, and counts its tasks.
#[derive(Clone, Default)]
pub(crate) struct Echo {
    pub(crate) runs: Arc<AtomicU64>,
    pub(crate) takes: Duration,
}

impl Service for Echo {
    fn types(&self) -> Vec<TaskType> {
        vec![ECHO]
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        self.runs.fetch_add(1, Ordering::Relaxed);
        match task.bytes {
            b"panic" => panic!("as asked"),
            b"error" => return Err(ServiceError::new("as asked")),
            bytes => reply.extend(bytes),
        }
        thread::sleep(self.takes);
        Ok(())
    }
}

/// A task's outcome. A task that is refused for one of these reasons is submitted again: when a switch or a
/// server returns, on a busy machine all workers may be registering at once for longer than a client retries.
pub(crate) fn insist(client: &Client, bytes: &[u8], pending: PendingTask, refused: &[Outcome]) -> Outcome {
    let mut outcome = pending.wait().outcome;
    for _ in 0..AGAIN_MAX {
        if !refused.contains(&outcome) {
            break;
        }
        thread::sleep(AGAIN_AFTER);
        outcome = client.submit(ECHO, bytes, DEADLINE).expect("it fits").wait().outcome;
    }
    outcome
}

/// Waits until `is_so` returns true; fails the test if it never does.
pub(crate) fn until(what: &str, is_so: impl Fn() -> bool) {
    let give_up = Instant::now() + Duration::from_mins(2);
    while !is_so() {
        assert!(Instant::now() < give_up, "{what} never came");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A slice for one type, named like its number.
fn one_slice(of: TaskType, limit: u32) -> SlicePlan {
    SlicePlan { name: of.to_string(), types: vec![of], limit: Some(limit), ..SlicePlan::default() }
}
