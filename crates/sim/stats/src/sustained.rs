//! Whether a point's load can be kept up, whatever its quantiles are.
//!
//! A point is not sustained if
//! - a task was refused, pushed back or left unknown, or
//! - **throughput** falls short. Replies in the span are fewer than the tasks due in it, not counting those
//!   that fill a rack which was empty at first. They are fewer by more than a thousandth on average, and by
//!   more than chance explains at 99.9 % over the replications (one-sided Student's t on the paired
//!   shortfall). Or
//! - **the backlog grows**. Arrivals of the last quarter find a quarter more tasks outstanding than those
//!   of the first, and by more than chance explains at 99 % (the same test). Or
//! - **tasks are passed over**. Arrivals find more than ten tasks that wait while workers are idle (the
//!   waiting tasks, times the share of workers that serve no task). And in an eighth of some run these are
//!   four times as many as in its middle eighths, or in all of a run four times as many as if each task
//!   were sent to a worker drawn at random. A policy that spreads badly always has such tasks, at a
//!   constant number. A policy that forgets a worker or a rack has them in spells, which a run's quantiles
//!   hide as long as they are few.
//!
//! With fewer than five replications the test of chance has no power. Then the shortfall must be a
//! hundredth in each replication; or in each replication every quarter must find more than the one before,
//! and the last twice as many as the first.

use sluice_outcome::study::Sustained;

use super::chance::mean;
use super::interval::{standard_error, student_t};
use super::measured::{EIGHTHS, Measured};

const REPLICATIONS_MIN: usize = 5;
/// One-sided: a point that is sustained fails the test at most once in a hundred times.
const CHANCE: f64 = 0.01;
/// Smaller for the shortfall: studies have hundreds of points, and a shortfall of a thousandth happens
/// easily by chance.
const CHANCE_OF_SHORTFALL: f64 = 0.001;
const SHORTFALL_MIN: f64 = 0.001;
const SHORTFALL_MIN_OF_FEW: f64 = 0.01;
const GROWTH_MIN: f64 = 1.25;
const GROWTH_MIN_OF_FEW: f64 = 2.0;
/// With fewer outstanding tasks a backlog is not reported.
const BACKLOG_MIN: f64 = 10.0;
/// By what factor the tasks passed over in a spell exceed the others, and in a whole run those of workers
/// drawn at random.
const SPELL_MIN: f64 = 4.0;

/// The verdict on the replications.
pub(super) fn sustained(measured: &[Measured]) -> Sustained {
    let verdicts = [failures(measured), shortfall(measured), growth(measured), spells(measured)];
    let why: Vec<String> = verdicts.into_iter().flatten().collect();
    Sustained { holds: why.is_empty(), why: why.join("; ") }
}

/// One of the equally long parts of a run that is measured once, as a live one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPart {
    /// Tasks that were due.
    pub due: u64,
    /// Replies, to tasks of any part.
    pub replies: u64,
}

/// The verdict on the consecutive parts of one run: the test of the throughput, with parts in place of
/// replications. A part in which the rack stalls is made up for in the next part, or is one part alone; a
/// load that is too high falls short in part after part. `None` if there are too few parts for the test.
pub fn sustained_in_parts(parts: &[RunPart]) -> Option<Sustained> {
    if parts.len() < REPLICATIONS_MIN {
        return None;
    }
    let due = parts.iter().map(|part| part.due).sum::<u64>() as f64;
    let each = due.max(1.0) / parts.len() as f64;
    let short = |part: &RunPart| (part.due as f64 - part.replies as f64) / each;
    let shares: Vec<f64> = parts.iter().map(short).collect();
    let share = mean(&shares);
    let is_short =
        share > SHORTFALL_MIN_OF_FEW && share * due > BACKLOG_MIN && is_above_zero(&shares, CHANCE);
    let why = format!("throughput is {:.2} % below what is offered", share * 100.0);
    Some(Sustained { holds: !is_short, why: if is_short { why } else { String::new() } })
}

