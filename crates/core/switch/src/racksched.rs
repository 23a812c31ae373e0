//! RackSched: the power of k choices among workers whose loads the switch knows, more or less (Rain §5).
//!
//! A task looks at k random workers of its slice and is pushed to the one with the shortest known queue,
//! however long that is. The switch knows loads in one of two ways. *By replies*: each REPLY passes the
//! switch and says how many tasks its worker still holds; tasks sent since then are not counted. *Tracked*:
//! the switch counts up when it sends a task, and down when the REPLY passes. The counts stand in as many
//! arrays as there are samples, each with all workers. The pass that compares them is behind their stages
//! when it knows the winner, so counting up costs each task one recirculation. The weaknesses of both ways
//! are kept: stale loads attract herds, and a lost DISPATCH or REPLY leaves a tracked load one too high for
//! as long as the worker is registered.
//!
//! Ours: the shared front handles loss and registration as far as it can. There are no tokens, so only the
//! client tries a lost DISPATCH again.
//!
//! The stages, behind the front's 0 and 1: one array of loads for each sample (from 2), `sent` and
//! `seen_out` behind them.
//!
//! With a bound (ours) a task is refused if the worker that it would go to has too many waiting. The switch
//! refuses, by the load that it knows: so a bound is as sharp as that knowledge, and of use with tracked
//! loads above all.
//!
//! Below a spine (RS-H and RS-LB of Horus' paper, §4.1) the program lets each number of its spine in once,
//! and tells the mean queue of its workers with each reply. Above leaves, the leaves are its workers, and
//! their UPDATEs tell the loads.
//!
//! Left out: the second level, RackSched's preemptive scheduling inside a server; its priorities and
//! locality; loads that come as minima or by other reports than the last reply's.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use sluice_wire::tables::{Feed, SliceState, SpineRow, TableAnswer, WorkerRow};
use sluice_wire::{
    ClientId, Endpoint, Generation, Nanos, Packet, RackNews, Reject, RejectReason, Reply, Serial, SliceId,
    Submit, Update, WorkerId,
};

use crate::arguments;
use crate::config::Config;
use crate::front::{BackStages, Entering, Front, HandedDown, Queued, Scheduler};
use crate::horus::{
    FabricReading, HorusError, LoadsTold, SpineLink, SpineView, TellsOf, Uplink, UplinkStages, submitted,
};
use crate::pipeline::{Pass, Register};
use crate::program::{Cargo, Circulating, Mirror, Program, Verdict};
use crate::random::Random;
use crate::refusal::Refusal;
use crate::seats::{Seat, Seats};
use crate::settings::{About, ProgramSettings};
use crate::traits::ProgramTraits;

/// The stage of the first array of loads.
const LOADS_STAGE: u8 = 2;
/// The argument for the most tasks that may wait at a worker.
const BOUND: &str = "bound";
const LOADS: [&str; 8] =
    ["loads 0", "loads 1", "loads 2", "loads 3", "loads 4", "loads 5", "loads 6", "loads 7"];

/// RackSched's program and memory.
#[derive(Debug)]
pub struct RackSched {
    front: Front,
    settings: Settings,
    seats: Seats,
    /// The loads by seat; each sample has a copy.
    loads: Vec<Register<u32>>,
    random: Random,
    post: Post,
}

/// Where the switch stands.
#[derive(Debug)]
enum Post {
    /// Between clients and workers.
    Rack,
    /// Below spines: tasks come from the spines, which are told the mean queue of its workers.
    Leaf(Box<Uplink>),
    /// Above leaves, which are its workers and pass on the REPLYs of theirs.
    Spine(Draw),
}

/// How a spine draws racks.
#[derive(Debug)]
enum Draw {
    Evenly,
    /// By how many workers each rack has; a row per pool.
    BySize(Box<[u32]>),
    /// By flow: a task goes where its flow goes, and each client has so many flows.
    OfFlow(u32),
}

impl Post {
    fn uplink(&mut self) -> Option<&mut Uplink> {
        if let Self::Leaf(uplink) = self { Some(uplink) } else { None }
    }
}

/// The worker that a tracked task was given to; the memo of its recirculation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chosen {
    worker: WorkerId,
    generation: Generation,
}

impl Chosen {
    const fn memo(self) -> u64 {
        (self.worker.0 as u64) << 32 | self.generation.0 as u64
    }

    const fn of(memo: u64) -> Self {
        Self { worker: WorkerId((memo >> 32) as u16), generation: Generation(memo as u32) }
    }
}

