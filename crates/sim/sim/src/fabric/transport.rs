//! The traffic of a world across a fabric, beside the fabric's own flows: packets, and other messages.
//!
//! Fabric and world each have their own events; the earlier event happens first. A packet gets its position
//! in the world's order of entry when it is sent. So without queues in the fabric everything happens as
//! without a fabric.

use sluice_events::{Address, EventTurn, Id, Mail, PacketId, Reused, World};
use sluice_fabric::{FabricCounts, FabricError, FabricStep, HostId, Parcel};
use sluice_stats::Gauges;
use sluice_wire::Nanos;

use super::gauges::fabric_gauges;
use super::joined::{JoinedFabric, frame_bytes};

/// A fabric, and the traffic of the world on it. `T` is the type of messages that are no packets.
#[derive(Debug)]
pub(crate) struct FabricTransport<T> {
    joined: JoinedFabric,
    carried: Reused<FrameInFlight<T>>,
    under_way: u32,
    /// The fabric's counts when the measured span began.
    opened: FabricCounts,
}

/// Sender and receiver of a packet, and their hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketEnds {
    pub(crate) ends: [Address; 2],
    pub(crate) hosts: [HostId; 2],
}

#[derive(Clone, Copy, Debug)]
struct FrameInFlight<T> {
    turn: EventTurn,
    ends: [Address; 2],
    what: FrameContent<T>,
}

#[derive(Clone, Copy, Debug)]
enum FrameContent<T> {
    Packet(PacketId),
    Other(T),
}

impl<T: Copy> FabricTransport<T> {
    /// A fabric without traffic of the world.
    pub(crate) fn new(joined: JoinedFabric) -> Self {
        let nothing = FrameInFlight {
            turn: EventTurn::default(),
            ends: [Address::node(0); 2],
            what: FrameContent::Packet(Id::of(0)),
        };
        Self { joined, carried: Reused::new(nothing), under_way: 0, opened: FabricCounts::default() }
    }

    /// A packet of the world leaves at `leaves`.
    pub(crate) fn send<C, W>(
        &mut self,
        world: &mut World<C, W>,
        leg: PacketEnds,
        leaves: Nanos,
        packet: PacketId,
    ) {
        let bytes = frame_bytes(world.packets.get(packet));
        self.carry(world, leg, leaves, (bytes, FrameContent::Packet(packet)));
    }

    /// Another message leaves at `leaves`, with so many bytes.
    pub(crate) fn send_other<C, W>(
        &mut self,
        world: &mut World<C, W>,
        leg: PacketEnds,
        leaves: Nanos,
        (bytes, what): (u32, T),
    ) {
        self.carry(world, leg, leaves, (bytes, FrameContent::Other(what)));
    }

    /// Carries out the fabric's events up to the world's next event. Packets that arrive are entered into
    /// the world. For other messages `other` is called, with whether the message arrived or was lost.
    /// Returns how many packets were lost.
    pub(crate) fn catch_up<C, W>(
        &mut self,
        world: &mut World<C, W>,
        mut other: impl FnMut(T, bool),
    ) -> Result<u64, FabricError> {
        let mut lost = 0;
        while self.joined.fabric.next_at() <= world.engine.next_at() && self.is_awaited(world) {
            match self.joined.fabric.step()? {
                Some(FabricStep::Due(flow)) => {
                    self.joined.fabric.expect(self.joined.flows.as_mut().and_then(Iterator::next))?;
                    self.joined.fabric.begin(flow);
                }
                Some(FabricStep::Came(parcel)) => {
                    let FrameInFlight { turn, ends: [from, to], what } = self.takes(parcel);
                    let now = self.joined.fabric.now();
                    match what {
                        FrameContent::Packet(packet) => {
                            world.engine.arrives(turn, now, to, Mail::Packet { from, packet });
                        }
                        FrameContent::Other(what) => other(what, true),
                    }
                }
                Some(FabricStep::Lost(parcel)) => match self.takes(parcel).what {
                    FrameContent::Packet(packet) => {
                        world.packets.free(packet);
                        lost += 1;
                    }
                    FrameContent::Other(what) => other(what, false),
                },
                Some(FabricStep::Ended(_) | FabricStep::Other) => {}
                None => break,
            }
        }
        Ok(lost)
    }

    /// The measured span begins.
    pub(crate) fn opens(&mut self) {
        self.opened = self.joined.fabric.counts();
        self.joined.fabric.forget_gaps();
    }

    /// The fabric's gauges in the measured span so far.
    pub(crate) fn gauges(&self) -> Gauges {
        let JoinedFabric { fabric, round_trip, .. } = &self.joined;
        fabric_gauges(&fabric.counts(), &self.opened, fabric.gaps(), *round_trip)
    }

    fn carry<C, W>(
        &mut self,
        world: &mut World<C, W>,
        PacketEnds { ends, hosts: [from, to] }: PacketEnds,
        leaves: Nanos,
        (bytes, what): (u32, FrameContent<T>),
    ) {
        let turn = world.engine.turn();
        let tag = self.carried.keep(&FrameInFlight { turn, ends, what }).number();
        self.under_way += 1;
        self.joined.fabric.carry(leaves, Parcel { from, to, bytes, tag });
    }

    /// Whether any event of the world is still to come; the flows alone would go on for ever.
    fn is_awaited<C, W>(&self, world: &World<C, W>) -> bool {
        self.under_way > 0 || world.engine.next_at() != Nanos(u64::MAX)
    }

    fn takes(&mut self, parcel: Parcel) -> FrameInFlight<T> {
        self.under_way -= 1;
        self.carried.take(Id::of(parcel.tag))
    }
}
