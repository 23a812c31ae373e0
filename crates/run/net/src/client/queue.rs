//! A queue of ended tasks: for applications that have many tasks under way and one place where all end.
//!
//! A task that is submitted to a [`CompletionQueue`] costs no allocation once the queue is warm: the bytes of
//! tasks go back to the client, and those of replies to their queue by [`CompletionQueue::recycle`].

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use super::outcome::EndedTask;
use crate::{NetError, sys};

/// How many replies' buffers a queue keeps for the next replies.
const SPARE_MOST: usize = 1_024;
/// A buffer that grew beyond this, in bytes, is freed: few tasks and replies are so long.
pub(super) const SPARE_BYTES_MOST: usize = 4_096;
/// A task that ended, and the tag with which it was submitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completed {
    pub tag: u64,
    pub ended: EndedTask,
}

/// Where tasks end that were submitted with [`Client::submit_to`](super::Client::submit_to). Clones are the
/// same queue; any number of clients and threads may use it.
#[derive(Clone, Debug, Default)]
pub struct CompletionQueue(Arc<Ends>);

#[derive(Debug, Default)]
struct Ends {
    state: Mutex<State>,
    came: Condvar,
    /// Readable while there is something to take, for whoever asked for it.
    event: OnceLock<OwnedFd>,
}

#[derive(Debug, Default)]
struct State {
    ended: VecDeque<Completed>,
    spare: Vec<Vec<u8>>,
    /// How many threads wait.
    sleepers: usize,
    /// Whether the event is set.
    is_rung: bool,
    /// Whether who waits is told of edges, so that the event may stay readable.
    tells_edges: bool,
    /// Whether a waker was called since somebody took or waited.
    is_called: bool,
}

impl CompletionQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves up to `most` of what has ended to the end of `into`, without waiting. Returns how many.
    pub fn take(&self, into: &mut Vec<Completed>, most: usize) -> usize {
        self.0.take(self.0.lock(), into, most)
    }

    /// Like [`Self::take`], but waits for the first one; for `longest` at most if that is given, and then
    /// returns 0. It returns at once if a [`Self::waker`] was called since the last time.
    pub fn wait(&self, into: &mut Vec<Completed>, most: usize, longest: Option<Duration>) -> usize {
        let until = longest.and_then(|longest| Instant::now().checked_add(longest));
        let mut state = self.0.lock();
        while state.ended.is_empty() && !state.is_called && most > 0 {
            state.sleepers += 1;
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match left {
                None => self.0.came.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(left) => self.0.came.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
            };
            state.sleepers -= 1;
            if state.ended.is_empty() && left.is_some_and(|left| left.is_zero()) {
                return 0;
            }
        }
        self.0.take(state, into, most)
    }

    /// A file descriptor that can be read (`poll`, `epoll`) while there is something to take. Nobody but the
    /// queue may read from it.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the process has too many open files.
    pub fn fd(&self) -> Result<BorrowedFd<'_>, NetError> {
        let mut state = self.0.lock();
        if self.0.event.get().is_none() {
            let event = sys::event_fd().map_err(|why| NetError::Socket { what: "eventfd", why })?;
            state.is_rung = state.is_called || !state.ended.is_empty();
            if state.is_rung {
                sys::ring(event.as_fd());
            }
            self.0.event.set(event).expect("only set under the lock");
        }
        drop(state);
        Ok(self.0.event.get().expect("it was set above").as_fd())
    }

    /// Like [`Self::fd`], for a waiter that is told of edges (`EPOLLET`), as event loops of runtimes are: the
    /// descriptor stays readable, and what ends when all was taken is another edge. So a batch of outcomes
    /// costs a system call less. From the first call on this holds for all who have the descriptor.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the process has too many open files.
    pub fn edge_fd(&self) -> Result<BorrowedFd<'_>, NetError> {
        self.0.lock().tells_edges = true;
        self.fd()
    }

    /// Ends a wait for this queue without an outcome: whoever waits in [`Self::wait`] returns, and the
    /// descriptor can be read until the next [`Self::take`]. So one thread, or one event loop, can wait for
    /// outcomes and for something else, such as room for another task.
    pub fn waker(&self) -> Waker {
        Arc::clone(&self.0).into()
    }

    /// Takes back the bytes of a reply, for another one.
    pub fn recycle(&self, mut bytes: Vec<u8>) {
        if bytes.capacity() == 0 || bytes.capacity() > SPARE_BYTES_MOST {
            return;
        }
        bytes.clear();
        let mut state = self.0.lock();
        if state.spare.len() < SPARE_MOST {
            state.spare.push(bytes);
        }
    }

    /// An empty buffer for a reply.
    pub(super) fn buffer(&self) -> Vec<u8> {
        self.0.lock().spare.pop().unwrap_or_default()
    }

    /// Adds what ended. Nobody is woken before [`Self::ring`].
    pub(super) fn put(&self, completed: Completed) {
        self.0.lock().ended.push_back(completed);
    }

    /// Wakes whoever waits, if there is something to take.
    pub(super) fn ring(&self) {
        let state = self.0.lock();
        if !state.ended.is_empty() {
            self.0.ring(state);
        }
    }

    /// Whether this is the same queue as `other`.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Ends {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, mut state: MutexGuard<'_, State>, into: &mut Vec<Completed>, most: usize) -> usize {
        state.is_called = false;
        let taken = state.ended.len().min(most);
        into.extend(state.ended.drain(..taken));
        if state.ended.is_empty() && state.is_rung {
            state.is_rung = false;
            if let Some(event) = self.event.get().filter(|_| !state.tells_edges) {
                sys::quiet(event.as_fd());
            }
        }
        taken
    }

    /// Sets the event, and wakes the threads that wait.
    fn ring(&self, mut state: MutexGuard<'_, State>) {
        if let Some(event) = self.event.get().filter(|_| !state.is_rung) {
            state.is_rung = true;
            sys::ring(event.as_fd());
        }
        let sleepers = state.sleepers;
        drop(state);
        if sleepers > 0 {
            self.came.notify_all();
        }
    }
}

