//! The known part of a study: summaries of the points that are done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sluice_outcome::study::Metric;
use sluice_stats::{Measured, NumberInParts, Summary, summarize};

use super::plan::PolicySetup;

/// One point of a study.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointId {
    /// The index of the case in the plan.
    pub case: usize,
    pub run: PolicySetup,
    /// Tasks offered per second.
    pub rate: u64,
    /// The index of the cause whose change is applied, if any.
    pub change: Option<usize>,
}

/// Points that are done, and replications of points that are not done yet.
#[derive(Debug, Default)]
pub struct KnownPoints {
    done: BTreeMap<PointId, FinishedPoint>,
    kept: BTreeMap<PointId, Vec<Measured>>,
    begun: BTreeMap<PointId, BTreeMap<u32, Measured>>,
}

/// A number of a point: a metric of one class, or of all tasks.
pub(super) type OfClass = (Metric, Option<usize>);

/// What is kept of a point's replications beside its summary.
#[derive(Clone, Debug)]
pub struct Retention {
    /// All of them.
    pub whole: bool,
    /// These numbers part by part, to be held against others of the same tasks.
    pub numbers: Vec<OfClass>,
}

/// A point that is done.
#[derive(Debug)]
struct FinishedPoint {
    summary: Summary,
    numbers: Vec<(OfClass, Arc<NumberInParts>)>,
}

impl KnownPoints {
    /// A point's summary, if it is done.
    pub fn get(&self, id: &PointId) -> Option<&Summary> {
        self.done.get(id).map(|done| &done.summary)
    }

    /// A done point's number part by part, if it was kept.
    pub fn in_parts(&self, id: &PointId, of: OfClass) -> Option<&Arc<NumberInParts>> {
        let numbers = &self.done.get(id)?.numbers;
        numbers.iter().find(|(kept, _)| *kept == of).map(|(_, number)| number)
    }

    /// The done points of one series, in order of their rates.
    pub fn series<'k>(&'k self, of: &'k PointId) -> impl Iterator<Item = (u64, &'k Summary)> {
        let start = PointId { rate: 0, change: None, ..of.clone() };
        self.done
            .range(start..)
            .take_while(|(id, _)| (id.case, &id.run) == (of.case, &of.run))
            .filter(|(id, _)| id.change == of.change)
            .map(|(id, done)| (id.rate, &done.summary))
    }

    /// A done point's replications, if they were kept.
    pub fn replications(&self, id: &PointId) -> Option<&[Measured]> {
        self.kept.get(id).map(Vec::as_slice)
    }

    /// Whether one replication is known already.
    pub fn has(&self, id: &PointId, replication: u32) -> bool {
        self.done.contains_key(id) || self.begun.get(id).is_some_and(|begun| begun.contains_key(&replication))
    }

    /// Adds a replication. The point is done with the last of `of` replications, in whatever order they
    /// come.
    pub fn add(&mut self, id: &PointId, replication: u32, of: u32, measured: Measured, keep: &Retention) {
        let begun = self.begun.entry(id.clone()).or_default();
        begun.insert(replication, measured);
        if begun.len() < of as usize {
            return;
        }
        let all: Vec<Measured> = self.begun.remove(id).into_iter().flatten().map(|(_, one)| one).collect();
        let in_parts = |of: &OfClass| (*of, Arc::new(NumberInParts::of(&all, Some(of.0), of.1)));
        let numbers = keep.numbers.iter().map(in_parts).collect();
        self.done.insert(id.clone(), FinishedPoint { summary: summarize(&all), numbers });
        if keep.whole {
            self.kept.insert(id.clone(), all);
        }
    }

    /// Adds a point with a known summary.
    #[cfg(test)]
    pub(super) fn set(&mut self, id: PointId, summary: Summary) {
        self.done.insert(id, FinishedPoint { summary, numbers: Vec::new() });
    }
}

/// An answer, or the points that are missing for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Evaluation<T> {
    /// The answer is known.
    Known(T),
    /// The answer needs these points first.
    Wants(BTreeSet<PointId>),
}

impl<T> Evaluation<T> {
    /// Applies a function to the answer.
    pub(super) fn map<U>(self, make: impl FnOnce(T) -> U) -> Evaluation<U> {
        match self {
            Self::Known(known) => Evaluation::Known(make(known)),
            Self::Wants(points) => Evaluation::Wants(points),
        }
    }

    /// Continues with a function that may need further points.
    pub(super) fn then<U>(self, next: impl FnOnce(T) -> Evaluation<U>) -> Evaluation<U> {
        match self {
            Self::Known(known) => next(known),
            Self::Wants(points) => Evaluation::Wants(points),
        }
    }

    /// Both answers, or the points missing for either.
    pub(super) fn and<U>(self, other: Evaluation<U>) -> Evaluation<(T, U)> {
        match (self, other) {
            (Self::Known(one), Evaluation::Known(other)) => Evaluation::Known((one, other)),
            (Self::Wants(mut points), Evaluation::Wants(more)) => {
                points.extend(more);
                Evaluation::Wants(points)
            }
            (Self::Wants(points), _) | (_, Evaluation::Wants(points)) => Evaluation::Wants(points),
        }
    }

    /// All answers, or the points missing for any of them.
    pub(super) fn all(answers: impl IntoIterator<Item = Self>) -> Evaluation<Vec<T>> {
        answers.into_iter().fold(Evaluation::Known(Vec::new()), |all, one| {
            all.and(one).map(|(mut all, one)| {
                all.push(one);
                all
            })
        })
    }

    /// The points that are missing; empty if the answer is known.
    pub(super) fn wants(self) -> BTreeSet<PointId> {
        match self {
            Self::Known(_) => BTreeSet::new(),
            Self::Wants(points) => points,
        }
    }

    /// The answer, if it is known.
    pub(super) fn known(self) -> Option<T> {
        match self {
            Self::Known(known) => Some(known),
            Self::Wants(_) => None,
        }
    }
}

impl fmt::Display for PointId {
    /// The point's name in messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {} {} at {}", self.case, self.run.label(), self.rate)?;
        self.change.map_or(Ok(()), |change| write!(f, " with cause {change}"))
    }
}
