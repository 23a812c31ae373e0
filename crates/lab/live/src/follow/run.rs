//! Runs one case under one policy: in the simulator with many seeds, and once in a live rack.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluice_host::client::Outcome as Ending;
use sluice_net::clock::Clock;
use sluice_net::pin::cores;
use sluice_outcome::study::SliceDepths;
use sluice_sim::point::Point;
use sluice_sim::{SimError, run_jobs};
use sluice_stats::{IntervalTasks, Warmup};
use sluice_support::board::Board;
use sluice_support::controller_caller::Reporter;
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::flags::Io;
use sluice_support::load::nanos;
use sluice_support::stop::Stop;
use sluice_testrig::ScheduleStart;
use sluice_testrig::schedule::PlayedTask;
use sluice_wire::{Epoch, Nanos};
use sluice_workload::Trace;

use super::band::INTERVAL_NS;
use super::cases::FollowedCase;
use crate::args::FollowArgs;
use crate::live_sweep::LiveSweep;
use crate::priority_boost::PriorityBoost;
use crate::rack::LiveRack;
use crate::record::SendLateness;
use crate::trace::written;

/// The first replication number of live runs, so that their tasks differ from the simulator's.
const LIVE_FROM: u32 = 1_000_000;
/// The time between the start of a live run and its first task, for looking at all tasks.
const BEGINS_AFTER: Duration = Duration::from_millis(500);
/// The time that a live run needs in addition to its length.
const AROUND: Duration = Duration::from_secs(2);

pub(super) struct LiveRunResult {
    pub(super) depths: Vec<SliceDepths>,
    /// The 99th percentile of the sender's lateness, in nanoseconds of the emulated rack.
    pub(super) behind_p99_ns: u64,
    pub(super) unknown: usize,
}

/// The real time of all live runs.
pub(super) fn real_time(args: &FollowArgs, picks: &[FollowedCase]) -> Duration {
    let one = |pick: &FollowedCase| Duration::from_nanos(pick.span.times(args.dilate.into()).0) + AROUND;
    picks.iter().map(one).sum::<Duration>() * args.runs
}

/// The depths in each seed's simulation; an error if it is stopped.
pub(super) fn simulate(
    args: &FollowArgs,
    pick: &FollowedCase,
    stop: &Stop,
) -> Outcome<Vec<Vec<SliceDepths>>> {
    let seeds: Vec<u32> = (0..args.seeds).collect();
    // Enough tasks that the last interval ends while tasks still come.
    let until = pick.span + Nanos(INTERVAL_NS);
    let run = |seed: &u32| {
        let tasks = pick.point.requests(*seed).take_while(|request| request.at < until).count() as u64;
        let point = Point { tasks, warmup: Warmup::Tasks(0), ..pick.point.clone() };
        point.replicate(*seed, stop.flag()).map(|measured| measured.depths)
    };
    let (mut all, mut failed) = (Vec::new(), None);
    run_jobs(&seeds, cores(), stop.flag(), run, |_, depths| match depths {
        Ok(depths) => all.push(depths),
        Err(SimError::Stopped) => {}
        Err(why) => failed = Some(why),
    });
    if stop.is_asked() {
        return Err(Failure::new(Kind::Aborted, "stopped by a signal while the simulator ran"));
    }
    match failed {
        Some(why) => Err(Failure::broken(why)),
        None => Ok(all),
    }
}

/// Makes one live run: a rack of its own, whose agent begins with the first task.
pub(super) fn live(
    args: &FollowArgs,
    pick: &FollowedCase,
    number: u32,
    (out, stop): (&Path, &Stop),
) -> Outcome<LiveRunResult> {
    let ask = ask(args, pick, out);
    let trace = draw(pick, number, out, stop)?;
    let priority_boost = PriorityBoost::ask();
    let mut rack = LiveRack::start(&ask, &pick.who, Epoch(number + 1))?;
    let board = Board::default();
    board.name_slices(ask.slices.iter().map(|(name, _)| name.clone()).collect());
    let reporter = Reporter::start(vec![rack.controller()?], board.clone())?;
    let begins = Clock::start().now() + nanos(BEGINS_AFTER);
    let wall = SystemTime::now() + BEGINS_AFTER;
    let played = rack.adapt(Some(begins)).and_then(|()| rack.play_from(begins, &trace, args.dilate, stop));
    drop(reporter);
    // The rack's threads spin, so they must end before an error is returned.
    rack.end()?;
    drop(priority_boost);
    let played = played?.played;
    let began = wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let mut depths = board.decided().depths(began, args.dilate);
    respond(&mut depths, &ask, &trace, &played);
    let unknown = played.iter().filter(|of| matches!(of.outcome, Ending::Unknown(_))).count();
    let behind_p99_ns = SendLateness::of(&trace, &played, args.dilate).p99.0;
    Ok(LiveRunResult { depths, behind_p99_ns, unknown })
}

/// Fills in the p99 response of each interval, which agents do not report: waits in switch and worker plus
/// service, as stated in the replies, of the tasks that workers ended in the interval.
fn respond(depths: &mut [SliceDepths], ask: &LiveSweep, trace: &Trace, played: &[PlayedTask]) {
    let factor = u64::from(ask.dilation);
    let costs = ask.costs(0, ScheduleStart::default());
    let way_back = costs.send + costs.to_client;
    let slice_of: Vec<u32> = trace.classes().iter().map(|class| slice_of(ask, class)).collect();
    let mut ended: BTreeMap<(u32, u64), IntervalTasks> = BTreeMap::new();
    for (task, played) in trace.tasks().iter().zip(played) {
        let Ending::Reply(reply) = played.outcome else { continue };
        let at = played.ended.since(way_back).0 / factor;
        let undilated = |ns: u32| Nanos(u64::from(ns) / factor);
        let waits = undilated(reply.switch_wait_ns) + undilated(reply.worker_wait_ns);
        let interval = ended.entry((slice_of[usize::from(task.class)], at / INTERVAL_NS + 1)).or_default();
        interval.take(waits, undilated(reply.service_ns));
    }
    for depths in depths {
        // An agent's interval ends on time, except for its thread's lateness; rounding gives the interval's
        // number.
        let number = (depths.at_ns + INTERVAL_NS / 2) / INTERVAL_NS;
        depths.response_p99_ns =
            ended.get_mut(&(depths.slice, number)).map_or(0.0, IntervalTasks::response_p99_ns);
    }
}

/// The slice in which a class's tasks wait.
fn slice_of(ask: &LiveSweep, class: &str) -> u32 {
    let serves = |(names, _): &(String, u32)| names.split('+').any(|name| name == class);
    ask.slices.iter().position(serves).unwrap_or(0) as u32
}

/// The settings of a live run's rack.
fn ask(args: &FollowArgs, pick: &FollowedCase, out: &Path) -> LiveSweep {
    let point = &pick.point;
    LiveSweep {
        policies: vec![pick.who.clone()],
        loads: vec![1.0],
        workload: point.workload.clone(),
        testbed: point.testbed.clone(),
        dilation: args.dilate,
        length: Duration::from_nanos(pick.span.0),
        replications: args.runs,
        seed: point.seed,
        out: out.to_owned(),
        each_task: false,
        io: Io::Udp,
        slices: point.slices.clone().unwrap_or_default(),
    }
}

fn draw(pick: &FollowedCase, number: u32, out: &Path, stop: &Stop) -> Outcome<Trace> {
    let path = out.join("traces").join(format!("live-{}.csv", number + 1));
    let requests = pick.point.requests(LIVE_FROM + number).take_while(|request| request.at < pick.span);
    written(&path, &pick.point.workload, requests, stop)
}
