//! Random events in any order, with a switch that answers late. No rule of the model is broken (the model
//! panics), every call is answered once, and when the faults stop all hosts work again.

use crate::rack::switch::{Switch, config};
use crate::rack::{LEASE, RENEW, Rack, address, client, plan, server, with_gpus, with_rings, worker};
use proptest::prelude::*;
use sluice_control::{Answer, ClientHello, Event, ServerHello, WorkerGrant, WorkerHello};
use sluice_wire::tallies::SliceTally;
use sluice_wire::{Nanos, ServerId, SliceId, TaskType, WorkerId};

const NAMES: usize = 5;

#[derive(Clone, Copy, Debug)]
enum Step {
    Renew(usize),
    RenewClient(usize),
    RenewServer(usize),
    CrashServer(usize),
    LeaveServer(usize),
    Rejoin(usize),
    Crash(usize),
    Leave(usize),
    Move(usize, bool),
    Tallies(bool),
    Readdress(usize),
    Token(usize),
    Submit(u16),
    Sweep,
    Execute(u8),
    Deliver(u8),
    Time(u16),
    Late(u16),
    Stall,
    Watch,
    Map(u16, Option<bool>),
    Disconnect(u8),
    RestartSwitch,
    RestartController(u8),
    Reconnect,
}

fn step() -> impl Strategy<Value = Step> {
    let host = 0..NAMES;
    prop_oneof![
        12 => host.clone().prop_map(Step::Renew),
        4 => host.clone().prop_map(Step::RenewClient),
        6 => host.clone().prop_map(Step::RenewServer),
        2 => host.clone().prop_map(Step::CrashServer),
        1 => host.clone().prop_map(Step::LeaveServer),
        1 => host.clone().prop_map(Step::Rejoin),
        2 => host.clone().prop_map(Step::Crash),
        1 => host.clone().prop_map(Step::Leave),
        3 => (host.clone(), any::<bool>()).prop_map(|(h, s)| Step::Move(h, s)),
        3 => any::<bool>().prop_map(Step::Tallies),
        1 => host.clone().prop_map(Step::Readdress),
        12 => host.prop_map(Step::Token),
        8 => (1..4_u16).prop_map(Step::Submit),
        4 => Just(Step::Sweep),
        24 => (1..30_u8).prop_map(Step::Execute),
        24 => (1..30_u8).prop_map(Step::Deliver),
        8 => (1..300_u16).prop_map(Step::Time),
        3 => (1..4_000_u16).prop_map(Step::Late),
        1 => Just(Step::Stall),
        2 => Just(Step::Watch),
        2 => (1..4_u16, any::<Option<bool>>()).prop_map(|(t, scan)| Step::Map(t, scan)),
        1 => (0..6_u8).prop_map(Step::Disconnect),
        1 => Just(Step::RestartSwitch),
        1 => (0..6_u8).prop_map(Step::RestartController),
        4 => Just(Step::Reconnect),
    ]
}

/// One slice is overloaded, the other idle. Every worker is reported in both, at the depth that its host
/// keeps.
fn lending(scan_gives: bool) -> Vec<SliceTally> {
    let depths = || (0..NAMES as u16).map(|index| (WorkerId(index), 2)).collect();
    let tally = |slice, gives: bool| SliceTally {
        slice: SliceId(slice),
        overloads: u32::from(!gives),
        idle_milli: if gives { 3_000 } else { 0 },
        depths: depths(),
        tasks: 0,
    };
    vec![tally(0, !scan_gives), tally(1, scan_gives)]
}

struct World {
    rack: Rack,
    workers: Vec<WorkerHello>,
    clients: Vec<ClientHello>,
    servers: Vec<ServerHello>,
}

impl World {
    fn new(program: &'static str) -> Self {
        let plan = if program == "rain:labels" { with_gpus() } else { plan() };
        let mut rack = Rack::of(plan, Switch::new(program, config(NAMES as u16 + 1, 64)));
        let labels = |i| if program == "rain:labels" && i % 2 == 1 { vec!["gpu".to_owned()] } else { vec![] };
        let workers = (0..NAMES)
            .map(|i| WorkerHello { labels: labels(i), ..worker(&format!("w{i}"), rack.new_life()) })
            .collect();
        let clients = (0..3).map(|i| client(&format!("c{i}"), rack.new_life())).collect();
        let servers = (0..2).map(|i| Self::server(i, rack.new_life())).collect();
        Self { rack, workers, clients, servers }
    }

