//! `sluice worker`: runs one of our services as a worker, or a program of the user that dies with its
//! parent; or a worker that a plan describes, which may be either.

mod planned;
mod start;

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args as _, CommandFactory as _};
use sluice_launcher::parent;
use sluice_net::program::WorkerArgs;
use sluice_services::rocks;
use sluice_support::fail::Outcome;
use sluice_support::rocksdb;

use start::{become_program, serve_ours};

use crate::args::{Sluice, Worker};

/// Runs until a signal; the worker then finishes the tasks that it holds.
pub(crate) fn run(args: Worker) -> Outcome<()> {
    parent::die_with(args.parent)?;
    if let Some(plan) = &args.plan {
        let name = args.common.name.as_deref().unwrap_or_default();
        return planned::run(plan, name, worker_flags(env::args_os()));
    }
    if let Some(program) = args.exec {
        return become_program(&program, &args.args);
    }
    let name = args.service.unwrap_or_default();
    if name == rocks::NAME {
        return rocksdb::become_worker(&args.data, worker_flags(env::args_os()));
    }
    serve_ours(&name, &args.common)
}

/// The flags that all workers share, as given on a command line of `sluice worker`.
fn worker_flags(line: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let matches = Sluice::command().ignore_errors(true).get_matches_from(line);
    let Some(given) = matches.subcommand_matches("worker") else { return Vec::new() };
    let known = WorkerArgs::augment_args(clap::Command::new("worker"));
    known.get_arguments().flat_map(|arg| as_given(arg, given)).collect()
}

fn as_given(arg: &Arg, given: &ArgMatches) -> Vec<OsString> {
    let id = arg.get_id().as_str();
    let is_given = given.value_source(id) == Some(ValueSource::CommandLine);
    let Some(long) = arg.get_long().filter(|_| is_given) else { return Vec::new() };
    let flag = OsString::from(format!("--{long}"));
    if !arg.get_action().takes_values() {
        return vec![flag];
    }
    let values: Vec<&OsStr> = given.get_raw(id).into_iter().flatten().collect();
    match values[..] {
        // With `=`, so that a value may begin with a dash.
        [value] if value.as_bytes().starts_with(b"-") => {
            vec![[&flag, OsStr::new("="), value].into_iter().collect()]
        }
        _ => [&*flag].into_iter().chain(values).map(OsStr::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(line: &str) -> Vec<String> {
        let flags = worker_flags(line.split(' ').map(OsString::from));
        flags.into_iter().map(|flag| flag.into_string().expect("text")).collect()
    }

    #[test]
    fn a_worker_hears_what_was_said_and_nothing_that_was_not() {
        assert_eq!(flags("sluice worker rocksdb"), [""; 0]);
        assert_eq!(
            flags(
                "sluice worker --db rocksdb --quota 3 rocksdb --early --parent 7 --ca ca --identity a b -q"
            ),
            ["--ca", "ca", "--identity", "a", "b", "--quota", "3", "--early", "--quiet"]
        );
        assert_eq!(
            flags("sluice worker rocksdb --name=-x --listen 127.0.0.1:0").join(" "),
            "--name=-x --listen 127.0.0.1:0"
        );
    }
}
