//! Cores that follow the load, like Caladan's (RingLeader §2.1, §4.4, §7.1).
//!
//! One more core takes each packet and puts it into the queue of a random core of the service; those cores
//! steal from each other. It also allocates cores. Once per interval it looks at the queues, and if a
//! request has been there since the last look, the service gets one more core, after a reallocation time. A
//! core that finds no request for as long as a reallocation takes gives itself back. A batch service may
//! use the other cores (`batch`). It gets a core one reallocation time after the core was given back, and
//! loses it at the decision that the service needs it. Left out: memory bandwidth and hyperthreads, which
//! Caladan looks at too.

use std::collections::VecDeque;

use sluice_events::dice::Dice;
use sluice_stats::Observer;
use sluice_testbed::{CoreTimes, Testbed};
use sluice_wire::Nanos;

use super::run::{Orchestrates, RequestId, ServerEvent, ServerRun};

#[derive(Debug)]
pub(super) struct Caladan {
    times: CoreTimes,
    dice: Dice,
    /// Packets that the allocating core has not taken yet.
    packets: VecDeque<RequestId>,
    is_taking: bool,
    cores: Vec<ServedCore>,
    /// The cores of the service.
    granted: Vec<u16>,
    /// The cores that the service does not have.
    parked: Vec<u16>,
    is_watching: bool,
}

#[derive(Clone, Debug, Default)]
struct ServedCore {
    /// Requests with the times at which they arrived here.
    queue: VecDeque<(RequestId, Nanos)>,
    running: Option<(RequestId, Nanos)>,
    idle_since: Option<Nanos>,
    is_granted: bool,
    /// Whether the core runs the batch service.
    runs_batch: bool,
}

impl Caladan {
    pub(super) fn new(testbed: &Testbed, dice: Dice) -> Self {
        let cores = testbed.workers as usize;
        let mut caladan = Self {
            times: testbed.cores,
            dice,
            packets: VecDeque::new(),
            is_taking: false,
            cores: vec![ServedCore::default(); cores],
            granted: Vec::new(),
            parked: (0..cores as u16).rev().collect(),
            is_watching: false,
        };
        // If moving a core costs nothing, the service has all cores.
        let first = if caladan.moves() { 1 } else { cores };
        let own = caladan.parked.split_off(cores - first);
        own.into_iter().rev().for_each(|core| caladan.grant(core, Nanos(0)));
        caladan
    }

    /// Whether cores are ever taken away.
    fn moves(&self) -> bool {
        self.times.reallocate > Nanos(0)
    }

    /// Gives a free core to the service.
    fn grant(&mut self, core: u16, now: Nanos) {
        self.granted.push(core);
        let core = &mut self.cores[usize::from(core)];
        (core.is_granted, core.idle_since) = (true, Some(now));
    }

    /// The allocating core takes the next packet.
    fn take<O: Observer>(&mut self, run: &mut ServerRun<'_, O>) {
        if self.is_taking || self.packets.is_empty() {
            return;
        }
        self.is_taking = true;
        let drawn = self.dice.below(self.granted.len() as u64) as usize;
        let (core, request) = (self.granted[drawn], self.packets[0]);
        run.after(self.times.allocate, ServerEvent::Reaches { core, request });
    }

    /// A packet arrives in a core's queue.
    fn on_core_packet<O: Observer>(&mut self, core: u16, request: RequestId, run: &mut ServerRun<'_, O>) {
        self.is_taking = false;
        self.packets.pop_front();
        run.queued.leave(run.now);
        run.at_cores.enter(run.now);
        // The core may have been given back meanwhile: the request waits in its queue until another core
        // steals it.
        self.cores[usize::from(core)].queue.push_back((request, run.now));
        let idle = |core: &u16| self.cores[usize::from(*core)].idle_since.is_some();
        let own =
            Some(core).filter(|core| self.cores[usize::from(*core)].is_granted).filter(|core| idle(core));
        if let Some(core) = own.or_else(|| self.granted.iter().copied().find(idle)) {
            self.next(core, run);
        }
        self.watch(run);
        self.take(run);
    }

