//! Situations that elsewhere take minutes or hours: polls that find no task, long waits in the switch, and
//! a slow overload that never ends.
//!
//! They are drawn from a stream of their own, so that the other seeds stay unchanged.

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

/// How many of a thousand seeds let the switch's clock jump ahead by hours. They are few, since afterwards
/// no worker can tell what became of a task that waited.
const LEAPS: u64 = 3;
/// How many of a thousand seeds offer slightly more tasks than workers can serve, all the time.
const TRICKLES: u64 = 40;
/// So many polls without a task are slightly fewer than those after which a pointer is put right: as after
/// minutes of idleness.
const POLLS: u32 = (1 << 16) - 40;
/// A wait whose low bits are zero, where 40 bits of 16 ns are kept.
const TWO_TO_THE_44: Nanos = Nanos(1 << 44);
const HOUR: Nanos = Nanos::from_millis(3_600_000);

/// The situations that a run has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LongTimes {
    /// How many polls without a task have passed when the switch's life begins.
    pub(super) polls_ahead: u32,
    /// At the first time, tasks in the switch have suddenly waited for longer by the second.
    leap: Option<(Nanos, Nanos)>,
    /// Whether tasks keep coming slightly faster than they are served, if there are few workers.
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

    /// How far the switch's clock is ahead of the other clocks.
    pub(super) fn ahead(&self, now: Nanos) -> Nanos {
        self.leap.filter(|(at, _)| now >= *at).map_or(Nanos(0), |(_, by)| by)
    }
}

#[cfg(test)]
mod tests {
    use sluice_switch::registry::Choice;

    use super::*;
    use crate::kind::RackKind;
    use crate::scenario::Scenario;

    /// The seeds in which the switch's clock jumps ahead.
    fn leaping() -> impl Iterator<Item = u64> {
        let leaps = |seed: &u64| LongTimes::draw(&mut Dice::named(*seed, "long times", 0)).leap.is_some();
        (0..).filter(leaps)
    }

    /// A seed leaps so seldom that few runs of these kinds would meet a leap while a window is open and a
    /// greedy client keeps to a pace.
    #[test]
    fn a_switch_with_a_target_keeps_every_promise_when_its_clock_jumps() {
        let kind = |policy| RackKind::of(Choice::parse(policy).expect("a policy"));
        for (policy, kind) in ["rain:2,target=20us", "rain:2,target=100us", "rain:2,classes=4,target=100us"]
            .map(|policy| (policy, kind(policy)))
            .into_iter()
            .chain([("with budgets", kind("rain:2,target=100us").with_budgets())])
        {
            let is_greedy = |seed: &u64| Scenario::of(&kind, *seed).greed > 1;
            let run = |seed| crate::run(&kind, seed).unwrap_or_else(|why| panic!("{policy}: {why}"));
            let seeds = leaping().filter(is_greedy).take(10);
            let refused: u64 = seeds.map(|seed| run(seed).refused).sum();
            assert!(refused > 100, "{policy}: {refused} tasks were refused");
        }
    }
}
