//! A drawing of lines and text, in points of 1/72 inch from the upper left corner. SVG and PDF are written
//! from the same sheet.

use super::typeface::Typeface;
use crate::series_style::SeriesStyle;

/// How far apart two baselines are, in sizes of the text.
pub(super) const LINE_HEIGHT: f64 = 1.3;

/// A drawing.
#[derive(Clone, Debug)]
pub(super) struct Sheet {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) items: Vec<SheetItem>,
}

/// Something on a sheet; later ones lie above earlier ones.
#[derive(Clone, Debug)]
pub(super) enum SheetItem {
    Path { outline: Outline, fill: Option<Ink>, pen: Option<Pen> },
    Text(SheetText),
}

/// A line of text.
#[derive(Clone, Debug)]
pub(super) struct SheetText {
    pub(super) text: String,
    pub(super) x: f64,
    /// The baseline.
    pub(super) y: f64,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    pub(super) ink: Ink,
}

/// Which end of a text stands at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// What lines are drawn with.
#[derive(Clone, Debug)]
pub(super) struct Pen {
    pub(super) ink: Ink,
    pub(super) width: f64,
    /// Lengths of dashes and gaps; none for a whole line.
    pub(super) dashes: Vec<f64>,
}

/// A colour. Inks of series differ in hue only; dashes and markers tell them apart in grey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    Black,
    Soft,
    Grid,
    White,
    /// A grey of this brightness.
    Grey(u8),
    Series(usize),
}

/// The outline of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    pub(super) moves: Vec<PenMove>,
}

/// A step of an outline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PenMove {
    To(f64, f64),
    Line(f64, f64),
    Curve([f64; 6]),
    Close,
}

impl Sheet {
    pub(super) const fn new(width: f64, height: f64) -> Self {
        Self { width, height, items: Vec::new() }
    }

    pub(super) fn stroke(&mut self, outline: Outline, pen: Pen) {
        if !outline.moves.is_empty() {
            self.items.push(SheetItem::Path { outline, fill: None, pen: Some(pen) });
        }
    }

    pub(super) fn fill(&mut self, outline: Outline, fill: Ink, pen: Option<Pen>) {
        self.items.push(SheetItem::Path { outline, fill: Some(fill), pen });
    }

    pub(super) fn text(&mut self, text: SheetText) {
        self.items.push(SheetItem::Text(text));
    }

    /// Writes a line in black; `y` is its baseline.
    pub(super) fn write(&mut self, text: String, (x, y): (f64, f64), size: f64, anchor: Anchor) {
        self.text(SheetText { text, x, y, size, anchor, ink: Ink::Black });
    }

    /// All texts, for the fonts.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter_map(|item| match item {
            SheetItem::Text(text) => Some(text.text.as_str()),
            SheetItem::Path { .. } => None,
        })
    }
}

impl Pen {
    pub(super) const fn whole(ink: Ink, width: f64) -> Self {
        Self { ink, width, dashes: Vec::new() }
    }
}

impl Ink {
    /// Red, green and blue.
    pub(super) const fn rgb(self) -> [u8; 3] {
        const SERIES: [[u8; 3]; 8] = [
            [0x0b, 0x5c, 0xad],
            [0xc2, 0x47, 0x0a],
            [0x00, 0x79, 0x5c],
            [0xa0, 0x37, 0x8f],
            [0x8a, 0x64, 0x00],
            [0x2a, 0x93, 0xc4],
            [0x5b, 0x5b, 0xd6],
            [0x6b, 0x74, 0x80],
        ];
        match self {
            Self::Series(colour) if colour < SERIES.len() => SERIES[colour],
            Self::Black | Self::Series(_) => [0, 0, 0],
            Self::Soft => [0x44, 0x44, 0x44],
            Self::Grid => [0xdd, 0xdd, 0xdd],
            Self::White => [0xff, 0xff, 0xff],
            Self::Grey(brightness) => [brightness; 3],
        }
    }

    pub(super) const fn of(look: SeriesStyle) -> Self {
        Self::Series(look.colour())
    }
}

impl Outline {
    /// A line through places.
    pub(super) fn line(places: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut outline = Self::default();
        outline.add_line(places);
        outline
    }

    /// A closed line through corners.
    pub(super) fn corners(corners: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut outline = Self::line(corners);
        outline.moves.push(PenMove::Close);
        outline
    }

    pub(super) fn circle(x: f64, y: f64, r: f64) -> Self {
        // The length at which four curves differ least from a circle.
        let k = 0.552_284_75 * r;
        let curve =
            |of: [f64; 6]| PenMove::Curve([x + of[0], y + of[1], x + of[2], y + of[3], x + of[4], y + of[5]]);
        Self {
            moves: vec![
                PenMove::To(x + r, y),
                curve([r, k, k, r, 0.0, r]),
                curve([-k, r, -r, k, -r, 0.0]),
                curve([-r, -k, -k, -r, 0.0, -r]),
                curve([k, -r, r, -k, r, 0.0]),
                PenMove::Close,
            ],
        }
    }

    pub(super) fn rectangle(left: f64, top: f64, right: f64, bottom: f64) -> Self {
        Self::corners([(left, top), (right, top), (right, bottom), (left, bottom)])
    }

    pub(super) fn add_line(&mut self, places: impl IntoIterator<Item = (f64, f64)>) {
        for (index, (x, y)) in places.into_iter().enumerate() {
            self.moves.push(if index == 0 { PenMove::To(x, y) } else { PenMove::Line(x, y) });
        }
    }

    /// Draws on from the last place.
    pub(super) fn continue_to(&mut self, (x, y): (f64, f64)) {
        self.moves.push(PenMove::Line(x, y));
    }
}

/// The lines of a text that are no wider than `width`: broken behind spaces and commas, and anywhere in a
/// word that is too long.
pub(super) fn wrapped(text: &str, typeface: &Typeface, size: f64, width: f64) -> Vec<String> {
    let fits = |line: &str| typeface.width(line.trim_end(), size) <= width;
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive([' ', ',']) {
        if !line.is_empty() && !fits(&format!("{line}{word}")) {
            lines.push(std::mem::take(&mut line));
        }
        for letter in word.chars() {
            line.push(letter);
            if !fits(&line) && line.chars().count() > 1 {
                line.pop();
                lines.push(std::mem::replace(&mut line, letter.to_string()));
            }
        }
    }
    lines.push(line);
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}
