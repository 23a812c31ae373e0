//! A picture of a single rate: one bar for each series, with its name, its number, and the interval at its
//! end. As a curve, a single point per series would be a heap of markers in an empty frame.

use sluice_outcome::study::{Estimate, Unit};

use super::marks::{self, Px};
use super::{Chart, Curve, Dot, PaperMarks, Size, Steps, group, text};
use crate::html::{Html, tag};
use crate::series_style::SeriesStyle;
use crate::show;

/// A stated number appears beside a measured one if their rates differ by at most this share.
const SAME_RATE: f64 = 0.005;
/// The margin on both sides.
const EDGE: f64 = 2.0;
/// How far the line of a limit reaches beyond a bar.
const OVER: f64 = 2.0;

impl Chart {
    /// The rate of all points in the picture; `None` if their rates differ.
    pub(crate) fn one_rate(&self) -> Option<f64> {
        let mut rates = self.dots().map(|dot| dot.across);
        let first = rates.next()?;
        rates.all(|rate| rate.total_cmp(&first).is_eq()).then_some(first)
    }

    /// Draws the picture as bars.
    pub(super) fn draw_bars(&self, html: &mut Html, rate_per_s: f64) {
        let rows: Vec<BarRow<'_>> = self.rows(rate_per_s);
        let lines = Lines::of(self.size);
        let width = self.size.frame().width;
        let height = lines.top + lines.row * rows.len() as f64;
        let svg = tag("svg")
            .with("class", self.size.class())
            .with("viewBox", format_args!("0 0 {} {}", Px(width), Px(height)));
        let name = self.said(Steps::Linear);
        html.element(svg.with("role", "img").with("aria-label", name), |html| {
            if self.size == Size::Main {
                text(html, "start", EDGE, 11.0, self.bars_caption(rate_per_s));
            }
            let bars = Bars { chart: self, lines, width, most: self.longest(&rows) };
            for (place, row) in rows.iter().enumerate() {
                let top = bars.lines.top + bars.lines.row * place as f64;
                html.element(group(row.series()), |html| bars.row(html, row, top));
            }
        });
        html.line();
    }

    /// The caption of a picture of bars.
    pub(crate) fn bars_caption(&self, rate_per_s: f64) -> String {
        format!("{} at {}{}", self.caption(), show::rate(rate_per_s), self.slo_note())
    }

    /// What the dashed lines over bars are, behind a caption; nothing if there is no limit.
    pub(crate) fn slo_note(&self) -> String {
        let note = |slo| format!("; dashed: SLO {}", show::quantity(slo, self.unit));
        self.slo.map_or_else(String::new, note)
    }

    /// A row for each series, and one for each stated number without a series.
    pub(crate) fn rows(&self, rate_per_s: f64) -> Vec<BarRow<'_>> {
        let stated = |paper: &PaperMarks| paper.at(rate_per_s).collect::<Vec<f64>>();
        let of_curve = |curve: &&Curve, paper: &&PaperMarks| paper.look == curve.look;
        let series = self.curves.iter().enumerate().filter_map(|(place, curve)| {
            let beside = self.paper.iter().filter(|paper| of_curve(&curve, paper));
            Some(BarRow::Series {
                place,
                curve,
                dot: curve.dots.first()?,
                stated: beside.flat_map(stated).collect(),
            })
        });
        let alone =
            self.paper.iter().filter(|paper| !self.curves.iter().any(|curve| of_curve(&curve, paper)));
        let alone = alone.map(|paper| BarRow::Stated { paper, values: stated(paper) });
        series.chain(alone.filter(|row| !row.stated().is_empty())).collect()
    }

    /// The largest number that must be visible: that of sustainable loads, if there are any, or the limit.
    pub(crate) fn longest(&self, rows: &[BarRow<'_>]) -> f64 {
        let of = |wants_kept: bool| {
            let values = rows.iter().flat_map(|row| {
                let dot = row.dot().filter(|dot| dot.holds || !wants_kept).map(|dot| end(&dot.of));
                dot.into_iter().chain(row.stated().iter().copied())
            });
            values.fold(0.0, f64::max)
        };
        let kept = of(true);
        let longest = if kept > 0.0 { kept } else { of(false).max(f64::MIN_POSITIVE) };
        longest.max(self.slo.unwrap_or(0.0))
    }
}

