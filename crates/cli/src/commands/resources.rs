//! `sluice resources`: what a scheduler's program takes of the switch, beside what its paper says.

use serde_json::json;
use sluice_switch::pipeline::{Layout, STAGES};
use sluice_switch::rain::{Config, Rain};
use sluice_wire::Epoch;

use crate::args::Resources;
use crate::fail::{Failure, Outcome};
use crate::hint;
use crate::plan::POLICIES;
use crate::results::table::Table;

/// SRAM blocks in all stages.
const BLOCKS: u32 = 960;
/// Stateful units in all stages.
const UNITS: u32 = 48;

/// What a paper says of its program.
struct Paper {
    stages: u32,
    sram: f64,
    entries: u32,
}

/// Rain §4.
const RAIN: Paper = Paper { stages: 11, sram: 0.241, entries: 128 * 1024 };

/// Prints the accounting of one program.
pub(crate) fn run(args: &Resources) -> Outcome<()> {
    if !POLICIES.contains(&args.program.as_str()) {
        return Err(Failure::bad_input(hint::unknown("program", &args.program, &POLICIES)));
    }
    let config = Config::full(Epoch(1));
    let rain = Rain::new(config);
    let entries = u32::from(config.slices) * config.tasks_per_slice;
    if args.json {
        println!("{}", to_json(rain.layout(), entries));
    } else {
        println!("{}\n{}", stages(rain.layout()), totals(rain.layout(), entries));
    }
    Ok(())
}

fn stages(layout: &Layout) -> Table {
    let mut table = Table::new(["stage", "SRAM blocks of 80", "units of 4", "what lives there"]);
    for (i, stage) in layout.stages().iter().enumerate() {
        table.row([i.to_string(), stage.blocks.to_string(), stage.units.to_string(), stage.names.join(", ")]);
    }
    table
}

fn totals(layout: &Layout, entries: u32) -> Table {
    let totals = layout.totals();
    let mut table = Table::new([layout.program(), "here", "the paper", "the chip has"]);
    let row = |name: &str, here: String, paper: String, chip: String| [name.to_owned(), here, paper, chip];
    table.row(row("stages", totals.stages.to_string(), RAIN.stages.to_string(), STAGES.to_string()));
    let share = |share: f64| format!("{:.1} %", share * 100.0);
    table.row(row("SRAM", share(totals.sram), share(RAIN.sram), format!("{BLOCKS} blocks")));
    table.row(row("stateful units", totals.units.to_string(), "-".to_owned(), UNITS.to_string()));
    table.row(row("TCAM", "none".to_owned(), "none".to_owned(), String::new()));
    table.row(row("tasks that can wait", entries.to_string(), RAIN.entries.to_string(), String::new()));
    table
}

fn to_json(layout: &Layout, entries: u32) -> serde_json::Value {
    let totals = layout.totals();
    let stages = layout.stages().iter().map(
        |stage| json!({ "holds": stage.names, "sram_blocks": stage.blocks, "stateful_units": stage.units }),
    );
    json!({
        "schema": "sluice.resources.v1",
        "program": layout.program(),
        "stages": stages.collect::<Vec<_>>(),
        "here": {
            "stages": totals.stages, "sram_share": totals.sram, "stateful_units": totals.units, "entries": entries,
        },
        "paper": { "stages": RAIN.stages, "sram_share": RAIN.sram, "entries": RAIN.entries },
        "chip": { "stages": STAGES, "sram_blocks": BLOCKS, "stateful_units": UNITS },
    })
}
