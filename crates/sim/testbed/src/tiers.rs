//! Racks below spines on a fabric (Horus over HF²T's fabric): their switches, and the hosts of their
//! workers and clients.

use sluice_fabric::{HostId, Idle, LinkSpeed, Parcel, SwitchId, Topology};
use sluice_wire::Nanos;

/// A leaf-spine with so many hosts per leaf.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeafSpine {
    pub(super) leaves: u32,
    pub(super) spines: u32,
    pub(super) hosts_each: u32,
}

/// The workers of each rack, the number of spines above the racks, and the clients.
#[derive(Clone, Debug)]
pub(super) struct Tiers {
    pub(super) racks: Vec<u32>,
    pub(super) spines: u32,
    pub(super) clients: u32,
}

/// The hosts of a leaf-spine at which a datacenter's nodes are.
#[derive(Clone, Debug)]
pub struct TierHosts {
    /// All nodes and links, with a port for each scheduling switch.
    pub topology: Topology,
    /// The ports of the racks' leaves.
    pub leaves: Vec<HostId>,
    /// The ports of the spines.
    pub spines: Vec<HostId>,
    pub workers: Vec<HostId>,
    pub clients: Vec<HostId>,
}

impl TierHosts {
    /// Racks are below the first leaves, with their workers spread evenly over a leaf's hosts; the spines
    /// are the fabric's first spines. Clients are spread evenly over the hosts of the other leaves. An
    /// error is one line that says what to change.
    pub(super) fn new(topology: Topology, shape: LeafSpine, tiers: &Tiers) -> Result<Self, String> {
        let LeafSpine { leaves, spines, hosts_each } = shape;
        let racks = tiers.racks.len() as u32;
        if racks >= leaves {
            return Err(format!(
                "fabric.topology has {leaves} leaves: {racks} racks take one each, their clients another, so \
                 write {} or more",
                racks + 1
            ));
        }
        if tiers.spines > spines {
            return Err(format!("racks.spines = {}: the fabric has {spines}", tiers.spines));
        }
        let spread = |of: u32, over: u32, first: u32| (0..of).map(move |at| HostId(first + at * over / of));
        let below = |(leaf, size): (u32, u32)| spread(size, hosts_each, leaf * hosts_each);
        let across = (leaves - racks) * hosts_each;
        let mut hosts = Self {
            workers: (0..).zip(tiers.racks.iter().copied()).flat_map(below).collect(),
            clients: spread(tiers.clients, across, racks * hosts_each).collect(),
            leaves: Vec::new(),
            spines: Vec::new(),
            topology,
        };
        for leaf in 0..racks {
            let port = hosts.port(leaf)?;
            hosts.leaves.push(port);
        }
        for spine in 0..tiers.spines {
            let port = hosts.port(leaves + spine)?;
            hosts.spines.push(port);
        }
        Ok(hosts)
    }

    /// A packet's time in an idle fabric: to a spine from the farthest client, between spine and leaf, and
    /// to a leaf from its workers.
    pub(super) fn links(&self, idle: &Idle, bytes: u32) -> [Nanos; 3] {
        let took = |from: HostId, to: HostId| idle.parcel_time(&Parcel { from, to, bytes, tag: 0 });
        let (leaf, spine) = (self.leaves[0], self.spines[0]);
        let farthest = self.clients.iter().map(|client| took(*client, spine)).max();
        [farthest.unwrap_or_default(), took(spine, leaf), took(self.workers[0], leaf)]
    }

    /// Adds a port of a switch's own, with an unlimited rate.
    fn port(&mut self, switch: u32) -> Result<HostId, String> {
        let inside = LinkSpeed { gbps: f64::INFINITY, delay: Nanos(0) };
        let topology = self.topology.clone().and_host(SwitchId(switch), inside);
        let (topology, host) = topology.map_err(|why| why.to_string())?;
        self.topology = topology;
        Ok(host)
    }
}