impl PaperMarks {
    /// The numbers that are stated at this rate.
    pub(crate) fn at(&self, rate_per_s: f64) -> impl Iterator<Item = f64> {
        let is_here = move |rate: f64| (rate / rate_per_s - 1.0).abs() < SAME_RATE;
        self.dots.iter().filter(move |(rate, _)| is_here(*rate)).map(|(_, value)| *value)
    }
}

/// The contents of a row.
pub(crate) enum BarRow<'c> {
    /// A series, and the numbers stated about it.
    Series { place: usize, curve: &'c Curve, dot: &'c Dot, stated: Vec<f64> },
    /// Stated numbers without a series.
    Stated { paper: &'c PaperMarks, values: Vec<f64> },
}

impl BarRow<'_> {
    /// The place of the row's series among the curves.
    const fn series(&self) -> Option<usize> {
        match self {
            Self::Series { place, .. } => Some(*place),
            Self::Stated { .. } => None,
        }
    }

    /// The number that the row's bar shows.
    pub(crate) const fn dot(&self) -> Option<&Dot> {
        match self {
            Self::Series { dot, .. } => Some(dot),
            Self::Stated { .. } => None,
        }
    }

    pub(crate) fn stated(&self) -> &[f64] {
        match self {
            Self::Series { stated, .. } => stated,
            Self::Stated { values, .. } => values,
        }
    }

    pub(crate) fn label(&self) -> &str {
        match self {
            Self::Series { curve, .. } => &curve.label,
            Self::Stated { paper, .. } => &paper.label,
        }
    }

    pub(crate) const fn look(&self) -> SeriesStyle {
        match self {
            Self::Series { curve, .. } => curve.look,
            Self::Stated { paper, .. } => paper.look,
        }
    }

    /// The row's number with its interval, or the stated numbers.
    pub(crate) fn says(&self, unit: Unit) -> String {
        match self {
            Self::Series { dot, .. } => {
                let lost = if dot.holds { "" } else { ", not sustained" };
                format!("{}{lost}", show::estimate(&dot.of, unit))
            }
            Self::Stated { values, .. } => {
                let values: Vec<String> = values.iter().map(|value| show::quantity(*value, unit)).collect();
                values.join(", ")
            }
        }
    }
}

/// The positions of the parts of a row, from its top.
struct Lines {
    /// The space above the first row.
    top: f64,
    row: f64,
    /// The baseline of the text.
    text: f64,
    bar: f64,
    bar_high: f64,
}

impl Lines {
    const fn of(size: Size) -> Self {
        match size {
            Size::Main => Self { top: 20.0, row: 38.0, text: 14.0, bar: 19.0, bar_high: 11.0 },
            Size::Small => Self { top: 2.0, row: 29.0, text: 10.0, bar: 14.0, bar_high: 8.0 },
        }
    }
}

/// The upper end of a number's interval, if it is bounded.
const fn end(of: &Estimate) -> f64 {
    if of.open_above { of.value } else { of.high }
}

struct Bars<'c> {
    chart: &'c Chart,
    lines: Lines,
    width: f64,
    most: f64,
}

