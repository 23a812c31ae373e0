//! The sizes of flows: published distributions, or a user's own.
//!
//! The published ones are the tables that HPCC's authors put beside their simulator (`traffic_gen/` of
//! `alibaba-edu/High-Precision-Congestion-Control`); ConWeave's and others' runs use them too. Between two
//! lines a size is drawn uniformly.

use sluice_events::dice::Dice;

use crate::error::FabricError;

/// A distribution of flow sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSizes {
    /// Sizes in bytes, each with the share of flows that are no larger. Both rise; the share goes from 0 to
    /// 1.
    points: Vec<(f64, f64)>,
}

/// Web search (DCTCP, Alizadeh et al., SIGCOMM 2010): `WebSearch_distribution.txt`.
const WEB_SEARCH: &str = "0 0\n10000 15\n20000 20\n30000 30\n50000 40\n80000 53\n200000 60\n1000000 70\n\
    2000000 80\n5000000 90\n10000000 97\n30000000 100\n";

/// Meta's Hadoop clusters (Roy et al., SIGCOMM 2015): `FbHdp_distribution.txt`.
const HADOOP: &str = "0 0\n100 1\n200 2\n300 5\n350 15\n400 20\n500 30\n600 40\n700 50\n1000 60\n2000 67\n\
    7000 70\n30000 72\n50000 82\n80000 87\n120000 90\n300000 95\n1000000 97.5\n2000000 99\n10000000 100\n";

/// A distributed storage system (Alibaba, 2019): `AliStorage2019.txt`.
const STORAGE: &str = "0 0\n4000 22.93\n8000 69.21\n16000 80.61\n32000 90.47\n64000 93.53\n128000 96.77\n\
    256000 97.53\n2000000 100\n";

/// The largest flow, in bytes: a terabyte.
const BYTES_MAX: f64 = 1e12;
/// The most parts in which a table is reported; neighbours of a longer table are joined.
const PARTS_MAX: usize = 64;

impl FlowSizes {
    /// Web search: 1.7 MB on average, half of the flows below 80 KB.
    pub fn web_search() -> Self {
        Self::parse(WEB_SEARCH).expect("it is a distribution")
    }

    /// Meta's Hadoop: 120 KB on average, half of the flows in one frame.
    pub fn hadoop() -> Self {
        Self::parse(HADOOP).expect("it is a distribution")
    }

    /// Storage: 41 KB on average, two thirds of the flows below 8 KB.
    pub fn storage() -> Self {
        Self::parse(STORAGE).expect("it is a distribution")
    }

    /// Reads lines of a size in bytes and the percentage of flows that are no larger, as the published
    /// files have them. Empty lines, and lines that begin with `#`, are skipped.
    pub fn parse(text: &str) -> Result<Self, FabricError> {
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut end = 1;
        for (line, row) in text.lines().enumerate().map(|(at, row)| (at + 1, row.trim())) {
            if row.is_empty() || row.starts_with('#') {
                continue;
            }
            let wrong = |why: &str| FabricError::Cdf { line, why: why.into() };
            let (bytes, percent) = columns(row).map_err(wrong)?;
            let share = percent / 100.0;
            if !(0.0..=BYTES_MAX).contains(&bytes) || !(0.0..=1.0).contains(&share) {
                return Err(wrong("give a size of at most 10^12 bytes and a percentage of 0 to 100"));
            }
            match points.last() {
                None if share > 0.0 => points.push((bytes, 0.0)),
                Some((before, shares)) if bytes < *before || share < *shares => {
                    return Err(wrong("a size and a percentage are at least those of the line before"));
                }
                _ => {}
            }
            points.push((bytes, share));
            end = line;
        }
        match points.last() {
            Some((bytes, share)) if *share >= 1.0 && *bytes > 0.0 => Ok(Self { points }),
            last => Err(FabricError::Cdf { line: end, why: unfinished(last.copied()) }),
        }
    }

    /// All flows of one size, at least one byte.
    pub fn constant(bytes: u32) -> Self {
        let bytes = f64::from(bytes.max(1));
        Self { points: vec![(bytes, 0.0), (bytes, 1.0)] }
    }

