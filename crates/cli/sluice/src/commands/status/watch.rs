//! `sluice status --watch`: redraws the screen; without a terminal prints a line each time, or a JSON
//! object a line.

use std::io::{self, IsTerminal};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui::crossterm::terminal::{Clear, ClearType, size};
use sluice_support::fail::Outcome;
use sluice_support::print;
use sluice_support::stop::Stop;
use sluice_support::view::Keyboard;

use super::snapshot::{ControllerCallers, StatusSnapshot};
use crate::args::StatusArgs;

/// How often signals are checked between two looks at the rack.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Asks repeatedly until a signal comes or the output is no longer read. A rack that never answered ends
/// the command. If it answered before, the command waits for it, since its absence may be what the user
/// watches.
pub(super) fn run(args: &StatusArgs, askers: &ControllerCallers) -> Outcome<()> {
    let stop = Stop::on_signals()?;
    let began = Instant::now();
    let shown = StatusForm::fitting(args.json);
    let mut first = true;
    while !stop.is_asked() {
        let looked = Instant::now();
        let look = if first { askers.first_look()? } else { askers.look() };
        first = false;
        if !shown.show(began.elapsed(), &look)? {
            break;
        }
        while !stop.is_asked() && looked.elapsed() < args.every {
            if shown.key(LOOK_EVERY) == Some('q') {
                stop.ask();
            }
        }
    }
    Ok(())
}

/// The form in which each status is shown.
enum StatusForm {
    Screen(Screen),
    Lines,
    Json,
}

impl StatusForm {
    fn fitting(json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if json {
            Self::Json
        } else if io::stdout().is_terminal() && !dumb {
            Self::Screen(Screen::open())
        } else {
            Self::Lines
        }
    }

    /// The key that is pressed within `patience`, if keys are read.
    fn key(&self, patience: Duration) -> Option<char> {
        match self {
            Self::Screen(screen) => screen.0.key(patience),
            Self::Lines | Self::Json => {
                thread::sleep(patience);
                None
            }
        }
    }

    /// Shows a look. Returns whether the output is still read.
    fn show(&self, since: Duration, look: &StatusSnapshot) -> Outcome<bool> {
        let since = since.as_secs_f64();
        match self {
            Self::Screen(_) if look.is_whole() => Screen::draw(&look.text()),
            Self::Screen(_) => {
                Screen::draw(&format!("{since:.0} s after the first look:\n\n{}", look.text()))
            }
            Self::Lines => {
                let lines = look.lines().into_iter().map(|said| format!("{since:8.2} s  {said}\n"));
                print::while_read(lines.collect::<String>())
            }
            Self::Json => print::while_read(format_args!("{}\n", look.to_json())),
        }
    }
}

/// The terminal of stdout, overwritten from its first line, and its keyboard.
struct Screen(Keyboard);

impl Screen {
    fn open() -> Self {
        // A terminal that does not support this shows one picture below the other.
        print::while_read(format_args!("{Hide}{}", Clear(ClearType::All))).ok();
        Self(Keyboard::quiet(io::stdout()))
    }

    /// Draws as much as there is room for, and says how much is missing.
    fn draw(text: &str) -> Outcome<bool> {
        let (width, height) = size().unwrap_or((80, 24));
        print::while_read(picture(text, width.into(), height.into()))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        print::while_read(format_args!("{Show}\n")).ok();
    }
}

fn picture(text: &str, width: usize, height: usize) -> String {
    let room = height.saturating_sub(2);
    let lines: Vec<String> = text.lines().flat_map(|line| fitted(line, width)).collect();
    let end = format!("{}\n", Clear(ClearType::UntilNewLine));
    let shown: String = lines.iter().take(room).flat_map(|line| [line, end.as_str()]).collect();
    let more = match lines.len().saturating_sub(room) {
        0 => String::new(),
        1 => "1 more line; ".to_owned(),
        more => format!("{more} more lines; "),
    };
    format!("{}{shown}{}{more}q or Ctrl-C ends it", MoveTo(0, 0), Clear(ClearType::FromCursorDown))
}

/// A line as rows of at most `width` columns. A sentence continues in the next row; a row of a table is
/// cut, with an ellipsis.
fn fitted(line: &str, width: usize) -> Vec<String> {
    let is_short = line.chars().count() <= width;
    if is_short || line.contains("  ") {
        let cut = line.chars().take(if is_short { width } else { width.saturating_sub(1) });
        return vec![cut.chain((!is_short && width > 0).then_some('…')).collect()];
    }
    let mut rows = vec![String::new()];
    for word in line.split(' ') {
        let row = rows.last_mut().expect("there is one from the beginning");
        if row.is_empty() {
            row.push_str(word);
        } else if row.chars().count() + 1 + word.chars().count() <= width {
            row.push(' ');
            row.push_str(word);
        } else {
            rows.push(word.to_owned());
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_folded_and_a_row_of_a_table_is_cut_with_a_sign() {
        assert_eq!(fitted("no controller answers there", 13), ["no controller", "answers there"]);
        assert_eq!(fitted("get-1  get  open", 10), ["get-1  ge…"]);
        assert_eq!(fitted("get-1  get", 10), ["get-1  get"]);
        assert_eq!(fitted("", 10), [""]);
    }

    #[test]
    fn a_picture_says_what_did_not_fit() {
        let picture = picture("switch up\nslice get\nslice scan\n", 6, 3);
        assert!(picture.contains("switch") && !picture.contains("switch up"), "{picture:?}");
        assert!(picture.ends_with("5 more lines; q or Ctrl-C ends it"), "{picture:?}");
    }
}