impl Bars<'_> {
    /// The position of a value; larger values end at the picture's edge.
    fn x(&self, value: f64) -> f64 {
        EDGE + (self.width - 2.0 * EDGE) * (value / self.most).clamp(0.0, 1.0)
    }

    fn row(&self, html: &mut Html, row: &BarRow<'_>, top: f64) {
        let foot = top + self.lines.text;
        let look = row.look();
        text(html, "start", EDGE, foot, row.label());
        text(html, "end", self.width - EDGE, foot, row.says(self.chart.unit));
        let (y, high) = (top + self.lines.bar, self.lines.bar_high);
        if let Some(dot) = row.dot() {
            let hollow = if dot.holds { "" } else { " hollow" };
            let outline =
                format!("M{} {}H{}v{}H{}z", Px(EDGE), Px(y), Px(self.x(dot.of.value)), Px(high), Px(EDGE));
            html.lone(
                tag("path").with("class", format_args!("fill{hollow} {}", look.class())).with("d", outline),
            );
            if dot.has_bar() {
                html.lone(tag("path").with("class", "whisker").with("d", self.whisker(&dot.of, y, high)));
            }
        }
        if let Some(slo) = self.chart.slo {
            let line = format!("M{} {}v{}", Px(self.x(slo)), Px(y - OVER), Px(high + 2.0 * OVER));
            html.lone(tag("path").with("class", "slo").with("d", line));
        }
        for value in row.stated() {
            let rays = marks::rays(self.x(*value), y + high / 2.0, high * 0.7);
            html.lone(tag("path").with("class", "halo").with("d", &rays));
            html.lone(tag("path").with("class", format_args!("rays {}", look.class())).with("d", rays));
        }
    }

    /// The interval as a line with caps; open at an unbounded end.
    fn whisker(&self, of: &Estimate, y: f64, high: f64) -> String {
        let (from, middle) = (self.x(of.low), y + high / 2.0);
        let to = if of.open_above { self.width - EDGE } else { self.x(of.high) };
        let cap = |x: f64| format!("M{} {}v{}", Px(x), Px(y + 1.0), Px(high - 2.0));
        let caps = if of.open_above { cap(from) } else { cap(from) + &cap(to) };
        format!("M{} {}H{}{caps}", Px(from), Px(middle), Px(to))
    }
}

#[cfg(test)]
mod tests {
    use sluice_outcome::study::{Method, Unit};

    use super::super::{Across, Style};
    use super::*;
    use crate::series_style::SeriesStyle;

    fn chart(rates: &[f64]) -> Chart {
        let curve = |(place, rate): (usize, &f64)| Curve {
            label: format!("policy {place}"),
            look: SeriesStyle::NEUTRAL,
            style: Style::Line,
            dots: vec![Dot {
                across: *rate,
                of: Estimate::between(10.0, 8.0, 12.0, Method::Replications),
                holds: true,
            }],
        };
        Chart {
            name: "p99".to_owned(),
            title: "p99 latency".to_owned(),
            unit: Unit::Ratio,
            curves: rates.iter().enumerate().map(curve).collect(),
            paper: Vec::new(),
            slo: None,
            across: Across::Rate { capacity_per_s: 1.0 },
            size: Size::Main,
        }
    }

    fn drawn(chart: &Chart) -> String {
        let mut html = Html::new();
        chart.draw_bars(&mut html, 5.0);
        html.into_string()
    }

    #[test]
    fn a_study_of_one_rate_is_drawn_as_bars_and_one_of_several_is_not() {
        assert_eq!(chart(&[5.0, 5.0]).one_rate(), Some(5.0));
        assert_eq!(chart(&[5.0, 6.0]).one_rate(), None);
        assert_eq!(chart(&[]).one_rate(), None);
    }

    #[test]
    fn each_series_has_a_bar_its_name_and_its_number() {
        let html = drawn(&chart(&[5.0, 5.0]));
        assert_eq!(html.matches("class=\"fill").count(), 2, "{html}");
        assert!(html.contains("policy 1") && html.contains("10.0 (8.00–12.0)"), "{html}");
    }

    #[test]
    fn a_bar_ends_where_its_value_lies_and_the_longest_interval_with_the_picture() {
        let chart = chart(&[5.0]);
        let most = chart.longest(&chart.rows(5.0));
        let bars = Bars { chart: &chart, lines: Lines::of(Size::Main), width: 104.0, most };
        assert!((bars.x(12.0) - 102.0).abs() < 1e-9 && (bars.x(6.0) - 52.0).abs() < 1e-9);
        assert!((bars.x(1e9) - 102.0).abs() < 1e-9, "what collapses ends with the picture");
    }

    #[test]
    fn a_limit_stands_over_each_bar_and_inside_the_picture() {
        let mut chart = chart(&[5.0, 5.0]);
        chart.slo = Some(48.0);
        let html = drawn(&chart);
        assert_eq!(html.matches("class=\"slo\" d=\"M478 ").count(), 2, "{html}");
        assert!(html.contains("; dashed: SLO 48.0<"), "{html}");
    }
}
