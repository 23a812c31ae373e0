//! Numbers with units, as plans and flags write them.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use crate::plan::Types;

/// Reads a span such as `200us`, `1.5s` or `15s`.
pub fn span(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 6] =
        [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 60e9)];
    let wrong = || format!("`{text}` is not a span: write a number and a unit, such as 200us, 50ms or 1.5s");
    let text_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(text_end);
    let scale = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?.1;
    let ns = number.parse::<f64>().map_err(|_| wrong())? * scale;
    if ns > 1e17 {
        return Err(format!("`{text}` is longer than three years: write a shorter one"));
    }
    Ok(Duration::from_nanos(ns as u64))
}

/// A span as [`span`] reads it, in the largest unit that says it whole.
pub fn span_text(span: Duration) -> String {
    const UNITS: [(&str, u128); 4] = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000), ("ns", 1)];
    let ns = span.as_nanos();
    let (unit, scale) = UNITS.into_iter().find(|(_, scale)| ns.is_multiple_of(*scale)).unwrap_or(("ns", 1));
    format!("{}{unit}", ns / scale)
}

/// Reads a size such as `16MiB`, `64KiB` or `4096`.
pub fn size_bytes(text: &str) -> Result<usize, String> {
    let wrong = || format!("`{text}` is not a size: write bytes, or a number with KiB, MiB or GiB");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale: usize = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.parse::<usize>().ok().and_then(|number| number.checked_mul(scale)).ok_or_else(wrong)
}

/// A size as [`size_bytes`] reads it, in the largest unit that says it whole.
pub fn size_text(bytes: usize) -> String {
    const UNITS: [(&str, usize); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let whole = UNITS.into_iter().find(|(_, scale)| bytes > 0 && bytes.is_multiple_of(*scale));
    whole.map_or_else(|| bytes.to_string(), |(unit, scale)| format!("{}{unit}", bytes / scale))
}

/// Reads tasks per second.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 =
        text.parse().map_err(|_| format!("rate `{text}` is not a number: write tasks per second"))?;
    check_rate(rate)
}

/// Refuses a rate that no sender can keep.
pub fn check_rate(rate: f64) -> Result<f64, String> {
    if rate.is_finite() && rate > 0.0 && rate <= 1e9 {
        Ok(rate)
    } else {
        Err(format!("rate {rate} is not above 0 and at most 1e9: write tasks per second"))
    }
}

/// Reads whether tasks may be tried again: `budget` or `never`.
pub fn retry(text: &str) -> Result<bool, String> {
    match text {
        "budget" => Ok(true),
        "never" => Ok(false),
        _ => Err(format!("retry `{text}` is neither `budget` nor `never`: write one of them")),
    }
}

/// What [`retry`] reads so.
pub const fn retry_text(retry: bool) -> &'static str {
    if retry { "budget" } else { "never" }
}

/// Reads a mix such as `get=0.9,scan=0.1`; the shares must add up to 1.
pub fn mix(text: &str) -> Result<Vec<(String, f64)>, String> {
    let mut shares: Vec<(String, f64)> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (name, share) = part
            .split_once('=')
            .ok_or_else(|| format!("mix `{text}`: `{part}` has no `=`; write it as get=0.9,scan=0.1"))?;
        let share: f64 = share
            .trim()
            .parse()
            .map_err(|_| format!("mix `{text}`: the share `{share}` is not a number; write 0 to 1"))?;
        if !(0.0..=1.0).contains(&share) {
            return Err(format!("mix `{text}`: the share {share} of {name} is not between 0 and 1"));
        }
        if shares.iter().any(|(known, _)| known == name.trim()) {
            return Err(format!("mix `{text}` names {} twice: give each type one share", name.trim()));
        }
        shares.push((name.trim().to_owned(), share));
    }
    let sum: f64 = shares.iter().map(|(_, share)| share).sum();
    if (sum - 1.0).abs() > 1e-6 {
        let sum = (sum * 1e6).round() / 1e6;
        return Err(format!("mix `{text}` adds up to {sum}, not 1: correct the shares"));
    }
    Ok(shares)
}

/// A mix by the names of its types, which may have been given by their numbers.
pub fn named_mix(mix: Vec<(String, f64)>, types: &mut Types) -> Result<Vec<(String, f64)>, String> {
    let mut named: Vec<(String, f64)> = Vec::new();
    for (said, share) in mix {
        let name = types.called(&said)?;
        if named.iter().any(|(known, _)| *known == name) {
            return Err(format!(
                "the mix names `{name}` twice, by its name and by its number: give it one share"
            ));
        }
        named.push((name, share));
    }
    Ok(named)
}

/// Reads `host:port` and resolves it.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text
        .rsplit_once(':')
        .ok_or_else(|| format!("address `{text}` has no port: write HOST:PORT, such as 127.0.0.1:7400"))?;
    port.parse::<u16>()
        .map_err(|_| format!("port `{port}` of address `{text}` is out of range: write 0 to 65535"))?;
    let mut found = text.to_socket_addrs().map_err(|why| {
        format!("address `{text}` does not resolve ({why}): check the name `{host}`, or write an IP address")
    })?;
    found.next().ok_or_else(|| format!("address `{text}` resolves to nothing: write an IP address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_with_their_units() {
        assert_eq!(span("200us"), Ok(Duration::from_micros(200)));
        assert_eq!(span("1.5s"), Ok(Duration::from_millis(1_500)));
        for wrong in ["", "5", "s", "-1s", "5 parsecs", "1e3s", "1..2s"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_mix_must_add_up_to_one() {
        assert_eq!(mix("get=0.9,scan=0.1").map(|shares| shares.len()), Ok(2));
        assert!(mix("get=0.9,scan=0.2").is_err_and(|why| why.contains("adds up to 1.1, not 1")));
        assert!(mix("get=0.5,get=0.5").is_err_and(|why| why.contains("twice")));
        assert!(mix("get").is_err_and(|why| why.contains("no `=`")));
        assert!(mix("get=NaN").is_err_and(|why| why.contains("not between")));
    }

    #[test]
    fn rates_that_no_sender_can_keep_are_refused() {
        assert_eq!(rate("1000"), Ok(1_000.0));
        for wrong in ["0", "-3", "NaN", "inf", "fast", "1e12"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_read_with_binary_units() {
        assert_eq!(size_bytes("16MiB"), Ok(16 << 20));
        assert!(size_bytes("16MB").is_err());
        assert!(size_bytes("99999999999999999GiB").is_err());
    }

    #[test]
    fn an_address_needs_a_port_in_range() {
        assert!(address("127.0.0.1:7400").is_ok());
        assert!(address("127.0.0.1").is_err_and(|why| why.contains("no port")));
        assert!(address("127.0.0.1:70000").is_err_and(|why| why.contains("out of range")));
    }
}
