//! The client's machine: what it does in each situation that the protocol names, and against a network that
//! does what it likes.

mod long_replies;
mod machine;
mod moves;
mod network;
mod submissions;