fn failures(measured: &[Measured]) -> Option<String> {
    let sum = |of: fn(&Measured) -> u64| measured.iter().map(of).sum::<u64>();
    let all = [
        (sum(|one| one.counts.refused), "refused"),
        (sum(|one| one.counts.pushed_back), "pushed back"),
        (sum(|one| one.counts.unknown), "of unknown outcome"),
    ];
    let told: Vec<String> =
        all.iter().filter(|(tasks, _)| *tasks > 0).map(|(tasks, what)| format!("{tasks} {what}")).collect();
    (!told.is_empty()).then(|| format!("tasks: {}", told.join(", ")))
}

/// Tasks that fill the rack once are no shortfall: if the rack was empty when the span opened, its usual
/// number of tasks stays unanswered at the end.
fn shortfall(measured: &[Measured]) -> Option<String> {
    let share = |one: &Measured| 1.0 - one.backlog.replies as f64 / one.counts.sent.max(1) as f64;
    let fills = |one: &Measured| (mean(&one.backlog.by_eighth) - one.backlog.at_open as f64).max(0.0);
    let lasting = |one: &Measured| share(one) - fills(one) / one.counts.sent.max(1) as f64;
    let shares: Vec<f64> = measured.iter().map(lasting).collect();
    let falls_short = if shares.len() < REPLICATIONS_MIN {
        shares.iter().all(|share| *share > SHORTFALL_MIN_OF_FEW)
    } else {
        mean(&shares) > SHORTFALL_MIN && is_above_zero(&shares, CHANCE_OF_SHORTFALL)
    };
    (falls_short && !shares.is_empty())
        .then(|| mean(&measured.iter().map(share).collect::<Vec<f64>>()) * 100.0)
        .map(|short| format!("throughput is {short:.2} % below what is offered"))
}

fn growth(measured: &[Measured]) -> Option<String> {
    let quarters: Vec<[f64; 4]> = measured.iter().map(|one| quarters(&one.backlog.by_eighth)).collect();
    let of = |quarter: usize| mean(&quarters.iter().map(|one| one[quarter]).collect::<Vec<_>>());
    let (first, last) = (of(0), of(3));
    let grows = if quarters.len() < REPLICATIONS_MIN {
        let rises = |one: &[f64; 4]| one.is_sorted() && one[3] > one[0] * GROWTH_MIN_OF_FEW;
        quarters.iter().all(rises)
    } else {
        let growths: Vec<f64> = quarters.iter().map(|one| one[3] - one[0]).collect();
        last > first * GROWTH_MIN && is_above_zero(&growths, CHANCE)
    };
    (grows && last > BACKLOG_MIN).then(|| {
        format!("the backlog grows: {first:.0} tasks outstanding in the first quarter, {last:.0} in the last")
    })
}

fn spells(measured: &[Measured]) -> Option<String> {
    let always = |one: &Measured| {
        let (passed_over, at_random) = (mean(&one.backlog.passed_over), one.backlog.at_random?);
        (passed_over > BACKLOG_MIN && passed_over > SPELL_MIN * at_random).then_some(passed_over)
    };
    if let Some(passed_over) = measured.iter().filter_map(always).max_by(f64::total_cmp) {
        return Some(format!(
            "tasks wait while workers are idle: {passed_over:.0} of them, far more than if each were sent to \
             a worker drawn at random"
        ));
    }
    let spell = |one: &Measured| {
        let mut eighths = one.backlog.passed_over;
        eighths.sort_by(f64::total_cmp);
        let (middle, worst) = (f64::midpoint(eighths[3], eighths[4]), eighths[EIGHTHS - 1]);
        (worst > BACKLOG_MIN && worst > SPELL_MIN * middle).then_some((worst, middle))
    };
    let (worst, middle) = measured.iter().filter_map(spell).max_by(|one, other| one.0.total_cmp(&other.0))?;
    Some(format!(
        "tasks wait while workers are idle: {worst:.0} of them in an eighth of a run, {middle:.0} in others"
    ))
}