    /// The average size, in bytes.
    pub fn mean(&self) -> f64 {
        let between = |pair: &[(f64, f64)]| f64::midpoint(pair[0].0, pair[1].0) * (pair[1].1 - pair[0].1);
        self.points.windows(2).map(between).sum()
    }

    /// The sizes of its table, which rise.
    pub fn steps(&self) -> impl Iterator<Item = u64> {
        self.points.iter().map(|(bytes, _)| *bytes as u64).filter(|bytes| *bytes > 0)
    }

    /// The parts of its table: for each the largest size, the share of flows, and their average size. Sizes
    /// rise from part to part. In a long table some neighbours are joined, into parts with about equal
    /// shares of flows.
    pub fn parts(&self) -> Vec<(u64, f64, f64)> {
        let part = |pair: &[(f64, f64)]| {
            let [(low, from), (high, to)] = [pair[0], pair[1]];
            (high.max(1.0) as u64, to - from, f64::midpoint(low, high))
        };
        let mut parts: Vec<(u64, f64, f64)> = Vec::new();
        for one in self.points.windows(2).map(part).filter(|(_, share, _)| *share > 0.0) {
            match parts.last_mut() {
                // A size at which the table has a step.
                Some(last) if last.0 == one.0 => *last = joined(*last, one),
                _ => parts.push(one),
            }
        }
        if parts.len() <= PARTS_MAX { parts } else { fewer(parts) }
    }

    /// Draws a size: at least one byte.
    pub fn draw(&self, dice: &mut Dice) -> u64 {
        let share = dice.unit();
        let above = self.points.partition_point(|(_, up_to)| *up_to < share).max(1);
        let ((low, from), (high, to)) =
            (self.points[above - 1], self.points[above.min(self.points.len() - 1)]);
        let part = if to > from { (share - from) / (to - from) } else { 1.0 };
        (low + (high - low) * part).max(1.0) as u64
    }
}

/// A line's size and percentage.
fn columns(row: &str) -> Result<(f64, f64), &'static str> {
    let cells: Vec<&str> = row.split([',', ';', ' ', '\t']).filter(|cell| !cell.is_empty()).collect();
    let read = match cells[..] {
        [bytes, percent] => bytes.parse().ok().zip(percent.parse().ok()),
        // A third column: the formats of ns-2 and pFabric have an unused column in between.
        [_, _, share] if share.parse::<f64>().is_ok() => {
            return Err(
                "three columns: leave a size in bytes and a percentage of 0 to 100, not a share of 1",
            );
        }
        _ => None,
    };
    read.ok_or("give a size in bytes and a percentage")
}

/// The message for a table that ends too early, by its last line.
fn unfinished(last: Option<(f64, f64)>) -> String {
    match last {
        None => "there are none: give lines of a size in bytes and a percentage, up to 100".into(),
        Some((_, share)) if share >= 1.0 => "all flows have 0 bytes: give sizes above 0".into(),
        Some((_, share)) if (0.009_99..=0.010_01).contains(&share) => {
            "the percentage rises to 1, and not to 100: give percentages, not shares of 1".into()
        }
        Some((_, share)) => format!("the percentage rises to {}, and not to 100", share * 100.0),
    }
}

/// Joins two neighbouring parts.
fn joined(one: (u64, f64, f64), other: (u64, f64, f64)) -> (u64, f64, f64) {
    let share = one.1 + other.1;
    (other.0, share, (one.2 * one.1 + other.2 * other.1) / share)
}

