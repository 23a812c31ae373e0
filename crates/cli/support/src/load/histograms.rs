//! Histograms that resize themselves, all with the same digits.

use hdrhistogram::Histogram;

/// Significant digits of every histogram.
const DIGITS: u8 = 3;

/// An empty one.
pub(crate) fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new(DIGITS).expect("3 digits are legal");
    histogram.auto(true);
    histogram
}

/// Records a value.
pub(crate) fn record(histogram: &mut Histogram<u64>, value: u64) {
    histogram.record(value).expect("a histogram that grows takes any value");
}
