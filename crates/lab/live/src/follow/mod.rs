//! `sluice reproduce PLAN --live`: runs the policies of a plan whose load or workers change live and
//! dilated, and compares them with the simulator interval by interval.
//!
//! The simulator runs each case with many seeds, which gives a band. Each live run draws tasks from a seed
//! of its own, in a rack of its own, whose agent's first interval begins with the first task. The
//! comparison covers the first slice's mean depth and the borrowed workers; if some workers are slow for a
//! while, also the p99 response.

mod band;
mod cases;
mod followed;
mod responses;
mod results;
mod run;

use std::path::Path;

use serde::Serialize;
use sluice_outcome::study::{SliceDepths, Verdict};
use sluice_study::checked_plan::{CheckedPlan, Length, Overload, RunSettings};
use sluice_study::plan::Plan;
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::load::nanos;
use sluice_support::print;
use sluice_support::results::files;
use sluice_support::stop::Stop;

use super::args::FollowArgs;
use band::{Band, INTERVAL_NS, Sequence, shares};
use cases::FollowedCase;
use followed::{CaseResult, LiveRun};
use responses::Responses;

/// Everything, as JSON.
#[derive(Debug, Serialize)]
struct FollowReport<'f> {
    schema: &'static str,
    plan: &'f str,
    /// Whether everything that was asked for has run.
    complete: bool,
    dilation: u32,
    seeds: u32,
    interval_ns: u64,
    followed: &'f [CaseResult],
}

/// Runs the selected cases and policies of the plan.
///
/// # Errors
/// What cannot be run, or live runs that differ from the simulator's.
pub fn run(
    args: &FollowArgs,
    plan: &Plan,
    at: (&Path, &Path),
    quiet: bool,
    json: bool,
    stop: &Stop,
) -> Outcome<()> {
    let (folder, out) = at;
    let span = args.span.unwrap_or(cases::SPAN);
    let length = Length::Time { warmup_ns: 0, span_ns: nanos(span).0 };
    let terms = RunSettings { length, overload: Overload::Meant, folder: folder.to_owned() };
    let bench = CheckedPlan::new(plan.clone(), terms)?;
    let picks = cases::picks(args, &bench)?;
    files::make(&out.join("traces"))?;
    let say = |text: String| {
        if !quiet {
            print::to_stderr(text);
        }
    };
    say(cost(args, &picks));
    let mut followed = Vec::new();
    for pick in &picks {
        say(format!(
            "{}, {}: {} seeds simulated, then {} runs live",
            pick.case, pick.who.name, args.seeds, args.runs
        ));
        match follow(args, pick, (out, stop), &say) {
            Ok(one) => followed.extend(one),
            Err(why) if why.is(Kind::Aborted) => {}
            Err(why) => return Err(why),
        }
        if stop.is_asked() {
            break;
        }
    }
    let complete = !stop.is_asked();
    finish(args, plan, out, &followed, json, complete)
}

fn cost(args: &FollowArgs, picks: &[FollowedCase]) -> String {
    let minutes = run::real_time(args, picks).as_secs_f64() / 60.0;
    format!(
        "{} times a policy in a case, {} live runs each, dilated {} times: about {minutes:.0} minutes, and the simulator's \
         seeds before",
        picks.len(),
        args.runs,
        args.dilate
    )
}

/// Runs one case under one policy. After a signal, returns the result of the live runs so far, if there are
/// any.
fn follow(
    args: &FollowArgs,
    pick: &FollowedCase,
    at: (&Path, &Stop),
    say: &impl Fn(String),
) -> Outcome<Option<CaseResult>> {
    let intervals = (pick.span.0 / INTERVAL_NS) as usize;
    let mut simulated = run::simulate(args, pick, at.1)?;
    let sequence = |depths: &Vec<SliceDepths>| Sequence::of(depths, INTERVAL_NS, intervals);
    let sequences: Vec<Sequence> = simulated.iter().map(sequence).collect();
    let band = Band::of(&sequences);
    let mut live = Vec::new();
    for number in 0..args.runs {
        let said = match run::live(args, pick, number, at) {
            Err(why) if why.is(Kind::Aborted) => break,
            said => said?,
        };
        let sequence = sequence(&said.depths);
        let (outside, words) = (band.outside(&sequence), sequence.words());
        say(format!("live run {}: {words}: {}", number + 1, band.verdict(&sequence)));
        let run::LiveRunResult { depths, behind_p99_ns, unknown } = said;
        live.push(LiveRun { sequence, words, outside, depths, behind_p99_ns, unknown });
    }
    if live.is_empty() {
        return Ok(None);
    }
    let responses = pick.slow().map(|slow| {
        let of_run = |depths: &Vec<SliceDepths>| responses::of_run(depths, intervals);
        let rows: Vec<Vec<f64>> = simulated.iter().map(of_run).collect();
        Responses::of(slow, &rows, live.iter().map(|lived: &LiveRun| of_run(&lived.depths)).collect())
    });
    Ok(Some(CaseResult {
        case: pick.case.clone(),
        title: pick.title.clone(),
        policy: pick.who.name.clone(),
        sequences: shares(&sequences),
        band,
        responses,
        live,
        simulated: simulated.swap_remove(0),
    }))
}

fn finish(
    args: &FollowArgs,
    plan: &Plan,
    out: &Path,
    followed: &[CaseResult],
    json: bool,
    complete: bool,
) -> Outcome<()> {
    let (dilation, seeds) = (args.dilate, args.seeds);
    let result = FollowReport {
        schema: "sluice.followed.v1",
        plan: &plan.name,
        complete,
        dilation,
        seeds,
        interval_ns: INTERVAL_NS,
        followed,
    };
    let text = serde_json::to_string(&result).expect("every key is a string and every number is finite");
    files::save(out, "followed.json", &(text.clone() + "\n"))?;
    files::save(out, "followed.html", &results::page(plan, dilation, followed))?;
    if json {
        print::line(text)?;
    } else {
        followed.iter().try_for_each(results::print)?;
        print::line(format_args!(
            "the depths over time are drawn in {}",
            out.join("followed.html").display()
        ))?;
    }
    if !complete {
        let why = format!("stopped by a signal; what was done is in {}", out.display());
        return Err(Failure::new(Kind::Aborted, why).with_result_shown());
    }
    verdict(followed)
}

/// An error unless the live runs agree with the simulator's.
fn verdict(followed: &[CaseResult]) -> Outcome<()> {
    let missed = |holds: fn(&CaseResult) -> bool, why: &str| {
        let of: Vec<&str> = followed.iter().filter(|one| !holds(one)).map(|one| one.case.as_str()).collect();
        (!of.is_empty()).then(|| format!("{}: {why}", of.join(", ")))
    };
    let whys = [
        missed(
            CaseResult::holds,
            "fewer than four live runs of five lie inside the simulator's band in every interval",
        ),
        missed(
            |one| !one.responds(Verdict::Differs),
            "a live p99 response is more than a tenth off the simulated one",
        ),
    ];
    let open = missed(
        |one| !one.responds(Verdict::Undecided),
        "whether a live p99 response is within a tenth of the simulated one is undecided: give more --runs",
    );
    let whys: Vec<String> = whys.into_iter().flatten().collect();
    let kind = if whys.is_empty() { Kind::Undecided } else { Kind::GateFailed };
    let whys: Vec<String> = whys.into_iter().chain(open).collect();
    if whys.is_empty() { Ok(()) } else { Err(Failure::new(kind, whys.join("; ")).with_result_shown()) }
}
