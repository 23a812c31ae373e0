//! Tests of the worker: its behaviour in each situation that the protocol names, and in a rack whose
//! network loses, repeats and reorders packets.

mod budgets;
mod early;
mod feeds;
mod fetching;
mod lanes;
mod long_replies;
mod machine;
mod network;
mod rack;
