//! What `sluice status` finds wrong with a live rack: each test brings a trouble about, and sees it told
//! and gone again. Racks in order, and those that a person changes as meant, are told to be in order.

mod clock;
#[path = "../common/mod.rs"]
mod common;
mod hosts;
mod limits;
mod order;
mod rig;
mod switch;
