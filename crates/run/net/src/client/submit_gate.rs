//! Pushes the application back: each task type has a lane with room for a number of tasks that wait to be
//! sent.
//!
//! A task takes a place in its lane when it is submitted, and frees it when the packet thread sends the
//! task. A submitter that finds the lane full registers and sleeps. The packet thread wakes all sleepers
//! once half of the lane is free; without sleepers this costs nothing. So a full slice never holds up tasks
//! for another slice.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::task::Waker;

use crossbeam_queue::SegQueue;
use sluice_wire::TaskType;

/// The number of lanes; types that are equal modulo this number share one.
pub(super) const LANES: usize = 64;
/// How many tasks may wait in one lane.
const LANE_TASKS: usize = 256;

pub(super) const fn lane(task_type: TaskType) -> usize {
    task_type.0 as usize % LANES
}

/// The lanes, shared by the application's threads and the packet thread.
#[derive(Debug)]
pub(super) struct SubmitGate {
    lanes: [Lane; LANES],
    closed: AtomicBool,
}

#[derive(Debug, Default)]
struct Lane {
    waiting: AtomicUsize,
    sleepers: SegQueue<Waker>,
}

/// The answer to a request for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GateAnswer {
    /// The caller has a place, and must free it with [`SubmitGate::give`].
    Taken,
    /// The lane is full now.
    Full,
    /// The client is closed, so there will be no place.
    Closed,
}

impl SubmitGate {
    pub(super) fn new() -> Self {
        Self { lanes: std::array::from_fn(|_| Lane::default()), closed: AtomicBool::new(false) }
    }

    /// Takes a place if there is one.
    pub(super) fn take(&self, lane: usize) -> GateAnswer {
        if self.is_closed() {
            return GateAnswer::Closed;
        }
        let one_more = |waiting| (waiting < LANE_TASKS).then_some(waiting + 1);
        let taken = self.lanes[lane].waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more);
        if taken.is_ok() { GateAnswer::Taken } else { GateAnswer::Full }
    }

    /// Takes a place, or registers `waker`, which is called when a new attempt may succeed.
    pub(super) fn take_or_sleep(&self, lane: usize, waker: &Waker) -> GateAnswer {
        match self.take(lane) {
            GateAnswer::Full => {}
            answer => return answer,
        }
        self.lanes[lane].sleepers.push(waker.clone());
        // Either this check sees a place that was just freed, or the thread that freed it sees the sleeper.
        fence(Ordering::SeqCst);
        self.take(lane)
    }

    /// Frees a place.
    pub(super) fn give(&self, lane: usize) {
        let lane = &self.lanes[lane];
        let waiting = lane.waiting.fetch_sub(1, Ordering::AcqRel) - 1;
        fence(Ordering::SeqCst);
        if waiting <= LANE_TASKS / 2 {
            lane.wake_all();
        }
    }

    /// Refuses all requests from now on.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        for lane in &self.lanes {
            lane.wake_all();
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }
}

impl Lane {
    fn wake_all(&self) {
        while let Some(sleeper) = self.sleepers.pop() {
            sleeper.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn fill(room: &SubmitGate, lane: usize) {
        while room.take(lane) == GateAnswer::Taken {}
    }

    #[test]
    fn a_full_lane_does_not_hold_up_another() {
        let room = SubmitGate::new();
        fill(&room, 1);
        assert_eq!(room.take(1), GateAnswer::Full);
        assert_eq!(room.take(2), GateAnswer::Taken);
    }

    #[test]
    fn sleepers_are_woken_once_half_of_the_lane_is_free() {
        let room = SubmitGate::new();
        fill(&room, 0);
        let woken = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&woken));
        assert_eq!(room.take_or_sleep(0, &waker), GateAnswer::Full);
        for _ in 1..LANE_TASKS / 2 {
            room.give(0);
        }
        assert_eq!(woken.0.load(Ordering::SeqCst), 0);
        room.give(0);
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn closing_wakes_sleepers_and_refuses_everyone() {
        let room = SubmitGate::new();
        fill(&room, 5);
        let woken = Arc::new(Count::default());
        room.take_or_sleep(5, &Waker::from(Arc::clone(&woken)));
        room.close();
        assert_eq!(woken.0.load(Ordering::SeqCst), 1);
        assert_eq!(room.take(6), GateAnswer::Closed);
    }
}
