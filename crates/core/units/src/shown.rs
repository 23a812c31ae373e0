//! Makes text of others fit to be shown.
//!
//! A flag, a file, a plan or a caller may hold any text, and messages quote it in logs, terminals and JSON.
//! Characters that could end a line, command a terminal or reverse the order of letters are escaped. Text
//! that is too long is cut. Text that was made fit once does not change again.

use alloc::string::String;

/// The longest text that is shown, in characters.
const LETTERS_MAX: usize = 4_000;

/// `text`, made fit to be shown.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(LETTERS_MAX));
    for (place, letter) in text.chars().enumerate() {
        if place == LETTERS_MAX {
            shown.push('…');
            break;
        }
        match letter {
            // These are harmless, and people use them for quotes.
            '"' | '\'' | '\\' => shown.push(letter),
            _ => shown.extend(letter.escape_debug()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sentences_stay_as_they_are() {
        let said = "there is no slice \"gte\"; known: get, scan – größer als 5 µs, \\ and 'so'";
        assert_eq!(shown(said), said);
    }

    #[test]
    fn what_ends_lines_or_commands_terminals_is_written_out() {
        assert_eq!(shown("a\nb\r\u{1b}[2J\u{9b}1m"), "a\\nb\\r\\u{1b}[2J\\u{9b}1m");
        assert_eq!(shown("w\u{202e}1\u{2066}\u{200b}\u{feff}"), "w\\u{202e}1\\u{2066}\\u{200b}\\u{feff}");
    }

    #[test]
    fn what_is_too_long_is_cut() {
        assert_eq!(shown(&"é".repeat(LETTERS_MAX + 1)).chars().count(), LETTERS_MAX + 1);
        assert!(shown(&"x".repeat(1 << 20)).ends_with("x…"));
    }

    proptest! {
        #[test]
        fn nothing_that_is_shown_commands_a_terminal(text in any::<String>()) {
            let shown = shown(&text);
            let turning = ['\u{200b}'..='\u{200f}', '\u{2028}'..='\u{202e}', '\u{2060}'..='\u{206f}'];
            let is_turning = |letter: char| turning.iter().any(|range| range.contains(&letter));
            let hidden = |letter: char| letter.is_control() || is_turning(letter) || letter == '\u{feff}';
            prop_assert!(!shown.contains(hidden), "{shown:?}");
        }

        #[test]
        fn what_was_made_fit_stays_as_it_is(text in any::<String>()) {
            prop_assert_eq!(shown(&shown(&text)), shown(&text));
        }
    }
}
