//! The simulator's prediction of depths over time: the sequences of many seeds, and the band that contains
//! 95 % of the whole sequences.

use serde::Serialize;
use sluice_outcome::study::SliceDepths;

/// An interval of the agents in the emulated rack, in nanoseconds.
pub(super) const INTERVAL_NS: u64 = 10_000_000;

/// The share of sequences that lie inside the band in every interval.
const HELD: f64 = 0.95;
/// The slice that is compared.
const SLICE: u32 = 0;
/// The numbers per step: depth and moved workers.
const COLUMNS: usize = 2;

/// For each interval: a slice's mean depth, and how many workers had been moved by then.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Sequence(pub(crate) Vec<Step>);

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Step {
    pub(crate) depth_mean: f64,
    pub(crate) borrowed: u32,
}

impl Sequence {
    /// The sequence of intervals 1 to `intervals`; a missing interval repeats the one before.
    pub(crate) fn of(depths: &[SliceDepths], interval_ns: u64, intervals: usize) -> Self {
        let step = |of: &SliceDepths| Step { depth_mean: of.depth_mean, borrowed: of.moves };
        Self(in_intervals(depths, interval_ns, intervals, Step { depth_mean: 0.0, borrowed: 0 }, step))
    }

    /// Depth and borrowed workers of the first interval, then of the second, and so on.
    fn row(&self) -> Vec<f64> {
        self.0.iter().flat_map(|step| [step.depth_mean, step.borrowed.into()]).collect()
    }

    /// The sequence as text with rounded depths; runs of equal steps are joined.
    pub(crate) fn words(&self) -> String {
        let runs = |of: fn(&Step) -> u32| {
            let mut runs: Vec<(u32, usize)> = Vec::new();
            for value in self.0.iter().map(of) {
                match runs.last_mut() {
                    Some((known, times)) if *known == value => *times += 1,
                    _ => runs.push((value, 1)),
                }
            }
            let word = |(value, times): &(u32, usize)| {
                if *times == 1 { value.to_string() } else { format!("{value}×{times}") }
            };
            runs.iter().map(word).collect::<Vec<_>>().join(" ")
        };
        format!(
            "depth {}, borrowed {}",
            runs(|step| step.depth_mean.round() as u32),
            runs(|step| step.borrowed)
        )
    }
}

/// A slice's value in each of the intervals 1 to `intervals`; a missing interval repeats the one before.
pub(super) fn in_intervals<T: Copy>(
    depths: &[SliceDepths],
    interval_ns: u64,
    intervals: usize,
    first: T,
    of: impl Fn(&SliceDepths) -> T,
) -> Vec<T> {
    let mut last = first;
    let mut found = Vec::with_capacity(intervals);
    for number in 1..=intervals as u64 {
        let is_it = |of: &&SliceDepths| {
            of.slice == SLICE && of.at_ns.abs_diff(number * interval_ns) < interval_ns / 2
        };
        last = depths.iter().find(is_it).map_or(last, &of);
        found.push(last);
    }
    found
}

/// The lower and upper bound in each interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Band {
    pub(crate) least: Vec<Step>,
    pub(crate) most: Vec<Step>,
    /// How many of the sequences lie inside in every interval.
    pub(crate) inside: usize,
    /// How many sequences lie inside the band of all others. This predicts the share of unseen sequences
    /// that lie inside.
    pub(crate) unseen_inside: usize,
    pub(crate) of: usize,
}

impl Band {
    /// The band of depths and of borrowed workers.
    pub(crate) fn of(sequences: &[Sequence]) -> Self {
        let rows: Vec<Vec<f64>> = sequences.iter().map(Sequence::row).collect();
        let Range { least, most, inside, unseen_inside } = Range::of(&rows);
        let steps = |row: &[f64]| {
            let step = |pair: &[f64]| Step { depth_mean: pair[0], borrowed: pair[1] as u32 };
            row.chunks_exact(COLUMNS).map(step).collect()
        };
        Self { least: steps(&least), most: steps(&most), inside, unseen_inside, of: sequences.len() }
    }

