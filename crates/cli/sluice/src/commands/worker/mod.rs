//! `sluice worker`: runs one of our services as a worker, or a program of the user that dies with its
//! parent; or a worker that a plan describes, which may be either.

mod planned;
mod start;

use std::env;

use sluice_launcher::parent;
use sluice_services::kv::{KV, KvArgs, KvRole};
use sluice_services::rocks;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::rocksdb;

use planned::GivenFlags;
use start::{become_program, serve_ours};

use crate::args::WorkerCommandArgs;

/// Runs until a signal; the worker then finishes the tasks that it holds.
pub(crate) fn run(args: WorkerCommandArgs) -> Outcome<()> {
    parent::die_with(args.parent)?;
    if let Some(plan) = &args.plan {
        let name = args.common.name.as_deref().unwrap_or_default();
        return planned::run(plan, name, GivenFlags::on(env::args_os()), args.common.clone());
    }
    if let Some(program) = args.exec {
        return become_program(&program, &args.args);
    }
    let name = args.service.unwrap_or_default();
    if name != KV && (args.role.is_some() || args.sync) {
        return Err(Failure::bad_input(format!("--role and --sync are for kv; `{name}` has neither")));
    }
    if name == KV {
        let role = args.role.unwrap_or(KvRole::Reader);
        if args.sync && role == KvRole::Reader {
            return Err(Failure::bad_input(
                "--sync is for the writer; a reader writes nothing: leave it out",
            ));
        }
        let store = KvArgs { db: args.data.db, cache_mib: args.data.cache_mib, sync: args.sync };
        return rocksdb::become_store(store, role, args.common);
    }
    if name == rocks::NAME {
        return rocksdb::become_worker(args.data, args.common);
    }
    serve_ours(&name, &args.common)
}
