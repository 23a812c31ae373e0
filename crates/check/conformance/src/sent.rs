//! The outputs of a data plane.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::hex::{bytes, hex, to_hex};

/// A datagram that left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sent {
    pub to: SocketAddr,
    #[serde(serialize_with = "hex", deserialize_with = "bytes")]
    pub bytes: Vec<u8>,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", to_hex(&self.bytes), self.to)
    }
}

/// Everything that left in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepOutput {
    pub(crate) sent: Option<Sent>,
    pub(crate) written: Vec<Sent>,
    /// How often the packet recirculated, if the plane counts it.
    pub(crate) rounds: Option<u32>,
}

impl fmt::Display for StepOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.sent {
            Some(sent) => sent.fmt(f)?,
            None => f.write_str("nothing")?,
        }
        self.written.iter().try_for_each(|sent| write!(f, ", written {sent}"))?;
        self.rounds.map_or(Ok(()), |rounds| write!(f, ", recirculated {rounds} times"))
    }
}