impl RackSched {
    /// A spine whose workers are leaves: each task goes to the best of `samples` random leaves, by the mean
    /// queue lengths that they last reported.
    ///
    /// # Panics
    /// If a ring or cell count is not a power of two, or the memory does not fit the chip.
    pub fn spine(samples: u8, config: Config) -> Self {
        Self {
            post: Post::Spine(Draw::Evenly),
            ..Self::new(Settings { samples, ..Settings::default() }, config)
        }
    }

    /// A spine that spreads flows and knows no loads: each client has so many flows, and a hash maps each
    /// flow to one leaf.
    ///
    /// # Panics
    /// As [`Self::spine`] does, and if there are no flows.
    pub fn spine_of_flows(flows: u16, config: Config) -> Self {
        assert!(flows > 0, "a client has one flow at least");
        Self { post: Post::Spine(Draw::OfFlow(flows.into())), ..Self::spine(1, config) }
    }

    /// A spine that draws racks in proportion to their workers ([`Self::set_workers`]). Both samples may be
    /// the same rack.
    ///
    /// # Panics
    /// As [`Self::spine`] does.
    pub fn spine_by_size(samples: u8, config: Config) -> Self {
        let mut spine = Self::spine(samples, config);
        let cells = config.slices as usize * config.workers as usize;
        // A row for each rack: the first and the last of its workers, between which a drawn number falls.
        spine.front.layout.table("racks by their workers", 1, 16 + 32 + 32, cells);
        Self { post: Post::Spine(Draw::BySize(vec![0; cells].into_boxed_slice())), ..spine }
    }

    /// Sets how many of a pool's workers are below a leaf; the leaf's row may say it too. A spine that
    /// draws racks evenly ignores it.
    pub fn set_workers(&mut self, pool: SliceId, leaf: WorkerId, workers: u32) {
        let index = usize::from(pool.0) * usize::from(self.front.config.workers) + usize::from(leaf.0);
        if let Post::Spine(Draw::BySize(sizes)) = &mut self.post
            && let Some(size) = sizes.get_mut(index)
        {
            *size = workers;
        }
    }

    /// A leaf of a fabric, with room for so many spines. Tasks come from these only.
    ///
    /// # Panics
    /// As [`Self::spine`] does.
    pub fn in_fabric(samples: u8, config: Config, spines: u16) -> Self {
        let mut leaf = Self::new(Settings { samples, ..Settings::default() }, config);
        let reading = FabricReading { told: LoadsTold::Always, ..FabricReading::default() };
        leaf.front.below_spines = true;
        let uplink = Uplink::new(&mut leaf.front.layout, (reading, UplinkStages::PUSHED), spines, &config);
        Self { post: Post::Leaf(Box::new(uplink)), ..leaf }
    }

    /// Connects a spine, whose tasks are numbered from the one behind `sent` on, or removes it.
    ///
    /// # Errors
    /// [`HorusError::UnknownSpine`] beyond the room for spines.
    pub fn set_spine(&mut self, spine: u16, row: Option<(SpineLink, Serial)>) -> Result<(), HorusError> {
        let uplink = self.post.uplink().ok_or(HorusError::UnknownSpine { spine, spines: 0 })?;
        uplink.set_spine(&mut self.front.tables.above, spine, row)
    }

    /// From now on this spine, or none, is told of a pool's workers.
    ///
    /// # Errors
    /// [`HorusError::UnknownSpine`], [`HorusError::UnknownPool`].
    pub fn link(&mut self, pool: SliceId, spine: Option<u16>) -> Result<(), HorusError> {
        let unknown = HorusError::UnknownSpine { spine: spine.unwrap_or_default(), spines: 0 };
        self.post.uplink().ok_or(unknown)?.link(&mut self.front.tables.above, pool, spine)
    }

    fn new(settings: Settings, config: Config) -> Self {
        let behind = LOADS_STAGE + settings.samples;
        let back = BackStages { gen_out: behind, sent: behind };
        let mut front = Front::new(Self::NAME, settings.traits().feed, config, back);
        let layout = &mut front.layout;
        let seats = Seats::new(&config);
        Seats::tables(layout, behind, &config);
        let cells = config.slices as usize * config.workers as usize;
        let names = LOADS.iter().zip(LOADS_STAGE..).take(settings.samples.into());
        let loads = names.map(|(name, stage)| Register::new(layout, name, stage, 32, cells, 0)).collect();
        Self { front, settings, seats, loads, random: Random::new(config.seed), post: Post::Rack }
    }

