//! Reading the fields of messages that came from outside: nothing about them is certain.

use std::fmt;
use std::net::SocketAddr;

use sluice_wire::Endpoint;
use tonic::Status;

/// A field of a message that does not hold what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    field: &'static str,
    why: String,
}

impl Malformed {
    pub(crate) fn new(field: &'static str, why: impl Into<String>) -> Self {
        Self { field, why: why.into() }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "field {}: {}", self.field, self.why)
    }
}

impl From<Malformed> for Status {
    fn from(malformed: Malformed) -> Self {
        Self::invalid_argument(malformed.to_string())
    }
}

/// A number that has to fit a smaller type.
pub(crate) fn number<T: TryFrom<u32>>(field: &'static str, value: u32) -> Result<T, Malformed> {
    T::try_from(value).map_err(|_| Malformed::new(field, format!("{value} is too large")))
}

/// Something that has to be there.
pub(crate) fn present<T>(field: &'static str, value: Option<T>) -> Result<T, Malformed> {
    value.ok_or_else(|| Malformed::new(field, "is missing"))
}

/// An address and port.
pub(crate) fn endpoint(field: &'static str, text: &str) -> Result<Endpoint, Malformed> {
    match text.parse::<SocketAddr>() {
        Ok(at) => Ok(at.into()),
        Err(_) => Err(Malformed::new(field, format!("{text:?} is not IP:PORT"))),
    }
}

/// An address and port that others can send to.
pub(crate) fn reachable(field: &'static str, text: &str) -> Result<Endpoint, Malformed> {
    let at = endpoint(field, text)?;
    let address = SocketAddr::from(at);
    if address.ip().is_unspecified() || address.port() == 0 {
        return Err(Malformed::new(
            field,
            format!("nobody can send to {address}; bind to one address and port"),
        ));
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_nobody_can_send_to_is_malformed() {
        for text in ["0.0.0.0:9", "127.0.0.1:0", "[::]:9", "localhost:9", ""] {
            assert!(reachable("at", text).is_err(), "{text}");
        }
        assert_eq!(reachable("at", "[::1]:9").unwrap().to_string(), "[::1]:9");
    }
}
