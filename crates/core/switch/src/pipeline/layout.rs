//! What a program takes of the chip.

use alloc::vec::Vec;

/// Stages of the pipeline.
pub const STAGES: u8 = 12;
/// SRAM blocks in a stage.
pub const BLOCKS_PER_STAGE: u32 = 80;
/// Blocks of map RAM in a stage. Each SRAM block that stateful units write needs one.
pub const MAP_RAM_PER_STAGE: u32 = 48;
/// Stateful units, and so register arrays, in a stage.
pub const UNITS_PER_STAGE: u32 = 4;
/// Bits in an SRAM block: 16 KiB.
const BLOCK_BITS: u64 = 16 * 1024 * 8;
/// The SRAM block that each register array has beyond its words, to read one block while it writes another.
const SPARE_BLOCKS: u32 = 1;
/// The widths of the words that a stateful unit can update, in bits. 64 are a pair of 32.
const WORD_BITS: [u32; 5] = [1, 8, 16, 32, 64];

/// One register array of several that one index reaches, each in its stage.
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
    /// Blocks of map RAM, of 48.
    pub map_ram: u32,
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
    /// Blocks of map RAM, of 576.
    pub map_ram: u32,
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
        let sum = |of: fn(&StageUse) -> u32| self.stages.iter().map(of).sum();
        let blocks = sum(|stage| stage.blocks);
        Totals {
            stages: self.stages.iter().filter(|stage| !stage.names.is_empty()).count() as u32,
            blocks,
            sram: f64::from(blocks) / f64::from(BLOCKS_PER_STAGE * u32::from(STAGES)),
            map_ram: sum(|stage| stage.map_ram),
            units: sum(|stage| stage.units),
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

    /// Accounts for a match table of `rows` rows of `bits` bits in `stage`: SRAM only.
    pub fn table(&mut self, name: &'static str, stage: u8, bits: u32, rows: usize) {
        self.take(name, stage, blocks(bits, rows), 0);
    }

    /// Accounts for arrays that one packet's index reaches together; returns their number, for
    /// [`super::Pass`].
    pub(super) fn columns(&mut self, columns: &[Column], rows: usize) -> u8 {
        for Column { name, stage, bits } in columns {
            let program = self.program;
            assert!(WORD_BITS.contains(bits), "{program}: {name} has {bits} bits, which no word has");
            self.take(name, *stage, blocks(*bits, rows) + SPARE_BLOCKS, 1);
        }
        self.arrays += 1;
        self.arrays - 1
    }

    fn take(&mut self, name: &'static str, stage: u8, blocks: u32, units: u32) {
        let program = self.program;
        assert!(stage < STAGES, "{program}: {name} wants stage {stage}, the chip has {STAGES}");
        let used = &mut self.stages[stage as usize];
        used.names.push(name);
        used.blocks += blocks;
        used.map_ram += blocks * units;
        used.units += units;
        assert!(
            used.units <= UNITS_PER_STAGE,
            "{program}: stage {stage} has no stateful unit left for {name}"
        );
        assert!(used.blocks <= BLOCKS_PER_STAGE, "{program}: stage {stage} has no SRAM left for {name}");
        assert!(used.map_ram <= MAP_RAM_PER_STAGE, "{program}: stage {stage} has no map RAM left for {name}");
    }
}

/// The SRAM blocks of so many rows.
const fn blocks(bits: u32, rows: usize) -> u32 {
    (bits as u64 * rows as u64).div_ceil(BLOCK_BITS) as u32
}
