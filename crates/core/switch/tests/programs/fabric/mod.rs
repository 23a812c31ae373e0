//! Horus' spine with its leaves: the tasks that go down, the updates that go up, and what each side
//! refuses.

mod affinity;
mod averages;
mod leaves;
mod parts;
mod racksched;
mod rain;
mod rows;
mod spine;

use sluice_switch::Mirror;
use sluice_switch::horus::{FabricReading, Horus, RackSize, Spine, SpineLink};
use sluice_switch::{Arrival, Config, Program, Refusal, Verdict};
use sluice_wire::tables::{ClientRow, SliceRow, TableAnswer, TableOp, WorkerRow};
use sluice_wire::{
    Dispatch, Endpoint, Generation, Key, Nanos, Packet, RackNews, Reply, Serial, SliceId, Update, WorkerId,
};

use crate::rack::{CLIENT, EPOCH, GET, SLICE, START, at, dispatched, submit};

/// The leaves' generation at the spine.
const GENERATION: Generation = Generation(3);
const SPINE: u16 = 2;

fn config() -> Config {
    Config {
        workers: 40,
        clients: 4,
        slices: 2,
        types: 4,
        tasks_per_slice: 16,
        tokens_per_slice: 64,
        replay_cells: 64,
        counters_start: START,
        ..Config::full(EPOCH)
    }
}

fn spine_at() -> Endpoint {
    at(300)
}

fn leaf_at(leaf: u16) -> Endpoint {
    at(310 + leaf)
}

fn worker_at(leaf: u16, worker: u16) -> Endpoint {
    at(1_000 + 100 * leaf + worker)
}

fn link(leaf: u16) -> SpineLink {
    SpineLink { at: spine_at(), epoch: EPOCH, leaf: WorkerId(leaf), generation: GENERATION }
}

/// A second spine, which gets no UPDATEs.
fn other() -> SpineLink {
    SpineLink { at: at(301), ..link(0) }
}

/// A spine and racks with so many workers each, all in one pool. UPDATEs that leaves sent wait in `told`.
struct Fabric {
    spine: Spine,
    leaves: Vec<Horus>,
    told: Vec<Mirror>,
    next: Serial,
    forced: Serial,
}

impl Fabric {
    /// A fabric in which no UPDATE has arrived yet: each leaf's first one waits.
    fn of(reading: FabricReading, racks: &[u32]) -> Self {
        let spine = Spine::new(reading, config()).expect("few leaves");
        let mut fabric = Self { spine, leaves: Vec::new(), told: Vec::new(), next: START, forced: START };
        open(&mut fabric.spine);
        (0..).zip(racks).for_each(|(leaf, workers)| fabric.rack(reading, leaf, *workers));
        fabric
    }

    /// A fabric with the default reading, after all UPDATEs arrived.
    fn new(racks: &[u32]) -> Self {
        let mut fabric = Self::of(FabricReading::default(), racks);
        fabric.deliver();
        fabric
    }

    /// Racks whose workers each have so many tasks, after all UPDATEs arrived.
    fn busy(reading: FabricReading, racks: &[(u32, u32)]) -> Self {
        let sizes: Vec<u32> = racks.iter().map(|(workers, _)| *workers).collect();
        let mut fabric = Self::of(reading, &sizes);
        fabric.deliver();
        for (leaf, (workers, load)) in (0..).zip(racks) {
            (0..*workers).for_each(|_| fabric.forced(leaf));
            (0..*workers as u16).for_each(|worker| fabric.reply(leaf, worker, *load));
        }
        fabric.deliver();
        fabric
    }

    fn rack(&mut self, reading: FabricReading, leaf: u16, workers: u32) {
        self.row(leaf, GENERATION, true);
        let size = RackSize::new(workers).expect("a size");
        self.spine.set_workers(SLICE, (WorkerId(leaf), GENERATION), Some(size)).expect("a rack");
        let mut program = Horus::in_fabric(reading, config(), 4);
        open(&mut program);
        program.set_spine(SPINE, Some((link(leaf), START))).expect("room for it");
        program
            .set_spine(0, Some((SpineLink { leaf: WorkerId(leaf), ..other() }, START)))
            .expect("room for it");
        for worker in 0..workers as u16 {
            let row = WorkerRow { at: worker_at(leaf, worker), ..crate::rack::row(worker, 1, true) };
            program.table(TableOp::SetWorker(WorkerId(worker), Some(row)));
        }
        let first = program.link(SLICE, Some(SPINE)).expect("a spine that it knows");
        self.told.extend(first);
        self.leaves.push(program);
    }

    /// Writes the spine's row of a leaf.
    fn row(&mut self, leaf: u16, generation: Generation, open: bool) {
        let row = WorkerRow { at: leaf_at(leaf), generation, open, ..WorkerRow::default() };
        let done = self.spine.table(TableOp::SetWorker(WorkerId(leaf), Some(row)));
        assert_eq!(done, TableAnswer::Done);
    }

