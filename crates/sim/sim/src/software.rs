//! A scheduler that is a program of a server: what it costs to stand behind the switch, and to have one core.
//!
//! Packets pass the switch, go to the server, wait there for its core, and go back through the switch. Each
//! that comes takes half of a decision, since a task and a token make one; what a decision sends is in it.

use sluice_events::LaneId;
use sluice_switch::registry::Software;
use sluice_testbed::Testbed;
use sluice_wire::Nanos;

/// The server's one core.
#[derive(Debug)]
pub(crate) struct ServerCore {
    /// From the switch's port to the server, and back.
    way: Nanos,
    /// What a packet takes.
    each: Nanos,
    free_at: Nanos,
    /// What waits for the core.
    pub(crate) lane: LaneId,
}

impl ServerCore {
    /// A server as far from the switch as workers are.
    pub(crate) fn new(software: Software, testbed: &Testbed, lane: LaneId) -> Self {
        let each = Nanos(software.decision.0.div_ceil(2));
        Self { way: way(testbed), each, free_at: Nanos(0), lane }
    }

    /// A packet comes to the switch: when the core has seen to it.
    pub(crate) fn takes(&mut self, now: Nanos) -> Nanos {
        self.free_at = self.free_at.max(now + self.way) + self.each;
        self.free_at
    }

    /// What a packet that the core sends takes to the switch.
    pub(crate) const fn way_back(&self) -> Nanos {
        self.way
    }
}

/// How much longer a decision takes than the switch's own, when nothing waits for the core.
pub(crate) fn detour(software: Software, testbed: &Testbed) -> Nanos {
    way(testbed).times(2) + Nanos(software.decision.0.div_ceil(2))
}

fn way(testbed: &Testbed) -> Nanos {
    testbed.switch.pass + testbed.links.worker
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_take_their_turns_and_a_task_and_its_token_make_a_decision() {
        let software = Software { decision: Nanos(1_000), bypasses: false };
        let lane = sluice_events::EventEngine::<(), ()>::new().lane(Nanos(0));
        let mut core = ServerCore::new(software, &Testbed::rain(), lane);
        let taken = [0, 0, 100, 9_000].map(|at| core.takes(Nanos(at)).0);
        assert_eq!(taken, [2_300, 2_800, 3_300, 11_300], "1.8 us there, then half a decision each");
        assert_eq!(detour(software, &Testbed::rain()), Nanos(4_100));
    }
}
