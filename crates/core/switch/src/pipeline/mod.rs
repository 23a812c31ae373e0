//! A model of a programmable switch's pipeline.
//!
//! Twelve stages in order. A register array lives in one stage, and a packet may touch **one** entry of it
//! **once** a pass: compare, one of two branches, the old word returned. A packet that needs more goes round
//! again. [`Register`] and [`Ring`] offer only accesses of that shape; [`Pass`] checks, in debug builds or
//! with the feature `checks`, that a program keeps to the rules, and panics with the program's and the
//! array's name when it does not: that is a bug in the program, never a matter of what is in a packet.
//! [`Layout`] adds up what the program takes of the chip.
//!
//! Left out: parser and deparser limits, match-action widths, hash units, clock cycles.

mod layout;
mod pass;
mod register;

pub use layout::{Column, Layout, STAGES, StageUse, Totals};
pub use pass::Pass;
pub use register::{Register, Ring};
