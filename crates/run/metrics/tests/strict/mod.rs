//! A reader of OpenMetrics that takes nothing that is not as it should be.

use std::collections::{BTreeMap, BTreeSet};

/// The values of all series, by name and labels as they are written.
pub(crate) type Series = BTreeMap<String, f64>;

/// Reads a whole text.
pub(crate) fn read(text: &str) -> Series {
    let text = text.strip_suffix("# EOF\n").expect("its last line is the end");
    let mut read = StrictReader::default();
    for line in text.lines() {
        match line.strip_prefix("# ") {
            Some(line) => read.descriptor(line),
            None => read.sample(line),
        }
    }
    read.close_histograms();
    read.series
}

#[derive(Default)]
struct StrictReader {
    series: Series,
    known: BTreeSet<String>,
    family: String,
    kind: String,
    unit: Option<String>,
    /// The last count and bound of each histogram's buckets, by its other labels.
    buckets: BTreeMap<String, (f64, f64)>,
}

impl StrictReader {
    fn descriptor(&mut self, line: &str) {
        let mut words = line.splitn(3, ' ');
        let word = |word: Option<&str>| word.expect("a word, a name and a text").to_owned();
        let (what, name, rest) = (word(words.next()), word(words.next()), word(words.next()));
        if what == "HELP" {
            self.close_histograms();
            assert!(is_name(&name), "{name}");
            assert!(self.known.insert(name.clone()), "{name} comes twice");
            assert!(rest.ends_with('.') && !rest.contains(['"', '\\']), "{rest}");
            (self.family, self.kind, self.unit) = (name, String::new(), None);
            return;
        }
        assert_eq!(name, self.family, "a family's lines stand together");
        match &*what {
            "TYPE" => {
                assert!(
                    ["counter", "gauge", "histogram"].contains(&&*rest) && self.kind.is_empty(),
                    "{line}"
                );
                self.kind = rest;
            }
            "UNIT" => {
                assert!(self.family.ends_with(&format!("_{rest}")) && self.unit.is_none(), "{line}");
                self.unit = Some(rest);
            }
            _ => panic!("{line}"),
        }
    }

    fn sample(&mut self, line: &str) {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let value: f64 = value.parse().expect("a number");
        assert!(value.is_finite() && !self.kind.is_empty(), "{line}");
        let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
        let labels = labels_in(labels);
        let ending = name.strip_prefix(&self.family).unwrap_or_else(|| panic!("{line}: of {}", self.family));
        let has_unit = ["seconds", "bytes"].iter().any(|unit| self.family.ends_with(unit));
        assert_eq!(has_unit, self.unit.is_some(), "{line}");
        match (&*self.kind, ending) {
            ("counter", "_total") | ("histogram", "_sum" | "_count") => assert!(value >= 0.0, "{line}"),
            ("gauge", "") => {}
            ("histogram", "_bucket") => self.bucket(&labels, value),
            _ => panic!("{line}: a {}", self.kind),
        }
        if ending != "_bucket" {
            assert!(labels.iter().all(|(name, _)| name != "le"), "{line}");
        }
        assert!(self.series.insert(series.to_owned(), value).is_none(), "{line} comes twice");
    }

    fn bucket(&mut self, labels: &[(String, String)], value: f64) {
        let (bound, others): (Vec<_>, Vec<_>) = labels.iter().partition(|(name, _)| name == "le");
        let [(_, bound)] = &bound[..] else { panic!("{labels:?}: one bound") };
        let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound") };
        let key = format!("{others:?}");
        if let Some((count, before)) = self.buckets.insert(key, (value, bound)) {
            assert!(bound > before && value >= count, "{labels:?}: buckets add up");
        }
    }

    fn close_histograms(&mut self) {
        for (labels, (_, bound)) in std::mem::take(&mut self.buckets) {
            assert!(bound.is_infinite(), "{} {labels} has no last bucket", self.family);
        }
    }
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|c| c == b'_' || c.is_ascii_lowercase())
}

/// The labels behind an opening brace.
fn labels_in(text: &str) -> Vec<(String, String)> {
    let mut labels: Vec<(String, String)> = Vec::new();
    let mut rest = text;
    while rest != "}" {
        let (name, behind) = rest.split_once("=\"").expect("a label's name");
        assert!(is_name(name) && labels.iter().all(|(other, _)| other != name), "{text}");
        let (value, behind) = value_in(behind);
        labels.push((name.to_owned(), value));
        rest = behind.strip_prefix(',').unwrap_or(behind);
        assert!(behind == "}" || behind.starts_with(','), "{text}");
    }
    labels
}

/// A label's value behind its opening quote, and what follows its closing one.
fn value_in(text: &str) -> (String, &str) {
    let (mut value, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, &text[at + 1..]),
            '\\' => match letters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, letter @ ('\\' | '"'))) => value.push(letter),
                other => panic!("{text}: {other:?} is no escape"),
            },
            letter => value.push(letter),
        }
    }
    panic!("{text}: the value does not end")
}
