//! Frames on links, and the queues in which they wait.

use sluice_events::{Id, Reused};

use crate::ids::{FlowKey, HostId, PortId, mix};

/// The most frames of a flow under way under selective repeat, where both sides note each frame that
/// arrived.
pub(crate) const UNDER_WAY_MAX: u32 = 1_024;

/// The id of a frame while it exists.
pub(crate) type FrameId = Id<FabricFrame>;

/// The sizes of frames on a link, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSizes {
    /// The part of a flow in one frame (public set-up: 1,000 bytes).
    pub payload: u32,
    /// Its headers (public set-up: 48 bytes of PPP, IP, UDP and sequence).
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
    /// The size of a full frame.
    #[inline]
    pub const fn full(&self) -> u32 {
        self.payload + self.header
    }

    /// How many frames a flow takes; an empty flow takes one.
    pub const fn count(&self, bytes: u64) -> u64 {
        if bytes == 0 { 1 } else { bytes.div_ceil(self.payload as u64) }
    }

    /// The size of the flow's last frame.
    pub const fn last(&self, bytes: u64) -> u32 {
        self.header + (bytes - (self.count(bytes) - 1) * self.payload as u64) as u32
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// Carries a part of a flow.
    #[default]
    Data,
    /// Carries a [`Parcel`].
    Parcel,
    /// Says which frame of a flow is expected next.
    Ack,
    /// Says the same, and that another frame arrived.
    Nack,
    /// Asks the other end of the link to send no more data.
    Pause,
    /// Allows the other end of the link to send data again.
    Resume,
}

impl FrameKind {
    /// Whether it waits, is counted and chooses its path like data.
    #[inline]
    pub(crate) const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::Parcel)
    }
}

/// A packet of another part of the simulation, such as a rack. It crosses the fabric as one frame among the
/// data and PFC pauses it like them, but it is neither answered nor sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    pub from: HostId,
    pub to: HostId,
    /// The parcel's size on a link, in bytes, with headers.
    pub bytes: u32,
    /// The sender's id of the parcel.
    pub tag: u32,
}

impl Parcel {
    /// Its frame. Switches treat all parcels from one host to another as one flow.
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
            told: CongaFields { path: 0, level: 0, back_path: 0, back_level: 0 },
            ingress: PortId(from.0),
            next: None,
        }
    }
}

/// What a frame carries for CONGA (CONGA §3.1): its own path, the congestion on it so far, and what its
/// first switch knows of one path in the other direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CongaFields {
    pub(crate) path: u8,
    pub(crate) level: u8,
    pub(crate) back_path: u8,
    pub(crate) back_level: u8,
}

/// A frame; of its payload only the length is stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FabricFrame {
    pub(crate) kind: FrameKind,
    /// In data: congestion was met. In answers: the data had met congestion (CNP).
    pub(crate) is_marked: bool,
    pub(crate) flow: FlowKey,
    /// The number of a frame in its flow, or of the one that is expected; the tag of a parcel.
    pub(crate) sequence: u32,
    /// The frame's size on a link, in bytes, with headers.
    pub(crate) bytes: u32,
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    /// The hash that decides among paths of equal cost.
    pub(crate) path: u32,
    /// In answers under selective repeat: the frame that arrived, or the expected one if none arrived out
    /// of order.
    pub(crate) came: u32,
    /// The levels that CONGA's switches tell each other.
    pub(crate) told: CongaFields,
    /// The port by which the frame came into the switch where it waits.
    pub(crate) ingress: PortId,
    /// The frame behind it in its queue.
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
    /// The size of the waiting frames, in bytes.
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
