//! A second controller: a standby that is started too, and takes the switch over. The one before goes on as
//! if nothing had been, at first cut off or not: hosts still ask it now and then, its leases end, it writes,
//! until it hears that the switch obeys another. One that had just started, and had no turn yet, may take the
//! switch back; then the standby is the former.

use sluice_control::LinkState;
use sluice_wire::Nanos;

use super::controller::{Brain, Seat};
use super::event::Event;
use super::limits::RENEW_EVERY;
use super::rack::Rack;
use super::replay_log::Who;

/// Of a thousand calls, those that still come to the controller before.
const CALLS_TO_FORMER: u64 = 200;

impl Seat {
    fn is_superseded(&self) -> bool {
        self.controller.as_ref().is_some_and(|of| of.link_state() == LinkState::Superseded)
    }
}

impl Brain {
    /// Whether this line is that of the controller before.
    fn is_former(&self, line: u32) -> bool {
        self.former.as_ref().is_some_and(|former| former.life == line)
    }
}

impl Rack<'_> {
    /// A standby takes over; the controller before looks whom the switch obeys after a while.
    pub(super) fn start_standby(&mut self, looks_after: Nanos, is_cut: bool) {
        if self.brain.former.is_some() || self.brain.seat.controller.is_none() {
            return;
        }
        if is_cut {
            self.disconnect_brain();
        }
        let standby = self.brain.another();
        let former = std::mem::replace(&mut self.brain.seat, standby);
        self.brain.former = Some(former);
        self.brain.stalled_until = Nanos(0);
        self.say(Who::Rack, || "a standby controller takes over".to_owned());
        self.connect_brain();
        self.after(looks_after, Event::FormerLooks);
    }

    /// Lets the controller before act, as if it were the only one.
    pub(super) fn as_former<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let former = self.brain.former.take()?;
        let present = std::mem::replace(&mut self.brain.seat, former);
        let done = act(self);
        self.brain.former = Some(std::mem::replace(&mut self.brain.seat, present));
        Some(done)
    }

    /// Whoever this line belongs to acts.
    pub(super) fn on_line<T>(&mut self, line: u32, act: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.brain.is_former(line) { self.as_former(act) } else { Some(act(self)) }
    }

    /// The controller before looks whom the switch obeys, until one of the two knows that it is not the one.
    pub(super) fn former_looks(&mut self) {
        if self.brain.seat.is_superseded()
            && let Some(former) = &mut self.brain.former
        {
            std::mem::swap(&mut self.brain.seat, former);
            // The switch may have been another, or away, when it looked last.
            self.connect_brain();
            return;
        }
        self.as_former(Self::connect_brain);
        if self.former_believes() {
            self.after(RENEW_EVERY, Event::FormerLooks);
        }
    }

    /// A call comes to one of the two; who once heard that the former has had its turn calls the other.
    pub(super) fn meets_former(&mut self) -> bool {
        self.former_believes() && self.dice.chance(CALLS_TO_FORMER)
    }

    /// Whether there is a controller before that has not heard that the switch obeys another.
    fn former_believes(&self) -> bool {
        self.brain.former.as_ref().is_some_and(|former| !former.is_superseded())
    }
}
