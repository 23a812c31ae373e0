//! Fault runs of all controllers of a datacenter (Horus §3.2, A.3): those of racks, which die with their
//! leaf or alone, and the one above the spines. Calls are lost. Workers, leaves, spines and controllers die
//! and return with an empty memory. A seed gives one run. Each switch is the real program, with the witness
//! before its tables, so the rules about generations and rows are checked throughout.
//!
//! No link between a leaf and a spine is ever used for two lives of either. After the faults, each rack is
//! below its own spine, has the right weight there, and knows its number there.

use std::collections::BTreeMap;

use crate::rack::switch::{Switch, config};
use crate::rack::{LEASE, RENEW, Rack, address, client, plan, worker};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng as _, SeedableRng as _};
use sluice_control::{
    Answer, ClientGrant, ClientHello, Event, LeafAction, LeafLine, Note, Plan, PodRoute, Pods, Tier,
    WorkerHello,
};
use sluice_switch::Config;
use sluice_switch::horus::{FabricReading, Horus, Spine};
use sluice_wire::tables::{SpineRow, TableOp, WorkerRow};
use sluice_wire::{ClientId, Endpoint, Epoch, Generation, Nanos, SliceId, Term, WorkerId};

const SEEDS: u64 = 500;
const SPINES: usize = 2;
const RACKS: usize = 4;
const STEP: Nanos = Nanos(RENEW.0 / 2);
/// Steps with faults, and steps without faults in which everything recovers.
const FAULTY: u32 = 160;
const CALM: u32 = 80;
/// How many percent of the calls are lost while there are faults.
const LOST: u64 = 15;

/// A switch and its epoch, and the number and generation of a leaf there.
type LinkName = (Endpoint, Epoch, WorkerId, Generation);

struct Datacenter {
    dice: ChaCha8Rng,
    now: Nanos,
    pods: Option<Pods>,
    spines: Vec<SpinePlace>,
    racks: Vec<RackPlace>,
    clients: Vec<ClientPlace>,
    lives: u64,
    /// The life of the leaf that had each link.
    links: BTreeMap<LinkName, u64>,
    is_calm: bool,
    /// Whether the controller above has read each spine's tables.
    is_read: [bool; SPINES],
}

/// A spine's switch and controller, and whether it is up.
struct SpinePlace {
    rack: Rack,
    lives: bool,
    epoch: u32,
}

struct RackPlace {
    name: String,
    /// Its leaf and its rack's controller, while the leaf is up.
    leaf: Option<Rack>,
    /// The number of the leaf's life.
    leaf_life: u64,
    /// The leaf's line to the spine's controller, while the rack's controller is up.
    line: Option<LeafLine>,
    hellos: Vec<(SliceId, WorkerHello)>,
    links: BTreeMap<SliceId, SpineRow>,
    workers: Vec<(WorkerHello, bool)>,
    epoch: u32,
}

struct ClientPlace {
    home: usize,
    hello: ClientHello,
    /// The spine at whose address it calls: another than its own after its own did not answer.
    calls: usize,
    /// The spine whose controller granted it last, with the grant.
    granted: Option<(usize, ClientGrant)>,
    /// When it was granted last.
    granted_at: Nanos,
}

impl SpinePlace {
    /// Whether the spine could have served a client.
    fn has_leaves(&mut self) -> bool {
        let is_open = |leaf| self.rack.switch.worker(WorkerId(leaf)).row.is_some_and(|row| row.open);
        self.lives && (0..8).any(is_open)
    }

    fn has_row_of(&mut self, client: &ClientHello) -> bool {
        let clients = self.rack.switch.shape().clients;
        let mut rows = (0..clients).filter_map(|row| self.rack.switch.client(ClientId(row)));
        rows.any(|row| row.incarnation == client.incarnation)
    }
}

fn size(epoch: u32, clients: u16) -> Config {
    Config { epoch: Epoch(epoch), clients, servers: 0, ..config(8, 256) }
}

