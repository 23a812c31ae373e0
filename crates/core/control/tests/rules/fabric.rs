//! Racks below a spine (Horus §3.2, A.3): the spine's controller with leaves for workers, and a leaf's line
//! to that controller.

use crate::rack::switch::{Switch, config};
use crate::rack::{LEASE, RENEW, Rack, address, client, plan, worker};
use sluice_control::{
    Answer, ClientHello, Event, LeafAction, LeafLine, Note, Plan, PoolSize, Refusal, SlicePlan, Tier,
    WorkerHello,
};
use sluice_switch::Config;
use sluice_switch::horus::{FabricReading, Horus, Spine};
use sluice_wire::tables::{SpineRow, TableOp, WorkerRow};
use sluice_wire::{Endpoint, Nanos, SliceId, TaskType, WorkerId};

const GET: SliceId = SliceId(0);
const SCAN: SliceId = SliceId(1);

fn size(clients: u16) -> Config {
    Config { clients, servers: 0, ..config(8, 256) }
}

/// A controller of this tier, which has read its empty switch.
fn up(plan: Plan, switch: Switch) -> Rack {
    let mut rack = Rack::of(plan, switch);
    rack.connect();
    rack.run(Nanos::from_millis(10));
    rack
}

fn spine() -> Rack {
    spine_of(plan())
}

fn spine_of(plan: Plan) -> Rack {
    let program = Spine::new(FabricReading::default(), size(5)).expect("few leaves");
    up(Plan { tier: Tier::Spine, ..plan }, Switch::running(Box::new(program), size(4)))
}

fn leaf() -> Rack {
    leaf_of(plan())
}

fn leaf_of(plan: Plan) -> Rack {
    let program = Horus::in_fabric(FabricReading::default(), size(5), 3);
    up(Plan { tier: Tier::Leaf, ..plan }, Switch::running(Box::new(program), size(4)))
}

fn leaf_at() -> Endpoint {
    address(77)
}

/// A rack whose leaf is registered at the spine's controller, as its driver does it.
struct Fabric {
    spine: Rack,
    leaf: Rack,
    line: LeafLine,
    hellos: Vec<(SliceId, WorkerHello)>,
    links: Vec<(SliceId, SpineRow)>,
}

impl Fabric {
    fn new() -> Self {
        let line = LeafLine::new("rack-1".to_owned(), leaf_at(), 1 << 32, 8);
        Self { spine: spine(), leaf: leaf(), line, hellos: Vec::new(), links: Vec::new() }
    }

    /// A worker joins the rack, for both types.
    fn joins(&mut self, name: &str, life: u64, slice: &str) {
        self.leaf.join(&WorkerHello { slice: slice.to_owned(), ..worker(name, life) });
        self.says();
    }

    /// The leaf tells the state of its rack, until there is nothing more to tell.
    fn says(&mut self) {
        let mut out = Vec::new();
        self.line.sized(self.leaf.controller.pool_sizes(), &mut out);
        while let Some(action) = out.pop() {
            match action {
                LeafAction::Say { pool, hello, .. } => {
                    self.hellos.retain(|(known, _)| *known != pool);
                    let grant = self.spine.join(&hello);
                    self.hellos.push((pool, hello));
                    self.line.granted(pool, &grant, &mut out);
                }
                LeafAction::Leave(pool) => {
                    let place = self.hellos.iter().position(|(known, _)| *known == pool);
                    let (_, hello) = self.hellos.remove(place.expect("it was registered"));
                    self.spine.leave(&hello);
                    self.spine.run(Nanos::from_millis(10));
                    self.line.left(pool, &mut out);
                }
                LeafAction::Link(pool, row) => {
                    self.leaf.switch.table(TableOp::SetSpine(pool, row));
                    self.links.push((pool, row));
                }
            }
        }
    }

    fn rows(&mut self) -> Vec<WorkerRow> {
        (0..8).filter_map(|leaf| self.spine.switch.worker(WorkerId(leaf)).row).collect()
    }

    /// The weights of a pool's leaves.
    fn weights(&mut self, pool: SliceId) -> Vec<u16> {
        self.rows().iter().filter(|row| row.slice == pool).map(|row| row.workers).collect()
    }
}

