//! The controller through the life of a rack: hosts that join, move and die, switches that restart,
//! tallies, and events in any order.

mod adapt;
mod changes;
mod clients;
mod clock;
mod datacenter;
mod fabric;
mod labels;
mod lead;
mod rack;
mod random;
mod restarts;
mod servers;
mod turns;
mod types;
mod workers;
