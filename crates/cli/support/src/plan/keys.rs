//! How a plan writes the values of its keys: numbers within their ranges, and values with a text of their
//! own.
#![expect(clippy::ref_option, clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Error as _, Visitor};
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serializer};
use sluice_control::{check_label, read_labels, write_labels};
use sluice_host::orchestrator::{Assignment, Lambda};
use sluice_wire::sizes::QUOTA_LIMIT;

use super::stages::RateStages;
use super::target::Target;
use super::threshold::Threshold;
use crate::units;

/// A value that a plan writes as text.
pub(super) trait PlanText: Sized {
    fn read(text: &str) -> Result<Self, String>;
    fn show(&self) -> String;
}

macro_rules! written {
    ($($type:ty: $read:expr, $show:expr;)*) => {$(
        impl PlanText for $type {
            fn read(text: &str) -> Result<Self, String> {
                $read(text)
            }

            fn show(&self) -> String {
                $show(self)
            }
        }
    )*};
}

written! {
    Duration: units::span, |span: &Self| units::span_text(*span);
    SocketAddr: units::address, Self::to_string;
    Lambda: parsed, Self::to_string;
    Assignment: parsed, Self::to_string;
    Target: parsed, Self::to_string;
    Threshold: parsed, Self::to_string;
    RateStages: parsed, Self::to_string;
    // A set of labels: `gpu+ssd`, or `none`.
    Vec<String>: read_labels, |labels: &Self| write_labels(labels);
    // A size: `64MiB`.
    usize: sluice_units::size, |bytes: &Self| sluice_units::show_size(*bytes);
}

fn parsed<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|why: T::Err| why.to_string())
}

pub(super) mod text {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::plan::keys::PlanText;

    pub(crate) fn serialize<T: PlanText, S: Serializer>(of: &T, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&of.show())
    }

    pub(crate) fn deserialize<'de, T: PlanText, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
        T::read(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// An optional value as text.
pub(super) mod some_text {
    use serde::{Deserializer, Serialize as _, Serializer};

    use crate::plan::keys::{PlanText, text};

    pub(crate) fn serialize<T: PlanText, S: Serializer>(of: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
        of.as_ref().map(T::show).serialize(to)
    }

    pub(crate) fn deserialize<'de, T: PlanText, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<T>, D::Error> {
        text::deserialize(from).map(Some)
    }
}

/// A list of values as texts.
pub(super) mod texts {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::plan::keys::PlanText;

    pub(crate) fn serialize<T: PlanText, S: Serializer>(of: &[T], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(of.iter().map(T::show))
    }

    pub(crate) fn deserialize<'de, T: PlanText, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| T::read(text)).collect::<Result<_, _>>().map_err(D::Error::custom)
    }
}

/// A whole number within a range.
pub(super) fn whole<'de, D, T, const FROM: u64, const MOST: u64>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let number = i64::deserialize(from)?;
    let fitting = u64::try_from(number).ok().filter(|number| (FROM..=MOST).contains(number));
    fitting
        .and_then(|number| T::try_from(number).ok())
        .ok_or_else(|| D::Error::custom(format!("{number} is not between {FROM} and {MOST}")))
}

/// An optional whole number within a range.
pub(super) fn some_whole<'de, D, T, const FROM: u64, const MOST: u64>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    whole::<D, T, FROM, MOST>(from).map(Some)
}

/// The number of a ring's entries: a power of two, at most 2^20.
pub(super) fn ring<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let entries: u32 = whole::<D, u32, 1, { 1 << 20 }>(from)?;
    if entries.is_power_of_two() {
        return Ok(entries);
    }
    let next = entries.next_power_of_two();
    Err(D::Error::custom(format!("{entries} is not a power of two; the next is {next}")))
}

/// An optional number of a ring's entries.
pub(super) fn some_ring<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    ring(from).map(Some)
}

/// How many tasks a worker may have.
pub(super) fn quota<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u8>, D::Error> {
    let quota = i64::deserialize(from)?;
    let legal = u8::try_from(quota).ok().filter(|quota| (1..=QUOTA_LIMIT).contains(quota));
    legal.map(Some).ok_or_else(|| {
        D::Error::custom(format!("{quota} is outside 1 to {QUOTA_LIMIT}; 1 or 2 suit most services"))
    })
}

/// A number. In quotes it may have a suffix, such as `"2000k"`.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    struct Number;

    impl Visitor<'_> for Number {
        type Value = f64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number")
        }

        fn visit_i64<E>(self, number: i64) -> Result<f64, E> {
            Ok(number as f64)
        }

        fn visit_f64<E>(self, number: f64) -> Result<f64, E> {
            Ok(number)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<f64, E> {
            sluice_units::number(text).map_err(|_| E::custom("is a string where a number belongs"))
        }
    }
    from.deserialize_any(Number)
}

/// Tasks per second.
pub(super) fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    units::check_rate(number(from)?).map(Some).map_err(D::Error::custom)
}

/// A share from 0 to 1; 0.01 is one in a hundred.
pub(super) fn share<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let share = number(from)?;
    let why = || format!("{share} is not between 0 and 1; 0.01 is one in a hundred");
    (0.0..=1.0).contains(&share).then_some(share).ok_or_else(|| D::Error::custom(why()))
}

