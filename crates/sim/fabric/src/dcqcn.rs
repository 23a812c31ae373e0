//! The rate of a flow under DCQCN (Zhu et al., SIGCOMM 2015, §5), as NICs implement it: the rate falls at
//! most once per interval, α is updated more often, and the rate grows by time alone.
//!
//! No timer runs. When the rate is read, the effects of all timers up to now are computed: between marks α
//! only shrinks, and the rate only grows. Left out, as in the public set-up: the byte counter.

use sluice_wire::Nanos;

use crate::error::{FabricError, require};

/// The constants of DCQCN. Defaults are the public set-up's at 100 Gb/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DcqcnSettings {
    /// The share of α that an update replaces (g: 1/256).
    pub gain: f64,
    /// How often α is updated (1 µs).
    pub alpha_interval: Nanos,
    /// The shortest time between two decreases of the rate (4 µs).
    pub decrease_interval: Nanos,
    /// How often the rate grows (300 µs).
    pub increase_interval: Nanos,
    /// How often the rate grows to the middle between itself and its target, before the target grows too
    /// (1).
    pub recovery_stages: u32,
    /// By how much the target grows the first time (AI: 40 Mb/s).
    pub additive_mbps: f64,
    /// By how much the target grows each time after the first (HAI: 100 Mb/s).
    pub hyper_mbps: f64,
    /// The lowest rate (100 Mb/s).
    pub least_mbps: f64,
    /// Whether each decrease lowers the target to the rate, even one right after another (it does not).
    pub clamps_target: bool,
    /// A flow's receiver reports congestion once per this time (0: with each answer to data that met it).
    pub cnp_interval: Nanos,
}

impl Default for DcqcnSettings {
    fn default() -> Self {
        Self {
            gain: 1.0 / 256.0,
            alpha_interval: Nanos::from_micros(1),
            decrease_interval: Nanos::from_micros(4),
            increase_interval: Nanos::from_micros(300),
            recovery_stages: 1,
            additive_mbps: 40.0,
            hyper_mbps: 100.0,
            least_mbps: 100.0,
            clamps_target: false,
            cnp_interval: Nanos(0),
        }
    }
}

impl DcqcnSettings {
    pub(crate) fn check(&self) -> Result<(), FabricError> {
        let gain = self.gain;
        require(gain > 0.0 && gain < 1.0, "the gain of DCQCN", gain, "more than 0, below 1")?;
        for (interval, what) in [
            (self.alpha_interval, "the interval of DCQCN's alpha"),
            (self.decrease_interval, "the decrease interval of DCQCN"),
            (self.increase_interval, "the increase interval of DCQCN"),
        ] {
            require(interval.0 > 0, what, format_args!("{} ns", interval.0), "more than 0")?;
        }
        for (mbps, what) in [
            (self.additive_mbps, "the additive increase of DCQCN"),
            (self.hyper_mbps, "the hyper increase of DCQCN"),
        ] {
            require(mbps >= 0.0 && mbps.is_finite(), what, format_args!("{mbps} Mb/s"), "at least 0")?;
        }
        let least = self.least_mbps;
        require(
            least > 0.0 && least.is_finite(),
            "the lowest rate of DCQCN",
            format_args!("{least} Mb/s"),
            "more than 0",
        )
    }
}

/// A flow's rate. All rates are in Mb/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    mbps: f64,
    target: f64,
    line: f64,
    alpha: f64,
    /// When the first mark came; intervals are counted from then.
    began: Option<Nanos>,
    /// How many updates of α are done.
    looks: u64,
    /// Whether a mark came since the last update.
    is_marked: bool,
    /// When the rate falls next, if it does.
    falls: Option<Nanos>,
    /// When the last fall was, if there was one; the rate grows an interval later.
    grows_from: Option<Nanos>,
    /// How often the rate has grown since it fell.
    stage: u32,
}

impl Rate {
    /// A rate that starts at the link's.
    pub(crate) const fn new(line: f64) -> Self {
        Self {
            mbps: line,
            target: line,
            line,
            alpha: 1.0,
            began: None,
            looks: 0,
            is_marked: false,
            falls: None,
            grows_from: None,
            stage: 0,
        }
    }