impl Wake for Ends {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.lock();
        state.is_called = true;
        self.ring(state);
    }
}

/// The queues to which outcomes went, and which are to be rung, each once. They are rung at the latest when
/// this is dropped, also by a thread that panics.
#[derive(Default)]
pub(super) struct Bells(Vec<CompletionQueue>);

impl Bells {
    pub(super) fn add(&mut self, queue: Option<CompletionQueue>) {
        self.0.extend(queue.filter(|queue| !self.0.iter().any(|bell| bell.is(queue))));
    }

    pub(super) fn ring(&mut self) {
        self.0.drain(..).for_each(|queue| queue.ring());
    }
}

impl Drop for Bells {
    fn drop(&mut self) {
        self.ring();
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::thread;

    use super::super::{Outcome, RefusedWhy};
    use super::*;
    use sluice_wire::Nanos;

    fn completed(tag: u64) -> Completed {
        let outcome = Outcome::Refused(RefusedWhy::NeverSent);
        Completed { tag, ended: EndedTask { task: None, attempts: 0, at: Nanos(0), outcome } }
    }

    fn end(queue: &CompletionQueue, tag: u64) {
        queue.put(completed(tag));
        queue.ring();
    }

    fn can_be_read(queue: &CompletionQueue) -> bool {
        sys::can_be_read(queue.fd().expect("a descriptor"))
    }

    fn tags(queue: &CompletionQueue, most: usize) -> Vec<u64> {
        let mut into = Vec::new();
        assert_eq!(queue.take(&mut into, most), into.len());
        into.iter().map(|completed| completed.tag).collect()
    }

    #[test]
    fn tasks_come_in_the_order_in_which_they_ended() {
        let queue = CompletionQueue::new();
        (0..5).for_each(|tag| end(&queue, tag));
        assert_eq!(tags(&queue, 3), [0, 1, 2]);
        assert_eq!(tags(&queue, 3), [3, 4]);
        assert!(tags(&queue, 3).is_empty());
    }

    #[test]
    fn the_descriptor_can_be_read_while_there_is_something_to_take() {
        let queue = CompletionQueue::new();
        end(&queue, 1);
        assert!(can_be_read(&queue), "what ended before somebody asked for the descriptor counts");
        end(&queue, 2);
        assert_eq!(tags(&queue, 1), [1]);
        assert!(can_be_read(&queue));
        assert_eq!(tags(&queue, 1), [2]);
        assert!(!can_be_read(&queue));
        end(&queue, 3);
        assert!(can_be_read(&queue));
        let fd = |queue: &CompletionQueue| queue.fd().expect("a descriptor").as_raw_fd();
        assert_eq!(fd(&queue), fd(&queue.clone()));
    }

    #[test]
    fn queues_that_were_not_rung_are_when_their_bells_are_dropped() {
        let queue = CompletionQueue::new();
        assert!(!can_be_read(&queue));
        let mut bells = Bells::default();
        queue.put(completed(7));
        bells.add(Some(queue.clone()));
        assert!(!can_be_read(&queue));
        drop(bells);
        assert!(can_be_read(&queue));
    }

    #[test]
    fn edges_come_again_and_again_and_the_descriptor_stays_readable() {
        let queue = CompletionQueue::new();
        let fd = queue.edge_fd().expect("a descriptor").as_raw_fd();
        let edges = sys::Edges::of(fd);
        assert!(!edges.came());
        for tag in 0..3 {
            end(&queue, tag);
            assert!(edges.came(), "{tag}");
            assert!(!edges.came(), "{tag}: one edge is told once");
            end(&queue, 10 + tag);
            assert!(!edges.came(), "{tag}: nobody has taken what rang");
            assert_eq!(tags(&queue, 8), [tag, 10 + tag]);
            assert!(can_be_read(&queue));
        }
    }

    #[test]
    fn a_thread_waits_until_a_task_ends_or_its_time_is_over() {
        let queue = CompletionQueue::new();
        let mut into = Vec::new();
        assert_eq!(queue.wait(&mut into, 8, Some(Duration::ZERO)), 0);
        assert_eq!(queue.wait(&mut into, 0, None), 0, "nothing is wanted, so there is nothing to wait for");
        let other = queue.clone();
        let waiter = thread::spawn(move || {
            let mut into = Vec::new();
            other.wait(&mut into, 8, None);
            into
        });
        while queue.0.lock().sleepers == 0 {
            thread::yield_now();
        }
        end(&queue, 7);
        assert_eq!(waiter.join().expect("it does not panic"), [completed(7)]);
    }

    #[test]
    fn a_waker_ends_one_wait_without_an_outcome() {
        let queue = CompletionQueue::new();
        let mut into = Vec::new();
        queue.waker().wake();
        assert!(can_be_read(&queue), "it counts before somebody asked for the descriptor");
        assert_eq!(queue.wait(&mut into, 8, None), 0);
        assert!(!can_be_read(&queue));
        queue.waker().wake();
        assert!(can_be_read(&queue));
        assert_eq!(queue.take(&mut into, 8), 0);
        assert!(!can_be_read(&queue));
        assert_eq!(queue.wait(&mut into, 8, Some(Duration::ZERO)), 0);
    }

    #[test]
    fn buffers_go_round_unless_they_are_long() {
        let queue = CompletionQueue::new();
        queue.recycle(Vec::with_capacity(100));
        assert_eq!(queue.buffer().capacity(), 100);
        queue.recycle(Vec::with_capacity(SPARE_BYTES_MOST + 1));
        assert_eq!(queue.buffer().capacity(), 0);
        (0..=SPARE_MOST).for_each(|_| queue.recycle(vec![1]));
        assert_eq!(queue.0.lock().spare.len(), SPARE_MOST);
    }
}
