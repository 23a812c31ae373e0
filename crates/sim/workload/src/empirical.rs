//! A measured distribution: points of its cumulative distribution, with straight lines between them.
//!
//! The share of the first point falls on its value alone. A file holds one point per line,
//! `MICROSECONDS,CUMULATIVE`, with `#` before remarks.

use std::path::Path;

use sluice_events::dice::Dice;
use sluice_wire::Nanos;

use super::text;
use super::{SERVICE_MAX, WorkloadError};
use crate::files;

/// Points of a cumulative distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Empirical {
    points: Vec<Point>,
    /// For each of [`GUIDES`] equal parts of 0..1 the first point to which a share in the part may belong.
    guide: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    value_ns: f64,
    up_to: f64,
}

const GUIDES: usize = 256;

impl Empirical {
    /// Reads a file of `MICROSECONDS,CUMULATIVE` lines; both columns must rise, and the last share must be
    /// 1.
    pub fn read(path: &Path) -> Result<Self, WorkloadError> {
        let file = |source| WorkloadError::File { path: path.to_owned(), source };
        let text = files::read(path).map_err(file)?;
        let mut points = Vec::new();
        let mut last_line = 1;
        for (i, line) in text.lines().enumerate() {
            last_line = i + 1;
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            let point = point(line, points.last().copied()).map_err(|(column, why)| {
                WorkloadError::Content { path: path.to_owned(), line: i + 1, column, why }
            })?;
            points.push(point);
        }
        let reached = points.last().map_or(0.0, |point| point.1);
        if reached < 1.0 {
            let why = format!(
                "the cumulative distribution ends at {reached}, not at 1: add the line of the largest value"
            );
            return Err(WorkloadError::Content { path: path.to_owned(), line: last_line, column: 1, why });
        }
        Ok(Self::of_points(points))
    }

    /// From points in order of both columns, the last with share 1.
    pub(super) fn of_points(points: impl IntoIterator<Item = (Nanos, f64)>) -> Self {
        let points = points.into_iter().map(|(value, up_to)| Point { value_ns: value.0 as f64, up_to });
        let points: Vec<Point> = points.collect();
        let first = |part| points.partition_point(|point| point.up_to < part as f64 / GUIDES as f64) as u32;
        let guide = (0..=GUIDES).map(first).collect();
        Self { points, guide }
    }

    /// From `values`, all equally likely.
    pub(super) fn of_values(mut values: Vec<Nanos>) -> Self {
        values.sort_unstable();
        let count = values.len() as f64;
        let mut points: Vec<(Nanos, f64)> = Vec::new();
        for (i, value) in values.iter().enumerate() {
            let (before, up_to) = (i as f64 / count, (i + 1) as f64 / count);
            match points.last_mut() {
                Some(last) if last.0 == *value => last.1 = up_to,
                Some(_) => points.extend([(*value, before), (*value, up_to)]),
                None => points.push((*value, up_to)),
            }
        }
        Self::of_points(points)
    }

    pub(super) fn draw_ns(&self, dice: &mut Dice) -> f64 {
        self.quantile_ns(dice.unit())
    }

    /// The smallest value that this share of the distribution does not exceed.
    pub fn quantile_ns(&self, share: f64) -> f64 {
        let part = ((share * GUIDES as f64) as usize).min(GUIDES - 1);
        let (from, to) = (self.guide[part] as usize, self.guide[part + 1] as usize + 1);
        let range = &self.points[from..to.min(self.points.len())];
        let at = (from + range.partition_point(|point| point.up_to < share)).min(self.points.len() - 1);
        let high = self.points[at];
        let Some(low) = at.checked_sub(1).map(|at| self.points[at]) else { return high.value_ns };
        let along = (share - low.up_to) / (high.up_to - low.up_to);
        low.value_ns + along.clamp(0.0, 1.0) * (high.value_ns - low.value_ns)
    }

    /// The mean, and the mean of the squares.
    pub(super) fn moments(&self) -> (f64, f64) {
        let first = self.points[0];
        let atom = (first.up_to * first.value_ns, first.up_to * first.value_ns * first.value_ns);
        self.points.windows(2).fold(atom, |(mean, square), two| {
            let (a, b, share) = (two[0].value_ns, two[1].value_ns, two[1].up_to - two[0].up_to);
            (mean + share * (a + b) / 2.0, square + share * (a * a + a * b + b * b) / 3.0)
        })
    }
}

/// Reads one line; an error comes with its column.
fn point(line: &str, last: Option<(Nanos, f64)>) -> Result<(Nanos, f64), (usize, String)> {
    let [value, cumulative] = text::cells(line)
        .try_into()
        .map_err(|_| (1, format!("`{line}` is not a value and a share: write MICROSECONDS,CUMULATIVE")))?;
    let ns = text::micros(value.text).map_err(|why| (value.column, why))?;
    if ns == Nanos(0) || ns > SERVICE_MAX {
        let most = text::show_micros(SERVICE_MAX);
        return Err((value.column, format!("{} is not from 0.001 to {most} microseconds", value.text)));
    }
    let up_to = text::share(cumulative.text).map_err(|why| (cumulative.column, why))?;
    if last.is_some_and(|(last, _)| last >= ns) {
        return Err((value.column, format!("the value {} does not grow: sort the lines", value.text)));
    }
    if last.is_some_and(|(_, last)| last >= up_to) {
        let why = format!("the cumulative share {} does not grow from line to line", cumulative.text);
        return Err((cumulative.column, why));
    }
    Ok((ns, up_to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_keep_their_weight() {
        let drawn = Empirical::of_values([5, 7, 5, 9].map(Nanos).to_vec());
        let of = |share| drawn.quantile_ns(share) as u64;
        assert_eq!([of(0.1), of(0.5), of(0.51), of(0.75), of(0.76), of(1.0)], [5, 5, 7, 7, 9, 9]);
        assert_eq!(drawn.moments(), (6.5, (25.0 + 49.0 + 25.0 + 81.0) / 4.0));
    }

    #[test]
    fn quantiles_lie_on_straight_lines_between_the_points() {
        let drawn = Empirical::of_points([(Nanos(100), 0.5), (Nanos(300), 0.75), (Nanos(1_000), 1.0)]);
        let of = |share| drawn.quantile_ns(share) as u64;
        assert_eq!([of(0.001), of(0.5), of(0.625), of(0.75), of(1.0)], [100, 100, 200, 300, 1_000]);
    }
}