    /// A core starts its next request, or steals one.
    fn next<O: Observer>(&mut self, core: u16, run: &mut ServerRun<'_, O>) {
        let at = usize::from(core);
        let own = self.cores[at].queue.pop_front();
        let stolen = || {
            let first = self.dice.below(self.cores.len() as u64) as usize;
            let order = (0..self.cores.len()).map(|step| (first + step) % self.cores.len());
            let victim = order.into_iter().find(|victim| !self.cores[*victim].queue.is_empty())?;
            self.cores[victim].queue.pop_front()
        };
        let first = if own.is_some() { Nanos(0) } else { self.times.steal };
        let Some((request, _)) = own.or_else(stolen) else {
            self.cores[at].idle_since = Some(run.now);
            if self.moves() {
                run.after(self.times.reallocate, ServerEvent::Ready { core });
            }
            return;
        };
        run.at_cores.leave(run.now);
        let span = run.runs(core, request, (first, Nanos(u64::MAX)));
        self.cores[at].running = Some((request, span));
        self.cores[at].idle_since = None;
    }

    fn ended<O: Observer>(&mut self, core: u16, run: &mut ServerRun<'_, O>) {
        if let Some((request, span)) = self.cores[usize::from(core)].running.take() {
            run.ran(request, span);
            self.next(core, run);
        }
    }

    /// A core gives itself back if it has been idle all the time; the last core stays.
    fn park<O: Observer>(&mut self, core: u16, run: &mut ServerRun<'_, O>) {
        let of = &mut self.cores[usize::from(core)];
        let has_idled = of.idle_since.is_some_and(|since| run.now.since(since) >= self.times.reallocate);
        if has_idled && of.is_granted && self.granted.len() > 1 {
            (of.is_granted, of.idle_since) = (false, None);
            self.granted.retain(|other| *other != core);
            self.parked.push(core);
            if self.times.batch {
                run.after(self.times.reallocate, ServerEvent::Given { core });
            }
        }
    }

    /// The batch service begins on a core, unless the service needs the core again.
    fn given<O: Observer>(&mut self, core: u16, run: &mut ServerRun<'_, O>) {
        let of = &mut self.cores[usize::from(core)];
        if !of.runs_batch && self.parked.contains(&core) {
            of.runs_batch = true;
            run.batch_begins();
        }
    }

    /// Takes a core for the service, which gets it a reallocation time later.
    fn taken<O: Observer>(&mut self, run: &mut ServerRun<'_, O>) {
        let Some(core) = self.parked.pop() else { return };
        if std::mem::take(&mut self.cores[usize::from(core)].runs_batch) {
            run.batch_ends();
        }
        run.after(self.times.reallocate, ServerEvent::Told { core, of: 0 });
    }

    /// Schedules a look at the queues an interval later, if a request waits.
    fn watch<O: Observer>(&mut self, run: &mut ServerRun<'_, O>) {
        if self.moves() && !self.is_watching && run.at_cores.now() > 0 {
            self.is_watching = true;
            run.after(self.times.reallocate, ServerEvent::Check);
        }
    }

    fn check<O: Observer>(&mut self, run: &mut ServerRun<'_, O>) {
        self.is_watching = false;
        let long = |(_, since): &(RequestId, Nanos)| run.now.since(*since) >= self.times.reallocate;
        let is_congested = self.cores.iter().filter_map(|core| core.queue.front()).any(long);
        if is_congested {
            self.taken(run);
        }
        self.watch(run);
    }
}

impl Orchestrates for Caladan {
    fn begin<O: Observer>(&mut self, run: &mut ServerRun<'_, O>) {
        if self.times.batch {
            self.parked.clone().into_iter().for_each(|core| self.given(core, run));
        }
    }

    fn arrive<O: Observer>(&mut self, request: RequestId, run: &mut ServerRun<'_, O>) {
        self.packets.push_back(request);
        run.queued.enter(run.now);
        self.take(run);
    }

    fn on_event<O: Observer>(&mut self, event: ServerEvent, run: &mut ServerRun<'_, O>) {
        match event {
            ServerEvent::Ran { core } => self.ended(core, run),
            ServerEvent::Reaches { core, request } => self.on_core_packet(core, request, run),
            ServerEvent::Ready { core } => self.park(core, run),
            ServerEvent::Check => self.check(run),
            ServerEvent::Hinted { .. } => {}
            ServerEvent::Given { core } => self.given(core, run),
            ServerEvent::Told { core, .. } => {
                self.grant(core, run.now);
                self.next(core, run);
            }
        }
    }
}
