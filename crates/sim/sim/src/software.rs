//! A scheduler in a server: the cost of standing behind the switch with one core.
//!
//! Packets pass the switch, go to the server, wait there for its core, and return through the switch. Each
//! packet that arrives takes half of a decision, since a task and a token make one; sending is included.

use sluice_events::LaneId;
use sluice_switch::registry::Software;
use sluice_testbed::Testbed;
use sluice_wire::Nanos;

/// The server's one core.
#[derive(Debug)]
pub(crate) struct ServerCore {
    /// The delay from the switch's port to the server, which is also that of the way back.
    way: Nanos,
    /// The time of the core per packet.
    each: Nanos,
    free_at: Nanos,
    /// The lane of packets that wait for the core.
    pub(crate) lane: LaneId,
}

impl ServerCore {
    /// A server that is as far from the switch as workers are.
    pub(crate) fn new(software: Software, testbed: &Testbed, lane: LaneId) -> Self {
        let each = Nanos(software.decision.0.div_ceil(2));
        Self { way: way(testbed), each, free_at: Nanos(0), lane }
    }

    /// A packet arrives at the switch: returns when the core has handled it.
    pub(crate) fn takes(&mut self, now: Nanos) -> Nanos {
        self.free_at = self.free_at.max(now + self.way) + self.each;
        self.free_at
    }

    /// The delay of a packet from the core to the switch.
    pub(crate) const fn way_back(&self) -> Nanos {
        self.way
    }
}

/// How much longer a server's decision takes than a switch's, if no packet waits for the server's core.
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
