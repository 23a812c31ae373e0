//! A worker whose processor is a testbed's, in a time of its own ([`Pace`]), or this machine's, which takes
//! what it takes.

use sluice_wire::{Endpoint, Nanos, Packet};

use crate::udp::Outbox;
use crate::worker::pace::{HostCosts, Pace};
use crate::worker::run::Ran;

/// What a worker does its work with.
pub(super) struct Processor(Option<Pace>);

/// Where a packet goes.
#[derive(Clone, Copy)]
pub(super) enum Way {
    ToSwitch(Endpoint),
    /// Past the switch.
    ToClient(Endpoint),
}

impl Processor {
    /// A testbed's with these costs, or this machine's.
    pub(super) fn new(costs: Option<&HostCosts>) -> Self {
        Self(costs.cloned().map(Pace::new))
    }

    /// Whether it is this machine's, whose time is what the clock says.
    pub(super) const fn is_real(&self) -> bool {
        self.0.is_none()
    }

    /// Keeps a packet that came at `received` until there is time for it; says whether it does.
    pub(super) fn keeps(&mut self, received: Nanos, packet: Packet) -> bool {
        self.0.as_mut().map(|pace| pace.arrived(received, packet)).is_some()
    }

    /// When the next packet that is kept will have been received.
    pub(super) fn next_received(&self) -> Option<Nanos> {
        self.0.as_ref().and_then(Pace::next_received)
    }

    /// The next packet that is kept, if there was time for it by `now`: when it came, when it was received.
    pub(super) fn receive(&mut self, now: Nanos) -> Option<(Nanos, Nanos, Packet)> {
        let pace = self.0.as_mut()?;
        let (received, packet) = pace.receive(now)?;
        Some((received, pace.free(), packet))
    }

    /// How many tasks that had come by `at` are kept.
    pub(super) fn waiting(&self, at: Nanos) -> u32 {
        self.0.as_ref().map_or(0, |pace| pace.waiting(at))
    }

    /// When it has done everything so far, looked at `now`.
    pub(super) fn free(&self, now: Nanos) -> Nanos {
        self.0.as_ref().map_or(now, Pace::free)
    }

    /// When something is done that was due at `due` and is seen `now`.
    pub(super) const fn does(&self, due: Nanos, now: Nanos) -> Nanos {
        if self.is_real() { now } else { due }
    }

    /// What it took for packets since `at`.
    pub(super) fn took_since(&self, at: Nanos) -> Nanos {
        self.free(at).since(at)
    }

    /// It was at work until then.
    pub(super) fn worked(&mut self, until: Nanos) {
        if let Some(pace) = &mut self.0 {
            pace.worked(until);
        }
    }

    /// From when to when a service call takes it, `dilation` times slower. A testbed's begins when its own
    /// time says; what the service holds it for is then all that it takes.
    pub(super) fn serves(&self, ran: &Ran, dilation: u32) -> (Nanos, Nanos) {
        let factor = u64::from(dilation);
        let Some(pace) = &self.0 else {
            return (ran.started, ran.started + (ran.real + ran.held).times(factor));
        };
        let took = if ran.held > Nanos(0) { ran.held } else { ran.real };
        (pace.free(), pace.done(pace.free(), took.times(factor)))
    }

    /// Sends a packet, at once or when a testbed's would have.
    pub(super) fn send(&mut self, way: Way, outbox: &mut Outbox, write: impl FnOnce(&mut [u8]) -> usize) {
        let (Way::ToSwitch(to) | Way::ToClient(to)) = way;
        match (&mut self.0, way) {
            (None, _) => outbox.send_with(to, write),
            (Some(pace), Way::ToSwitch(_)) => outbox.send_at(pace.send(), to, write),
            (Some(pace), Way::ToClient(_)) => outbox.send_at(pace.send() + pace.to_client(), to, write),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::run::Ended;

    const RAN: Ran = Ran { started: Nanos(100), real: Nanos(7), held: Nanos(20), ended: Ended::Done };

    #[test]
    fn dilation_stretches_real_and_held_time() {
        assert_eq!(Processor::new(None).serves(&RAN, 10), (Nanos(100), Nanos(370)));
    }

    #[test]
    fn a_testbeds_processor_is_taken_for_what_is_held_alone_and_when_its_own_time_says() {
        let mut processor = Processor::new(Some(&HostCosts::default()));
        processor.worked(Nanos(40));
        assert_eq!(processor.serves(&RAN, 10), (Nanos(40), Nanos(240)));
        assert_eq!(processor.serves(&Ran { held: Nanos(0), ..RAN }, 10), (Nanos(40), Nanos(110)));
    }
}
