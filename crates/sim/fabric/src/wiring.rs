//! A topology's ports, and for each switch and host the ports of all shortest paths.

use std::collections::VecDeque;

use crate::error::FabricError;
use crate::ids::{HostId, PortId, SwitchId};
use crate::topology::{FabricEnd, LinkSpeed, Topology};

/// One end of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortSpec {
    /// The node that the port belongs to.
    pub(crate) owner: FabricEnd,
    /// The link's other end.
    pub(crate) peer: PortId,
    pub(crate) speed: LinkSpeed,
}

/// The ports, and the ports of shortest paths.
#[derive(Clone, Debug)]
pub(crate) struct Wiring {
    pub(crate) hosts: u32,
    pub(crate) switches: u32,
    /// Hosts' ports first, then those of one switch after the other.
    pub(crate) sockets: Vec<PortSpec>,
    /// The first port of each switch, and one past the last port.
    firsts: Vec<u32>,
    /// For each host the port of its switch that leads to it.
    down: Vec<PortId>,
    /// For each host its switch, as an index among the edge switches.
    edge: Vec<u32>,
    /// The edge switches: those with hosts.
    edges: Vec<SwitchId>,
    /// For each switch and edge switch the range of its ports in `choices`.
    ways: Vec<(u32, u32)>,
    choices: Vec<PortId>,
}

impl Wiring {
    /// The wiring of a topology; an error if some host cannot reach another.
    pub(crate) fn new(topology: &Topology) -> Result<Self, FabricError> {
        let (sockets, firsts) = sockets(topology);
        let mut plan = Self {
            hosts: topology.hosts,
            switches: topology.switches,
            down: (0..topology.hosts as usize).map(|host| sockets[host].peer).collect(),
            sockets,
            firsts,
            edge: Vec::new(),
            edges: Vec::new(),
            ways: Vec::new(),
            choices: Vec::new(),
        };
        plan.find_edges();
        plan.find_ways()?;
        Ok(plan)
    }

    /// The ports over which the shortest paths from a switch to a host continue.
    #[inline]
    pub(crate) fn ways(&self, from: SwitchId, to: HostId) -> &[PortId] {
        let edge = self.edge[to.index()] as usize;
        if self.edges[edge] == from {
            return &self.down[to.index()..=to.index()];
        }
        let (first, count) = self.ways[from.index() * self.edges.len() + edge];
        &self.choices[first as usize..(first + count) as usize]
    }

    /// A host's switch, as an index among the edge switches.
    #[inline]
    pub(crate) fn edge_of(&self, host: HostId) -> usize {
        self.edge[host.index()] as usize
    }

    /// How many edge switches there are.
    pub(crate) const fn edges(&self) -> usize {
        self.edges.len()
    }

    /// Whether a switch is the one that this host is attached to.
    #[inline]
    pub(crate) fn is_edge_of(&self, switch: SwitchId, host: HostId) -> bool {
        self.edges[self.edge_of(host)] == switch
    }

    /// How many paths lead from one edge switch to another, if each switch on the way has as many choices
    /// as the first of them.
    pub(crate) fn paths(&self, from: usize, to: usize) -> usize {
        let (mut switch, mut paths) = (self.edges[from], 1);
        while switch != self.edges[to] {
            let (first, count) = self.ways[switch.index() * self.edges.len() + to];
            paths *= count as usize;
            let port = self.choices[first as usize];
            switch = self.switch_beyond(port.index()).expect("ways lead from switch to switch");
        }
        paths
    }

    pub(crate) fn ports_of(&self, switch: SwitchId) -> core::ops::Range<usize> {
        self.firsts[switch.index()] as usize..self.firsts[switch.index() + 1] as usize
    }

    /// The switch at the other end of a port's link, if one is there.
    pub(crate) fn switch_beyond(&self, port: usize) -> Option<SwitchId> {
        match self.sockets[self.sockets[port].peer.index()].owner {
            FabricEnd::Switch(switch) => Some(switch),
            FabricEnd::Host(_) => None,
        }
    }

