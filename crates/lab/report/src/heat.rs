//! A number over two settings as a table with coloured cells: the larger the number, the stronger the
//! colour, on a logarithmic scale.

use sluice_outcome::study::HeatMap;

use super::html::{Html, tag};
use super::show;

/// The strongest colour: `style.css` has a class for each from 0. A style attribute would not do, since the
/// dashboard's policy forbids them.
pub(super) const LEVEL_MAX: f64 = 14.0;

pub(super) fn heat(html: &mut Html, map: &HeatMap, before: &str) {
    let strength = strengths(map);
    html.element(tag("section").with("id", format_args!("{before}heat-{}", map.id)), |html| {
        html.leaf("h2", &map.title);
        html.element(tag("div").with("class", "wide"), |html| {
            html.element(tag("table").with("class", "heat"), |html| {
                html.leaf("caption", format_args!("{} → by {} ↓", map.across.name, map.down.name));
                html.element("thead", |html| head(html, map));
                html.element("tbody", |html| rows(html, map, &strength));
            });
        });
    });
    html.line();
}

fn head(html: &mut Html, map: &HeatMap) {
    html.element("tr", |html| {
        html.leaf(tag("th").with("scope", "col"), "");
        for value in &map.across.values {
            html.leaf(tag("th").with("scope", "col"), show::whole(*value));
        }
    });
}

fn rows(html: &mut Html, map: &HeatMap, strength: &impl Fn(f64) -> u8) {
    for (value, row) in map.down.values.iter().zip(&map.cells) {
        html.element("tr", |html| {
            html.leaf(tag("th").with("scope", "row"), show::whole(*value));
            for number in row {
                let level = strength(number.value);
                html.element(tag("td").with("class", format_args!("heat-{level}")), |html| {
                    html.leaf("b", show::quantity(number.value, map.unit));
                    if let Some(interval) = show::interval(number, map.unit) {
                        html.verbatim(" ");
                        html.leaf("small", interval);
                    }
                });
            }
        });
    }
}

/// The strength of a number's colour: the position of its logarithm between those of the map's extremes.
pub(super) fn strengths(map: &HeatMap) -> impl Fn(f64) -> u8 {
    let magnitude = |value: f64| value.max(f64::MIN_POSITIVE).ln();
    let extremes = map.numbers().map(|(_, _, number)| magnitude(number.value));
    let (low, high) = extremes.fold((f64::MAX, f64::MIN), |(low, high), m| (low.min(m), high.max(m)));
    move |value| {
        let part = if high > low { (magnitude(value) - low) / (high - low) } else { 0.0 };
        (LEVEL_MAX * part).round() as u8
    }
}
