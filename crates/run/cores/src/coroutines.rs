//! Requests as stackful coroutines on a core. Each coroutine has a stack and an instance of its service,
//! and serves one request after the other.
//!
//! A coroutine never changes threads: its parts are not `Send`, so the compiler enforces this. It yields at
//! points that its service names, if its time slice is over ([`Yielding::pause`]).

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use sluice_wire::Nanos;

use crate::error::CoresError;
use crate::requests::RequestTable;

/// The place number of the batch service; no place of the table has it.
pub(crate) const BATCH: u32 = u32::MAX;

/// The code that serves requests; each coroutine has an instance.
pub trait Handler<R>: 'static {
    /// Serves the request in a place. Returns for how much longer the request occupies the core. The
    /// handler may pause as often as it likes, but must hold no lock of `requests` while it pauses.
    fn handle(&mut self, requests: &RequestTable<R>, place: u32, yielding: &Yielding<'_>) -> Nanos;

    /// Does one piece of the batch service's work; called when no request waits. Returns whether more work
    /// may be left. The handler may pause as often as it likes; the core also switches after a piece if the
    /// time slice is over.
    fn batch(&mut self, _yielding: &Yielding<'_>) -> bool {
        false
    }
}

/// The location of a coroutine's stack, for code that explains a stack overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackOf {
    /// The lowest address of the stack: a guard page begins here.
    pub limit: usize,
    /// The address just above the stack.
    pub base: usize,
}

/// Lets a running request yield.
pub struct Yielding<'y> {
    yielder: &'y Yielder<u32, StopReason>,
    slice: &'y RunningSlice,
}

impl Yielding<'_> {
    /// Lets other requests run if this one has used up its time slice (5 µs). Costs one read of the clock,
    /// so a service can call it every few hundred nanoseconds: a database for every key.
    #[inline]
    pub fn pause(&self) {
        if self.slice.is_over() {
            self.pause_now();
        }
    }

    /// Pauses this coroutine, so that the core can run others.
    #[inline]
    pub fn pause_now(&self) {
        self.yielder.suspend(StopReason::Paused);
    }
}

impl fmt::Debug for Yielding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Yielding").finish_non_exhaustive()
    }
}

/// The current time slice. A core's coroutines share it, since only one runs at a time.
pub(crate) struct RunningSlice {
    clock: fn() -> Nanos,
    ends: Cell<Nanos>,
}

impl RunningSlice {
    #[inline]
    fn is_over(&self) -> bool {
        (self.clock)() >= self.ends.get()
    }
}

/// Why a coroutine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopReason {
    Paused,
    /// The request has ended; it occupies the core for this much longer.
    Ended(Nanos),
}

/// The result of a coroutine's slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRun {
    pub took: Nanos,
    /// If the request has ended: for how much longer it occupies the core.
    pub ended: Option<Nanos>,
}

/// A coroutine, with a stack and a service.
pub struct ServingCoroutine(Coroutine<u32, StopReason, ()>);

/// The coroutines of a core; those without a request wait here for the next one.
pub struct Coroutines<R, H> {
    requests: RequestTable<R>,
    make: Arc<dyn Fn() -> H + Send + Sync>,
    stack_bytes: usize,
    on_stack: fn(StackOf),
    slice: Rc<RunningSlice>,
    idle: Vec<ServingCoroutine>,
}

impl<R: Send + 'static, H: Handler<R>> Coroutines<R, H> {
    /// An empty pool. A coroutine is created when all others have requests, with a handler from `make`.
    /// `clock` returns the time.
    pub fn new(
        requests: RequestTable<R>,
        make: Arc<dyn Fn() -> H + Send + Sync>,
        clock: fn() -> Nanos,
    ) -> Self {
        let slice = Rc::new(RunningSlice { clock, ends: Cell::new(Nanos(0)) });
        Self { requests, make, stack_bytes: 256 * 1_024, on_stack: |_| (), slice, idle: Vec::new() }
    }

    /// Sets the size of stacks in bytes, and a function that is called for each stack.
    #[must_use]
    pub fn with_stacks(mut self, bytes: usize, on_stack: fn(StackOf)) -> Self {
        (self.stack_bytes, self.on_stack) = (bytes, on_stack);
        self
    }

    pub(crate) fn now(&self) -> Nanos {
        (self.slice.clock)()
    }

    /// A coroutine without a request.
    ///
    /// # Errors
    /// [`CoresError::Stack`] if there is no memory for another stack.
    pub fn idle(&mut self) -> Result<ServingCoroutine, CoresError> {
        self.idle.pop().map_or_else(|| self.fresh(), Ok)
    }

    /// Takes a coroutine back whose request has ended.
    pub(crate) fn done(&mut self, coroutine: ServingCoroutine) {
        self.idle.push(coroutine);
    }

    /// Runs a coroutine on the request in `place`, from its start or from its last pause. It runs until it
    /// ends, or until its first pause after `longest`.
    #[inline]
    pub fn run(&self, coroutine: &mut ServingCoroutine, place: u32, longest: Nanos) -> SliceRun {
        let began = (self.slice.clock)();
        self.slice.ends.set(began + longest);
        let said = coroutine.0.resume(place);
        let took = (self.slice.clock)().since(began);
        let ended = match said {
            CoroutineResult::Yield(StopReason::Ended(beyond)) => Some(beyond),
            CoroutineResult::Yield(StopReason::Paused) => None,
            CoroutineResult::Return(()) => unreachable!("a coroutine serves for ever"),
        };
        SliceRun { took, ended }
    }

    fn fresh(&self) -> Result<ServingCoroutine, CoresError> {
        let bytes = self.stack_bytes;
        let stack = DefaultStack::new(bytes).map_err(|why| CoresError::Stack { bytes, why })?;
        (self.on_stack)(StackOf { limit: stack.limit().get(), base: stack.base().get() });
        let (requests, make) = (self.requests.clone(), Arc::clone(&self.make));
        let slice = Rc::clone(&self.slice);
        Ok(ServingCoroutine(Coroutine::with_stack(stack, move |yielder, first| {
            let mut handler = make();
            let mut place = first;
            loop {
                let yielding = Yielding { yielder, slice: &slice };
                let beyond = if place == BATCH {
                    while handler.batch(&yielding) {
                        yielding.pause();
                    }
                    Nanos(0)
                } else {
                    handler.handle(&requests, place, &yielding)
                };
                place = yielder.suspend(StopReason::Ended(beyond));
            }
        })))
    }
}

impl fmt::Debug for ServingCoroutine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServingCoroutine").finish_non_exhaustive()
    }
}

impl<R, H> fmt::Debug for Coroutines<R, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coroutines").field("idle", &self.idle.len()).finish_non_exhaustive()
    }
}