#[test]
fn a_leaf_registers_once_for_each_pool_with_workers_and_its_weight_follows_them() {
    let mut fabric = Fabric::new();
    fabric.joins("a", 1, "get");
    assert_eq!((fabric.weights(GET), fabric.weights(SCAN)), (vec![1], vec![]));
    let generation = fabric.rows()[0].generation;
    fabric.joins("b", 2, "get");
    fabric.joins("c", 3, "scan");
    assert_eq!((fabric.weights(GET), fabric.weights(SCAN)), (vec![2], vec![1]));
    assert_eq!(fabric.rows()[0].generation, generation, "a weight is no new generation");
    let (pool, row) = fabric.links[0];
    assert_eq!((pool, row.at, row.generation), (GET, fabric.spine.plan.switch, generation));
    let names: Vec<&str> = fabric.hellos.iter().map(|(_, hello)| hello.name.as_str()).collect();
    assert_eq!(names, ["rack-1/get", "rack-1/scan"]);
}

#[test]
fn the_last_worker_of_a_pool_takes_the_leaf_out_and_the_next_one_brings_it_back_anew() {
    let mut fabric = Fabric::new();
    fabric.joins("a", 1, "get");
    let before = fabric.rows()[0];
    fabric.leaf.leave(&worker("a", 1));
    fabric.leaf.run(Nanos::from_millis(10));
    fabric.says();
    assert_eq!(fabric.weights(GET), []);
    assert!(
        fabric.spine.notes.iter().any(|note| matches!(note, Note::SliceClosed { slice } if slice == "get"))
    );
    fabric.joins("a", 5, "get");
    let after = fabric.rows()[0];
    assert_eq!(after.workers, 1);
    assert!(after.generation > before.generation && after.life != before.life);
}

#[test]
fn a_leaf_that_falls_silent_is_taken_out_after_its_lease_and_its_name_is_free_again() {
    let mut fabric = Fabric::new();
    fabric.joins("a", 1, "get");
    let before = fabric.rows()[0];
    fabric.spine.run(LEASE + RENEW);
    assert_eq!(fabric.rows(), [], "the spine forgets it");
    fabric.line = LeafLine::new("rack-1".to_owned(), leaf_at(), 2 << 32, 8);
    fabric.says();
    let after = fabric.rows()[0];
    assert!(after.generation > before.generation && after.life != before.life);
    let (_, row) = *fabric.links.last().expect("it was linked");
    assert_eq!(row.generation, after.generation);
}

