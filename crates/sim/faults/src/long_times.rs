//! What takes minutes or hours elsewhere: polls in vain, waits in the switch, and a trickle that never ends.
//!
//! Drawn from a stream of their own, so that the other seeds stay what they are.

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

/// Of a thousand seeds, those in which the switch's clock goes ahead by hours: few, since no worker can tell
/// then what became of a task that waited.
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
    /// Whether tasks never stop to come a little faster than they are served, if there are few workers.
    pub(super) trickles: bool,
}

impl LongTimes {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        let polls_ahead = if dice.chance(500) { POLLS } else { 0 };
        let leap = dice.chance(LEAPS).then(|| {
            let at = dice.span(Nanos::from_millis(5), Nanos::from_millis(25));
            let hours = dice.pick(&[5, 30, 720]);
            (at, if dice.chance(500) { TWO_TO_THE_44 } else { HOUR.times(hours) })
        });
        Self { polls_ahead, leap, trickles: dice.chance(TRICKLES) }
    }

    /// How far the switch's clock is ahead of the others'.
    pub(super) fn ahead(&self, now: Nanos) -> Nanos {
        self.leap.filter(|(at, _)| now >= *at).map_or(Nanos(0), |(_, by)| by)
    }
}
