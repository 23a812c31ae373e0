//! A sweep as an array of Slurm's jobs: a script whose array tasks each run a part, and whose last step puts
//! the parts together, to the same bytes as on one machine.

use std::env;
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;

use clap::Args;
use serde_json::json;
use sluice_experiment::{ReadyStudy, files, shell};
use sluice_study::run::{Step, Study, StudyPart};
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::print;
use sluice_support::stop::Stop;

use super::args::{CurvesCommand, RunArgs};
use super::drive::{build, threads};
use super::progress::Progress;

/// The script's name in its folder.
const SCRIPT: &str = "sweep.sbatch";
/// The largest array that Slurm takes as it is installed (`MaxArraySize`).
const ARRAY_MAX: u32 = 1_000;

/// `sluice sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepCommand {
    #[command(flatten)]
    pub(crate) curves: CurvesCommand,
    #[command(flatten)]
    pub(crate) spread: SpreadArgs,
}

/// How a sweep is spread over machines.
#[derive(Clone, Debug, Args)]
pub(crate) struct SpreadArgs {
    /// Run nothing: write a script for Slurm into this folder, where results will be too. Its array tasks run
    /// the points, and its last step puts them together.
    #[arg(long, value_name = "FOLDER")]
    #[arg(conflicts_with_all = ["out", "part", "merge", "fresh", "threads", "export_markdown"])]
    slurm: Option<PathBuf>,
    /// How many array tasks the script has [default: one for each replication of each point, at most 1000].
    #[arg(long, value_name = "COUNT", requires = "slurm", value_parser = clap::value_parser!(u32).range(1..))]
    array_tasks: Option<u32>,
    /// Run only this part of the points, such as 3/20, into a folder of its own below --out: what an array
    /// task does.
    #[arg(long, value_name = "NUMBER/COUNT", requires = "out", conflicts_with = "export_markdown")]
    #[arg(value_parser = StudyPart::parse)]
    part: Option<StudyPart>,
    /// Put so many parts below --out together, and run nothing: the script's last step.
    #[arg(long, value_name = "COUNT", requires = "out", conflicts_with_all = ["part", "fresh"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    merge: Option<u32>,
}

impl SpreadArgs {
    /// Does what was asked for. Returns whether the sweep shall now run (or, if all of it is known, be shown)
    /// as without these flags.
    pub(crate) fn run(&self, ready: &ReadyStudy, how: &RunArgs) -> Outcome<bool> {
        if let Some(folder) = &self.slurm {
            return self.write_script(folder, ready, how.output.json).map(|()| false);
        }
        let Some(out) = &how.out else { return Ok(true) };
        if let Some(part) = self.part {
            return run_part(part, out, ready, how).map(|()| false);
        }
        if let Some(parts) = self.merge {
            merge(parts, out, ready)?;
        }
        Ok(true)
    }

    fn write_script(&self, folder: &Path, ready: &ReadyStudy, is_json: bool) -> Outcome<()> {
        let found = |what, why: std::io::Error| Failure::broken(format!("{what} cannot be found: {why}"));
        let out = absolute(folder).map_err(|why| found("the folder", why))?;
        let logs = logs_of(&out)?;
        files::make(folder)?;
        let runs = Study::in_memory(Arc::clone(&ready.bench), 1).round().len() as u32;
        let tasks = self.array_tasks.unwrap_or(ARRAY_MAX).min(runs);
        let here = env::current_dir().map_err(|why| found("the working directory", why))?;
        let program = env::current_exe().map_err(|why| found("this program", why))?;
        let path = out.join(SCRIPT);
        let places = Places { here: &here, program: &program, out: &out, logs: &logs };
        files::save(&out, SCRIPT, &script(&places, &ready.commands[0], tasks))?;
        if is_json {
            print::line(json!({
                "schema": "sluice.slurm.v1", "script": path, "array_tasks": tasks, "runs": runs,
            }))?;
        } else {
            let path = shell::word(&path.display().to_string());
            print::line(format_args!("{runs} runs in {tasks} array tasks: sbatch {path}"))?;
            print::line(format_args!("then, when all have ended: bash {path} merge"))?;
        }
        Ok(())
    }
}

/// Paths that hold in all array tasks: Slurm runs a copy of the script.
struct Places<'p> {
    /// Where relative paths of the command begin.
    here: &'p Path,
    program: &'p Path,
    out: &'p Path,
    /// Where array tasks print, as Slurm reads it.
    logs: &'p str,
}

