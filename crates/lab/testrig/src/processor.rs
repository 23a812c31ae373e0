//! An emulated processor: it spends a testbed's time on packets (Rain §5).
//!
//! A paced worker has one processor with a time of its own: it receives, serves and sends one after the
//! other, each step with its own duration. A step starts when the previous one ended in that time, not when
//! this machine noticed it, so lateness does not accumulate; packets are held until their departure time.

use std::collections::VecDeque;

use sluice_host::slow::SlowTime;
use sluice_net::worker::EmulatedProcessor;
use sluice_wire::{Nanos, Packet};

use crate::start::ScheduleStart;

/// The packet costs of a testbed's worker, already dilated.
#[derive(Clone, Debug, Default)]
pub struct HostCosts {
    /// The processor's time for each arriving packet.
    pub receive: Nanos,
    /// The processor's time for each leaving packet.
    pub send: Nanos,
    /// The one-way delay of a packet from the worker to a client, past the switch.
    pub to_client: Nanos,
    /// When the worker is slow, services included.
    pub slow: Option<SlowPeriod>,
}

/// A time in which a worker is slow.
#[derive(Clone, Debug)]
pub struct SlowPeriod {
    /// The slow time, counted from a schedule's start, already dilated.
    pub time: SlowTime,
    pub since: ScheduleStart,
}

/// The processor of a paced worker.
#[derive(Debug)]
pub(crate) struct TestbedProcessor {
    costs: HostCosts,
    /// The time at which the processor has done all work that it has so far.
    free: Nanos,
    arrived: VecDeque<(Nanos, Packet)>,
}

impl TestbedProcessor {
    pub(crate) const fn new(costs: HostCosts) -> Self {
        Self { costs, free: Nanos(0), arrived: VecDeque::new() }
    }
}

impl EmulatedProcessor for TestbedProcessor {
    /// The packet waits until the processor has time for it.
    fn arrived(&mut self, at: Nanos, packet: Packet) {
        self.arrived.push_back((at, packet));
    }

    fn next_received(&self) -> Option<Nanos> {
        let (at, _) = self.arrived.front()?;
        Some(self.done(self.free.max(*at), self.costs.receive))
    }

    fn receive(&mut self, now: Nanos) -> Option<(Nanos, Packet)> {
        let done = self.next_received().filter(|done| *done <= now)?;
        self.free = done;
        self.arrived.pop_front()
    }

    /// Waiting answers to PROBEs are not tasks, so they do not count.
    fn waiting(&self, at: Nanos) -> u32 {
        let come = self.arrived.iter().take_while(|(came, _)| *came <= at);
        come.filter(|(_, packet)| matches!(packet, Packet::Dispatch(_))).count() as u32
    }

    fn worked(&mut self, until: Nanos) {
        self.free = self.free.max(until);
    }

    fn free(&self) -> Nanos {
        self.free
    }

    fn sends(&mut self, past_switch: bool) -> Nanos {
        self.free = self.done(self.free, self.costs.send);
        self.free + if past_switch { self.costs.to_client } else { Nanos(0) }
    }

    fn done(&self, at: Nanos, work: Nanos) -> Nanos {
        let slow = self.costs.slow.as_ref().and_then(|slow| Some(slow.time.counted_from(slow.since.get()?)));
        at + slow.map_or(work, |slow| slow.takes(at, work))
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::{Answer, Dispatch, Token};

    use super::*;

    fn pace() -> TestbedProcessor {
        TestbedProcessor::new(costs(None))
    }

    fn costs(slow: Option<SlowPeriod>) -> HostCosts {
        HostCosts { receive: Nanos(20), send: Nanos(30), to_client: Nanos(0), slow }
    }

    #[test]
    fn a_slow_processor_takes_longer_for_everything_once_a_schedule_has_begun() {
        let time = SlowTime { factor: 3.0, from: Nanos(1_000), until: Nanos(2_000) };
        let since = ScheduleStart::default();
        let mut pace = TestbedProcessor::new(costs(Some(SlowPeriod { time, since: since.clone() })));
        assert_eq!(pace.done(Nanos(1_000), Nanos(100)), Nanos(1_100));
        since.set(Nanos(5_000));
        assert_eq!(pace.done(Nanos(1_000), Nanos(100)), Nanos(1_100));
        assert_eq!(pace.done(Nanos(6_000), Nanos(100)), Nanos(6_300));
        pace.arrived(Nanos(6_100), Packet::Token(Token::default()));
        assert_eq!(pace.next_received(), Some(Nanos(6_160)));
        assert!(pace.receive(Nanos(7_000)).is_some());
        assert_eq!((pace.sends(false), pace.done(Nanos(7_000), Nanos(100))), (Nanos(6_250), Nanos(7_100)));
    }

    #[test]
    fn packets_are_received_one_after_the_other_however_late_the_machine_looks() {
        let mut pace = pace();
        pace.arrived(Nanos(100), Packet::Dispatch(Dispatch::default()));
        pace.arrived(Nanos(105), Packet::Answer(Answer::default()));
        pace.arrived(Nanos(105), Packet::Dispatch(Dispatch::default()));
        assert_eq!([99, 104, 105].map(|at| pace.waiting(Nanos(at))), [0, 1, 2], "tasks, not answers");
        assert_eq!(pace.receive(Nanos(119)), None);
        assert_eq!(pace.receive(Nanos(500)).map(|(at, _)| at), Some(Nanos(100)));
        assert_eq!(pace.free(), Nanos(120));
        assert_eq!(pace.next_received(), Some(Nanos(140)));
    }

    #[test]
    fn what_leaves_waits_for_what_left_before() {
        let mut pace = pace();
        pace.worked(Nanos(1_000));
        assert_eq!((pace.sends(false), pace.sends(false)), (Nanos(1_030), Nanos(1_060)));
    }
}