#[test]
fn a_rate_that_changes_is_told_with_the_next_renewal_and_a_weight_at_once() {
    let mut line = LeafLine::new("rack-1".to_owned(), leaf_at(), 7, 8);
    let of = |workers, capacity| PoolSize {
        name: "get".to_owned(),
        types: vec![TaskType(1)],
        workers,
        waits: false,
        quotas: u32::from(workers) * 3,
        capacity,
        ..PoolSize::default()
    };
    let mut said = |size: PoolSize| {
        let mut out = Vec::new();
        line.sized(vec![size], &mut out);
        out.into_iter()
            .map(|action| match action {
                LeafAction::Say { hello, at_once, .. } => {
                    (hello.workers, hello.capacity, hello.quota, at_once)
                }
                other => panic!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(said(of(0, 0)), []);
    assert_eq!(said(of(2, 0)), [(2, 0, 6, true)]);
    assert_eq!(said(of(2, 900)), [(2, 900, 6, false)]);
    assert_eq!(said(of(2, 900)), []);
    assert_eq!(said(of(9, 900)), [(9, 900, 8, true)], "a switch believes no larger quota");
}

#[test]
fn a_pool_whose_last_worker_went_leaves_when_nothing_waits_any_more_and_stays_if_one_comes_first() {
    let mut line = LeafLine::new("rack-1".to_owned(), leaf_at(), 7, 8);
    let mut said = |workers, waits| {
        let mut out = Vec::new();
        line.sized(vec![PoolSize { workers, waits, ..PoolSize::default() }], &mut out);
        let one = |action| match action {
            LeafAction::Say { hello, .. } => Some(hello.workers),
            LeafAction::Leave(_) => None,
            other @ LeafAction::Link(..) => panic!("{other:?}"),
        };
        out.into_iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(said(0, true), []);
    assert_eq!(said(1, false), [Some(1)]);
    assert_eq!(said(0, true), []);
    assert_eq!(said(2, false), [Some(2)]);
    assert_eq!(said(0, true), []);
    assert_eq!(said(0, false), [None]);
}

#[test]
fn an_answer_that_comes_after_the_pool_left_links_nothing() {
    let mut fabric = Fabric::new();
    fabric.joins("a", 1, "get");
    let hello = fabric.hellos[0].1.clone();
    let grant = fabric.spine.join(&hello);
    fabric.leaf.leave(&worker("a", 1));
    fabric.leaf.run(Nanos::from_millis(10));
    let mut out = Vec::new();
    fabric.line.sized(fabric.leaf.controller.pool_sizes(), &mut out);
    assert_eq!(out, [LeafAction::Leave(GET)]);
    out.clear();
    fabric.line.granted(GET, &grant, &mut out);
    fabric.line.granted(SliceId(9), &grant, &mut out);
    fabric.line.left(SliceId(9), &mut out);
    assert_eq!(out, []);
}

fn refused(answer: Answer) -> Refusal {
    match answer {
        Answer::Refused { why } => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn who_registers_at_the_wrong_tier_is_refused_by_name() {
    let (mut spine, mut leaf, mut alone) = (spine(), leaf(), Rack::up());
    let weighs = WorkerHello { workers: 3, ..worker("rack-1/get", 1) };
    let no_leaf = Refusal::NoLeaf { name: "w".to_owned() };
    assert_eq!(refused(spine.ask(&worker("w", 1))), no_leaf);
    let no_spine = Refusal::NoSpine { name: "rack-1/get".to_owned(), workers: 3 };
    assert_eq!(refused(leaf.ask(&weighs)), no_spine);
    assert_eq!(refused(alone.ask(&weighs)), no_spine);
    let asks: ClientHello = client("c", 1);
    assert_eq!(refused(leaf.ask_client(&asks)), Refusal::LeafOnly { name: "c".to_owned() });
    spine.join(&weighs);
    let move_it = spine.move_to("rack-1/get", "scan");
    assert_eq!(spine.answers.remove(&move_it).map(refused), Some(Refusal::FixedAbove));
    for rack in [&mut spine, &mut leaf] {
        let map = |call| Event::SetType { call, task_type: TaskType(1), slice: Some("scan".to_owned()) };
        let call = rack.call(map);
        assert_eq!(rack.answers.remove(&call).map(refused), Some(Refusal::FixedAbove));
    }
}

#[test]
fn a_leaf_that_renews_with_no_workers_is_refused_and_its_lease_ends() {
    let mut spine = spine();
    let leaf = WorkerHello { workers: 3, ..worker("rack-1/get", 1) };
    spine.join(&leaf);
    let empty = WorkerHello { workers: 0, ..leaf };
    assert_eq!(refused(spine.ask(&empty)), Refusal::NoLeaf { name: "rack-1/get".to_owned() });
    spine.run(LEASE + RENEW);
    assert_eq!(spine.switch.worker(WorkerId(0)).row, None);
}

/// A rack's own workers alone would let fewer tasks wait than clients may have below the spine. While
/// another rack is dead or slow, all of them may come here.
#[test]
fn a_leaf_has_room_for_all_that_clients_may_have_outstanding_below_the_spine() {
    let planned = Plan { slices: vec![SlicePlan { limit: Some(20), ..plan().slices[0].clone() }], ..plan() };
    for plan in [plan(), planned] {
        let (mut leaf, mut spine) = (leaf_of(plan.clone()), spine_of(plan));
        leaf.join(&WorkerHello { capacity: 1_000, quota: 1, ..worker("w", 1) });
        for (name, life) in [("rack-1/get", 1), ("rack-2/get", 2)] {
            spine.join(&WorkerHello { workers: 1, capacity: 1_000, quota: 1, ..worker(name, life) });
        }
        let shares = spine.join_client(&client("c", 1)).registration.shares;
        let share = shares.iter().find(|(pool, _)| *pool == GET).expect("the pool's").1;
        let room = leaf.switch.slice(GET).row.limit;
        assert!(share > 20 && share <= room, "{share} of them, and room for {room}");
    }
}
