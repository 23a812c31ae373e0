//! Frames leave ports, take their time on links, and arrive: the part that hosts and switches share.

use sluice_events::{Address, EventEngine, LaneId, Reused, SpanLanes};
use sluice_wire::Nanos;

use crate::frame::{FabricFrame, FrameId, FrameKind, FrameQueue, FrameSizes};
use crate::ids::{FlowKey, PortId};
use crate::wiring::Wiring;

/// The fabric's address in its world; each port is a place of it.
pub(crate) const FABRIC: Address = Address::node(0);

/// An event at a port.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arriving {
    /// A frame arrives from the other end of the port's link.
    Frame(FrameId),
    /// The frame that the port sent has left.
    Left,
}

/// The events that hosts schedule.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostEvent {
    /// Check whether a flow's frames have been answered.
    Unanswered(FlowKey),
    /// Answer a flow's data, if that has not happened by then.
    Answer(FlowKey),
    /// Send a frame that was prepared before.
    Leaves(FrameId),
}

/// The counts of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounts {
    /// Frames that left.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Bytes that arrived.
    pub bytes_in: u64,
    /// Bytes that arrived and were lost because the memory behind the port was full.
    pub bytes_lost: u64,
    /// Frames that were lost for that reason.
    pub frames_lost: u64,
    /// How often the port's other end was asked to pause.
    pub pauses: u64,
    /// How often the port was paused itself.
    pub paused: u64,
    /// For how long the port was paused.
    pub paused_for: Nanos,
}

/// One end of a link.
#[derive(Debug)]
pub(crate) struct FabricPort {
    peer: PortId,
    delay: Nanos,
    /// Femtoseconds per byte.
    fs_a_byte: u64,
    /// The engine's lanes for full frames, and for answers.
    lanes: [PortLanes; 2],
    /// When the last frame has left, in picoseconds.
    free_ps: u64,
    pub(crate) is_busy: bool,
    paused_since: Option<Nanos>,
    /// PFC frames, then answers, then data.
    pub(crate) urgent: FrameQueue,
    pub(crate) answers: FrameQueue,
    pub(crate) data: FrameQueue,
    pub(crate) counts: PortCounts,
}

/// The engine's lanes for one usual size of frames.
#[derive(Clone, Copy, Debug)]
struct PortLanes {
    leaves: LaneId,
    arrives: LaneId,
}

impl FabricPort {
    /// The other end of its link.
    pub(crate) const fn peer(&self) -> PortId {
        self.peer
    }

    /// Whether its other end asked it to pause.
    pub(crate) const fn is_paused(&self) -> bool {
        self.paused_since.is_some()
    }

    /// The bytes of its data that wait, plus one if a frame is leaving.
    #[inline]
    pub(crate) const fn backlog(&self) -> u64 {
        self.data.bytes() + self.is_busy as u64
    }

    /// The time of so many bytes, in picoseconds.
    #[inline]
    fn span_ps(&self, bytes: u32) -> u64 {
        u64::from(bytes) * self.fs_a_byte / 1_000
    }
}

/// Femtoseconds per byte at this rate.
pub(crate) fn fs_a_byte(gbps: f64) -> u64 {
    (8e6 / gbps).round() as u64
}

/// All ports, the frames on links, and the time.
#[derive(Debug)]
pub(crate) struct Wires {
    pub(crate) now: Nanos,
    pub(crate) engine: EventEngine<HostEvent, Arriving>,
    pub(crate) frames: Reused<FabricFrame>,
    pub(crate) ports: Vec<FabricPort>,
    full: u32,
    pause: u32,
}

impl Wires {
    pub(crate) fn new(plan: &Wiring, sizes: &FrameSizes) -> Self {
        let mut engine = EventEngine::new();
        let mut lanes = SpanLanes::default();
        let usual = [sizes.full(), sizes.answer];
        let port = |socket: &crate::wiring::PortSpec| {
            let (delay, fs_a_byte) = (socket.speed.delay, fs_a_byte(socket.speed.gbps));
            FabricPort {
                peer: socket.peer,
                delay,
                fs_a_byte,
                lanes: usual.map(|bytes| {
                    let leaves = Nanos((u64::from(bytes) * fs_a_byte).div_ceil(1_000_000));
                    PortLanes {
                        leaves: lanes.of(&mut engine, leaves),
                        arrives: lanes.of(&mut engine, leaves + delay),
                    }
                }),
                free_ps: 0,
                is_busy: false,
                paused_since: None,
                urgent: FrameQueue::default(),
                answers: FrameQueue::default(),
                data: FrameQueue::default(),
                counts: PortCounts::default(),
            }
        };
        let ports = plan.sockets.iter().map(port).collect();
        Self {
            now: Nanos(0),
            engine,
            frames: Reused::new(FabricFrame::default()),
            ports,
            full: sizes.full(),
            pause: sizes.pause,
        }
    }

