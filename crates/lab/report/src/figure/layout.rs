//! What figures are laid out by: their text, their notes and their rim.

use super::error::FigureError;
use super::sheet::wrapped;
use super::size::FigureSize;
use super::typeface::Typeface;
use crate::chart::{Chart, Steps};

/// The empty rim, in points.
pub(super) const RIM: f64 = 2.0;
/// From this width on, in points, a figure spans two columns and has larger text.
const WIDE_FROM: f64 = 330.0;

/// What a figure is drawn from.
pub(super) struct FigureLayout<'l> {
    pub(super) chart: &'l Chart,
    pub(super) name: &'l str,
    pub(super) typeface: &'l Typeface,
    pub(super) notes: Vec<String>,
    pub(super) steps: Steps,
}

impl FigureLayout<'_> {
    /// The size of the text, and of the notes.
    pub(super) fn text_sizes(size: FigureSize) -> (f64, f64) {
        if size.width < WIDE_FROM { (7.0, 6.0) } else { (8.0, 7.0) }
    }

    /// The lines below the axes.
    pub(super) fn note_lines(&self, size: f64, width: f64) -> Vec<String> {
        let notes = self.notes.join(" ");
        if notes.is_empty() { Vec::new() } else { wrapped(&notes, self.typeface, size, width) }
    }

    pub(super) fn no_room(&self, size: FigureSize, wanted: f64) -> FigureError {
        // Rounded up, so that what the message says suffices.
        let wanted = (FigureSize::inches(wanted) * 10.0).ceil() / 10.0;
        let width = (FigureSize::inches(size.width) * 100.0).round() / 100.0;
        FigureError::NoRoom { figure: self.name.to_owned(), width, wanted }
    }
}
