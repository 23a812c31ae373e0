//! A seeded fault injector: a socket loses, duplicates and reorders packets on purpose.
//!
//! Each direction of each socket has a ChaCha stream of its own and draws the same number of words for
//! every packet. So the fate of the n-th packet depends only on the seed, the socket's name, the direction
//! and n. To reorder a packet, the injector holds it for a random part of [`Rates::delay`], so that later
//! packets overtake it.
//!
//! Left out: corruption, which the kernel's checksum would turn into loss.

use std::str::FromStr;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use sluice_units::shown;
use sluice_wire::Nanos;

/// The longest time for which a packet is held, unless the plan states one.
const DELAY: Nanos = Nanos::from_millis(1);

/// The faults to inject into one socket.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// Seeds every stream.
    pub seed: u64,
    /// The socket's name: sockets with different names have different random streams under one seed.
    pub socket: String,
    /// Rates for packets that arrive.
    pub receive: Rates,
    /// Rates for packets that leave.
    pub send: Rates,
}

impl FaultPlan {
    /// No faults.
    pub fn none() -> Self {
        Self::default()
    }

    /// The same rates for both directions of the socket named `socket`.
    pub fn both(seed: u64, socket: &str, rates: Rates) -> Self {
        Self { seed, socket: socket.to_owned(), receive: rates, send: rates }
    }

    /// Whether the plan injects no faults.
    pub fn is_none(&self) -> bool {
        self.receive.is_none() && self.send.is_none()
    }

    /// The injector for packets that arrive; `None` if all rates are zero.
    pub fn receiving(&self) -> Option<Faults> {
        self.faults(self.receive, 0)
    }

    /// The injector for packets that leave; `None` if all rates are zero.
    pub fn sending(&self) -> Option<Faults> {
        self.faults(self.send, 1)
    }

    fn faults(&self, rates: Rates, direction: u64) -> Option<Faults> {
        (!rates.is_none()).then(|| Faults::new(rates, self.seed, stream_of(&self.socket) << 1 | direction))
    }
}

/// The rates of faults in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// The share of packets lost, 0 to 1.
    pub loss: f64,
    /// The share of packets duplicated, 0 to 1.
    pub dup: f64,
    /// The share of packets held so that later ones overtake them, 0 to 1.
    pub reorder: f64,
    /// The longest time for which a packet is held.
    pub delay: Nanos,
}

impl Default for Rates {
    fn default() -> Self {
        Self { loss: 0.0, dup: 0.0, reorder: 0.0, delay: DELAY }
    }
}

impl Rates {
    /// Whether all rates are zero.
    pub fn is_none(&self) -> bool {
        self.loss <= 0.0 && self.dup <= 0.0 && self.reorder <= 0.0
    }
}

/// The text is not a list of rates: correct it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "faults `{}`: {}; write them as loss=0.01,dup=0.01,reorder=0.05,delay=2ms",
    shown(.text), shown(.why)
)]
pub struct FaultRatesError {
    text: String,
    why: String,
}

impl FromStr for Rates {
    type Err = FaultRatesError;

    /// Reads `loss=0.01,dup=0.01,reorder=0.05,delay=2ms`; any part may be missing.
    fn from_str(text: &str) -> Result<Self, FaultRatesError> {
        let mut rates = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            set(&mut rates, part).map_err(|why| FaultRatesError { text: text.to_owned(), why })?;
        }
        Ok(rates)
    }
}

/// The fault injector of one direction of one socket.
#[derive(Clone, Debug)]
pub struct Faults {
    rates: Rates,
    random: ChaCha8Rng,
    done: FaultCounts,
}

/// The fate of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketFate {
    /// How many copies go on: 0, 1 or 2.
    pub copies: u8,
    /// For how long the packet is held first.
    pub held: Option<Nanos>,
}

/// Counters of injected faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Packets lost.
    pub lost: u64,
    /// Packets duplicated.
    pub doubled: u64,
    /// Packets held back.
    pub held: u64,
}

impl Faults {
    fn new(rates: Rates, seed: u64, stream: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        Self { rates, random, done: FaultCounts::default() }
    }

