//! A worker's core: it does one thing at a time. While it serves a task, packets wait in the NIC, and its
//! machine is not called.

use std::collections::VecDeque;

use sluice_wire::{Nanos, Packet};

/// What a core is at, and what waits for it. `P` is how a packet is kept, `R` what is known of the task that
/// runs.
#[derive(Debug)]
pub(crate) struct Core<P, R> {
    /// It is free from then on, but for the service.
    pub(crate) free_at: Nanos,
    pub(crate) running: Option<R>,
    /// What waits in the NIC, and since when.
    mail: VecDeque<(Nanos, P)>,
    /// Whether the machine is to be called once the NIC is empty.
    call_due: bool,
}

/// What a core turns to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Duty<P> {
    /// A packet, and since when it has waited.
    Packet(Nanos, P),
    /// The machine's deadline.
    Call,
}

impl<P, R> Default for Core<P, R> {
    fn default() -> Self {
        Self { free_at: Nanos(0), running: None, mail: VecDeque::new(), call_due: false }
    }
}

impl<P, R> Core<P, R> {
    /// Whether nothing is left for it to do.
    pub(crate) fn is_idle(&self, now: Nanos) -> bool {
        self.running.is_none() && self.mail.is_empty() && self.free_at <= now && !self.call_due
    }

    /// A packet comes: it is given back if the core takes it at once, and waits otherwise.
    #[inline]
    pub(crate) fn comes(&mut self, now: Nanos, packet: P) -> Option<P> {
        if self.running.is_none() && self.mail.is_empty() {
            return Some(packet);
        }
        self.holds(now, packet);
        None
    }

    /// A packet comes while the core stands still.
    pub(crate) fn holds(&mut self, now: Nanos, packet: P) {
        self.mail.push_back((now, packet));
    }

    /// The machine wants to be called: says whether it may be now. If not, its turn comes.
    #[inline]
    pub(crate) const fn may_call(&mut self) -> bool {
        if self.running.is_some() {
            self.owes_a_call();
        }
        self.running.is_none()
    }

    /// The machine's turn comes once nothing waits in the NIC.
    pub(crate) const fn owes_a_call(&mut self) {
        self.call_due = true;
    }

    /// What is next, as long as no task runs.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Duty<P>> {
        if self.running.is_some() {
            return None;
        }
        if let Some((since, packet)) = self.mail.pop_front() {
            return Some(Duty::Packet(since, packet));
        }
        std::mem::take(&mut self.call_due).then_some(Duty::Call)
    }

    /// How many tasks wait in the NIC, perhaps among answers.
    pub(crate) fn unread<'a>(&'a self, packet: impl Fn(&'a P) -> &'a Packet) -> u32 {
        let is_task = |(_, kept): &&'a (Nanos, P)| matches!(packet(kept), Packet::Dispatch(_));
        self.mail.iter().filter(is_task).count() as u32
    }
}

/// What a worker says of how much it has before it, with the tasks that it has not looked at yet.
#[inline]
pub(crate) fn count_unread(packet: &mut Packet, unread: u32) {
    match packet {
        Packet::Token(token) => token.rank = token.rank.further(unread),
        Packet::Reply(reply) => reply.load += unread,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn while_a_task_runs_packets_wait_in_their_order_and_the_call_comes_behind_them() {
        let mut core = Core::<u32, ()>::default();
        assert_eq!(core.comes(Nanos(1), 7), Some(7));
        assert!(core.may_call());
        core.running = Some(());
        assert_eq!((core.comes(Nanos(2), 8), core.comes(Nanos(3), 9)), (None, None));
        assert!(!core.may_call() && core.next().is_none());
        core.running = None;
        assert_eq!(core.comes(Nanos(4), 10), None, "behind what waits");
        let duties: Vec<_> = std::iter::from_fn(|| core.next()).collect();
        let packet = |since, packet| Duty::Packet(Nanos(since), packet);
        assert_eq!(duties, [packet(2, 8), packet(3, 9), packet(4, 10), Duty::Call]);
        assert!(core.is_idle(Nanos(0)));
    }
}
