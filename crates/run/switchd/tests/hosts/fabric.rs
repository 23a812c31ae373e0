//! Racks below one spine or several (Horus §3.2, A.3), inside the test's process. A client submits to a
//! spine, whose workers are leaves. A leaf is a rack's switch with its own controller and workers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use sluice_control::{Plan, SlicePlan, Tier};
use sluice_net::client::{PendingTask, SpineClients};
use sluice_net::{Client, ClientOptions, NetError, TaskType, WorkerOptions, service_fn};
use sluice_netem::{FaultPlan, Rates};
use sluice_rpc::Remote;
use sluice_rpc::registrar::Controllers;
use sluice_switch::Config;
use sluice_switch::horus::{FabricReading, IdleRack};
use sluice_switchd::controller::{
    ControllerOptions, Leaf, LeafOptions, SwitchLink, start_above, start_controller,
};
use sluice_switchd::rpc::{Guard, LocalSwitch, RpcServer, serve_tables};
use sluice_switchd::switch::{SwitchConfig, SwitchDriver, SwitchHandle, SwitchPlace};
use sluice_wire::tables::{TableAnswer, TableOp, WorkerRow};
use sluice_wire::{
    ClientId, Endpoint, Epoch, Generation, Nanos, Packet, RackNews, SliceId, Update, WorkerId, encode,
};

use crate::DEADLINE;
use crate::rack::{ECHO, Echo, NOBODY, OTHER, Running, insist, until};

/// How often leaves and hosts renew.
const RENEW_EVERY: Nanos = Nanos::from_millis(50);

/// How long a silent host stays registered. On a busy machine a living thread may not run for a part of
/// this time.
pub(crate) const LEASE: Nanos = Nanos::from_millis(2_000);

/// The same where nobody may lose a registration.
pub(crate) const LONG_LEASE: Nanos = Nanos::from_millis(5_000);

/// Tasks go to any idle rack: the newest idle rack gets all tasks that come close together.
fn reading() -> FabricReading {
    FabricReading { idle_rack: IdleRack::Random, ..FabricReading::default() }
}

/// The program of the leaves' switches.
const HORUS: &str = "horus";
const RAIN: &str = "rain:2,ranked";

static EPOCHS: AtomicU32 = AtomicU32::new(1);

/// A switch's thread.
struct Life {
    switch: SwitchHandle,
    thread: Option<JoinHandle<Result<(), NetError>>>,
}

impl Life {
    fn start(place: SwitchPlace, program: &str, at: SocketAddr, faults: Rates) -> Self {
        let epoch = Epoch(EPOCHS.fetch_add(1, Ordering::Relaxed));
        let size = Config { workers: 64, slices: 2, ..Config::full(epoch) };
        let faults = FaultPlan::both(epoch.0.into(), "switch", faults);
        let program = program.parse().expect("a program");
        let config = SwitchConfig { at, program, place, faults, ..SwitchConfig::new(size) };
        let driver = SwitchDriver::new(&config).expect("the loopback has free ports");
        let switch = driver.handle();
        Self { switch, thread: Some(driver.spawn().expect("the system has threads")) }
    }

    fn at(&self) -> Endpoint {
        self.switch.local().into()
    }

    fn counted(&self, name: &str) -> u64 {
        self.switch.counters().all().find(|(known, _)| *known == name).map_or(0, |(_, count)| count)
    }

    /// A controller at the switch's own address.
    fn controller(&self, tier: Tier, lease: Nanos) -> ControllerOptions {
        controller(tier, lease, self.switch.local(), SwitchLink::Here(self.local()))
    }

    fn local(&self) -> LocalSwitch {
        LocalSwitch::new(self.switch.clone(), self.at())
    }
}

fn controller(tier: Tier, lease: Nanos, at: SocketAddr, switch: SwitchLink) -> ControllerOptions {
    let slice = |of: TaskType| SlicePlan {
        name: of.to_string(),
        types: vec![of],
        limit: Some(1_000),
        ..SlicePlan::default()
    };
    let plan = Plan {
        tier,
        renew_every: RENEW_EVERY,
        lease,
        retry_for: crate::RETRY_FOR,
        ..Plan::new(Endpoint::default(), vec![slice(ECHO), slice(OTHER)])
    };
    ControllerOptions { at, guard: Guard::Loopback, plan, seed: [7; 32], switch, standby: false, spine: 0 }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.switch.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("no panic").expect("no error");
        }
    }
}

