//! What goes over links, and how it waits.

use sluice_events::{Id, Reused};

use crate::ids::{FlowKey, HostId, PortId, mix};

/// The most frames of a flow that may be under way where both sides keep which of them came.
pub(crate) const UNDER_WAY_MAX: u32 = 1_024;

/// Names a frame while it is on its way.
pub(crate) type FrameId = Id<FabricFrame>;

/// What frames take of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSizes {
    /// The part of a flow in one frame (public set-up: 1,000 bytes).
    pub payload: u32,
    /// What is around it (public set-up: 48 bytes of PPP, IP, UDP and sequence).
    pub header: u32,
    /// An ACK or NACK (public set-up: 60 bytes).
    pub answer: u32,
    /// A PFC frame (IEEE 802.1Qbb: the shortest Ethernet frame, 64 bytes).
    pub pause: u32,
}

impl Default for FrameSizes {
    fn default() -> Self {
        Self { payload: 1_000, header: 48, answer: 60, pause: 64 }
    }
}

impl FrameSizes {
    /// A frame that is full.
    #[inline]
    pub const fn full(&self) -> u32 {
        self.payload + self.header
    }

    /// How many frames a flow takes: an empty one takes one, too.
    pub const fn count(&self, bytes: u64) -> u64 {
        if bytes == 0 { 1 } else { bytes.div_ceil(self.payload as u64) }
    }

    /// The last of them.
    pub const fn last(&self, bytes: u64) -> u32 {
        self.header + (bytes - (self.count(bytes) - 1) * self.payload as u64) as u32
    }
}

/// What a frame is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Carries a part of a flow.
    #[default]
    Data,
    /// Carries a [`Parcel`].
    Parcel,
    /// Says which part of a flow is expected next.
    Ack,
    /// Says it, too, and that something else came.
    Nack,
    /// Whoever gets it sends no more data over this link.
    Pause,
    /// Whoever gets it may send data again.
    Resume,
}

impl FrameKind {
    /// Whether it waits, is counted and chooses its path as data do.
    #[inline]
    pub(crate) const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::Parcel)
    }
}

/// A packet of others, a rack's say: it crosses the fabric as one frame among the data, is held by PFC as
/// they are, and nobody answers it or sends it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    pub from: HostId,
    pub to: HostId,
    /// What it takes of a link, headers included.
    pub bytes: u32,
    /// What its sender knows it by.
    pub tag: u32,
}

impl Parcel {
    /// As it lies in its frame. All from one host to another are one flow to switches.
    pub(crate) const fn frame(self) -> FabricFrame {
        let Self { from, to, bytes, tag } = self;
        FabricFrame {
            kind: FrameKind::Parcel,
            is_marked: false,
            flow: FlowKey { slot: !from.0, life: to.0 },
            sequence: tag,
            bytes,
            from,
            to,
            path: mix(!from.0, to.0),
            came: 0,
            told: PathTold { path: 0, level: 0, back_path: 0, back_level: 0 },
            ingress: PortId(from.0),
            next: None,
        }
    }
}

/// What a frame carries for CONGA (CONGA §3.1): its own path and the congestion on it so far, and what its
/// first switch knows of one path the other way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PathTold {
    pub(crate) path: u8,
    pub(crate) level: u8,
    pub(crate) back_path: u8,
    pub(crate) back_level: u8,
}

/// A frame. Payloads are lengths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FabricFrame {
    pub(crate) kind: FrameKind,
    /// Data: congestion was met. Answers: data had met it (CNP).
    pub(crate) is_marked: bool,
    pub(crate) flow: FlowKey,
    /// Which of a flow's frames it is, or which one is expected; a parcel's tag.
    pub(crate) sequence: u32,
    /// What it takes of a link, headers included.
    pub(crate) bytes: u32,
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    /// Decides among paths of equal cost.
    pub(crate) path: u32,
    /// Answers under selective repeat: which frame came (the one expected: none out of its turn).
    pub(crate) came: u32,
    /// What CONGA's leaves tell each other.
    pub(crate) told: PathTold,
    /// By which port it came into the switch where it waits.
    pub(crate) ingress: PortId,
    /// What waits behind it in its queue.
    pub(crate) next: Option<FrameId>,
}

impl FabricFrame {
    /// The parcel that it carries, if it carries one.
    #[inline]
    pub(crate) fn parcel(&self) -> Option<Parcel> {
        let Self { from, to, bytes, sequence: tag, .. } = *self;
        (self.kind == FrameKind::Parcel).then_some(Parcel { from, to, bytes, tag })
    }
}

/// Frames that wait for a link: first in, first out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameQueue {
    ends: Option<(FrameId, FrameId)>,
    bytes: u64,
}

impl FrameQueue {
    /// What waits, in bytes.
    #[inline]
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    pub(crate) fn push(&mut self, frames: &mut Reused<FabricFrame>, id: FrameId) {
        let frame = frames.get_mut(id);
        frame.next = None;
        self.bytes += u64::from(frame.bytes);
        self.ends = match self.ends {
            Some((first, last)) => {
                frames.get_mut(last).next = Some(id);
                Some((first, id))
            }
            None => Some((id, id)),
        };
    }

    #[inline]
    pub(crate) fn pop(&mut self, frames: &Reused<FabricFrame>) -> Option<FrameId> {
        let (first, last) = self.ends?;
        let frame = frames.get(first);
        self.bytes -= u64::from(frame.bytes);
        self.ends = frame.next.map(|next| (next, last));
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flows_frames_carry_its_bytes_and_a_header_each() {
        let sizes = FrameSizes::default();
        for bytes in [0, 1, 999, 1_000, 1_001, 1_999, 2_000, 37_123] {
            let count = sizes.count(bytes);
            let carried = (count - 1) * u64::from(sizes.full()) + u64::from(sizes.last(bytes));
            assert_eq!(carried, bytes + count * u64::from(sizes.header), "{bytes} bytes");
        }
    }
}
