//! How a worker with an emulated processor catches up with the clock.

use sluice_wire::Nanos;

use super::Engine;
use crate::service::Service;

impl<S: Service> Engine<S> {
    /// Runs the processor's steps up to `now`, each at its own time.
    pub(super) fn catch_up(&mut self, now: Nanos) {
        while !self.effects.processor.is_real() {
            if let Some(until) = self.busy.as_ref().map(|busy| busy.until) {
                self.early(now.min(until));
                // A token that left meanwhile took some of the processor's time.
                let until = self.busy.as_ref().map_or(until, |busy| busy.until);
                if until > now {
                    return;
                }
                self.free(until);
            } else {
                let Some((received, at, packet)) = self.effects.processor.receive(now) else { return };
                self.machine.packet(at, received, &self.settings, &packet, &mut self.actions);
                self.perform(at);
            }
            self.serve();
        }
    }
}
