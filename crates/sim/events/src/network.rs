//! Links between places: values that say how long a packet takes, which queue it waits in, and which faults
//! it may meet.

use sluice_wire::{Dispatch, Nanos, Packet, Place};

use crate::address::Address;
use crate::engine::LaneId;

/// A link in one direction between two places.
#[derive(Debug)]
pub struct OneWay {
    /// How long a packet is on its way.
    pub delay: Nanos,
    /// The engine's lane for the link's packets.
    pub lane: LaneId,
    /// The queue in front of the link; without one, any number of packets leave at once.
    pub queue: Option<LinkQueue>,
}

/// The queue of a link that sends one packet after the other.
#[derive(Debug)]
pub struct LinkQueue {
    port: Port,
    /// The bytes of a packet without a large task.
    packet_bytes: u32,
}

impl LinkQueue {
    /// Without a rate, packets leave at once.
    pub fn new(gbps: Option<f64>, packet_bytes: u32) -> Self {
        Self { port: Port::new(gbps), packet_bytes }
    }

    /// When a packet that arrives now has gone through.
    fn pass(&mut self, now: Nanos, packet: &Packet) -> Nanos {
        let bytes = match packet {
            Packet::Dispatch(Dispatch { payload, place: Place::Here, .. }) if payload.is_large() => {
                self.packet_bytes + u32::from(payload.len)
            }
            _ => self.packet_bytes,
        };
        self.port.pass(now, bytes).0
    }
}

/// The links that lead from one node's places to another's.
#[derive(Clone, Copy, Debug)]
struct NodeLinks {
    first: u32,
    /// How many places of the receiving node share a link.
    places_each: u32,
    /// The link's delay and lane, if there is only one link and no queue in front of it.
    open: Option<(Nanos, LaneId)>,
}

impl NodeLinks {
    /// No links: no place number is so large.
    const NONE: Self = Self { first: u32::MAX, places_each: u32::MAX, open: None };
}

/// All links, and the fault injector.
#[derive(Debug)]
pub struct Links<W> {
    each: Vec<OneWay>,
    /// By sending and receiving node; there are `nodes` of each.
    ways: Vec<NodeLinks>,
    nodes: usize,
    /// The faults of all links.
    pub injector: W,
}

impl<W> Links<W> {
    pub(crate) const fn new(injector: W) -> Self {
        Self { each: Vec::new(), ways: Vec::new(), nodes: 0, injector }
    }

    /// Makes this link for all packets from one node's places to another's.
    pub fn join(&mut self, from: Address, to: Address, link: OneWay) {
        self.join_each(from, to, u32::MAX, [link]);
    }

    /// Makes several links from one node to another; each leads to so many places of the receiving node.
    pub fn join_each(
        &mut self,
        from: Address,
        to: Address,
        places_each: u32,
        links: impl IntoIterator<Item = OneWay>,
    ) {
        let (from, to) = (usize::from(from.of_node()), usize::from(to.of_node()));
        self.make_room(from.max(to) + 1);
        let first = self.each.len();
        self.each.extend(links);
        let open = match &self.each[first..] {
            [OneWay { delay, lane, queue: None }] => Some((*delay, *lane)),
            _ => None,
        };
        self.ways[from * self.nodes + to] = NodeLinks { first: first as u32, places_each, open };
    }

    /// A packet leaves at `at`, or when its link has room. Returns its lane and when it would arrive;
    /// `None` if there is no link.
    #[inline]
    pub fn leaves<'a>(
        &mut self,
        from: Address,
        to: Address,
        at: Nanos,
        packet: impl FnOnce() -> &'a Packet,
    ) -> Option<(LaneId, Nanos)> {
        if let Some((delay, lane)) = self.way(from, to)?.open {
            return Some((lane, at + delay));
        }
        self.leaves_in_turn(from, to, at, packet())
    }

    /// As [`Self::leaves`], for links with queues and for several links. Kept apart from single open links,
    /// which are most.
    #[inline(never)]
    fn leaves_in_turn(
        &mut self,
        from: Address,
        to: Address,
        at: Nanos,
        packet: &Packet,
    ) -> Option<(LaneId, Nanos)> {
        let link = self.link(from, to)?;
        let at = link.queue.as_mut().map_or(at, |queue| queue.pass(at, packet));
        Some((link.lane, at + link.delay))
    }

    /// Another message than a packet takes so many bytes of a link's rate.
    pub fn takes(&mut self, from: Address, to: Address, at: Nanos, bytes: u32) {
        if let Some(queue) = self.link(from, to).and_then(|link| link.queue.as_mut()) {
            queue.port.pass(at, bytes);
        }
    }

    fn make_room(&mut self, nodes: usize) {
        let of = |from: usize, to: usize| {
            let is_known = from < self.nodes && to < self.nodes;
            if is_known { self.ways[from * self.nodes + to] } else { NodeLinks::NONE }
        };
        let nodes = nodes.max(self.nodes);
        self.ways = (0..nodes * nodes).map(|pair| of(pair / nodes, pair % nodes)).collect();
        self.nodes = nodes;
    }

    #[inline]
    fn way(&self, from: Address, to: Address) -> Option<&NodeLinks> {
        self.ways.get(usize::from(from.of_node()) * self.nodes + usize::from(to.of_node()))
    }

    fn link(&mut self, from: Address, to: Address) -> Option<&mut OneWay> {
        let NodeLinks { first, places_each, .. } = *self.way(from, to)?;
        let place = if places_each == u32::MAX { 0 } else { to.place() / places_each };
        self.each.get_mut(first as usize + place as usize)
    }
}

/// A port that sends one packet after the other.
#[derive(Debug)]
pub struct Port {
    ps_a_byte: f64,
    free_ps: u64,
}

impl Port {
    /// Without a rate, packets leave at once.
    pub fn new(gbps: Option<f64>) -> Self {
        Self { ps_a_byte: gbps.map_or(0.0, |gbps| 8_000.0 / gbps), free_ps: 0 }
    }

    /// A packet arrives at `now`: returns when it has gone through, and for how many picoseconds it kept
    /// the port busy.
    pub fn pass(&mut self, now: Nanos, bytes: u32) -> (Nanos, u64) {
        let busy_ps = (f64::from(bytes) * self.ps_a_byte) as u64;
        self.free_ps = self.free_ps.max(now.0 * 1_000) + busy_ps;
        (Nanos(self.free_ps.div_ceil(1_000)), busy_ps)
    }
}
