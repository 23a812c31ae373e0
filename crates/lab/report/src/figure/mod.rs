//! One picture of a study alone, for a paper: as SVG and as PDF, readable in grey, with what ran in its
//! metadata.

mod bars;
mod depths;
mod error;
mod heat;
mod layout;
mod legend;
mod origin;
mod pdf;
mod plot;
mod sheet;
mod size;
mod svg;
mod symbols;
mod typeface;

use sluice_outcome::study::{HeatMap, Method, StudyOutcome};

use super::chart::{Chart, Dot, Steps};
use super::depths::said;
use super::panel::Pictures;
use super::series_style::SeriesStyles;
use depths::DepthsRun;
pub use error::FigureError;
use layout::{FigureLayout, FigurePage};
use origin::FigureOrigin;
use sheet::Sheet;
pub use size::FigureSize;
pub use typeface::Typeface;

/// Which figure is wanted, and how.
#[derive(Clone, Debug)]
pub struct FigureRequest<'r> {
    /// One of [`figure_names`].
    pub name: &'r str,
    /// How large it is.
    pub size: FigureSize,
    /// The labels of the series that are shown, as one text with commas; all if it is empty.
    pub only: &'r str,
    /// Whether the vertical axis of times and slowdowns begins at zero, instead of being logarithmic.
    pub linear: bool,
    /// A latency that must be kept, drawn as a line.
    pub slo_ns: Option<f64>,
}

/// A figure that can be written.
#[derive(Clone, Debug)]
pub struct Figure<'f> {
    sheet: Sheet,
    origin: FigureOrigin,
    typeface: &'f Typeface,
}

/// The names of all figures of a study. A name begins with its panel's, if there are several.
pub fn figure_names(study: &StudyOutcome) -> Vec<String> {
    let of_charts = charts(study, None).into_iter().map(|(name, _)| name);
    let of_depths = DepthsRun::of_study(study).map(|(name, _)| name);
    of_charts.chain(of_depths).chain(heat::named(study).into_iter().map(|(name, _)| name)).collect()
}

/// A figure of a study.
pub fn figure<'f>(
    study: &StudyOutcome,
    request: &FigureRequest<'_>,
    typeface: &'f Typeface,
) -> Result<Figure<'f>, FigureError> {
    if let Some((_, map)) = heat::named(study).into_iter().find(|(name, _)| name == request.name) {
        return of_map(study, map, request, typeface);
    }
    if let Some((_, run)) = DepthsRun::of_study(study).find(|(name, _)| name == request.name) {
        return of_depths(study, &run, request, typeface);
    }
    let mut charts = charts(study, request.slo_ns);
    let wanted = charts.iter().position(|(name, _)| name == request.name);
    let Some(wanted) = wanted else {
        let known = figure_names(study);
        return Err(if known.is_empty() {
            FigureError::NoFigures { study: study.name.clone() }
        } else {
            FigureError::NoSuchFigure { name: request.name.to_owned(), known }
        });
    };
    let (name, mut chart) = charts.swap_remove(wanted);
    if request.slo_ns.is_some() && chart.slo.is_none() {
        return Err(FigureError::NoLatency { figure: name });
    }
    keep_only(&mut chart, &name, request.only)?;
    if chart.dots().next().is_none() {
        return Err(FigureError::NoPoints { only: request.only.to_owned(), figure: name });
    }
    let steps = if request.linear { Steps::Linear } else { chart.usual_steps() };
    let leaves_it = chart.one_rate().is_none() && chart.leaves_it(steps);
    let notes = FigureNotes { chart: &chart, replications: study.settings.replications, leaves_it };
    let page = FigurePage { name: &name, typeface, notes: notes.lines() };
    let layout = FigureLayout { chart: &chart, page, steps };
    let sheet = match chart.one_rate() {
        Some(rate_per_s) => bars::drawn(&layout, rate_per_s, request.size)?,
        None => plot::drawn(&layout, request.size)?,
    };
    let origin = FigureOrigin::of(study, &name, chart.said(steps), &chart.places());
    Figure { sheet, origin, typeface }.checked()
}

