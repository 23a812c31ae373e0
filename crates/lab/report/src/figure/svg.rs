//! A sheet as SVG. All styles are attributes: many programs that read SVG read no style sheet, and would draw
//! everything black.

use std::fmt::Write;

use super::origin::FigureOrigin;
use super::sheet::{Anchor, Ink, Outline, PenMove, Sheet, SheetItem, SheetText};
use super::typeface::Typeface;
use crate::html::{Html, Tag, tag};

/// The file of a sheet.
pub(super) fn svg(sheet: &Sheet, typeface: &Typeface, origin: &FigureOrigin) -> String {
    let mut svg = Html::new();
    svg.verbatim("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let (width, height) = (number(sheet.width), number(sheet.height));
    let family = format!("{}, Arial, Helvetica, sans-serif", quoted(&typeface.family));
    let root = tag("svg")
        .with("xmlns", "http://www.w3.org/2000/svg")
        .with("width", format_args!("{width}pt"))
        .with("height", format_args!("{height}pt"))
        .with("viewBox", format_args!("0 0 {width} {height}"))
        .with("font-family", family)
        .with("role", "img");
    svg.element(root, |svg| {
        svg.line();
        svg.leaf("title", &origin.title);
        svg.line();
        svg.leaf("desc", origin.lines.join("\n"));
        svg.line();
        metadata(svg, origin);
        sheet.items.iter().for_each(|item| self::item(svg, item, typeface));
    });
    svg.line();
    svg.into_string()
}

/// The same in the form that programs for drawings read.
fn metadata(svg: &mut Html, origin: &FigureOrigin) {
    let rdf = tag("rdf:RDF")
        .with("xmlns:rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#")
        .with("xmlns:dc", "http://purl.org/dc/elements/1.1/");
    svg.element("metadata", |svg| {
        svg.element(rdf, |svg| {
            svg.element(tag("rdf:Description").with("rdf:about", ""), |svg| {
                svg.leaf("dc:title", &origin.title);
                svg.leaf("dc:creator", &origin.creator);
                svg.leaf("dc:description", origin.lines.join("; "));
            });
        });
    });
    svg.line();
}

fn item(svg: &mut Html, item: &SheetItem, typeface: &Typeface) {
    match item {
        SheetItem::Text(text) => self::text(svg, text, typeface),
        SheetItem::Path { outline, fill, pen } => {
            let path = tag("path").with("d", path(outline));
            let path = match fill {
                Some(ink) => path.with("fill", colour(*ink)),
                None => path.with("fill", "none"),
            };
            let Some(pen) = pen else { return svg.lone(path) };
            let path = path.with("stroke", colour(pen.ink)).with("stroke-width", number(pen.width));
            let path = path.with("stroke-linejoin", "round");
            let dashes: Vec<String> = pen.dashes.iter().copied().map(number).collect();
            svg.lone(if dashes.is_empty() { path } else { path.with("stroke-dasharray", dashes.join(" ")) });
        }
    }
    svg.line();
}

/// A text with its length, so that another font, where the figure's is not installed, overlaps nothing.
fn text(svg: &mut Html, of: &SheetText, typeface: &Typeface) {
    let text: Tag = tag("text").with("x", number(of.x)).with("y", number(of.y));
    let text = text.with("font-size", number(of.size)).with("fill", colour(of.ink));
    let text = text.with("textLength", number(typeface.width(&of.text, of.size)));
    let text = text.with("lengthAdjust", "spacingAndGlyphs");
    let text = match of.anchor {
        Anchor::Start => text,
        Anchor::Middle => text.with("text-anchor", "middle"),
        Anchor::End => text.with("text-anchor", "end"),
    };
    svg.leaf(text, &of.text);
}

fn path(outline: &Outline) -> String {
    let mut path = String::new();
    for step in &outline.moves {
        // Writing to a string cannot fail.
        let _ = match step {
            PenMove::To(x, y) => write!(path, "M{} {}", number(*x), number(*y)),
            PenMove::Line(x, y) => write!(path, "L{} {}", number(*x), number(*y)),
            PenMove::Curve(of) => {
                let of = of.map(number);
                write!(path, "C{} {} {} {} {} {}", of[0], of[1], of[2], of[3], of[4], of[5])
            }
            PenMove::Close => write!(path, "Z"),
        };
    }
    path
}

/// A font's name as CSS takes it. Without quotes one such as `Source Sans 3`, with a word that begins with a
/// digit, would make the whole list void.
fn quoted(family: &str) -> String {
    format!("'{}'", family.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn colour(ink: Ink) -> String {
    let [red, green, blue] = ink.rgb();
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// A number with at most two decimals, which is finer than any printer's dots.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_font_is_named_as_css_reads_it() {
        assert_eq!(quoted("Source Sans 3"), "'Source Sans 3'");
        assert_eq!(quoted("O'Neil \\ Sons"), "'O\\'Neil \\\\ Sons'");
    }
}