/// A running leaf; dropping it kills it.
struct LiveLeaf {
    _line: Leaf,
    life: Life,
}

/// A rack, whose leaf may be dead.
struct Rack {
    leaf: Option<LiveLeaf>,
    /// The address of its switch and of its controller. Nobody else gets it while they are dead.
    at: SocketAddr,
}

/// A spine with its controller, or with its tables if one controller stands above all spines.
struct Above {
    _beside: RpcServer,
    life: Life,
}

/// A place for a spine, which may be dead.
struct Place {
    above: Option<Above>,
    /// The address of its switch and of what is beside that. Nobody else gets it while they are dead.
    at: SocketAddr,
    /// The address at which hosts register.
    controller_at: SocketAddr,
}

pub(crate) struct Fabric {
    faults: Rates,
    lease: Nanos,
    /// The program of the leaves' switches.
    program: &'static str,
    /// The controller above all spines, if there is one, as a server for each spine; it may be dead.
    apart: Option<Vec<RpcServer>>,
    racks: Vec<Rack>,
    spines: Vec<Place>,
    /// How many racks each spine has; the last one may have fewer.
    each: usize,
}

impl Fabric {
    fn of(racks: usize) -> Self {
        Self::running(HORUS, racks)
    }

    fn running(program: &'static str, racks: usize) -> Self {
        Self::start(program, racks, 1, Rates::default(), LEASE, false)
    }

    fn under(racks: usize, spines: usize) -> Self {
        Self::start(HORUS, racks, spines, Rates::default(), LEASE, false)
    }

    /// Racks below spines that share one controller.
    pub(crate) fn under_one(racks: usize, spines: usize, lease: Nanos) -> Self {
        Self::start(HORUS, racks, spines, Rates::default(), lease, true)
    }

    fn start(
        program: &'static str,
        racks: usize,
        spines: usize,
        faults: Rates,
        lease: Nanos,
        is_apart: bool,
    ) -> Self {
        let place = |_| {
            let at = sluice_ports::free_address();
            Place { above: Some(Self::above(faults, lease, is_apart, at)), at, controller_at: at }
        };
        let (spines, each) = ((0..spines).map(place).collect(), racks.div_ceil(spines));
        let mut fabric = Self { faults, lease, program, apart: None, racks: Vec::new(), spines, each };
        if is_apart {
            fabric.bring_controller_back(|_| sluice_ports::free_address(), racks);
        }
        for rack in 0..racks {
            let at = sluice_ports::free_address();
            fabric.racks.push(Rack { leaf: Some(fabric.leaf(rack, at)), at });
        }
        fabric
    }

    /// Starts a spine in a new life.
    fn above(faults: Rates, lease: Nanos, is_apart: bool, at: SocketAddr) -> Above {
        let place = SwitchPlace::Spine(reading());
        let life = Life::start(place, HORUS, at, faults);
        let beside = if is_apart {
            serve_tables(at, &Guard::Loopback, life.local())
        } else {
            start_controller(life.controller(Tier::Spine, lease))
        };
        Above { _beside: beside.expect("a free port"), life }
    }

    /// Starts the controller above all spines, with a service at an address for each.
    fn bring_controller_back(&mut self, at: impl Fn(usize) -> SocketAddr, racks: usize) {
        let options = |(spine, place): (usize, &Place)| {
            let tables = Remote::new(&place.at.to_string(), None).expect("an address");
            controller(Tier::Spine, self.lease, at(spine), SwitchLink::There(tables))
        };
        let options = self.spines.iter().enumerate().map(options).collect();
        let names: Vec<_> = (0..racks).map(|rack| format!("rack-{rack}")).collect();
        let pods = names.chunks(self.each).map(<[String]>::to_vec).collect();
        let servers = start_above(options, pods, None).expect("free ports");
        for (place, server) in self.spines.iter_mut().zip(&servers) {
            place.controller_at = server.local();
        }
        self.apart = Some(servers);
    }

    pub(crate) fn kill_controller(&mut self) {
        self.apart = Some(Vec::new());
    }

