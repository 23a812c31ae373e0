//! A panel of a study as pictures: the main one, smaller ones beside it, and one legend for all.

use sluice_outcome::study::{
    Estimate, GaugeDescriptor, Gauges, Measure, Metric, Panel, PaperCurve, Part, Point, Series, Source, Unit,
};

use super::chart::{Across, Chart, Curve, Dot, PERCENTILES, PaperMarks, Size, Style, Swatch, swatch};
use super::html::{Html, Tag, tag};
use super::pass_costs::PassCosts;
use super::series_style::{SeriesStyle, SeriesStyles};
use super::show;

/// Draws a panel; `number` distinguishes it from the others on the page.
pub(crate) fn panel(html: &mut Html, pictures: &Pictures<'_>, number: usize) {
    let panel = pictures.panel;
    let section = tag("section").with("class", "panel").with("id", format_args!("panel-{number}"));
    html.element(section, |html| {
        html.leaf("h2", &panel.title);
        html.element(tag("p").with("class", "workload"), |html| {
            html.leaf("code", &panel.workload);
            let capacity = show::rate(panel.capacity_per_s);
            html.text(format_args!(" · all workers busy at {capacity}"));
        });
        if panel.paper.is_empty() && panel.series.iter().all(|series| series.points.is_empty()) {
            // Axes of nothing would only look like a result.
            html.leaf("p", "No point is complete yet.");
            return;
        }
        if !pictures.is_of_one_rate() {
            scale_switch(html, number);
        }
        html.element(tag("div").with("class", "pictures"), |html| pictures.all(html));
    });
    html.line();
}

/// Two radio buttons that the style sheet reads; they must come before the pictures.
fn scale_switch(html: &mut Html, number: usize) {
    for (scale, says) in [("log", "logarithmic axis"), ("linear", "linear axis")] {
        let id = format!("{scale}-{number}");
        let input = tag("input").with("type", "radio").with("name", format_args!("scale-{number}"));
        let input = input.with("id", &id).with("class", format_args!("to-{scale}"));
        html.lone(if scale == "log" { input.with("checked", "") } else { input });
        html.leaf(tag("label").with("for", id), says);
    }
}

/// The pictures of a panel.
pub(crate) struct Pictures<'p> {
    pub(crate) panel: &'p Panel,
    pub(crate) looks: &'p SeriesStyles,
    /// A latency that must be kept, for pictures of latencies.
    pub(crate) slo_ns: Option<f64>,
}

