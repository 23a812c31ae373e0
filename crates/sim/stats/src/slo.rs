//! The highest rate that keeps a limit.

use sluice_outcome::study::{Estimate, Method};

use super::summary::Summary;

/// The settings of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SloSearch {
    /// The lowest rate tried.
    pub low_per_s: f64,
    /// The highest rate tried.
    pub high_per_s: f64,
    pub limit: f64,
    /// The search ends when the bracket is narrower than this share of its rate, such as 0.005.
    pub tolerance: f64,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SloFound {
    /// The limit is kept up to this rate. The interval holds the rates at which chance decides.
    Rate(Estimate),
    /// Even the lowest rate breaks the limit.
    Never,
    /// Even the highest rate keeps the limit.
    Always,
}

/// Bisects for the rate at which `number` reaches the limit; a point that is not sustained breaks any
/// limit.
///
/// `measure` should use the same seeds for every rate. Then neighbouring rates get the same tasks, closer
/// together, and the number rises smoothly with the rate. The same measurements are used three times: for
/// the number, and for both ends of its interval, whose crossings are the ends of the rate's interval.
pub fn throughput_at_slo<E>(
    search: &SloSearch,
    mut number: impl FnMut(&Summary) -> Estimate,
    mut measure: impl FnMut(f64) -> Result<Summary, E>,
) -> Result<SloFound, E> {
    let mut known: Vec<TriedRate> = Vec::new();
    let mut look = |rate_per_s: f64| -> Result<Estimate, E> {
        if let Some(tried) = known.iter().find(|tried| tried.rate_per_s.total_cmp(&rate_per_s).is_eq()) {
            return Ok(tried.number);
        }
        let summary = measure(rate_per_s)?;
        let number = if summary.sustained.holds { number(&summary) } else { BROKEN };
        known.push(TriedRate { rate_per_s, number });
        Ok(number)
    };
    if look(search.low_per_s)?.value > search.limit {
        return Ok(SloFound::Never);
    }
    if look(search.high_per_s)?.value <= search.limit {
        return Ok(SloFound::Always);
    }
    let value = bisect(search, &mut look, |number| number.value)?;
    let low = bisect(search, &mut look, |number| number.most())?;
    let high = bisect(search, &mut look, |number| number.low)?;
    Ok(SloFound::Rate(Estimate::between(value, low.min(value), high.max(value), Method::Bracket)))
}

/// A number that breaks any limit.
const BROKEN: Estimate = Estimate::exact(f64::INFINITY);

struct TriedRate {
    rate_per_s: f64,
    number: Estimate,
}

/// The highest rate that is known to keep the limit, by halving. Every search halves the same bracket, and
/// so reuses the rates that were measured.
fn bisect<E>(
    search: &SloSearch,
    look: &mut impl FnMut(f64) -> Result<Estimate, E>,
    end: impl Fn(Estimate) -> f64,
) -> Result<f64, E> {
    let (mut low, mut high) = (search.low_per_s, search.high_per_s);
    while high - low > search.tolerance * low {
        let middle = f64::midpoint(low, high);
        if end(look(middle)?) <= search.limit {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use sluice_outcome::study::Sustained;

    use super::super::summary::summarize;
    use super::*;

    const SEARCH: SloSearch =
        SloSearch { low_per_s: 100.0, high_per_s: 1_000.0, limit: 500.0, tolerance: 0.005 };

    /// A point whose mean is its rate, ± 10 %, and which is sustained up to `most`.
    fn point(rate_per_s: f64, most: f64) -> Summary {
        let mut summary = summarize(&[]);
        summary.overall.latency_ns.mean =
            Estimate::between(rate_per_s, rate_per_s * 0.9, rate_per_s * 1.1, Method::Replications);
        summary.sustained = Sustained { holds: rate_per_s <= most, why: String::new() };
        summary
    }

    fn find(search: &SloSearch, most: f64) -> (SloFound, u32) {
        let mut measured = 0;
        let found = throughput_at_slo(
            search,
            |summary| summary.overall.latency_ns.mean,
            |rate| {
                measured += 1;
                Ok::<_, Infallible>(point(rate, most))
            },
        );
        (found.unwrap_or_else(|never| match never {}), measured)
    }

    #[test]
    fn the_rate_is_found_with_the_interval_in_which_one_cannot_tell() {
        let (SloFound::Rate(rate), measured) = find(&SEARCH, 1e9) else { panic!("there is one") };
        assert!((rate.value - 500.0).abs() < 3.0, "{rate:?}");
        assert!((rate.low - 500.0 / 1.1).abs() < 3.0, "{rate:?}");
        assert!((rate.high - 500.0 / 0.9).abs() < 3.0, "{rate:?}");
        assert!(measured <= 25, "{measured}");
    }

    #[test]
    fn a_point_that_is_not_sustained_breaks_the_limit() {
        let (SloFound::Rate(rate), _) = find(&SEARCH, 300.0) else { panic!("there is one") };
        assert!((rate.value - 300.0).abs() < 3.0, "{rate:?}");
    }

    #[test]
    fn limits_outside_the_range_are_told_apart() {
        assert_eq!(find(&SloSearch { limit: 50.0, ..SEARCH }, 1e9).0, SloFound::Never);
        assert_eq!(find(&SloSearch { limit: 5_000.0, ..SEARCH }, 1e9).0, SloFound::Always);
    }
}
