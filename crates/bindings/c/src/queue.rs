//! Queues of outcomes: for programs that have many tasks under way.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::os::fd::AsRawFd as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sluice_net::client::{Completed, CompletionQueue};

use crate::client::{Offer, SubmitWay, TRYING, WAITING, connected};
use crate::fault::{Fault, call};
use crate::options::same_abi;
use crate::outcome::handed;
use crate::pointers::ResultPlace;
use crate::table::{HandleKind, HandleTable, InProcess, count_this_thread};
use crate::types::{SLUICE_FOREVER, SluiceClient, SluiceOutcome, SluiceQueue, SluiceSpec, SluiceStatus};

static QUEUES: LazyLock<HandleTable<InProcess<EndQueue>>> =
    LazyLock::new(|| HandleTable::new(HandleKind::Queue));

struct EndQueue {
    queue: CompletionQueue,
    is_freed: AtomicBool,
}

thread_local! {
    /// The room for what a thread takes, kept for the next time.
    static TAKEN: Cell<Vec<Completed>> = const { Cell::new(Vec::new()) };
}

impl EndQueue {
    /// Waits until something is taken, for `longest` at most; `None`: without end.
    fn wait(&self, into: &mut Vec<Completed>, most: usize, longest: Option<Duration>) -> Result<(), Fault> {
        if self.queue.wait(into, most, longest) == 0 && self.is_freed.load(Ordering::Acquire) {
            let line = c"the queue was freed while this thread waited on it";
            return Err(Fault::fixed(SluiceStatus::NoHandle, line));
        }
        Ok(())
    }

    /// Wakes a thread that waits, if the queue was freed. One wake ends one wait, or none if another thread
    /// takes just then: so every thread that leaves a freed queue calls this again.
    fn wake_if_freed(&self) {
        if self.is_freed.load(Ordering::Acquire) {
            self.queue.waker().wake();
        }
    }
}

/// Where the caller wants outcomes.
struct Outcomes {
    queue: SluiceQueue,
    at: *mut SluiceOutcome,
    most: usize,
    count: *mut usize,
}

impl Outcomes {
    /// Takes what is there, after waiting with `wait`.
    fn take(
        &self,
        wait: impl FnOnce(&EndQueue, &mut Vec<Completed>, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        // SAFETY: as the header asks.
        let count = unsafe { ResultPlace::new(self.count, "count") }?;
        count.put(0);
        if self.most > 0 && self.at.is_null() {
            return Err(Fault::null("outcomes"));
        }
        let queue = QUEUES.get(self.queue.id)?;
        // Else an outcome would be taken and could not be kept.
        count_this_thread()?;
        let mut taken = TAKEN.try_with(Cell::take).unwrap_or_default();
        let waited = wait(&queue, &mut taken, self.most);
        queue.wake_if_freed();
        let mut given = 0;
        let mut first_fault = waited.err();
        for completed in taken.drain(..) {
            match handed(completed, &queue.queue, None) {
                Ok(outcome) => {
                    // SAFETY: the queue gave no more than `most`, for which the header asks for room.
                    unsafe { self.at.add(given).write_unaligned(outcome) };
                    given += 1;
                }
                Err(fault) => first_fault = Some(fault),
            }
        }
        count.put(given);
        TAKEN.try_with(|kept| kept.set(taken)).ok();
        first_fault.map_or(Ok(()), Err)
    }
}

/// Called by sluice_queue_new(), which passes the header's version.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_queue_new_of(abi: u32, queue: *mut SluiceQueue) -> SluiceStatus {
    call(|| {
        same_abi(abi)?;
        // SAFETY: as the header asks.
        let place = unsafe { ResultPlace::empty(queue, "queue") }?;
        let new = EndQueue { queue: CompletionQueue::new(), is_freed: AtomicBool::new(false) };
        place.put(SluiceQueue { id: QUEUES.add_here(new)? });
        Ok(())
    })
}

/// The arguments of the two functions that submit a task to a queue.
struct QueuedTask {
    client: SluiceClient,
    queue: SluiceQueue,
    tag: u64,
    spec: *const SluiceSpec,
    bytes: *const c_void,
    length: usize,
}

impl QueuedTask {
    fn submit(&self, way: SubmitWay) -> SluiceStatus {
        call(|| {
            let (client, queue) = (connected(self.client)?, QUEUES.get(self.queue.id)?);
            // SAFETY: as the header asks.
            let offer = unsafe { Offer::new(self.spec, self.bytes, self.length) }?;
            client.submit(way, offer, &queue.queue, self.tag)
        })
    }
}

/// Submits a task whose outcome goes to a queue, under a tag; waits for room.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_queue_submit(
    client: SluiceClient,
    queue: SluiceQueue,
    tag: u64,
    spec: *const SluiceSpec,
    bytes: *const c_void,
    length: usize,
) -> SluiceStatus {
    QueuedTask { client, queue, tag, spec, bytes, length }.submit(WAITING)
}

/// Like sluice_queue_submit(), but answers SLUICE_BUSY if there is no room for the task now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_queue_try_submit(
    client: SluiceClient,
    queue: SluiceQueue,
    tag: u64,
    spec: *const SluiceSpec,
    bytes: *const c_void,
    length: usize,
) -> SluiceStatus {
    QueuedTask { client, queue, tag, spec, bytes, length }.submit(TRYING)
}

/// Takes up to `most` outcomes that are there, and says how many. Does not wait. What was in `outcomes` is
/// overwritten, so give that back first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_queue_take(
    queue: SluiceQueue,
    outcomes: *mut SluiceOutcome,
    most: usize,
    count: *mut usize,
) -> SluiceStatus {
    call(|| {
        Outcomes { queue, at: outcomes, most, count }.take(|queue, into, most| {
            queue.queue.take(into, most);
            Ok(())
        })
    })
}

/// Waits until an outcome is there, for `longest_ns` at most, and takes up to `most`. The count is 0 if none
/// came.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_queue_wait(
    queue: SluiceQueue,
    outcomes: *mut SluiceOutcome,
    most: usize,
    longest_ns: u64,
    count: *mut usize,
) -> SluiceStatus {
    let longest = (longest_ns != SLUICE_FOREVER).then(|| Duration::from_nanos(longest_ns));
    call(|| {
        Outcomes { queue, at: outcomes, most, count }
            .take(|queue, into, most| queue.wait(into, most, longest))
    })
}

/// A descriptor that poll() and epoll find readable while the queue has an outcome. It belongs to the queue:
/// do not read, write or close it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_queue_fd(queue: SluiceQueue, fd: *mut c_int) -> SluiceStatus {
    call(|| {
        // SAFETY: as the header asks.
        let place = unsafe { ResultPlace::new(fd, "fd") }?;
        place.put(QUEUES.get(queue.id)?.queue.fd()?.as_raw_fd());
        Ok(())
    })
}

/// Frees a queue; outcomes that it has or would get are lost. Threads that wait on it are told so at once.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_queue_free(queue: SluiceQueue) -> SluiceStatus {
    call(|| {
        if let Some(queue) = QUEUES.remove(queue.id)? {
            queue.is_freed.store(true, Ordering::Release);
            queue.wake_if_freed();
        }
        Ok(())
    })
}