    /// The shortest of k queues, which are different ones if the slice has k workers.
    fn choose(&mut self, pass: &mut Pass, slice: SliceId, seats: u16) -> (Seat, u32) {
        let mut position = self.random.below(seats);
        let mut best: Option<(Seat, u32)> = None;
        let samples = u16::from(self.settings.samples).min(seats);
        let stride = if samples > 1 { (seats - 1) / (samples - 1) } else { 1 };
        for loads in &mut self.loads[..samples as usize] {
            let seat = Seat { slice: slice.0, position };
            let load = loads.read(pass, self.seats.index(seat));
            if best.is_none_or(|(_, least)| load < least) {
                best = Some((seat, load));
            }
            position = (position + 1 + self.random.below(stride)) % seats;
        }
        best.unwrap_or((Seat { slice: slice.0, position }, 0))
    }

    /// A spine's choice, if it does not draw racks evenly. Kept apart, so that tasks of a rack do not pay
    /// for it.
    #[inline(never)]
    fn choose_rack(
        &mut self,
        pass: &mut Pass,
        slice: SliceId,
        submit: &Submit,
        racks: u16,
    ) -> Option<(Seat, u32)> {
        match &self.post {
            Post::Spine(Draw::OfFlow(flows)) => Some((self.of_flow(slice, submit, *flows, racks), 0)),
            Post::Spine(Draw::BySize(_)) => self.choose_by_size(pass, slice, racks),
            Post::Spine(Draw::Evenly) | Post::Rack | Post::Leaf(_) => None,
        }
    }

    /// The shortest among racks drawn in proportion to their workers; `None` if they have no workers.
    fn choose_by_size(&mut self, pass: &mut Pass, slice: SliceId, seats: u16) -> Option<(Seat, u32)> {
        let Post::Spine(Draw::BySize(sizes)) = &self.post else { return None };
        let pool = usize::from(slice.0) * usize::from(self.front.config.workers);
        let seats = || (0..seats).map(|position| Seat { slice: slice.0, position });
        let size = |seat: &Seat| sizes[pool + usize::from(self.seats.worker(*seat).0)];
        let all = seats().map(|seat| size(&seat)).sum();
        let mut best: Option<(Seat, u32)> = None;
        for loads in self.loads.iter_mut().take(usize::from(all > 0) * usize::from(self.settings.samples)) {
            let mut drawn = self.random.below_wide(all);
            let seat = seats().find(|seat| {
                let (below, left) = (drawn < size(seat), drawn.saturating_sub(size(seat)));
                drawn = left;
                below
            })?;
            let load = loads.read(pass, self.seats.index(seat));
            if best.is_none_or(|(_, least)| load < least) {
                best = Some((seat, load));
            }
        }
        best
    }

    /// The seat to which a task's flow goes: a hash of its client and of the flow's number at the client.
    const fn of_flow(&self, slice: SliceId, submit: &Submit, flows: u32, seats: u16) -> Seat {
        let flow = (submit.client.0 as u64) << 32 | (submit.task.sequence.0 % flows) as u64;
        Seat { slice: slice.0, position: Random::new(self.front.config.seed ^ flow).below(seats) }
    }

    /// Counts a worker's load up or down, or sets it; returns the load before.
    #[inline]
    fn note_load(&mut self, pass: &mut Pass, seat: Seat, with: impl Fn(u32) -> u32) -> u32 {
        let index = self.seats.index(seat);
        self.loads.iter_mut().map(|loads| loads.update(pass, index, &with)).last().unwrap_or(0)
    }

    fn put_load(&mut self, seat: Seat, load: u32) {
        let index = self.seats.index(seat);
        self.loads.iter_mut().for_each(|loads| loads.poke(index, load));
    }

    /// The pool's workers have changed: computes their mean anew.
    fn resize(&mut self, slice: u16) {
        let workers = self.seats.of(SliceId(slice));
        let load = |position| self.loads[0].peek(self.seats.index(Seat { slice, position }));
        let tasks = (0..workers).map(load).fold(0, u32::saturating_add);
        if let Some(uplink) = self.post.uplink() {
            uplink.resize(SliceId(slice), workers, tasks);
        }
    }

