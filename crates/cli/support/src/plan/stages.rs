//! The stages of a load whose rate changes with time: `10k:5s,10k..50k:5s,50k:10s` are 10,000 tasks a second
//! for 5 s, a ramp to 50,000 in 5 s, and 50,000 for 10 s. A ramp is linear.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sluice_wire::Nanos;
use sluice_workload::{Phase, PhasePlan};

use crate::units;

/// All stages of a load, one after the other; there is at least one, and tasks come in one of them.
#[derive(Clone, Debug, PartialEq)]
pub struct RateStages(Vec<RateStage>);

/// A rate, or a ramp from one rate to another, for a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateStage {
    /// Tasks per second at the beginning.
    pub from_per_s: f64,
    /// Tasks per second at the end.
    pub to_per_s: f64,
    pub lasts: Duration,
}

impl RateStages {
    /// The stages in their order.
    pub fn all(&self) -> &[RateStage] {
        &self.0
    }

    /// How long all of them last.
    pub fn length(&self) -> Duration {
        self.0.iter().map(|stage| stage.lasts).sum()
    }

    /// Tasks per second on average.
    pub fn mean_per_s(&self) -> f64 {
        let tasks = self.0.iter().map(|stage| stage.mean_per_s() * stage.lasts.as_secs_f64()).sum::<f64>();
        tasks / self.length().as_secs_f64()
    }

    /// The largest rate, in tasks per second.
    pub fn peak_per_s(&self) -> f64 {
        self.0.iter().map(|stage| stage.from_per_s.max(stage.to_per_s)).fold(0.0, f64::max)
    }

    /// The arrivals as the simulator draws them, at factors of the largest rate. The warm-up has the rate at
    /// which the first stage begins.
    pub fn arrivals(&self, warm_up: Duration) -> PhasePlan {
        let peak = self.peak_per_s();
        let first = self.0[0].from_per_s;
        let warm_up = RateStage { from_per_s: first, to_per_s: first, lasts: warm_up };
        let stages = std::iter::once(&warm_up).chain(&self.0).filter(|stage| !stage.lasts.is_zero());
        let phase = |stage: &RateStage| Phase {
            lasts: Nanos(stage.lasts.as_nanos() as u64),
            from: stage.from_per_s / peak,
            to: stage.to_per_s / peak,
            changes: Vec::new(),
        };
        PhasePlan { phases: stages.map(phase).collect(), repeat: false }
    }
}

impl RateStage {
    /// Whether the rate changes in it.
    pub fn is_ramp(&self) -> bool {
        self.from_per_s.total_cmp(&self.to_per_s).is_ne()
    }

    fn mean_per_s(&self) -> f64 {
        f64::midpoint(self.from_per_s, self.to_per_s)
    }
}

impl FromStr for RateStages {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: String| format!("stages `{}`: {why}", sluice_units::shown(text));
        let stages: Result<Vec<RateStage>, String> =
            text.split(',').map(|stage| stage.trim().parse()).collect();
        let stages = Self(stages.map_err(wrong)?);
        if stages.peak_per_s() <= 0.0 {
            return Err(wrong("every rate is 0, so that no task ever comes".to_owned()));
        }
        Ok(stages)
    }
}

impl FromStr for RateStage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || format!("`{text}` is no stage: write RATE:SPAN or FROM..TO:SPAN, such as 10k..50k:5s");
        let (rates, lasts) = text.split_once(':').ok_or_else(usage)?;
        let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
        let rate = |text: &str| match text.trim() {
            "" => Err(usage()),
            "0" => Ok(0.0),
            text => units::rate(text),
        };
        let stage = Self { from_per_s: rate(from)?, to_per_s: rate(to)?, lasts: units::span(lasts.trim())? };
        if stage.lasts.is_zero() {
            return Err(format!("stage `{text}` takes no time: a rate jumps from stage to stage by itself"));
        }
        Ok(stage)
    }
}

impl fmt::Display for RateStages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, stage) in self.0.iter().enumerate() {
            write!(f, "{}{stage}", if number == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl fmt::Display for RateStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.from_per_s)?;
        if self.is_ramp() {
            write!(f, "..{}", self.to_per_s)?;
        }
        write!(f, ":{}", units::span_text(self.lasts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> RateStages {
        text.parse().unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn stages_are_rates_and_ramps_with_spans() {
        let stages = read("10krps:5s, 10k..50k:5s,50k:10s,0:2s");
        assert_eq!(stages.to_string(), "10000:5s,10000..50000:5s,50000:10s,0:2s");
        assert_eq!(read(&stages.to_string()), stages);
        assert_eq!(stages.length(), Duration::from_secs(22));
        assert!((stages.mean_per_s() - (50e3 + 150e3 + 500e3) / 22.0).abs() < 1e-6);
        let plan = stages.arrivals(Duration::from_secs(1));
        assert_eq!(plan.phases.len(), 5, "with the warm-up");
        assert!((plan.phases[0].to - 0.2).abs() < 1e-12 && (plan.phases[2].to - 1.0).abs() < 1e-12);
        assert_eq!(stages.arrivals(Duration::ZERO).phases.len(), 4);
    }

    #[test]
    fn what_is_no_stage_is_refused_with_what_to_write() {
        for (text, says) in [
            ("", "write RATE:SPAN or FROM..TO:SPAN"),
            ("10k", "`10k` is no stage"),
            ("10k:5s,", "`` is no stage"),
            ("10k..:5s", "`10k..:5s` is no stage"),
            ("10k:5", "`5` is not a span"),
            ("fast:5s", "rate `fast` is not a number"),
            ("-5:5s", "rate -5 is not above 0"),
            ("10k:0s", "stage `10k:0s` takes no time"),
            ("0:5s,0..0:1s", "no task ever comes"),
            ("5s:10k", "rate `5s` is not a number"),
        ] {
            let why = text.parse::<RateStages>().expect_err(text);
            assert!(why.starts_with("stages `") && why.contains(says), "{text}: {why}");
        }
    }
}
