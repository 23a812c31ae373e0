//! Writes the vectors in `targets/vectors` anew, from the random walks that cover the most: `cargo run -p
//! sluice-conformance --example walks`, for some programs only with their names behind it. It leaves
//! `budgets-*` alone: walks of Rain whose tasks were given budgets by hand, because most of a walk's waits
//! are longer than any budget.

use std::env::args;
use std::fs;
use std::io::Result;
use std::path::Path;

use sluice_conformance::cover::{cover, cover_program};
use sluice_conformance::explore::{
    copies, explore, explore_draconis, explore_hours, explore_idle_draconis, explore_pallas,
    explore_racksched, explore_servers, explore_targets, halves, laps, sweeps, trailers,
};
use sluice_conformance::{TestedProgram, Vector};

fn main() -> Result<()> {
    let named: Vec<String> = args().skip(1).collect();
    for program in TestedProgram::ALL {
        let name = program.policy().split(':').next().unwrap_or_default();
        if named.is_empty() || named.iter().any(|named| named == name) {
            write(program, &vectors_of(program, name))?;
        }
    }
    Ok(())
}

/// The vectors of a program, without those made by hand.
fn vectors_of(program: TestedProgram, name: &str) -> Vec<Vector> {
    match program {
        TestedProgram::Rain => rain(),
        TestedProgram::Draconis => {
            let idle = cover_program("idle", explore_idle_draconis, 0..20, 200);
            let idle = idle.into_iter().filter(|walk| walk.about.contains("recirculated tokens"));
            other(name, explore_draconis, 0).into_iter().chain(idle).collect()
        }
        TestedProgram::Pallas => other(name, explore_pallas, 3),
        TestedProgram::RackSched => other(name, explore_racksched, 1),
    }
}

/// A whole walk, which shows how packets follow on each other, and short ones that cover what many show.
fn other(name: &str, explore: fn(u64, usize) -> Vector, whole: u64) -> Vec<Vector> {
    let whole = Vector { name: format!("{name}-whole"), ..explore(whole, 150) };
    cover_program(name, explore, 0..200, 200).into_iter().chain([whole]).collect()
}

fn rain() -> Vec<Vector> {
    let walks = cover("walk", explore, 0..400, 200);
    let walks = walks.into_iter().chain(cover("servers", explore_servers, 0..100, 200));
    let hours = cover("hours", explore_hours, 0..100, 200);
    let walks = walks.chain(hours.into_iter().filter(|walk| walk.about.contains("after hours")));
    let targets = cover("targets", explore_targets, 0..200, 300);
    let has_target = |walk: &Vector| walk.about.contains("limit_measured") || walk.about.contains("REJECT 6");
    walks
        .chain(targets.into_iter().filter(has_target))
        .chain([copies(), halves(), laps(), sweeps(), trailers()])
        .collect()
}

/// Replaces the vectors of a program.
fn write(program: TestedProgram, vectors: &[Vector]) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../targets/vectors");
    let folder = folder.join(program.folder());
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let is_by_hand = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("budgets-"));
        if path.extension().is_some_and(|extension| extension == "json") && !is_by_hand {
            fs::remove_file(path)?;
        }
    }
    for vector in vectors {
        fs::write(folder.join(format!("{}.json", vector.name)), vector.to_text())?;
    }
    Ok(())
}