    /// The first pass of the client's next task.
    fn first_pass(&mut self) -> Verdict {
        let packet = Packet::Submit(submit(self.next));
        self.next = self.next.plus(1);
        self.spine.pass(Nanos(0), Arrival::Wire { from: at(200), packet, room: true })
    }

    /// Chooses the rack for the client's next task, which stays on its way.
    fn chosen(&mut self) -> Dispatch {
        let verdict = self.first_pass();
        dispatched(go_round(&mut self.spine, verdict))
    }

    /// A leaf's pass of a task that a spine forwards.
    fn hand_down(&mut self, leaf: u16, task: Dispatch) -> Verdict {
        let program = &mut self.leaves[usize::from(leaf)];
        let packet = Packet::Dispatch(task);
        let verdict = program.pass(Nanos(0), Arrival::Wire { from: spine_at(), packet, room: true });
        self.told.extend(program.mirrored());
        self.settle(leaf, verdict)
    }

    fn settle(&mut self, leaf: u16, mut verdict: Verdict) -> Verdict {
        while let Verdict::Again(circulating) = verdict {
            let program = &mut self.leaves[usize::from(leaf)];
            verdict = program.pass(Nanos(0), Arrival::Round(circulating));
            self.told.extend(program.mirrored());
        }
        verdict
    }

    /// Sends the client's next task to its worker.
    fn task(&mut self) -> (u16, Dispatch) {
        let task = self.chosen();
        let leaf = task.worker.0;
        (leaf, dispatched(self.hand_down(leaf, task)))
    }

    /// Sends this rack a task from another spine, which tells nothing of the first spine's view.
    fn forced(&mut self, leaf: u16) {
        self.forced = self.forced.plus(1);
        let task = Dispatch { worker: WorkerId(leaf), sent: self.forced, ..self.chosen() };
        let program = &mut self.leaves[usize::from(leaf)];
        let arrival = Arrival::Wire { from: other().at, packet: Packet::Dispatch(task), room: true };
        let verdict = program.pass(Nanos(0), arrival);
        self.told.extend(program.mirrored());
        dispatched(self.settle(leaf, verdict));
    }

    /// A worker of a rack replies that it still holds so many tasks.
    fn reply(&mut self, leaf: u16, worker: u16, load: u32) {
        let (worker, from) = (WorkerId(worker), worker_at(leaf, worker));
        let packet = Packet::Reply(Reply { epoch: EPOCH, worker, client: CLIENT, load, ..Reply::default() });
        let program = &mut self.leaves[usize::from(leaf)];
        let passed = program.pass(Nanos(0), Arrival::Wire { from, packet, room: true });
        assert!(matches!(passed, Verdict::Send { to, .. } if to == at(200)), "{passed:?}");
        self.told.extend(program.mirrored());
    }

    /// The UPDATEs that were sent, each with its leaf.
    fn news(&self) -> Vec<(u16, RackNews)> {
        self.told.iter().map(|told| (told.update.leaf.0, told.update.news)).collect()
    }

    /// Delivers all UPDATEs that were sent; returns how many there were.
    fn deliver(&mut self) -> usize {
        let told = std::mem::take(&mut self.told);
        for Mirror { to, update } in &told {
            assert_eq!(*to, spine_at());
            let noted = self.tell(leaf_at(update.leaf.0), *update);
            assert_eq!(noted, Verdict::Parked, "{update:?}");
        }
        told.len()
    }

    /// Delivers this UPDATE to the spine.
    fn tell(&mut self, from: Endpoint, update: Update) -> Verdict {
        let verdict = self.spine.pass(Nanos(0), update_from(from, update));
        go_round(&mut self.spine, verdict)
    }

    fn says(&mut self, leaf: u16, news: RackNews) {
        let told = Update { epoch: EPOCH, leaf: WorkerId(leaf), generation: GENERATION, pool: SLICE, news };
        assert_eq!(self.tell(leaf_at(leaf), told), Verdict::Parked);
    }
}

fn open(program: &mut dyn Program) {
    let slice = SliceRow { open: true, limit: 16, retry_after: Nanos(500), ..SliceRow::default() };
    program.table(TableOp::SetSlice(SLICE, slice));
    program.table(TableOp::SetType(GET, Some(SLICE)));
    let client = ClientRow { key: Key(22), at: at(200), ..ClientRow::default() };
    program.table(TableOp::SetClient(CLIENT, Some((client, START))));
}

fn update_from(from: Endpoint, update: Update) -> Arrival {
    Arrival::Wire { from, packet: Packet::Update(update), room: true }
}

fn go_round(program: &mut dyn Program, mut verdict: Verdict) -> Verdict {
    while let Verdict::Again(circulating) = verdict {
        verdict = program.pass(Nanos(0), Arrival::Round(circulating));
    }
    verdict
}

fn refused(verdict: Verdict) -> Refusal {
    match verdict {
        Verdict::Drop(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

const NO_POOL: SliceId = SliceId(2);
