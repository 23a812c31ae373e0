//! RocksDB as a program: `sluice worker rocksdb` and `sluice worker kv` become this program, and `sluice`
//! starts it to load or measure data.
//!
//! The caller of `load` and `measure` is a program: stdout has the result, or the error, as JSON; stderr
//! has only progress.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::LazyLock;

use clap::Parser;
use serde_json::{Value, json};
use sluice_net::exit::Kind;
use sluice_net::program::{run_worker, run_worker_on_cores};
use sluice_rocksdb::kv::Kv;
use sluice_rocksdb::measure::measure;
use sluice_rocksdb::progress::{Progress, Quiet, Shown};
use sluice_rocksdb::{Rocks, RocksError, load};
use sluice_services::rocks::request::RocksRequest;

/// RocksDB for `sluice`, which must lie in the same folder.
#[derive(Debug, Parser)]
#[command(name = "sluice-rocksdb", version = VERSION.as_str())]
struct Program {
    /// What it is asked, in JSON, as `sluice` says it.
    #[arg(value_parser = request)]
    request: RocksRequest,
}

/// The version of this program and of RocksDB, as `--version` prints it.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files = maps.lines().filter_map(|line| line.split('/').next_back());
    let library = files.into_iter().find(|file| file.starts_with("librocksdb"));
    let library =
        library.map_or_else(|| "RocksDB built in".to_owned(), |file| format!("the system's {file}"));
    format!("{}, {library}", env!("CARGO_PKG_VERSION"))
});

fn main() -> ExitCode {
    match Program::parse().request {
        RocksRequest::Work { data, worker } => {
            run_worker_on_cores(&worker, || Rocks::open(&data, &mut Shown::new()))
        }
        RocksRequest::Keep { store, role, worker } => run_worker(&worker, || Kv::open(&store, role)),
        RocksRequest::Load { data, quiet } => {
            answer(load::ensure(&data, &mut *progress(quiet)).map(|()| Vec::new()))
        }
        RocksRequest::Measure { what, replications, quiet } => {
            let measured = measure(&what, replications, &mut *progress(quiet));
            answer(measured.map(|measured| measured.iter().map(|of| json!(of)).collect()))
        }
    }
}

fn request(text: &str) -> Result<RocksRequest, String> {
    serde_json::from_str(text).map_err(|why| format!("{why}; `sluice` starts this program where it needs it"))
}

fn progress(quiet: bool) -> Box<dyn Progress> {
    if quiet { Box::new(Quiet) } else { Box::new(Shown::new()) }
}

/// Prints the results to stdout, one a line, or the error.
fn answer(done: Result<Vec<Value>, RocksError>) -> ExitCode {
    let (lines, code) = match done {
        Ok(lines) => (lines, ExitCode::SUCCESS),
        Err(why) => {
            let kind = if why.is_bad_input() { Kind::BadInput } else { Kind::Broken };
            let error = json!({ "kind": kind.name(), "exit_code": kind.code(), "message": why.to_string() });
            (vec![json!({ "schema": "sluice.error.v1", "error": error })], kind.into())
        }
    };
    let mut out = io::stdout().lock();
    match lines.iter().try_for_each(|line| writeln!(out, "{line}")).and_then(|()| out.flush()) {
        Ok(()) => code,
        // The caller is gone.
        Err(_) => Kind::Broken.into(),
    }
}
