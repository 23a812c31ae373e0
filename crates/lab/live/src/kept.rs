//! The settings of a live sweep or comparison: flags override what an earlier run stored. The file beside
//! the results stores every key with its value.
//!
//! A key means the same as the flag of its name. As on the command line, relative paths start at the folder
//! in which the command runs. Files that a workload names are not copied; a sweep's traces contain what was
//! drawn from them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sluice_experiment::policies;
use sluice_study::numbers;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::flags::Io;
use sluice_support::plan::POLICY_DEFAULT;
use sluice_support::results::files;
use sluice_system::text;
use sluice_testbed::Testbed;
use sluice_workload::read_toml;

use crate::args::{LoadBalancer, SweepArgs, VersusArgs, loads};

/// Settings that are stored in a file.
pub(crate) trait KeptSettings: Serialize + DeserializeOwned + PartialEq {
    /// The file's name in the folder of results.
    const FILE: &str;
    /// The command that runs the settings again, without the file's name.
    const AGAIN: &str;

    /// The folder of results.
    fn out(&self) -> &Path;

    /// Reads a settings file.
    fn read(path: &Path) -> Outcome<Self> {
        let shown = path.display();
        let text = text::read(path).map_err(|why| {
            Failure::bad_input(format!("{shown} cannot be read as the {} of a run: {why}", Self::FILE))
        })?;
        Self::parse(&text).map_err(|why| Failure::bad_input(format!("{shown}{why}")))
    }

    /// Parses a file's text. The caller puts the file's name before an error.
    fn parse(text: &str) -> Result<Self, String> {
        read_toml(text).map_err(|said| format!("{}: {}", said.place(), said.why))
    }

    /// Writes the settings and the testbed into their folder. The file is replaced in one step, since it
    /// may be the one from which the settings were read.
    fn keep(&self, testbed: &Testbed) -> Outcome<()> {
        let folder = self.out();
        let no = |why: &dyn std::fmt::Display| format!("the settings cannot be kept: {why}");
        let again = format!("{} {}", Self::AGAIN, folder.join(Self::FILE).display());
        let toml = toml::to_string(self).map_err(|why| Failure::bad_input(no(&why)))?;
        let text =
            format!("# What ran, with what flags said: `{}` runs it again.\n{toml}", again.escape_debug());
        if Self::parse(&text).ok().as_ref() != Some(self) {
            return Err(Failure::broken(no(
                &"a bug: they would be others when they are read; please report it",
            )));
        }
        files::save(folder, TESTBED, &testbed.to_toml())?;
        files::save(folder, Self::FILE, &text)
    }
}

/// The testbed's file beside the settings.
const TESTBED: &str = "testbed.toml";
/// The policies of a sweep if none is named.
const POLICIES: [&str; 5] = ["rain:2", "r2p2:2", "racksched", "draconis", "pallas"];
/// The smallest number of tasks in a comparison.
const TASKS_MIN: u64 = 1_000;
/// The largest integer in TOML.
const SEED_MAX: u64 = i64::MAX as u64;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SweepSettings {
    pub(crate) policies: Vec<String>,
    pub(crate) loads: Vec<f64>,
    pub(crate) workload: String,
    pub(crate) testbed: String,
    pub(crate) dilation: u32,
    #[serde(with = "span")]
    pub(crate) length: Duration,
    pub(crate) replications: u32,
    pub(crate) seed: u64,
    pub(crate) each_task: bool,
    pub(crate) out: PathBuf,
}

impl Default for SweepSettings {
    fn default() -> Self {
        Self {
            policies: POLICIES.map(str::to_owned).to_vec(),
            loads: Vec::new(),
            workload: "exp:10us".to_owned(),
            testbed: "rain".to_owned(),
            dilation: 100,
            length: Duration::from_secs(4),
            replications: 5,
            seed: 1,
            each_task: false,
            out: PathBuf::from("out/live"),
        }
    }
}

impl SweepSettings {
    /// The settings that the flags describe.
    pub(crate) fn of(up: &SweepArgs<'_>) -> Outcome<Self> {
        let (flags, asked) = (up.live, up.live.sweep.as_deref().unwrap_or_default());
        let kept = match Path::new(asked) {
            file if file.extension().is_some_and(|ending| ending == "toml") => Self::read(file)?,
            _ => Self { loads: loads(asked)?, ..Self::default() },
        };
        let settings = Self {
            policies: listed(&flags.policy)?.unwrap_or(kept.policies),
            loads: kept.loads,
            workload: flags.workload.clone().unwrap_or(kept.workload),
            testbed: flags.testbed.clone().unwrap_or(kept.testbed),
            dilation: up.dilate.unwrap_or(kept.dilation),
            length: up.length.unwrap_or(kept.length),
            replications: flags.replications.unwrap_or(kept.replications),
            seed: flags.seed.unwrap_or(kept.seed),
            each_task: flags.each_task || kept.each_task,
            out: up.out.map_or(kept.out, Path::to_owned),
        };
        settings.check().map_err(Failure::bad_input)?;
        Ok(settings)
    }

    /// These settings, with the testbed whose file lies beside the stored settings.
    pub(crate) fn on_kept_testbed(self) -> Self {
        Self { testbed: self.out.join(TESTBED).display().to_string(), ..self }
    }

    fn check(&self) -> Result<(), String> {
        if self.policies.is_empty() || self.loads.is_empty() {
            return Err("there are no policies or no loads: name at least one of each".to_owned());
        }
        for load in &self.loads {
            numbers::load(&load.to_string()).map_err(|why| why.to_string())?;
        }
        within("replications", self.replications.into(), 2, 1_000)?;
        within("dilation", self.dilation.into(), 1, 1_000_000)?;
        within("seed", self.seed, 0, SEED_MAX)
    }
}

