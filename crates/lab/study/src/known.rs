//! What is known of a study so far: the summaries of the points that are done.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sluice_outcome::study::Metric;
use sluice_stats::{Measured, NumberInParts, Summary, summarize};

use super::plan::Run;

/// One point of a study.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PointId {
    /// The case's place in the plan.
    pub case: usize,
    pub run: Run,
    /// Tasks offered per second.
    pub rate: u64,
    /// The place of the cause whose change it is run with, if it is.
    pub change: Option<usize>,
}

/// The points that are done, and the replications of those that are not yet.
#[derive(Debug, Default)]
pub struct Known {
    done: BTreeMap<PointId, Done>,
    kept: BTreeMap<PointId, Vec<Measured>>,
    begun: BTreeMap<PointId, BTreeMap<u32, Measured>>,
}

/// A number of a point: a metric of one class, or of all tasks.
pub(super) type OfClass = (Metric, Option<usize>);

/// What is kept of a point's replications beside its summary.
#[derive(Clone, Debug)]
pub struct Keep {
    /// All of them.
    pub whole: bool,
    /// These numbers part by part, to be held against others of the same tasks.
    pub numbers: Vec<OfClass>,
}

/// A point that is done.
#[derive(Debug)]
struct Done {
    summary: Summary,
    numbers: Vec<(OfClass, Arc<NumberInParts>)>,
}

impl Known {
    /// A point's summary, if it is done.
    pub fn get(&self, id: &PointId) -> Option<&Summary> {
        self.done.get(id).map(|done| &done.summary)
    }

    /// A done point's number part by part, if it was kept.
    pub fn in_parts(&self, id: &PointId, of: OfClass) -> Option<&Arc<NumberInParts>> {
        let numbers = &self.done.get(id)?.numbers;
        numbers.iter().find(|(kept, _)| *kept == of).map(|(_, number)| number)
    }

    /// All points of one series that are done, in the order of their rates.
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

    /// Whether one replication need not be run any more.
    pub fn has(&self, id: &PointId, replication: u32) -> bool {
        self.done.contains_key(id) || self.begun.get(id).is_some_and(|begun| begun.contains_key(&replication))
    }

    /// Adds a replication; with the last of `of` the point is done, whatever order they came in.
    pub fn add(&mut self, id: &PointId, replication: u32, of: u32, measured: Measured, keep: &Keep) {
        let begun = self.begun.entry(id.clone()).or_default();
        begun.insert(replication, measured);
        if begun.len() < of as usize {
            return;
        }
        let all: Vec<Measured> = self.begun.remove(id).into_iter().flatten().map(|(_, one)| one).collect();
        let in_parts = |of: &OfClass| (*of, Arc::new(NumberInParts::of(&all, Some(of.0), of.1)));
        let numbers = keep.numbers.iter().map(in_parts).collect();
        self.done.insert(id.clone(), Done { summary: summarize(&all), numbers });
        if keep.whole {
            self.kept.insert(id.clone(), all);
        }
    }

    /// Adds a point whose summary is known already.
    #[cfg(test)]
    pub(super) fn set(&mut self, id: PointId, summary: Summary) {
        self.done.insert(id, Done { summary, numbers: Vec::new() });
    }
}

/// What somebody wants to know: the answer, or the points that are missing for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer<T> {
    /// It is known.
    Known(T),
    /// These points first.
    Wants(BTreeSet<PointId>),
}

impl<T> Answer<T> {
    /// The same of something made of it.
    pub(super) fn map<U>(self, make: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Self::Known(known) => Answer::Known(make(known)),
            Self::Wants(points) => Answer::Wants(points),
        }
    }

    /// What follows from it.
    pub(super) fn then<U>(self, next: impl FnOnce(T) -> Answer<U>) -> Answer<U> {
        match self {
            Self::Known(known) => next(known),
            Self::Wants(points) => Answer::Wants(points),
        }
    }

    /// Two answers, or what both want.
    pub(super) fn and<U>(self, other: Answer<U>) -> Answer<(T, U)> {
        match (self, other) {
            (Self::Known(one), Answer::Known(other)) => Answer::Known((one, other)),
            (Self::Wants(mut points), Answer::Wants(more)) => {
                points.extend(more);
                Answer::Wants(points)
            }
            (Self::Wants(points), _) | (_, Answer::Wants(points)) => Answer::Wants(points),
        }
    }

    /// All answers, or what all of them want.
    pub(super) fn all(answers: impl IntoIterator<Item = Self>) -> Answer<Vec<T>> {
        answers.into_iter().fold(Answer::Known(Vec::new()), |all, one| {
            all.and(one).map(|(mut all, one)| {
                all.push(one);
                all
            })
        })
    }

    /// What is missing.
    pub(super) fn wants(self) -> BTreeSet<PointId> {
        match self {
            Self::Known(_) => BTreeSet::new(),
            Self::Wants(points) => points,
        }
    }

    /// The answer, if it is there.
    pub(super) fn known(self) -> Option<T> {
        match self {
            Self::Known(known) => Some(known),
            Self::Wants(_) => None,
        }
    }
}

impl fmt::Display for PointId {
    /// As messages name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "case {} {} at {}", self.case, self.run.label(), self.rate)?;
        self.change.map_or(Ok(()), |change| write!(f, " with cause {change}"))
    }
}