fn spine_switch(epoch: u32, term: Term) -> Switch {
    let program =
        Spine::new(FabricReading::default(), Config { term, ..size(epoch, 5) }).expect("few leaves");
    Switch::running(Box::new(program), Config { term, ..size(epoch, 4) })
}

fn leaf_switch(epoch: u32) -> Switch {
    Switch::running(Box::new(Horus::in_fabric(FabricReading::default(), size(epoch, 5), 3)), size(epoch, 4))
}

impl Datacenter {
    fn new(seed: u64) -> Self {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        let spine = |spine: usize| {
            let (epoch, at) = (1_000 * (spine as u32 + 1), address(1 + spine as u16));
            let plan = Plan { tier: Tier::Spine, switch: at, ..plan() };
            SpinePlace { rack: Rack::of(plan, spine_switch(epoch, Term(0))), lives: true, epoch }
        };
        let mut life = 0;
        let mut rack = |rack: usize| {
            let workers = 1 + dice.next_u64() % 3;
            let worker = |_| {
                life += 1;
                let slice = if life % 3 == 0 { "scan" } else { "get" };
                (WorkerHello { slice: slice.to_owned(), ..worker(&format!("w-{life}"), life) }, true)
            };
            RackPlace {
                name: format!("rack-{rack}"),
                leaf: None,
                leaf_life: 0,
                line: None,
                hellos: Vec::new(),
                links: BTreeMap::new(),
                workers: (0..workers).map(worker).collect(),
                epoch: 100 * (rack as u32 + 1),
            }
        };
        let racks = (0..RACKS).map(&mut rack).collect();
        let spines: Vec<_> = (0..SPINES).map(spine).collect();
        let client = |home: usize| {
            let hello = client(&format!("c/{home}"), 50 + home as u64);
            ClientPlace { home, hello, calls: home, granted: None, granted_at: Nanos(0) }
        };
        let mut datacenter = Self {
            now: spines[0].rack.now,
            dice,
            pods: None,
            spines,
            racks,
            clients: (0..SPINES).map(client).collect(),
            lives: 1 << 32,
            links: BTreeMap::new(),
            is_calm: false,
            is_read: [false; SPINES],
        };
        datacenter.controller_is_back();
        (0..RACKS).for_each(|rack| datacenter.leaf_is_back(rack));
        datacenter
    }

