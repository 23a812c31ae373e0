//! The written forms of a workload in TOML plans and JSON results: a short string, or a table.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sluice_wire::{Nanos, TaskType};

use super::plan::{Arrivals, Change, Phase, PhasePlan};
use super::text::{show_span, span, unknown};
use super::{Class, LARGE_BYTES, Service, Workload, WorkloadError};
use crate::complaint::{TomlComplaint, read_toml};

/// A workload as it is written, before its files are read.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkloadForm {
    /// A string such as `get=0.9@const:8us+scan=0.1@const:107us`.
    Short(String),
    /// A table with a `class` table for each class and a `phase` table for each phase.
    Table(Box<WorkloadTable>),
}

/// The long form of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadTable {
    /// The default is `poisson`; see [`Arrivals::parse`], or `trace:FILE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<String>,
    pub class: Vec<ClassTable>,
    /// Changes with time, in place of `arrivals`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phase: Vec<PhaseTable>,
    /// Whether the first phase follows the last again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub repeat: bool,
}

/// A class in the long form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassTable {
    pub name: String,
    /// The class's share of the tasks; the default is 1.
    #[serde(default = "one")]
    pub share: f64,
    /// The class's service, in the short form.
    pub service: String,
    /// The type for the switch; the default is the class's index, from 0.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub task_type: Option<u16>,
    /// The share of tasks with more than 8 bytes; the default is 0.
    #[serde(default)]
    pub large: f64,
    /// How many bytes such a task has; the default is 640.
    #[serde(default = "large_bytes", skip_serializing_if = "is_large_bytes")]
    pub bytes: u16,
    /// The priority of its tasks, 0 first; without it their size alone decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// A span such as `200us`: for how long its tasks are worth beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
}

/// A phase in the long form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseTable {
    /// A span such as `50ms`; only the last phase may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
    /// The factor of the rate; the default is 1.
    #[serde(default)]
    pub rate: Factor,
    /// Changed shares, by class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub share: BTreeMap<String, f64>,
    /// Changed services, by class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub service: BTreeMap<String, String>,
}

/// The factor by which a rate is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Factor {
    /// One factor for the whole phase.
    Steady(f64),
    /// A linear change from the first to the second factor.
    Ramp([f64; 2]),
}

impl Default for Factor {
    fn default() -> Self {
        Self::Steady(1.0)
    }
}

impl WorkloadForm {
    /// Reads the files that it names, searched in `folder`, and checks everything.
    pub fn resolve(&self, folder: &Path) -> Result<Workload, WorkloadError> {
        match self {
            Self::Short(text) => Workload::parse_in(text, folder),
            Self::Table(table) => table.resolve(folder),
        }
    }
}

impl WorkloadForm {
    /// The text that [`Workload::parse_in`] reads: the short form, or the table as TOML.
    pub fn written(&self) -> String {
        match self {
            Self::Short(text) => text.clone(),
            Self::Table(table) => toml::to_string(table).unwrap_or_default(),
        }
    }
}

impl WorkloadTable {
    /// Reads the TOML that [`WorkloadForm::written`] wrote of a table; `None` if the text is a short form.
    pub(super) fn read(text: &str) -> Option<Result<Self, WorkloadError>> {
        let wrong = |said: TomlComplaint| WorkloadError::Workload { text: "table".to_owned(), why: said.why };
        text.contains("[[class]]").then(|| read_toml(text).map_err(wrong))
    }

    pub(super) fn resolve(&self, folder: &Path) -> Result<Workload, WorkloadError> {
        let classes = self.class.iter().enumerate().map(|(i, class)| class.resolve(i, folder));
        let classes = classes.collect::<Result<Vec<_>, _>>()?;
        let names: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
        let phases = self.phase.iter().enumerate().map(|(i, phase)| {
            let wrong = |why| WorkloadError::Arrivals { text: format!("phase {}", i + 1), why };
            phase.resolve(&names, folder).map_err(wrong)
        });
        let phases = phases.collect::<Result<Vec<_>, _>>()?;
        let wrong = |why: &str| WorkloadError::Arrivals { text: "phase".to_owned(), why: why.to_owned() };
        let arrivals = match &self.arrivals {
            Some(_) if !phases.is_empty() => {
                return Err(wrong("`arrivals` and phases exclude each other: leave one out"));
            }
            Some(text) => Arrivals::parse_in(text, folder, &names)?,
            None if !phases.is_empty() => Arrivals::Plan(PhasePlan { phases, repeat: self.repeat }),
            None => Arrivals::Poisson,
        };
        if self.repeat && self.phase.is_empty() {
            return Err(wrong("`repeat` is for phases: add some, or leave it out"));
        }
        Workload::new(classes, arrivals)
    }
}