/// The script. `again` is the command that runs the whole study.
fn script(places: &Places<'_>, again: &str, tasks: u32) -> String {
    let Places { here, program, out, logs } = places;
    let quoted = |path: &Path| shell::word(&path.display().to_string());
    let words = again.strip_prefix("sluice ").unwrap_or(again);
    format!(
        "#!/bin/bash
#SBATCH --job-name=sluice-sweep
#SBATCH --array=0-{last}
#SBATCH --cpus-per-task=1
#SBATCH --output={logs}
# Written by sluice sweep --slurm. Each array task runs a part of the points, and keeps each replication when
# it ends: one that was killed goes on from there when it is run again. When all have ended,
# `bash {name} merge` puts them together, and names the array tasks that have to be run again.
set -euo pipefail
cd {here}
sluice=${{SLUICE:-{program}}}
out={folder}
sweep() {{ exec \"$sluice\" {words} --out \"$out\" \"$@\"; }}
if [ \"${{1-}}\" = merge ]; then
    sweep --merge {tasks} \"${{@:2}}\"
fi
sweep --part \"${{SLURM_ARRAY_TASK_ID:?sbatch sets it; or set it to 0 to {last}}}/{tasks}\" \\
    --threads \"${{SLURM_CPUS_PER_TASK:-1}}\"
",
        last = tasks - 1,
        name = SCRIPT,
        here = quoted(here),
        program = quoted(program),
        folder = quoted(out),
    )
}

/// The files in `out` for what array tasks print, as Slurm's own lines have them: they know double quotes and
/// `%a`, but not what a shell does.
fn logs_of(out: &Path) -> Outcome<String> {
    let folder = out.display().to_string();
    if let Some(odd) = folder.chars().find(|c| *c == '"' || *c == '\\' || c.is_control()) {
        return Err(Failure::bad_input(format!(
            "the folder {folder:?} has a {odd:?} in its name, for which Slurm's lines of a script have no \
             place: choose another folder"
        )));
    }
    Ok(format!("\"{}/slurm-%a.txt\"", folder.replace('%', "%%")))
}

fn folder_of(out: &Path, part: StudyPart) -> PathBuf {
    out.join("parts").join(format!("{}-of-{}", part.number, part.of))
}

/// Runs a part into its own folder.
fn run_part(part: StudyPart, out: &Path, ready: &ReadyStudy, how: &RunArgs) -> Outcome<()> {
    let stop = Stop::on_signals_and_hangup()?;
    let folder = folder_of(out, part);
    if how.fresh {
        sluice_study::journal::forget(&folder)?;
    }
    let identity = ready.identity(&build());
    let mut study = Study::new(Arc::clone(&ready.bench), threads(how), &folder, &identity)?;
    let mut progress = Progress::new(how.output.quiet || how.output.json);
    progress.print_message(&format!("part {part}: {} runs to do", study.missing(part).len()));
    let complete = study.run_part(part, stop.flag(), |step| match step {
        Step::Round(jobs) => progress.more(jobs.len(), jobs.len() as f64),
        Step::Done(..) => progress.one_done(1.0),
    });
    progress.finish();
    if complete? {
        return Ok(());
    }
    let why =
        format!("stopped; what was done is in {}; the same command goes on from there", folder.display());
    Err(Failure::new(Kind::Aborted, why))
}

/// Takes what all parts have found into the whole study's folder.
fn merge(parts: u32, out: &Path, ready: &ReadyStudy) -> Outcome<()> {
    let identity = ready.identity(&build());
    let mut study = Study::new(Arc::clone(&ready.bench), 1, out, &identity)?;
    let all = (0..parts).map(|number| StudyPart { number, of: parts });
    let mut missing = Vec::new();
    for part in all {
        study.take_from(&folder_of(out, part), &identity)?;
        if !study.missing(part).is_empty() {
            missing.push(part.number.to_string());
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let (runs, numbers) = (study.round().len(), missing.join(","));
    Err(Failure::bad_input(format!(
        "{runs} runs are missing, of array tasks {numbers}: run these again (sbatch --array={numbers} {}), \
         then merge again",
        shell::word(&out.join(SCRIPT).display().to_string())
    )))
}