    /// The rate at `now`, which must not be earlier than in any call before.
    #[inline]
    pub(crate) fn at(&mut self, now: Nanos, settings: &DcqcnSettings) -> f64 {
        if self.began.is_some() {
            self.catch_up(now, settings);
        }
        self.mbps
    }

    /// Congestion is reported.
    pub(crate) fn congested(&mut self, now: Nanos, settings: &DcqcnSettings) {
        let Some(began) = self.began else {
            self.began = Some(now);
            self.falls = Some(now + settings.decrease_interval);
            return;
        };
        self.catch_up(now, settings);
        self.update_alpha(now, settings);
        self.is_marked = true;
        if self.falls.is_none() {
            let interval = settings.decrease_interval.0;
            let intervals = now.since(began).0 / interval + 1;
            self.falls = Some(began + Nanos(intervals * interval));
        }
    }

    /// Applies everything up to `now`, in order of time.
    fn catch_up(&mut self, now: Nanos, settings: &DcqcnSettings) {
        loop {
            let grows = self.grows_from.map(|from| from + settings.increase_interval);
            match (self.falls, grows) {
                (Some(falls), grows) if falls <= now && grows.is_none_or(|grows| falls < grows) => {
                    self.fall(falls, settings);
                }
                (_, Some(grows)) if grows <= now => self.grow(grows, settings),
                _ => return,
            }
        }
    }

    fn fall(&mut self, at: Nanos, settings: &DcqcnSettings) {
        self.update_alpha(at, settings);
        if settings.clamps_target || self.stage > 0 {
            self.target = self.mbps;
        }
        self.mbps = (self.mbps * (1.0 - self.alpha / 2.0)).max(settings.least_mbps.min(self.line));
        self.stage = 0;
        self.falls = None;
        self.grows_from = Some(at);
    }

    fn grow(&mut self, at: Nanos, settings: &DcqcnSettings) {
        let more = match self.stage {
            stage if stage < settings.recovery_stages => 0.0,
            stage if stage == settings.recovery_stages => settings.additive_mbps,
            _ => settings.hyper_mbps,
        };
        self.target = (self.target + more).min(self.line);
        self.mbps = f64::midpoint(self.mbps, self.target);
        self.stage = self.stage.saturating_add(1);
        self.grows_from = Some(at);
    }

    /// Applies the updates of α up to `at`: the first one sees the mark, the others none.
    fn update_alpha(&mut self, at: Nanos, settings: &DcqcnSettings) {
        let Some(began) = self.began else { return };
        let due = at.since(began).0 / settings.alpha_interval.0;
        let missed = due - self.looks;
        if missed == 0 {
            return;
        }
        self.looks = due;
        let keeps = 1.0 - settings.gain;
        self.alpha = keeps * self.alpha + if self.is_marked { settings.gain } else { 0.0 };
        self.alpha *= power(keeps, missed - 1);
        self.is_marked = false;
    }
}

