//! A leaf's side towards its spines (Horus §3.4, A.2): which tasks it lets in, and what it tells.
//!
//! A spine numbers what it forwards, and the leaf lets each number in once. For each pool it keeps the mean
//! queue of its workers, and what the pool's linked spine was told last: that there are idle workers or none,
//! and that mean. A pass tells one thing at most: idleness first, since the mean can wait for the next reply.
//!
//! As printed the mean counts one up for each task and one down for each reply, so that a lost packet, or a
//! pool with more or fewer workers than before, shifts it for good. Here it follows what the switch knows of
//! each worker: a reply takes off what was known and adds what it tells.
//!
//! As printed the mean is told when it moved by one since it was told last. But its spine adds a share for
//! each task that it sends there, and nothing takes these off while the mean stays: a rack that always has
//! idle workers seems to have thousands of tasks before it, and gets none as soon as the spine has to compare
//! means. Here the leaf adds the same shares to what it told, and tells the mean when the two are one apart.

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

/// Numbers of a spine that may be under way at once: one that comes later than so many after it is dropped.
const WINDOW: u32 = 1 << 10;

/// The front's word for who is above each pool, kept in step with the links.
type Above<'a> = &'a mut [Option<Endpoint>];

/// The stages of the arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UplinkStages {
    pub(crate) numbers: u8,
    /// Whether a rack was told to be idle; and its average, if one is kept.
    pub(crate) idle: u8,
    /// The load that was told.
    pub(crate) told: u8,
    /// Whether averages are kept here.
    pub(crate) averages: bool,
}

impl UplinkStages {
    /// Those of programs that push tasks to workers and learn of their ends by replies.
    pub(crate) const PUSHED: Self = Self { numbers: 1, idle: 8, told: 9, averages: true };
}

/// Spines, averages, and what was told.
#[derive(Debug)]
pub(crate) struct Uplink {
    reading: FabricReading,
    spines: Box<[Option<SpineLink>]>,
    pools: Box<[Pool]>,
    /// By spine and number modulo [`WINDOW`]: the newest number that was let in.
    numbers: Register<u32>,
    /// There if the program does not see it in each pass.
    averages: Option<Register<u32>>,
    /// Whether the spine was told last that there are idle workers.
    told_idle: Register<bool>,
    /// The mean as the spine knows it: what was told last, and a share for each task that it has sent since
    /// (as printed, without these); by replies, how many of them came since.
    told: Register<u32>,
    mirror: Option<Mirror>,
}

/// What a leaf's control software keeps of a pool.
#[derive(Clone, Copy, Debug, Default)]
struct Pool {
    /// The spine that is told.
    linked: Option<u16>,
    /// How many there are, and what a task adds to their mean; nothing while there are none.
    workers: u32,
    share: Option<Average>,
    /// The spine was told anew last that the rack is idle.
    says_idle: bool,
}

/// How a pool's rack stands after a pass.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RackStand {
    /// Idle workers.
    pub(crate) idle: u16,
    /// Tasks before all of its workers together.
    pub(crate) tasks: u32,
    /// What the task's spine thinks.
    pub(crate) thought: SpineView,
}

/// What a pass tells of, beside the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TellsOf {
    /// How many entries the list of idle workers has, and what the spine thinks, if the pass knows.
    pub(crate) idle: Option<(u16, SpineView)>,
    /// What the spine thinks of a task that comes from there: it has counted it.
    pub(crate) above: SpineView,
    /// Whether the mean may be told with it.
    pub(crate) carries_load: bool,
}

/// What a task's spine thinks of the rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpineView {
    /// That it is idle, or not; it is the spine that the rack tells of its pool.
    Idle(bool),
    /// Not known: another spine, or the task goes round.
    Unknown,
}

impl Uplink {
    /// No spine is known.
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

    /// A spine comes, whose tasks are numbered from the one behind `sent` on; or it goes.
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

    /// The pool's tasks come from this spine, which has the pool's place here. The row that it has already
    /// changes nothing: its numbers do not begin anew.
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

