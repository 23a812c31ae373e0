//! gRPC as `proto/sluice/v1` declares it: the messages, what they mean, how the controller is called
//! ([`Remote`]), and what both ends show each other ([`ClientTls`], [`ServerTls`], [`Caller`]).
//!
//! Nothing here touches a task's packets. Left out: who serves, which is `sluice-switchd`.

mod caller;
pub mod fields;
pub(crate) mod hosts;
mod ops;
mod remote;
mod renewed_channel;
mod servers;
mod shown;
mod tls;
pub mod v1;

pub use caller::{Caller, CallerRole};
pub use fields::Malformed;
pub use hosts::misanswered;
pub use remote::{Remote, is_silence, reason};
pub use renewed_channel::RenewedChannel;
pub use shown::shown;
pub use tls::{ClientTls, ENDS_SOON, Ends, RenewedTls, ServerTls, end_of, read_anew, told_of_end, why};
