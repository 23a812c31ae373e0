//! Figures that are measured on this machine instead of simulated: the duration of real operations, over
//! two settings.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use sluice_outcome::study::{
    Axis, Estimate, Expectation, HeatMap, Method, Schema, Settings, StudyOutcome, Unit,
};
use sluice_services::rocks::RocksArgs;
use sluice_services::rocks::measure::{Clock, MeasureArgs};
use sluice_stats::estimate;
use sluice_study::growth;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::rocksdb;
use sluice_support::stop::Stop;
use sluice_workload::read_toml;

/// The folder of the databases, one for each item size.
const DATABASES: &str = "out/rocksdb-by-size";
const MAP: &str = "scan";

/// A plan of such a figure.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) source: String,
    /// Whether the statements are ours and in no paper.
    ours: bool,
    notes: Vec<String>,
    measure: Service,
    pub(super) seed: u64,
    pub(super) replications: u32,
    pub(super) samples: u64,
    database_keys: u64,
    cache_mib: u32,
    scan: Vec<u32>,
    item_bytes: Vec<u32>,
    tolerance: Tolerance,
    #[serde(rename = "claim")]
    claims: Vec<Claim>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Service {
    RocksDb,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tolerance {
    order: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    id: String,
    says: String,
    place: String,
    grows_with: Setting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Setting {
    Keys,
    ItemBytes,
}

impl Plan {
    /// Reads one of this program's own plans.
    pub(super) fn parse(file: &str, text: &str) -> Outcome<Self> {
        read_toml(text).map_err(|said| Failure::bad_input(format!("{file}{}: {}", said.place(), said.why)))
    }

    /// How many numbers the plan measures.
    pub(super) fn points(&self) -> usize {
        self.scan.len() * self.item_bytes.len()
    }

    /// How many of the paper's statements the plan checks.
    pub(super) fn claims(&self) -> usize {
        self.claims.len()
    }

    /// Measures everything; takes about a minute.
    pub(super) fn run(&self, quiet: bool, stop: &Stop, commands: Vec<String>) -> Outcome<StudyOutcome> {
        let rows = self.item_bytes.iter().map(|bytes| self.row(*bytes, quiet, stop));
        let rows = rows.collect::<Outcome<_>>()?;
        let map = HeatMap {
            id: MAP.into(),
            title: "Mean time on the processor of a SCAN".into(),
            unit: Unit::Ns,
            across: axis("keys", &self.scan),
            down: axis("item bytes", &self.item_bytes),
            cells: rows,
        };
        Ok(StudyOutcome {
            schema: Schema::V1,
            name: self.name.clone(),
            title: self.title.clone(),
            sluice: env!("CARGO_PKG_VERSION").into(),
            commit: env!("SLUICE_COMMIT").into(),
            settings: self.settings(),
            commands,
            complete: true,
            panels: Vec::new(),
            expectations: self.claims.iter().map(|claim| self.expectation(claim, &map)).collect(),
            heats: vec![map],
            comparisons: Vec::new(),
            searches: Vec::new(),
        })
    }

    /// Measures all SCANs over items of one size.
    fn row(&self, item_bytes: u32, quiet: bool, stop: &Stop) -> Outcome<Vec<Estimate>> {
        let Service::RocksDb = self.measure;
        let asked = MeasureArgs {
            data: RocksArgs {
                db: database(item_bytes, self.database_keys),
                keys: self.database_keys,
                item_bytes,
                cache_mib: self.cache_mib,
            },
            get: Vec::new(),
            scan: self.scan.clone(),
            exponential: false,
            samples: self.samples,
            clock: Clock::Cpu,
            seed: self.seed,
        };
        let runs = rocksdb::measure(&asked, self.replications, quiet, stop)?;
        let mut means = vec![Vec::new(); self.scan.len()];
        for run in runs {
            means.iter_mut().zip(run.operation).for_each(|(means, found)| means.push(found.mean_ns));
        }
        let mean = |of: &Vec<f64>| of.iter().sum::<f64>() / of.len() as f64;
        Ok(means.iter().map(|of| estimate(mean(of), of, Method::Replications)).collect())
    }

    fn expectation(&self, claim: &Claim, map: &HeatMap) -> Expectation {
        let (verdict, why) = growth(map, claim.grows_with == Setting::Keys, self.tolerance.order);
        Expectation {
            id: claim.id.clone(),
            claim: claim.says.clone(),
            place: claim.place.clone(),
            ours: self.ours,
            panel: None,
            unit: map.unit,
            paper: None,
            measured: None,
            verdict,
            why,
            cause: None,
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            plan: Some(format!("experiments/{}.toml", self.name)),
            testbed: "none: RocksDB on this machine".into(),
            testbed_toml: String::new(),
            workers: 1,
            seed: self.seed,
            replications: self.replications,
            tasks: self.samples,
            tasks_most: self.samples,
            warm_up: "a fifth as many".into(),
            machine: Some(sluice_system::machine()),
            dilation: None,
            notes: self.notes.clone(),
        }
    }
}

fn axis(name: &str, values: &[u32]) -> Axis {
    Axis { name: name.into(), values: values.iter().map(|value| u64::from(*value)).collect() }
}

fn database(item_bytes: u32, keys: u64) -> PathBuf {
    Path::new(DATABASES).join(format!("{keys}-of-{item_bytes}"))
}