    /// A task comes from a client, from a spine, or recirculates.
    fn schedule(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        let Entering { submit, arrived, memo } = task;
        let wait = now.since(arrived);
        if let Some(chosen) = memo.map(Chosen::of)
            && let Some(occupancy) = self.count_up(pass, chosen)
        {
            return self.front.push(pass, submit, chosen.worker, Queued { wait, occupancy });
        }
        let slice = match self.front.open_slice(submit) {
            Ok((slice, _)) => slice,
            Err(reason) => return self.front.reject(submit, reason),
        };
        let seats = self.seats.of(slice);
        if seats == 0 {
            return self.front.reject(submit, RejectReason::NoWorkers);
        }
        let of_spine = match self.post {
            Post::Spine(_) => self.choose_rack(pass, slice, submit, seats),
            Post::Rack | Post::Leaf(_) => None,
        };
        let (seat, occupancy) = of_spine.unwrap_or_else(|| self.choose(pass, slice, seats));
        // One of them is served, and does not wait.
        if self.settings.bound.is_some_and(|bound| occupancy > u32::from(bound) + 1) {
            return self.front.reject(submit, RejectReason::Busy);
        }
        let worker = self.seats.worker(seat);
        if self.settings.tracked {
            let generation = self.front.tables.worker(worker).map_or(Generation(0), |row| row.generation);
            let memo = Chosen { worker, generation }.memo();
            return Verdict::Again(Circulating { cargo: Cargo::Task(*submit), arrived, memo });
        }
        self.front.push(pass, submit, worker, Queued { wait, occupancy })
    }

    /// Passes a leaf's packet on to a client.
    #[inline(never)]
    fn passes_on(&self, from: Endpoint, client: ClientId, packet: Packet) -> Verdict {
        let tables = &self.front.tables;
        let is_leaf = tables.workers.iter().flatten().any(|row| row.at == from);
        match tables.client(client).filter(|_| is_leaf) {
            Some(row) => Verdict::Send { to: row.at, packet },
            None => Verdict::Drop(Refusal::UnknownSource),
        }
    }

    /// The second pass of a tracked task; `None` if its worker has left.
    fn count_up(&mut self, pass: &mut Pass, chosen: Chosen) -> Option<u32> {
        let lives = self.front.is_admitted(chosen.worker, chosen.generation);
        let seat = self.seats.seat(chosen.worker).filter(|_| lives)?;
        Some(self.note_load(pass, seat, |load| load.saturating_add(1)))
    }
}

impl Scheduler for RackSched {
    const NAME: &'static str = "racksched";

    fn front(&self) -> &Front {
        &self.front
    }

    fn front_mut(&mut self) -> &mut Front {
        &mut self.front
    }

    /// A task comes from a client (in a rack alone or above racks), from a spine (below it), or
    /// recirculates.
    fn task(&mut self, pass: &mut Pass, now: Nanos, task: Entering<'_>) -> Verdict {
        if self.front.below_spines && task.memo.is_none() {
            return Verdict::Drop(Refusal::Unexpected);
        }
        self.schedule(pass, now, task)
    }

    fn forwarded(&mut self, pass: &mut Pass, now: Nanos, down: HandedDown<'_>) -> Verdict {
        let HandedDown { from, task, room } = down;
        let Some(uplink) = self.post.uplink() else { return Verdict::Drop(Refusal::Unexpected) };
        if let Err(refusal) = uplink.admit(pass, from, task) {
            return Verdict::Drop(refusal);
        }
        let submit = submitted(task);
        if !room {
            return self.front.turn_away(&submit, RejectReason::NoRoom, Some(from));
        }
        self.schedule(pass, now, Entering { submit: &submit, arrived: now, memo: None })
    }

    fn mirrored(&mut self) -> Option<Mirror> {
        self.post.uplink().and_then(Uplink::mirrored)
    }

    /// A leaf told the mean queue of its workers, which is its load here.
    fn update(&mut self, pass: &mut Pass, _: Nanos, from: Endpoint, update: &Update) -> Verdict {
        if let Err(refusal) = self.front.admit_update(from, update) {
            return Verdict::Drop(refusal);
        }
        let seat = self.seats.seat(update.leaf).filter(|seat| seat.slice == update.pool.0);
        match (seat, update.news) {
            (Some(seat), RackNews::Load(mean)) => {
                self.note_load(pass, seat, |_| mean.0);
                Verdict::Parked
            }
            (Some(_), _) => Verdict::Drop(Refusal::Unexpected),
            (None, _) => Verdict::Drop(Refusal::UnknownSource),
        }
    }

