//! The controller through the life of a rack: hosts that come, move and die, switches that restart, tallies,
//! and whatever comes in any order.

mod adapt;
mod changes;
mod clients;
mod clock;
mod datacenter;
mod fabric;
mod labels;
mod rack;
mod random;
mod restarts;
mod servers;
mod turns;
mod types;
mod workers;
