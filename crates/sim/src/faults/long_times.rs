//! What takes minutes or hours elsewhere: polls in vain, waits in the switch, and a trickle that never ends.
//!
//! Drawn from a stream of their own, so that the other seeds stay what they are.

use sluice_wire::Nanos;

use super::network::Rates;
use super::scenario::Scenario;
use crate::dice::Dice;

/// Of a thousand seeds, those in which the switch's clock goes ahead by hours: few, since no worker can tell then
/// what became of a task that waited.
const LEAPS: u64 = 3;
/// Of a thousand seeds, those with little more to do than workers bear, all the time.
const TRICKLES: u64 = 40;
/// So many polls in vain are a few less than put a pointer right: as after minutes of idleness.
const POLLS: u32 = (1 << 16) - 40;
/// A wait whose low bits are those of none, where 40 bits of 16 ns are kept.
const TWO_TO_THE_44: Nanos = Nanos(1 << 44);
const HOUR: Nanos = Nanos::from_millis(3_600_000);

/// What of that a run meets.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTimes {
    /// How many polls in vain stand behind the switch when its life begins.
    pub(super) polls_ahead: u32,
    /// What has waited in the switch at this time has waited for so much longer.
    leap: Option<(Nanos, Nanos)>,
}

impl LongTimes {
    /// Draws them, and makes of a rack with few workers one that is never idle.
    pub(super) fn draw(dice: &mut Dice, scenario: &mut Scenario) {
        scenario.long.polls_ahead = if dice.chance(500) { POLLS } else { 0 };
        if dice.chance(LEAPS) {
            let at = dice.span(Nanos::from_millis(5), Nanos::from_millis(25));
            let hours = [5, 30, 720][dice.below(3) as usize];
            let by = if dice.chance(500) { TWO_TO_THE_44 } else { HOUR.times(hours) };
            scenario.long.leap = Some((at, by));
        }
        if dice.chance(TRICKLES) && scenario.cores.is_none() && scenario.workers <= 2 * scenario.slices {
            scenario.trickle();
        }
    }

    /// How far the switch's clock is ahead of the others'.
    pub(super) fn ahead(&self, now: Nanos) -> Nanos {
        self.leap.filter(|(at, _)| now >= *at).map_or(Nanos(0), |(_, by)| by)
    }
}

impl Scenario {
    /// Tasks come a little faster than they are served, and wait in queues that are long enough for all classes.
    /// The network is kind to them: there are so many that else theirs would be most of what ends unknown.
    fn trickle(&mut self) {
        self.service_max = Nanos::from_micros(20);
        self.gap = Nanos(Nanos::from_micros(10).0 * self.clients as u64 / self.workers as u64);
        self.limit = Some(16);
        self.replay_cells = 64;
        self.no_retry = 0;
        self.rates.fill(Rates::default());
    }
}
