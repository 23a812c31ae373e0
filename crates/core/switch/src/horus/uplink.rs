//! A leaf's side towards its spines (Horus §3.4, A.2): which tasks it lets in, and what it tells a spine.
//!
//! A spine numbers the tasks that it forwards, and the leaf lets each number in once. For each pool the
//! leaf keeps the mean queue of its workers, and what it told the pool's spine last: whether workers are
//! idle, and the mean. A pass sends one UPDATE at most. Idleness goes first, since the mean can wait for
//! the next reply.
//!
//! As printed, the mean counts up for each task and down for each reply. So a lost packet, or a change of
//! the pool's workers, shifts it for good. Here the mean follows what the switch knows of each worker: a
//! reply subtracts what was known and adds what it tells.
//!
//! As printed, the leaf tells the mean when it moved by one task since it was told. But the spine adds a
//! share for each task that it sends, and nothing subtracts these shares while the mean stays. So a rack
//! that always has idle workers seems to have thousands of tasks before it, and gets none as soon as the
//! spine has to compare means. Here the leaf adds the same shares to what it told, and tells the mean when
//! the two are one task apart.

use alloc::boxed::Box;
use alloc::vec;

use sluice_wire::tables::SpineRow;
use sluice_wire::{Dispatch, Endpoint, Key, MeanQueue, RackNews, Serial, SliceId, Submit};

use super::reading::{FabricReading, LoadsTold, PolicyParts};
use super::updates::{IDLE_SELECTED, SpineLink};
use super::{Average, HorusError, RackSize};
use crate::config::Config;
use crate::pipeline::{Layout, Pass, Register};
use crate::program::Mirror;
use crate::refusal::Refusal;

/// How many numbers of a spine may be under way at once. A task whose number is older by more is dropped.
const WINDOW: u32 = 1 << 10;

/// The front's table of the spine above each pool, which the uplink keeps in step with its links.
type Above<'a> = &'a mut [Option<Endpoint>];

/// The stages of the arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UplinkStages {
    pub(crate) numbers: u8,
    /// The stage of two arrays: whether the spine was told that the rack is idle, and the average, if one
    /// is kept.
    pub(crate) idle: u8,
    /// The stage of the load that was told.
    pub(crate) told: u8,
    /// Whether averages are kept in an array.
    pub(crate) averages: bool,
}

impl UplinkStages {
    /// The stages for programs that push tasks to workers and learn of their ends by replies.
    pub(crate) const PUSHED: Self = Self { numbers: 1, idle: 8, told: 9, averages: true };
}

/// The spines, the averages, and what the spines were told.
#[derive(Debug)]
pub(crate) struct Uplink {
    reading: FabricReading,
    spines: Box<[Option<SpineLink>]>,
    pools: Box<[Pool]>,
    /// By spine and number modulo [`WINDOW`]: the newest number that was let in.
    numbers: Register<u32>,
    /// `None` if the program computes the average in each pass itself.
    averages: Option<Register<u32>>,
    /// Whether the spine was told last that workers are idle.
    told_idle: Register<bool>,
    /// The mean as the spine knows it: what it was told last, plus a share for each task that it sent since
    /// (as printed, without these shares). If loads are told by replies: how many replies came since.
    told: Register<u32>,
    mirror: Option<Mirror>,
}

/// What a leaf's control software keeps of a pool.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    /// The spine that gets the pool's UPDATEs.
    linked: Option<u16>,
    /// How many workers the pool has, and the share that a task adds to their mean; `None` while there are
    /// no workers.
    workers: u32,
    share: Option<Average>,
    /// Whether the last repeated UPDATE said that the rack is idle.
    says_idle: bool,
}

/// The state of a pool's rack after a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RackStand {
    /// How many workers are idle.
    pub(crate) idle: u16,
    /// Tasks before all of the rack's workers together.
    pub(crate) tasks: u32,
    /// What the task's spine believes of the rack.
    pub(crate) thought: SpineView,
}

/// What a pass may tell the spine, beside the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TellsOf {
    /// How many entries the list of idle workers has, if the pass knows, and what the spine believes.
    pub(crate) idle: Option<(u16, SpineView)>,
    /// What the spine of this pass's task believes; the spine has counted the task already.
    pub(crate) above: SpineView,
    /// Whether this pass may tell the mean.
    pub(crate) carries_load: bool,
}

/// What a task's spine believes of the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpineView {
    /// That it is idle, or busy. The spine is the one that gets the pool's UPDATEs.
    Idle(bool),
    /// Unknown: it is another spine, or the task recirculates.
    Unknown,
}

