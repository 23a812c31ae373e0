//! A sheet as a PDF of one page. Its font is a part of it, as outlines that publishers accept (CID, not
//! Type 3).

use krilla::color::rgb;
use krilla::configure::{ConfigurationBuilder, PdfVersion};
use krilla::geom::{Path, PathBuilder, Point};
use krilla::metadata::Metadata;
use krilla::num::NormalizedF32;
use krilla::page::PageSettings;
use krilla::paint::{Fill, FillRule, LineJoin, Stroke, StrokeDash};
use krilla::surface::Surface;
use krilla::{Document, SerializeSettings};

use super::error::FigureError;
use super::origin::FigureOrigin;
use super::sheet::{Anchor, Ink, Outline, Pen, PenMove, Sheet, SheetItem, SheetText};
use super::typeface::Typeface;

/// TeX includes this version without a warning.
const VERSION: PdfVersion = PdfVersion::Pdf15;

/// The file of a sheet. It holds no date: one study and one commit give the same bytes.
pub(super) fn pdf(sheet: &Sheet, typeface: &Typeface, origin: &FigureOrigin) -> Result<Vec<u8>, FigureError> {
    let refused = |why: String| FigureError::Pdf { why };
    let configuration = ConfigurationBuilder::new().with_version(VERSION).finish();
    let configuration = configuration.map_err(|why| refused(format!("{why:?}")))?;
    let settings = SerializeSettings { configuration, ..SerializeSettings::default() };
    let mut document = Document::new_with(settings);
    let metadata = Metadata::new()
        .title(origin.title.clone())
        .description(origin.lines.join("; "))
        .creator(origin.creator.clone())
        .keywords(origin.keywords.clone())
        .language("en".to_owned());
    document.set_metadata(metadata);
    let size = PageSettings::from_wh(sheet.width as f32, sheet.height as f32);
    let size = size.ok_or_else(|| refused("its page has no area".to_owned()))?;
    let mut page = document.start_page_with(size);
    let mut surface = page.surface();
    for item in &sheet.items {
        match item {
            SheetItem::Path { outline, fill, pen } => path(&mut surface, outline, *fill, pen.as_ref()),
            SheetItem::Text(of) => text(&mut surface, of, typeface),
        }
    }
    surface.finish();
    page.finish();
    document.finish().map_err(|why| refused(format!("{why:?}")))
}

fn path(surface: &mut Surface<'_>, outline: &Outline, fill: Option<Ink>, pen: Option<&Pen>) {
    let Some(path) = built(outline) else { return };
    surface.set_fill(fill.map(filled));
    surface.set_stroke(pen.map(|pen| Stroke {
        paint: colour(pen.ink).into(),
        width: pen.width as f32,
        line_join: LineJoin::Round,
        dash: (!pen.dashes.is_empty()).then(|| StrokeDash {
            array: pen.dashes.iter().map(|length| *length as f32).collect(),
            offset: 0.0,
        }),
        ..Stroke::default()
    }));
    surface.draw_path(&path);
}

fn built(outline: &Outline) -> Option<Path> {
    let mut path = PathBuilder::new();
    for step in &outline.moves {
        match step {
            PenMove::To(x, y) => path.move_to(*x as f32, *y as f32),
            PenMove::Line(x, y) => path.line_to(*x as f32, *y as f32),
            PenMove::Curve(of) => {
                let [x1, y1, x2, y2, x, y] = of.map(|at| at as f32);
                path.cubic_to(x1, y1, x2, y2, x, y);
            }
            PenMove::Close => path.close(),
        }
    }
    path.finish()
}

fn text(surface: &mut Surface<'_>, of: &SheetText, typeface: &Typeface) {
    let width = typeface.width(&of.text, of.size);
    let start = match of.anchor {
        Anchor::Start => of.x,
        Anchor::Middle => of.x - width / 2.0,
        Anchor::End => of.x - width,
    };
    surface.set_stroke(None);
    surface.set_fill(Some(filled(of.ink)));
    let (place, glyphs) = (Point::from_xy(start as f32, of.y as f32), typeface.glyphs(&of.text));
    surface.draw_glyphs(place, &glyphs, typeface.font(), &of.text, of.size as f32, false);
}

fn filled(ink: Ink) -> Fill {
    Fill { paint: colour(ink).into(), opacity: NormalizedF32::ONE, rule: FillRule::default() }
}

fn colour(ink: Ink) -> rgb::Color {
    let [red, green, blue] = ink.rgb();
    rgb::Color::new(red, green, blue)
}
