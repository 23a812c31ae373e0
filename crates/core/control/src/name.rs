//! Names of slices and hosts: which characters a name may hold.
//!
//! A name is printed as it is in logs, on terminals and in JSON, and any caller of the controller may send
//! one. So it holds no character that could end a line, command a terminal, or look like another character.

use alloc::borrow::ToOwned;
use alloc::string::String;

use thiserror::Error;

/// The longest name, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The characters that a name may hold beside letters and digits.
const MARKS: &str = "-_./:@+";

/// Checks a name.
///
/// # Errors
/// [`NameError`] with what is wrong with it.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { bytes: name.len() });
    }
    match name.chars().find(|letter| !letter.is_ascii_alphanumeric() && !MARKS.contains(*letter)) {
        Some(letter) => Err(NameError::Letter { name: name.to_owned(), letter }),
        None => Ok(()),
    }
}

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Error)]
pub enum NameError {
    #[error("a name needs at least one letter or digit")]
    Empty,
    #[error("a name of {bytes} bytes is too long; {NAME_BYTES_MAX} are the most")]
    TooLong { bytes: usize },
    /// The name holds a character that no name may hold.
    #[error(
        "the name `{}` holds `{}`; a name has the letters a to z and A to Z, digits, and {MARKS}",
        .name.escape_debug(), .letter.escape_debug()
    )]
    Letter {
        name: String,
        /// The first such character.
        letter: char,
    },
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn what_people_call_hosts_and_slices_is_a_name() {
        for name in
            ["w", "get-1", "worker-4711", "rack.b/w_2", "a@b:7000", "c++", &"x".repeat(NAME_BYTES_MAX)]
        {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn what_ends_lines_commands_terminals_or_hides_is_none() {
        for letter in [
            '\n', '\r', '\t', '\0', '\u{1b}', '\u{7f}', '\u{9b}', '\u{202e}', '\u{200b}', '\u{2028}', ' ',
            'ö',
        ] {
            let error = check_name(&alloc::format!("w{letter}1")).unwrap_err();
            assert!(matches!(&error, NameError::Letter { letter: found, .. } if *found == letter));
            assert!(!error.to_string().contains(['\n', '\u{1b}', '\u{202e}']), "{error}");
        }
    }

    #[test]
    fn nothing_and_too_much_are_none() {
        assert_eq!(check_name(""), Err(NameError::Empty));
        assert_eq!(check_name(&"x".repeat(65)), Err(NameError::TooLong { bytes: 65 }));
    }
}
