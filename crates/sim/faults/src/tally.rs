//! How the tasks of fault runs ended, and which shares of them are too many.

use std::fmt;

use sluice_wire::tables::Feed;

use super::kind::RackKind;

/// How all tasks of a run, or of many runs, ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Tasks that clients accepted.
    pub submitted: u64,
    /// Tasks that ended in a reply.
    pub replied: u64,
    /// Tasks that were refused.
    pub refused: u64,
    /// Refused tasks that might have been tried again, but found no room at last because repeats of their
    /// client's tasks had taken some.
    pub crowded_out: u64,
    /// How the runs differ in `crowded_out`.
    pub crowded_scatter: Scatter,
    /// Tasks that ended unknown.
    pub unknown: u64,
    /// How the runs differ in `unknown`.
    pub unknown_scatter: Scatter,
    /// Tasks whose client was restarted before they ended.
    pub abandoned: u64,
    /// How often a task was run by a further worker.
    pub run_again: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { submitted, replied, refused, unknown, abandoned, run_again, .. } = self;
        write!(
            f,
            "{submitted} tasks, {replied} replied, {refused} refused, {unknown} unknown, {abandoned} forgotten with their \
             client; {run_again} were run again by a second worker"
        )
    }
}

impl Tally {
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            submitted: self.submitted + other.submitted,
            replied: self.replied + other.replied,
            refused: self.refused + other.refused,
            crowded_out: self.crowded_out + other.crowded_out,
            crowded_scatter: self.crowded_scatter.plus(other.crowded_scatter),
            unknown: self.unknown + other.unknown,
            unknown_scatter: self.unknown_scatter.plus(other.unknown_scatter),
            abandoned: self.abandoned + other.abandoned,
            run_again: self.run_again + other.run_again,
        }
    }

    /// The tally of one run, whose tasks are counted.
    pub(super) const fn of_run(self) -> Self {
        Self {
            crowded_scatter: Scatter::of_run(self.crowded_out, self.submitted),
            unknown_scatter: Scatter::of_run(self.unknown, self.submitted),
            ..self
        }
    }
}

/// How many per mille of the tasks may end unknown over many seeds. The end of a task is unknowable if no
/// answer could get back. 6.3 were measured, since workers do not hear requests for replies while they
/// serve.
const UNKNOWN_PER_MILLE_MAX: u64 = 7;
/// The limit if replies go through the switch: their way back is two packets long.
const UNKNOWN_BY_TWO_PACKETS_PER_MILLE_MAX: u64 = 8;
/// The limit if not every worker serves every task: more tasks are refused, and a refusal may be lost. 9.6
/// were measured.
const UNKNOWN_WITH_LABELS_PER_MILLE_MAX: u64 = 12;
/// The limit if workers are lanes of servers, which forget in ten times as many seeds. 14.8 were measured.
const UNKNOWN_OF_SERVERS_PER_MILLE_MAX: u64 = 17;

/// So many more if tasks have budgets: a task whose budget is spent is not tried again when an answer is
/// lost. 3 more were measured under Rain, and 5 under Pallas.
const UNKNOWN_FOR_BUDGETS_PER_MILLE: u64 = 6;

/// How many per ten thousand tasks may be refused for lack of room because repeats of their client's tasks
/// had taken some: tasks that waited for longer than their client's patience. Up to 0.2 were measured, and
/// 4.4 to 7 if repeats take no place of their client's share.
const CROWDED_OUT_PER_MYRIAD_MAX: u64 = 2;

impl Tally {
    /// Whether few enough tasks were refused because their client's repeats had taken room.
    #[must_use]
    pub const fn has_room(&self) -> bool {
        !self.crowded_scatter.is_beyond(self.crowded_out, self.submitted, CROWDED_OUT_PER_MYRIAD_MAX)
    }

