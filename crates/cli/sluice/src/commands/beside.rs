//! `sluice up PLAN --beside-pool`: runs the plan twice, on its servers of many cores and on plain pools of
//! as many threads with one queue each, and compares the results of each task type.

use sluice_host::orchestrator::Assignment;
use sluice_launcher::UpSettings;
use sluice_outcome::run::{Quantiles, RunResult, TypeResult};
use sluice_report::table::{NOTHING, Table, digits, time};
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::plan::{CoresPlan, Plan};
use sluice_support::print;
use sluice_support::stop::Stop;

/// Runs both, one after the other, with the same seed, so that the same tasks come at the same times.
///
/// # Errors
/// As for one run; also if the most important tasks did not have a lower p99 on the plan's servers.
pub(crate) fn run(plan: &Plan, how: &UpSettings<'_>, stop: &Stop) -> Outcome<()> {
    let urgent = most_important(plan).ok_or_else(|| {
        Failure::bad_input(
            "no worker of the plan has `cores`, whose server could be held to a pool: give it some",
        )
    })?;
    let of = |name: &str, pool: bool| -> Outcome<RunResult> {
        let mut run = plan.clone();
        (run.out, run.state) = (plan.out.join(name), plan.out.join(name).join("state"));
        let servers = run.workers.iter_mut().filter_map(|worker| worker.cores.as_mut());
        servers.for_each(|of| if pool { as_pool(of) } else { of.pool = false });
        let ran = sluice_launcher::up(&run, how, stop)?;
        ran.ok_or_else(|| Failure::bad_input("the plan has no [load] to hold both to: give it one"))
    };
    let (server, pool) = (of("server", false)?, of("pool", true)?);
    if !how.output.json {
        print::text(table(&server, &pool))?;
    }
    let is_lower = |(own, other): (f64, f64)| own < other;
    let missed = pairs(&server, &pool).find(|(mine, theirs)| {
        urgent.contains(&mine.name) && !p99(mine).zip(p99(theirs)).is_some_and(is_lower)
    });
    missed.map_or(Ok(()), |(mine, _)| {
        let why = format!("{}, the most important, has no lower p99 than with a pool of threads", mine.name);
        Err(Failure::new(Kind::GateFailed, why).with_result_shown())
    })
}

/// Turns a server into a plain pool with as many threads.
fn as_pool(of: &mut CoresPlan) {
    (of.pool, of.batch, of.assignment) = (true, false, Assignment::CompleteShare);
}

/// The types of the slices that servers serve with the highest priority.
fn most_important(plan: &Plan) -> Option<Vec<String>> {
    let served = || plan.workers.iter().filter_map(|of| of.cores.as_ref()).flat_map(|of| &of.serves);
    let most = served().map(|of| of.priority).max()?;
    let is_urgent = |name: &str| served().any(|of| of.priority == most && of.slice == name);
    let slices = plan.slices.iter().filter(|slice| is_urgent(&slice.name));
    Some(slices.flat_map(|slice| slice.types.iter().cloned()).collect())
}

fn table(server: &RunResult, pool: &RunResult) -> Table {
    let mut table =
        Table::new(["latency", "p50", "p99", "p99.9", "of a pool", "p99", "p99.9", "p99 / pool's"]);
    let cell = |of: &TypeResult, part: fn(&Quantiles) -> f64| {
        of.latency_ns.as_ref().map_or_else(|| NOTHING.to_owned(), |of| time(part(of)))
    };
    for (mine, theirs) in pairs(server, pool) {
        let over = p99(mine).zip(p99(theirs)).map(|(own, other)| digits(own / other));
        table.row([
            mine.name.clone(),
            cell(mine, |of| of.p50),
            cell(mine, |of| of.p99),
            cell(mine, |of| of.p999),
            cell(theirs, |of| of.p50),
            cell(theirs, |of| of.p99),
            cell(theirs, |of| of.p999),
            over.unwrap_or_else(|| NOTHING.to_owned()),
        ]);
    }
    table
}

fn pairs<'r>(
    server: &'r RunResult,
    pool: &'r RunResult,
) -> impl Iterator<Item = (&'r TypeResult, &'r TypeResult)> {
    let of_pool = |name: &str| pool.types.iter().find(|theirs| theirs.name == name);
    server.types.iter().filter_map(move |mine| Some((mine, of_pool(&mine.name)?)))
}

fn p99(of: &TypeResult) -> Option<f64> {
    of.latency_ns.map(|of| of.p99)
}