    /// A frame leaves, as soon as the one before it has left. Returns when it begins to leave, in
    /// picoseconds.
    #[inline]
    pub(crate) fn start(&mut self, from: PortId, id: FrameId) -> u64 {
        let bytes = self.frames.get(id).bytes;
        let port = &mut self.ports[from.index()];
        debug_assert!(!port.is_busy, "a port sends one frame at a time");
        let begins = begins_ps(port.free_ps, self.now);
        port.free_ps = begins + port.span_ps(bytes);
        port.is_busy = true;
        port.counts.frames += 1;
        port.counts.bytes += u64::from(bytes);
        let left = Nanos(port.free_ps.div_ceil(1_000));
        let lanes = port.lanes[usize::from(bytes < self.full)];
        let (peer, arrives) = (FABRIC.at(port.peer.0), left + port.delay);
        self.engine.send(lanes.leaves, left, FABRIC.at(from.0), Arriving::Left);
        self.engine.send(lanes.arrives, arrives, peer, Arriving::Frame(id));
        begins
    }

    /// Takes the next waiting frame of a port that may leave; data only if the port is not paused.
    #[inline]
    pub(crate) fn next(&mut self, port: PortId) -> Option<FrameId> {
        let port = &mut self.ports[port.index()];
        if let Some(id) = port.urgent.pop(&self.frames) {
            return Some(id);
        }
        if let Some(id) = port.answers.pop(&self.frames) {
            return Some(id);
        }
        if port.is_paused() { None } else { port.data.pop(&self.frames) }
    }

    /// Asks the other end of this port's link to pause, or to go on. The request overtakes all waiting
    /// frames.
    pub(crate) fn ask(&mut self, port: PortId, kind: FrameKind) {
        let bytes = self.pause;
        let id = self.frames.make(|frame| *frame = FabricFrame { kind, bytes, ..FabricFrame::default() });
        self.ports[port.index()].urgent.push(&mut self.frames, id);
        if self.ports[port.index()].is_busy {
            return;
        }
        let next = self.ports[port.index()].urgent.pop(&self.frames);
        if let Some(id) = next {
            self.start(port, id);
        }
    }

    /// The other end asked this port to pause.
    pub(crate) fn pause(&mut self, port: PortId) {
        let (now, port) = (self.now, &mut self.ports[port.index()]);
        if port.paused_since.is_none() {
            port.paused_since = Some(now);
            port.counts.paused += 1;
        }
    }

    /// The other end has room again.
    pub(crate) fn resume(&mut self, port: PortId) {
        let (now, port) = (self.now, &mut self.ports[port.index()]);
        if let Some(since) = port.paused_since.take() {
            port.counts.paused_for = port.counts.paused_for + now.since(since);
        }
    }
}

/// When a frame begins to leave: a port that became free within this nanosecond goes on at that time; an
/// idle port begins now.
#[inline]
const fn begins_ps(free_ps: u64, now: Nanos) -> u64 {
    let now_ps = now.0 * 1_000;
    if free_ps + 1_000 > now_ps { free_ps } else { now_ps }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{LinkSpeed, Topology};

    #[test]
    fn what_asks_for_a_pause_goes_before_answers_and_those_before_data() {
        let topology = Topology::fat_tree(4, LinkSpeed::default()).expect("k is even");
        let mut wires =
            Wires::new(&Wiring::new(&topology).expect("hosts reach each other"), &FrameSizes::default());
        let port = PortId(16);
        let mut frame = |kind| wires.frames.make(|frame| frame.kind = kind);
        let [data, answer, pause] = [FrameKind::Data, FrameKind::Ack, FrameKind::Pause].map(&mut frame);
        let Wires { ports, frames, .. } = &mut wires;
        ports[port.index()].data.push(frames, data);
        ports[port.index()].answers.push(frames, answer);
        ports[port.index()].urgent.push(frames, pause);
        wires.pause(port);
        let kinds = |wires: &mut Wires| {
            let next = std::iter::from_fn(|| wires.next(port));
            let ids: Vec<_> = next.collect();
            ids.into_iter().map(|id| wires.frames.get(id).kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&mut wires), [FrameKind::Pause, FrameKind::Ack]);
        wires.resume(port);
        assert_eq!(kinds(&mut wires), [FrameKind::Data]);
    }
}