    /// A server's new life: another queue pair and other keys at the same address.
    fn server(index: usize, life: u64) -> ServerHello {
        ServerHello { at: address(4_000 + index as u16), ..server(&format!("s{index}"), life) }
    }

    /// A server calls, with the rings that it was last asked for, if it was asked.
    fn renew_server(&mut self, index: usize) {
        let call = self.rack.server_hello(&self.servers[index]);
        if let Some(Answer::Server(grant)) = self.rack.answers.get(&call) {
            self.servers[index] = with_rings(&self.servers[index], grant);
        }
    }

    fn take(&mut self, step: Step) {
        if let Step::RenewServer(h) = step {
            self.renew_server(h % 2);
            return;
        }
        let rack = &mut self.rack;
        match step {
            Step::CrashServer(h) => self.servers[h % 2] = Self::server(h % 2, rack.new_life()),
            Step::LeaveServer(h) => {
                let ServerHello { name, life, .. } = self.servers[h % 2].clone();
                rack.call(|call| Event::ServerLeave { call, name, life });
            }
            Step::Rejoin(h) => self.workers[h].rejoins += 1,
            Step::Renew(h) => _ = rack.hello(&self.workers[h]),
            Step::RenewClient(h) => _ = rack.client_hello(&self.clients[h % 3]),
            Step::Crash(h) => {
                self.workers[h].life = rack.new_life();
                let life = rack.new_life();
                self.clients[h % 3].incarnation = sluice_wire::Incarnation(life);
            }
            Step::Leave(h) => _ = rack.leave(&self.workers[h]),
            Step::Move(h, scan) => {
                _ = rack.move_to(&self.workers[h].name, if scan { "scan" } else { "get" });
            }
            Step::Tallies(scan) => {
                let (server, advises) = ("s".to_string(), false);
                rack.feed(Event::Tallies { server, advises, tallies: lending(scan) });
            }
            Step::Readdress(h) => {
                self.workers[h].at = address(rack.new_life() as u16);
                self.clients[h % 3].at = address(rack.new_life() as u16);
            }
            Step::Token(h) => self.token(h),
            Step::Submit(task_type) => rack.switch.submit(TaskType(task_type)),
            Step::Sweep => _ = rack.switch.sweep_once(),
            Step::Execute(n) => (0..n).for_each(|_| _ = rack.execute_one()),
            Step::Deliver(n) => (0..n).for_each(|_| _ = rack.deliver_one()),
            Step::Time(ms) => rack.pass(Nanos::from_millis(u64::from(ms))),
            Step::Late(ms) => {
                rack.end_sweeps();
                rack.tick(rack.now + Nanos::from_millis(u64::from(ms)));
            }
            Step::Stall => {
                rack.end_sweeps();
                rack.now = rack.now + LEASE.times(2);
            }
            Step::Watch => rack.feed(Event::Watch),
            Step::Map(task_type, scan) => {
                let slice = scan.map(|scan| if scan { "scan" } else { "get" }.to_string());
                rack.call(|call| Event::SetType { call, task_type: TaskType(task_type), slice });
            }
            Step::Disconnect(done) => rack.disconnect(usize::from(done)),
            Step::RestartSwitch => rack.restart_switch(),
            Step::RestartController(done) => rack.restart_controller(usize::from(done)),
            Step::Reconnect if !rack.connected => rack.connect(),
            Step::Reconnect | Step::RenewServer(_) => {}
        }
    }

    /// A worker with an open row sends a token under it.
    fn token(&mut self, h: usize) {
        let life = self.workers[h].life;
        let switch = &mut self.rack.switch;
        let mut rows = (0..switch.shape().workers).map(|i| (WorkerId(i), switch.worker(WorkerId(i)).row));
        if let Some((worker, Some(row))) = rows.find(|(_, row)| row.is_some_and(|row| row.life == life)) {
            switch.token(worker, row.generation, 8);
        }
    }

