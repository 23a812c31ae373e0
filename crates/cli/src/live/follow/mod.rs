//! `sluice reproduce PLAN --live`: a plan whose load changes, its adaptive policies run live and dilated, held against the
//! simulator's interval by interval.
//!
//! The simulator runs each case with many seeds and gives a band; each live run draws tasks of a seed of its own, in a rack
//! of its own, whose agent's first interval begins with the first task. What is compared is the first slice's mean depth
//! and the workers that were borrowed.

mod band;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use sluice_net::clock::Clock;
use sluice_net::pin::cores;
use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_sim::run_jobs;
use sluice_sim::stats::Warmup;
use sluice_sim::study::PointId;
use sluice_sim::study::bench::{Bench, Length, Overload, Terms};
use sluice_sim::study::outcome::Depths;
use sluice_sim::study::plan::Plan;
use sluice_sim::testbed::Testbed;
use sluice_sim::workload::{Trace, TraceWriter};
use sluice_switch::registry::Choice;
use sluice_wire::{Epoch, Nanos};

use super::args::FollowArgs;
use super::ask::{Ask, Who};
use super::favour::Favour;
use super::rack::LiveRack;
use crate::board::Board;
use crate::fail::{Failure, Kind, Outcome};
use crate::load::nanos;
use crate::rack::ask::Reporter;
use crate::report;
use crate::results::files;
use crate::stop::Stop;
use band::{Band, Sequence, shares};

/// An interval of the agents, in the rack that is stood for.
const INTERVAL_NS: u64 = 10_000_000;
/// Replications of the live runs: others than the simulator's.
const LIVE_FROM: u32 = 1_000_000;
/// How long a live run has to look at its tasks before it begins.
const BEGINS_AFTER: Duration = Duration::from_millis(500);
/// How many of five live runs have to lie inside.
const INSIDE: f64 = 0.8;
/// Sequences that are told one by one.
const TOLD_MAX: usize = 5;

/// What came of one case under one policy.
#[derive(Debug, Serialize)]
struct Followed {
    case: String,
    title: String,
    policy: String,
    band: Band,
    /// The simulator's sequences and how often each occurred.
    sequences: Vec<(String, usize)>,
    live: Vec<Lived>,
    #[serde(skip)]
    simulated: Vec<Depths>,
}

/// One live run.
#[derive(Debug, Serialize)]
struct Lived {
    sequence: Sequence,
    words: String,
    /// The first interval outside the band, from 1; null if there is none.
    outside: Option<usize>,
    depths: Vec<Depths>,
    /// How late the sender was at its 99th percentile, in the rack that is stood for, ns.
    behind_p99_ns: u64,
    unknown: usize,
}

/// Everything, as JSON.
#[derive(Debug, Serialize)]
struct Answer<'f> {
    schema: &'static str,
    plan: &'f str,
    dilation: u32,
    seeds: u32,
    interval_ns: u64,
    followed: &'f [Followed],
}

/// Runs the plan's adaptive policies.
pub(crate) fn run(
    args: &FollowArgs,
    plan: &Plan,
    at: (&Path, &Path),
    quiet: bool,
    json: bool,
) -> Outcome<()> {
    let (folder, out) = at;
    let stop = Stop::on_signals()?;
    files::make(&out.join("traces"))?;
    let length = Length::Time { warmup_ns: 0, span_ns: nanos(args.span).0 };
    let terms = Terms { length, overload: Overload::Meant, folder: folder.to_owned() };
    let bench = Bench::new(plan.clone(), terms)?;
    let mut followed = Vec::new();
    for (case, of) in plan.cases.iter().enumerate() {
        for run in &of.runs {
            let choice = Choice::parse(&run.policy).ok();
            let Some(choice) =
                choice.filter(|choice| choice.adaptive().is_some_and(|adaptive| !adaptive.advises))
            else {
                continue;
            };
            check(&of.id, bench.testbed(case, None))?;
            let rate = of.rates.first().copied().unwrap_or(1.0) as u64;
            let point = bench.point(&PointId { case, run: run.clone(), rate, change: None });
            if !quiet {
                eprintln!(
                    "{}, {}: {} seeds simulated, then {} runs live",
                    of.id, run.policy, args.seeds, args.runs
                );
            }
            let who = Who {
                name: run.policy.clone(),
                choice,
                policy: Policy::parse(&run.policy).map_err(Failure::bad_input)?,
            };
            let (sequences, simulated) = simulate(args, &point)?;
            let mut one = Followed {
                case: of.id.clone(),
                title: of.title.clone(),
                policy: run.policy.clone(),
                band: Band::of(&sequences),
                sequences: shares(&sequences),
                live: Vec::new(),
                simulated,
            };
            for number in 0..args.runs {
                one.live.push(live(args, &who, &point, number, &one.band, (out, &stop))?);
                if !quiet {
                    tell(number, one.live.last());
                }
            }
            followed.push(one);
        }
    }
    finish(args, plan, out, &followed, json)
}

