//! `sluice worker`: one of our services as a worker, or a program of yours with a parent to die with.

use std::os::unix::process::CommandExt;
use std::process::Command;

use sluice_apps::rocks;
use sluice_net::program::{log, serve};

use crate::args::Worker;
use crate::fail::{Failure, Kind, Outcome};
use crate::hint;
use crate::print;
use crate::rack::parent;
use crate::rocksdb;

/// Runs until a signal comes, then finishes what the worker holds.
pub(crate) fn run(args: Worker) -> Outcome<()> {
    parent::die_with(args.parent)?;
    if let Some(program) = args.exec {
        let why = Command::new(&program).args(args.args).exec();
        let program = program.display();
        return Err(Failure::bad_input(format!(
            "{program} cannot be run: {why}; give the path of an executable"
        )));
    }
    let name = args.service.unwrap_or_default();
    if name == rocks::NAME {
        return rocksdb::become_worker(&args.data);
    }
    let service = sluice_apps::open(&name)
        .ok_or_else(|| Failure::bad_input(hint::unknown("service", &name, &sluice_apps::SERVICES)))?;
    log(args.common.quiet);
    let report = serve(&args.common, service)?;
    print::aside(&report);
    if args.common.json {
        print::line(serde_json::to_string(&report).map_err(Failure::broken)?)?;
    }
    if report.drained {
        return Ok(());
    }
    let why = "the worker could not finish what it held; its clients try again elsewhere";
    Err(Failure::new(Kind::Aborted, why).with_result_shown())
}