/// Joins parts until there are few enough, with about equal shares of flows.
fn fewer(parts: Vec<(u64, f64, f64)>) -> Vec<(u64, f64, f64)> {
    let (mut told, mut up_to) = (Vec::<(u64, f64, f64)>::new(), 0.0);
    for part in parts {
        let is_next = told.is_empty() || up_to * PARTS_MAX as f64 >= told.len() as f64;
        up_to += part.1;
        match told.last_mut() {
            Some(last) if !is_next => *last = joined(*last, part),
            _ => told.push(part),
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_mean_and_the_shares_of_their_table() {
        for (sizes, mean, at, share) in [
            (FlowSizes::web_search(), 1_711_250.0, 80_000, 0.53),
            (FlowSizes::hadoop(), 120_420.75, 1_000, 0.60),
            (FlowSizes::storage(), 40_869.8, 8_000, 0.692_1),
        ] {
            assert!((sizes.mean() / mean - 1.0).abs() < 1e-6, "{} and not {mean}", sizes.mean());
            let (mut dice, count) = (Dice::new(1, 1), 400_000);
            let (mut sum, mut below) = (0.0, 0.0);
            for _ in 0..count {
                let bytes = sizes.draw(&mut dice);
                sum += bytes as f64 / f64::from(count);
                below += f64::from(u8::from(bytes <= at)) / f64::from(count);
            }
            assert!((sum / mean - 1.0).abs() < 0.02, "{sum} on average, and not {mean}");
            assert!((below - share).abs() < 0.003, "{below} up to {at}, and not {share}");
        }
    }

    #[test]
    fn what_is_no_distribution_is_refused_in_one_line() {
        for (text, line, says) in [
            ("", 1, "there are none"),
            ("0 0\n0 50\n0 100\n", 3, "all flows have 0 bytes"),
            ("0 0\n100 0.5\n200 1\n", 3, "not shares of 1"),
            ("6 1 0.15\n10 1 1\n", 1, "three columns"),
            ("0 0\n100 99\n", 2, "rises to 99, and not to 100"),
            ("0 0\n100 60\n50 100\n", 3, "at least those of the line before"),
            ("0 0\n100 60\n200 50\n", 3, "at least those of the line before"),
            ("0 0\n100 120\n", 2, "percentage of 0 to 100"),
            ("0 0\n# sizes\n100\n", 3, "give a size in bytes and a percentage"),
            ("0 0\n-5 100\n", 2, "at most 10^12 bytes"),
            ("0 100\n", 1, "all flows have 0 bytes"),
        ] {
            let error = FlowSizes::parse(text).expect_err(text).to_string();
            assert!(error.starts_with(&format!("line {line} of the sizes: ")), "{error}");
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_vertical_step_is_one_part_and_sizes_rise_from_part_to_part() {
        let sizes = FlowSizes::parse("1460 0\n1460 50\n100000 80\n100000 100\n").unwrap();
        let parts = sizes.parts();
        assert_eq!(parts.iter().map(|part| part.0).collect::<Vec<_>>(), [1_460, 100_000]);
        assert!((parts[1].1 - 0.5).abs() < 1e-9 && (parts[0].2 - 1_460.0).abs() < 1e-9, "{parts:?}");
        let mean: f64 = parts.iter().map(|(_, share, mean)| share * mean).sum();
        assert!((mean / sizes.mean() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_table_of_many_steps_is_told_in_few_parts_and_drawn_from_whole() {
        // 842 lines are as many as CONGA's data-mining table has; the first half of the flows has one size.
        for steps in [65_u32, 257, 842, 20_000] {
            let line = |at: u32| {
                let percent = 100.0 * (0.5 + 0.5 * f64::from(at) / f64::from(steps));
                format!("{}\t{percent}\r\n", 100 + at)
            };
            let text: String = std::iter::once("100 0\n".to_owned()).chain((0..=steps).map(line)).collect();
            let sizes = FlowSizes::parse(&text).unwrap();
            let parts = sizes.parts();
            assert!(parts.len() > 30 && parts.len() <= PARTS_MAX, "{steps}: {}", parts.len());
            assert!(parts.windows(2).all(|pair| pair[0].0 < pair[1].0), "{parts:?}");
            let share: f64 = parts.iter().map(|part| part.1).sum();
            let mean: f64 = parts.iter().map(|(_, share, mean)| share * mean).sum();
            assert!((share - 1.0).abs() < 1e-9 && (mean / sizes.mean() - 1.0).abs() < 1e-9);
            assert_eq!(sizes.steps().count(), steps as usize + 2);
        }
    }
}
