//! Service times: distributions with short names, drawn the same on every machine.
//!
//! Every draw is rounded to a nanosecond and lies between 1 ns and [`SERVICE_MAX`]. Means and squares are
//! exact except for that rounding, and include the effect of the bound. Left out: services that depend on
//! one another or on the worker.

use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sluice_events::dice::{Dice, EXPONENTIAL_MAX};
use sluice_wire::Nanos;

use super::parameters::Parameters;
use super::text::{show_span, unknown};
use super::{Empirical, Profile, SERVICE_MAX, WorkloadError, moments};

/// A distribution of service times, such as `exp:10us`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Service(Kind);

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    Const(Nanos),
    Exp { mean: Nanos },
    Bimodal([Mode; 2]),
    Multimodal(Arc<[Mode]>),
    Lognormal { mean: Nanos, sigma: f64, location: f64 },
    Pareto { mean: Nanos, alpha: f64, scale: f64 },
    Uniform { low: Nanos, high: Nanos },
    Keys { per_key: Nanos, mean_keys: f64, base: Nanos, most: Option<u64> },
    Empirical { label: Arc<str>, points: Arc<Empirical> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Mode {
    value: Nanos,
    share: f64,
    up_to: f64,
}

/// A distribution's name, and how it is written.
struct DistributionForm {
    name: &'static str,
    usage: &'static str,
    read: fn(&mut Parameters<'_>) -> Result<Kind, String>,
}

/// The largest bound on a number of keys.
const MOST_KEYS_MAX: f64 = 1e6;

const KNOWN: [DistributionForm; 8] = [
    DistributionForm { name: "const", usage: "const:SPAN, such as const:10us", read: read_const },
    DistributionForm { name: "exp", usage: "exp:MEAN, such as exp:10us", read: read_exp },
    DistributionForm {
        name: "bimodal",
        usage: "bimodal:FIRST:SECOND:SHARE_OF_FIRST, such as bimodal:10us:100us:0.9",
        read: read_bimodal,
    },
    DistributionForm {
        name: "multimodal",
        usage: "multimodal:SPAN@SHARE:…, such as multimodal:5us@0.3:50us@0.4:500us@0.3",
        read: read_multimodal,
    },
    DistributionForm {
        name: "lognormal",
        usage: "lognormal:MEAN:SIGMA, such as lognormal:10us:1",
        read: read_lognormal,
    },
    DistributionForm {
        name: "pareto",
        usage: "pareto:MEAN:ALPHA, such as pareto:10us:2.2",
        read: read_pareto,
    },
    DistributionForm {
        name: "uniform",
        usage: "uniform:LOW:HIGH, such as uniform:5us:15us",
        read: read_uniform,
    },
    DistributionForm {
        name: "keys",
        usage: "keys:PER_KEY:MEAN_KEYS[:BASE[:MOST_KEYS]], such as keys:800ns:10",
        read: read_keys,
    },
];

const USAGE_CDF: &str = "cdf:FILE, a file of MICROSECONDS,CUMULATIVE lines";
const USAGE_PROFILE: &str = "profile:FILE:TYPE, a file that `sluice profile` wrote";

impl Service {
    /// Reads a service; files are searched in the working directory.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        Self::parse_in(text, Path::new(""))
    }

    /// Reads a service; files are searched in `folder`.
    pub fn parse_in(text: &str, folder: &Path) -> Result<Self, WorkloadError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        match name {
            "cdf" => read_cdf(text, rest, folder),
            "profile" => read_profile(text, rest, folder),
            _ => read_known(text, name, rest).map(Self),
        }
    }

    /// The values of a trace, all equally likely.
    pub(super) fn of_values(label: &str, values: Vec<Nanos>) -> Self {
        Self(Kind::Empirical { label: label.into(), points: Arc::new(Empirical::of_values(values)) })
    }

    /// The next service time.
    pub fn draw(&self, dice: &mut Dice) -> Nanos {
        let ns = match &self.0 {
            Kind::Const(span) => return *span,
            Kind::Exp { mean } => mean.0 as f64 * dice.exponential(),
            Kind::Bimodal([first, second]) => {
                return if dice.happens(first.share) { first.value } else { second.value };
            }
            Kind::Multimodal(modes) => return draw_mode(modes, dice),
            Kind::Lognormal { sigma, location, .. } => libm::exp(location + sigma * dice.normal()),
            Kind::Pareto { alpha, scale, .. } => scale * libm::exp(dice.exponential() / alpha),
            Kind::Uniform { low, high } => return Nanos(dice.between(low.0, high.0)),
            Kind::Keys { per_key, mean_keys, base, most } => {
                let drawn = dice.exponential();
                let drawn = most.map_or(drawn, |most| below(drawn, most as f64 / mean_keys));
                let keys = libm::ceil(mean_keys * drawn).max(1.0) as u64;
                return *base + per_key.times(most.map_or(keys, |most| keys.min(most)));
            }
            Kind::Empirical { points, .. } => points.draw_ns(dice),
        };
        Nanos(((ns + 0.5) as u64).clamp(1, SERVICE_MAX.0))
    }

    /// The mean of the service times, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.moments().0
    }

    /// The squared coefficient of variation: variance over squared mean.
    pub fn squared_variation(&self) -> f64 {
        let (mean, square) = self.moments();
        (square / (mean * mean) - 1.0).max(0.0)
    }

    /// The mean, and the mean of the squares, in nanoseconds.
    pub(super) fn moments(&self) -> (f64, f64) {
        match &self.0 {
            Kind::Const(span) => (span.0 as f64, (span.0 as f64) * (span.0 as f64)),
            Kind::Exp { mean } => (mean.0 as f64, 2.0 * mean.0 as f64 * mean.0 as f64),
            Kind::Bimodal(modes) => moments_of_modes(modes),
            Kind::Multimodal(modes) => moments_of_modes(modes),
            Kind::Lognormal { sigma, location, .. } => {
                moments::lognormal(*location, *sigma, SERVICE_MAX.0 as f64)
            }
            Kind::Pareto { alpha, scale, .. } => moments::pareto(*scale, *alpha, SERVICE_MAX.0 as f64),
            Kind::Uniform { low, high } => moments::uniform(low.0 as f64, high.0 as f64),
            Kind::Keys { per_key, mean_keys, base, most } => {
                moments::keys(per_key.0 as f64, *mean_keys, base.0 as f64, *most)
            }
            Kind::Empirical { points, .. } => points.moments(),
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Const(span) => write!(f, "const:{}", show_span(*span)),
            Kind::Exp { mean } => write!(f, "exp:{}", show_span(*mean)),
            Kind::Bimodal([first, second]) => {
                write!(f, "bimodal:{}:{}:{}", show_span(first.value), show_span(second.value), first.share)
            }
            Kind::Multimodal(modes) => {
                f.write_str("multimodal")?;
                modes.iter().try_for_each(|mode| write!(f, ":{}@{}", show_span(mode.value), mode.share))
            }
            Kind::Lognormal { mean, sigma, .. } => write!(f, "lognormal:{}:{sigma}", show_span(*mean)),
            Kind::Pareto { mean, alpha, .. } => write!(f, "pareto:{}:{alpha}", show_span(*mean)),
            Kind::Uniform { low, high } => write!(f, "uniform:{}:{}", show_span(*low), show_span(*high)),
            Kind::Keys { per_key, mean_keys, base: Nanos(0), most: None } => {
                write!(f, "keys:{}:{mean_keys}", show_span(*per_key))
            }
            Kind::Keys { per_key, mean_keys, base, most } => {
                write!(f, "keys:{}:{mean_keys}:{}", show_span(*per_key), show_span(*base))?;
                most.map_or(Ok(()), |most| write!(f, ":{most}"))
            }
            Kind::Empirical { label, .. } => f.write_str(label),
        }
    }
}