    /// The share of the busiest link that is used when all hosts send to each other at their links' rates,
    /// and each switch spreads frames evenly.
    pub(crate) fn busiest_link_share(&self) -> f64 {
        let mut loads = vec![0.0; self.sockets.len()];
        let others = f64::from(self.hosts - 1);
        for edge in 0..self.edges.len() {
            let at_edge = |host: &usize| self.edge[*host] as usize == edge;
            let receivers = (0..self.hosts as usize).filter(at_edge).count() as f64;
            let mut passing = vec![0.0; self.switches as usize];
            for host in (0..self.hosts as usize).filter(|host| !at_edge(host)) {
                let from = self.edges[self.edge[host] as usize];
                passing[from.index()] += self.sockets[host].speed.gbps * receivers / others;
            }
            let distances = self.distances(self.edges[edge]);
            let mut order: Vec<u32> = (0..self.switches).filter(|at| distances[*at as usize] > 0).collect();
            order.sort_by_key(|switch| std::cmp::Reverse(distances[*switch as usize]));
            for switch in order {
                let (first, count) = self.ways[switch as usize * self.edges.len() + edge];
                let part = passing[switch as usize] / f64::from(count);
                for port in &self.choices[first as usize..(first + count) as usize] {
                    loads[port.index()] += part;
                    let next = self.switch_beyond(port.index()).expect("ways lead from switch to switch");
                    passing[next.index()] += part;
                }
            }
        }
        let shares = loads.iter().zip(&self.sockets).map(|(load, socket)| load / socket.speed.gbps);
        shares.fold(0.0, f64::max)
    }

    fn find_edges(&mut self) {
        let mut places = vec![None; self.switches as usize];
        for host in 0..self.hosts as usize {
            let switch = self.switch_beyond(host).expect("a host's link leads to a switch");
            let place = *places[switch.index()].get_or_insert_with(|| {
                self.edges.push(switch);
                self.edges.len() as u32 - 1
            });
            self.edge.push(place);
        }
    }

    fn find_ways(&mut self) -> Result<(), FabricError> {
        let distances: Vec<Vec<u32>> = self.edges.iter().map(|edge| self.distances(*edge)).collect();
        for switch in 0..self.switches {
            for (edge, distances) in distances.iter().enumerate() {
                let first = self.choices.len() as u32;
                let here = distances[switch as usize];
                for port in self.ports_of(SwitchId(switch)) {
                    let nearer = self.switch_beyond(port).is_some_and(|next| distances[next.index()] < here);
                    if nearer {
                        self.choices.push(PortId(port as u32));
                    }
                }
                if here == u32::MAX {
                    let host =
                        self.edge.iter().position(|of| *of as usize == edge).unwrap_or_default() as u32;
                    return Err(FabricError::Apart { from: switch, host });
                }
                self.ways.push((first, self.choices.len() as u32 - first));
            }
        }
        Ok(())
    }

    /// How many links each switch is from this one.
    fn distances(&self, from: SwitchId) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.switches as usize];
        distances[from.index()] = 0;
        let mut reached = VecDeque::from([from]);
        while let Some(switch) = reached.pop_front() {
            for next in self.ports_of(switch).filter_map(|port| self.switch_beyond(port)) {
                if distances[next.index()] == u32::MAX {
                    distances[next.index()] = distances[switch.index()] + 1;
                    reached.push_back(next);
                }
            }
        }
        distances
    }
}

/// The ports, hosts' first, and the first port of each switch.
fn sockets(topology: &Topology) -> (Vec<PortSpec>, Vec<u32>) {
    let mut counts = vec![0; topology.switches as usize];
    let switch_of = |end: FabricEnd| match end {
        FabricEnd::Switch(switch) => Some(switch.index()),
        FabricEnd::Host(_) => None,
    };
    for switch in topology.links.iter().flat_map(|link| link.ends).filter_map(switch_of) {
        counts[switch] += 1;
    }
    let mut firsts = vec![topology.hosts];
    for count in &counts {
        firsts.push(firsts[firsts.len() - 1] + count);
    }
    let mut next = firsts.clone();
    let mut place = |end: FabricEnd| match end {
        FabricEnd::Host(host) => PortId(host.0),
        FabricEnd::Switch(switch) => {
            next[switch.index()] += 1;
            PortId(next[switch.index()] - 1)
        }
    };
    let placed: Vec<_> = topology.links.iter().map(|link| (*link, link.ends.map(&mut place))).collect();
    let filler = PortSpec { owner: FabricEnd::Host(HostId(0)), peer: PortId(0), speed: LinkSpeed::default() };
    let mut sockets = vec![filler; firsts[firsts.len() - 1] as usize];
    for (link, [a, b]) in placed {
        sockets[a.index()] = PortSpec { owner: link.ends[0], peer: b, speed: link.speed };
        sockets[b.index()] = PortSpec { owner: link.ends[1], peer: a, speed: link.speed };
    }
    (sockets, firsts)
}