    /// Whether no more tasks ended unknown than faults explain in such a rack. Meaningful from a thousand
    /// seeds on.
    #[must_use]
    pub fn is_explained(&self, kind: &RackKind) -> bool {
        let program = &kind.program;
        let most = match program.traits().feed {
            _ if kind.has_cores => UNKNOWN_OF_SERVERS_PER_MILLE_MAX,
            Feed::Pushed { reports: true } => UNKNOWN_BY_TWO_PACKETS_PER_MILLE_MAX,
            _ if program.traits().kinds > 1 => UNKNOWN_WITH_LABELS_PER_MILLE_MAX,
            _ => UNKNOWN_PER_MILLE_MAX,
        };
        let most = if kind.has_budgets { most + UNKNOWN_FOR_BUDGETS_PER_MILLE } else { most };
        !self.unknown_scatter.is_beyond(self.unknown, self.submitted, most * 10)
    }
}

/// How runs differ in how many of their tasks count for something: sums over runs, by which the error of
/// the share of such tasks is estimated.
///
/// What counts comes in bursts. One queue that stays full refuses many tasks of its run, and a client that
/// offers many times its share makes a run of many tasks. So the run is what counts as independent, not the
/// task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scatter {
    /// The sum of the squares of the runs' tasks that count.
    counted: u128,
    /// The sum of the products of a run's tasks that count and all its tasks.
    products: u128,
    /// The sum of the squares of the runs' tasks.
    tasks: u128,
}

/// How many standard errors a share must be above its bound to break it.
const SURE_ERRORS: u128 = 3;

impl Scatter {
    const fn of_run(counted: u64, tasks: u64) -> Self {
        let (counted, tasks) = (counted as u128, tasks as u128);
        Self { counted: counted * counted, products: counted * tasks, tasks: tasks * tasks }
    }

    const fn plus(self, other: Self) -> Self {
        Self {
            counted: self.counted + other.counted,
            products: self.products + other.products,
            tasks: self.tasks + other.tasks,
        }
    }

    /// Whether so many counted of all tasks of the runs are surely more than so many per ten thousand: the
    /// sum of what the runs have beyond the bound is more than three times the root of the sum of its
    /// squares. So it takes ten runs at least.
    const fn is_beyond(&self, counted: u64, tasks: u64, per_myriad_max: u64) -> bool {
        let allowed = tasks as u128 * per_myriad_max as u128;
        let Some(beyond) = (counted as u128 * 10_000).checked_sub(allowed) else { return false };
        let bound = per_myriad_max as u128;
        let squares =
            self.counted * 100_000_000 + self.tasks * bound * bound - 20_000 * bound * self.products;
        beyond * beyond > SURE_ERRORS * SURE_ERRORS * squares
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use crate::RackKind;
    use sluice_switch::registry::Choice;

    fn of_runs(runs: impl IntoIterator<Item = (u64, u64)>) -> Tally {
        let run = |(unknown, submitted)| Tally { submitted, unknown, ..Tally::default() }.of_run();
        runs.into_iter().map(run).fold(Tally::default(), Tally::plus)
    }

    fn rain() -> RackKind {
        RackKind::of(Choice::parse("rain:2").expect("a policy"))
    }

    #[test]
    fn a_share_that_every_run_has_beyond_the_bound_breaks_it() {
        assert!(of_runs([(7, 1_000); 100]).is_explained(&rain()));
        assert!(!of_runs([(8, 1_000); 100]).is_explained(&rain()));
        assert!(of_runs([(8, 1_000); 9]).is_explained(&rain()), "nine runs are too few to be sure");
    }

    #[test]
    fn one_run_with_many_does_not_break_the_bound_and_many_such_runs_do() {
        let burst = |runs: u64, every: u64| {
            of_runs((0..runs).map(|run| if run % every == 0 { (200, 1_000) } else { (4, 1_000) }))
        };
        let (few, many) = (burst(200, 50), burst(20_000, 50));
        assert!(few.unknown * 1_000 > few.submitted * 7, "the share is beyond the bound");
        assert!(few.is_explained(&rain()), "and it is four runs that make it so");
        assert!(!many.is_explained(&rain()), "four hundred such runs are no accident");
    }
}
