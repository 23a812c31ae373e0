//! Tests of the programs by name: which tasks meet which tokens, in which order, and what is refused.

mod budgets;
mod choices;
mod classes;
mod conservation;
mod draconis;
mod draconis_jobs;
mod draconis_policies;
mod engine;
mod fabric;
mod front;
mod halves;
mod horus;
mod layouts;
mod pallas;
mod r2p2;
mod rack;
mod racksched;
mod rain;
mod ranked;
mod selective;
mod server;
mod sized;
mod target;