    /// From now on this spine is told of the pool's workers, or none.
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
            // Whoever hears of the pool first knows nothing of it.
            self.told.poke(pool.0.into(), 0);
        }
        self.say(above);
        Ok(())
    }

    /// The pool has so many workers now, and so many tasks are known to be before them.
    pub(crate) fn resize(&mut self, pool: SliceId, workers: u16, tasks: u32) {
        let share = RackSize::new(workers.into()).ok().map(Average::share);
        let place = &mut self.pools[usize::from(pool.0)];
        (place.workers, place.share) = (workers.into(), share);
        let average = self.mean_of(pool, tasks);
        if let Some(averages) = self.averages.as_mut().filter(|_| !self.reading.as_published) {
            averages.poke(pool.0.into(), average.bits());
        }
    }

    /// The mean queue of a pool's workers, with so many tasks before them.
    pub(crate) fn mean_of(&self, pool: SliceId, tasks: u32) -> Average {
        let share = self.pools[usize::from(pool.0)].share;
        share.map_or(Average::default(), |share| Average::of(tasks, share).unwrap_or(Average::MAX))
    }

    /// Lets a spine's task in, once; gives the spine's place here.
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

    /// What a spine's task says of the rack.
    pub(crate) fn thought(&self, pool: SliceId, spine: u16, occupancy: u32) -> SpineView {
        if self.pools[usize::from(pool.0)].linked == Some(spine) {
            SpineView::Idle(occupancy == IDLE_SELECTED)
        } else {
            SpineView::Unknown
        }
    }

    /// A task or reply passed, after which `more` tasks are known to be before the workers.
    pub(crate) fn passed(&mut self, pass: &mut Pass, pool: SliceId, more: i64, of: TellsOf) {
        let average = self.count(pass, pool, more);
        self.tell(pass, pool, average, of);
    }

    /// A task or token passed a program that sees itself how its rack stands.
    pub(crate) fn stands(&mut self, pass: &mut Pass, pool: SliceId, stands: RackStand, carries_load: bool) {
        let RackStand { idle, tasks, thought } = stands;
        let idle = self.reading.parts.looks_for_idle().then_some((idle, thought));
        self.tell(pass, pool, self.mean_of(pool, tasks), TellsOf { idle, above: thought, carries_load });
    }

    /// Perhaps something is told: first that the rack is idle, or not, where the spine thinks otherwise; then
    /// the load; and that it is idle once more if it has nothing else to say.
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

    /// Whether the spine has added a task's share to what it knows of the rack: then `told` is what it makes
    /// of the mean that it was told. As printed nobody asks, and what was counted there stays until the mean
    /// has moved.
    fn is_counted_above(&self, thought: SpineView) -> bool {
        let SpineView::Idle(is_idle) = thought else { return false };
        let FabricReading { as_published, idle_uncounted, told, parts, .. } = self.reading;
        !as_published
            && told == LoadsTold::ByOne
            && parts == PolicyParts::Both
            && !(is_idle && idle_uncounted)
    }

    /// A rack whose workers are all idle says so again: nobody would ask it, had its word been lost.
    fn is_all_idle(&self, pool: SliceId, entries: u16) -> bool {
        !self.reading.as_published && u32::from(entries) >= self.pools[usize::from(pool.0)].workers
    }

    /// The mean after so many tasks more.
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

    /// The load is told if it is due and nothing else is.
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

    /// The spine that the pool is linked with.
    pub(crate) fn linked(&self, pool: SliceId) -> Option<SpineLink> {
        let linked = self.pools[usize::from(pool.0)].linked?;
        self.spines[usize::from(linked)]
    }

    /// What is new, for the spine that the pool is linked with.
    pub(crate) fn tells(&self, pool: SliceId, news: RackNews) -> Option<Mirror> {
        self.linked(pool).map(|link| link.tells(pool, news))
    }

    /// What the control software tells a spine that does not know the rack yet.
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

    /// Tells the pool's spine anew how the rack stands, for what was told may have been lost: the mean, so
    /// that nothing that was sent there counts for ever; and every other time that it is idle, if it is.
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

    /// Says which spines pools' tasks come from.
    fn say(&self, above: Above<'_>) {
        for (at, pool) in above.iter_mut().zip(&self.pools) {
            *at = pool.linked.and_then(|spine| self.spines[usize::from(spine)]).map(|link| link.at);
        }
    }

    /// The update beside the last pass's packet.
    pub(crate) const fn mirrored(&mut self) -> Option<Mirror> {
        self.mirror.take()
    }

    /// The mean queue of a pool's workers.
    pub(crate) fn average(&self, pool: SliceId) -> Average {
        let averages = self.averages.as_ref();
        averages.map_or(Average::default(), |averages| Average::from_bits(averages.peek(pool.0.into())))
    }
}

/// What a spine forwards is the task as its client submitted it, older by its way there.
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
        payload: task.payload,
    }
}
