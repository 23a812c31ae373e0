//! The table of results, and the same as JSON.

use serde::Serialize;
use serde_json::json;

/// The bound of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// No bound: for information.
    None,
    AtMost(f64),
    AtLeast(f64),
    /// Less than this.
    Below(f64),
}

impl Bound {
    fn is_kept(self, value: f64) -> bool {
        match self {
            Self::None => true,
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
            Self::Below(limit) => value < limit,
        }
    }

    fn text(self) -> String {
        match self {
            Self::None => String::new(),
            Self::AtMost(most) => format!("≤ {}", number(most)),
            Self::AtLeast(least) => format!("≥ {}", number(least)),
            Self::Below(limit) => format!("< {}", number(limit)),
        }
    }

    const fn number(self) -> Option<f64> {
        match self {
            Self::None => None,
            Self::AtMost(bound) | Self::AtLeast(bound) | Self::Below(bound) => Some(bound),
        }
    }
}

#[derive(Debug)]
struct Figure {
    what: String,
    value: f64,
    unit: &'static str,
    bound: Bound,
}

impl Figure {
    const fn verdict(&self, kept: bool) -> &'static str {
        match (self.bound, kept) {
            (Bound::None, _) => "",
            (_, true) => "kept",
            (_, false) => "MISSED",
        }
    }
}

/// One figure in the JSON file.
#[derive(Serialize)]
struct Line<'a> {
    what: &'a str,
    value: f64,
    unit: &'a str,
    bound: Option<f64>,
    kept: Option<bool>,
}

/// All figures, in the order in which they were measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    figures: Vec<Figure>,
}

impl Report {
    /// Adds a figure. A name that begins with spaces explains the figure above.
    pub(crate) fn add(&mut self, what: &str, value: f64, unit: &'static str, bound: Bound) {
        self.figures.push(Figure { what: what.to_owned(), value, unit, bound });
    }

    /// How many bounds were missed.
    pub(crate) fn missed(&self) -> usize {
        self.figures.iter().filter(|figure| !figure.bound.is_kept(figure.value)).count()
    }

    /// The figures as text.
    pub(crate) fn table(&self) -> String {
        let cells: Vec<[String; 4]> = self.figures.iter().map(cells).collect();
        let head = ["what", "measured", "bound", "verdict"].map(str::to_owned);
        let width = |column: usize| {
            let all = cells.iter().chain([&head]).map(|row| row[column].chars().count());
            all.max().unwrap_or(0)
        };
        let widths = [width(0), width(1), width(2)];
        let line = |[what, measured, bound, verdict]: &[String; 4]| {
            let [a, b, c] = widths;
            format!("{what:a$}  {measured:>b$}  {bound:>c$}  {verdict}").trim_end().to_owned()
        };
        let rule = "-".repeat(widths.iter().sum::<usize>() + 4 + "  verdict".len());
        let lines = [line(&head), rule].into_iter().chain(cells.iter().map(line));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The figures as JSON.
    pub(crate) fn json(&self) -> String {
        let figures: Vec<Line<'_>> = self.figures.iter().map(line).collect();
        let all = json!({ "schema": "sluice-bench.v1", "missed": self.missed(), "figures": figures });
        format!("{all:#}\n")
    }
}

fn cells(figure: &Figure) -> [String; 4] {
    let kept = figure.bound.is_kept(figure.value);
    let measured = format!("{} {}", number(figure.value), figure.unit);
    let verdict = figure.verdict(kept).to_owned();
    [figure.what.clone(), measured.trim_end().to_owned(), figure.bound.text(), verdict]
}

fn line(figure: &Figure) -> Line<'_> {
    let bound = figure.bound.number();
    Line {
        what: figure.what.trim_start(),
        value: figure.value,
        unit: figure.unit,
        bound,
        kept: bound.map(|_| figure.bound.is_kept(figure.value)),
    }
}

/// A number with three significant digits, and without decimals if it is large.
fn number(value: f64) -> String {
    match value {
        whole if whole.fract() == 0.0 => format!("{whole:.0}"),
        small if small < 10.0 => format!("{small:.2}"),
        middle if middle < 100.0 => format!("{middle:.1}"),
        large => format!("{large:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_kept_or_missed_and_the_table_says_which() {
        let mut report = Report::default();
        report.add("fast", 2.5, "×", Bound::AtMost(3.0));
        report.add("  detail", 1_234.5, "ns", Bound::None);
        report.add("slow", 0.8, "×", Bound::AtLeast(0.85));
        report.add("small", 200.0, "B", Bound::Below(200.0));
        assert_eq!(report.missed(), 2);
        let expected = "\
what      measured   bound  verdict
-----------------------------------
fast        2.50 ×     ≤ 3  kept
  detail   1234 ns
slow        0.80 ×  ≥ 0.85  MISSED
small        200 B   < 200  MISSED";
        assert_eq!(report.table(), expected);
    }

    #[test]
    fn the_json_has_every_figure() {
        let mut report = Report::default();
        report.add("  detail", 1.5, "ns", Bound::None);
        report.add("slow", 0.8, "×", Bound::AtLeast(0.85));
        let read: serde_json::Value = serde_json::from_str(&report.json()).expect("it is JSON");
        assert_eq!(read["missed"], 1);
        assert_eq!(read["figures"][0]["what"], "detail");
        assert_eq!(read["figures"][0]["kept"], serde_json::Value::Null);
        assert_eq!(read["figures"][1]["kept"], false);
    }
}