    /// Restarts the controller in a new life, at its old addresses.
    pub(crate) fn restart_controller(&mut self) {
        let at: Vec<_> = self.spines.iter().map(|place| place.controller_at).collect();
        self.bring_controller_back(|spine| at[spine], self.racks.len());
    }

    pub(crate) fn kill_spine(&mut self, spine: usize) {
        self.spines[spine].above = None;
    }

    /// Starts a spine and its controller in a new life.
    pub(crate) fn bring_spine_back(&mut self, spine: usize) {
        let above = Self::above(self.faults, self.lease, self.apart.is_some(), self.spines[spine].at);
        self.spines[spine].above = Some(above);
    }

    fn spine(&self) -> &SwitchHandle {
        self.switch(0)
    }

    fn switch(&self, spine: usize) -> &SwitchHandle {
        &self.spines[spine].above.as_ref().expect("it lives").life.switch
    }

    /// The spines' controllers.
    pub(crate) fn controllers(&self) -> Vec<Remote> {
        let remote = |at: &Place| Remote::new(&at.controller_at.to_string(), None).expect("an address");
        self.spines.iter().map(remote).collect()
    }

    /// Starts a leaf in a new life.
    fn leaf(&self, rack: usize, at: SocketAddr) -> LiveLeaf {
        let place = SwitchPlace::Leaf(reading());
        let life = Life::start(place, self.program, at, self.faults);
        let line = Leaf::start(LeafOptions {
            rack: life.controller(Tier::Leaf, self.lease),
            name: format!("rack-{rack}"),
            at: life.at(),
            life: u64::from(EPOCHS.fetch_add(1, Ordering::Relaxed)) << 32,
            above: self.controllers_of(rack),
            tables: life.switch.tables(),
        });
        LiveLeaf { _line: line.expect("a free port"), life }
    }

    /// The controllers with which a leaf registers. A controller above all spines decides itself which
    /// spine stands in.
    fn controllers_of(&self, rack: usize) -> Controllers {
        let mut all = self.controllers();
        match &self.apart {
            Some(_) => all.remove(rack / self.each).into(),
            None => Controllers::homes(&all).remove(rack / self.each),
        }
    }

    pub(crate) fn kill(&mut self, rack: usize) {
        self.racks[rack].leaf = None;
    }

    pub(crate) fn bring_back(&mut self, rack: usize) {
        self.racks[rack].leaf = Some(self.leaf(rack, self.racks[rack].at));
    }

    pub(crate) fn worker(&self, rack: usize, name: &str, echo: &Echo) -> Running {
        let mut options = WorkerOptions::new(&self.racks[rack].at.to_string()).expect("a legal address");
        name.clone_into(&mut options.name);
        options.faults = FaultPlan::both(rack as u64, name, self.faults);
        Running::start(&options, echo.clone())
    }

    fn client(&self, name: &str) -> Client {
        Client::connect(&self.client_options(name)).expect("the spine's controller takes clients")
    }

    pub(crate) fn client_options(&self, name: &str) -> ClientOptions {
        let controller = self.spines[0].controller_at.to_string();
        ClientOptions {
            name: name.to_owned(),
            faults: FaultPlan::both(99, name, self.faults),
            patience: Duration::from_mins(2),
            ..ClientOptions::new(&controller).expect("a legal address")
        }
    }

    /// The weights of the leaves in the spine's table.
    fn weights(&self) -> Vec<u16> {
        self.weights_at(0)
    }

    pub(crate) fn weights_at(&self, spine: usize) -> Vec<u16> {
        let rows = self.rows_at(spine).into_iter().filter(|row| row.open);
        let mut weights: Vec<u16> = rows.map(|row| row.workers).collect();
        weights.sort_unstable();
        weights
    }

    pub(crate) fn rows_at(&self, spine: usize) -> Vec<WorkerRow> {
        (0..64).filter_map(|leaf| self.row_at(spine, WorkerId(leaf))).collect()
    }

    /// How many clients are registered at a spine.
    pub(crate) fn clients_at(&self, spine: usize) -> usize {
        // More rows than any test has clients.
        let asked = (0..8).map(|client| TableOp::ReadClient(ClientId(client))).collect();
        let answers = self.switch(spine).tables().call(asked).expect("the spine runs");
        answers.iter().filter(|answer| matches!(answer, TableAnswer::Client(Some(_)))).count()
    }

