//! What happens in a rack, and what follows from it: a file for each kind of machine or failure.

mod awaits;
mod clients;
mod controller;
mod enlisting;
mod gray_failures;
mod lanes;
mod large;
mod operators;
mod passes;
mod process_failures;
mod rivals;
mod session;
mod switch;
mod workers;
mod writes;
