//! A model of a programmable switch's pipeline.
//!
//! The pipeline has twelve stages in order. A register array lives in one stage, and a packet may touch
//! **one** entry of it **once** a pass: compare, take one of two branches, return the old word. A packet
//! that needs more recirculates. [`Register`] and [`Ring`] offer only such accesses. [`Pass`] checks the
//! rules in debug builds or with the feature `checks`. If a program breaks a rule, [`Pass`] panics with the
//! names of the program and the array: that is a bug in the program and never depends on the packet alone.
//! [`Layout`] adds up what the program takes of the chip.
//!
//! Left out: parser and deparser limits, match-action widths, hash units, clock cycles.

mod layout;
mod pass;
mod register;

pub use layout::{
    BLOCKS_PER_STAGE, Column, Layout, MAP_RAM_PER_STAGE, STAGES, StageUse, Totals, UNITS_PER_STAGE,
};
pub use pass::Pass;
pub use register::{Register, Ring};
