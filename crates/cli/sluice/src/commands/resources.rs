//! `sluice resources`: shows how much of the switch a scheduler's program uses, and its paper's numbers.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sluice_report::table::Table;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::print;
use sluice_switch::horus::{FabricReading, Horus, Spine};
use sluice_switch::pipeline::{BLOCKS_PER_STAGE, Layout, MAP_RAM_PER_STAGE, STAGES, Totals, UNITS_PER_STAGE};
use sluice_switch::rain::RainLeaf;
use sluice_switch::registry::{Choice, Published};
use sluice_switch::{Config, Program};
use sluice_wire::Epoch;

use crate::args::ResourcesArgs;

/// SRAM blocks, blocks of map RAM and stateful units in all stages together.
const BLOCKS: u32 = BLOCKS_PER_STAGE * STAGES as u32;
const MAP_RAM: u32 = MAP_RAM_PER_STAGE * STAGES as u32;
const UNITS: u32 = UNITS_PER_STAGE * STAGES as u32;
/// TCAM blocks of a Tofino. The model has none.
const TCAM: u32 = 288;
/// What the P4 tools said of the programs in P4.
const RECEIPT: &str = include_str!("../../../../../targets/p4/receipt.json");

/// The switches of a fabric, which are not policies of a single rack.
const OF_FABRIC: [&str; 3] = ["horus-leaf", "rain-leaf", "horus-spine"];
/// How many spines a leaf knows: those of a pod.
const SPINES: u16 = 24;
/// How many tokens each worker of a Rain rack has.
const TOKENS: u8 = 2;
/// How many leaves and pools a spine has: those of a pod that serves 1,024 workers.
const LEAVES: u16 = 64;
const POOLS: u16 = 1_024;

/// Prints the resources of one program, or a line for each program.
pub(crate) fn run(args: &ResourcesArgs) -> Outcome<()> {
    let Some(asked) = &args.program else { return list(args.json) };
    let (program, paper) = if let Some(program) = of_fabric(asked)? {
        (program, None)
    } else {
        let choice = Choice::parse(asked).map_err(Failure::bad_input)?;
        if choice.traits().software.is_some() {
            return Err(Failure::bad_input(format!(
                "`{asked}` is a program of a server and takes nothing of a switch; \
                 `sluice resources` lists those that do"
            )));
        }
        (choice.on_a_whole_chip(), choice.traits().published)
    };
    if args.json {
        print::line(to_json(&*program, paper.as_ref()))?;
    } else {
        let assembled = Assembled::of(program.layout());
        let totals = totals(&*program, paper.as_ref(), assembled.as_ref());
        print::line(format_args!("{}\n{totals}", stages(program.layout())))?;
    }
    Ok(())
}

/// The program of a fabric's switch, if one was asked for.
fn of_fabric(asked: &str) -> Outcome<Option<Box<dyn Program>>> {
    let (reading, full) = (FabricReading::default(), Config::full(Epoch(1)));
    Ok(match asked {
        "horus-leaf" => Some(Box::new(Horus::in_fabric(reading, full, SPINES))),
        "rain-leaf" => {
            let config = Config::full_below_spines(Epoch(1));
            Some(Box::new(RainLeaf::in_fabric(TOKENS, reading, config, SPINES)))
        }
        "horus-spine" => {
            let config = Config { workers: LEAVES, slices: POOLS, types: POOLS, ..full };
            Some(Box::new(Spine::new(reading, config).map_err(Failure::bad_input)?))
        }
        _ => None,
    })
}

/// Lists the programs.
fn list(json: bool) -> Outcome<()> {
    let known = Choice::all().map(|known| {
        let choice = Choice::parse(known.name).map_err(Failure::bad_input)?;
        Ok((known.name, choice))
    });
    let known = known.collect::<Outcome<Vec<_>>>()?;
    let on_switches = known.iter().filter(|(_, choice)| choice.traits().software.is_none());
    let racks = on_switches.map(|(name, choice)| Ok((*name, choice.on_a_whole_chip())));
    let fabrics = OF_FABRIC.into_iter().filter_map(|name| match of_fabric(name) {
        Ok(program) => program.map(|program| Ok((name, program))),
        Err(why) => Some(Err(why)),
    });
    let programs = racks.chain(fabrics).collect::<Outcome<Vec<_>>>()?;
    if json {
        let rows = programs
            .iter()
            .map(|(name, program)| json!({ "program": name, "here": figures(program.layout()) }));
        return print::line(
            json!({ "schema": "sluice.all-resources.v1", "programs": rows.collect::<Vec<_>>() }),
        );
    }
    let mut table =
        Table::new(["program", "stages", "SRAM", "map RAM", "stateful units", "tasks that can wait"]);
    for (name, program) in &programs {
        let (layout, totals) = (program.layout(), program.layout().totals());
        table.row([
            (*name).to_owned(),
            format!("{} of {STAGES}", totals.stages),
            share(totals.sram),
            share(map_ram(&totals)),
            format!("{} of {UNITS}", totals.units),
            layout.entries().to_string(),
        ]);
    }
    print::line(table)?;
    print::line("sluice resources PROGRAM shows one of them stage by stage, such as sluice resources rain")
}

