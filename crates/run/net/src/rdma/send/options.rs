//! What a sender is told at its start, and what it tells of each WRITE.

use std::net::{IpAddr, SocketAddr};

use sluice_host::pacer::PacerSettings;
use sluice_wire::Nanos;
use sluice_wire::roce::{Psn, Qpn, Rkey};

/// How far ahead of their time frames are given to the kernel's fair queue; the thread wakes twice in that.
pub(super) const AHEAD: Nanos = Nanos::from_micros(1_000);

/// Where frames wait for their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitsBy {
    /// In the outbox, whose thread looks at the clock without a pause: a core is busy.
    Spinning,
    /// In the outbox, whose thread sleeps meanwhile.
    Sleeping,
    /// In the kernel's fair queue (`fq`), with the time at which they leave: given to it up to a millisecond
    /// ahead.
    Kernel,
}

/// What is sent, from where to where.
#[derive(Clone, Debug)]
pub struct WriteSenderOptions {
    /// This machine's address; each flow gets a port that is free.
    pub from: IpAddr,
    pub to: SocketAddr,
    pub flows: u16,
    /// The receiver's queue pair of the first flow; the others' follow.
    pub pair: Qpn,
    /// What lets the writer in.
    pub rkey: Rkey,
    /// Where each WRITE's first byte goes.
    pub address: u64,
    /// How many bytes a WRITE has.
    pub bytes: usize,
    /// What a frame takes on its link: no flowlet threshold is as short.
    pub frame: Nanos,
    /// What holds frames back, if anything does.
    pub pacer: Option<PacerSettings>,
    pub waits: WaitsBy,
}

/// A WRITE that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLeft {
    /// Which flow's, from 0.
    pub flow: usize,
    /// Its place in the flow.
    pub psn: Psn,
    /// Whether the pacer held it.
    pub held: bool,
    /// When it was there to be sent.
    pub due: Nanos,
    /// When the kernel was asked to send it.
    pub before: Nanos,
    /// When it had left: what the pacer counts from. In the kernel's queue: when it is to leave.
    pub at: Nanos,
}
