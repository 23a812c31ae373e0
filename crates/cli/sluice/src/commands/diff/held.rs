//! Numbers of two results, held against each other.

use serde::Serialize;
use serde_json::{Value, json};
use sluice_outcome::study::{Estimate, Unit};
use sluice_stats::{difference, for_all_of};

/// What two results of one kind have in common, and what not.
pub(super) struct HeldResults {
    pub(super) kind: &'static str,
    /// Settings that differ, with both values.
    pub(super) settings: Vec<SettingOfTwo>,
    /// Points that only one of them has, in words.
    pub(super) only: [Vec<String>; 2],
    pub(super) pairs: Vec<NumberPair>,
}

/// A setting in which two results differ.
#[derive(Debug, Serialize)]
pub(super) struct SettingOfTwo {
    pub(super) name: &'static str,
    pub(super) a: String,
    pub(super) b: String,
}

/// One number in both results.
#[derive(Clone, Debug)]
pub(super) struct NumberPair {
    /// The policy and its rate; empty in a load.
    pub(super) point: String,
    pub(super) class: String,
    pub(super) number: String,
    pub(super) unit: Unit,
    pub(super) a: Estimate,
    pub(super) b: Estimate,
}

/// A number in both results, with what its difference says.
#[derive(Debug)]
pub(super) struct HeldNumber {
    pub(super) pair: NumberPair,
    /// B less A, with an interval that holds for all numbers together; none if one has no interval.
    pub(super) difference: Option<Estimate>,
    pub(super) verdict: DiffVerdict,
}

/// What the difference of a number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DiffVerdict {
    /// Both are equal, with their intervals.
    Same,
    /// Chance explains the difference.
    Noise,
    Differs,
    /// They are not equal, and one has no interval.
    NotKnown,
}

/// Two results, held against each other.
pub(super) struct ResultDiff {
    pub(super) files: [String; 2],
    pub(super) of: HeldResults,
    pub(super) numbers: Vec<HeldNumber>,
    /// How many numbers differ by more than noise.
    pub(super) differing: usize,
}

impl ResultDiff {
    pub(super) fn new(files: [String; 2], of: HeldResults) -> Self {
        let widened = for_all_of(of.pairs.iter().filter(|pair| pair.has_intervals()).count());
        let numbers: Vec<HeldNumber> = of.pairs.iter().map(|pair| pair.held(widened)).collect();
        let differing = numbers.iter().filter(|number| number.verdict == DiffVerdict::Differs).count();
        Self { files, of, numbers, differing }
    }

    /// How many numbers have this verdict.
    pub(super) fn count(&self, verdict: DiffVerdict) -> usize {
        self.numbers.iter().filter(|number| number.verdict == verdict).count()
    }

    pub(super) fn to_json(&self) -> Value {
        let [a, b] = &self.files;
        let [only_in_a, only_in_b] = &self.of.only;
        let numbers: Vec<Value> = self.numbers.iter().map(HeldNumber::to_json).collect();
        json!({
            "schema": "sluice.diff.v1",
            "kind": self.of.kind,
            "a": a,
            "b": b,
            "settings": self.of.settings,
            "only_in_a": only_in_a,
            "only_in_b": only_in_b,
            "numbers": numbers,
            "differing": self.differing,
            "noise": self.count(DiffVerdict::Noise),
            "same": self.count(DiffVerdict::Same),
            "not_known": self.count(DiffVerdict::NotKnown),
        })
    }
}

impl NumberPair {
    fn has_intervals(&self) -> bool {
        self.a.has_interval() && self.b.has_interval()
    }

    fn held(&self, widened: f64) -> HeldNumber {
        let difference = self.has_intervals().then(|| difference(&self.b, &self.a, widened));
        let verdict = match difference {
            _ if self.a == self.b => DiffVerdict::Same,
            Some(found) if found.low > 0.0 || found.high < 0.0 => DiffVerdict::Differs,
            Some(_) => DiffVerdict::Noise,
            None => DiffVerdict::NotKnown,
        };
        HeldNumber { pair: self.clone(), difference, verdict }
    }
}

impl HeldNumber {
    fn to_json(&self) -> Value {
        let NumberPair { point, class, number, unit, a, b } = &self.pair;
        let finite = |end: f64| end.is_finite().then_some(end);
        let ends = |of: &Estimate| of.has_interval().then(|| [finite(of.low), finite(of.most())]);
        json!({
            "point": point,
            "class": class,
            "number": number,
            "unit": unit,
            "a": a.value,
            "a_95": ends(a),
            "b": b.value,
            "b_95": ends(b),
            "difference": b.value - a.value,
            "difference_95": self.difference.as_ref().map(|of| [finite(of.low), finite(of.high)]),
            "verdict": self.verdict,
        })
    }
}

/// Adds a setting if both values differ.
pub(super) fn compare_setting(all: &mut Vec<SettingOfTwo>, name: &'static str, a: String, b: String) {
    if a != b {
        all.push(SettingOfTwo { name, a, b });
    }
}
