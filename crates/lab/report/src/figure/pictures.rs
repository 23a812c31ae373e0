//! All pictures of a study that can stand alone.

use sluice_outcome::study::{HeatMap, StudyOutcome};

use super::depths::{self, DepthsRun};
use super::error::FigureError;
use super::heat;
use super::layout::{FigureLayout, FigurePage};
use super::notes::{FigureNotes, intervals_from};
use super::origin::FigureOrigin;
use super::request::FigureRequest;
use super::sheet::Sheet;
use super::typeface::Typeface;
use super::{bars, plot};
use crate::chart::{Chart, Steps};
use crate::depths::said;
use crate::panel::Pictures;
use crate::series_style::SeriesStyles;

/// What a figure can show.
pub(super) enum Picture<'s> {
    /// Curves or bars.
    Chart(Chart),
    /// One run's depths.
    Depths(DepthsRun<'s>),
    Heat(&'s HeatMap),
}

/// All pictures of a study by their figures' names.
pub(super) fn all(study: &StudyOutcome, slo_ns: Option<f64>) -> Vec<(String, Picture<'_>)> {
    let looks = SeriesStyles::of(&study.panels);
    let is_alone = study.panels.len() == 1;
    let whole = |panel: &str, name: &str| if is_alone { name.to_owned() } else { format!("{panel}.{name}") };
    let mut all = Vec::new();
    for panel in &study.panels {
        let charts = Pictures { panel, looks: &looks, slo_ns };
        all.extend(charts.charts().map(|chart| (whole(&panel.id, &chart.name), Picture::Chart(chart))));
    }
    for panel in &study.panels {
        let runs = DepthsRun::all(panel).into_iter();
        all.extend(runs.map(|run| (whole(&panel.id, &run.name), Picture::Depths(run))));
    }
    all.extend(heat::named(study).into_iter().map(|(name, map)| (name, Picture::Heat(map))));
    all
}

impl Picture<'_> {
    /// Whether it has the line of a latency that must be kept.
    pub(super) const fn has_slo(&self) -> bool {
        matches!(self, Self::Chart(Chart { slo: Some(_), .. }))
    }

    /// Leaves only the series with these labels.
    pub(super) fn keep_only(&mut self, figure: &str, only: &str) -> Result<(), FigureError> {
        let no_points = || FigureError::NoPoints { only: only.to_owned(), figure: figure.to_owned() };
        let is_left = match self {
            Self::Chart(chart) => {
                if !only.is_empty() {
                    keep_only(chart, figure, only)?;
                }
                chart.dots().next().is_some()
            }
            _ if only.is_empty() => true,
            Self::Depths(run) => {
                let known: Vec<String> = run.panel.series.iter().map(|series| series.label.clone()).collect();
                chosen(&known, figure, only)?.into_iter().any(|place| known[place] == run.label)
            }
            Self::Heat(_) => false,
        };
        if is_left { Ok(()) } else { Err(no_points()) }
    }

    /// Lets these texts stand for labels of series.
    pub(super) fn rename(&mut self, texts: &[(String, String)]) {
        let rename = |label: &mut String| {
            if let Some((_, text)) = texts.iter().find(|(of, _)| of == label) {
                label.clone_from(text);
            }
        };
        match self {
            Self::Chart(chart) => chart.curves.iter_mut().for_each(|curve| rename(&mut curve.label)),
            Self::Depths(run) => rename(&mut run.text),
            Self::Heat(_) => (),
        }
    }

    /// The picture on a sheet, and where its numbers come from.
    pub(super) fn drawn(
        &self,
        study: &StudyOutcome,
        request: &FigureRequest<'_>,
        typeface: &Typeface,
    ) -> Result<(Sheet, FigureOrigin), FigureError> {
        let page = |notes| FigurePage { name: request.name, typeface, notes };
        let replications = study.settings.replications;
        let origin = |says, places: &[&str]| FigureOrigin::of(study, request.name, says, places);
        match self {
            Self::Chart(chart) => {
                let steps = if request.linear { Steps::Linear } else { chart.usual_steps() };
                let leaves_it = chart.one_rate().is_none() && chart.leaves_it(steps);
                let notes = FigureNotes { chart, replications, leaves_it }.lines();
                let layout = FigureLayout { chart, page: page(notes), steps };
                let sheet = match chart.one_rate() {
                    Some(rate_per_s) => bars::drawn(&layout, rate_per_s, request.size)?,
                    None => plot::drawn(&layout, request.size)?,
                };
                Ok((sheet, origin(chart.said(steps), &chart.places())))
            }
            Self::Depths(run) => {
                let sheet = depths::drawn(run, &page(depths::notes(&run.shown)), request.size)?;
                Ok((sheet, origin(said(run.shown.depths), &[])))
            }
            Self::Heat(map) => {
                let numbers =
                    map.numbers().map(|(_, _, number)| number).filter(|number| number.has_interval());
                let how = intervals_from(numbers.map(|number| number.method), replications);
                let sheet = heat::drawn(map, &page(Vec::new()), how.as_deref(), request.size)?;
                Ok((sheet, origin(heat::said(map), &[])))
            }
        }
    }
}

/// Leaves only the series with these labels, and the numbers that are stated of them.
fn keep_only(chart: &mut Chart, figure: &str, only: &str) -> Result<(), FigureError> {
    let known: Vec<String> = chart.curves.iter().map(|curve| curve.label.clone()).collect();
    let kept = chosen(&known, figure, only)?;
    let looks: Vec<_> = kept.iter().map(|place| chart.curves[*place].look).collect();
    chart.paper.retain(|paper| looks.contains(&paper.look));
    let mut place = 0;
    chart.curves.retain(|_| {
        place += 1;
        kept.contains(&(place - 1))
    });
    Ok(())
}

/// The places of the labels that `only` names.
fn chosen(known: &[String], figure: &str, only: &str) -> Result<Vec<usize>, FigureError> {
    let mut kept = Vec::new();
    let mut rest: Vec<&str> = only.split(',').collect();
    // A label may itself hold commas, as in `rain:2,target=50us`: the longest that is known is meant.
    while !rest.is_empty() {
        let meant = (1..=rest.len()).rev().find_map(|count| {
            let label = rest[..count].join(",");
            let place = known.iter().position(|known| *known == label.trim())?;
            Some((count, place))
        });
        let Some((count, place)) = meant else {
            let (name, known) = (rest[0].trim().to_owned(), known.to_vec());
            return Err(FigureError::NoSuchSeries { name, figure: figure.to_owned(), known });
        };
        kept.push(place);
        rest.drain(..count);
    }
    Ok(kept)
}
