//! The worker's machine: what it does in each situation that the protocol names, and in a rack whose network
//! does what it likes.

mod early;
mod feeds;
mod fetching;
mod lanes;
mod long_replies;
mod machine;
mod network;
mod rack;
