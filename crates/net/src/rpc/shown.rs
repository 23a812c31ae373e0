//! Text from others, made fit to be shown.
//!
//! Whoever is at the other end of a line may send any text, and it goes to logs, terminals and JSON. What
//! could end a line, command a terminal or turn the order of letters round is written out as an escape, and
//! what is too long is cut. Names are checked where they come in
//! ([`check_name`](sluice_control::check_name)); this is for sentences, and for names that somebody else
//! should have checked.

use super::v1;

/// The longest text that is shown, in characters.
const LETTERS_MAX: usize = 4_000;

/// `text` as it may be shown.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len().min(LETTERS_MAX));
    for (place, letter) in text.chars().enumerate() {
        if place == LETTERS_MAX {
            shown.push('…');
            break;
        }
        match letter {
            // Harmless, and what people quote with.
            '"' | '\'' | '\\' => shown.push(letter),
            _ => shown.extend(letter.escape_debug()),
        }
    }
    shown
}

impl v1::StatusResponse {
    /// With all text as it may be shown.
    #[must_use]
    pub fn shown(mut self) -> Self {
        if let Some(switch) = &mut self.switch {
            show(&mut switch.at);
            switch.counters.iter_mut().for_each(|counter| show(&mut counter.name));
        }
        for slice in &mut self.slices {
            show(&mut slice.name);
            slice.classes.iter_mut().flat_map(|class| &mut class.needs).for_each(show);
        }
        for worker in &mut self.workers {
            show_both(&mut worker.name, &mut worker.at);
            worker.labels.iter_mut().for_each(show);
        }
        self.clients.iter_mut().for_each(|client| show_both(&mut client.name, &mut client.at));
        self.servers.iter_mut().for_each(|server| show_both(&mut server.name, &mut server.at));
        self.refused.iter_mut().for_each(|counter| show(&mut counter.name));
        self.type_names.iter_mut().for_each(|of| show(&mut of.name));
        self
    }
}

impl v1::WatchResponse {
    /// With all text as it may be shown.
    #[must_use]
    pub fn shown(mut self) -> Self {
        show_both(&mut self.kind, &mut self.text);
        if let Some(interval) = &mut self.interval {
            show(&mut interval.server);
        }
        if let Some(step) = &mut self.step {
            show(&mut step.slice);
            if let Some(lending) = &mut step.lending {
                show(&mut lending.from);
            }
        }
        self
    }
}

fn show(text: &mut String) {
    *text = shown(text);
}

fn show_both(one: &mut String, other: &mut String) {
    show(one);
    show(other);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sluice_control::check_name;

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
            let hidden = |letter: char| {
                letter.is_control()
                    || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
            };
            prop_assert!(!shown.contains(hidden), "{shown:?}");
        }

        #[test]
        fn a_name_is_shown_as_it_is(text in "[a-z0-9][A-Za-z0-9_./:@+-]{0,63}") {
            prop_assert!(check_name(&text).is_ok());
            prop_assert_eq!(shown(&text), text);
        }
    }
}
