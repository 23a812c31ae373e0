//! What stands at the foot of a figure of curves or bars, and how intervals were found.

use sluice_outcome::study::Method;

use crate::chart::{Chart, Dot};

/// What a figure says below its axes.
pub(super) struct FigureNotes<'c> {
    pub(super) chart: &'c Chart,
    pub(super) replications: u32,
    /// Whether a value lies outside the picture.
    pub(super) leaves_it: bool,
}

impl FigureNotes<'_> {
    pub(super) fn lines(&self) -> Vec<String> {
        let lost = self.chart.dots().any(|dot| !dot.holds);
        let lost = lost.then(|| "Hollow: load not sustained.".to_owned());
        let above = self.leaves_it.then(|| "Arrow: outside the picture.".to_owned());
        let is_open = |dot: &Dot| dot.has_bar() && dot.of.open_above;
        let open = (self.chart.one_rate().is_none() && self.chart.dots().any(is_open))
            .then(|| "Bar with an arrowhead: no end was found there, or it lies outside.".to_owned());
        [self.interval(), open, lost, above].into_iter().flatten().collect()
    }

    /// What the bars around points are.
    fn interval(&self) -> Option<String> {
        let dots = self.chart.dots().filter(|dot| dot.has_bar());
        let how = intervals_from(dots.map(|dot| dot.of.method), self.replications)?;
        Some(format!("Bars: 95 % intervals{how}."))
    }
}

/// How intervals were found, behind a comma if all were found alike; `None` if there are none.
pub(super) fn intervals_from(all: impl Iterator<Item = Method>, replications: u32) -> Option<String> {
    let mut methods: Vec<Method> = Vec::new();
    for method in all {
        if !methods.contains(&method) {
            methods.push(method);
        }
    }
    Some(match methods[..] {
        [] => return None,
        [Method::Replications] => format!(", from {replications} replications"),
        [Method::Batches] => ", from batches of consecutive tasks".to_owned(),
        [Method::OrderStatistics] => ", from order statistics".to_owned(),
        _ => String::new(),
    })
}
