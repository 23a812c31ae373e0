//! The receipt is of the sources, vectors and model that are here, and the README says what it says. Needs
//! no tools: what ran with them is in the receipt. `make p4` writes it anew.

use std::fs;

use sluice_bmv2::P4Program;
use sluice_receipt::{
    Inputs, ProgramReceipt, Receipt, fit_rows, held_vectors, passes_of, passes_table, stages_table, targets,
};

fn of(program: P4Program) -> ProgramReceipt {
    let receipt = Receipt::read(&targets().join("p4")).unwrap_or_else(|why| panic!("{why}"));
    receipt.programs.get(program.name()).expect("a receipt of each program: run `make p4`").clone()
}

fn readme() -> String {
    fs::read_to_string(targets().join("p4/README.md")).expect("the README of the P4 programs")
}

#[test]
fn the_receipt_is_of_what_is_here() {
    for program in P4Program::ALL {
        let (then, now) = (of(program).inputs, Inputs::now(&targets(), program));
        let now = now.unwrap_or_else(|why| panic!("{why}"));
        let name = program.name();
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
    for program in P4Program::ALL {
        let Some(fit) = of(program).fit else { continue };
        for (row, cell) in fit_rows(&fit) {
            let is_there = readme.lines().any(|line| line.starts_with(&row) && line.contains(&cell));
            assert!(is_there, "{}: targets/p4/README.md has no row {row} with {cell}", program.name());
        }
    }
}

#[test]
fn the_readme_says_where_the_chip_and_the_model_differ() {
    let table = stages_table(P4Program::Rain, &of(P4Program::Rain).fit.expect("Rain fits"));
    assert!(readme().contains(&table), "targets/p4/README.md should have\n{table}");
}

#[test]
fn the_readme_has_each_register_in_its_stage() {
    let readme = readme();
    let rows = readme.lines().skip_while(|line| !line.starts_with("| stage | tables | registers |"));
    let rows: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    let fit = of(P4Program::Rain).fit.expect("Rain fits");
    for (name, placed) in fit.registers.iter().filter(|(name, _)| *name != "numbers") {
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
