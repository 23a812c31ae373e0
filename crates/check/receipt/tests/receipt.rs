//! The receipt is of the sources, vectors and model that are here, and the README says what it says. Needs
//! no tools: what ran with them is in the receipt. `make p4` writes it anew.

use std::fs;

use sluice_bmv2::P4Program;
use sluice_receipt::{
    Fit, Inputs, PUBLISHED, ProgramReceipt, Receipt, fit_rows, held_vectors, passes_of, passes_table,
    stages_table, targets,
};

/// Each program's name, its part of the receipt, and its inputs now.
fn parts() -> Vec<(&'static str, ProgramReceipt, Inputs)> {
    let receipt = receipt();
    let published = receipt.published.clone().expect("a receipt of what the paper's switch has");
    let now = Inputs::of_published(&targets()).unwrap_or_else(|why| panic!("{why}"));
    let programs = P4Program::ALL.into_iter().map(|program| {
        let now = Inputs::now(&targets(), program).unwrap_or_else(|why| panic!("{why}"));
        (program.name(), receipt.programs[program.name()].clone(), now)
    });
    programs.chain([(PUBLISHED, published, now)]).collect()
}

fn receipt() -> Receipt {
    Receipt::read(&targets().join("p4")).unwrap_or_else(|why| panic!("{why}"))
}

fn fit_of_rain() -> Fit {
    receipt().programs["rain"].fit.clone().expect("Rain fits")
}

fn readme() -> String {
    fs::read_to_string(targets().join("p4/README.md")).expect("the README of the P4 programs")
}

#[test]
fn the_receipt_is_of_what_is_here() {
    for (name, part, now) in parts() {
        let then = part.inputs;
        let anew = "since the receipt was written: run `make p4` where the P4 tools are";
        for file in then.sources.keys().chain(now.sources.keys()) {
            assert_eq!(then.sources.get(file), now.sources.get(file), "{name}: {file} has changed {anew}");
        }
        for vector in then.vectors.keys().chain(now.vectors.keys()) {
            assert_eq!(
                then.vectors.get(vector),
                now.vectors.get(vector),
                "{name}: {vector} has changed {anew}"
            );
        }
        assert_eq!(then.model, now.model, "{name}: the model's register arrays have changed {anew}");
    }
}

#[test]
fn the_readme_has_the_figures_of_the_receipt() {
    let readme = readme();
    for (name, part, _) in parts() {
        let fit = part.fit.unwrap_or_else(|| panic!("{name} fits: {:?}", part.no_fit));
        for (row, cell) in fit_rows(&fit) {
            let is_there = readme.lines().any(|line| line.starts_with(&row) && line.contains(&cell));
            assert!(is_there, "{name}: targets/p4/README.md has no row {row} with {cell}");
        }
    }
}

#[test]
fn the_readme_says_where_the_chip_and_the_model_differ() {
    let table = stages_table(P4Program::Rain, &fit_of_rain());
    assert!(readme().contains(&table), "targets/p4/README.md should have\n{table}");
}

#[test]
fn the_readme_has_each_register_in_its_stage() {
    let readme = readme();
    let rows = readme.lines().skip_while(|line| !line.starts_with("| stage | tables | registers |"));
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    for (name, placed) in fit_of_rain().registers.iter().filter(|(name, _)| *name != "numbers") {
        let row = rows.iter().find(|row| row.starts_with(&format!("| {} |", placed.stage)));
        let row = row.unwrap_or_else(|| panic!("a row for stage {}", placed.stage));
        assert!(row.contains(&format!("`{name}`")), "`{name}` stands in stage {}: {row}", placed.stage);
    }
}

#[test]
fn the_readme_has_the_passes_that_the_vectors_count() {
    let passes = P4Program::ALL
        .map(|program| passes_of(&held_vectors(&targets(), program).unwrap_or_else(|why| panic!("{why}"))));
    let table = passes_table(&passes);
    assert!(readme().contains(&table), "targets/p4/README.md should have\n{table}");
}