    fn row(&self, leaf: WorkerId) -> Option<WorkerRow> {
        self.row_at(0, leaf)
    }

    fn row_at(&self, spine: usize, leaf: WorkerId) -> Option<WorkerRow> {
        let asked = self.switch(spine).tables().call(vec![TableOp::ReadWorker(leaf)]);
        match asked.expect("the spine runs").remove(0) {
            TableAnswer::Worker(state) => state.row,
            other => panic!("{other:?}"),
        }
    }

    fn epoch(&self) -> Epoch {
        match self.spine().tables().call(vec![TableOp::ReadShape]).expect("it runs").remove(0) {
            TableAnswer::Shape(shape) => shape.epoch,
            other => panic!("{other:?}"),
        }
    }

    fn counted(&self, name: &str) -> u64 {
        self.counted_at(0, name)
    }

    pub(crate) fn counted_at(&self, spine: usize, name: &str) -> u64 {
        self.spines[spine].above.as_ref().map_or(0, |above| above.life.counted(name))
    }

    pub(crate) fn leaf_counted(&self, rack: usize, name: &str) -> u64 {
        self.racks[rack].leaf.as_ref().map_or(0, |leaf| leaf.life.counted(name))
    }
}

fn submit(client: &Client, numbers: std::ops::Range<u32>) -> Vec<(u32, PendingTask)> {
    numbers.map(|i| (i, client.submit(ECHO, &i.to_be_bytes(), DEADLINE).expect("it fits"))).collect()
}

/// Waits for all tasks, and checks that each was answered with its own bytes.
pub(crate) fn all_replied(pending: Vec<(u32, PendingTask)>) -> u64 {
    let mut tried_again = 0;
    for (i, pending) in pending {
        let ended = pending.wait();
        assert_eq!(ended.outcome.done(), Some(&i.to_be_bytes()[..]), "{i}: {}", ended.outcome);
        tried_again += u64::from(ended.attempts > 1);
    }
    tried_again
}

#[test]
fn tasks_go_through_the_spine_to_all_racks_and_come_back_whole() {
    tasks_come_back_whole(HORUS);
}

#[test]
fn tasks_that_wait_in_racks_of_rain_come_back_whole() {
    tasks_come_back_whole(RAIN);
}

fn tasks_come_back_whole(leaves: &'static str) {
    let fabric = Fabric::running(leaves, 3);
    let echo = Echo { takes: Duration::from_millis(1), ..Echo::default() };
    let _workers = [0, 0, 1, 2].map(|rack| fabric.worker(rack, &named(rack), &echo));
    until("all racks", || fabric.weights() == [1, 1, 2]);
    let client = fabric.client("c");
    let most = client.payload_max();
    for bytes in [0, 8, 9, 1_380, 1_384, 2_049, 30_000, most] {
        let task: Vec<u8> = (0..bytes).map(|i| (i / 7) as u8).collect();
        let ended = client.submit(ECHO, &task, DEADLINE).expect("it fits").wait();
        assert_eq!(ended.outcome.done(), Some(&task[..]), "{bytes} bytes: {}", ended.outcome);
    }
    let mut tried_again: u64 =
        (0..10).map(|round| all_replied(submit(&client, round * 20..round * 20 + 20))).sum();
    until("all racks' work", || (0..3).all(|rack| fabric.leaf_counted(rack, "dispatched") > 0));
    // More tasks than four workers take: a worker that gets a task that waited fetches the rest from its
    // client.
    let long = |i: u8| client.submit(ECHO, &vec![i; 30_000], DEADLINE).expect("it fits");
    for (i, pending) in (0..40).map(|i| (i, long(i))).collect::<Vec<_>>() {
        let ended = pending.wait();
        assert_eq!(ended.outcome.done(), Some(&vec![i; 30_000][..]), "{i}: {}", ended.outcome);
        tried_again += u64::from(ended.attempts > 1);
    }
    let runs = echo.runs.load(Ordering::Relaxed);
    assert!(tried_again > 0 || runs == 8 + 200 + 40, "each task ran once: {runs}");
}

/// A name that no other worker has.
pub(crate) fn named(rack: usize) -> String {
    format!("{rack}-{}", EPOCHS.fetch_add(1, Ordering::Relaxed))
}

#[test]
fn a_leaf_that_dies_loses_no_task_and_comes_back_under_another_generation() {
    a_leaf_dies_and_comes_back(HORUS);
}