impl Uplink {
    /// An uplink without spines.
    pub(crate) fn new(
        layout: &mut Layout,
        (reading, at): (FabricReading, UplinkStages),
        spines: u16,
        config: &Config,
    ) -> Self {
        let pools = usize::from(config.slices);
        let cells = usize::from(spines) * WINDOW as usize;
        layout.table("spines", 0, 144 + 32 + 16 + 32, spines.into());
        layout.table("links and shares of pools", at.idle - 1, 16 + 16 + 32, pools);
        let averages = at.averages.then(|| Register::new(layout, "averages", at.idle, 32, pools, 0));
        Self {
            reading,
            spines: vec![None; spines.into()].into_boxed_slice(),
            pools: vec![Pool::default(); pools].into_boxed_slice(),
            numbers: Register::new(layout, "numbers", at.numbers, 32, cells, 0),
            averages,
            told_idle: Register::new(layout, "told idle", at.idle, 1, pools, false),
            told: Register::new(layout, "told", at.told, 32, pools, 0),
            mirror: None,
        }
    }

    /// Connects a spine, whose tasks are numbered from the one behind `sent` on, or removes it.
    pub(crate) fn set_spine(
        &mut self,
        above: Above<'_>,
        spine: u16,
        row: Option<(SpineLink, Serial)>,
    ) -> Result<(), HorusError> {
        let spines = self.spines.len() as u16;
        let place = self.spines.get_mut(usize::from(spine));
        *place.ok_or(HorusError::UnknownSpine { spine, spines })? = row.map(|(link, _)| link);
        if let Some((_, sent)) = row {
            self.numbers.fill(usize::from(spine) * WINDOW as usize, WINDOW as usize, sent.0);
        }
        let linked = self.pools.iter_mut().enumerate().filter(|(_, pool)| pool.linked == Some(spine));
        for (index, pool) in linked {
            pool.says_idle = false;
            self.told.poke(index, 0);
        }
        self.say(above);
        Ok(())
    }

    /// Sets the spine from which the pool's tasks come; the spine's place here is the pool's. A row that is
    /// set already changes nothing: its numbers do not begin anew.
    pub(crate) fn set_linked(
        &mut self,
        above: Above<'_>,
        pool: SliceId,
        row: SpineRow,
    ) -> Result<(), HorusError> {
        let SpineRow { at, epoch, leaf, generation, start } = row;
        let link = SpineLink { at, epoch, leaf, generation };
        self.link(above, pool, Some(pool.0))?;
        if self.spines[usize::from(pool.0)] == Some(link) {
            return Ok(());
        }
        self.set_spine(above, pool.0, Some((link, start)))
    }

    /// From now on this spine gets the pool's UPDATEs, or none does.
    pub(crate) fn link(
        &mut self,
        above: Above<'_>,
        pool: SliceId,
        spine: Option<u16>,
    ) -> Result<(), HorusError> {
        let (spines, pools) = (self.spines.len() as u16, self.pools.len() as u16);
        if let Some(spine) = spine.filter(|spine| *spine >= spines) {
            return Err(HorusError::UnknownSpine { spine, spines });
        }
        let place = self.pools.get_mut(usize::from(pool.0));
        let linked = &mut place.ok_or(HorusError::UnknownPool { pool, pools })?.linked;
        if *linked != spine {
            *linked = spine;
            // A spine that gets UPDATEs of the pool for the first time knows no mean of it.
            self.told.poke(pool.0.into(), 0);
        }
        self.say(above);
        Ok(())
    }

    /// Sets how many workers the pool has, and how many tasks are known to be before them.
    pub(crate) fn resize(&mut self, pool: SliceId, workers: u16, tasks: u32) {
        let share = RackSize::new(workers.into()).ok().map(Average::share);
        let place = &mut self.pools[usize::from(pool.0)];
        (place.workers, place.share) = (workers.into(), share);
        let average = self.mean_of(pool, tasks);
        if let Some(averages) = self.averages.as_mut().filter(|_| !self.reading.as_published) {
            averages.poke(pool.0.into(), average.bits());
        }
    }

    /// The mean queue of a pool's workers if so many tasks are before them.
    pub(crate) fn mean_of(&self, pool: SliceId, tasks: u32) -> Average {
        let share = self.pools[usize::from(pool.0)].share;
        share.map_or(Average::default(), |share| Average::of(tasks, share).unwrap_or(Average::MAX))
    }