/// What a live rack cannot stand for.
fn check(case: &str, testbed: &Testbed) -> Outcome<()> {
    let only = if testbed.has_faults() || testbed.stalls.per_s > 0.0 {
        "faults and stalls"
    } else if !testbed.slow.workers.is_empty() {
        "slow workers"
    } else {
        return Ok(());
    };
    Err(Failure::bad_input(format!("case {case}: {only} are the simulator's only: leave --live out")))
}

fn tell(number: u32, lived: Option<&Lived>) {
    let Some(lived) = lived else { return };
    let verdict = lived.outside.map_or("inside".to_owned(), |at| format!("outside from interval {at} on"));
    eprintln!("live run {}: {verdict}: {}", number + 1, lived.words);
}

/// The sequences of all seeds, and the first one's depths.
fn simulate(args: &FollowArgs, point: &Point) -> Outcome<(Vec<Sequence>, Vec<Depths>)> {
    let (stop, seeds) = (AtomicBool::new(false), (0..args.seeds).collect::<Vec<u32>>());
    // The last interval has to end while tasks still come.
    let until = Nanos(nanos(args.span).0 + INTERVAL_NS);
    let run = |seed: &u32| {
        let tasks = point.requests(*seed).take_while(|request| request.at < until).count() as u64;
        let point = Point { tasks, warmup: Warmup::Tasks(0), ..point.clone() };
        point.replicate(*seed, &stop).map(|measured| measured.depths)
    };
    let (mut sequences, mut first, mut failed) = (Vec::new(), Vec::new(), None);
    run_jobs(&seeds, cores(), &stop, run, |seed, depths| match depths {
        Ok(depths) => {
            sequences.push(Sequence::of(&depths, INTERVAL_NS, intervals(args)));
            if seed == 0 {
                first = depths;
            }
        }
        Err(why) => failed = Some(why),
    });
    match failed {
        Some(why) => Err(Failure::broken(why)),
        None => Ok((sequences, first)),
    }
}

/// One live run: a rack of its own, whose agent begins with the first task.
fn live(
    args: &FollowArgs,
    who: &Who,
    point: &Point,
    number: u32,
    band: &Band,
    (out, stop): (&Path, &Stop),
) -> Outcome<Lived> {
    let ask = ask(args, who, point, out);
    let trace = draw(args, point, number, out)?;
    let favour = Favour::ask();
    let mut rack = LiveRack::start(&ask, who, Epoch(number + 1))?;
    let board = Board::new();
    board.name_slices(ask.slices.iter().map(|(name, _)| name.clone()).collect());
    let reporter = Reporter::start(rack.controller()?, board.clone())?;
    let begins = Clock::start().now() + nanos(BEGINS_AFTER);
    let wall = SystemTime::now() + BEGINS_AFTER;
    let played = rack.adapt(Some(begins)).and_then(|()| rack.play_from(begins, &trace, args.dilate, stop));
    drop(reporter);
    // Its threads spin: they must not outlive it, however it went.
    rack.end()?;
    drop(favour);
    let played = played?.played;
    let began = wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let depths = board.decided().depths(began, args.dilate);
    let sequence = Sequence::of(&depths, INTERVAL_NS, intervals(args));
    let mut behind: Vec<u64> = trace
        .tasks()
        .iter()
        .zip(&played)
        .map(|(task, played)| played.seen.since(task.at.times(args.dilate.into())).0 / u64::from(args.dilate))
        .collect();
    behind.sort_unstable();
    let unknown =
        played.iter().filter(|of| matches!(of.outcome, sluice_net::crew::Outcome::Unknown(_))).count();
    Ok(Lived {
        words: sequence.words(),
        outside: band.outside(&sequence),
        sequence,
        depths,
        behind_p99_ns: behind.get(behind.len().saturating_sub(1) * 99 / 100).copied().unwrap_or(0),
        unknown,
    })
}

/// The rack of a live run.
fn ask(args: &FollowArgs, who: &Who, point: &Point, out: &Path) -> Ask {
    Ask {
        policies: vec![who.clone()],
        loads: vec![1.0],
        workload: point.workload.clone(),
        testbed: point.testbed.clone(),
        dilation: args.dilate,
        length: args.span,
        replications: args.runs,
        seed: point.seed,
        out: out.to_owned(),
        each_task: false,
        slices: point.slices.clone().unwrap_or_default(),
    }
}