#[test]
fn a_leaf_of_rain_that_dies_with_tasks_that_wait_loses_none() {
    a_leaf_dies_and_comes_back(RAIN);
}

fn a_leaf_dies_and_comes_back(leaves: &'static str) {
    let mut fabric = Fabric::running(leaves, 3);
    let slow = Echo { takes: Duration::from_millis(1), ..Echo::default() };
    let mut workers: Vec<Running> =
        (0..6).map(|worker| fabric.worker(worker % 3, &format!("w{worker}"), &slow)).collect();
    until("all racks", || fabric.weights() == [2, 2, 2]);
    let before: Vec<Generation> = generations(&fabric);
    let client = fabric.client("c");
    let under_way = submit(&client, 0..600);
    until("work", || slow.runs.load(Ordering::Relaxed) > 50);
    fabric.kill(1);
    let meanwhile = submit(&client, 600..900);
    let tried_again = all_replied(under_way) + all_replied(meanwhile);
    assert!(tried_again > 0, "what the dead leaf had was tried again");
    until("the dead leaf to be taken out", || fabric.weights() == [2, 2]);
    fabric.bring_back(1);
    until("it to be back with its workers", || fabric.weights() == [2, 2, 2]);
    let newest = before.iter().max().expect("three leaves");
    assert!(generations(&fabric).iter().any(|generation| generation > newest), "another generation");
    let ran = fabric.leaf_counted(1, "dispatched");
    all_replied(submit(&client, 900..1_500));
    assert!(fabric.leaf_counted(1, "dispatched") > ran, "it gets tasks again");
    let report = client.close().expect("no error");
    assert_eq!((report.tasks.replied, report.tasks.refused, report.tasks.unknown), (1_500, 0, 0));
    workers.clear();
}

fn generations(fabric: &Fabric) -> Vec<Generation> {
    fabric.rows_at(0).into_iter().map(|row| row.generation).collect()
}

#[test]
fn tasks_outlive_the_spine_and_its_controller() {
    let mut fabric = Fabric::of(2);
    let slow = Echo { takes: Duration::from_millis(1), ..Echo::default() };
    let _workers = [0, 1].map(|rack| fabric.worker(rack, &format!("w{rack}"), &slow));
    until("both racks", || fabric.weights() == [1, 1]);
    let client = fabric.client("c");
    let pending = submit(&client, 0..300);
    until("work", || slow.runs.load(Ordering::Relaxed) > 20);
    fabric.kill_spine(0);
    fabric.bring_spine_back(0);
    for (i, pending) in pending {
        let outcome = insist(&client, &i.to_be_bytes(), pending, &[NOBODY]);
        assert_eq!(outcome.done(), Some(&i.to_be_bytes()[..]), "{i}: {outcome}");
    }
}

/// Submits each task through a randomly drawn spine.
pub(crate) fn submit_spread(client: &SpineClients, numbers: std::ops::Range<u32>) -> Vec<(u32, PendingTask)> {
    let submit = |i: u32| client.draw(ECHO).submit(ECHO, &i.to_be_bytes(), DEADLINE).expect("it fits");
    numbers.map(|i| (i, submit(i))).collect()
}

#[test]
fn tasks_go_to_spines_by_the_workers_below_them() {
    let fabric = Fabric::under(2, 2);
    let _workers = [0, 0, 0, 1].map(|rack| fabric.worker(rack, &named(rack), &Echo::default()));
    until("both racks", || fabric.weights_at(0) == [3] && fabric.weights_at(1) == [1]);
    let client =
        SpineClients::connect(&fabric.client_options("c"), &fabric.controllers(), 1).expect("both take it");
    let tried_again: u64 =
        (0..20).map(|round| all_replied(submit_spread(&client, round * 20..round * 20 + 20))).sum();
    let dispatched = || [0, 1].map(|spine| fabric.counted_at(spine, "dispatched"));
    // A switch publishes its counters behind the packets that they count.
    until("a dispatch for each", || dispatched().iter().sum::<u64>() >= 400);
    let [first, second] = dispatched();
    assert!((240..=360 + tried_again).contains(&first), "{first} and {second}");
}

