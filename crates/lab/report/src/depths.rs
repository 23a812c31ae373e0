//! What a picture of depths over time shows, on the page and as a figure: the actions of the agent and the
//! slice step in one run.

use sluice_outcome::study::{Panel, Point, Series, SliceDepths, Unit};

use super::show;

/// How many intervals a picture shows.
const INTERVALS_MAX: usize = 400;

/// The points of a panel whose depths were not fixed.
pub(crate) fn adaptive(panel: &Panel) -> impl DoubleEndedIterator<Item = (&Series, &Point)> {
    let points =
        panel.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
    points.filter(|(_, point)| point.depths.len() > 1)
}

/// The intervals of a run that fit in a picture.
#[derive(Clone)]
pub(crate) struct DepthsShown<'d> {
    pub(crate) depths: &'d [SliceDepths],
    /// The slices that occur.
    pub(crate) slices: Vec<u32>,
    pub(crate) ends_ns: f64,
    /// When the run ended.
    whole_ns: f64,
}

/// One of the strips below each other.
pub(crate) struct DepthStrip {
    pub(crate) title: &'static str,
    /// The value at the upper edge.
    pub(crate) most: f64,
    pub(crate) of: fn(&SliceDepths) -> f64,
    /// Whether it shows the range of depths, too, and the marks of decisions.
    pub(crate) is_of_depths: bool,
}

impl<'d> DepthsShown<'d> {
    pub(crate) fn of(depths: &'d [SliceDepths]) -> Self {
        let mut slices: Vec<u32> = depths.iter().map(|depths| depths.slice).collect();
        slices.sort_unstable();
        slices.dedup();
        let ends = |of: &[SliceDepths]| of.iter().map(|of| of.at_ns).max().unwrap_or(0).max(1) as f64;
        let shown = &depths[..depths.len().min(INTERVALS_MAX * slices.len())];
        Self { depths: shown, ends_ns: ends(shown), whole_ns: ends(depths), slices }
    }

    pub(crate) fn of_slice(&self, slice: u32) -> impl Iterator<Item = &'d SliceDepths> {
        self.depths.iter().filter(move |depths| depths.slice == slice)
    }

    /// Which part of the run is shown, if it is not all.
    pub(crate) fn cut_off(&self) -> Option<String> {
        let span = |ns: f64| show::quantity(ns, Unit::Ns);
        let is_cut = self.whole_ns > self.ends_ns;
        is_cut.then(|| format!("the first {} of {}", span(self.ends_ns), span(self.whole_ns)))
    }

    /// The depths first. Older studies and live ones have no responses.
    pub(crate) fn strips(&self) -> Vec<DepthStrip> {
        let most = |of: fn(&SliceDepths) -> f64| self.depths.iter().map(of).fold(1.0, f64::max);
        let slowdown: fn(&SliceDepths) -> f64 = |depths| depths.slowdown_p99;
        let workers: fn(&SliceDepths) -> f64 = |depths| depths.workers.into();
        let response: fn(&SliceDepths) -> f64 = |depths| depths.response_p99_ns / 1e3;
        let strip = |title, most, of| DepthStrip { title, most, of, is_of_depths: false };
        let deepest = most(|depths| depths.depth_max.into()) + 1.0;
        let mut strips = vec![
            DepthStrip { is_of_depths: true, ..strip("depth", deepest, |depths| depths.depth_mean) },
            strip("workers", most(workers) + 1.0, workers),
            strip("p99 slowdown (up to 40)", most(slowdown).min(40.0), slowdown),
            strip("p99 response, µs", most(response), response),
        ];
        strips.truncate(if most(response) > 1.0 { 4 } else { 3 });
        strips
    }
}

/// A summary of all decisions.
pub(crate) fn totals(depths: &[SliceDepths]) -> String {
    let sum = |of: fn(&SliceDepths) -> u32| depths.iter().map(of).sum::<u32>();
    let moves = depths.iter().map(|depths| depths.moves).max().unwrap_or(0);
    format!(
        "{} judgements deeper, {} shallower, {} overloaded; {moves} moves between slices",
        sum(|d| d.deeper),
        sum(|d| d.shallower),
        sum(|d| d.overloaded)
    )
}

/// The picture in words.
pub(crate) fn said(depths: &[SliceDepths]) -> String {
    format!("depth, workers, p99 slowdown and p99 response over time. {}", totals(depths))
}
