//! A flow while it lasts, at its sender and at its receiver.

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
    /// To whom: somebody else.
    pub to: HostId,
    /// How much, in bytes.
    pub bytes: u64,
}

/// A flow that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedFlow {
    pub flow: FlowSpec,
    /// From its begin to the last ACK at its sender.
    pub took: Nanos,
}

/// What sender and receiver know of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Whose room it is: frames of an earlier life are of no use.
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
    /// The next frame to send.
    pub(crate) next: u32,
    /// Frames before this one were received.
    pub(crate) acked: u32,
    /// Whether it is among those whose turn comes.
    pub(crate) is_queued: bool,
    pub(crate) rate: Rate,
    pub(crate) window: Option<CongestionWindow>,
    /// Not before this may the next frame leave, in picoseconds.
    pub(crate) next_ps: u64,
    pub(crate) paced: PacedFlow,
    /// When its last frame left.
    pub(crate) left: Option<Nanos>,
    /// When a frame last left or an answer came.
    pub(crate) heard: Nanos,
}

/// The receiver's side.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowReceiver {
    pub(crate) expected: u32,
    /// Which frame was last asked for again, and when.
    pub(crate) asked: Option<(u32, Nanos)>,
    /// When congestion was last told of.
    pub(crate) told: Option<Nanos>,
    /// Data that came and were not answered yet.
    pub(crate) unanswered: u32,
    /// Whether they are answered after a while at the latest.
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
