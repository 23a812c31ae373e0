//! Why a figure cannot be made.

/// How many figures a message names.
const LISTED_MAX: usize = 40;

/// Why a figure cannot be made, as one line that says what to write instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FigureError {
    /// No figure has this name.
    #[error("no figure is named {name}; there are {}", listed(known))]
    NoSuchFigure {
        /// The name that was asked for.
        name: String,
        /// The names of all figures of the study.
        known: Vec<String>,
    },
    /// The study has no picture.
    #[error("the study {study} has no point yet, and so no figure")]
    NoFigures {
        /// The study's name.
        study: String,
    },
    /// A series that should be shown is not in the picture.
    #[error("--only {name}: {figure} has no such series; it has {}", known.join(", "))]
    NoSuchSeries {
        /// What was asked for.
        name: String,
        /// The figure's name.
        figure: String,
        /// The labels of its series.
        known: Vec<String>,
    },
    /// The series that should be shown have no point in the picture.
    #[error("--only {only}: {figure} has no point of these series: choose others, or another figure")]
    NoPoints {
        /// What was asked for.
        only: String,
        /// The figure's name.
        figure: String,
    },
    /// A size without unit or number.
    #[error("--size {text}: write a width and its unit, such as 3.3in, 84mm or 240pt, or both: 3.3inx2in")]
    SizeUnreadable {
        /// What was written.
        text: String,
    },
    /// A size that no page has.
    #[error("--size {text}: figures are {} to {} in wide, {} to {} in high", wide.0, wide.1, high.0, high.1)]
    SizeOutOfRange {
        /// What was written.
        text: String,
        /// The narrowest and the widest figure, in inches.
        wide: (f64, f64),
        /// The lowest and the highest figure, in inches.
        high: (f64, f64),
    },
    /// Texts leave no room for the picture.
    #[error(
        "{figure} at this size has no room for its curves or cells beside its texts: show fewer series with \
         --only, if it has several, or give it more room, as in --size {width}inx{wanted:.1}in"
    )]
    NoRoom {
        /// The figure's name.
        figure: String,
        /// A width that suffices, in inches.
        width: f64,
        /// A height that suffices, in inches.
        wanted: f64,
    },
    /// No page is large enough for it.
    #[error("{figure} needs more room than a page has: its numbers are in the study’s tables")]
    TooLarge {
        /// The figure's name.
        figure: String,
    },
    /// What should be a font is none.
    #[error("{file} is no TrueType or OpenType font: name a .ttf or .otf file, or leave --font away")]
    NoFont {
        /// The file's name.
        file: String,
    },
    /// The font's licence forbids what a figure does with it.
    #[error("{file} may not be embedded, as its own tables say: name another font, or leave --font away")]
    NotEmbeddable {
        /// The file's name.
        file: String,
    },
    /// The font lacks a glyph.
    #[error("the font {family} has no glyph for {letter}: name a font that has it with --font FILE.ttf")]
    NoGlyph {
        /// The font's family.
        family: String,
        /// The character.
        letter: char,
    },
    /// The limit does not suit what the picture shows.
    #[error("--slo is a latency, and {figure} does not show latencies")]
    NoLatency {
        /// The figure's name.
        figure: String,
    },
    /// The PDF writer refused.
    #[error("the PDF cannot be written: {why}; the SVG can")]
    Pdf {
        /// Its reason.
        why: String,
    },
}

/// The first names, and how many more there are.
fn listed(known: &[String]) -> String {
    let first = known[..known.len().min(LISTED_MAX)].join(", ");
    let more = known.len().saturating_sub(LISTED_MAX);
    if more > 0 { format!("{first} and {more} more, all told by --figure list") } else { first }
}