fn quarters(by_eighth: &[f64; EIGHTHS]) -> [f64; 4] {
    core::array::from_fn(|quarter| f64::midpoint(by_eighth[2 * quarter], by_eighth[2 * quarter + 1]))
}

fn is_above_zero(samples: &[f64], chance: f64) -> bool {
    mean(samples) > student_t(chance, samples.len() - 1) * standard_error(samples)
}

#[cfg(test)]
mod tests {
    use super::super::measured::Backlog;
    use super::*;
    use sluice_events::dice::Dice;
    use sluice_outcome::study::{Counts, Gauges};

    fn measured(sent: u64, replies: u64, by_eighth: [f64; EIGHTHS]) -> Measured {
        Measured {
            classes: Vec::new(),
            counts: Counts { sent, replied: sent, ..Counts::default() },
            gauges: Gauges::default(),
            backlog: Backlog { by_eighth, replies, ..Backlog::default() },
            span_ns: 1_000_000,
            warmup_ns: 0,
            settled: true,
            depths: Vec::new(),
        }
    }

    /// A backlog around `start` that grows by `step` per eighth and varies by a fifth.
    fn noisy(dice: &mut Dice, start: f64, step: f64) -> [f64; EIGHTHS] {
        core::array::from_fn(|n| (start + step * n as f64) * dice.between(800, 1_200) as f64 / 1_000.0)
    }

    #[test]
    fn a_steady_backlog_is_sustained_however_long_it_is() {
        for replications in [1, 3, 5, 10] {
            let mut dice = Dice::new(1, 1);
            let all: Vec<_> = (0..replications)
                .map(|_| measured(1_000_000, 999_990, noisy(&mut dice, 500.0, 0.0)))
                .collect();
            assert_eq!(sustained(&all), Sustained { holds: true, why: String::new() });
        }
    }

    #[test]
    fn a_growing_backlog_is_not_sustained() {
        for replications in [1, 3, 5, 10] {
            let mut dice = Dice::new(1, 1);
            let all: Vec<_> = (0..replications)
                .map(|_| measured(1_000_000, 999_990, noisy(&mut dice, 100.0, 100.0)))
                .collect();
            let Sustained { holds, why } = sustained(&all);
            assert!(!holds && why.starts_with("the backlog grows"), "{why}");
        }
    }

    #[test]
    fn throughput_below_the_offered_is_not_sustained() {
        for replications in [1, 5] {
            let all = vec![measured(1_000_000, 970_000, [1.0; EIGHTHS]); replications];
            assert_eq!(sustained(&all).why, "throughput is 3.00 % below what is offered");
        }
    }

    fn parts(replies: [u64; 8]) -> [RunPart; 8] {
        replies.map(|replies| RunPart { due: 1_000, replies })
    }

    #[test]
    fn a_run_that_answers_half_of_what_is_due_in_each_part_is_not_sustained() {
        let found = sustained_in_parts(&parts([500, 510, 490, 505, 495, 500, 502, 498]));
        let why = "throughput is 50.00 % below what is offered".to_owned();
        assert_eq!(found, Some(Sustained { holds: false, why }));
    }

    #[test]
    fn a_run_that_stands_still_once_is_sustained_also_if_that_is_its_end() {
        for replies in [
            [1_000, 1_010, 400, 1_590, 1_000, 995, 1_005, 1_000],
            [1_000, 1_010, 990, 1_000, 1_000, 995, 1_005, 0],
        ] {
            assert!(sustained_in_parts(&parts(replies)).is_some_and(|found| found.holds), "{replies:?}");
        }
    }

