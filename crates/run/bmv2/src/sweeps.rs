//! The control link: the driver on the switch's processor sends SWEEPs into the program by a port of its own.
//! Over P4Runtime that is the processor's port, otherwise one more link.
//!
//! The program does not know which sweeps are under way. A second sweep for tokens of one slice could
//! recirculate with the first for ever. So the driver sends none before all earlier sweeps have ended, and
//! counts it as the model does.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use sluice_kernel::spaces::SideSpace;
use sluice_kernel::xdp::frame::wrap;
use sluice_net::clock::monotonic;
use sluice_wire::{Epoch, HEADER_BYTES, Kind, Nanos, Packet, SliceId, Sweep, SweepOf, encode};

use crate::error::Bmv2Error;
use crate::registers::of;
use crate::runtime::Runtime;

/// How long a SWEEP may take to the program, behind all packets that wait there.
const PATIENCE: Duration = Duration::from_secs(10);
/// After so long without a trace of it a SWEEP counts as lost.
const LOST_AFTER: Nanos = Nanos::from_millis(2_000);
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// The control link's end at the driver.
pub(crate) struct ControlLink {
    way: ControlWay,
    epoch: Epoch,
    turns: SweepTurns,
    /// How many SWEEPs only asked whether what came before them is done.
    questions: u64,
    /// How many SWEEPs were not sent because another was under way.
    refused: u64,
}

/// How frames come to the program's control port.
enum ControlWay {
    /// Over a link whose other end is the port.
    Link { _side: SideSpace, socket: UdpSocket, to: SocketAddr },
    /// As packets of the switch's processor to the switch's address.
    PacketOut { to: SocketAddr },
}

impl ControlLink {
    /// The end of a link whose other end is a port of the program, or without a link the port of the switch's
    /// processor. `at` is the switch's address.
    pub(crate) fn new(side: Option<SideSpace>, at: SocketAddr, epoch: Epoch) -> Result<Self, Bmv2Error> {
        let way = match side {
            Some(side) => {
                let (socket, to) = side.socket(at.port())?;
                ControlWay::Link { _side: side, socket, to }
            }
            None => ControlWay::PacketOut { to: at },
        };
        Ok(Self { way, epoch, turns: SweepTurns::default(), questions: 0, refused: 0 })
    }

    /// Sends a SWEEP into the program, unless it would be the second for its slice's tokens.
    pub(crate) fn sweep(&mut self, runtime: &mut Runtime, sweep: Sweep) -> Result<(), Bmv2Error> {
        if !self.turns.may_begin(&sweep) {
            self.turns.look(monotonic(), counts(runtime)?);
        }
        if !self.turns.may_begin(&sweep) {
            self.refused += 1;
            return Ok(());
        }
        self.send(runtime, sweep)
    }

    /// Waits until every pass that has begun has ended: the program passes one packet after the other, so a
    /// SWEEP with nothing to look at asks.
    pub(crate) fn drain(&mut self, runtime: &mut Runtime) -> Result<(), Bmv2Error> {
        let began = Instant::now();
        let slice = SliceId(0);
        let question = Sweep { epoch: self.epoch, slice, of: SweepOf::Tasks, left: 0, carried: None };
        self.send(runtime, question)?;
        self.questions += 1;
        loop {
            let counts = counts(runtime)?;
            if self.turns.have_come(&counts) {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                let s = PATIENCE.as_secs();
                return Err(Bmv2Error::Gone(format!("passes no packet of its control port in {s} s")));
            }
            // A question that was lost is asked anew.
            if self.turns.look(monotonic(), counts) {
                self.send(runtime, question)?;
                self.questions += 1;
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// How many SWEEPs asked only. The program counts them as done.
    pub(crate) fn questions(&self) -> u64 {
        self.questions
    }

    /// How many SWEEPs were not sent because another was under way.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    fn send(&mut self, runtime: &mut Runtime, sweep: Sweep) -> Result<(), Bmv2Error> {
        let mut bytes = [0; HEADER_BYTES];
        encode(&Packet::Sweep(sweep), &[], &mut bytes).expect("a SWEEP is its header");
        match &self.way {
            ControlWay::Link { socket, to, .. } => {
                let sent = socket.send_to(&bytes, to);
                sent.map(drop).map_err(Bmv2Error::system("send a SWEEP on the control link"))?;
            }
            ControlWay::PacketOut { to } => {
                runtime.packet_out(wrap(*to, *to, &bytes).expect("of one family"))?;
            }
        }
        self.turns.on_sent(&sweep);
        Ok(())
    }
}

/// What the program has counted of SWEEPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SweepCounts {
    came: u64,
    /// How many times one began to recirculate, and came back.
    rounds: [u64; 2],
}

/// Reads the end of rounds before their beginning: if both are equal, no SWEEP recirculated then.
fn counts(runtime: &mut Runtime) -> Result<SweepCounts, Bmv2Error> {
    let mut count = |part, name| runtime.count(&of(part, name), Kind::Sweep as usize);
    let (came, ended) = (count("begin", "came")?, count("begin", "rounds_ended")?);
    Ok(SweepCounts { came, rounds: [count("end", "rounds_begun")?, ended] })
}

/// Which sweeps may be under way.
#[derive(Debug, Default)]
struct SweepTurns {
    /// How many SWEEPs must come to the program.
    sent: u64,
    /// The slices of sweeps for tokens.
    under_way: BTreeSet<SliceId>,
    /// The counts when they last changed, and when that was seen.
    changed: Option<(Nanos, SweepCounts)>,
}

impl SweepTurns {
    fn may_begin(&self, sweep: &Sweep) -> bool {
        sweep.of == SweepOf::Tasks || !self.under_way.contains(&sweep.slice)
    }

