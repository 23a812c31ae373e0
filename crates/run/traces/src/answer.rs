//! What became of a request: what the collector's answer says, and why there is none.

use std::error::Error;
use std::time::Duration;

use http::response::Parts;
use http::{StatusCode, header};
use prost::Message as _;
use sluice_rpc::why;

use crate::otlp::{ExportAnswer, ExportRefusal};

/// How much of a collector's own words is told, in characters.
const WORDS_MAX: usize = 120;

/// What the collector took of a batch.
pub(crate) enum TakenSpans {
    All,
    /// It refused this many; `why` are its words, if it has any.
    AllBut {
        refused: u64,
        why: String,
    },
}

/// Why a batch was not taken.
pub(crate) struct ExportFailure {
    pub(crate) why: String,
    /// Whether it never will be.
    pub(crate) is_final: bool,
    /// How long the collector asks to be left alone.
    pub(crate) not_before: Duration,
}

impl ExportFailure {
    pub(crate) fn later(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_final: false, not_before: Duration::ZERO }
    }

    /// There was no connection, or no answer on it.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut innermost = error;
        loop {
            if let Some(of_tls) = why::as_rustls(innermost) {
                return Self::later(why::of_other_service(of_tls, "--otlp-ca", "--otlp-identity"));
            }
            match innermost.source() {
                Some(source) => innermost = source,
                None => break,
            }
        }
        match error.downcast_ref::<hyper::Error>() {
            Some(of_http) if of_http.is_parse() => Self::later(
                "its answer is no HTTP: if it speaks TLS, write https://; if it is the port for gRPC, take \
                 that for HTTP",
            ),
            Some(of_http) if of_http.is_incomplete_message() => {
                Self::later("it hangs up without an answer: if it speaks TLS, write https://")
            }
            _ => Self::later(innermost.to_string()),
        }
    }

    pub(crate) fn for_good(self) -> Self {
        Self { is_final: true, ..self }
    }
}

/// What an answer says.
pub(crate) fn taken(head: &Parts, body: &[u8]) -> Result<TakenSpans, ExportFailure> {
    let status = head.status;
    if status.is_success() {
        let partial = ExportAnswer::decode(body).ok().and_then(|answer| answer.partial);
        let refused = partial.as_ref().map_or(0, |partial| u64::try_from(partial.rejected).unwrap_or(0));
        return Ok(match partial {
            Some(partial) if refused > 0 => TakenSpans::AllBut { refused, why: in_words(&partial.why) },
            _ => TakenSpans::All,
        });
    }
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    if status.is_redirection() {
        let to = header(header::LOCATION).map_or_else(String::new, |to| format!(" to {}", told(to)));
        let why = format!("it answers {status}{to}: give the address at which it takes spans with --otlp");
        return Err(ExportFailure::later(why).for_good());
    }
    let refusal = ExportRefusal::decode(body).map(|refusal| refusal.message).ok();
    let words = refusal.filter(|words| !words.is_empty());
    let words = words.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
    let why = format!("it answers {status}{}", in_words(&words));
    // OTLP names these: all others are final.
    let again = [
        StatusCode::TOO_MANY_REQUESTS,
        StatusCode::BAD_GATEWAY,
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::GATEWAY_TIMEOUT,
    ];
    if !again.contains(&status) {
        return Err(ExportFailure::later(why).for_good());
    }
    let seconds = header(header::RETRY_AFTER).and_then(|after| after.trim().parse().ok());
    Err(ExportFailure { not_before: Duration::from_secs(seconds.unwrap_or(0)), ..ExportFailure::later(why) })
}

/// The collector's words behind what is said of it.
fn in_words(words: &str) -> String {
    let first = words.lines().find(|line| !line.trim().is_empty());
    first.map_or_else(String::new, |words| format!(" ({})", told(words.trim())))
}

/// Words from outside, made harmless and short.
fn told(words: &str) -> String {
    words.chars().take(WORDS_MAX).flat_map(char::escape_debug).collect()
}
