//! A worker's core: it does one thing at a time. While it serves a task, packets wait in the NIC, and its
//! machine is not called.

use std::collections::VecDeque;

use sluice_events::PacketId;
use sluice_wire::{Nanos, Packet, Payload, TaskId, TaskType};

use super::{PacketPool, Wakeup};

/// A task that runs.
#[derive(Clone, Copy, Debug)]
pub struct TaskRun {
    /// The machine's number for it.
    pub slot: u64,
    pub task: TaskId,
    pub task_type: TaskType,
    pub payload: Payload,
    pub started: Nanos,
}

/// What a core is at, and what waits for it. `P` is how a packet is kept.
#[derive(Debug)]
pub struct Core<P = PacketId> {
    /// It is free from then on, but for the service.
    pub free_at: Nanos,
    /// The task that it serves.
    pub running: Option<TaskRun>,
    /// When the running task's early token is due.
    pub early: Wakeup,
    /// It does nothing at all until then.
    pub stalled_until: Nanos,
    /// What waits in the NIC, and since when.
    mail: VecDeque<(Nanos, P)>,
    /// Whether the machine is to be called once the NIC is empty.
    call_due: bool,
}

/// What a core turns to when it has time.
#[derive(Debug, PartialEq, Eq)]
pub enum Duty<P = PacketId> {
    /// A packet, and since when it has waited.
    Packet(Nanos, P),
    /// Its machine has something to do.
    Call,
}

impl<P> Default for Core<P> {
    fn default() -> Self {
        Self {
            free_at: Nanos(0),
            running: None,
            early: Wakeup::NONE,
            stalled_until: Nanos(0),
            mail: VecDeque::new(),
            call_due: false,
        }
    }
}

impl<P> Core<P> {
    /// Whether nothing is left for it to do.
    pub fn is_idle(&self, now: Nanos) -> bool {
        self.running.is_none() && self.mail.is_empty() && self.free_at <= now && !self.call_due
    }

    /// A packet comes: it is given back if the core takes it at once, and waits otherwise.
    #[inline]
    pub fn deliver(&mut self, now: Nanos, packet: P) -> Option<P> {
        if self.takes_at_once(now) {
            return Some(packet);
        }
        self.mail.push_back((now, packet));
        None
    }

    /// What waits in the NIC of a machine that is gone.
    pub fn lost(&mut self) -> impl Iterator<Item = P> + '_ {
        self.mail.drain(..).map(|(_, packet)| packet)
    }

    /// Whether a packet that comes has nothing to wait for but what the core is at.
    #[inline]
    pub fn takes_at_once(&self, now: Nanos) -> bool {
        self.running.is_none() && self.mail.is_empty() && self.stalled_until <= now
    }

    /// The machine wants to be called: says whether it may be now. If not, its turn comes once nothing waits
    /// in the NIC.
    #[inline]
    pub fn may_call(&mut self, now: Nanos) -> bool {
        let may = self.running.is_none() && self.stalled_until <= now;
        self.call_due |= !may;
        may
    }

    /// From when it has time for what comes now.
    #[inline]
    pub fn free_from(&self, now: Nanos) -> Nanos {
        self.free_at.max(now)
    }

    /// A task runs, until when there is no time for anything else. Its early token is not due yet.
    #[inline]
    pub const fn serve(&mut self, run: TaskRun, busy_until: Nanos) {
        (self.running, self.free_at, self.early) = (Some(run), busy_until, Wakeup::NONE);
    }

    /// The early token of what runs is due then, and leaves no sooner than `soonest`, nor before its service
    /// has started: gives when to remind the machine, if that takes another entry.
    pub fn early_wakes_at(&mut self, due: Option<Nanos>, now: Nanos, soonest: Nanos) -> Option<Nanos> {
        let started = self.running.as_ref().map_or(now, |run| run.started);
        let due = due?.max(started).max(soonest);
        self.early.wake_by(due).then_some(due)
    }

    /// What is next, as long as no task runs.
    #[inline]
    pub fn next_duty(&mut self) -> Option<Duty<P>> {
        if self.running.is_some() {
            return None;
        }
        if let Some((since, packet)) = self.mail.pop_front() {
            return Some(Duty::Packet(since, packet));
        }
        std::mem::take(&mut self.call_due).then_some(Duty::Call)
    }
}

impl Core {
    /// How many tasks wait in the NIC.
    #[inline]
    pub fn unread(&self, packets: &PacketPool) -> u32 {
        let is_task = |(_, id): &&(Nanos, PacketId)| matches!(packets.get(*id), Packet::Dispatch(_));
        self.mail.iter().filter(is_task).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_a_task_runs_packets_wait_in_their_order_and_the_call_comes_behind_them() {
        let mut core = Core::<u32>::default();
        assert_eq!(core.deliver(Nanos(1), 7), Some(7));
        assert!(core.may_call(Nanos(1)));
        core.running = Some(TaskRun {
            slot: 0,
            task: TaskId::default(),
            task_type: TaskType(0),
            payload: Payload::EMPTY,
            started: Nanos(1),
        });
        assert_eq!((core.deliver(Nanos(2), 8), core.deliver(Nanos(3), 9)), (None, None));
        assert!(!core.may_call(Nanos(3)) && core.next_duty().is_none());
        core.running = None;
        assert_eq!(core.deliver(Nanos(4), 10), None, "behind what waits");
        let duties: Vec<_> = std::iter::from_fn(|| core.next_duty()).collect();
        let packet = |since, packet| Duty::Packet(Nanos(since), packet);
        assert_eq!(duties, [packet(2, 8), packet(3, 9), packet(4, 10), Duty::Call]);
        assert!(core.is_idle(Nanos(0)));
    }
}
