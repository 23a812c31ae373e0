//! What the README of `targets/p4` says of a receipt.

use std::collections::{BTreeMap, BTreeSet};

use sluice_bmv2::P4Program;

use crate::fit::Fit;
use crate::inputs::model;
use crate::passes::PassCounts;

/// A program's rows of a fit table: how the row begins (what, and of how many), and the program's cell.
pub fn fit_rows(fit: &Fit) -> Vec<(String, String)> {
    let share = |name: &str, of: u32, taken: u32| {
        let percent = f64::from(taken) / f64::from(of) * 100.0;
        (format!("| {name} | {} |", grouped(of)), format!(" {} ({percent:.1} %) |", grouped(taken)))
    };
    vec![
        ("| stages".to_owned(), format!(" {} |", fit.stages)),
        share("SRAM, blocks", 960, fit.sram),
        share("map RAM, blocks", 576, fit.map_ram),
        share("TCAM, blocks", 288, fit.tcam),
        ("| stateful units | 48 |".to_owned(), format!(" {} |", fit.stateful_units)),
        share("hash bits", 4_992, fit.hash_bits),
        share("hash distribution units", 72, fit.hash_distribution_units),
        share("gateways", 192, fit.gateways),
        share("VLIW instructions", 384, fit.vliw),
        share("logical tables", 192, fit.logical_tables),
        share("containers (PHV)", 224, fit.containers),
        share("bits of containers", 4_096, fit.container_bits),
    ]
}

/// The table of passes: a row for each case, a column for each program.
pub fn passes_table(programs: &[PassCounts]) -> String {
    let cases: BTreeSet<&String> = programs.iter().flat_map(BTreeMap::keys).collect();
    let rows = cases.into_iter().map(|case| {
        let cells = programs.iter().map(|passes| {
            let counts = passes.get(case).into_iter().flatten();
            let counts: Vec<String> =
                counts.map(|(passes, steps)| format!("{passes} in {}", grouped(*steps))).collect();
            if counts.is_empty() { "–".to_owned() } else { counts.join(", ") }
        });
        format!("| {case} | {} |\n", cells.collect::<Vec<_>>().join(" | "))
    });
    rows.collect()
}

/// The register arrays that do not stand in the model's stage: a row for each, with both stages. An array
/// that one of the two has not at all has a dash.
pub fn stages_table(program: P4Program, fit: &Fit) -> String {
    let model = model(program);
    let stages = model.layout().stages().iter().enumerate();
    let names = stages.flat_map(|(stage, used)| used.names.iter().map(move |names| (names, stage)));
    // Two columns that share a word in the model have one name together.
    let arrays = names.flat_map(|(names, stage)| names.split(", ").map(move |name| (chip_name(name), stage)));
    let in_model: BTreeMap<String, usize> = arrays.collect();
    let names = fit.registers.keys();
    let rows = names.filter_map(|name| {
        let (chip, model) = (fit.registers[name].stage, in_model.get(name));
        let is_there = model.is_some_and(|model| *model == usize::from(chip));
        let model = model.map_or_else(|| "–".to_owned(), ToString::to_string);
        (!is_there).then(|| format!("| `{name}` | {chip} | {model} |\n"))
    });
    rows.collect()
}

/// The name that an array of the model has on the chip.
fn chip_name(name: &str) -> String {
    match name {
        "type" => "task_type".to_owned(),
        "rdma: numbers" => "numbers".to_owned(),
        name => name.replace(' ', "_"),
    }
}

/// A number with commas between thousands.
fn grouped(number: u32) -> String {
    if number < 1_000 {
        return number.to_string();
    }
    format!("{},{:03}", number / 1_000, number % 1_000)
}
