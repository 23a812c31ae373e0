//! The threads that run cores: one core each, or many dilated cores.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sluice_wire::Nanos;

use crate::bell::CoreBell;
use crate::coroutines::{Coroutines, Handler, StackOf};
use crate::dispatcher::CoreRings;
use crate::error::CoresError;
use crate::one_core::{CorePace, OneCore};
use crate::requests::RequestTable;

/// The settings of core threads.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSettings {
    /// The speed of cores, and the length of their slices.
    pub pace: CorePace,
    /// Tells the time.
    pub clock: fn() -> Nanos,
    /// Whether idle cores run the handler's batch service ([`Handler::batch`]). If so, their threads never
    /// sleep, unless they are dilated.
    pub batch: bool,
    /// How long an idle thread polls its rings before it sleeps.
    pub spins: Nanos,
    /// The size of a coroutine's stack, in bytes.
    pub stack_bytes: usize,
    /// Called for each new stack.
    pub on_stack: fn(StackOf),
    /// Called first on each thread, with the thread's number.
    pub on_start: fn(usize),
}

/// What each thread gets at its start.
struct ThreadStart<R, H> {
    settings: ThreadSettings,
    requests: RequestTable<R>,
    make: Arc<dyn Fn() -> H + Send + Sync>,
    wake: Arc<dyn Fn() + Send + Sync>,
    stop: Arc<AtomicBool>,
}

/// The running threads of a server's cores.
#[derive(Debug)]
pub struct CoreThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<CoreThread>,
}

#[derive(Debug)]
struct CoreThread {
    bell: Arc<CoreBell>,
    handle: JoinHandle<Result<(), CoresError>>,
}

impl CoreThreads {
    /// Runs the cores of `seats`: cores with the same bell share a thread. `make` creates a handler for
    /// each coroutine; `wake` is called when a request has ended.
    pub fn spawn<R, H>(
        seats: Vec<CoreRings>,
        settings: ThreadSettings,
        requests: &RequestTable<R>,
        make: &Arc<dyn Fn() -> H + Send + Sync>,
        wake: &Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, CoresError>
    where
        R: Send + 'static,
        H: Handler<R>,
    {
        let mut started = Self { stop: Arc::default(), threads: Vec::new() };
        for (number, (bell, own)) in by_bell(seats).into_iter().enumerate() {
            let made = ThreadStart {
                settings,
                requests: requests.clone(),
                make: Arc::clone(make),
                wake: Arc::clone(wake),
                stop: Arc::clone(&started.stop),
            };
            let theirs = Arc::clone(&bell);
            let run = move || {
                (settings.on_start)(number);
                run(own, &theirs, &made)
            };
            let named = thread::Builder::new().name(format!("cores-{number}"));
            let handle = named.spawn(run).map_err(CoresError::Thread)?;
            started.threads.push(CoreThread { bell, handle });
        }
        Ok(started)
    }

    /// Whether a thread has ended by itself, which happens only after an error.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().any(|thread| thread.handle.is_finished())
    }

    /// Stops the threads once they have finished their requests. Gives up on threads that need longer than
    /// `patience`; returns how many those are.
    pub fn end(mut self, patience: Duration) -> Result<usize, CoresError> {
        self.stop();
        let give_up = Instant::now() + patience;
        let mut stuck = 0;
        for CoreThread { handle, .. } in self.threads.drain(..) {
            while !handle.is_finished() && Instant::now() < give_up {
                thread::sleep(Duration::from_millis(1));
            }
            if handle.is_finished() {
                handle.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))?;
            } else {
                stuck += 1;
            }
        }
        Ok(stuck)
    }

    fn stop(&self) {
        self.stop.store(true, Release);
        self.threads.iter().for_each(|thread| thread.bell.ring());
    }
}

impl Drop for CoreThreads {
    fn drop(&mut self) {
        self.stop();
    }
}

fn by_bell(seats: Vec<CoreRings>) -> Vec<(Arc<CoreBell>, Vec<CoreRings>)> {
    let mut threads: Vec<(Arc<CoreBell>, Vec<CoreRings>)> = Vec::new();
    for seat in seats {
        match threads.iter_mut().find(|(bell, _)| Arc::ptr_eq(bell, &seat.bell)) {
            Some((_, own)) => own.push(seat),
            None => threads.push((Arc::clone(&seat.bell), vec![seat])),
        }
    }
    threads
}

fn run<R, H>(seats: Vec<CoreRings>, bell: &CoreBell, made: &ThreadStart<R, H>) -> Result<(), CoresError>
where
    R: Send + 'static,
    H: Handler<R>,
{
    let ThreadSettings { clock, spins, .. } = made.settings;
    let mut cores: Vec<_> = seats.into_iter().map(|seat| made.core(seat)).collect();
    let mut idle_since = None;
    loop {
        let (now, stops) = (clock(), made.stop.load(Acquire));
        let (mut due, mut has_told) = (None, false);
        for core in &mut cores {
            due = [due, core.step(now, !stops)?].into_iter().flatten().min();
            has_told |= core.take_reported();
        }
        if has_told {
            (made.wake)();
        }
        if due.is_none() && stops && cores.iter().all(OneCore::is_idle) {
            return Ok(());
        }
        let now = clock();
        if due.is_some_and(|due| due <= now) {
            idle_since = None;
        } else if now.since(*idle_since.get_or_insert(now)) >= spins {
            let long = due.map(|due| Duration::from_nanos(due.since(now).0));
            let is_idle = || cores.iter().all(OneCore::has_taken_all) && !made.stop.load(Acquire);
            bell.sleep(long, is_idle);
        } else {
            std::hint::spin_loop();
        }
    }
}

impl<R: Send + 'static, H: Handler<R>> ThreadStart<R, H> {
    fn core(&self, seat: CoreRings) -> OneCore<R, H> {
        let ThreadSettings { pace, clock, batch, stack_bytes, on_stack, .. } = self.settings;
        let (requests, make) = (self.requests.clone(), Arc::clone(&self.make));
        let coroutines = Coroutines::new(requests, make, clock).with_stacks(stack_bytes, on_stack);
        let CoreRings { core, capacity, ends, watch, .. } = seat;
        let of = (core, capacity, batch);
        OneCore::new(of, pace, ends, watch, self.requests.clone(), coroutines)
    }
}
