//! A second controller: a standby that is started too, and takes the switch over. The former controller
//! goes on as before, at first cut off or not. Hosts still call it now and then, its leases end, and it
//! writes, until it is told that the switch obeys another controller. A former controller that had just
//! started, and was not granted the switch yet, may take the switch back; then the standby is the former
//! one.

use sluice_control::LinkState;
use sluice_wire::Nanos;

use crate::controller::{ControllerPair, ControllerProcess};
use crate::event::Event;
use crate::limits::{FAULTS_END, RENEW_EVERY};
use crate::rack::Rack;
use crate::replay_log::Party;

/// How many of a thousand calls still go to the former controller.
const CALLS_TO_FORMER: u64 = 200;

impl ControllerProcess {
    fn is_superseded(&self) -> bool {
        self.controller.as_ref().is_some_and(|of| of.link_state() == LinkState::Superseded)
    }
}

impl ControllerPair {
    /// Whether this connection is the former controller's.
    fn is_former(&self, line: u32) -> bool {
        self.former.as_ref().is_some_and(|former| former.life == line)
    }
}

impl Rack<'_> {
    /// A standby takes over. The former controller looks after a while which controller the switch obeys.
    pub(crate) fn start_standby(&mut self, looks_after: Nanos, is_cut: bool) {
        if self.controllers.former.is_some() || self.controllers.present.controller.is_none() {
            return;
        }
        if is_cut {
            self.disconnect_controller();
        }
        let standby = self.controllers.another();
        let former = std::mem::replace(&mut self.controllers.present, standby);
        self.controllers.former = Some(former);
        self.controllers.stalled_until = Nanos(0);
        self.say(Party::Rack, || "a standby controller takes over".to_owned());
        self.connect_controller();
        self.after(looks_after, Event::FormerLooks);
    }

    /// Lets the former controller act, as if it were the only one.
    pub(crate) fn as_former<T>(&mut self, act: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let former = self.controllers.former.take()?;
        let present = std::mem::replace(&mut self.controllers.present, former);
        self.controllers.swap_times();
        let done = act(self);
        self.controllers.swap_times();
        self.controllers.former = Some(std::mem::replace(&mut self.controllers.present, present));
        Some(done)
    }

    /// Lets the controller of this connection act.
    pub(crate) fn on_line<T>(&mut self, line: u32, act: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.controllers.is_former(line) { self.as_former(act) } else { Some(act(self)) }
    }

    /// The former controller looks which controller the switch obeys. It repeats this until one of the two
    /// knows that it is superseded.
    pub(crate) fn check_former(&mut self) {
        if self.controllers.present.is_superseded()
            && let Some(former) = &mut self.controllers.former
        {
            std::mem::swap(&mut self.controllers.present, former);
            // When it last looked, the switch may have been down or in another epoch.
            self.connect_controller();
            return;
        }
        self.as_former(Self::connect_controller);
        if self.former_believes() {
            self.after(RENEW_EVERY, Event::FormerLooks);
        }
    }

    /// Whether a call goes to the former controller while faults last. After a host was told that the former
    /// one is superseded, it calls the other. A renewal that goes there is lost for the present controller,
    /// and three in a row end a lease.
    pub(crate) fn calls_former(&mut self) -> bool {
        self.standbys.is_none()
            && self.former_believes()
            && self.dice.chance(CALLS_TO_FORMER)
            && self.world.now < FAULTS_END
    }

    /// Whether there is a former controller that does not know that the switch obeys another one.
    fn former_believes(&self) -> bool {
        self.controllers.former.as_ref().is_some_and(|former| !former.is_superseded())
    }
}
