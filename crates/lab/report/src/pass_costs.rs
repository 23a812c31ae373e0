//! Each policy's costs beside its benefits, on the same tasks. Costs are passes, recirculations, packets
//! and empty polls per task. Benefits are how long tasks of each class wait, whose labels were met, and how
//! long workers were idle.

use sluice_outcome::study::{GaugeDescriptor, Gauges, Measure, Metric, Panel, Part, Point, Series, Unit};

use super::html::{Html, tag};
use super::show;
use super::table::Table;
use super::tables::numeric_table;

const DELAY: Metric = Metric { measure: Measure::SchedulingDelayNs, part: Part::P99 };
/// The names of the gauges that are costs.
const PRICES: [&str; 3] = ["recirculations_per_task", "packets_per_task", "empty_polls_per_task"];
/// The names of the gauges that are benefits, beside delays.
const GAINS: [&str; 2] = ["labels_met", "idle_share"];
/// Columns that are left out on a narrow terminal.
pub(crate) const GIVES_WAY: [(usize, &str); 2] = [(3, "packets"), (4, "empty polls")];

/// A remark about where to find a cost that no simulated run has.
pub(crate) const NANOSECONDS: &str =
    "Nanoseconds and instructions a task are measured by make bench (docs/results/bench.md), not here.";

/// A panel's policies at one rate at which passes were counted.
pub(crate) struct PassCosts<'p> {
    panel: &'p Panel,
    pub(crate) offered_per_s: f64,
    rows: Vec<(&'p Series, &'p Point)>,
}

impl<'p> PassCosts<'p> {
    /// The prices at the highest rate that at least two policies sustain; `None` if there is no such rate.
    pub(crate) fn of(panel: &'p Panel) -> Option<Self> {
        let points = panel.series.iter().flat_map(|series| &series.points);
        let mut rates: Vec<f64> = points.map(|point| point.offered_per_s).collect();
        rates.sort_by(f64::total_cmp);
        rates.into_iter().rev().map(|rate| Self::at(panel, rate)).find(Self::tells_two)
    }

    fn at(panel: &'p Panel, offered_per_s: f64) -> Self {
        let is_there = |point: &Point| point.offered_per_s.total_cmp(&offered_per_s).is_eq();
        let is_told = |point: &&Point| is_there(point) && point.counts.passes > 0;
        let row = |series: &'p Series| Some((series, series.points.iter().find(is_told)?));
        Self { panel, offered_per_s, rows: panel.series.iter().filter_map(row).collect() }
    }

    fn tells_two(&self) -> bool {
        self.rows.iter().filter(|(_, point)| point.sustained.holds).count() >= 2
    }

    /// For a page.
    pub(crate) fn draw(&self, html: &mut Html) {
        html.leaf("h3", "Price and gain");
        let says = format!(
            "At {}: what each policy costs a task, then the p99 scheduling delay that it buys. {NANOSECONDS}",
            show::rate(self.offered_per_s)
        );
        html.leaf(tag("p").with("class", "workload"), says);
        html.element(tag("div").with("class", "wide"), |html| {
            let headings = self.headings();
            let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
            numeric_table(html, "price and gain", &headings, |html| {
                for (series, point) in &self.rows {
                    html.element("tr", |html| {
                        html.leaf(tag("th").with("scope", "row"), &series.label);
                        self.cells(point).iter().for_each(|cell| html.leaf("td", cell));
                    });
                }
            });
        });
    }

    /// For a terminal.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(self.headings());
        for (series, point) in &self.rows {
            table.row([vec![series.label.clone()], self.cells(point)].concat());
        }
        table
    }

    fn headings(&self) -> Vec<String> {
        let ours = |name: &str| name.to_owned();
        let mut headings: Vec<String> =
            ["policy", "passes", "rounds", "packets", "empty polls", "delay of all"].map(ours).to_vec();
        headings.extend(self.classes().map(|class| format!("of {class}")));
        headings
            .extend(self.gains().map(|gauge| gauge.picture.map_or(gauge.name, |picture| picture).to_owned()));
        headings
    }

    fn cells(&self, point: &Point) -> Vec<String> {
        let none = || "–".to_owned();
        let shown = |value: Option<f64>, unit| value.map_or_else(none, |value| show::quantity(value, unit));
        let passes = point.counts.passes as f64 / point.counts.replied.max(1) as f64;
        let mut cells = vec![shown(Some(passes), Unit::Count)];
        cells.extend(PRICES.map(|name| shown((gauge(name).get)(&point.gauges), Unit::Count)));
        let classes = std::iter::once(None).chain(self.classes().map(Some));
        cells.extend(classes.map(|class| match point.times(class) {
            Some(times) if point.sustained.holds => show::quantity(times.get(DELAY).value, DELAY.unit()),
            Some(_) => "not kept up".to_owned(),
            None => none(),
        }));
        cells.extend(self.gains().map(|gauge| shown((gauge.get)(&point.gauges), gauge.unit)));
        cells
    }

    fn classes(&self) -> impl Iterator<Item = &'p str> {
        let classes = if self.panel.classes.len() > 1 { &self.panel.classes[..] } else { &[] };
        classes.iter().map(|class| class.name.as_str())
    }

    /// The benefits that any of the policies has.
    fn gains(&self) -> impl Iterator<Item = &'static GaugeDescriptor> {
        let is_known = |gauge: &&GaugeDescriptor| {
            self.rows.iter().any(|(_, point)| (gauge.get)(&point.gauges).is_some())
        };
        GAINS.iter().map(|name| gauge(name)).filter(is_known)
    }
}

fn gauge(name: &str) -> &'static GaugeDescriptor {
    Gauges::ALL.iter().find(|gauge| gauge.name == name).expect("it is one of ours")
}
