//! The processor that does a worker's work: this machine's, or an emulated one with a time of its own.

use sluice_wire::{Endpoint, Nanos, Packet};

use crate::udp::Outbox;
use crate::worker::run::ServiceRun;

/// An emulated processor with a time of its own: it receives, serves and sends one after the other, each
/// step with its own duration.
pub trait EmulatedProcessor: Send {
    /// A packet arrived at `at`.
    fn arrived(&mut self, at: Nanos, packet: Packet);

    /// When the next packet will have been received, if the processor does nothing else before.
    fn next_received(&self) -> Option<Nanos>;

    /// Receives the next packet if that is done by `now`. Returns the packet and its arrival time.
    fn receive(&mut self, now: Nanos) -> Option<(Nanos, Packet)>;

    /// How many tasks had arrived by `at` and are not received yet.
    fn waiting(&self, at: Nanos) -> u32;

    /// The processor did something else until `until`.
    fn worked(&mut self, until: Nanos);

    /// When the processor has done everything so far.
    fn free(&self) -> Nanos;

    /// When `work` is done if it begins at `at`.
    fn done(&self, at: Nanos, work: Nanos) -> Nanos;

    /// Sends a packet to the switch or past it. Returns when the packet leaves this machine.
    fn sends(&mut self, past_switch: bool) -> Nanos;
}

/// The processor of a worker.
pub(super) struct Processor(Option<Box<dyn EmulatedProcessor>>);

/// The destination of a packet.
#[derive(Clone, Copy)]
pub(super) enum Destination {
    ToSwitch(Endpoint),
    /// Past the switch.
    ToClient(Endpoint),
}

impl Processor {
    /// The emulated processor, or this machine's if there is none.
    pub(super) const fn new(emulated: Option<Box<dyn EmulatedProcessor>>) -> Self {
        Self(emulated)
    }

    /// Whether the processor is this machine's, whose time is the clock's.
    pub(super) const fn is_real(&self) -> bool {
        self.0.is_none()
    }

    /// Stores a packet that arrived at `received` until the processor has time for it. Returns false if it
    /// is handled at once.
    pub(super) fn keeps(&mut self, received: Nanos, packet: Packet) -> bool {
        self.0.as_mut().map(|emulated| emulated.arrived(received, packet)).is_some()
    }

    /// When the next stored packet will have been received.
    pub(super) fn next_received(&self) -> Option<Nanos> {
        self.0.as_ref().and_then(|emulated| emulated.next_received())
    }

    /// The next stored packet if it was received by `now`, with its arrival time and the time of its
    /// receipt.
    pub(super) fn receive(&mut self, now: Nanos) -> Option<(Nanos, Nanos, Packet)> {
        let emulated = self.0.as_mut()?;
        let (received, packet) = emulated.receive(now)?;
        Some((received, emulated.free(), packet))
    }

    /// How many of the tasks that arrived by `at` are stored.
    pub(super) fn waiting(&self, at: Nanos) -> u32 {
        self.0.as_ref().map_or(0, |emulated| emulated.waiting(at))
    }

    /// When the processor has done everything so far, as seen at `now`.
    pub(super) fn free(&self, now: Nanos) -> Nanos {
        self.0.as_ref().map_or(now, |emulated| emulated.free())
    }

    /// When an action happens that was due at `due` and is noticed at `now`.
    pub(super) const fn does(&self, due: Nanos, now: Nanos) -> Nanos {
        if self.is_real() { now } else { due }
    }

    /// How long the processor spent on packets since `at`.
    pub(super) fn took_since(&self, at: Nanos) -> Nanos {
        self.free(at).since(at)
    }

    /// Notes that the processor worked until `until`.
    pub(super) fn worked(&mut self, until: Nanos) {
        if let Some(emulated) = &mut self.0 {
            emulated.worked(until);
        }
    }

    /// When a service call begins and ends, stretched by `dilation`. On an emulated processor it begins in
    /// the processor's own time, and lasts only as long as the service holds the worker.
    pub(super) fn service_span(&self, ran: &ServiceRun, dilation: u32) -> (Nanos, Nanos) {
        let factor = u64::from(dilation);
        let Some(emulated) = &self.0 else {
            return (ran.started, ran.started + (ran.real + ran.held).times(factor));
        };
        let took = if ran.held > Nanos(0) { ran.held } else { ran.real };
        (emulated.free(), emulated.done(emulated.free(), took.times(factor)))
    }

    /// Sends a packet, at once or when the emulated processor would have sent it.
    pub(super) fn send(
        &mut self,
        way: Destination,
        outbox: &mut Outbox,
        write: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let (Destination::ToSwitch(to) | Destination::ToClient(to)) = way;
        match &mut self.0 {
            None => outbox.send_with(to, write),
            Some(emulated) => {
                outbox.send_at(emulated.sends(matches!(way, Destination::ToClient(_))), to, write);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::run::ServiceEnd;

    /// An emulated processor that spends no time on packets.
    struct Emulated(Nanos);

    impl EmulatedProcessor for Emulated {
        fn arrived(&mut self, _: Nanos, _: Packet) {}

        fn next_received(&self) -> Option<Nanos> {
            None
        }

        fn receive(&mut self, _: Nanos) -> Option<(Nanos, Packet)> {
            None
        }

        fn waiting(&self, _: Nanos) -> u32 {
            0
        }

        fn worked(&mut self, until: Nanos) {
            self.0 = self.0.max(until);
        }

        fn free(&self) -> Nanos {
            self.0
        }

        fn done(&self, at: Nanos, work: Nanos) -> Nanos {
            at + work
        }

        fn sends(&mut self, _: bool) -> Nanos {
            self.0
        }
    }

    const RAN: ServiceRun =
        ServiceRun { started: Nanos(100), real: Nanos(7), held: Nanos(20), ended: ServiceEnd::Done };

    #[test]
    fn dilation_stretches_real_and_held_time() {
        assert_eq!(Processor::new(None).service_span(&RAN, 10), (Nanos(100), Nanos(370)));
    }

    #[test]
    fn an_emulated_processor_is_taken_for_what_is_held_alone_and_when_its_own_time_says() {
        let mut processor = Processor::new(Some(Box::new(Emulated(Nanos(0)))));
        processor.worked(Nanos(40));
        assert_eq!(processor.service_span(&RAN, 10), (Nanos(40), Nanos(240)));
        assert_eq!(
            processor.service_span(&ServiceRun { held: Nanos(0), ..RAN }, 10),
            (Nanos(40), Nanos(110))
        );
    }
}