    #[test]
    fn too_few_parts_or_tasks_tell_nothing_against_a_run() {
        assert_eq!(sustained_in_parts(&[RunPart { due: 100, replies: 1 }; 4]), None);
        let few = [RunPart { due: 2, replies: 1 }; 8];
        assert!(sustained_in_parts(&few).is_some_and(|found| found.holds));
        assert!(sustained_in_parts(&[RunPart::default(); 8]).is_some_and(|found| found.holds));
    }

    /// Without a warm-up the replies of each replication are fewer by the tasks in the rack, always by as
    /// many: that is no trend.
    #[test]
    fn a_rack_that_was_empty_at_first_is_not_said_to_fall_behind() {
        let filled = |seed: u64| measured(10_000, 10_000 - 30 - seed, [30.0 + seed as f64; EIGHTHS]);
        let all: Vec<_> = (0..5).map(filled).collect();
        assert_eq!(sustained(&all), Sustained { holds: true, why: String::new() });
        assert_eq!(sustained(&all[..1]), Sustained { holds: true, why: String::new() });
        let grows = |seed: u64| {
            let backlog = core::array::from_fn(|eighth| (400 + seed) as f64 * (eighth as f64 + 0.5) / 8.0);
            measured(10_000, 10_000 - 400 - seed, backlog)
        };
        let all: Vec<_> = (0..5).map(grows).collect();
        assert!(sustained(&all).why.starts_with("throughput is 4.0"), "{}", sustained(&all).why);
    }

    /// With a test as weak as that of the backlog, this would be reported of one full-length point in a
    /// hundred.
    #[test]
    fn a_shortfall_by_chance_is_none() {
        let off = |replies: u64| measured(10_000, replies, [300.0; EIGHTHS]);
        let at_open = |one: Measured| Measured { backlog: Backlog { at_open: 300, ..one.backlog }, ..one };
        // The shortfall is 0.11 % on average, with a Student's t of 5.0 and four degrees of freedom.
        let all: Vec<_> = [9_995, 9_991, 9_985, 9_983, 9_991].map(off).map(at_open).into();
        assert_eq!(sustained(&all), Sustained { holds: true, why: String::new() });
        // The shortfall is 2 %, which chance does not explain.
        let all: Vec<_> = [9_820, 9_800, 9_790, 9_810, 9_785].map(off).map(at_open).into();
        assert!(!sustained(&all).holds);
    }

    #[test]
    fn a_spell_in_which_tasks_wait_beside_idle_workers_is_not_sustained_in_whichever_run_it_is() {
        for replications in [1, 3, 5, 10] {
            let mut all = vec![measured(1_000_000, 1_000_000, [20.0; EIGHTHS]); replications];
            for one in &mut all {
                one.backlog.passed_over = [3.0; EIGHTHS];
            }
            assert!(sustained(&all).holds, "as many always");
            all[replications - 1].backlog.passed_over[5] = 13.0;
            let Sustained { holds, why } = sustained(&all);
            assert!(!holds && why.starts_with("tasks wait while workers are idle: 13 of them"), "{why}");
            all[replications - 1].backlog.passed_over[5] = 9.0;
            assert!(sustained(&all).holds, "few");
            all[0].backlog.passed_over = [100.0; EIGHTHS];
            all[0].backlog.at_random = Some(30.0);
            assert!(sustained(&all).holds, "a policy that spreads badly");
            all[0].backlog.at_random = Some(20.0);
            let Sustained { holds, why } = sustained(&all);
            assert!(!holds && why.starts_with("tasks wait while workers are idle: 100 of them"), "{why}");
        }
    }

    #[test]
    fn one_refused_task_is_enough() {
        let mut one = measured(1_000, 1_000, [1.0; EIGHTHS]);
        one.counts.refused = 1;
        one.counts.unknown = 2;
        assert_eq!(sustained(&[one]).why, "tasks: 1 refused, 2 of unknown outcome");
    }
}