fn draw(args: &FollowArgs, point: &Point, number: u32, out: &Path) -> Outcome<Trace> {
    let path = out.join("traces").join(format!("live-{}.csv", number + 1));
    let failed = |why: std::io::Error| {
        let path = path.display();
        Failure::broken(format!("{path} cannot be written: {why}; free some space or choose another --out"))
    };
    let names: Vec<String> = point.workload.classes.iter().map(|class| class.name.clone()).collect();
    let file = std::io::BufWriter::new(std::fs::File::create(&path).map_err(failed)?);
    let mut writer = TraceWriter::new(file, names.clone()).map_err(failed)?;
    let until = nanos(args.span);
    for request in point.requests(LIVE_FROM + number).take_while(|request| request.at < until) {
        writer.write(&request).map_err(failed)?;
    }
    writer.finish().map_err(failed)?;
    Trace::read(&path, Some(&names)).map_err(Failure::broken)
}

/// Whole intervals of a run.
fn intervals(args: &FollowArgs) -> usize {
    (nanos(args.span).0 / INTERVAL_NS) as usize
}

fn finish(args: &FollowArgs, plan: &Plan, out: &Path, followed: &[Followed], json: bool) -> Outcome<()> {
    if followed.is_empty() {
        let name = &plan.name;
        return Err(Failure::bad_input(format!("{name} has no adaptive policy that could be followed live")));
    }
    let (schema, dilation) = ("sluice.followed.v1", args.dilate);
    let result =
        Answer { schema, plan: &plan.name, dilation, seeds: args.seeds, interval_ns: INTERVAL_NS, followed };
    let text = serde_json::to_string(&result).expect("every key is a string and every number is finite");
    files::save(out, "followed.json", &(text.clone() + "\n"))?;
    files::save(out, "followed.html", &page(plan, dilation, followed))?;
    if json {
        println!("{text}");
    } else {
        followed.iter().for_each(print);
        println!("the depths over time are drawn in {}", out.join("followed.html").display());
    }
    let missed: Vec<String> =
        followed.iter().filter(|one| !one.holds()).map(|one| one.case.clone()).collect();
    if missed.is_empty() {
        return Ok(());
    }
    let cases = missed.join(", ");
    let why = format!(
        "{cases}: fewer than four live runs of five lie inside the simulator's band in every interval"
    );
    Err(Failure::new(Kind::GateFailed, why).with_result_shown())
}

impl Followed {
    fn inside(&self) -> usize {
        self.live.iter().filter(|lived| lived.outside.is_none()).count()
    }

    fn holds(&self) -> bool {
        self.inside() as f64 >= INSIDE * self.live.len() as f64
    }
}

fn print(one: &Followed) {
    let Followed { case, policy, band, .. } = one;
    println!(
        "{case}, {policy}: {} of {} live runs lie inside the simulator's band",
        one.inside(),
        one.live.len()
    );
    println!(
        "  the band holds {} of {} simulated sequences whole; interval: mean depth, borrowed:",
        band.inside, band.of
    );
    for (number, (least, most)) in band.least.iter().zip(&band.most).enumerate() {
        let live: Vec<String> = one
            .live
            .iter()
            .map(|lived| {
                format!("{:.2}/{}", lived.sequence.0[number].depth_mean, lived.sequence.0[number].borrowed)
            })
            .collect();
        let (depths, borrowed) = ((least.depth_mean, most.depth_mean), (least.borrowed, most.borrowed));
        println!(
            "  {:2}: {:.2} to {:.2}, {} to {}; live {}",
            number + 1,
            depths.0,
            depths.1,
            borrowed.0,
            borrowed.1,
            live.join(" ")
        );
    }
    for (words, times) in one.sequences.iter().take(TOLD_MAX) {
        println!("  {times} of {}: {words}", band.of);
    }
    if let Some(rest) = one.sequences.len().checked_sub(TOLD_MAX).filter(|rest| *rest > 0) {
        println!("  and {rest} other sequences");
    }
}

fn page(plan: &Plan, dilation: u32, followed: &[Followed]) -> String {
    let title =
        format!("{}: {}, live (dilated {dilation} times) beside the simulator", plan.name, plan.title);
    let pictures = followed.iter().map(|one| {
        let mut pictures = vec![("simulated, first seed".to_owned(), &one.simulated[..])];
        for (number, lived) in one.live.iter().enumerate() {
            let verdict =
                lived.outside.map_or("inside the band".into(), |at| format!("outside from interval {at} on"));
            pictures.push((format!("live run {}, {verdict}", number + 1), &lived.depths[..]));
        }
        (format!("{}: {}", one.policy, one.title), pictures)
    });
    report::followed(&title, pictures)
}
