//! The network: delays, and while faults last also losses, repeats and overtaking, with rates of its own
//! for each kind of packet; hosts that are cut off, and partitions.

use sluice_events::dice::Dice;
use sluice_events::{Copies, FaultInjector, Transit};
use sluice_wire::{Nanos, Packet};

use super::hosts::Host;
use super::limits::{FAULTS_END, PACKET_LIFETIME};
use super::partitions::{End, Partitions};

/// Kinds of traffic with rates of their own: the packets, then calls to the controller, then WRITEs.
pub(super) const KINDS: usize = 13;
/// Workers' replies.
pub(super) const REPLIES: usize = 2;
/// Calls between hosts and controller.
pub(super) const CALLS: usize = 11;
/// What the switch writes into servers' memory.
pub(super) const WRITES: usize = 12;

/// The loss of the kind of traffic that a seed treats worst, per mille.
const BRUTAL_LOSS: u64 = 400;

/// How often something happens to a packet, per mille.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rates {
    loss: u64,
    repeat: u64,
    overtake: u64,
    delay: u64,
}

impl Rates {
    /// Draws rates that are low for all traffic, high for all, or very high for one kind.
    pub(super) fn draw(dice: &mut Dice) -> Vec<Self> {
        let common = Self {
            loss: dice.pick(&[0, 1, 10, 100]),
            repeat: dice.pick(&[0, 10, 100]),
            overtake: dice.pick(&[0, 50, 200]),
            delay: dice.pick(&[0, 0, 5, 20]),
        };
        let mut rates = vec![common; KINDS];
        if dice.chance(500) {
            let kind = dice.below(KINDS as u64) as usize;
            rates[kind] = Self { loss: BRUTAL_LOSS, repeat: 200, overtake: 300, delay: 50 };
        }
        rates
    }

    /// Sets the loss to the very high rate.
    pub(super) const fn lose_many(&mut self) {
        self.loss = BRUTAL_LOSS;
    }
}

/// The shortest delay of any packet.
pub(super) const WAY: Nanos = Nanos(1_000);
/// By how much the delay varies at most without faults.
const WAY_SPREAD: Nanos = Nanos(2_000);
/// The longest delay without faults.
pub(super) const LONGEST_WAY: Nanos = Nanos(WAY.0 + WAY_SPREAD.0);

/// The network between all hosts.
#[derive(Debug)]
pub(super) struct Network {
    dice: Dice,
    rates: Vec<Rates>,
    pub(super) partitions: Partitions,
    /// Until this time no packet reaches these hosts' processes or leaves them.
    cut_until: Vec<(Host, Nanos)>,
}

impl Network {
    pub(super) fn new(seed: u64, rates: Vec<Rates>) -> Self {
        Self { dice: Dice::new(seed, 2), rates, partitions: Partitions::default(), cut_until: Vec::new() }
    }

    /// Cuts a host's process off, until this time at least.
    pub(super) fn cut(&mut self, host: Host, until: Nanos) {
        self.cut_until.push((host, until));
    }

    /// Another process takes a host's place: ends the cut.
    pub(super) fn mend(&mut self, host: Host) {
        self.cut_until.retain(|(cut, _)| *cut != host);
    }

    pub(super) fn is_cut(&self, host: Host, now: Nanos) -> bool {
        self.cut_until.iter().any(|(cut, until)| *cut == host && now < *until)
    }

    /// When the copies of a packet that is sent now arrive, if no partition stops it.
    pub(super) fn arrivals(&mut self, now: Nanos, kind: usize) -> Copies {
        let rates = if now < FAULTS_END { self.rates[kind] } else { Rates::default() };
        let first = (!self.dice.chance(rates.loss)).then(|| self.arrival(now, rates));
        let second = self.dice.chance(rates.repeat).then(|| self.arrival(now, rates));
        [first, second]
    }

    fn arrival(&mut self, now: Nanos, rates: Rates) -> Nanos {
        let dice = &mut self.dice;
        let mut way = WAY + dice.span(Nanos(0), WAY_SPREAD);
        if dice.chance(rates.overtake) {
            way = way + dice.span(Nanos(0), Nanos(60_000));
        }
        if dice.chance(rates.delay) {
            way = way + dice.span(Nanos(0), PACKET_LIFETIME - Nanos(100_000));
        }
        now + way
    }
}

impl FaultInjector for Network {
    fn is_any(&self) -> bool {
        true
    }

    fn copies(&mut self, transit: &Transit, packet: &Packet) -> Copies {
        let now = transit.leaves;
        let arrivals = self.arrivals(now, kind(packet));
        let (from, to) = (End::at(transit.from), End::at(transit.to));
        let is_cut = |end: End| matches!(end, End::Host(host) if self.is_cut(host, now));
        let is_lost =
            [from, to].into_iter().flatten().any(is_cut) || self.partitions.is_closed(now, from, to);
        if is_lost { [None, None] } else { arrivals }
    }
}

/// The number of a packet's kind in the rates.
const fn kind(packet: &Packet) -> usize {
    match packet {
        Packet::Submit(_) | Packet::Job(_) => 0,
        Packet::Dispatch(_) | Packet::Empty(_) => 1,
        Packet::Reply(_) => REPLIES,
        Packet::Token(_) => 3,
        Packet::Probe(_) => 4,
        Packet::Answer(_) => 5,
        Packet::Reject(_) => 6,
        Packet::Notice(_) => 7,
        Packet::Need(_) => 8,
        Packet::Part(_) => 9,
        Packet::Sweep(_) | Packet::Update(_) => 10,
    }
}