impl KeptSettings for SweepSettings {
    const FILE: &str = "sweep.toml";
    const AGAIN: &str = "sluice up --sweep";

    fn out(&self) -> &Path {
        &self.out
    }
}

/// The settings of a comparison with today's load balancers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct VersusSettings {
    pub(crate) policies: Vec<String>,
    pub(crate) today: Vec<LoadBalancer>,
    pub(crate) workload: String,
    pub(crate) load: f64,
    pub(crate) workers: u32,
    pub(crate) tasks: u64,
    pub(crate) dilation: u32,
    pub(crate) ports: u32,
    pub(crate) io: Io,
    pub(crate) seed: u64,
    pub(crate) within: Option<f64>,
    pub(crate) better: Option<f64>,
    pub(crate) out: PathBuf,
}

impl Default for VersusSettings {
    fn default() -> Self {
        Self {
            policies: vec![POLICY_DEFAULT.to_owned()],
            today: vec![LoadBalancer::Nginx, LoadBalancer::Reuseport],
            workload: "bimodal:10us:100us:0.9".to_owned(),
            load: 0.8,
            workers: 32,
            tasks: 100_000,
            dilation: 1_000,
            ports: 1_024,
            io: Io::Udp,
            seed: 1,
            within: None,
            better: None,
            out: PathBuf::from("out/versus"),
        }
    }
}

impl VersusSettings {
    /// The settings that the flags describe.
    pub(crate) fn of(flags: &VersusArgs) -> Outcome<Self> {
        let kept = flags.plan.as_deref().map_or_else(|| Ok(Self::default()), Self::read)?;
        let settings = Self {
            policies: listed(&flags.policy)?.unwrap_or(kept.policies),
            today: if flags.today.is_empty() { kept.today } else { flags.today.clone() },
            workload: flags.workload.clone().unwrap_or(kept.workload),
            load: flags.load.unwrap_or(kept.load),
            workers: flags.workers.unwrap_or(kept.workers),
            tasks: flags.tasks.unwrap_or(kept.tasks),
            dilation: flags.dilate.unwrap_or(kept.dilation),
            ports: flags.ports.unwrap_or(kept.ports),
            io: flags.io.unwrap_or(kept.io),
            seed: flags.seed.unwrap_or(kept.seed),
            within: flags.within.or(kept.within),
            better: flags.better.or(kept.better),
            out: flags.out.clone().unwrap_or(kept.out),
        };
        settings.check().map_err(Failure::bad_input)?;
        Ok(settings)
    }

    fn check(&self) -> Result<(), String> {
        if self.policies.is_empty() {
            return Err("there are no policies: name at least one".to_owned());
        }
        within("workers", self.workers.into(), 1, 512)?;
        within("tasks", self.tasks, TASKS_MIN, u64::MAX)?;
        within("dilation", self.dilation.into(), 1, 1_000_000)?;
        within("ports", self.ports.into(), 1, 20_000)?;
        within("seed", self.seed, 0, SEED_MAX)
    }
}

impl KeptSettings for VersusSettings {
    const FILE: &str = "versus.toml";
    const AGAIN: &str = "sluice versus";

    fn out(&self) -> &Path {
        &self.out
    }
}

/// The policies that the flags name; `None` if there are none.
fn listed(flags: &[String]) -> Outcome<Option<Vec<String>>> {
    if flags.is_empty() { Ok(None) } else { Ok(policies::listed(flags).map(Some)?) }
}

fn within(what: &str, number: u64, least: u64, most: u64) -> Result<(), String> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    Err(format!("{what}: {number} is not in {least}..={most}: choose another"))
}

/// Spans as `4s`.
mod span {
    use std::time::Duration;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use sluice_support::units;

    pub(super) fn serialize<S: Serializer>(span: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&units::span_text(*span))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        units::span(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_read_again_as_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().to_owned();
        let sweep = SweepSettings {
            policies: vec!["rain:1,early".to_owned(), "racksched:2,tracked".to_owned()],
            loads: vec![0.1, 1.0 / 3.0],
            workload: "get=0.9@const:8us+scan=0.1@const:107us;even".to_owned(),
            dilation: 20,
            length: Duration::from_micros(1_500),
            replications: 2,
            seed: SEED_MAX,
            each_task: true,
            out: out.clone(),
            ..SweepSettings::default()
        }
        .on_kept_testbed();
        sweep.keep(&Testbed::rain()).expect("there is room");
        assert_eq!(SweepSettings::read(&out.join("sweep.toml")).expect("it was kept"), sweep);
        let kept = std::fs::read_to_string(&sweep.testbed).expect("it was kept");
        assert_eq!(Testbed::parse(&kept).expect("a testbed"), Testbed::rain());

        let versus = VersusSettings {
            today: vec![LoadBalancer::Reuseport],
            io: Io::Xdp,
            within: Some(1.15),
            out: out.clone(),
            ..VersusSettings::default()
        };
        versus.keep(&Testbed::ideal()).expect("there is room");
        assert_eq!(VersusSettings::read(&out.join("versus.toml")).expect("it was kept"), versus);
    }

    #[test]
    fn a_file_is_refused_with_its_line_and_the_nearest_known_key() {
        let said = SweepSettings::parse("seed = 2\ndilaton = 3\n").expect_err("no such key");
        assert!(said.contains(" line 2: ") && said.contains("did you mean `dilation`?"), "{said}");
        let said = VersusSettings::parse("today = [\"ngnix\"]").expect_err("no such way");
        assert!(said.contains(" line 1: ") && said.contains("nginx"), "{said}");
        let said = SweepSettings::parse("length = \"4\"").expect_err("no unit");
        assert!(said.contains("is not a span"), "{said}");
    }
}
