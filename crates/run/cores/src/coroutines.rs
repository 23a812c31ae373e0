//! Requests as stackful coroutines on a core: each has a stack and an instance of its service, and both
//! serve one request after the other.
//!
//! A coroutine never changes threads: what it is made of is not `Send`, so that the compiler holds it to
//! that. It yields where its service says that it may, if its time is over ([`Yielding::pause`]).

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use sluice_wire::Nanos;

use crate::error::CoresError;
use crate::requests::RequestTable;

/// The place that stands for the batch service; none of the table's.
pub(crate) const BATCH: u32 = u32::MAX;

/// What a core runs for each request: one of these a coroutine.
pub trait Handler<R>: 'static {
    /// Serves the request in a place; says for how long beyond that it takes the core. It may pause as often
    /// as it likes. It holds no lock of `requests` where it does.
    fn handle(&mut self, requests: &RequestTable<R>, place: u32, yielding: &Yielding<'_>) -> Nanos;

    /// Does a piece of a batch service's work, which runs where no request waits; says whether there may be
    /// more. It may pause as often as it likes, and yields after each piece if its time is over.
    fn batch(&mut self, _yielding: &Yielding<'_>) -> bool {
        false
    }
}

/// Where a coroutine's stack lies, for whoever explains its overflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackOf {
    /// The lowest address; a page that nobody may touch begins here.
    pub limit: usize,
    /// The first address above it.
    pub base: usize,
}

/// A running request's way to yield.
pub struct Yielding<'y> {
    yielder: &'y Yielder<u32, Said>,
    slice: &'y RunningSlice,
}

impl Yielding<'_> {
    /// Lets others run if this request has run for its time (5 µs). It costs a look at the clock, so that a
    /// service can call it every few hundred nanoseconds: a database for every key.
    #[inline]
    pub fn pause(&self) {
        if self.slice.is_over() {
            self.pause_now();
        }
    }

    /// Lets others run.
    #[inline]
    pub fn pause_now(&self) {
        self.yielder.suspend(Said::Paused);
    }
}

impl fmt::Debug for Yielding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Yielding").finish_non_exhaustive()
    }
}

/// The slice of time that runs now, which a core's coroutines share: one runs at a time.
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

/// What comes out of a coroutine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Paused,
    /// The request has ended, and takes the core for so long beyond that.
    Ended(Nanos),
}

/// How a coroutine's slice went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceRun {
    pub took: Nanos,
    /// If its request has ended: for how long it takes the core beyond that.
    pub ended: Option<Nanos>,
}

/// A coroutine, with a stack and a service.
pub struct ServingCoroutine(Coroutine<u32, Said, ()>);

/// The coroutines of a core: those without a request wait here for the next.
pub struct Coroutines<R, H> {
    requests: RequestTable<R>,
    make: Arc<dyn Fn() -> H + Send + Sync>,
    stack_bytes: usize,
    on_stack: fn(StackOf),
    slice: Rc<RunningSlice>,
    idle: Vec<ServingCoroutine>,
}

impl<R: Send + 'static, H: Handler<R>> Coroutines<R, H> {
    /// None yet: each is made when all others have requests, with a handler by `make`. `clock` tells the
    /// time.
    pub fn new(
        requests: RequestTable<R>,
        make: Arc<dyn Fn() -> H + Send + Sync>,
        clock: fn() -> Nanos,
    ) -> Self {
        let slice = Rc::new(RunningSlice { clock, ends: Cell::new(Nanos(0)) });
        Self { requests, make, stack_bytes: 256 * 1_024, on_stack: |_| (), slice, idle: Vec::new() }
    }

    /// The same with stacks of so many bytes, each of which `on_stack` hears of.
    #[must_use]
    pub fn with_stacks(mut self, bytes: usize, on_stack: fn(StackOf)) -> Self {
        (self.stack_bytes, self.on_stack) = (bytes, on_stack);
        self
    }

    /// Now.
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

    /// Takes back one whose request has ended.
    pub(crate) fn done(&mut self, coroutine: ServingCoroutine) {
        self.idle.push(coroutine);
    }

    /// Runs a coroutine on the request in `place`, from its beginning or from where it paused, until it
    /// ends or pauses: at its first chance after `longest`.
    #[inline]
    pub fn run(&self, coroutine: &mut ServingCoroutine, place: u32, longest: Nanos) -> SliceRun {
        let began = (self.slice.clock)();
        self.slice.ends.set(began + longest);
        let said = coroutine.0.resume(place);
        let took = (self.slice.clock)().since(began);
        let ended = match said {
            CoroutineResult::Yield(Said::Ended(beyond)) => Some(beyond),
            CoroutineResult::Yield(Said::Paused) => None,
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
                place = yielder.suspend(Said::Ended(beyond));
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
