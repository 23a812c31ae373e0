//! One core: it takes descriptors, runs the most important request for a slice, and reports ended requests
//! (RingLeader §4.1, §6).
//!
//! A dilated core has its own time: a slice begins when the previous one ended, and lasts for its real
//! duration times the dilation. The core's thread returns to it when the slice is over. If the thread is
//! late, the lateness does not accumulate, so one thread can run many cores. Time for which a service only
//! holds its core is sliced like work.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sluice_host::orchestrator::{CoreId, CoreScheduler, Descriptor, ScheduledRequest};
use sluice_wire::Nanos;

use crate::batch::BatchOnCore;
use crate::coroutines::{BATCH, Coroutines, Handler, ServingCoroutine, SliceRun};
use crate::descriptor::{given_at, request};
use crate::error::CoresError;
use crate::requests::RequestTable;
use crate::rings::{Returner, RingReceiver};
use crate::watch::CoreWatch;

/// The speed of cores, and the length of their slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorePace {
    /// The factor by which all times are stretched. Above 1 a core has its own time.
    pub dilation: u32,
    /// The time, undilated, after which a coroutine yields at its next pause: 5 µs (RingLeader §6).
    pub yields_after: Nanos,
    /// The undilated cost of a context switch that is added on a testbed's core. Zero on this machine,
    /// whose real cost counts by itself.
    pub switch: Nanos,
}

impl Default for CorePace {
    fn default() -> Self {
        Self { dilation: 1, yields_after: Nanos::from_micros(5), switch: Nanos(0) }
    }
}

impl CorePace {
    fn dilated(&self, span: Nanos) -> Nanos {
        span.times(self.dilation.into())
    }

    const fn has_own_time(&self) -> bool {
        self.dilation > 1
    }
}

/// A core, on the thread that runs it.
pub(crate) struct OneCore<R, H> {
    core: CoreId,
    pace: CorePace,
    scheduler: CoreScheduler,
    taker: RingReceiver<AtomicU64>,
    returner: Returner<AtomicU64>,
    watch: Arc<CoreWatch>,
    requests: RequestTable<R>,
    coroutines: Coroutines<R, H>,
    held: Vec<HeldRequest>,
    /// The batch service, which runs when no request does.
    batch: Option<BatchOnCore>,
    slice: Option<SliceOfTime>,
    /// The core's own time: when it has finished everything so far.
    free: Nanos,
    has_told: bool,
}

/// A request on the core.
struct HeldRequest {
    place: u32,
    word: u64,
    given: Nanos,
    /// The request's coroutine, from its first slice until its end.
    coroutine: Option<ServingCoroutine>,
    has_returned: bool,
    /// For how much longer the request occupies the core after its coroutine ended.
    beyond: Nanos,
}

/// The end of the current slice, and what runs in it.
#[derive(Clone, Copy, Debug)]
struct SliceOfTime {
    place: u32,
    until: Nanos,
}