fn figures(layout: &Layout) -> serde_json::Value {
    let totals = layout.totals();
    json!({
        "stages": totals.stages, "sram_share": totals.sram, "map_ram_share": map_ram(&totals),
        "stateful_units": totals.units, "entries": layout.entries(),
    })
}

fn stages(layout: &Layout) -> Table {
    let columns = ["stage", "SRAM blocks of 80", "map RAM blocks of 48", "units of 4", "what lives there"];
    let mut table = Table::new(columns);
    for (i, stage) in layout.stages().iter().enumerate() {
        let [blocks, map_ram, units] = [stage.blocks, stage.map_ram, stage.units].map(|of| of.to_string());
        table.row([i.to_string(), blocks, map_ram, units, stage.names.join(", ")]);
    }
    table
}

fn totals(program: &dyn Program, paper: Option<&Published>, assembled: Option<&Assembled>) -> Table {
    let totals = program.layout().totals();
    let columns = [program.layout().program(), "here", "in P4", "the paper", "the chip has"];
    let mut table = Table::new(columns);
    let says = |of: fn(&Published) -> String| paper.map_or_else(|| "-".to_owned(), of);
    let in_p4 = |of: fn(&Assembled) -> String| assembled.map_or_else(|| "-".to_owned(), of);
    let mut row = |name: &str, here: String, in_p4: String, paper: String, chip: String| {
        table.row([name.to_owned(), here, in_p4, paper, chip]);
    };
    let stages = in_p4(|fit| fit.stages.to_string());
    row(
        "stages",
        totals.stages.to_string(),
        stages,
        says(|paper| paper.stages.to_string()),
        STAGES.to_string(),
    );
    let sram = in_p4(|fit| share_of(fit.sram, BLOCKS));
    row("SRAM", share(totals.sram), sram, says(|paper| share(paper.sram)), format!("{BLOCKS} blocks"));
    let used = in_p4(|fit| share_of(fit.map_ram, MAP_RAM));
    row("map RAM", share(map_ram(&totals)), used, "-".to_owned(), format!("{MAP_RAM} blocks"));
    let units = in_p4(|fit| fit.stateful_units.to_string());
    row("stateful units", totals.units.to_string(), units, "-".to_owned(), UNITS.to_string());
    let tcam = in_p4(|fit| share_of(fit.tcam, TCAM));
    row("TCAM", "none".to_owned(), tcam, says(|_| "none".to_owned()), format!("{TCAM} blocks"));
    let entries = program.layout().entries().to_string();
    row(
        "tasks that can wait",
        entries,
        String::new(),
        says(|paper| paper.entries.to_string()),
        String::new(),
    );
    table
}

/// What a P4 program takes of a Tofino by its compiler and assembler, as the receipt has it.
#[derive(Deserialize, Serialize)]
struct Assembled {
    stages: u32,
    sram: u32,
    map_ram: u32,
    tcam: u32,
    stateful_units: u32,
}

impl Assembled {
    /// The figures of the P4 program that has these register arrays; `None` if there is none, or it does
    /// not fit.
    fn of(layout: &Layout) -> Option<Self> {
        let name = layout.program();
        let written = Choice::parse(name).ok()?.on_a_whole_chip();
        if written.layout().stages() != layout.stages() {
            return None;
        }
        let receipt: serde_json::Value = serde_json::from_str(RECEIPT).expect("the receipt is ours");
        serde_json::from_value(receipt["programs"][name]["fit"].clone()).expect("figures, or none")
    }
}

fn share_of(blocks: u32, of: u32) -> String {
    share(f64::from(blocks) / f64::from(of))
}

/// The share of the chip's map RAM, 0 to 1.
fn map_ram(totals: &Totals) -> f64 {
    f64::from(totals.map_ram) / f64::from(MAP_RAM)
}

fn share(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn to_json(program: &dyn Program, paper: Option<&Published>) -> serde_json::Value {
    let layout = program.layout();
    let stages = layout.stages().iter().map(|stage| {
        json!({
            "holds": stage.names, "sram_blocks": stage.blocks, "map_ram_blocks": stage.map_ram,
            "stateful_units": stage.units,
        })
    });
    json!({
        "schema": "sluice.resources.v1",
        "program": layout.program(),
        "stages": stages.collect::<Vec<_>>(),
        "here": figures(layout),
        "in_p4": Assembled::of(layout),
        "paper": paper.map(
            |paper| json!({ "stages": paper.stages, "sram_share": paper.sram, "entries": paper.entries }),
        ),
        "chip": {
            "stages": STAGES, "sram_blocks": BLOCKS, "map_ram_blocks": MAP_RAM, "stateful_units": UNITS,
        },
    })
}