    /// A reply tells its worker's load, if it is of this epoch, and goes on to its client. A reply that a
    /// leaf passes on names a worker that a spine does not know.
    fn reply(&mut self, pass: &mut Pass, from: Endpoint, reply: &Reply) -> Verdict {
        if let Post::Spine(_) = self.post {
            let packet = Packet::Reply(Reply { epoch: self.front.config.epoch, ..*reply });
            return self.passes_on(from, reply.client, packet);
        }
        let verdict = match self.front.admit_reply(from, reply) {
            Ok(to) => self.front.hand_on(*to, reply),
            Err(refusal) => return Verdict::Drop(refusal),
        };
        if let Some(seat) = self.seats.seat(reply.worker)
            && reply.epoch == self.front.config.epoch
        {
            if self.settings.tracked {
                self.note_load(pass, seat, |load| load.saturating_sub(1));
            } else {
                let known = self.note_load(pass, seat, |_| reply.load);
                if let Some(uplink) = self.post.uplink() {
                    let more = i64::from(reply.load) - i64::from(known);
                    let of = TellsOf { idle: None, above: SpineView::Unknown, carries_load: true };
                    uplink.passed(pass, SliceId(seat.slice), more, of);
                }
            }
        }
        verdict
    }

    fn rejected(&mut self, _: &mut Pass, from: Endpoint, reject: &Reject) -> Verdict {
        if !matches!(self.post, Post::Spine(_)) {
            return Verdict::Drop(Refusal::Unexpected);
        }
        self.passes_on(from, reject.client, Packet::Reject(*reject))
    }

    /// The next reply tells the new spine the mean.
    fn spine_set(&mut self, pool: SliceId, row: SpineRow) -> Option<TableAnswer> {
        self.post.uplink()?.set_linked(&mut self.front.tables.above, pool, row).ok()?;
        Some(TableAnswer::Done)
    }

    /// No task waits in this program.
    fn slice_state(&self, _: usize) -> SliceState {
        SliceState::default()
    }

    fn worker_set(&mut self, worker: WorkerId, row: Option<&WorkerRow>) {
        if let Some(row) = row.filter(|row| row.workers > 0) {
            self.set_workers(row.slice, worker, row.workers.into());
        }
        let change = self.seats.set(worker, row);
        if let Some((seat, last)) = change.left {
            let moved = self.loads[0].peek(self.seats.index(last));
            self.put_load(seat, moved);
            self.resize(seat.slice);
        }
        if let Some(seat) = change.taken {
            self.put_load(seat, 0);
            self.resize(seat.slice);
        }
    }

    fn grants_ended(&mut self, worker: WorkerId) {
        if let Some(seat) = self.seats.seat(worker) {
            self.put_load(seat, 0);
            self.resize(seat.slice);
        }
    }
}

/// How many queues are compared, and how their lengths are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    samples: u8,
    tracked: bool,
    /// How many tasks a task may find waiting at its worker; one that would find more is refused.
    bound: Option<u8>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { samples: 2, tracked: false, bound: None }
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.samples, if self.tracked { ",tracked" } else { "" })?;
        self.bound.map_or(Ok(()), |bound| write!(f, ",{BOUND}={bound}"))
    }
}

impl ProgramSettings for Settings {
    fn about(&self) -> About {
        About {
            name: RackSched::NAME,
            about: "each task goes at once to the worker with the shortest queue of K random ones, as far as \
                    the switch knows",
            arguments: "K, how many random workers are compared for each task: 1 to 8, else 2; replies, \
                        their queues are known from their replies; tracked, the switch counts what it sent \
                        and what was answered; bound=B, a task that would find more than B waiting at its \
                        worker, as far as the switch knows, is refused at once: 0 to 255",
            example: "racksched:2,tracked",
        }
    }

    fn take(&mut self, argument: &str) -> Option<()> {
        match argument {
            "tracked" => self.tracked = true,
            "replies" => self.tracked = false,
            _ => match argument.split_once('=') {
                Some((BOUND, number)) => self.bound = Some(arguments::number(number, 0..=u8::MAX)?),
                _ => self.samples = arguments::number(argument, 1..=8)?,
            },
        }
        Some(())
    }

    fn traits(&self) -> ProgramTraits {
        ProgramTraits::new(0, Feed::Pushed { reports: true })
    }

    fn build(&self, config: Config) -> Box<dyn Program> {
        Box::new(RackSched::new(*self, config))
    }
}