#[test]
fn a_spine_that_dies_loses_no_task_and_gets_its_racks_back() {
    let mut fabric = Fabric::under(4, 2);
    let slow = Echo { takes: Duration::from_millis(1), ..Echo::default() };
    let _workers = [0, 1, 2, 3].map(|rack| fabric.worker(rack, &named(rack), &slow));
    let at_home = |fabric: &Fabric| [0, 1].iter().all(|spine| fabric.weights_at(*spine) == [1, 1]);
    until("two racks at each", || at_home(&fabric));
    let client =
        SpineClients::connect(&fabric.client_options("c"), &fabric.controllers(), 1).expect("both take it");
    let under_way = submit_spread(&client, 0..600);
    until("work below both", || (0..2).all(|spine| fabric.counted_at(spine, "dispatched") > 20));
    fabric.kill_spine(1);
    let meanwhile = submit_spread(&client, 600..900);
    let tried_again = all_replied(under_way) + all_replied(meanwhile);
    assert!(tried_again > 0, "what the dead spine had was tried again");
    until("its racks to be below the other one", || fabric.weights_at(0) == [1, 1, 1, 1]);
    let ran = fabric.leaf_counted(3, "dispatched");
    all_replied(submit_spread(&client, 900..1_200));
    assert!(fabric.leaf_counted(3, "dispatched") > ran, "they get tasks through it");
    fabric.bring_spine_back(1);
    until("its racks to be back", || at_home(&fabric));
    until("tasks through it", || {
        all_replied(submit_spread(&client, 1_200..1_220));
        fabric.counted_at(1, "dispatched") > 20
    });
    let reports = client.close().expect("no error");
    assert!(reports.iter().all(|report| report.tasks.refused + report.tasks.unknown == 0));
}

#[test]
fn workers_that_come_and_go_change_their_racks_weight_and_the_last_one_takes_it_out() {
    let fabric = Fabric::of(1);
    let echo = Echo::default();
    let first = fabric.worker(0, "first", &echo);
    until("one", || fabric.weights() == [1]);
    let generation = generations(&fabric);
    let second = fabric.worker(0, "second", &echo);
    until("two", || fabric.weights() == [2]);
    assert_eq!(generations(&fabric), generation, "a weight is no new generation");
    second.drain();
    until("one again", || fabric.weights() == [1]);
    first.drain();
    until("none", || fabric.weights().is_empty());
    let _third = fabric.worker(0, "third", &echo);
    until("one that came back", || fabric.weights() == [1]);
    let client = fabric.client("c");
    all_replied(submit(&client, 0..50));
}

/// The clients themselves would retry only after ten seconds.
#[test]
fn what_waits_in_a_rack_of_rain_whose_last_worker_leaves_is_told_so_and_goes_to_another_rack() {
    let fabric = Fabric::running(RAIN, 2);
    let slow = Echo { takes: Duration::from_millis(100), ..Echo::default() };
    let last = fabric.worker(0, "last", &slow);
    until("its rack", || fabric.weights() == [1]);
    let options = ClientOptions { dilation: 200, ..fabric.client_options("c") };
    let client = Client::connect(&options).expect("the spine's controller takes clients");
    let pending = submit(&client, 0..8);
    until("all of them there", || fabric.leaf_counted(0, "handed_down") == 8);
    let _other = fabric.worker(1, "other", &Echo::default());
    until("another rack", || fabric.weights() == [1, 1]);
    last.drain();
    assert!(all_replied(pending) > 0, "those that waited were tried again");
    let report = client.close().expect("no error");
    assert!(report.tasks.rejects > 0, "{:?}", report.tasks);
    until("as many told", || fabric.leaf_counted(0, "rejected") == report.tasks.rejects);
    assert_eq!(report.tasks.timeouts, 0);
}

#[test]
fn a_pool_without_workers_in_a_rack_gets_its_tasks_from_the_racks_that_have_some() {
    let fabric = Fabric::of(2);
    let _echo = [0, 1].map(|rack| fabric.worker(rack, &format!("w{rack}"), &Echo::default()));
    let other = WorkerOptions::new(&fabric.racks[1].at.to_string()).expect("an address");
    let other = WorkerOptions { name: "other".to_owned(), ..other };
    let echo = |task: sluice_net::Task<'_>, reply: &mut Vec<u8>| {
        reply.extend(task.bytes);
        Ok(())
    };
    let _other = Running::start(&other, service_fn(OTHER, echo));
    until("three leaves", || fabric.weights() == [1, 1, 1]);
    let client = fabric.client("c");
    let submit = |_| client.submit(OTHER, b"other", DEADLINE).expect("it fits");
    let pending: Vec<PendingTask> = (0..100).map(submit).collect();
    assert!(pending.into_iter().all(|pending| pending.wait().outcome.done() == Some(&b"other"[..])));
    assert_eq!(fabric.leaf_counted(0, "handed_down"), 0);
}

