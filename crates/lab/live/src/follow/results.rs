//! Prints the result of following a plan, as text and as a page.

use sluice_report::table::Table;
use sluice_report::{self as report, Compared, LiveAndSimulated, Section, Strip};
use sluice_study::plan::Plan;
use sluice_support::fail::Outcome;
use sluice_support::print;

use super::band::{INTERVAL_NS, Step};
use super::followed::CaseResult;
use super::responses::{Responses, Window, mean};

/// How many sequences are printed one by one.
const TOLD_MAX: usize = 5;

/// Prints one case under one policy.
pub(super) fn print(one: &CaseResult) -> Outcome<()> {
    let CaseResult { case, policy, band, .. } = one;
    print::line(format_args!(
        "{case}, {policy}: {} of {} live runs lie inside the simulator's band",
        one.inside(),
        one.live.len()
    ))?;
    match &one.responses {
        // With sixty intervals, a line for each would say less than the picture.
        Some(responses) => print_responses(one, responses)?,
        None => print_intervals(one)?,
    }
    for (words, times) in one.sequences.iter().take(TOLD_MAX) {
        print::line(format_args!("  {times} of {}: {words}", band.of))?;
    }
    if let Some(rest) = one.sequences.len().checked_sub(TOLD_MAX).filter(|rest| *rest > 0) {
        print::line(format_args!("  and {rest} other sequences"))?;
    }
    Ok(())
}

fn print_intervals(one: &CaseResult) -> Outcome<()> {
    let band = &one.band;
    print::line(format_args!(
        "  the band holds {} of {} simulated sequences whole ({} that it was not made of); interval: mean depth, borrowed:",
        band.inside, band.of, band.unseen_inside
    ))?;
    for (number, (least, most)) in band.least.iter().zip(&band.most).enumerate() {
        let live: Vec<String> = one
            .live
            .iter()
            .map(|lived| {
                format!("{:.2}/{}", lived.sequence.0[number].depth_mean, lived.sequence.0[number].borrowed)
            })
            .collect();
        let (depths, borrowed) = ((least.depth_mean, most.depth_mean), (least.borrowed, most.borrowed));
        print::line(format_args!(
            "  {:2}: {:.2} to {:.2}, {} to {}; live {}",
            number + 1,
            depths.0,
            depths.1,
            borrowed.0,
            borrowed.1,
            live.join(" ")
        ))?;
    }
    Ok(())
}

fn print_responses(one: &CaseResult, responses: &Responses) -> Outcome<()> {
    let mut table = Table::new([
        "  p99 response, us",
        "from",
        "to",
        "simulated",
        "95 % of runs",
        "live",
        "off",
        "inside",
        "",
    ]);
    for (window, compared) in responses.windows.iter().zip(compared(responses)) {
        let ms = |ns: u64| format!("{} ms", ns / 1_000_000);
        table.row([
            format!("  {}", window.name),
            ms(window.from_ns),
            ms(window.to_ns),
            compared.simulated,
            compared.band,
            compared.live,
            compared.off,
            format!("{} of {}", window.inside(), window.live_ns.len()),
            window.verdict.to_string(),
        ]);
    }
    print::text(table)?;
    for (number, lived) in one.live.iter().enumerate() {
        print::line(format_args!("  live run {}: {}", number + 1, lived.words))?;
    }
    Ok(())
}

/// The windows' numbers as text.
fn compared(responses: &Responses) -> Vec<Compared> {
    let us = |ns: f64| format!("{:.1}", ns / 1e3);
    let of = |window: &Window| Compared {
        name: window.name,
        simulated: us(window.simulated_ns),
        band: format!("{} to {}", us(window.least_ns), us(window.most_ns)),
        live: us(mean(&window.live_ns)),
        off: report::share(window.off.value),
        verdict: window.verdict,
    };
    responses.windows.iter().map(of).collect()
}

/// The page with all pictures.
pub(super) fn page(plan: &Plan, dilation: u32, followed: &[CaseResult]) -> String {
    let title =
        format!("{}: {}, live (dilated {dilation} times) beside the simulator", plan.name, plan.title);
    let by_case = followed.chunk_by(|a, b| a.case == b.case && a.responses.is_some());
    let sections = by_case.map(|of_case| match of_case {
        [one] if one.responses.is_none() => pictures(one),
        several => beside(several),
    });
    report::followed(&title, sections.collect())
}

fn pictures(one: &CaseResult) -> Section<'_> {
    let mut pictures = vec![("simulated, first seed".to_owned(), &one.simulated[..])];
    for (number, lived) in one.live.iter().enumerate() {
        let verdict = one.band.verdict(&lived.sequence);
        pictures.push((format!("live run {}: {verdict}", number + 1), &lived.depths[..]));
    }
    Section::Runs { title: format!("{}: {}", one.policy, one.title), pictures }
}

/// Simulated bands and live curves of one case, policy by policy.
fn beside(of_case: &[CaseResult]) -> Section<'_> {
    let title = of_case.first().map_or("", |one| &one.title);
    Section::Beside { title: title.to_owned(), policies: of_case.iter().filter_map(policy).collect() }
}

fn policy(one: &CaseResult) -> Option<LiveAndSimulated<'_>> {
    let responses = one.responses.as_ref()?;
    let us = |ns: &[f64]| ns.iter().map(|ns| ns / 1e3).collect::<Vec<f64>>();
    let depths = |steps: &[Step]| steps.iter().map(|step| step.depth_mean).collect::<Vec<f64>>();
    Some(LiveAndSimulated {
        policy: &one.policy,
        inside: (one.inside(), one.live.len()),
        seeds: one.band.of,
        windows: compared(responses),
        interval_ns: INTERVAL_NS,
        slow_ns: (responses.slow.0.0, responses.slow.1.0),
        strips: [
            Strip {
                title: "p99 response, µs",
                least: us(&responses.least_ns),
                most: us(&responses.most_ns),
                live: responses.live_ns.iter().map(|run| us(run)).collect(),
            },
            Strip {
                title: "depth",
                least: depths(&one.band.least),
                most: depths(&one.band.most),
                live: one.live.iter().map(|lived| depths(&lived.sequence.0)).collect(),
            },
        ],
    })
}