    /// Lets a spine's task in, once; returns the spine's place here.
    pub(crate) fn admit(&mut self, pass: &mut Pass, from: Endpoint, task: &Dispatch) -> Result<u16, Refusal> {
        let of = |link: &SpineLink| link.at == from;
        let is_named =
            |link: &Option<SpineLink>| link.is_some_and(|link| of(&link) && link.leaf == task.worker);
        let Some(spine) = self.spines.iter().position(is_named) else {
            let is_known = self.spines.iter().flatten().any(of);
            return Err(if is_known { Refusal::WrongAddress } else { Refusal::UnknownSource });
        };
        let link = self.spines[spine].ok_or(Refusal::UnknownSource)?;
        if task.epoch != link.epoch {
            return Err(Refusal::WrongEpoch);
        }
        if task.generation != link.generation {
            return Err(Refusal::WrongGeneration);
        }
        let cell = spine * WINDOW as usize + (task.sent.0 % WINDOW) as usize;
        let is_newer = |held: u32| task.sent.since(Serial(held)) > 0;
        let held = self.numbers.branch(pass, cell, is_newer, |_| task.sent.0, |held| held);
        if is_newer(held) { Ok(spine as u16) } else { Err(Refusal::Replayed) }
    }

    /// What the spine of a task believes of the rack.
    pub(crate) fn thought(&self, pool: SliceId, spine: u16, occupancy: u16) -> SpineView {
        if self.pools[usize::from(pool.0)].linked == Some(spine) {
            SpineView::Idle(occupancy == IDLE_SELECTED)
        } else {
            SpineView::Unknown
        }
    }

    /// A task or reply passed, after which `more` additional tasks are known to be before the workers.
    pub(crate) fn passed(&mut self, pass: &mut Pass, pool: SliceId, more: i64, of: TellsOf) {
        let average = self.count(pass, pool, more);
        self.tell(pass, pool, average, of);
    }

    /// A task or token passed, in a program that computes the rack's state in each pass.
    pub(crate) fn stands(&mut self, pass: &mut Pass, pool: SliceId, stands: RackStand, carries_load: bool) {
        let RackStand { idle, tasks, thought } = stands;
        let idle = self.reading.parts.looks_for_idle().then_some((idle, thought));
        self.tell(pass, pool, self.mean_of(pool, tasks), TellsOf { idle, above: thought, carries_load });
    }

    /// Tells the spine one thing if it is time. First, whether the rack is idle, if the spine believes
    /// otherwise. Second, the load. Third, that the rack is idle once more, if there is nothing else.
    fn tell(&mut self, pass: &mut Pass, pool: SliceId, average: Average, of: TellsOf) {
        let TellsOf { idle, above, carries_load } = of;
        let index = usize::from(pool.0);
        let (mut news, mut is_all_idle) = (None, false);
        if let Some((entries, thought)) = idle {
            let is_idle = entries >= self.reading.idle_from;
            let told = self.told_idle.update(pass, index, |_| is_idle);
            let thought = if let SpineView::Idle(thought) = thought { thought } else { told };
            let is_due = thought != is_idle || told != is_idle;
            news = is_due.then_some(if is_idle { RackNews::Idle } else { RackNews::Busy });
            is_all_idle = carries_load && self.is_all_idle(pool, entries);
        }
        if carries_load {
            news = self.tell_load(pass, pool, average, news);
        } else if let Some(mean) = news.and_then(|news| self.reading.implied(news)) {
            self.told.write(pass, index, mean.bits());
        } else if self.is_counted_above(above) {
            let share = self.pools[index].share.map_or(0, Average::bits);
            self.told.update(pass, index, |told| told.saturating_add(share));
        }
        let news = news.or(is_all_idle.then_some(RackNews::Idle));
        self.mirror = news.and_then(|news| self.tells(pool, news));
    }

    /// Whether the spine has added this task's share to its own mean of the rack. If so, `told` must grow
    /// by the same share. As printed `told` stays, and the spine's shares stay until the mean has moved.
    fn is_counted_above(&self, thought: SpineView) -> bool {
        let SpineView::Idle(is_idle) = thought else { return false };
        let FabricReading { as_published, idle_uncounted, told, parts, .. } = self.reading;
        !as_published
            && told == LoadsTold::ByOne
            && parts == PolicyParts::Both
            && !(is_idle && idle_uncounted)
    }

    /// Whether all workers of a rack are idle. Such a rack repeats that it is idle: if that word is lost,
    /// the spine sends it no task that would make it tell again.
    fn is_all_idle(&self, pool: SliceId, entries: u16) -> bool {
        !self.reading.as_published && u32::from(entries) >= self.pools[usize::from(pool.0)].workers
    }

    /// The mean after `more` additional tasks.
    fn count(&mut self, pass: &mut Pass, pool: SliceId, more: i64) -> Average {
        let share = self.pools[usize::from(pool.0)].share.map_or(0, Average::bits);
        let more = more.saturating_mul(share.into());
        let with = |held: u32| {
            let sum = i64::from(held).saturating_add(more);
            u32::try_from(sum.max(0)).unwrap_or(u32::MAX)
        };
        let averages = self.averages.as_mut();
        averages.map_or(Average::default(), |averages| {
            Average::from_bits(with(averages.update(pass, pool.0.into(), with)))
        })
    }

