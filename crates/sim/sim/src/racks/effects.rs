//! What happens at the world's nodes, and what follows from it: here the world carries out what programs and
//! machines say. What clients, workers, servers of many cores and switches are is in the files of these names
//! beside this folder.

mod clients;
mod cores;
mod switch;
mod workers;

pub(super) use switch::SwitchPass;
