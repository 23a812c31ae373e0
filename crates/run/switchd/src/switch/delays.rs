//! The delays of a testbed, so that a rack on one machine takes as long as a real one.

use sluice_wire::{Nanos, Packet};

/// The delays of links and passes. They come on top of the time that this machine takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// The one-way delay between a client and the switch.
    pub client: Nanos,
    /// The one-way delay between a worker (or a leaf below a spine) and the switch.
    pub worker: Nanos,
    /// The duration of one pass through the pipeline.
    pub pass: Nanos,
    /// From the end of a pass to the start of the next, for a recirculated packet.
    pub recirculation: Nanos,
}

impl Delays {
    /// No delays.
    pub const NONE: Self =
        Self { client: Nanos(0), worker: Nanos(0), pass: Nanos(0), recirculation: Nanos(0) };

    /// The testbed of the Rain paper, with all times multiplied by `dilation`.
    pub const fn testbed(dilation: u64) -> Self {
        Self {
            client: Nanos(500).times(dilation),
            worker: Nanos(1_300).times(dilation),
            pass: Nanos(500).times(dilation),
            recirculation: Nanos(500).times(dilation),
        }
    }

    /// Whether all delays are zero.
    pub fn is_none(&self) -> bool {
        *self == Self::NONE
    }

    /// The one-way delay from a packet's sender to the switch.
    pub const fn to_switch(&self, packet: &Packet) -> Nanos {
        match packet {
            Packet::Submit(_) | Packet::Job(_) => self.client,
            Packet::Token(_) | Packet::Probe(_) | Packet::Reply(_) | Packet::Update(_) => self.worker,
            _ => Nanos(0),
        }
    }

    /// The one-way delay from the switch to a packet's receiver.
    pub const fn from_switch(&self, packet: &Packet) -> Nanos {
        match packet {
            Packet::Reject(_) | Packet::Notice(_) | Packet::Reply(_) => self.client,
            Packet::Answer(_) | Packet::Dispatch(_) | Packet::Empty(_) => self.worker,
            _ => Nanos(0),
        }
    }

    /// The one-way delay between worker and client for packets that do not pass the program: NEED, PART,
    /// and most REPLYs.
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
