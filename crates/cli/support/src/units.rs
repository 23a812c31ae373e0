//! Numbers with units in plans and flags of racks: [`sluice_units`] reads them, and this module checks them
//! for racks.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use sluice_wire::Nanos;

/// The longest span: three years.
const SPAN_MAX: Nanos = Nanos(100_000_000_000_000_000);

/// Reads a span such as `200us`, `1.5s` or `15s`.
pub fn span(text: &str) -> Result<Duration, String> {
    sluice_units::cut_span(text, SPAN_MAX).map(|span| Duration::from_nanos(span.0))
}

/// Writes a span so that [`span`] reads it back.
pub fn span_text(span: Duration) -> String {
    sluice_units::show_span(Nanos(span.as_nanos() as u64))
}

/// Reads tasks per second, such as `500`, `2000k` or `2000krps`.
pub fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("rps").unwrap_or(text);
    check_rate(sluice_units::number(number).map_err(|why| format!("rate `{text}` {why}"))?)
}

/// Refuses a rate that no sender can keep.
pub fn check_rate(rate: f64) -> Result<f64, String> {
    if rate.is_finite() && rate > 0.0 && rate <= 1e9 {
        Ok(rate)
    } else {
        Err(format!("rate {rate} is not above 0 and at most 1e9: write tasks per second"))
    }
}

/// Reads whether tasks may be retried: `budget` or `never`.
pub fn retry(text: &str) -> Result<bool, String> {
    match text {
        "budget" => Ok(true),
        "never" => Ok(false),
        _ => Err(format!("retry `{text}` is neither `budget` nor `never`: write one of them")),
    }
}

/// The text that [`retry`] reads as this value.
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
        let share = sluice_units::share(share.trim())
            .map_err(|why| format!("mix `{text}`: the share of {}: {why}", name.trim()))?;
        if shares.iter().any(|(known, _)| known == name.trim()) {
            return Err(format!("mix `{text}` names {} twice: give each type one share", name.trim()));
        }
        shares.push((name.trim().to_owned(), share));
    }
    let sum = sluice_units::add_up(shares.iter().map(|(_, share)| *share));
    sum.map_err(|sum| format!("mix `{text}` adds up to {sum}, not 1: correct the shares"))?;
    Ok(shares)
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
    fn spans_of_up_to_three_years_are_read_and_shown() {
        for (text, span_ms) in [("1.5s", 1_500), ("200ms", 200), ("94608000s", 94_608_000_000)] {
            assert_eq!(span(text), Ok(Duration::from_millis(span_ms)));
            assert_eq!(span_text(Duration::from_millis(span_ms)), text);
        }
        assert!(span("5").is_err_and(|why| why.contains("is not a span")));
        assert!(span("4000000min").is_err_and(|why| why.contains("longer than")));
    }

    #[test]
    fn a_mix_must_add_up_to_one() {
        assert_eq!(mix("get=0.9,scan=0.1").map(|shares| shares.len()), Ok(2));
        assert!(mix("get=0.9,scan=0.2").is_err_and(|why| why.contains("adds up to 1.1, not 1")));
        assert!(mix("get=0.5,get=0.5").is_err_and(|why| why.contains("twice")));
        assert!(mix("get").is_err_and(|why| why.contains("no `=`")));
        assert!(mix("get=NaN").is_err_and(|why| why.contains("`NaN` is not a share")));
        assert_eq!(mix("get=1/3,scan=2/3").map(|shares| shares[0].1), Ok(1.0 / 3.0));
    }

    #[test]
    fn rates_that_no_sender_can_keep_are_refused() {
        for (text, per_s) in [("1000", 1e3), ("2000k", 2e6), ("2.8M", 2.8e6), ("1e3", 1e3), ("2krps", 2e3)] {
            assert_eq!(rate(text), Ok(per_s));
        }
        for wrong in ["0", "-3", "NaN", "inf", "fast", "1e12", "rps"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_address_needs_a_port_in_range() {
        assert!(address("127.0.0.1:7400").is_ok());
        assert!(address("127.0.0.1").is_err_and(|why| why.contains("no port")));
        assert!(address("127.0.0.1:70000").is_err_and(|why| why.contains("out of range")));
    }
}