impl ClassTable {
    fn resolve(&self, place: usize, folder: &Path) -> Result<Class, WorkloadError> {
        Ok(Class {
            name: self.name.clone(),
            task_type: TaskType(self.task_type.unwrap_or(place as u16)),
            share: self.share,
            service: Service::parse_in(&self.service, folder)?,
            large: self.large,
            bytes: self.bytes,
            priority: self.priority,
            budget: self.budget()?,
        })
    }
}

impl ClassTable {
    fn budget(&self) -> Result<Option<Nanos>, WorkloadError> {
        let wrong = |why| WorkloadError::Workload { text: self.name.clone(), why: format!("budget: {why}") };
        self.budget.as_deref().map(span).transpose().map_err(wrong)
    }
}

impl PhaseTable {
    fn resolve(&self, names: &[String], folder: &Path) -> Result<Phase, String> {
        let lasts = self.lasts.as_deref().map(span).transpose()?.unwrap_or_default();
        let (from, to) = match self.rate {
            Factor::Steady(factor) => (factor, factor),
            Factor::Ramp([from, to]) => (from, to),
        };
        let mut changes = Vec::new();
        for name in self.share.keys().chain(self.service.keys()) {
            let class = names.iter().position(|known| known == name);
            let class = class.ok_or_else(|| unknown("class", name, names.iter().map(String::as_str)))?;
            if changes.iter().any(|change: &Change| change.class == class) {
                continue;
            }
            let service = self.service.get(name).map(|text| Service::parse_in(text, folder)).transpose();
            let service = service.map_err(|error| error.to_string())?;
            changes.push(Change { class, share: self.share.get(name).copied(), service });
        }
        Ok(Phase { lasts, from, to, changes })
    }
}

impl From<&Workload> for WorkloadTable {
    fn from(workload: &Workload) -> Self {
        let class = workload.classes.iter().map(|class| ClassTable {
            name: class.name.clone(),
            share: class.share,
            service: class.service.to_string(),
            task_type: Some(class.task_type.0),
            large: class.large,
            bytes: class.bytes,
            priority: class.priority,
            budget: class.budget.map(show_span),
        });
        let class = class.collect();
        match &workload.arrivals {
            Arrivals::Plan(plan) => {
                let phase = plan.phases.iter().map(|phase| table_of(phase, &workload.classes)).collect();
                Self { arrivals: None, class, phase, repeat: plan.repeat }
            }
            other => Self { arrivals: Some(other.to_string()), class, phase: Vec::new(), repeat: false },
        }
    }
}

fn table_of(phase: &Phase, classes: &[Class]) -> PhaseTable {
    let name = |change: &Change| classes[change.class].name.clone();
    let shares = phase.changes.iter().filter_map(|change| Some((name(change), change.share?)));
    let services = phase.changes.iter();
    let services = services.filter_map(|change| Some((name(change), change.service.as_ref()?.to_string())));
    let steady = phase.from.to_bits() == phase.to.to_bits();
    PhaseTable {
        lasts: Some(phase.lasts).filter(|lasts| *lasts > Nanos(0)).map(show_span),
        rate: if steady { Factor::Steady(phase.from) } else { Factor::Ramp([phase.from, phase.to]) },
        share: shares.collect(),
        service: services.collect(),
    }
}

impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.only_file() {
            Some(text) => text.serialize(serializer),
            None => WorkloadTable::from(self).serialize(serializer),
        }
    }
}

/// Files are searched in the working directory; [`WorkloadForm::resolve`] takes another folder.
impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        WorkloadForm::deserialize(deserializer)?.resolve(Path::new("")).map_err(Error::custom)
    }
}

impl Serialize for WorkloadForm {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Short(text) => text.serialize(serializer),
            Self::Table(table) => table.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for WorkloadForm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StringOrTable)
    }
}

/// Reads a string or a table, and reports a table's own errors.
struct StringOrTable;

impl<'de> Visitor<'de> for StringOrTable {
    type Value = WorkloadForm;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a workload such as \"exp:10us\", or a table with `class`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(WorkloadForm::Short(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let table = WorkloadTable::deserialize(MapAccessDeserializer::new(map))?;
        Ok(WorkloadForm::Table(Box::new(table)))
    }
}

fn one() -> f64 {
    1.0
}

const fn large_bytes() -> u16 {
    LARGE_BYTES
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
const fn is_large_bytes(bytes: &u16) -> bool {
    *bytes == LARGE_BYTES
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_false(value: &bool) -> bool {
    !*value
}
