//! RocksDB as a worker: a service whose `main` is one call.
use std::process::ExitCode;

use sluice_apps::progress::Shown;
use sluice_apps::rocks::{Rocks, RocksArgs};

fn main() -> ExitCode {
    sluice_net::run_service_with(|args: &RocksArgs| Rocks::open(args, &mut Shown::new()))
}