impl FromStr for Service {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Service {
    type Error = WorkloadError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<Service> for String {
    fn from(service: Service) -> Self {
        service.to_string()
    }
}

fn draw_mode(modes: &[Mode], dice: &mut Dice) -> Nanos {
    let drawn = dice.unit();
    modes.iter().find(|mode| drawn <= mode.up_to).unwrap_or(&modes[modes.len() - 1]).value
}

fn moments_of_modes(modes: &[Mode]) -> (f64, f64) {
    modes.iter().fold((0.0, 0.0), |(mean, square), mode| {
        let value = mode.value.0 as f64;
        (mean + mode.share * value, square + mode.share * value * value)
    })
}

fn read_known(text: &str, name: &str, rest: &str) -> Result<Kind, WorkloadError> {
    let Some(known) = KNOWN.iter().find(|known| known.name == name) else {
        let names = KNOWN.iter().map(|known| known.name).chain(["cdf", "profile"]);
        let unknown = unknown("distribution", name, names);
        return Err(WorkloadError::UnknownDistribution { text: text.to_owned(), unknown });
    };
    let mut parameters = Parameters::new(rest);
    let kind = (known.read)(&mut parameters).and_then(|kind| parameters.end().map(|()| kind));
    kind.map_err(|why| bad(text, &format!("{why}; write it as {}", known.usage)))
}

fn read_const(given: &mut Parameters<'_>) -> Result<Kind, String> {
    Ok(Kind::Const(given.service("span")?))
}

fn read_exp(given: &mut Parameters<'_>) -> Result<Kind, String> {
    Ok(Kind::Exp { mean: given.mean()? })
}

fn read_bimodal(given: &mut Parameters<'_>) -> Result<Kind, String> {
    let (first, second) = (given.service("first span")?, given.service("second span")?);
    let share = given.share("share of the first")?;
    let second = Mode { value: second, share: 1.0 - share, up_to: 1.0 };
    Ok(Kind::Bimodal([Mode { value: first, share, up_to: share }, second]))
}

fn read_multimodal(given: &mut Parameters<'_>) -> Result<Kind, String> {
    let mut modes: Vec<Mode> = Vec::new();
    while modes.is_empty() || !given.is_at_end() {
        let (value, share) = given.mode()?;
        let up_to = share + modes.last().map_or(0.0, |last| last.up_to);
        modes.push(Mode { value, share, up_to });
    }
    super::text::add_up(modes.iter().map(|mode| mode.share), "shares")?;
    Ok(Kind::Multimodal(modes.into()))
}

fn read_lognormal(given: &mut Parameters<'_>) -> Result<Kind, String> {
    let (mean, sigma) = (given.mean()?, given.number_within("sigma", 0.001, 10.0)?);
    let location = libm::log(mean.0 as f64) - sigma * sigma / 2.0;
    Ok(Kind::Lognormal { mean, sigma, location })
}

fn read_pareto(given: &mut Parameters<'_>) -> Result<Kind, String> {
    let (mean, alpha) = (given.mean()?, given.number_within("alpha", 1.001, 1_000.0)?);
    Ok(Kind::Pareto { mean, alpha, scale: mean.0 as f64 * (alpha - 1.0) / alpha })
}

fn read_uniform(given: &mut Parameters<'_>) -> Result<Kind, String> {
    let (low, high) = (given.service("low end")?, given.service("high end")?);
    if low > high {
        return Err(format!("the low end {} is above the high end {}", show_span(low), show_span(high)));
    }
    Ok(Kind::Uniform { low, high })
}

fn read_keys(given: &mut Parameters<'_>) -> Result<Kind, String> {
    let per_key = given.service("time per key")?;
    let mean_keys = given.number_within("mean number of keys", 0.001, 1e9)?;
    let base = if given.is_at_end() { Nanos(0) } else { given.span("base")? };
    let most = if given.is_at_end() { None } else { Some(read_most_keys(given)?) };
    let most_keys = most.unwrap_or_else(|| libm::ceil(mean_keys * EXPONENTIAL_MAX) as u64);
    if base + per_key.times(most_keys) > SERVICE_MAX {
        let most = show_span(SERVICE_MAX);
        return Err(format!("{most_keys} keys, the most that can be drawn, take longer than {most}"));
    }
    Ok(Kind::Keys { per_key, mean_keys, base, most })
}

fn read_most_keys(given: &mut Parameters<'_>) -> Result<u64, String> {
    let most = given.number_within("largest number of keys", 1.0, MOST_KEYS_MAX)?;
    if most.fract() != 0.0 {
        return Err(format!("the largest number of keys is whole, not {most}"));
    }
    Ok(most as u64)
}

/// Turns a draw of an exponential distribution with mean 1 into a draw of the same distribution restricted
/// to values below `most`.
fn below(drawn: f64, most: f64) -> f64 {
    -libm::log1p(libm::expm1(-drawn) * -libm::expm1(-most))
}

fn read_cdf(text: &str, file: &str, folder: &Path) -> Result<Service, WorkloadError> {
    if file.is_empty() {
        return Err(bad(text, &format!("the file is missing; write it as {USAGE_CDF}")));
    }
    let points = Arc::new(Empirical::read(&folder.join(file))?);
    Ok(Service(Kind::Empirical { label: text.into(), points }))
}

fn read_profile(text: &str, rest: &str, folder: &Path) -> Result<Service, WorkloadError> {
    let named = rest.rsplit_once(':').filter(|(file, name)| !file.is_empty() && !name.is_empty());
    let Some((file, name)) = named else {
        return Err(bad(text, &format!("the file or the type is missing; write it as {USAGE_PROFILE}")));
    };
    let profile = Profile::find(file, folder)?;
    let points = profile.distribution(name).map_err(|why| bad(text, &why))?;
    Ok(Service(Kind::Empirical { label: text.into(), points: Arc::new(points) }))
}

fn bad(text: &str, why: &str) -> WorkloadError {
    WorkloadError::Service { text: text.to_owned(), why: why.to_owned() }
}
