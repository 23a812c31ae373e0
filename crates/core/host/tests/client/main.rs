//! Tests of the client: its behaviour in each situation that the protocol names, and on a network that
//! loses, repeats and reorders packets.

mod budgets;
mod long_replies;
mod machine;
mod moves;
mod network;
mod shares;
mod submissions;