impl Pictures<'_> {
    /// Whether all pictures are bars, whose axis begins at zero.
    fn is_of_one_rate(&self) -> bool {
        self.chart(self.main_metric(), None, Size::Main).one_rate().is_some()
    }

    fn all(&self, html: &mut Html) {
        html.element(tag("div").with("class", "lead"), |html| {
            figure(html, &self.lead());
            self.legend(html);
        });
        if let Some(prices) = PassCosts::of(self.panel) {
            prices.draw(html);
        }
        row(html, "By class", &self.by_class());
        row(html, "All tasks", &self.others());
        row(html, "Behind the times", &self.gauges());
        self.percentiles_in_details(html);
        super::timeline::timelines(html, self.panel);
    }

    /// All pictures that can stand alone, in the page's order.
    pub(crate) fn charts(&self) -> impl Iterator<Item = Chart> {
        let rows = [vec![self.lead()], self.by_class(), self.others(), self.gauges(), self.percentiles()];
        rows.into_iter().flatten().filter(Chart::shows_anything)
    }

    /// The panel's main picture.
    fn lead(&self) -> Chart {
        self.chart(self.main_metric(), None, Size::Main)
    }

    fn by_class(&self) -> Vec<Chart> {
        if self.panel.classes.len() < 2 {
            return Vec::new();
        }
        let of_class = |class: &str| {
            let metric = |measure, part| Metric { measure, part };
            let times = [
                metric(Measure::LatencyNs, Part::P99),
                metric(Measure::LatencyNs, Part::P50),
                metric(Measure::SchedulingDelayNs, Part::P99),
                metric(Measure::Slowdown, Part::P99),
            ];
            let times = times.map(|metric| self.chart(metric, Some(class), Size::Small));
            times.into_iter().chain([self.goodput(class)]).collect::<Vec<_>>()
        };
        self.panel.classes.iter().flat_map(|class| of_class(&class.name)).collect()
    }

    fn percentiles_in_details(&self, html: &mut Html) {
        let charts = self.percentiles();
        if charts.iter().any(Chart::shows_anything) {
            html.element("details", |html| {
                html.leaf("summary", "Percentiles of the latency at each rate");
                row(html, "All tasks", &charts);
            });
        }
    }

    /// For each rate the latencies by percentile: a distribution function with its axes exchanged, so that
    /// the rare ones have room.
    fn percentiles(&self) -> Vec<Chart> {
        let points = self.panel.series.iter().flat_map(|series| &series.points);
        let mut rates: Vec<f64> = points.map(|point| point.offered_per_s).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        rates.into_iter().map(|rate| self.percentiles_at(rate)).collect()
    }

    fn percentiles_at(&self, rate_per_s: f64) -> Chart {
        let dots = |point: &Point| {
            let of = point.overall.latency_ns;
            let dot = |(part, share, _)| Dot {
                across: Across::of_share_below(share),
                of: of.get(part),
                holds: point.sustained.holds,
            };
            PERCENTILES.map(dot).to_vec()
        };
        let of_latency = |_: &Point| None;
        let title = format!("latency at {}", show::rate(rate_per_s));
        let mut chart = self.of_points(title, Unit::Ns, Size::Small, of_latency);
        for (curve, series) in chart.curves.iter_mut().zip(&self.panel.series) {
            let here = series.points.iter().find(|point| point.offered_per_s.total_cmp(&rate_per_s).is_eq());
            curve.dots = here.map(dots).unwrap_or_default();
        }
        let name = format!("percentiles-{rate_per_s:.0}");
        Chart { name, across: Across::Percentile, slo: self.slo_ns, ..chart }
    }

    fn gauges(&self) -> Vec<Chart> {
        Gauges::ALL.iter().filter_map(|gauge| self.gauge(gauge)).collect()
    }

    /// The metric with the most numbers in the paper; otherwise the 99th percentile of the latency.
    fn main_metric(&self) -> Metric {
        let of_all = self.panel.paper.iter().find(|paper| paper.class.is_none());
        of_all.map_or(Metric::P99, |paper| paper.metric)
    }

    fn others(&self) -> Vec<Chart> {
        let main = self.main_metric();
        let latency = [Part::P99, Part::P50, Part::P999, Part::Mean]
            .map(|part| Metric { measure: Measure::LatencyNs, part });
        let delay = [Part::P99, Part::P50].map(|part| Metric { measure: Measure::SchedulingDelayNs, part });
        let slowdown = [Measure::Slowdown, Measure::SlowdownTypeMean, Measure::SlowdownServer]
            .map(|measure| Metric { measure, part: Part::P99 });
        let metrics = latency.into_iter().chain(delay).chain(slowdown).filter(|metric| *metric != main);
        metrics.map(|metric| self.chart(metric, None, Size::Small)).collect()
    }

    fn chart(&self, metric: Metric, class: Option<&str>, size: Size) -> Chart {
        let of_metric = |point: &Point| point.times(class).map(|times| times.get(metric));
        let mut chart = self.of_points(show::metric(metric), metric.unit(), size, of_metric);
        chart.name = show::metric_name(metric);
        if let Some(class) = class {
            chart.title = format!("{class}: {}", chart.title);
            chart.name = format!("{class}.{}", chart.name);
        }
        chart.slo = self.slo_ns.filter(|_| metric.measure == Measure::LatencyNs);
        let fitting = self.panel.paper.iter();
        let fitting = fitting.filter(|paper| paper.metric == metric && paper.class.as_deref() == class);
        chart.paper = fitting
            .map(|paper| PaperMarks {
                label: whose(paper),
                place: format!("{}: {}", if paper.ours { "ours" } else { "paper" }, paper.place),
                series: self.beside(paper.series.as_deref()),
                look: self.look_beside(paper.series.as_deref()),
                dots: paper.points.iter().map(|point| (point.offered_per_s, point.value)).collect(),
            })
            .collect();
        chart
    }

    fn goodput(&self, class: &str) -> Chart {
        let of_class = |point: &Point| point.classes.iter().find(|of| of.name == class)?.goodput_per_s;
        let chart = self.of_points(format!("{class}: answers in time"), Unit::PerS, Size::Small, of_class);
        Chart { name: format!("{class}.goodput_per_s"), ..chart }
    }

    fn gauge(&self, gauge: &GaugeDescriptor) -> Option<Chart> {
        let of_gauge = |point: &Point| (gauge.get)(&point.gauges).map(Estimate::exact);
        let chart = |title: &str| self.of_points(title.to_owned(), gauge.unit, Size::Small, of_gauge);
        gauge.picture.map(|title| Chart { name: gauge.name.to_owned(), ..chart(title) })
    }

    fn of_points(
        &self,
        title: String,
        unit: Unit,
        size: Size,
        of: impl Fn(&Point) -> Option<Estimate>,
    ) -> Chart {
        let curve = |(index, series): (usize, &Series)| {
            let dot = |point: &Point| {
                of(point).map(|of| Dot { across: point.offered_per_s, of, holds: point.sustained.holds })
            };
            Curve {
                label: series.label.clone(),
                look: self.looks.get(self.panel, index),
                style: self.style(series),
                dots: series.points.iter().filter_map(dot).collect(),
            }
        };
        let curves = self.panel.series.iter().enumerate().map(curve).collect();
        let across = Across::Rate { capacity_per_s: self.panel.capacity_per_s };
        Chart { name: String::new(), title, unit, curves, paper: Vec::new(), slo: None, across, size }
    }

    /// Draws predictions as lines and measurements as markers, if the panel has both.
    fn style(&self, series: &Series) -> Style {
        let other = |source| self.panel.series.iter().any(|other| other.source == source);
        match series.source {
            Source::Simulator if other(Source::Live) => Style::LineOnly,
            Source::Live if other(Source::Simulator) => Style::Marks,
            Source::Simulator | Source::Live => Style::Line,
        }
    }

    /// The place of the series with this label.
    fn beside(&self, label: Option<&str>) -> Option<usize> {
        self.panel.series.iter().position(|series| Some(series.label.as_str()) == label)
    }

    fn look_beside(&self, label: Option<&str>) -> SeriesStyle {
        self.beside(label).map_or(SeriesStyle::NEUTRAL, |index| self.looks.get(self.panel, index))
    }

    fn legend(&self, html: &mut Html) {
        html.element(tag("ul").with("class", "legend"), |html| {
            for (index, series) in self.panel.series.iter().enumerate() {
                let look = self.looks.get(self.panel, index);
                let kind = match self.style(series) {
                    _ if self.is_of_one_rate() => Swatch::Bar,
                    Style::Line => Swatch::Line,
                    Style::LineOnly => Swatch::LineOnly,
                    Style::Marks => Swatch::Marks,
                };
                let item = tag("li").with("data-series", index);
                entry(html, item, (kind, look), &series.label, &about(series));
            }
            let mut papers: Vec<(String, SeriesStyle, &str)> = Vec::new();
            for paper in &self.panel.paper {
                let (label, look) = (whose(paper), self.look_beside(paper.series.as_deref()));
                let known = papers.iter().any(|(known, of, _)| *known == label && *of == look);
                if !known {
                    papers.push((label, look, &paper.place));
                }
            }
            for (label, look, place) in papers {
                entry(html, tag("li"), (Swatch::Paper, look), &label, place);
            }
            let points = || self.panel.series.iter().flat_map(|series| &series.points);
            if points().any(|point| !point.sustained.holds) {
                let (kind, about) = if self.is_of_one_rate() {
                    (Swatch::HollowBar, "hollow bar")
                } else {
                    (Swatch::Hollow, "hollow, faint line")
                };
                entry(html, tag("li"), (kind, SeriesStyle::NEUTRAL), "not sustained", about);
            }
        });
    }
}

