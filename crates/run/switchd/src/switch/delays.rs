//! A testbed's delays, so that one machine takes as long as a rack would.

use sluice_wire::{Nanos, Packet};

/// How long links and passes take. On the real path they come on top of what this machine takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// One way between a client and the switch.
    pub client: Nanos,
    /// One way between a worker, or a leaf below a spine, and the switch.
    pub worker: Nanos,
    /// One pass through the pipeline.
    pub pass: Nanos,
    /// From the end of a pass to the start of the next, for a packet that goes round.
    pub recirculation: Nanos,
}

impl Delays {
    /// None but this machine's own.
    pub const NONE: Self =
        Self { client: Nanos(0), worker: Nanos(0), pass: Nanos(0), recirculation: Nanos(0) };

    /// The testbed of the Rain paper, all times `dilation`-fold.
    pub const fn testbed(dilation: u64) -> Self {
        Self {
            client: Nanos(500).times(dilation),
            worker: Nanos(1_300).times(dilation),
            pass: Nanos(500).times(dilation),
            recirculation: Nanos(500).times(dilation),
        }
    }

    /// Whether nothing is held.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// The way from a packet's sender to the switch.
    pub const fn to_switch(&self, packet: &Packet) -> Nanos {
        match packet {
            Packet::Submit(_) | Packet::Job(_) => self.client,
            Packet::Token(_) | Packet::Probe(_) | Packet::Reply(_) | Packet::Update(_) => self.worker,
            _ => Nanos(0),
        }
    }

    /// The way from the switch to where a packet goes.
    pub const fn from_switch(&self, packet: &Packet) -> Nanos {
        match packet {
            Packet::Reject(_) | Packet::Notice(_) | Packet::Reply(_) => self.client,
            Packet::Answer(_) | Packet::Dispatch(_) | Packet::Empty(_) => self.worker,
            _ => Nanos(0),
        }
    }

    /// From a worker to a client or back, past the switch: NEED, PART, and a REPLY that the program need not
    /// see.
    pub fn host_to_host(&self) -> Nanos {
        self.worker + self.pass + self.client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_testbeds_zero_load_round_trip_is_that_of_the_paper_less_what_the_worker_takes() {
        let delays = Delays::testbed(100);
        let there = delays.client + delays.pass + delays.worker;
        let back = delays.host_to_host();
        assert_eq!(there + back, Nanos::from_micros(460));
    }
}
