//! What machines say in a run, carried out: a file for each kind of machine.

mod calls;
mod clients;
mod controller;
mod lanes;
mod large;
mod rivals;
mod switch;
mod workers;
mod writes;