    /// The first interval, from 1, in which a sequence lies outside the band.
    pub(crate) fn outside(&self, sequence: &Sequence) -> Option<usize> {
        let row = |steps: &[Step]| Sequence(steps.to_vec()).row();
        let Self { inside, unseen_inside, .. } = *self;
        let range = Range { least: row(&self.least), most: row(&self.most), inside, unseen_inside };
        range.outside(&sequence.row()).map(|column| column / COLUMNS + 1)
    }

    /// Says whether a sequence lies inside the band, and if not, where it leaves the band and by how much.
    pub(super) fn verdict(&self, sequence: &Sequence) -> String {
        let Some(at) = self.outside(sequence) else { return "inside".to_owned() };
        let [step, least, most] = [&sequence.0, &self.least, &self.most].map(|steps| steps[at - 1]);
        format!(
            "outside from interval {at} on, with depth {:.2} and {} borrowed where the band is {:.2} to {:.2} and {} to {}",
            step.depth_mean, step.borrowed, least.depth_mean, most.depth_mean, least.borrowed, most.borrowed
        )
    }
}

/// The lower and upper bound of each column of many rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) least: Vec<f64>,
    pub(super) most: Vec<f64>,
    /// How many of the rows lie inside in every column.
    pub(super) inside: usize,
    /// How many rows lie inside the range of all others.
    pub(super) unseen_inside: usize,
}