/// A power by repeated squaring, which rounds the same on every machine.
pub(crate) fn power(base: f64, mut exponent: u64) -> f64 {
    let (mut result, mut square) = (1.0, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result *= square;
        }
        square *= square;
        exponent >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: f64 = 100_000.0;

    /// The same rules with real timers, one nanosecond after the other.
    struct Ticking {
        rate: f64,
        target: f64,
        alpha: f64,
        began: Option<u64>,
        alpha_marked: bool,
        decrease_marked: bool,
        fell: Option<u64>,
        stage: u32,
    }

    impl Ticking {
        fn tick(&mut self, now: u64, settings: &DcqcnSettings) {
            let Some(began) = self.began.filter(|began| now > *began) else { return };
            if (now - began).is_multiple_of(settings.alpha_interval.0) {
                let mark = if self.alpha_marked { settings.gain } else { 0.0 };
                self.alpha = (1.0 - settings.gain) * self.alpha + mark;
                self.alpha_marked = false;
            }
            let grows = self
                .fell
                .is_some_and(|fell| (now - fell).is_multiple_of(settings.increase_interval.0) && now > fell);
            if grows {
                let more = match self.stage {
                    0 => 0.0,
                    1 => settings.additive_mbps,
                    _ => settings.hyper_mbps,
                };
                self.target = (self.target + more).min(LINE);
                self.rate = f64::midpoint(self.rate, self.target);
                self.stage += 1;
            }
            if (now - began).is_multiple_of(settings.decrease_interval.0) && self.decrease_marked {
                if self.stage > 0 {
                    self.target = self.rate;
                }
                self.rate = (self.rate * (1.0 - self.alpha / 2.0)).max(settings.least_mbps);
                (self.stage, self.decrease_marked, self.fell) = (0, false, Some(now));
            }
        }

        fn congested(&mut self, now: u64) {
            self.decrease_marked = true;
            match self.began {
                None => self.began = Some(now),
                Some(_) => self.alpha_marked = true,
            }
        }
    }

    #[test]
    fn what_is_worked_out_late_is_what_timers_would_have_done() {
        let settings = DcqcnSettings { increase_interval: Nanos(30_011), ..DcqcnSettings::default() };
        for every in [700, 3_100, 9_000, 100_003] {
            let mut lazy = Rate::new(LINE);
            let mut ticking = Ticking {
                rate: LINE,
                target: LINE,
                alpha: 1.0,
                began: None,
                alpha_marked: false,
                decrease_marked: false,
                fell: None,
                stage: 0,
            };
            for now in 1..600_000_u64 {
                ticking.tick(now, &settings);
                if now.is_multiple_of(every) && now < 400_000 {
                    lazy.congested(Nanos(now), &settings);
                    ticking.congested(now);
                }
                if now.is_multiple_of(7_777) {
                    let rate = lazy.at(Nanos(now), &settings);
                    assert!(
                        (rate - ticking.rate).abs() < 1e-6 * LINE,
                        "{now}: {rate} and not {}",
                        ticking.rate
                    );
                }
            }
            assert!(ticking.rate < LINE);
        }
    }

    #[test]
    fn the_first_mark_halves_the_rate_an_interval_later_and_recovery_goes_half_way_back() {
        let settings = DcqcnSettings::default();
        let mut rate = Rate::new(LINE);
        rate.congested(Nanos(1_000), &settings);
        assert!((rate.at(Nanos(4_999), &settings) - LINE).abs() < 1e-9);
        let alpha = power(255.0 / 256.0, 4);
        let fallen = LINE * (1.0 - alpha / 2.0);
        assert!((rate.at(Nanos(5_000), &settings) - fallen).abs() < 1e-6);
        let recovered = f64::midpoint(fallen, LINE);
        assert!((rate.at(Nanos(305_000), &settings) - recovered).abs() < 1e-6);
    }

    #[test]
    fn no_rate_falls_below_the_lowest() {
        let settings = DcqcnSettings::default();
        let mut rate = Rate::new(LINE);
        for now in 1..10_000 {
            rate.congested(Nanos(now * 1_000), &settings);
        }
        let lowest = rate.at(Nanos(10_000_000), &settings);
        assert!((lowest - settings.least_mbps).abs() < 1e-9, "{lowest}");
    }

    #[test]
    fn a_trace_of_marks_has_the_rates_that_it_had() {
        let settings = DcqcnSettings::default();
        let mut rate = Rate::new(LINE);
        let mut trace = Vec::new();
        for now in (0..3_000_000).step_by(1_000) {
            let is_marked = (10_000..40_000).contains(&now) || (400_000..420_000).contains(&now);
            if is_marked {
                rate.congested(Nanos(now), &settings);
            }
            if [13_000, 14_000, 30_000, 60_000, 350_000, 430_000, 1_000_000, 2_999_000].contains(&now) {
                trace.push(rate.at(Nanos(now), &settings).round() as u64);
            }
        }
        assert_eq!(trace, [100_000, 50_193, 3_184, 405, 50_203, 20_540, 35_371, 50_628]);
    }
}