    /// Tells the load, if it is due and the pass tells nothing else.
    fn tell_load(
        &mut self,
        pass: &mut Pass,
        pool: SliceId,
        average: Average,
        news: Option<RackNews>,
    ) -> Option<RackNews> {
        let (index, workers) = (usize::from(pool.0), self.pools[usize::from(pool.0)].workers);
        let is_free = news.is_none();
        let due = match self.reading.told {
            LoadsTold::ByOne => {
                let implied = news.and_then(|news| self.reading.implied(news));
                let due = |told: u32| is_free && average.apart(Average::from_bits(told)) >= Average::ONE;
                let otherwise = |told| implied.map_or(told, Average::bits);
                due(self.told.branch(pass, index, due, |_| average.bits(), otherwise))
            }
            LoadsTold::Always => is_free,
            LoadsTold::ByReplies => {
                let due = |replies: u32| is_free && replies + 1 >= workers;
                due(self.told.branch(pass, index, due, |_| 0, |replies| replies.saturating_add(1)))
            }
        };
        if due { Some(RackNews::Load(MeanQueue(average.bits()))) } else { news }
    }

    /// The spine that gets the pool's UPDATEs.
    pub(crate) fn linked(&self, pool: SliceId) -> Option<SpineLink> {
        let linked = self.pools[usize::from(pool.0)].linked?;
        self.spines[usize::from(linked)]
    }

    /// The UPDATE with this news, for the spine that gets the pool's UPDATEs.
    pub(crate) fn tells(&self, pool: SliceId, news: RackNews) -> Option<Mirror> {
        self.linked(pool).map(|link| link.tells(pool, news))
    }

    /// The first UPDATE to a spine that does not know the rack yet.
    pub(crate) fn introduces(&mut self, pool: SliceId, entries: u16) -> Option<Mirror> {
        let is_idle = entries >= self.reading.idle_from;
        self.told_idle.poke(pool.0.into(), is_idle);
        if !self.reading.parts.looks_for_idle() {
            return None;
        }
        let news = if is_idle { RackNews::Idle } else { RackNews::Busy };
        if let Some(mean) = self.reading.implied(news) {
            self.told.poke(pool.0.into(), mean.bits());
        }
        self.tells(pool, news)
    }

    /// Repeats the rack's state to the pool's spine, in case an UPDATE was lost. The mean is repeated, so
    /// that shares of tasks sent do not stay for ever. Every other time an idle rack repeats that it is
    /// idle.
    pub(crate) fn tell_again(&mut self, pool: SliceId, entries: u16, average: Average) {
        let index = usize::from(pool.0);
        let is_idle = self.reading.parts.looks_for_idle() && entries >= self.reading.idle_from;
        self.told_idle.poke(index, is_idle);
        let says_idle = &mut self.pools[index].says_idle;
        *says_idle = is_idle && !*says_idle;
        let news = if *says_idle {
            if let Some(mean) = self.reading.implied(RackNews::Idle) {
                self.told.poke(index, mean.bits());
            }
            RackNews::Idle
        } else {
            let average = average.bits();
            if self.reading.told == LoadsTold::ByOne {
                self.told.poke(index, average);
            }
            RackNews::Load(MeanQueue(average))
        };
        self.mirror = self.tells(pool, news);
    }

    /// Writes the front's table of the spine above each pool.
    fn say(&self, above: Above<'_>) {
        for (at, pool) in above.iter_mut().zip(&self.pools) {
            *at = pool.linked.and_then(|spine| self.spines[usize::from(spine)]).map(|link| link.at);
        }
    }

    /// The UPDATE to send in addition to the last pass's packet, if there is one.
    pub(crate) const fn mirrored(&mut self) -> Option<Mirror> {
        self.mirror.take()
    }

    /// The mean queue of a pool's workers.
    pub(crate) fn average(&self, pool: SliceId) -> Average {
        let averages = self.averages.as_ref();
        averages.map_or(Average::default(), |averages| Average::from_bits(averages.peek(pool.0.into())))
    }
}

/// The task that a spine forwards, as its client submitted it, older by its way to the spine.
pub(crate) const fn submitted(task: &Dispatch) -> Submit {
    Submit {
        epoch: task.epoch,
        key: Key(0),
        client: task.client,
        task: task.task,
        attempt: task.attempt,
        task_type: task.task_type,
        priority: task.priority,
        constraints: task.constraints,
        age: task.age,
        budget: task.budget,
        payload: task.payload,
    }
}
