//! A flow under way, at its sender and at its receiver.

use sluice_host::pacer::PacedFlow;
use sluice_wire::Nanos;

use crate::dcqcn::Rate;
use crate::ids::HostId;
use crate::window::CongestionWindow;

/// A flow that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    pub at: Nanos,
    pub from: HostId,
    /// The receiving host, another than the sender.
    pub to: HostId,
    /// Its size, in bytes.
    pub bytes: u64,
}

/// A flow that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedFlow {
    pub flow: FlowSpec,
    /// The time from its begin to the last ACK at its sender.
    pub took: Nanos,
}

/// The state of a flow at sender and receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// The life of this slot: frames of an earlier flow in the slot are ignored.
    pub(crate) life: u32,
    pub(crate) is_under_way: bool,
    pub(crate) spec: FlowSpec,
    pub(crate) path: u32,
    pub(crate) sender: FlowSender,
    pub(crate) receiver: FlowReceiver,
}

/// The sender's side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowSender {
    pub(crate) frames: u32,
    /// The sequence number of the next frame to send.
    pub(crate) next: u32,
    /// All frames before this one were received.
    pub(crate) acked: u32,
    /// Whether it is in the queue of flows that take turns.
    pub(crate) is_queued: bool,
    pub(crate) rate: Rate,
    pub(crate) window: Option<CongestionWindow>,
    /// The earliest time at which the next frame may leave, in picoseconds.
    pub(crate) next_ps: u64,
    pub(crate) paced: PacedFlow,
    /// When its last frame left.
    pub(crate) left: Option<Nanos>,
    /// When a frame last left or an answer arrived.
    pub(crate) heard: Nanos,
}

/// The receiver's side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowReceiver {
    pub(crate) expected: u32,
    /// The frame that was last asked for again, and when.
    pub(crate) asked: Option<(u32, Nanos)>,
    /// When congestion was last reported.
    pub(crate) told: Option<Nanos>,
    /// Frames of data that arrived and were not answered yet.
    pub(crate) unanswered: u32,
    /// Whether a timer will answer them at the latest.
    pub(crate) is_answer_due: bool,
}

impl FlowSender {
    pub(crate) fn new(frames: u32, line_mbps: f64, now: Nanos, window: Option<CongestionWindow>) -> Self {
        Self {
            frames,
            next: 0,
            acked: 0,
            is_queued: true,
            rate: Rate::new(line_mbps),
            window,
            next_ps: 0,
            paced: PacedFlow::default(),
            left: None,
            heard: now,
        }
    }
}