/// The factor by which all times are stretched: a whole number from 1 to 1,000,000.
pub(super) fn dilation<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let factor = number(from)?;
    let why = || format!("{factor} is not a whole number from 1 to 1000000; 1 is real time");
    let is_legal = (1.0..=1e6).contains(&factor) && factor.fract() == 0.0;
    is_legal.then_some(factor as u32).ok_or_else(|| D::Error::custom(why()))
}

/// A number as people write it: without a decimal point if the number is whole.
pub(super) fn float<S: Serializer>(number: &f64, to: S) -> Result<S::Ok, S::Error> {
    let is_whole = number.fract() == 0.0 && number.abs() < 1e15;
    if is_whole { to.serialize_i64(*number as i64) } else { to.serialize_f64(*number) }
}

/// An optional number.
pub(super) fn some_float<S: Serializer>(number: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    match number {
        Some(number) => float(number, to),
        None => to.serialize_none(),
    }
}

/// A text that `check` accepts.
fn checked<'de, D: Deserializer<'de>, E: fmt::Display>(
    from: D,
    check: impl Fn(&str) -> Result<(), E>,
) -> Result<String, D::Error> {
    let text = String::deserialize(from)?;
    check(&text).map_err(D::Error::custom)?;
    Ok(text)
}

/// A name that tables can show.
pub(super) fn shown<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    checked(from, super::types::check_shown)
}

/// A policy that real racks can carry out.
pub(super) fn policy<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, |text| super::runs_live::live_program(text).map(drop)).map(Some)
}

/// The faults of sockets, in the form that [`sluice_netem::Rates`] reads.
pub(super) fn faults<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    checked(from, |text| text.parse::<sluice_netem::Rates>().map(drop)).map(Some)
}

/// How a switch waits for packets.
pub(super) fn waiting<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let unknown = |text: &str| sluice_units::unknown("waiting", text, &WAITINGS);
    checked(from, |text| if WAITINGS.contains(&text) { Ok(()) } else { Err(unknown(text)) })
}

/// The ways in which a switch may wait for packets; the first is the default.
pub(super) const WAITINGS: [&str; 3] = ["adaptive", "spin", "block"];

/// The core that a thread stays on.
pub(super) fn core<'de, D: Deserializer<'de>>(from: D) -> Result<Option<usize>, D::Error> {
    some_whole::<D, usize, 0, 1023>(from)
}

/// The labels that a worker has.
pub(super) fn labels<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let labels = Vec::<String>::deserialize(from)?;
    labels.iter().try_for_each(|label| check_label(label)).map_err(D::Error::custom)?;
    Ok(labels)
}

/// A path. A path from a flag may not be UTF-8; such a path is an error, since TOML cannot hold it.
pub(super) fn path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    let is_none = || S::Error::custom(format!("{} is no text: no plan can hold it", path.display()));
    to.serialize_str(path.to_str().ok_or_else(is_none)?)
}

/// An optional path.
pub(super) fn some_path<S: Serializer>(at: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => path(at, to),
        None => to.serialize_none(),
    }
}

/// The most bytes of one WRITE.
pub(super) mod mtu {
    use serde::de::Error as _;
    use serde::{Deserializer, Serialize as _, Serializer};
    use sluice_net::rdma::Mtu;

    use crate::plan::keys::whole;

    pub(crate) fn serialize<S: Serializer>(mtu: &Mtu, to: S) -> Result<S::Ok, S::Error> {
        mtu.bytes().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Mtu, D::Error> {
        let bytes: usize = whole::<D, usize, 0, { 1 << 16 }>(from)?;
        let why = || D::Error::custom(format!("{bytes} is none of 256, 512, 1024, 2048, 4096"));
        Mtu::of_bytes(bytes).ok_or_else(why)
    }
}

/// Reads and shows a choice between two words.
struct TwoWords {
    read: fn(&str) -> Result<bool, String>,
    show: fn(bool) -> &'static str,
}

/// The places of leaves.
const LEAVES: [&str; 2] = ["switch", "server"];
const LEAF: TwoWords =
    TwoWords { read: |text| word("leaf", text, LEAVES), show: |yes| LEAVES[usize::from(yes)] };
/// The kinds of queue pairs: unreliable, and reliable.
const TRANSPORTS: [&str; 2] = ["uc", "rc"];
const TRANSPORT: TwoWords =
    TwoWords { read: |text| word("transport", text, TRANSPORTS), show: |yes| TRANSPORTS[usize::from(yes)] };
const RETRY: TwoWords = TwoWords { read: units::retry, show: units::retry_text };

fn word(what: &str, text: &str, known: [&str; 2]) -> Result<bool, String> {
    let place = known.iter().position(|word| *word == text);
    place.map(|place| place == 1).ok_or_else(|| sluice_units::unknown(what, text, &known))
}

macro_rules! two_words {
    ($($(#[$about:meta])* $name:ident: $words:ident;)*) => {$(
        $(#[$about])*
        pub(super) mod $name {
            use serde::de::Error as _;
            use serde::{Deserialize as _, Deserializer, Serializer};

            use crate::plan::keys::$words;

            pub(crate) fn serialize<S: Serializer>(yes: &bool, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(($words.show)(*yes))
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
                ($words.read)(&String::deserialize(from)?).map_err(D::Error::custom)
            }
        }
    )*};
}

two_words! {
    /// Whether leaves run on servers of their racks.
    leaf: LEAF;
    /// Whether queue pairs are reliable.
    transport: TRANSPORT;
    /// Whether tasks may be tried again.
    retry: RETRY;
}
