//! What a worker does its work with: this machine, which takes what it takes, or a processor in a time of its
//! own that this machine stands for.

use sluice_wire::{Endpoint, Nanos, Packet};

use crate::udp::Outbox;
use crate::worker::run::Ran;

/// A processor in a time of its own: it receives, serves and sends one after the other, each step as long as
/// it takes there.
pub trait EmulatedProcessor: Send {
    /// A packet came then.
    fn arrived(&mut self, at: Nanos, packet: Packet);

    /// When the next packet will have been received, if nothing else is done before.
    fn next_received(&self) -> Option<Nanos>;

    /// Receives the next packet if that is done by `now`: when it came, and the packet.
    fn receive(&mut self, now: Nanos) -> Option<(Nanos, Packet)>;

    /// How many tasks had come by `at` and wait to be received.
    fn waiting(&self, at: Nanos) -> u32;

    /// Something else was done, until then.
    fn worked(&mut self, until: Nanos);

    /// When it has done everything so far.
    fn free(&self) -> Nanos;

    /// When `work` is done that begins at `at`.
    fn done(&self, at: Nanos, work: Nanos) -> Nanos;

    /// Sends a packet to the switch, or past it; says when it leaves this machine.
    fn sends(&mut self, past_switch: bool) -> Nanos;
}

/// The processor of a worker.
pub(super) struct Processor(Option<Box<dyn EmulatedProcessor>>);

/// Where a packet goes.
#[derive(Clone, Copy)]
pub(super) enum Way {
    ToSwitch(Endpoint),
    /// Past the switch.
    ToClient(Endpoint),
}

impl Processor {
    /// This machine's, where none is emulated.
    pub(super) const fn new(emulated: Option<Box<dyn EmulatedProcessor>>) -> Self {
        Self(emulated)
    }

    /// Whether it is this machine's, whose time is what the clock says.
    pub(super) const fn is_real(&self) -> bool {
        self.0.is_none()
    }

    /// Keeps a packet that came at `received` until there is time for it; says whether it does.
    pub(super) fn keeps(&mut self, received: Nanos, packet: Packet) -> bool {
        self.0.as_mut().map(|emulated| emulated.arrived(received, packet)).is_some()
    }

    /// When the next packet that is kept will have been received.
    pub(super) fn next_received(&self) -> Option<Nanos> {
        self.0.as_ref().and_then(|emulated| emulated.next_received())
    }

    /// The next packet that is kept, if there was time for it by `now`: when it came, when it was received.
    pub(super) fn receive(&mut self, now: Nanos) -> Option<(Nanos, Nanos, Packet)> {
        let emulated = self.0.as_mut()?;
        let (received, packet) = emulated.receive(now)?;
        Some((received, emulated.free(), packet))
    }

    /// How many tasks that had come by `at` are kept.
    pub(super) fn waiting(&self, at: Nanos) -> u32 {
        self.0.as_ref().map_or(0, |emulated| emulated.waiting(at))
    }

    /// When it has done everything so far, looked at `now`.
    pub(super) fn free(&self, now: Nanos) -> Nanos {
        self.0.as_ref().map_or(now, |emulated| emulated.free())
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
        if let Some(emulated) = &mut self.0 {
            emulated.worked(until);
        }
    }

    /// From when to when a service call takes it, `dilation` times slower. An emulated one begins when its own
    /// time says; what the service holds it for is then all that it takes.
    pub(super) fn serves(&self, ran: &Ran, dilation: u32) -> (Nanos, Nanos) {
        let factor = u64::from(dilation);
        let Some(emulated) = &self.0 else {
            return (ran.started, ran.started + (ran.real + ran.held).times(factor));
        };
        let took = if ran.held > Nanos(0) { ran.held } else { ran.real };
        (emulated.free(), emulated.done(emulated.free(), took.times(factor)))
    }

    /// Sends a packet, at once or when an emulated one would have.
    pub(super) fn send(&mut self, way: Way, outbox: &mut Outbox, write: impl FnOnce(&mut [u8]) -> usize) {
        let (Way::ToSwitch(to) | Way::ToClient(to)) = way;
        match &mut self.0 {
            None => outbox.send_with(to, write),
            Some(emulated) => outbox.send_at(emulated.sends(matches!(way, Way::ToClient(_))), to, write),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::run::Ended;

    /// One that takes no time for packets.
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

    const RAN: Ran = Ran { started: Nanos(100), real: Nanos(7), held: Nanos(20), ended: Ended::Done };

    #[test]
    fn dilation_stretches_real_and_held_time() {
        assert_eq!(Processor::new(None).serves(&RAN, 10), (Nanos(100), Nanos(370)));
    }

    #[test]
    fn an_emulated_processor_is_taken_for_what_is_held_alone_and_when_its_own_time_says() {
        let mut processor = Processor::new(Some(Box::new(Emulated(Nanos(0)))));
        processor.worked(Nanos(40));
        assert_eq!(processor.serves(&RAN, 10), (Nanos(40), Nanos(240)));
        assert_eq!(processor.serves(&Ran { held: Nanos(0), ..RAN }, 10), (Nanos(40), Nanos(110)));
    }
}