#[test]
fn nothing_is_lost_and_no_try_runs_twice_under_faults_on_every_socket_and_two_hops() {
    nothing_is_lost_under_faults(HORUS);
}

#[test]
fn nothing_is_lost_and_no_try_runs_twice_in_racks_of_rain_under_faults_on_every_socket() {
    nothing_is_lost_under_faults(RAIN);
}

fn nothing_is_lost_under_faults(leaves: &'static str) {
    // Over six hops, a loss of 2 % would need more retries than a client's budget pays for.
    let faults = "loss=0.005,dup=0.02,reorder=0.05,delay=1ms".parse().expect("well written");
    let fabric = Fabric::start(leaves, 2, 1, faults, LEASE, false);
    let echo = Echo::default();
    let _workers = [0, 0, 1, 1].map(|rack| fabric.worker(rack, &named(rack), &echo));
    until("both racks", || fabric.weights() == [2, 2]);
    let client = fabric.client("c");
    let mut tries = 0;
    for round in 0..4 {
        for (i, pending) in submit(&client, round * 300..(round + 1) * 300) {
            let ended = pending.wait();
            assert_eq!(ended.outcome.done(), Some(&i.to_be_bytes()[..]), "{i}: {}", ended.outcome);
            tries += u64::from(ended.attempts);
        }
    }
    let runs = echo.runs.load(Ordering::Relaxed);
    assert!((1_200..=tries).contains(&runs), "{runs} runs of {tries} tries");
    let again: u64 = (0..2).map(|rack| fabric.leaf_counted(rack, "replayed")).sum();
    assert!(again > 0, "what came twice was let in once");
}

#[test]
fn who_registers_at_the_wrong_place_is_told_which_one_is_right() {
    let fabric = Fabric::of(1);
    let leaf = fabric.racks[0].at.to_string();
    let mut options = fabric.client_options("c");
    options.controller = Remote::new(&leaf, None).expect("an address");
    let why = Client::connect(&options).expect_err("a leaf takes no clients").to_string();
    assert!(why.contains("takes tasks from its spine only"), "{why}");
    let options = WorkerOptions::new(&fabric.spines[0].controller_at.to_string()).expect("an address");
    let worker = sluice_net::Worker::new(&options, Echo::default()).expect("free ports");
    let why = worker.run().expect_err("a spine takes no workers").to_string();
    assert!(why.contains("registers with the leaf of its rack"), "{why}");
}

#[test]
fn a_leaf_that_tells_what_is_not_its_own_is_refused_and_counted() {
    let fabric = Fabric::of(1);
    let _worker = fabric.worker(0, "w", &Echo::default());
    until("its rack", || fabric.weights() == [1]);
    let leaf = (0..64).map(WorkerId).find(|leaf| fabric.row(*leaf).is_some()).expect("it is there");
    let row = fabric.row(leaf).expect("it is there");
    let (spine, epoch) = (fabric.spine().local(), fabric.epoch());
    let mallory = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port");
    let honest = Update { epoch, leaf, generation: row.generation, pool: row.slice, news: RackNews::Idle };
    let says = |update: Update| {
        let mut bytes = [0; 256];
        let written = encode(&Packet::Update(update), &[], &mut bytes).expect("it fits");
        mallory.send_to(&bytes[..written], spine).expect("it is sent");
    };
    says(honest);
    until("another's number", || fabric.counted("wrong_address") == 1);
    says(Update { leaf: WorkerId(63), ..honest });
    until("nobody's number", || fabric.counted("unknown_source") == 1);
    says(Update { pool: SliceId(9), leaf: WorkerId(60), ..honest });
    until("nobody's pool", || fabric.counted("unknown_source") == 2);
    let client = fabric.client("c");
    all_replied(submit(&client, 0..20));
}
