//! Writes the vectors in `targets/vectors` anew, from the random walks that cover the most: `cargo run -p
//! sluice-conformance --example walks`. It leaves `budgets-*` alone: walks whose tasks were given budgets by
//! hand, because most of a walk's waits are longer than any budget.

use std::fs;
use std::io::Result;
use std::path::Path;

use sluice_conformance::Vector;
use sluice_conformance::cover::cover;
use sluice_conformance::explore::{
    explore, explore_hours, explore_servers, explore_targets, halves, laps, trailers,
};

fn main() -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../targets/vectors");
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let is_by_hand = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("budgets-"));
        if path.extension().is_some_and(|extension| extension == "json") && !is_by_hand {
            fs::remove_file(path)?;
        }
    }
    let walks = cover("walk", explore, 0..400, 200);
    let walks = walks.into_iter().chain(cover("servers", explore_servers, 0..100, 200));
    let hours = cover("hours", explore_hours, 0..100, 200);
    let walks = walks.chain(hours.into_iter().filter(|walk| walk.about.contains("after hours")));
    let targets = cover("targets", explore_targets, 0..200, 300);
    let has_target = |walk: &Vector| walk.about.contains("limit_measured") || walk.about.contains("REJECT 6");
    let walks = walks.chain(targets.into_iter().filter(has_target)).chain([halves(), laps(), trailers()]);
    for vector in walks {
        fs::write(folder.join(format!("{}.json", vector.name)), vector.to_text())?;
    }
    Ok(())
}
