//! What a program takes of the chip.

use alloc::vec::Vec;

/// Stages of the pipeline.
pub const STAGES: u8 = 12;
/// SRAM blocks in a stage.
const BLOCKS_PER_STAGE: u32 = 80;
/// Bits in an SRAM block: 16 KiB.
const BLOCK_BITS: u64 = 16 * 1024 * 8;
/// Stateful units, and so register arrays, in a stage.
const UNITS_PER_STAGE: u32 = 4;
/// The widest word that a stateful unit can update, in bits.
const WORD_BITS: u32 = 64;

/// One register array of a striped queue entry.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    pub name: &'static str,
    pub stage: u8,
    /// Width of a word, in bits.
    pub bits: u32,
}

/// What the program takes of one stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StageUse {
    /// Names of the arrays and tables that live there.
    pub names: Vec<&'static str>,
    /// SRAM blocks, of 80.
    pub blocks: u32,
    /// Stateful units, of 4.
    pub units: u32,
}

/// What the program takes of all stages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// Stages that are used, of 12.
    pub stages: u32,
    /// SRAM blocks, of 960.
    pub blocks: u32,
    /// Share of the chip's SRAM, 0 to 1.
    pub sram: f64,
    /// Stateful units, of 48.
    pub units: u32,
}

/// What a program takes of each stage. The layout grows as the program's arrays and tables are made.
#[derive(Clone, Debug)]
pub struct Layout {
    program: &'static str,
    stages: Vec<StageUse>,
    arrays: u8,
    entries: u32,
}

impl Layout {
    /// An empty chip for `program`.
    pub fn new(program: &'static str) -> Self {
        Self { program, stages: alloc::vec![StageUse::default(); STAGES as usize], arrays: 0, entries: 0 }
    }

    /// The program's name.
    pub const fn program(&self) -> &'static str {
        self.program
    }

    /// The stages, first to last.
    pub fn stages(&self) -> &[StageUse] {
        &self.stages
    }

    /// The sums over all stages.
    pub fn totals(&self) -> Totals {
        let blocks = self.stages.iter().map(|stage| stage.blocks).sum();
        Totals {
            stages: self.stages.iter().filter(|stage| !stage.names.is_empty()).count() as u32,
            blocks,
            sram: f64::from(blocks) / f64::from(BLOCKS_PER_STAGE * u32::from(STAGES)),
            units: self.stages.iter().map(|stage| stage.units).sum(),
        }
    }

    /// How many tasks can wait in the program's queues.
    pub const fn entries(&self) -> u32 {
        self.entries
    }

    /// Notes that `rows` tasks can wait.
    pub const fn queue(&mut self, rows: u32) {
        self.entries = rows;
    }

    /// Accounts for a match table of `rows` rows of `bits` bits in `stage`: SRAM, no stateful unit.
    pub fn table(&mut self, name: &'static str, stage: u8, bits: u32, rows: usize) {
        self.take(name, stage, bits, rows, 0);
    }

    /// Accounts for a register array; returns its number, for [`super::Pass`].
    pub(super) fn register(&mut self, name: &'static str, stage: u8, bits: u32, cells: usize) -> u8 {
        self.take(name, stage, bits, cells, 1);
        self.next_array()
    }

    /// Accounts for a striped queue; returns its number and first stage.
    pub(super) fn ring(&mut self, columns: &[Column], rows: usize) -> (u8, u8) {
        for column in columns {
            self.take(column.name, column.stage, column.bits, rows, 1);
        }
        let first = columns.iter().map(|column| column.stage).min().unwrap_or(0);
        (self.next_array(), first)
    }

    fn next_array(&mut self) -> u8 {
        self.arrays += 1;
        self.arrays - 1
    }

    fn take(&mut self, name: &'static str, stage: u8, bits: u32, cells: usize, units: u32) {
        let program = self.program;
        assert!(stage < STAGES, "{program}: {name} wants stage {stage}, the chip has {STAGES}");
        assert!(units == 0 || bits <= WORD_BITS, "{program}: {name} is wider than a stateful unit's word");
        let used = &mut self.stages[stage as usize];
        used.names.push(name);
        used.blocks += (u64::from(bits) * cells as u64).div_ceil(BLOCK_BITS) as u32;
        used.units += units;
        assert!(
            used.units <= UNITS_PER_STAGE,
            "{program}: stage {stage} has no stateful unit left for {name}"
        );
        assert!(used.blocks <= BLOCKS_PER_STAGE, "{program}: stage {stage} has no SRAM left for {name}");
    }
}