impl<R: Send + 'static, H: Handler<R>> OneCore<R, H> {
    pub(crate) fn new(
        (core, capacity, batch): (CoreId, u32, bool),
        pace: CorePace,
        (taker, returner): (RingReceiver<AtomicU64>, Returner<AtomicU64>),
        watch: Arc<CoreWatch>,
        requests: RequestTable<R>,
        coroutines: Coroutines<R, H>,
    ) -> Self {
        Self {
            scheduler: CoreScheduler::new(core, capacity, pace.dilated(pace.yields_after)),
            held: Vec::with_capacity(capacity as usize),
            batch: batch.then(BatchOnCore::default),
            slice: None,
            free: Nanos(0),
            has_told: false,
            core,
            pace,
            taker,
            returner,
            watch,
            requests,
            coroutines,
        }
    }

    /// Takes descriptors from the ring, ends the slice whose time is over, and runs the next one. Returns
    /// when the core has to run again; `None` if it waits for the dispatcher. Without requests it runs the
    /// batch service, if `may` allows it.
    pub(crate) fn step(&mut self, now: Nanos, may: bool) -> Result<Option<Nanos>, CoresError> {
        self.take(now)?;
        let next = match self.slice {
            Some(slice) if slice.until > now => return Ok(Some(slice.until)),
            Some(slice) if slice.place == BATCH => self.batch_over(slice, now),
            Some(slice) => self.slice_over(slice)?,
            None => self.start(now),
        };
        if let Some((request, begins)) = next {
            let begins = if self.pace.has_own_time() { begins } else { now };
            self.run(&request, begins)?;
        } else if may {
            self.run_batch(now)?;
        }
        Ok(self.slice.map(|slice| slice.until))
    }

    /// Whether the core has reported an ended request since the last call.
    pub(crate) const fn take_reported(&mut self) -> bool {
        std::mem::replace(&mut self.has_told, false)
    }

    /// Whether the core runs nothing and its ring is empty.
    pub(crate) fn is_idle(&self) -> bool {
        self.slice.is_none() && self.has_taken_all()
    }

    /// Whether the core's ring is empty.
    pub(crate) fn has_taken_all(&self) -> bool {
        self.taker.is_empty()
    }

    fn take(&mut self, now: Nanos) -> Result<(), CoresError> {
        while let Some(word) = self.taker.take() {
            let Some(request) = request(word) else { continue };
            self.scheduler.deliver(&Descriptor { core: self.core, request: Some(request), hint: None })?;
            self.held.push(HeldRequest {
                place: request.handle.0 as u32,
                given: if self.pace.has_own_time() { given_at(word, now) } else { now },
                word,
                coroutine: None,
                has_returned: false,
                beyond: Nanos(0),
            });
        }
        Ok(())
    }

    /// Starts the first request of an idle core. Returns it and its start time.
    fn start(&mut self, now: Nanos) -> Option<(ScheduledRequest, Nanos)> {
        let request = self.scheduler.start(now)?.request;
        let given = self.at(request.handle.0 as u32).map_or(now, |index| self.held[index].given);
        Some((request, self.free.max(given)))
    }

    /// Ends a slice. Returns the request that runs next, and its start time.
    fn slice_over(&mut self, slice: SliceOfTime) -> Result<Option<(ScheduledRequest, Nanos)>, CoresError> {
        let SliceOfTime { place, until } = slice;
        (self.slice, self.free) = (None, until);
        let index = self.at(place).filter(|index| self.held[*index].is_over());
        let Some(index) = index else {
            let next = self.scheduler.yields(until)?;
            let switch = if next.is_switch { self.pace.dilated(self.pace.switch) } else { Nanos(0) };
            return Ok(Some((next.request, until + switch)));
        };
        let ended = self.held.swap_remove(index);
        let (request, _) = self.scheduler.finish(true)?;
        if let Some(coroutine) = ended.coroutine {
            self.coroutines.done(coroutine);
        }
        self.requests.record_end(place, until);
        self.returner.give_back(request.priority, ended.word);
        self.has_told = true;
        Ok(self.start(until))
    }

    /// Runs a request for a slice that begins at `begins`.
    fn run(&mut self, request: &ScheduledRequest, begins: Nanos) -> Result<(), CoresError> {
        let place = request.handle.0 as u32;
        let Some(index) = self.at(place) else { return Ok(()) };
        let mut taken = Nanos(0);
        if !self.held[index].has_returned {
            let ran = self.resume(index, request, begins)?;
            let held = &mut self.held[index];
            held.has_returned = ran.ended.is_some();
            held.beyond = self.pace.dilated(ran.ended.unwrap_or_default());
            // On a core with its own time, a request that states its duration takes that time instead of
            // the measured one.
            let is_made_up = self.pace.has_own_time() && held.beyond > Nanos(0);
            taken = if is_made_up { Nanos(0) } else { self.pace.dilated(ran.took) };
        }
        let held = &mut self.held[index];
        let beyond = held.beyond.min(self.pace.dilated(self.pace.yields_after).since(taken));
        held.beyond = held.beyond - beyond;
        self.slice = Some(SliceOfTime { place, until: begins + taken + beyond });
        Ok(())
    }

    /// Runs the batch service for a slice that begins now, if it has work.
    fn run_batch(&mut self, now: Nanos) -> Result<(), CoresError> {
        let Some(batch) = self.batch.as_mut().filter(|batch| !batch.is_over) else { return Ok(()) };
        let coroutine = match &mut batch.coroutine {
            Some(coroutine) => coroutine,
            empty => empty.insert(self.coroutines.idle()?),
        };
        self.watch.record_resume(None, self.coroutines.now());
        let ran = self.coroutines.run(coroutine, BATCH, self.pace.yields_after);
        self.watch.record_return();
        batch.is_over = ran.ended.is_some();
        let taken = self.pace.dilated(ran.took);
        batch.took = batch.took + taken;
        self.watch.batch_took(batch.took);
        self.slice = Some(SliceOfTime { place: BATCH, until: now + taken });
        Ok(())
    }

    /// Ends a slice of the batch service. Returns the request that runs next, and its start time.
    fn batch_over(&mut self, slice: SliceOfTime, now: Nanos) -> Option<(ScheduledRequest, Nanos)> {
        let switch = if self.scheduler.held() > 0 { self.pace.dilated(self.pace.switch) } else { Nanos(0) };
        (self.slice, self.free) = (None, slice.until + switch);
        self.start(now)
    }

    fn resume(
        &mut self,
        index: usize,
        request: &ScheduledRequest,
        begins: Nanos,
    ) -> Result<SliceRun, CoresError> {
        let held = &mut self.held[index];
        let coroutine = match &mut held.coroutine {
            Some(coroutine) => coroutine,
            empty => {
                self.requests.record_start(held.place, begins);
                empty.insert(self.coroutines.idle()?)
            }
        };
        self.watch.record_resume(Some(request.service), self.coroutines.now());
        let ran = self.coroutines.run(coroutine, held.place, self.pace.yields_after);
        self.watch.record_return();
        Ok(ran)
    }

    fn at(&self, place: u32) -> Option<usize> {
        self.held.iter().position(|held| held.place == place)
    }
}

impl HeldRequest {
    const fn is_over(&self) -> bool {
        self.has_returned && self.beyond.0 == 0
    }
}
