//! Markers of points, and rays of stated numbers.

use super::sheet::{Ink, Outline, Pen, Sheet};
use crate::chart::corners;
use crate::series_style::SeriesStyle;

/// The width of a curve, in points.
pub(super) const LINE: f64 = 0.9;
/// About the radius of a marker.
pub(super) const MARK: f64 = 2.1;

/// A marker, filled or hollow.
pub(super) fn mark(sheet: &mut Sheet, look: SeriesStyle, at: (f64, f64), r: f64, is_filled: bool) {
    let ink = Ink::of(look);
    let (fill, pen) =
        if is_filled { (ink, Pen::whole(Ink::White, 0.3)) } else { (Ink::White, Pen::whole(ink, 0.7)) };
    sheet.fill(shape(look, at, r), fill, Some(pen));
}

/// The mark of a stated number: six rays, a shape that no series has.
pub(super) fn rays(sheet: &mut Sheet, x: f64, y: f64, r: f64, ink: Ink) {
    let mut outline = Outline::default();
    for (dx, dy) in [(0.0, r), (0.87 * r, 0.5 * r), (0.87 * r, -0.5 * r)] {
        outline.add_line([(x - dx, y - dy), (x + dx, y + dy)]);
    }
    sheet.stroke(outline.clone(), Pen::whole(Ink::White, 2.2));
    sheet.stroke(outline, Pen::whole(ink, 0.8));
}

/// The outline of a series' marker.
pub(super) fn shape(look: SeriesStyle, (x, y): (f64, f64), r: f64) -> Outline {
    match corners(look.marker) {
        Some(corners) => Outline::corners(corners.iter().map(|(dx, dy)| (x + dx * r, y + dy * r))),
        None => Outline::circle(x, y, r),
    }
}
