//! What figures are laid out by: their text, their notes and their rim.

use super::error::FigureError;
use super::sheet::{Anchor, Ink, LINE_HEIGHT, Sheet, SheetText, wrapped};
use super::size::{FigureSize, HIGH, WIDE};
use super::typeface::Typeface;
use crate::chart::{Chart, Steps};

/// The empty rim, in points.
pub(super) const RIM: f64 = 2.0;
/// From this width on, in points, a figure spans two columns and has larger text.
pub(super) const WIDE_FROM: f64 = 330.0;

/// What a figure of curves or bars is drawn from.
pub(super) struct FigureLayout<'l> {
    pub(super) chart: &'l Chart,
    pub(super) page: FigurePage<'l>,
    pub(super) steps: Steps,
}

/// What figures of all kinds have: a name, a font and notes at the foot.
pub(super) struct FigurePage<'l> {
    pub(super) name: &'l str,
    pub(super) typeface: &'l Typeface,
    pub(super) notes: Vec<String>,
}

impl FigurePage<'_> {
    /// The size of the text, and of the notes, in a figure of this width.
    pub(super) fn text_sizes(width: f64) -> (f64, f64) {
        if width < WIDE_FROM { (7.0, 6.0) } else { (8.0, 7.0) }
    }

    /// Writes what the picture shows, from the upper rim on.
    pub(super) fn write_caption(sheet: &mut Sheet, lines: Vec<String>, size: f64) {
        for (place, line) in lines.into_iter().enumerate() {
            let y = RIM + (place as f64 * LINE_HEIGHT + 1.0) * size;
            sheet.write(line, (RIM, y), size, Anchor::Start);
        }
    }

    /// The lines at the foot.
    pub(super) fn note_lines(&self, size: f64, width: f64) -> Vec<String> {
        let notes = self.notes.join(" ");
        if notes.is_empty() { Vec::new() } else { wrapped(&notes, self.typeface, size, width) }
    }

    /// Writes the lines at the foot.
    pub(super) fn write_notes(sheet: &mut Sheet, notes: Vec<String>, size: f64) {
        let mut y = sheet.height - RIM - (notes.len() as f64 - 0.75) * LINE_HEIGHT * size;
        for text in notes {
            sheet.text(SheetText { text, x: RIM, y, size, anchor: Anchor::Start, ink: Ink::Soft });
            y += LINE_HEIGHT * size;
        }
    }

    /// Says which height suffices for this width.
    pub(super) fn no_room(&self, width: f64, wanted: f64) -> FigureError {
        // Rounded up, so that what the message says suffices.
        let wanted = ((FigureSize::inches(wanted) * 10.0).ceil() / 10.0).max(HIGH.0);
        let width = (FigureSize::inches(width) * 100.0 - 1e-6).ceil() / 100.0;
        if width > WIDE.1 || wanted > HIGH.1 {
            return FigureError::TooLarge { figure: self.name.to_owned() };
        }
        FigureError::NoRoom { figure: self.name.to_owned(), width, wanted }
    }
}

/// The name, or the first with a number behind it that is not known yet.
pub(super) fn unused(name: &str, is_known: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut all = std::iter::once(name.to_owned()).chain(numbered);
    all.find(|name| !is_known(name)).unwrap_or_default()
}
