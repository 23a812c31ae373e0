//! Checks the rendezvous with a few tokens, tasks and SWEEPs. One checker explores every interleaving and
//! remembers states. The same code also runs under loom, which also reorders accesses as far as their
//! memory orders allow. Both must find planted mistakes.

mod explorer;
mod interleavings;
mod ledger;
mod mistakes;
mod programs;
mod ranks;
mod reordered;
