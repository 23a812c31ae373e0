//! The options of a sender, and its report of each WRITE.

use std::net::{IpAddr, SocketAddr};

use sluice_host::pacer::PacerSettings;
use sluice_wire::Nanos;
use sluice_wire::roce::{Psn, Qpn, Rkey};

/// How far ahead of their time frames are given to the kernel's fair queue; the thread wakes twice in this
/// span.
pub(super) const AHEAD: Nanos = Nanos::from_micros(1_000);

/// Where frames wait for their departure time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsBy {
    /// In the outbox, with a thread that polls the clock: occupies a core.
    Spinning,
    /// In the outbox, with a thread that sleeps.
    Sleeping,
    /// In the kernel's fair queue (`fq`), with a departure time; frames are given to it up to a millisecond
    /// ahead.
    Kernel,
}

/// What is sent, and from where to where.
#[derive(Clone, Debug)]
pub struct WriteSenderOptions {
    /// This machine's address; each flow gets a free port.
    pub from: IpAddr,
    pub to: SocketAddr,
    pub flows: u16,
    /// The receiver's queue pair for the first flow; the other flows use the following numbers.
    pub pair: Qpn,
    /// The key of the receiver's region.
    pub rkey: Rkey,
    /// The address at which each WRITE starts.
    pub address: u64,
    /// The number of bytes in a WRITE.
    pub bytes: usize,
    /// The time of a frame on its link; a flowlet threshold must be longer.
    pub frame: Nanos,
    /// The pacer's settings; `None` for no pacer.
    pub pacer: Option<PacerSettings>,
    pub waits: WaitsBy,
}

/// A WRITE that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLeft {
    /// The index of the flow.
    pub flow: usize,
    /// The WRITE's sequence number in the flow.
    pub psn: Psn,
    /// Whether the pacer held the WRITE.
    pub held: bool,
    /// When the WRITE became ready.
    pub due: Nanos,
    /// When the kernel was asked to send it.
    pub before: Nanos,
    /// When the WRITE had left; the pacer measures gaps from it. With the kernel's queue: the departure
    /// time.
    pub at: Nanos,
}
