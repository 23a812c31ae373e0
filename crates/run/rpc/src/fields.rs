//! Reads the fields of messages from outside, which may hold anything.

use std::fmt;
use std::net::SocketAddr;

use sluice_control::check_name;
use sluice_wire::sizes::{QUOTA_LIMIT, QUOTA_MAX};
use sluice_wire::tables::KINDS_MAX;
use sluice_wire::{Endpoint, JOB_TASKS_MAX};
use tonic::Status;

use super::shown;

/// How many characters of an invalid address an error repeats.
const ADDRESS_LETTERS_TOLD: usize = 64;

/// A field of a message with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    field: &'static str,
    why: String,
    is_of_name: bool,
}

impl Malformed {
    /// An error that names the field and the reason.
    pub fn new(field: &'static str, why: impl Into<String>) -> Self {
        Self { field, why: why.into(), is_of_name: false }
    }

    /// Whether the field should have held a name.
    pub const fn is_of_name(&self) -> bool {
        self.is_of_name
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

/// A number that must fit into a smaller type.
pub fn number<T: TryFrom<u32>>(field: &'static str, value: u32) -> Result<T, Malformed> {
    T::try_from(value).map_err(|_| Malformed::new(field, format!("{value} is too large")))
}

/// A submessage that must be present.
pub fn present<T>(field: &'static str, value: Option<T>) -> Result<T, Malformed> {
    value.ok_or_else(|| Malformed::new(field, "is missing"))
}

/// The name of a host or a slice.
pub fn name(field: &'static str, name: String) -> Result<String, Malformed> {
    match check_name(&name) {
        Ok(()) => Ok(name),
        Err(why) => Err(Malformed { field, why: why.to_string(), is_of_name: true }),
    }
}

/// The name of a host or a slice; it may be empty.
pub fn name_or_none(field: &'static str, text: String) -> Result<String, Malformed> {
    if text.is_empty() { Ok(text) } else { name(field, text) }
}

/// An address and port.
pub fn endpoint(field: &'static str, text: &str) -> Result<Endpoint, Malformed> {
    let told = || text.chars().take(ADDRESS_LETTERS_TOLD).collect::<String>();
    let wrong = |_| Malformed::new(field, format!("`{}` is not IP:PORT", shown(&told())));
    text.parse::<SocketAddr>().map(Endpoint::from).map_err(wrong)
}

/// An address and port to which others can send packets.
pub fn reachable(field: &'static str, text: &str) -> Result<Endpoint, Malformed> {
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

/// How many priority classes there are; a sender that states none has one.
pub(super) fn classes(field: &'static str, count: u32) -> Result<u8, Malformed> {
    match number(field, count)? {
        0 => Ok(1),
        count if usize::from(count) <= KINDS_MAX => Ok(count),
        count => Err(Malformed::new(field, format!("is {count}, {KINDS_MAX} are the most"))),
    }
}

/// How many tasks may come in one submission; older senders do not state it.
pub(super) fn jobs(field: &'static str, count: u32) -> Result<u8, Malformed> {
    match number(field, count)? {
        0 => Ok(1),
        count if usize::from(count) <= JOB_TASKS_MAX => Ok(count),
        count => Err(Malformed::new(field, format!("is {count}, {JOB_TASKS_MAX} are the most"))),
    }
}

/// The largest quota that a switch accepts; older switches do not state it.
pub(super) fn quota_max(field: &'static str, said: u32) -> Result<u8, Malformed> {
    match u8::try_from(said) {
        Ok(0) => Ok(QUOTA_MAX),
        Ok(most) if most <= QUOTA_LIMIT => Ok(most),
        _ => Err(Malformed::new(field, format!("is {said}, {QUOTA_LIMIT} is the most"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_none_is_malformed_and_counted_as_such() {
        let wrong = name("name", "w\n1".to_owned()).unwrap_err();
        assert!(wrong.is_of_name());
        assert!(wrong.to_string().starts_with("field name: the name `w\\n1` holds `\\n`"), "{wrong}");
        assert!(name_or_none("slice", String::new()).is_ok() && name("slice", String::new()).is_err());
    }

    #[test]
    fn what_is_no_address_is_repeated_in_part_only() {
        let wrong = endpoint("at", &"\u{1b}".repeat(1 << 20)).unwrap_err().to_string();
        assert!(wrong.len() < 1_000 && !wrong.contains('\u{1b}'), "{wrong}");
    }

    #[test]
    fn an_address_that_nobody_can_send_to_is_malformed() {
        for text in ["0.0.0.0:9", "127.0.0.1:0", "[::]:9", "localhost:9", ""] {
            assert!(reachable("at", text).is_err(), "{text}");
        }
        assert_eq!(reachable("at", "[::1]:9").unwrap().to_string(), "[::1]:9");
    }
}