/// The label and the source of stated numbers.
fn whose(paper: &PaperCurve) -> String {
    if paper.ours { format!("our {}", paper.label) } else { format!("the paper’s {}", paper.label) }
}

/// A row of pictures; nothing if none of them shows a value.
fn row(html: &mut Html, title: &str, charts: &[Chart]) {
    let charts: Vec<&Chart> = charts.iter().filter(|chart| chart.shows_anything()).collect();
    if charts.is_empty() {
        return;
    }
    html.leaf("h3", title);
    html.element(tag("div").with("class", "multiples"), |html| {
        for chart in charts {
            figure(html, chart);
        }
    });
}

/// A picture.
fn figure(html: &mut Html, chart: &Chart) {
    html.element("figure", |html| {
        if chart.size == Size::Small {
            let note = chart.one_rate().map_or_else(String::new, |_| chart.slo_note());
            html.leaf("figcaption", format_args!("{}{note}", chart.caption()));
        }
        chart.draw(html);
    });
}

/// What distinguishes a series from others, beside its label.
fn about(series: &Series) -> String {
    let source = match series.source {
        Source::Simulator => "",
        Source::Live => "real packets",
    };
    let slices = series.slices.as_ref().filter(|slices| !series.label.contains(slices.as_str()));
    let slices = slices.map(|slices| format!("slices {slices}"));
    let lost = series.points.iter().find(|point| !point.sustained.holds);
    let lost = lost.map(|point| format!("not sustained from {}", show::rate(point.offered_per_s)));
    let parts = [(!source.is_empty()).then(|| source.to_owned()), slices, lost];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

fn entry(html: &mut Html, item: Tag, (kind, look): (Swatch, SeriesStyle), label: &str, about: &str) {
    html.element(item, |html| {
        swatch(html, kind, look);
        html.element("span", |html| {
            html.leaf("b", label);
            if !about.is_empty() {
                html.verbatim(" ");
                html.leaf("small", about);
            }
        });
    });
}