    fn run(&mut self) {
        for step in 0..FAULTY + CALM {
            self.is_calm = step >= FAULTY;
            if self.is_calm {
                self.all_come_back();
            } else if self.below(8) == 0 {
                self.fault();
            }
            self.hosts_call();
            self.leaves_call();
            self.clients_call();
            self.now = self.now + STEP;
            let leaves =
                self.racks.iter_mut().filter_map(|rack| rack.leaf.as_mut().filter(|_| rack.line.is_some()));
            leaves.for_each(|leaf| leaf.run(STEP));
            for spine in &mut self.spines {
                if self.pods.is_some() { spine.rack.run(STEP) } else { spine.rack.now = self.now }
            }
            self.check_lost_clients();
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.dice.next_u64() % bound
    }

    fn is_lost(&mut self) -> bool {
        !self.is_calm && self.below(100) < LOST
    }

    /// Kills a machine, or starts one again.
    fn fault(&mut self) {
        let (kind, spine, rack) =
            (self.below(5), self.below(SPINES as u64) as usize, self.below(RACKS as u64) as usize);
        match kind {
            0 if self.spines[spine].lives => self.spine_dies(spine),
            0 => self.spine_is_back(spine),
            1 if self.racks[rack].leaf.is_some() => {
                (self.racks[rack].leaf, self.racks[rack].line) = (None, None);
            }
            1 => self.leaf_is_back(rack),
            2 if self.racks[rack].line.is_some() => self.racks[rack].line = None,
            2 => self.racks_controller_is_back(rack),
            3 if self.pods.is_some() => self.pods = None,
            3 => self.controller_is_back(),
            _ => {
                let worker = self.below(self.racks[rack].workers.len() as u64) as usize;
                let (_, lives) = &mut self.racks[rack].workers[worker];
                *lives = !*lives;
            }
        }
    }

    fn all_come_back(&mut self) {
        for spine in 0..SPINES {
            if !self.spines[spine].lives {
                self.spine_is_back(spine);
            }
        }
        if self.pods.is_none() {
            self.controller_is_back();
        }
        for rack in 0..RACKS {
            match (&self.racks[rack].leaf, &self.racks[rack].line) {
                (None, _) => self.leaf_is_back(rack),
                (Some(_), None) => self.racks_controller_is_back(rack),
                (Some(_), Some(_)) => {}
            }
            self.racks[rack].workers.iter_mut().for_each(|(_, lives)| *lives = true);
        }
    }

    fn spine_dies(&mut self, spine: usize) {
        let place = &mut self.spines[spine];
        place.lives = false;
        if let Some(pods) = &mut self.pods {
            place.rack.disconnect(0);
            pods.on_spine(spine, false);
        }
    }

    fn spine_is_back(&mut self, spine: usize) {
        let place = &mut self.spines[spine];
        (place.lives, place.epoch) = (true, place.epoch + 1);
        // The switch keeps the term of the controller that it obeyed.
        place.rack.switch = spine_switch(place.epoch, place.rack.switch.shape().term);
        if let Some(pods) = &mut self.pods {
            place.rack.connect();
            pods.on_spine(spine, true);
        }
    }

    fn controller_is_back(&mut self) {
        let racks: Vec<_> = self.racks.iter().map(|rack| rack.name.clone()).collect();
        let racks = racks.chunks(RACKS / SPINES).map(<[String]>::to_vec).collect();
        let mut pods = Pods::new(racks, self.spines[0].rack.plan.lease, self.now);
        for (spine, place) in self.spines.iter_mut().enumerate() {
            place.rack.now = self.now;
            place.rack.restart_controller(0);
            if place.lives {
                pods.on_spine(spine, true);
            } else {
                place.rack.disconnect(0);
            }
        }
        (self.pods, self.is_read) = (Some(pods), [false; SPINES]);
    }

    fn leaf_is_back(&mut self, rack: usize) {
        let (now, place) = (self.now, &mut self.racks[rack]);
        place.epoch += 1;
        let switch = address(10 + rack as u16);
        let mut leaf = Rack::of(Plan { tier: Tier::Leaf, switch, ..plan() }, leaf_switch(place.epoch));
        leaf.now = now;
        leaf.connect();
        self.lives += 1;
        (self.racks[rack].leaf, self.racks[rack].leaf_life) = (Some(leaf), self.lives);
        self.racks[rack].links.clear();
        self.line_is_new(rack);
    }

    fn racks_controller_is_back(&mut self, rack: usize) {
        let (now, place) = (self.now, &mut self.racks[rack]);
        let Some(leaf) = &mut place.leaf else { return };
        leaf.now = now;
        leaf.restart_controller(0);
        self.line_is_new(rack);
    }

    fn line_is_new(&mut self, rack: usize) {
        self.lives += 1 << 32;
        let place = &mut self.racks[rack];
        let at = address(10 + rack as u16);
        place.line = Some(LeafLine::new(place.name.clone(), at, self.lives, 8));
        place.hellos.clear();
    }

    /// Workers renew in their racks.
    fn hosts_call(&mut self) {
        for rack in 0..RACKS {
            for worker in 0..self.racks[rack].workers.len() {
                if self.is_lost() {
                    continue;
                }
                let RackPlace { leaf, line, workers, .. } = &mut self.racks[rack];
                if let ((hello, true), Some(leaf), Some(_)) = (&workers[worker], leaf, line) {
                    asks(leaf, hello);
                }
            }
        }
    }

    /// Leaves tell the spines' controllers what their racks have, and go where they are sent.
    fn leaves_call(&mut self) {
        for rack in 0..RACKS {
            let RackPlace { leaf: Some(leaf), line: Some(line), .. } = &mut self.racks[rack] else {
                continue;
            };
            let mut said = Vec::new();
            line.sized(leaf.controller.pool_sizes(), &mut said);
            for action in said {
                self.does(rack, action);
            }
            for (pool, hello) in self.racks[rack].hellos.clone() {
                if !self.is_lost() {
                    self.renews(rack, pool, &hello);
                }
            }
        }
    }

    fn does(&mut self, rack: usize, action: LeafAction) {
        match action {
            LeafAction::Say { pool, hello, .. } => {
                let hellos = &mut self.racks[rack].hellos;
                hellos.retain(|(known, _)| *known != pool);
                hellos.push((pool, hello));
            }
            LeafAction::Leave(pool) => self.leaves(rack, pool),
            LeafAction::Link(pool, row) => self.links_to(rack, pool, row),
        }
    }

    /// A leaf whose calls are lost is removed at the end of its lease.
    fn leaves(&mut self, rack: usize, pool: SliceId) {
        let hellos = &mut self.racks[rack].hellos;
        let place = hellos.iter().position(|(known, _)| *known == pool).expect("it was registered");
        let (_, hello) = hellos.remove(place);
        if !self.is_lost()
            && let Some(pods) = &mut self.pods
            && let Some(spine) = pods.seat(&hello.name)
        {
            self.spines[spine].rack.leave(&hello);
            self.spines[spine].rack.flush();
            pods.left(&hello.name);
        }
        let mut said = Vec::new();
        self.racks[rack].line.as_mut().expect("it speaks").left(pool, &mut said);
        for action in said {
            self.does(rack, action);
        }
    }

    fn renews(&mut self, rack: usize, pool: SliceId, hello: &WorkerHello) {
        let Some(pods) = &mut self.pods else { return };
        let Ok(PodRoute { to, from }) = pods.of_leaf(self.now, hello) else { return };
        let mut answer = asks(&mut self.spines[to].rack, hello);
        let mut spine = to;
        match (from, &answer) {
            (Some(from), Some(Answer::Worker(_))) => {
                self.spines[from].rack.leave(hello);
            }
            (Some(from), _) => {
                answer = asks(&mut self.spines[from].rack, hello);
                spine = from;
            }
            (None, _) => {}
        }
        let Some(Answer::Worker(grant)) = answer else { return };
        pods.granted(self.now, &hello.name, spine, grant.key);
        if self.is_lost() {
            return;
        }
        let mut said = Vec::new();
        self.racks[rack].line.as_ref().expect("it speaks").granted(pool, &grant, &mut said);
        for action in said {
            self.does(rack, action);
        }
    }

    fn links_to(&mut self, rack: usize, pool: SliceId, row: SpineRow) {
        let place = &mut self.racks[rack];
        let life =
            *self.links.entry((row.at, row.epoch, row.leaf, row.generation)).or_insert(place.leaf_life);
        assert_eq!(life, place.leaf_life, "{}: {row:?} was another life's", place.name);
        let leaf = place.leaf.as_mut().expect("who speaks lives");
        leaf.switch.table(TableOp::SetSpine(pool, row));
        place.links.insert(pool, row);
    }

    fn clients_call(&mut self) {
        for client in 0..self.clients.len() {
            if self.is_lost() {
                continue;
            }
            let ClientPlace { home, hello, calls, granted, granted_at } = &mut self.clients[client];
            let Some(pods) = &mut self.pods else {
                *calls = (*calls + 1) % SPINES;
                continue;
            };
            for (spine, SpinePlace { rack, .. }) in self.spines.iter_mut().enumerate() {
                // A spine that has been read is told at once what its controller found.
                if rack.controller.does_serve().is_some() {
                    rack.flush();
                }
                let serves = rack.controller.does_serve();
                if serves.is_some() && !self.is_read[spine] {
                    pods.found(spine, rack.controller.client_lives());
                }
                self.is_read[spine] = serves.is_some();
                pods.serves(spine, serves);
            }
            let Ok(PodRoute { to, from }) = pods.of_client(self.now, hello, *calls) else { continue };
            let is_new_there = to != *home && !self.spines[to].has_row_of(hello);
            let own = &mut self.spines[*home];
            assert!(
                !is_new_there || !own.has_leaves() || !own.has_row_of(hello),
                "client {client} goes to {to}"
            );
            let spine = &mut self.spines[to].rack;
            let call = spine.client_hello(hello);
            spine.flush();
            if let Some(Answer::Client(grant)) = spine.answers.get(&call) {
                (*granted, *granted_at) = (Some((to, (**grant).clone())), self.now);
                let others = pods.client_granted(self.now, hello, to, grant.key);
                // A client that another spine's controller answered asks at its own spine next.
                *calls = *home;
                for other in others {
                    self.spines[other].rack.feed(Event::ClientElsewhere(hello.incarnation));
                }
            } else if let Some(from) = from {
                let from = &mut self.spines[from].rack;
                from.client_hello(hello);
                from.flush();
            }
        }
    }

    /// A client that was granted at one spine within the last lease is not said to be dead at another.
    fn check_lost_clients(&mut self) {
        for (at, spine) in self.spines.iter_mut().enumerate() {
            for note in core::mem::take(&mut spine.rack.notes) {
                let Note::ClientDied { name, .. } = note else { continue };
                let lives = |client: &&ClientPlace| {
                    let is_elsewhere = client.granted.as_ref().is_some_and(|(spine, _)| *spine != at);
                    is_elsewhere && self.now.since(client.granted_at) < LEASE
                };
                let named = |client: &&ClientPlace| name.is_empty() || client.hello.name == name;
                let client = self.clients.iter().filter(named).find(lives);
                assert!(client.is_none(), "spine {at}: {name} died, and is at another spine");
            }
        }
    }

    /// The state that must be reached long after the faults.
    fn check(&mut self) {
        for spine in 0..SPINES {
            let place = &mut self.spines[spine];
            let rows = (0..8).map(WorkerId).map(|leaf| (leaf, place.rack.switch.worker(leaf).row));
            let rows: Vec<(WorkerId, WorkerRow)> =
                rows.filter_map(|(leaf, row)| Some((leaf, row?))).collect();
            let mut own = 0;
            for rack in spine * RACKS / SPINES..(spine + 1) * RACKS / SPINES {
                for (pool, link) in &self.racks[rack].links {
                    let row = rows.iter().find(|(leaf, _)| *leaf == link.leaf).map(|(_, row)| row);
                    let row = row.unwrap_or_else(|| panic!("rack {rack} is not below its spine: {link:?}"));
                    let slice = ["get", "scan"][usize::from(pool.0)];
                    let workers = self.racks[rack].workers.iter().filter(|(hello, _)| hello.slice == slice);
                    assert_eq!(usize::from(row.workers), workers.count(), "the weight of rack {rack}");
                    let known = (link.at, link.epoch, link.generation);
                    assert_eq!(
                        known,
                        (place.rack.plan.switch, place.rack.switch.shape().epoch, row.generation)
                    );
                    assert!(row.open && row.slice == *pool, "{row:?}");
                    own += 1;
                }
            }
            assert_eq!(rows.len(), own, "the leaves of spine {spine}: {rows:?}");
            let ClientPlace { home, granted, .. } = &self.clients[spine];
            let (at, grant) = granted.as_ref().expect("it was let in");
            assert_eq!(at, home, "a client is at its own spine");
            assert_eq!(place.rack.switch.client(grant.client).map(|row| row.key), Some(grant.key));
        }
    }
}

/// Asks, and returns the answer if it comes at once.
fn asks(rack: &mut Rack, hello: &WorkerHello) -> Option<Answer> {
    let call = rack.hello(hello);
    rack.flush();
    rack.answers.get(&call).cloned()
}

#[test]
fn whichever_controllers_and_switches_die_each_rack_ends_below_its_own_spine_with_what_it_has() {
    for seed in 0..SEEDS {
        let mut datacenter = Datacenter::new(seed);
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            datacenter.run();
            datacenter.check();
        }));
        assert!(ran.is_ok(), "seed {seed}: see above");
    }
}
