//! Axes: the position of a value in a picture, and the ticks.

use crate::show;

/// An axis from one pixel to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    steps: Steps,
    low: f64,
    high: f64,
    from_px: f64,
    to_px: f64,
}

/// Whether an axis is linear or logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    Linear,
    Logarithmic,
}

/// A tick: its position and its value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) px: f64,
    pub(crate) value: f64,
}

impl Axis {
    /// An axis that covers at least `low..=high`.
    pub(crate) fn new(steps: Steps, low: f64, high: f64, from_px: f64, to_px: f64) -> Self {
        let (low, high) = match steps {
            Steps::Linear if high > low => (low, high),
            Steps::Linear => (low, low + 1.0),
            Steps::Logarithmic => {
                let low = low.max(1e-9);
                (low, high.max(low * 1.5))
            }
        };
        Self { steps, low, high, from_px, to_px }
    }

    /// The position of a value. Values outside are limited to just outside the picture, so that lines leave
    /// it in about the right direction.
    pub(crate) fn px(&self, value: f64) -> f64 {
        let share = match self.steps {
            Steps::Linear => (value - self.low) / (self.high - self.low),
            Steps::Logarithmic => {
                libm::log10(value.max(self.low / 1e3) / self.low) / libm::log10(self.high / self.low)
            }
        };
        self.from_px + share.clamp(-2.0, 3.0) * (self.to_px - self.from_px)
    }

    /// The axis for a program: steps, ends, pixels, and the size of one unit of its numbers.
    pub(crate) fn told(&self, one: f64) -> String {
        let Self { steps, low, high, from_px, to_px } = self;
        let steps = if *steps == Steps::Logarithmic { "log" } else { "linear" };
        format!("{steps} {low} {high} {from_px} {to_px} {one}")
    }

    /// Whether a value is above the axis.
    pub(crate) fn ends_below(&self, value: f64) -> bool {
        value > self.high
    }

    /// Round tick values in units of `one`, at most about `most`.
    pub(crate) fn ticks(&self, one: f64, most: usize) -> Vec<Tick> {
        let (low, high) = (self.low / one, self.high / one);
        let values = match self.steps {
            Steps::Linear => linear(low, high, most),
            Steps::Logarithmic => logarithmic(low, high, most),
        };
        values.into_iter().map(|value| Tick { px: self.px(value * one), value }).collect()
    }
}

/// Multiples of 1, 2 or 5 times a power of ten.
fn linear(low: f64, high: f64, most: usize) -> Vec<f64> {
    let rough = (high - low) / most.max(1) as f64;
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let step = [1.0, 2.0, 5.0, 10.0].map(|mantissa| mantissa * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(rough);
    let first = libm::ceil(low / step - 1e-9) as i64;
    let last = libm::floor(high / step + 1e-9) as i64;
    (first..=last).map(|multiple| multiple as f64 * step).collect()
}

/// 1, 2 and 5 in each decade; fewer if that gives too many.
fn logarithmic(low: f64, high: f64, most: usize) -> Vec<f64> {
    let first = libm::floor(libm::log10(low)) as i32;
    let last = libm::ceil(libm::log10(high)) as i32;
    let of = |mantissas: &[f64]| -> Vec<f64> {
        let decades = first..=last;
        let all = decades.flat_map(|decade| {
            mantissas.iter().map(move |mantissa| mantissa * libm::pow(10.0, f64::from(decade)))
        });
        all.filter(|value| (low * 0.999..=high * 1.001).contains(value)).collect()
    };
    let choices = [
        &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0][..],
        &[1.0, 2.0, 3.0, 5.0],
        &[1.0, 2.0, 5.0],
        &[1.0, 3.0],
    ];
    let fitting = choices.iter().map(|mantissas| of(mantissas)).find(|ticks| ticks.len() <= most);
    fitting.unwrap_or_else(|| of(&[1.0]))
}

/// A tick's value without superfluous digits.
pub(crate) fn label(value: f64) -> String {
    if libm::fabs(value - libm::round(value)) < 1e-12 * libm::fabs(value).max(1.0) {
        return show::whole(libm::round(value) as u64);
    }
    // Small numbers need more digits, or neighbours would read the same.
    let digits = (2.0 - libm::floor(libm::log10(libm::fabs(value)))).clamp(3.0, 12.0) as usize;
    let text = format!("{value:.digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(axis: Axis, one: f64, most: usize) -> Vec<f64> {
        axis.ticks(one, most).into_iter().map(|tick| tick.value).collect()
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let axis = Axis::new(Steps::Linear, 700e3, 3_200e3, 0.0, 100.0);
        assert_eq!(values(axis, 1e3, 6), [1_000.0, 1_500.0, 2_000.0, 2_500.0, 3_000.0]);
        let axis = Axis::new(Steps::Logarithmic, 12e3, 800e3, 100.0, 0.0);
        assert_eq!(values(axis, 1e3, 5), [20.0, 50.0, 100.0, 200.0, 500.0]);
    }

    #[test]
    fn a_value_lies_where_its_share_of_the_axis_says() {
        let axis = Axis::new(Steps::Logarithmic, 1.0, 100.0, 200.0, 0.0);
        assert!((axis.px(10.0) - 100.0).abs() < 1e-9);
        assert!(axis.ends_below(101.0) && !axis.ends_below(100.0));
    }

    #[test]
    fn no_two_ticks_of_an_axis_read_the_same() {
        for high in [3e-10, 2e-6, 0.002, 0.7, 1.0, 12.0, 3_200.0] {
            let labels: Vec<String> = values(Axis::new(Steps::Linear, 0.0, high, 0.0, 100.0), 1.0, 7)
                .into_iter()
                .map(label)
                .collect();
            let mut different = labels.clone();
            different.dedup();
            assert!(labels.len() > 2 && different == labels, "{labels:?}");
        }
        assert_eq!([0.0, 0.0005, 0.3, 2.5, 1_500.0].map(label), ["0", "0.0005", "0.3", "2.5", "1,500"]);
    }

    #[test]
    fn an_axis_without_extent_still_has_a_scale() {
        for steps in [Steps::Linear, Steps::Logarithmic] {
            let axis = Axis::new(steps, 0.0, 0.0, 0.0, 100.0);
            assert!(axis.px(0.0).is_finite() && axis.px(5.0).is_finite());
        }
    }
}
