//! gRPC as `proto/sluice/v1` declares it: the messages and their meaning, calls to the controller
//! ([`Remote`]), the certificates of both ends ([`ClientTls`], [`ServerTls`], [`Caller`]), the versions that
//! peers speak ([`PeerVersion`]), and how a host stays registered ([`registrar`]).
//!
//! No task's packet passes through this crate. Left out: the servers, which are in `sluice-switchd`.
#![forbid(unsafe_code)]

mod caller;
mod error;
pub mod fields;
mod hosts;
mod lead;
mod ops;
pub mod registrar;
mod remote;
mod renewed_channel;
mod servers;
mod shown;
mod tls;
pub mod v1;
mod version;

pub use caller::{Caller, CallerRole};
pub use error::RpcError;
pub use fields::Malformed;
pub use hosts::misanswered;
pub use lead::are_of_one_rack;
pub use remote::{Remote, is_silence, reason};
pub use renewed_channel::{LEADER_HEADER, RenewedChannel};
pub use shown::shown;
pub use tls::{
    CallerTls, ClientTls, ENDS_SOON, Ends, RenewedTls, ServerTls, end_of, end_text, end_text_at, read_anew,
    why,
};
pub use version::{BUILD, PeerVersion, SPEAKS};
