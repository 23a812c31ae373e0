//! What a program takes of a Tofino, from the compiler's logs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::ReceiptError;

/// What a program takes of a Tofino.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Stages that hold anything, of 12.
    pub stages: u32,
    /// SRAM blocks, of 960.
    pub sram: u32,
    /// Blocks of map RAM, of 576.
    pub map_ram: u32,
    /// TCAM blocks, of 288.
    pub tcam: u32,
    /// Stateful units, of 48.
    pub stateful_units: u32,
    /// Hash bits, of 4,992.
    pub hash_bits: u32,
    /// Hash distribution units, of 72.
    pub hash_distribution_units: u32,
    /// Gateways, of 192.
    pub gateways: u32,
    /// VLIW instructions, of 384.
    pub vliw: u32,
    /// Logical tables, of 192.
    pub logical_tables: u32,
    /// Containers of the packet header vector, of 224.
    pub containers: u32,
    /// Bits of containers, of 4,096.
    pub container_bits: u32,
    /// The register arrays, by the model's names.
    pub registers: BTreeMap<String, ArrayPlace>,
}

/// Where a register array stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrayPlace {
    pub stage: u8,
    /// SRAM blocks, with the spare one.
    pub blocks: u32,
}

impl Fit {
    /// Reads the logs that the compiler (with `-g`) left in this folder.
    ///
    /// # Errors
    /// A log is missing, or has another form.
    pub fn read(logs: &Path) -> Result<Self, ReceiptError> {
        let Resources { resources: Mau { mau } } = parse(&logs.join("resources.json"))?;
        let Containers { containers } = parse(&logs.join("phv.json"))?;
        let stages = &mau.mau_stages;
        let sum = |of: fn(&Stage) -> usize| stages.iter().map(of).sum::<usize>() as u32;
        let normal: Vec<&Container> =
            containers.iter().filter(|container| container.container_type == "normal").collect();
        Ok(Self {
            stages: stages.iter().filter(|stage| !stage.logical_tables.ids.is_empty()).count() as u32,
            sram: sum(|stage| stage.rams.srams.len()),
            map_ram: sum(|stage| stage.map_rams.maprams.len()),
            tcam: sum(|stage| stage.tcams.tcams.len()),
            stateful_units: sum(|stage| stage.meter_alus.meters.len()),
            hash_bits: sum(|stage| stage.hash_bits.bits.len()),
            hash_distribution_units: sum(|stage| stage.hash_distribution_units.units.len()),
            gateways: sum(|stage| stage.gateways.gateways.len()),
            vliw: sum(|stage| stage.vliw.instructions.len()),
            logical_tables: sum(|stage| stage.logical_tables.ids.len()),
            containers: normal.iter().filter(|container| !container.slices.is_empty()).count() as u32,
            container_bits: normal.iter().map(|container| container.bits()).sum(),
            registers: registers(stages),
        })
    }
}

fn registers(stages: &[Stage]) -> BTreeMap<String, ArrayPlace> {
    let mut registers = BTreeMap::new();
    for stage in stages {
        let usages = stage.rams.srams.iter().flat_map(|block| &block.usages);
        for usage in usages.filter(|usage| usage.used_for == "stateful_ram") {
            let name = usage.used_by.rsplit('.').next().unwrap_or_default().to_owned();
            let placed = registers.entry(name).or_insert(ArrayPlace { stage: stage.number, blocks: 0 });
            placed.blocks += 1;
        }
    }
    registers
}

fn parse<T: DeserializeOwned>(path: &Path) -> Result<T, ReceiptError> {
    let text = fs::read_to_string(path).map_err(ReceiptError::file("read", path))?;
    serde_json::from_str(&text).map_err(ReceiptError::format(path))
}

#[derive(Deserialize)]
struct Resources {
    resources: Mau,
}

#[derive(Deserialize)]
struct Mau {
    mau: MauStages,
}

#[derive(Deserialize)]
struct MauStages {
    mau_stages: Vec<Stage>,
}

/// A stage; what is only counted has no form.
#[derive(Deserialize)]
struct Stage {
    #[serde(rename = "stage_number")]
    number: u8,
    rams: Rams,
    map_rams: MapRams,
    tcams: Tcams,
    meter_alus: MeterAlus,
    hash_bits: HashBits,
    hash_distribution_units: HashDistributionUnits,
    gateways: Gateways,
    vliw: Vliw,
    logical_tables: LogicalTables,
}

#[derive(Deserialize)]
struct Rams {
    srams: Vec<Block>,
}

#[derive(Deserialize)]
struct Block {
    usages: Vec<Usage>,
}

#[derive(Deserialize)]
struct Usage {
    used_by: String,
    used_for: String,
}

/// Something that is only counted.
type Counted = serde::de::IgnoredAny;

#[derive(Deserialize)]
struct MapRams {
    maprams: Vec<Counted>,
}

#[derive(Deserialize)]
struct Tcams {
    tcams: Vec<Counted>,
}

#[derive(Deserialize)]
struct MeterAlus {
    meters: Vec<Counted>,
}

#[derive(Deserialize)]
struct HashBits {
    bits: Vec<Counted>,
}

#[derive(Deserialize)]
struct HashDistributionUnits {
    units: Vec<Counted>,
}

#[derive(Deserialize)]
struct Gateways {
    gateways: Vec<Counted>,
}

#[derive(Deserialize)]
struct Vliw {
    instructions: Vec<Counted>,
}

#[derive(Deserialize)]
struct LogicalTables {
    ids: Vec<Counted>,
}

#[derive(Deserialize)]
struct Containers {
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    container_type: String,
    slices: Vec<Slice>,
}

#[derive(Deserialize)]
struct Slice {
    slice_info: Bits,
}

#[derive(Deserialize)]
struct Bits {
    lsb: u32,
    msb: u32,
}

impl Container {
    /// How many of its bits are taken. Fields that are never alive together share bits.
    fn bits(&self) -> u32 {
        let bits = self.slices.iter().flat_map(|slice| slice.slice_info.lsb..=slice.slice_info.msb);
        bits.collect::<BTreeSet<_>>().len() as u32
    }
}