impl Range {
    /// The narrowest range that contains 95 % of the whole rows: the same number of values is left out at
    /// each end of each column.
    pub(super) fn of(rows: &[Vec<f64>]) -> Self {
        let columns = rows.first().map_or(0, Vec::len);
        let column = |place: usize| {
            let mut values: Vec<f64> = rows.iter().map(|row| row[place]).collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let columns: Vec<Vec<f64>> = (0..columns).map(column).collect();
        let mut range = Self::without(rows, &columns, 0);
        for left_out in 1..rows.len() / 2 {
            let narrower = Self::without(rows, &columns, left_out);
            if (narrower.inside as f64) < HELD * rows.len() as f64 {
                break;
            }
            range = narrower;
        }
        range
    }

    fn without(rows: &[Vec<f64>], columns: &[Vec<f64>], left_out: usize) -> Self {
        let least = columns.iter().map(|values| values[left_out]).collect();
        let most = columns.iter().map(|values| values[values.len() - 1 - left_out]).collect();
        let mut range = Self { least, most, inside: 0, unseen_inside: 0 };
        range.inside = rows.iter().filter(|row| range.outside(row).is_none()).count();
        range.unseen_inside = rows.iter().filter(|row| is_in_range_of_others(row, columns, left_out)).count();
        range
    }

    /// The first column in which a row lies outside the range.
    pub(super) fn outside(&self, row: &[f64]) -> Option<usize> {
        // Tolerates rounding: the rows are means, and their sums may be added in another order.
        let rounding = 1e-9;
        let bounds = self.least.iter().zip(&self.most);
        let is_outside = |((least, most), value): ((&f64, &f64), &f64)| {
            *value < least - rounding || *value > most + rounding
        };
        bounds.zip(row).position(is_outside)
    }
}

/// Whether a row lies inside the range of the other rows. `columns` are sorted, and include the row.
fn is_in_range_of_others(row: &[f64], columns: &[Vec<f64>], left_out: usize) -> bool {
    row.iter().zip(columns).all(|(value, values)| {
        let last = values.len() - 1;
        if left_out >= last {
            return false;
        }
        let is_low = *value <= values[left_out];
        let is_high = *value >= values[last - left_out];
        let least = values[left_out + usize::from(is_low)];
        let most = values[last - left_out - usize::from(is_high)];
        (least..=most).contains(value)
    })
}

/// The sequences that occur, and how often; the most frequent first.
pub(crate) fn shares(sequences: &[Sequence]) -> Vec<(String, usize)> {
    let mut shares: Vec<(String, usize)> = Vec::new();
    for words in sequences.iter().map(Sequence::words) {
        match shares.iter_mut().find(|(known, _)| *known == words) {
            Some((_, times)) => *times += 1,
            None => shares.push((words, 1)),
        }
    }
    shares.sort_by(|(a, often), (b, rarely)| rarely.cmp(often).then_with(|| a.cmp(b)));
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(depths: &[f64], borrowed: &[u32]) -> Sequence {
        let steps = depths.iter().zip(borrowed);
        Sequence(
            steps
                .map(|(depth_mean, borrowed)| Step { depth_mean: *depth_mean, borrowed: *borrowed })
                .collect(),
        )
    }

    #[test]
    fn the_band_holds_nineteen_of_twenty_sequences_whole() {
        let mut sequences: Vec<Sequence> =
            (0..100).map(|of| sequence(&[1.0 + f64::from(of) / 100.0], &[0])).collect();
        let band = Band::of(&sequences);
        assert_eq!((band.inside, band.unseen_inside, band.of), (96, 94, 100));
        assert!(
            (band.least[0].depth_mean - 1.02).abs() < 1e-9 && (band.most[0].depth_mean - 1.97).abs() < 1e-9
        );
        sequences[50] = sequence(&[9.0], &[0]);
        assert_eq!(Band::of(&sequences).outside(&sequence(&[9.0], &[0])), Some(1));
    }

    #[test]
    fn sequences_that_a_band_was_not_made_of_lie_inside_less_often() {
        // Each sequence has the smallest or largest value of some interval.
        let of = |at: usize| (0..10).map(move |i| if i == at / 2 { 2.0 + (at % 2) as f64 } else { 2.5 });
        let few: Vec<Sequence> = (0..20).map(|at| sequence(&of(at).collect::<Vec<_>>(), &[0; 10])).collect();
        let band = Band::of(&few);
        assert_eq!((band.inside, band.unseen_inside), (20, 0));
    }

    #[test]
    fn a_sequence_is_outside_if_it_is_in_one_interval() {
        let sequences = vec![sequence(&[2.0, 1.0], &[0, 1]); 20];
        let band = Band::of(&sequences);
        assert_eq!(band.outside(&sequence(&[2.0, 1.0], &[0, 1])), None);
        assert_eq!(band.outside(&sequence(&[2.0, 1.0], &[0, 2])), Some(2));
        assert_eq!(band.outside(&sequence(&[2.5, 1.0], &[0, 1])), Some(1));
        let verdict = band.verdict(&sequence(&[2.125, 1.0], &[0, 1]));
        assert!(
            verdict.starts_with("outside from interval 1 on, with depth 2.12 and 0 borrowed"),
            "{verdict}"
        );
    }

    #[test]
    fn equal_sequences_are_counted_in_words() {
        let sequences = [sequence(&[2.0, 1.9, 1.2], &[0, 0, 1]), sequence(&[2.0, 2.1, 0.9], &[0, 0, 1])];
        assert_eq!(shares(&sequences), [("depth 2×2 1, borrowed 0×2 1".to_owned(), 2)]);
    }

    #[test]
    fn an_interval_that_nobody_told_is_as_the_one_before() {
        let depths = |at_ns, depth_mean| SliceDepths {
            at_ns,
            slice: 0,
            workers: 1,
            depth_mean,
            depth_min: 1,
            depth_max: 1,
            deeper: 0,
            shallower: 0,
            overloaded: 0,
            tasks: 0,
            slowdown_p99: 0.0,
            response_p99_ns: 0.0,
            idle_workers: 0.0,
            moves: 3,
        };
        let found = Sequence::of(&[depths(9, 2.0), depths(31, 1.0)], 10, 3);
        assert_eq!(found.0.iter().map(|step| step.depth_mean).collect::<Vec<_>>(), [2.0, 2.0, 1.0]);
    }
}
