//! `sluice profile`: measures RocksDB's operations on this machine, and writes a workload for the
//! simulator.
//!
//! The operations are those of the RocksDB service, including decoding and encoding, one after the other in
//! one thread. Left out: the effects of sockets and of other workers on the machine.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;
use sluice_report::table::{Table, time};
use sluice_services::rocks::codec;
use sluice_services::rocks::measure::{Clock, MeasuredOperation, Measurement};
use sluice_support::fail::{Failure, Outcome};
use sluice_support::results::files;
use sluice_support::stop::Stop;
use sluice_support::{print, rocksdb};
use sluice_system::{Attempt, advice};
use sluice_workload::{PROFILE_SCHEMA, Profile, ProfileData, ProfileOperation};

use crate::args::ProfileArgs as Args;

/// The services that can be measured.
const SERVICES: [&str; 1] = ["rocksdb"];
/// If the kernel preempted the process in a larger share of the samples, the tail is the machine's, not
/// RocksDB's.
const PREEMPTED_MAX: f64 = 0.001;

/// Measures, writes the profile's file, and prints it.
pub(crate) fn run(args: &Args) -> Outcome<()> {
    if !SERVICES.contains(&args.service.as_str()) {
        return Err(Failure::bad_input(sluice_units::unknown("service", &args.service, &SERVICES)));
    }
    args.measure.operations().map_err(Failure::bad_input)?;
    let target = OutputFile::open(&args.out)?;
    let stop = Stop::on_signals_and_hangup()?;
    let mut measured = rocksdb::measure(&args.measure, 1, args.output.quiet, &stop)?;
    let measured = measured.pop().ok_or_else(|| Failure::broken("nothing was measured"))?;
    let profile = profile(args, measured);
    target.write(&profile)?;
    show(args, &profile)
}

fn profile(args: &Args, Measurement { clock_cost_ns, operation }: Measurement) -> Profile {
    let data = &args.measure.data;
    Profile {
        schema: PROFILE_SCHEMA.to_owned(),
        service: args.service.clone(),
        measured_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        cpu: sluice_system::processor(),
        clock: args.measure.clock.name().to_owned(),
        clock_cost_ns,
        data: ProfileData {
            keys: data.keys,
            key_bytes: codec::KEY_BYTES as u32,
            item_bytes: data.item_bytes,
            cache_mib: data.cache_mib,
        },
        operation: operation.into_iter().map(of_profile).collect(),
    }
}

fn of_profile(measured: MeasuredOperation) -> ProfileOperation {
    let MeasuredOperation { name, keys, exponential, samples, preempted, mean_ns, cdf } = measured;
    ProfileOperation { name, keys, exponential, samples, preempted, mean_ns, cdf }
}

/// The file: created before the measurement, and renamed to its final name when it is complete.
struct OutputFile {
    file: File,
    draft: PathBuf,
    path: PathBuf,
}

impl OutputFile {
    fn open(path: &Path) -> Outcome<Self> {
        let refused = |why| {
            let (path, helps) = (path.display(), advice(Attempt::Write, &why));
            Failure::bad_input(format!("profile {path} (--out) cannot be written: {why}; {helps}"))
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(refused)?;
        }
        if path.is_dir() {
            return Err(Failure::bad_input(format!(
                "profile {} is a folder; name a file with --out",
                path.display()
            )));
        }
        let draft = path.with_extension("draft");
        let file = File::create(&draft).map_err(refused)?;
        Ok(Self { file, draft, path: path.to_owned() })
    }

    fn write(mut self, profile: &Profile) -> Outcome<()> {
        let text = toml::to_string(profile).map_err(Failure::broken)?;
        let written = self.file.write_all(text.as_bytes()).and_then(|()| fs::rename(&self.draft, &self.path));
        written.map_err(|why| files::unwritten(&self.path, &why))
    }
}

impl Drop for OutputFile {
    /// Removes an incomplete file; after the renaming there is nothing to remove.
    fn drop(&mut self) {
        fs::remove_file(&self.draft).ok();
    }
}

fn show(args: &Args, profile: &Profile) -> Outcome<()> {
    let is_disturbed = |operation: &&ProfileOperation| {
        args.measure.clock == Clock::Wall
            && operation.preempted as f64 > PREEMPTED_MAX * operation.samples as f64
    };
    for operation in profile.operation.iter().filter(is_disturbed) {
        print::to_stderr(format_args!(
            "{}: the kernel took the processor away {} times in {} samples, which its tail shows; \
             measure on an idle machine, or with --clock cpu",
            operation.name, operation.preempted, operation.samples
        ));
    }
    if args.output.json {
        let mut value = serde_json::to_value(profile).map_err(Failure::broken)?;
        value["file"] = json!(args.out);
        print::line(value)?;
        return Ok(());
    }
    print::line(table(profile)?)?;
    print::line(format_args!("as a workload: profile:{}:{}", args.out.display(), profile.operation[0].name))?;
    Ok(())
}

fn table(profile: &Profile) -> Outcome<Table> {
    let mut table = Table::new(["type", "samples", "mean", "p50", "p90", "p99", "p99.9", "most"]);
    for operation in &profile.operation {
        let drawn = profile.distribution(&operation.name).map_err(Failure::broken)?;
        let mut row = vec![operation.name.clone(), operation.samples.to_string(), time(operation.mean_ns)];
        row.extend([0.5, 0.9, 0.99, 0.999, 1.0].map(|share| time(drawn.quantile_ns(share))));
        table.row(row);
    }
    Ok(table)
}
