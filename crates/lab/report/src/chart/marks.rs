//! Markers, and numbers in SVG.

use std::fmt;

use crate::html::{Html, tag};
use crate::series_style::{Marker, SeriesStyle};

/// A coordinate with one decimal, which is finer than any screen shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Px(pub(crate) f64);

impl fmt::Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = libm::round(self.0 * 10.0) as i64;
        match (tenths, tenths % 10) {
            (_, 0) => write!(f, "{}", tenths / 10),
            (-9..=-1, _) => write!(f, "-0.{}", -tenths),
            _ => write!(f, "{}.{}", tenths / 10, (tenths % 10).abs()),
        }
    }
}

/// The outline of a marker of about radius `r`.
pub(super) fn outline(marker: Marker, x: f64, y: f64, r: f64) -> String {
    let Some(corners) = corners(marker) else {
        let (left, r, d) = (Px(x - r), Px(r), Px(2.0 * r));
        return format!("M{left} {}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z", Px(y));
    };
    let points = corners.iter().map(|(dx, dy)| format!("{} {}", Px(x + dx * r), Px(y + dy * r)));
    format!("M{}z", points.collect::<Vec<_>>().join("L"))
}

/// The corners of a marker of about radius 1 around its middle; `None` for the circle.
pub(crate) const fn corners(marker: Marker) -> Option<&'static [(f64, f64)]> {
    Some(match marker {
        Marker::Circle => return None,
        Marker::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        Marker::Up => &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
        Marker::Down => &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
        Marker::Right => &[(1.2, 0.0), (-0.8, 1.1), (-0.8, -1.1)],
        Marker::Left => &[(-1.2, 0.0), (0.8, 1.1), (0.8, -1.1)],
        Marker::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
        Marker::Star => &[
            (0.0, -1.4),
            (0.4, -0.4),
            (1.4, 0.0),
            (0.4, 0.4),
            (0.0, 1.4),
            (-0.4, 0.4),
            (-1.4, 0.0),
            (-0.4, -0.4),
        ],
    })
}

/// The paper's marker: six rays, a shape that no series has.
pub(super) fn rays(x: f64, y: f64, r: f64) -> String {
    let rays = [(0.0, 1.0), (0.87, 0.5), (0.87, -0.5)].map(|(dx, dy)| {
        let (dx, dy) = (dx * r, dy * r);
        format!("M{} {}L{} {}", Px(x - dx), Px(y - dy), Px(x + dx), Px(y + dy))
    });
    rays.concat()
}

/// What a legend's entry shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swatch {
    /// A line with its marker and band.
    Line,
    /// A line with its band.
    LineOnly,
    /// A marker with its interval.
    Marks,
    /// A hollow marker on a faint line.
    Hollow,
    Paper,
    Bar,
    HollowBar,
}

/// Draws a legend's entry. It is hidden from screen readers, since the text beside it says the same.
pub(crate) fn swatch(html: &mut Html, kind: Swatch, look: SeriesStyle) {
    const MIDDLE: (f64, f64) = (19.0, 8.0);
    let svg = tag("svg").with("class", format_args!("swatch {}", look.class())).with("viewBox", "0 0 38 16");
    html.element(svg.with("aria-hidden", "true"), |html| {
        let line = |class| tag("path").with("class", class).with("d", "M1 8H37");
        match kind {
            Swatch::Line | Swatch::LineOnly => {
                html.lone(tag("path").with("class", "band").with("d", "M1 4H37V12H1z"));
                html.lone(look.dashed(line("line")));
            }
            Swatch::Hollow => html.lone(line("line faint")),
            Swatch::Marks => {
                html.lone(tag("path").with("class", "bar").with("d", "M19 1V15M16 1H22M16 15H22"));
            }
            Swatch::Bar | Swatch::HollowBar => {
                let class = if kind == Swatch::Bar { "fill" } else { "fill hollow" };
                html.lone(tag("path").with("class", class).with("d", "M1 3H37V13H1z"));
                return;
            }
            Swatch::Paper => {
                let rays = rays(MIDDLE.0, MIDDLE.1, 6.0);
                html.lone(tag("path").with("class", "halo").with("d", &rays));
                html.lone(tag("path").with("class", "rays").with("d", &rays));
                return;
            }
        }
        if kind == Swatch::LineOnly {
            return;
        }
        let class = if kind == Swatch::Hollow { "mark hollow" } else { "mark" };
        html.lone(tag("path").with("class", class).with("d", outline(look.marker, MIDDLE.0, MIDDLE.1, 4.0)));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_have_one_digit_at_most() {
        let shown = [0.0, -0.04, -0.26, 12.34, -7.06, 100.0].map(|px| Px(px).to_string());
        assert_eq!(shown, ["0", "0", "-0.3", "12.3", "-7.1", "100"]);
    }
}
