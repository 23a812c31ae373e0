//! Means and means of squares, in nanoseconds, of distributions that are cut off at `most`: larger values
//! count as `most`.

pub(super) fn pareto(scale: f64, alpha: f64, most: f64) -> (f64, f64) {
    // ∫ (scale/x)^α x^(power − 1) dx from scale to most, times power: the tail's part of the moment.
    let tail = |power: f64| {
        let rest = power - alpha;
        let integral =
            if rest == 0.0 { libm::log(most / scale) } else { (libm::pow(most / scale, rest) - 1.0) / rest };
        power * libm::pow(scale, power) * integral
    };
    (scale + tail(1.0), scale * scale + tail(2.0))
}

pub(super) fn lognormal(location: f64, sigma: f64, most: f64) -> (f64, f64) {
    let cut = (libm::log(most) - location) / sigma;
    // The probability above the cut is Φ(−cut). Below the cut a moment keeps the share Φ(cut − power · σ)
    // of its uncut value.
    let moment = |power: f64| {
        let uncut = libm::exp(power * location + power * power * sigma * sigma / 2.0);
        uncut * normal_up_to(cut - power * sigma) + libm::pow(most, power) * normal_up_to(-cut)
    };
    (moment(1.0), moment(2.0))
}

/// Whole nanoseconds from `low` to `high`, all equally likely.
pub(super) fn uniform(low: f64, high: f64) -> (f64, f64) {
    let (mean, count) = (low / 2.0 + high / 2.0, high - low + 1.0);
    (mean, mean * mean + (count * count - 1.0) / 12.0)
}

/// An exponential number of keys, rounded up, is geometric: each key is the last with probability 1 −
/// e^(−1/mean). With a maximum, larger numbers are left out.
pub(super) fn keys(per_key: f64, mean_keys: f64, base: f64, most: Option<u64>) -> (f64, f64) {
    let last = -libm::expm1(-1.0 / mean_keys);
    let (keys, square) = most.map_or_else(
        || (1.0 / last, (2.0 - last) / (last * last)),
        |most| {
            let share = |keys: u64| libm::exp((1.0 - keys as f64) / mean_keys) * last;
            let sums = (1..=most).fold([0.0; 3], |[all, first, second], keys| {
                let (share, keys) = (share(keys), keys as f64);
                [all + share, first + share * keys, second + share * keys * keys]
            });
            (sums[1] / sums[0], sums[2] / sums[0])
        },
    );
    (base + per_key * keys, base * base + 2.0 * base * per_key * keys + per_key * per_key * square)
}

/// The share of a normal distribution below `x` standard deviations.
fn normal_up_to(x: f64) -> f64 {
    libm::erfc(-x / core::f64::consts::SQRT_2) / 2.0
}
