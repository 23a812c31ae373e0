//! Every interleaving of a few tokens, tasks and SWEEPs by a checker that remembers states, and the same code
//! under loom, which also reorders what no order is asked for; and that each finds what is planted for it.

mod explorer;
mod interleavings;
mod ledger;
mod mistakes;
mod programs;
mod ranks;
mod reordered;
