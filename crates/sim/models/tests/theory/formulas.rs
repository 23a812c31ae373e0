//! Formulas of queueing theory, in forms that lose no digits. The unit of times is the mean service.

/// A distribution of times by its tail.
pub(crate) struct Theory {
    /// The probability that a time is above `t`.
    pub(crate) tail: Box<dyn Fn(f64) -> f64>,
}

impl Theory {
    /// The smallest time that this share of all times does not exceed.
    pub(crate) fn quantile(&self, quantile: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        while (self.tail)(high) > 1.0 - quantile {
            high *= 2.0;
        }
        for _ in 0..80 {
            let middle = f64::midpoint(low, high);
            if (self.tail)(middle) > 1.0 - quantile {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// The response time of M/M/k at a load per worker (Kleinrock, Queueing Systems, volume 1, §3.5 and §5.12 for
/// its parts: a task waits with Erlang's probability C, and then exponentially with rate k(1 − ρ), before its
/// service).
pub(crate) fn mmk_response(workers: u32, load: f64) -> Theory {
    let (waits, rate) = (erlang_c(workers, load), f64::from(workers) * (1.0 - load));
    let tail = move |t: f64| {
        let served = libm::exp(-t);
        // The sum of two exponential times; for equal rates, the gamma distribution.
        let after_a_wait = if (rate - 1.0).abs() < 1e-9 {
            (1.0 + t) * served
        } else {
            (rate * served - libm::exp(-rate * t)) / (rate - 1.0)
        };
        (1.0 - waits) * served + waits * after_a_wait
    };
    Theory { tail: Box::new(tail) }
}

/// The probability that a task must wait (Erlang 1917), from Erlang's loss formula by its stable recursion.
pub(crate) fn erlang_c(workers: u32, load: f64) -> f64 {
    let offered = load * f64::from(workers);
    let lost = (1..=workers).fold(1.0, |lost, k| offered * lost / (f64::from(k) + offered * lost));
    lost / (1.0 - load * (1.0 - lost))
}

/// The response time of M/D/1.
///
/// Erlang's series (1909) alternates, and loses all digits for long waits. Instead the wait is computed
/// from the number in the system (Franx, A simple solution for the M/D/c waiting time distribution, 2001,
/// for one server), and the number from the balance of steps up and down between two neighbouring numbers.
/// Both have positive terms only.
pub(crate) fn md1_response(load: f64) -> Theory {
    let up_to = cumulative(&md1_numbers(load, 2_000));
    let tail = move |t: f64| {
        let wait = t - 1.0;
        if wait < 0.0 {
            return 1.0;
        }
        let services = libm::floor(wait) as usize + 1;
        let arrivals = load * (services as f64 - wait);
        let mut poisson = libm::exp(-arrivals);
        let mut below = 0.0;
        for j in 0..services {
            below += poisson * up_to[(services - j).min(up_to.len() - 1)];
            poisson *= arrivals / (j + 1) as f64;
        }
        1.0 - below
    };
    Theory { tail: Box::new(tail) }
}

/// The probability of each number of tasks in M/D/1, in service or waiting.
fn md1_numbers(load: f64, numbers: usize) -> Vec<f64> {
    // The probability that at least so many tasks arrive during a service.
    let mut term = libm::exp(-load);
    let mut exactly = Vec::with_capacity(numbers + 2);
    for n in 0..numbers + 2 {
        exactly.push(term);
        term *= load / (n + 1) as f64;
    }
    let mut at_least = exactly.clone();
    for n in (0..at_least.len() - 1).rev() {
        at_least[n] += at_least[n + 1];
    }
    let mut numbers_of = vec![1.0 - load];
    for n in 0..numbers {
        let ups: f64 = (1..=n).map(|from| numbers_of[from] * at_least[n - from + 2]).sum();
        numbers_of.push((numbers_of[0] * at_least[n + 1] + ups) / exactly[0]);
    }
    numbers_of
}

fn cumulative(of: &[f64]) -> Vec<f64> {
    of.iter()
        .scan(0.0, |sum, one| {
            *sum += one;
            Some(*sum)
        })
        .collect()
}

/// The mean response time of M/G/1 by the squared coefficient of variation of its service (Pollaczek 1930,
/// Khinchine 1932).
pub(crate) fn mg1_mean_response(load: f64, squared_variation: f64) -> f64 {
    1.0 + load * (1.0 + squared_variation) / (2.0 * (1.0 - load))
}

#[test]
fn erlangs_formula_has_its_tabulated_values() {
    for (workers, load, probability) in
        [(1, 0.5, 0.5), (2, 0.5, 1.0 / 3.0), (5, 0.8, 0.5541), (10, 0.9, 0.6687)]
    {
        let found = erlang_c(workers, load);
        assert!((found - probability).abs() < 1e-4, "{workers} {load}: {found}");
    }
}

#[test]
fn the_response_of_one_exponential_worker_is_exponential() {
    for load in [0.3, 0.9] {
        for quantile in [0.5, 0.99] {
            let right = -libm::log(1.0 - quantile) / (1.0 - load);
            assert!((mmk_response(1, load).quantile(quantile) / right - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn the_stable_form_of_the_constant_service_is_erlangs_series() {
    for load in [0.3_f64, 0.8] {
        let theory = md1_response(load);
        for wait in [0.0, 0.3, 1.0, 2.5, 6.25] {
            let mut sum = 0.0;
            for j in 0..=libm::floor(wait) as i32 {
                let x = load * (f64::from(j) - wait);
                let factorial: f64 = (1..=j).map(f64::from).product();
                sum += libm::pow(x, f64::from(j)) / factorial * libm::exp(-x);
            }
            let found = 1.0 - (theory.tail)(1.0 + wait);
            assert!((found - (1.0 - load) * sum).abs() < 1e-9, "{load} {wait}: {found}");
        }
    }
}

#[test]
fn the_mean_of_the_constant_service_is_pollaczeks_and_khinchines() {
    for load in [0.3, 0.8, 0.95] {
        let theory = md1_response(load);
        // The integral of the tail, by the midpoint rule between its corners at whole services.
        let step = 1.0 / 64.0;
        let mean: f64 = (0..64 * 600).map(|n| (theory.tail)((f64::from(n) + 0.5) * step) * step).sum();
        assert!((mean / mg1_mean_response(load, 0.0) - 1.0).abs() < 1e-4, "{load}: {mean}");
    }
}
