//! `make bench`: runs every measurement, prints one table, and fails if a bound is missed.
//!
//! There are three kinds. **Ratios** come from the crates' own benches, which compare code with a baseline
//! in one run. **Memory** is what the kernel reports about a child process with a full switch.
//! **Instructions** are counted by callgrind, layer by layer, and compared with the golden table
//! `instructions.json`. They hardly depend on the load of the machine, so they show a regression that no
//! clock would show.
//!
//! Names of [`PARTS`] measure only these (`make bench PARTS="gateway memory"`). `decisions` (`make
//! decisions`) measures only what a socket server, the UDP switch and XDP decide.
//! `--bless` counts the instructions and writes the golden table. `count NAME` and `memory` are calls that
//! the program makes to itself.
#![forbid(unsafe_code)]

mod callgrind;
mod cases;
mod error;
mod golden;
mod hosts;
mod links;
mod memory;
mod print;
mod python;
mod ratios;
mod report;
mod repository;
mod scale;

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use error::BenchError;
use report::Report;
use repository::root;
use sluice_net::exit::Kind;

/// The part that counts instructions.
const INSTRUCTIONS: &str = "instructions";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["--bless"] => bless(),
        ["decisions"] => decisions(),
        ["count", name] => cases::count(name).map(|()| ExitCode::SUCCESS),
        ["memory"] => memory::hold_a_full_switch().map(|()| ExitCode::SUCCESS),
        _ => run(&words),
    };
    done.unwrap_or_else(|why| {
        print::aside(format_args!("bench: {why}"));
        Kind::Broken.into()
    })
}

/// A measurement, and its name on the command line.
type Part = (&'static str, fn(&mut Report) -> Result<(), BenchError>);

const PARTS: [Part; 19] = [
    ("decision", ratios::decision),
    ("draconis", ratios::draconis),
    ("horus", ratios::horus),
    ("forwarder", ratios::switch_vs_forwarder),
    ("pair", ratios::xdp_pair),
    ("links", links::xdp_links),
    ("rdma", ratios::rdma),
    ("orchestrator", ratios::orchestrator),
    ("cores", ratios::cores),
    ("agent", ratios::agent),
    ("client", ratios::c_client),
    ("gateway", ratios::gateway),
    ("central", ratios::central),
    ("rack", ratios::rack),
    ("datacenter", ratios::datacenter),
    ("fabric", ratios::fabric),
    ("python", python::python),
    ("others", ratios::others),
    ("memory", memory::measure),
];

/// Runs everything, or the parts with these names; fails if a bound is missed.
fn run(names: &[&str]) -> Result<ExitCode, BenchError> {
    let is_part = |name: &&str| *name == INSTRUCTIONS || PARTS.iter().any(|(part, _)| part == name);
    if !names.iter().all(is_part) {
        let parts = PARTS.iter().map(|(part, _)| *part).chain([INSTRUCTIONS]);
        return Err(BenchError::Usage(parts.collect::<Vec<_>>().join(", ")));
    }
    let is_asked_for = |name: &str| names.is_empty() || names.contains(&name);
    let mut report = Report::default();
    for (_, measure) in PARTS.iter().filter(|(name, _)| is_asked_for(name)) {
        measure(&mut report)?;
    }
    if is_asked_for(INSTRUCTIONS) {
        let counted = callgrind::count_all(&results_folder()?)?;
        golden::compare(&golden::read()?, &counted, &mut report);
    }
    finish(&report)
}

/// Measures a socket server, the UDP switch and XDP: decisions per core-second, the delay to the worker,
/// and the share of a core.
fn decisions() -> Result<ExitCode, BenchError> {
    let mut report = Report::default();
    links::decisions(&mut report)?;
    print::line(report.table())?;
    Ok(ExitCode::SUCCESS)
}

/// Counts instructions only, and writes them as the golden table.
fn bless() -> Result<ExitCode, BenchError> {
    let mut report = Report::default();
    let counted = callgrind::count_all(&results_folder()?)?;
    golden::compare(&golden::read().unwrap_or_default(), &counted, &mut report);
    print::line(report.table())?;
    golden::write(&counted)?;
    print::line("blessed: these counts are the golden table now")?;
    Ok(ExitCode::SUCCESS)
}

fn finish(report: &Report) -> Result<ExitCode, BenchError> {
    let file = results_folder()?.join("bench.json");
    fs::write(&file, report.json()).map_err(|why| BenchError::file(&file, why))?;
    print::line(report.table())?;
    let missed = report.missed();
    if missed == 0 {
        print::line("every bound is kept; all figures: out/bench/bench.json")?;
        return Ok(ExitCode::SUCCESS);
    }
    print::line(format_args!(
        "{missed} of the bounds MISSED (marked above); all figures: out/bench/bench.json"
    ))?;
    print::line("if more instructions are what you want: make bench BLESS=1, and say why in the commit")?;
    Ok(Kind::GateFailed.into())
}

fn results_folder() -> Result<PathBuf, BenchError> {
    let folder = root().join("out/bench");
    fs::create_dir_all(&folder).map_err(|why| BenchError::file(&folder, why))?;
    Ok(folder)
}
