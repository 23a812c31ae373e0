//! What a load's tasks carry.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_services::rocks::GET_KEYS_MAX;

use super::keys;

/// What a task carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RequestForm", into = "RequestForm")]
pub enum Request {
    /// Keys to read.
    Get {
        /// How many; the mean if they are spread.
        keys: u32,
        /// How the number varies.
        spread: Spread,
        /// The expected time of one key. Clients calculate a task's size from it.
        each: Option<Duration>,
    },
    /// Rows to scan from a random key on.
    Scan {
        /// How many; the mean if they are spread.
        rows: u32,
        /// How the number varies.
        spread: Spread,
        /// The expected time of one row.
        each: Option<Duration>,
    },
    /// A span for `spin` or `hold`.
    Busy {
        /// How long; the mean if it is spread.
        span: Duration,
        /// How the span varies.
        spread: Spread,
    },
    /// This text, for programs of your own.
    Text(String),
}

/// How the size of requests varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    #[default]
    Constant,
    /// Exponentially.
    Exponential,
}

/// What a task of a type carries: one of keys, rows, a span and a text.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RequestForm {
    #[serde(deserialize_with = "keys::some_whole::<_, _, 1, { GET_KEYS_MAX as u64 }>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<u32>,
    #[serde(deserialize_with = "keys::some_whole::<_, _, 1, 100_000>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u32>,
    #[serde(with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    busy: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(with = "keys::some_text", skip_serializing_if = "Option::is_none")]
    each: Option<Duration>,
    #[serde(skip_serializing_if = "is_constant")]
    spread: Spread,
}

impl TryFrom<RequestForm> for Request {
    type Error = String;

    fn try_from(form: RequestForm) -> Result<Self, String> {
        let RequestForm { keys, rows, busy, text, each, spread } = form;
        if each.is_some() && keys.is_none() && rows.is_none() {
            return Err("`each` says what a key or row is expected to take: give `keys` or `rows`".to_owned());
        }
        match (keys, rows, busy, text) {
            (Some(keys), None, None, None) => Ok(Self::Get { keys, spread, each }),
            (None, Some(rows), None, None) => Ok(Self::Scan { rows, spread, each }),
            (None, None, Some(span), None) => Ok(Self::Busy { span, spread }),
            (None, None, None, Some(text)) => Ok(Self::Text(text)),
            _ => Err("needs exactly one of keys, rows, busy, text".to_owned()),
        }
    }
}

impl From<Request> for RequestForm {
    fn from(request: Request) -> Self {
        let none = Self::default();
        match request {
            Request::Get { keys, spread, each } => Self { keys: Some(keys), spread, each, ..none },
            Request::Scan { rows, spread, each } => Self { rows: Some(rows), spread, each, ..none },
            Request::Busy { span, spread } => Self { busy: Some(span), spread, ..none },
            Request::Text(text) => Self { text: Some(text), ..none },
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_constant(spread: &Spread) -> bool {
    *spread == Spread::Constant
}