    /// The next packet's fate.
    pub fn fate(&mut self) -> PacketFate {
        let [lost, doubled, held, part] = [(); 4].map(|()| unit(self.random.next_u32()));
        if lost < self.rates.loss {
            self.done.lost += 1;
            return PacketFate { copies: 0, held: None };
        }
        let doubled = doubled < self.rates.dup;
        let held = (held < self.rates.reorder).then_some(Nanos((part * self.rates.delay.0 as f64) as u64));
        self.done.doubled += u64::from(doubled);
        self.done.held += u64::from(held.is_some());
        PacketFate { copies: 1 + u8::from(doubled), held }
    }

    /// The counters so far.
    pub fn counts(&self) -> FaultCounts {
        self.done
    }
}

/// A random word as a number from 0 to just under 1.
fn unit(word: u32) -> f64 {
    f64::from(word) / 4_294_967_296.0
}

/// A stream number from a socket's name (FNV-1a).
fn stream_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn set(rates: &mut Rates, part: &str) -> Result<(), String> {
    let (key, value) = part.split_once('=').ok_or_else(|| format!("`{part}` has no `=`"))?;
    let (key, value) = (key.trim(), value.trim());
    let place = match key {
        "loss" => &mut rates.loss,
        "dup" => &mut rates.dup,
        "reorder" => &mut rates.reorder,
        "delay" => {
            let delay = sluice_units::cut_span(value, Nanos(u64::MAX));
            rates.delay = delay.map_err(|why| format!("delay {why}"))?;
            return Ok(());
        }
        _ => return Err(format!("`{key}` is none of loss, dup, reorder, delay")),
    };
    *place = sluice_units::share(value).map_err(|why| format!("{key} {why}"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(socket: &str, seed: u64, count: usize) -> Vec<PacketFate> {
        let rates = "loss=0.1,dup=0.1,reorder=0.2,delay=2ms".parse().expect("well written");
        let mut faults = FaultPlan::both(seed, socket, rates).receiving().expect("has faults");
        (0..count).map(|_| faults.fate()).collect()
    }

    #[test]
    fn one_seed_and_one_socket_give_the_same_fates() {
        assert_eq!(fates("worker-1", 7, 500), fates("worker-1", 7, 500));
        assert_ne!(fates("worker-1", 7, 500), fates("worker-2", 7, 500));
        assert_ne!(fates("worker-1", 7, 500), fates("worker-1", 8, 500));
    }

    #[test]
    fn the_two_directions_of_a_socket_differ() {
        let plan = FaultPlan::both(1, "switch", "loss=0.5".parse().expect("well written"));
        let (mut receive, mut send) = (plan.receiving().expect("some"), plan.sending().expect("some"));
        let alike = (0..1_000).filter(|_| receive.fate() == send.fate()).count();
        assert!((400..600).contains(&alike), "{alike}");
    }

    #[test]
    fn faults_come_near_their_rates() {
        let fates = fates("switch", 3, 100_000);
        let share =
            |is: fn(&PacketFate) -> bool| fates.iter().filter(|fate| is(fate)).count() as f64 / 100_000.0;
        assert!((share(|fate| fate.copies == 0) - 0.1).abs() < 0.005);
        assert!((share(|fate| fate.copies == 2) - 0.09).abs() < 0.005);
        assert!((share(|fate| fate.held.is_some()) - 0.18).abs() < 0.006);
        assert!(fates.iter().filter_map(|fate| fate.held).all(|held| held < Nanos::from_millis(2)));
    }

    #[test]
    fn shares_and_spans_are_written_as_everywhere() {
        let rates: Rates = "loss=1/4,delay=1.5ms".parse().expect("well written");
        assert_eq!((rates.loss, rates.delay), (0.25, Nanos(1_500_000)));
    }

    #[test]
    fn text_that_makes_no_sense_is_refused_with_the_reason() {
        let cases = [
            ("lost=0.1", "`lost` is none of loss"),
            ("loss", "has no `=`"),
            ("dup=x", "dup `x` is not a share"),
            ("reorder=1.5", "reorder `1.5` is not a share"),
            ("loss=NaN", "a number from 0 to 1"),
            ("delay=3", "delay `3` is not a span"),
            ("delay=ms", "write a number and a unit"),
            ("delay=99999999999999999s", "is longer than"),
        ];
        for (text, reason) in cases {
            let said = text.parse::<Rates>().unwrap_err().to_string();
            assert!(said.contains(reason), "{text}: {said}");
        }
    }
}
