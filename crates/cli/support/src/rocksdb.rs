//! Starts `sluice-rocksdb`, the program with RocksDB, which lies in the same folder: so only commands that
//! use a database need librocksdb.

use std::env;
use std::io::{self, Read as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;
use sluice_net::program::WorkerArgs;
use sluice_services::kv::{KvArgs, KvRole};
use sluice_services::rocks::RocksArgs;
use sluice_services::rocks::measure::{MeasureArgs, Measurement};
use sluice_services::rocks::request::RocksRequest;
use sluice_system::{Attempt, advice};

use crate::fail::{Failure, Kind, Outcome};
use crate::stop::Stop;

const PROGRAM: &str = "sluice-rocksdb";
/// How often the program is polled for its end.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The exit code of a shell or library loader that cannot start a program.
const CANNOT_START: i32 = 127;

/// Replaces this process with a worker that serves `data`. Returns only on failure.
pub fn become_worker(data: RocksArgs, worker: WorkerArgs) -> Outcome<()> {
    become_asked(&RocksRequest::Work { data, worker: Box::new(worker) })
}

/// Replaces this process with a worker of a key-value store. Returns only on failure.
pub fn become_store(store: KvArgs, role: KvRole, worker: WorkerArgs) -> Outcome<()> {
    become_asked(&RocksRequest::Keep { store, role, worker: Box::new(worker) })
}

fn become_asked(request: &RocksRequest) -> Outcome<()> {
    let program = find()?;
    let why = Command::new(&program).arg(written(request)?).exec();
    Err(cannot_run(&program, &why))
}

/// Loads `data` if it is missing, before many workers need it.
pub fn load(data: &RocksArgs, quiet: bool, stop: &Stop) -> Outcome<()> {
    run(&RocksRequest::Load { data: data.clone(), quiet }, stop).map(|_| ())
}

/// Measures what `args` ask for, `replications` times, each with its own seed.
pub fn measure(args: &MeasureArgs, replications: u32, quiet: bool, stop: &Stop) -> Outcome<Vec<Measurement>> {
    let told = run(&RocksRequest::Measure { what: args.clone(), replications, quiet }, stop)?;
    let measurements = told.lines().map(serde_json::from_str);
    measurements.collect::<Result<_, _>>().map_err(|why| {
        Failure::broken(format!(
            "{PROGRAM} said what this program does not understand ({why}); build both anew"
        ))
    })
}

/// The versions of the program and of RocksDB.
pub fn version() -> Outcome<String> {
    let program = find()?;
    let output = Command::new(&program).arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|why| cannot_run(&program, &why))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::bad_input(format!("{} cannot start: {said}", program.display())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn find() -> Outcome<PathBuf> {
    let this = env::current_exe().map_err(|why| Failure::broken(format!("who am I? {why}")))?;
    let program = this.with_file_name(PROGRAM);
    if program.exists() {
        return Ok(program);
    }
    let folder = this.parent().unwrap_or(Path::new("/")).display();
    Err(Failure::bad_input(format!(
        "RocksDB needs the program {PROGRAM}, which is not beside this one in {folder}; build it with \
         `cargo build --release -p {PROGRAM}` and put it there"
    )))
}

/// The request in the form that the program reads.
fn written(request: &RocksRequest) -> Outcome<String> {
    serde_json::to_string(request)
        .map_err(|why| Failure::bad_input(format!("what {PROGRAM} is to do cannot be told to it: {why}")))
}

/// The output of the program; an error with its own message if it fails. Ends the program when a stop is
/// requested.
fn run(request: &RocksRequest, stop: &Stop) -> Outcome<String> {
    let program = find()?;
    let mut command = Command::new(&program);
    command.arg(written(request)?).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|why| cannot_run(&program, &why))?;
    let output = wait(&mut child, stop).map_err(|why| cannot_run(&program, &why))?;
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(told) } else { Err(complaint(&program, output.status, &told, stop)) }
}

fn wait(child: &mut Child, stop: &Stop) -> io::Result<Output> {
    let mut pipe = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut told = Vec::new();
        // Incomplete output is noticed below.
        pipe.as_mut().map(|pipe| pipe.read_to_end(&mut told));
        told
    });
    let status = loop {
        if stop.is_asked() {
            // The call fails only if the program has ended already.
            child.kill().ok();
        }
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(LOOK_EVERY);
    };
    let stdout = reader.join().unwrap_or_default();
    Ok(Output { status, stdout, stderr: Vec::new() })
}

fn complaint(program: &Path, status: ExitStatus, told: &str, stop: &Stop) -> Failure {
    let program = program.display();
    let error: Value = serde_json::from_str(told).unwrap_or_default();
    match (&error["error"]["message"], status.code(), status.signal()) {
        (Value::String(message), Some(code), _) => Failure::new(Kind::of_code(code), message),
        (_, Some(CANNOT_START), _) => Failure::bad_input(format!(
            "{program} cannot start; `ldd {program}` lists the libraries that it misses"
        )),
        (_, None, _) if stop.is_asked() => {
            Failure::new(Kind::Aborted, "stopped before RocksDB was ready or all was measured")
        }
        (_, None, Some(signal)) => Failure::broken(format!("{program} was killed by signal {signal}")),
        _ => Failure::broken(format!("{program} ended with {status} and said nothing that can be read")),
    }
}

fn cannot_run(program: &Path, why: &io::Error) -> Failure {
    let (program, helps) = (program.display(), advice(Attempt::Program, why));
    Failure::bad_input(format!("{program} cannot be run: {why}; {helps}"))
}