    /// The faults stop and hosts renew on time. A call may wait until sweeps have made room.
    fn calm(&mut self) -> Vec<WorkerGrant> {
        if !self.rack.connected {
            self.rack.connect();
        }
        let end = self.rack.now + LEASE.times(6);
        while self.rack.now < end {
            for hello in &self.workers {
                self.rack.hello(hello);
            }
            for hello in &self.clients {
                self.rack.client_hello(hello);
            }
            for index in 0..self.servers.len() {
                self.renew_server(index);
            }
            self.rack.run(RENEW);
        }
        self.workers.iter().map(|hello| self.rack.join(hello)).collect()
    }

    fn check(&mut self, grants: &[WorkerGrant]) {
        assert!(self.rack.open.is_empty(), "every call is answered");
        for (i, (grant, hello)) in grants.iter().zip(&self.workers).enumerate() {
            let row = self.rack.row(grant.worker);
            assert!(row.open);
            assert_eq!((row.key, row.generation, row.life), (grant.key, grant.generation, hello.life));
            assert_eq!((row.at, row.slice), (hello.at, grant.slice));
            assert!(grants[..i].iter().all(|other| other.worker != grant.worker));
        }
        let switch = &mut self.rack.switch;
        for hello in &self.servers {
            let rows = [0, 1].map(ServerId).map(|server| (server, switch.server(server).row)).into_iter();
            let mut mine = rows.filter(|(_, row)| row.is_some_and(|row| row.at == hello.at));
            let (server, row) = mine.next().expect("a living server is in the switch");
            assert_eq!((row.map(|row| row.qpn), mine.next()), (Some(hello.qpn), None));
            for ring in &hello.rings {
                assert_eq!(switch.ring(ring.slice, server), Some(ring.row));
            }
        }
        for slice in (0..switch.shape().slices).map(SliceId) {
            assert_eq!(switch.stale(slice), 0, "stale tokens are swept");
            let open = switch.slice(slice).row.open;
            assert!(open || switch.tasks(slice).is_empty(), "a closed slice has no tasks waiting");
            assert_eq!(open, grants.iter().any(|grant| grant.slice == slice));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 960, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_all_hosts_work_again_when_it_stops(
        program in prop::sample::select(vec!["rain", "rain:ranked", "rain:classes=4", "rain:labels"]),
        steps in proptest::collection::vec(step(), 1..300),
    ) {
        let mut world = World::new(program);
        world.rack.connect();
        for step in steps {
            world.take(step);
        }
        let grants = world.calm();
        world.check(&grants);

        let before = world.rack.controller.view(world.rack.now);
        world.rack.restart_controller(0);
        world.rack.flush();
        for index in 0..world.servers.len() {
            world.renew_server(index);
        }
        let again: Vec<_> = world.workers.iter().map(|hello| world.rack.ask(hello)).collect();
        for (grant, answer) in grants.iter().zip(again) {
            let grant = WorkerGrant { final_sent: None, ..*grant };
            prop_assert_eq!(answer, Answer::Worker(grant), "the same registration over a controller restart");
        }
        for hello in &world.clients {
            world.rack.join_client(hello);
        }
        let after = world.rack.controller.view(world.rack.now);
        prop_assert_eq!(before.workers.len(), after.workers.len());
        for (before, after) in before.workers.iter().zip(&after.workers) {
            prop_assert_eq!((&before.name, before.worker, before.slice), (&after.name, after.worker, after.slice));
            prop_assert_eq!((before.phase, before.quota), (after.phase, after.quota));
        }

        let ops = world.rack.ops;
        world.rack.run(Nanos::from_millis(400));
        let swept = world.rack.ops;
        for _ in 0..3 {
            for hello in &world.workers {
                world.rack.join(hello);
            }
        }
        prop_assert!(swept >= ops);
        prop_assert_eq!(world.rack.ops, swept, "renewals write nothing");
    }
}