    fn on_sent(&mut self, sweep: &Sweep) {
        self.sent += 1;
        self.changed = None;
        if sweep.of == SweepOf::Tokens {
            self.under_way.insert(sweep.slice);
        }
    }

    /// Whether every SWEEP has begun.
    fn have_come(&self, counts: &SweepCounts) -> bool {
        counts.came >= self.sent
    }

    /// Forgets sweeps that have ended, or left no trace for long. Returns whether some were lost.
    fn look(&mut self, now: Nanos, counts: SweepCounts) -> bool {
        let [begun, ended] = counts.rounds;
        if self.have_come(&counts) && begun == ended {
            self.under_way.clear();
            return false;
        }
        let since = match self.changed {
            Some((since, before)) if before == counts => since,
            _ => now,
        };
        self.changed = Some((since, counts));
        let are_lost = now.since(since) > LOST_AFTER;
        if are_lost {
            self.sent = counts.came;
            self.under_way.clear();
        }
        are_lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(of: SweepOf, slice: u16) -> Sweep {
        Sweep { epoch: Epoch(1), slice: SliceId(slice), of, left: 3, carried: None }
    }

    fn counted(came: u64, begun: u64, ended: u64) -> SweepCounts {
        SweepCounts { came, rounds: [begun, ended] }
    }

    #[test]
    fn a_second_sweep_for_tokens_waits_until_all_sweeps_have_ended() {
        let mut turns = SweepTurns::default();
        let (first, other) = (sweep(SweepOf::Tokens, 0), sweep(SweepOf::Tokens, 1));
        turns.on_sent(&first);
        assert!(!turns.may_begin(&first) && turns.may_begin(&other));
        assert!(turns.may_begin(&sweep(SweepOf::Tasks, 0)), "it takes one pass");
        for under_way in [counted(0, 0, 0), counted(1, 1, 0), counted(1, 2, 1)] {
            turns.look(Nanos(0), under_way);
            assert!(!turns.may_begin(&first), "{under_way:?}");
        }
        turns.look(Nanos(0), counted(1, 2, 2));
        assert!(turns.may_begin(&first));
    }

    #[test]
    fn a_sweep_that_leaves_no_trace_is_lost_and_one_that_goes_round_is_not() {
        let mut turns = SweepTurns::default();
        let first = sweep(SweepOf::Tokens, 0);
        turns.on_sent(&first);
        let long = LOST_AFTER.times(2);
        for (at, counts) in (0..5).map(|round| (long.times(round), counted(1, round + 1, round))) {
            assert!(!turns.look(at, counts), "it recirculates");
        }
        assert!(turns.look(long.times(6), counted(1, 5, 4)) && turns.may_begin(&first));
        assert!(turns.have_come(&counted(1, 5, 4)), "nothing more is awaited");
    }
}
