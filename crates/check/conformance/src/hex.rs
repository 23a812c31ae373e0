//! Bytes as pairs of hexadecimal digits.

use serde::{Deserialize, Deserializer, Serializer};

/// Bytes as two digits each.
pub fn to_hex(bytes: &[u8]) -> String {
    let digit = |digit: u8| char::from_digit(digit.into(), 16).expect("four bits");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]).collect()
}

/// The bytes in this text; `None` if it is not hexadecimal.
pub fn parse_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

pub(crate) fn hex<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&to_hex(bytes))
}

pub(crate) fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    parse_hex(&text).ok_or_else(|| serde::de::Error::custom("pairs of hexadecimal digits are wanted"))
}
