//! The horizontal axis of a picture: the offered rate, or percentiles.

use sluice_outcome::study::{Part, Unit};

use super::axis::{Axis, label};
use crate::show::{self, DisplayScale};

/// The percentiles that a study keeps: the part, the share of tasks below it, and its name on the axis.
pub(crate) const PERCENTILES: [(Part, f64, &str); 5] = [
    (Part::P50, 0.5, "50 %"),
    (Part::P90, 0.9, "90 %"),
    (Part::P95, 0.95, "95 %"),
    (Part::P99, 0.99, "99 %"),
    (Part::P999, 0.999, "99.9 %"),
];

/// What a horizontal axis is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Across {
    /// Tasks offered per second. At the capacity all workers are busy all the time.
    Rate { capacity_per_s: f64 },
    /// Percentiles, each at 1 over the share of tasks above it: the rarer, the farther to the right.
    Percentile,
}

impl Across {
    /// Where a percentile stands.
    pub(crate) fn of_share_below(share: f64) -> f64 {
        1.0 / (1.0 - share)
    }

    pub(crate) const fn capacity_per_s(self) -> Option<f64> {
        match self {
            Self::Rate { capacity_per_s } => Some(capacity_per_s),
            Self::Percentile => None,
        }
    }

    /// The axis in words.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rate { .. } => "offered rate",
            Self::Percentile => "share of tasks that are no slower",
        }
    }

    /// The axis' label, with its unit.
    pub(crate) fn title(self) -> String {
        match self {
            Self::Rate { capacity_per_s } => {
                format!("{}, {}", self.name(), DisplayScale::suiting(capacity_per_s, Unit::PerS).name)
            }
            Self::Percentile => self.name().to_owned(),
        }
    }

    /// A place on the axis in words.
    pub(crate) fn place(self, across: f64) -> String {
        match self {
            Self::Rate { .. } => show::rate(across),
            Self::Percentile => {
                let is_it = |share: f64| (Self::of_share_below(share) / across - 1.0).abs() < 1e-6;
                let known = PERCENTILES.iter().find(|(_, share, _)| is_it(*share));
                known.map_or_else(String::new, |(_, _, name)| (*name).to_owned())
            }
        }
    }

    /// The axis' numbers, and where they stand.
    pub(crate) fn ticks(self, axis: &Axis, most: usize) -> Vec<(f64, String)> {
        match self {
            Self::Rate { capacity_per_s } => {
                let rates = DisplayScale::suiting(capacity_per_s, Unit::PerS);
                let ticks = axis.ticks(rates.one, most).into_iter();
                ticks.map(|tick| (tick.px, label(tick.value))).collect()
            }
            // 90 % and 95 % are too near for both names.
            Self::Percentile => {
                let named = PERCENTILES.into_iter().filter(|(part, _, _)| *part != Part::P95);
                named
                    .map(|(_, share, name)| (axis.px(Self::of_share_below(share)), name.to_owned()))
                    .collect()
            }
        }
    }
}