/// A figure of a heat map, which has neither series nor a limit.
fn of_map<'f>(
    study: &StudyOutcome,
    map: &HeatMap,
    request: &FigureRequest<'_>,
    typeface: &'f Typeface,
) -> Result<Figure<'f>, FigureError> {
    let figure = request.name.to_owned();
    if request.slo_ns.is_some() {
        return Err(FigureError::NoLatency { figure });
    }
    if !request.only.is_empty() {
        return Err(FigureError::NoPoints { only: request.only.to_owned(), figure });
    }
    let numbers = map.numbers().map(|(_, _, number)| number).filter(|number| number.has_interval());
    let how = intervals_from(numbers.map(|number| number.method), study.settings.replications);
    let page = FigurePage { name: request.name, typeface, notes: Vec::new() };
    let sheet = heat::drawn(map, &page, how.as_deref(), request.size)?;
    let origin = FigureOrigin::of(study, request.name, heat::said(map), &[]);
    Figure { sheet, origin, typeface }.checked()
}

/// A figure of one run's depths, which show no latency of clients.
fn of_depths<'f>(
    study: &StudyOutcome,
    run: &DepthsRun<'_>,
    request: &FigureRequest<'_>,
    typeface: &'f Typeface,
) -> Result<Figure<'f>, FigureError> {
    let figure = request.name.to_owned();
    if request.slo_ns.is_some() {
        return Err(FigureError::NoLatency { figure });
    }
    if !request.only.is_empty() {
        let known: Vec<String> = run.panel.series.iter().map(|series| series.label.clone()).collect();
        let kept = chosen(&known, &figure, request.only)?;
        if kept.into_iter().all(|place| known[place] != run.label) {
            return Err(FigureError::NoPoints { only: request.only.to_owned(), figure });
        }
    }
    let page = FigurePage { name: request.name, typeface, notes: depths::notes(&run.shown) };
    let sheet = depths::drawn(run, &page, request.size)?;
    let origin = FigureOrigin::of(study, request.name, said(run.shown.depths), &[]);
    Figure { sheet, origin, typeface }.checked()
}

impl Figure<'_> {
    /// The figure, if its font has all its letters.
    fn checked(self) -> Result<Self, FigureError> {
        match self.typeface.lacks(self.sheet.texts()) {
            Some(letter) => Err(FigureError::NoGlyph { family: self.typeface.family.clone(), letter }),
            None => Ok(self),
        }
    }

    /// The figure as an SVG file.
    pub fn svg(&self) -> String {
        svg::svg(&self.sheet, self.typeface, &self.origin)
    }

    /// The figure as a PDF file.
    pub fn pdf(&self) -> Result<Vec<u8>, FigureError> {
        pdf::pdf(&self.sheet, self.typeface, &self.origin)
    }
}

/// All charts of a study by their figures' names.
fn charts(study: &StudyOutcome, slo_ns: Option<f64>) -> Vec<(String, Chart)> {
    let looks = SeriesStyles::of(&study.panels);
    let is_alone = study.panels.len() == 1;
    let of_panel = |panel| {
        let charts: Vec<Chart> = Pictures { panel, looks: &looks, slo_ns }.charts().collect();
        charts.into_iter().map(move |chart| {
            let of_panel = format!("{}.{}", panel.id, chart.name);
            (if is_alone { chart.name.clone() } else { of_panel }, chart)
        })
    };
    study.panels.iter().flat_map(of_panel).collect()
}

/// Leaves only the series with these labels, and the numbers that are stated of them.
fn keep_only(chart: &mut Chart, figure: &str, only: &str) -> Result<(), FigureError> {
    if only.is_empty() {
        return Ok(());
    }
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

/// What a figure says below its axes.
struct FigureNotes<'c> {
    chart: &'c Chart,
    replications: u32,
    /// Whether a value lies outside the picture.
    leaves_it: bool,
}

impl FigureNotes<'_> {
    fn lines(&self) -> Vec<String> {
        let lost = self.chart.dots().any(|dot| !dot.holds);
        let lost = lost.then(|| "Hollow: load not sustained.".to_owned());
        let above = self.leaves_it.then(|| "Arrow: outside the picture.".to_owned());
        let is_open = |dot: &Dot| dot.holds && dot.of.has_interval() && dot.of.open_above;
        let open = (self.chart.one_rate().is_none() && self.chart.dots().any(is_open))
            .then(|| "Bar with an arrowhead: no end was found there, or it lies outside.".to_owned());
        [self.interval(), open, lost, above].into_iter().flatten().collect()
    }

    /// What the bars around points are.
    fn interval(&self) -> Option<String> {
        let dots = self.chart.dots().filter(|dot| dot.holds && dot.of.has_interval());
        let how = intervals_from(dots.map(|dot| dot.of.method), self.replications)?;
        Some(format!("Bars: 95 % intervals{how}."))
    }
}

/// How intervals were found, behind a comma if all were found alike; `None` if there are none.
fn intervals_from(all: impl Iterator<Item = Method>, replications: u32) -> Option<String> {
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
