//! The nodes of a fabric and the links between them: a fat-tree (Al-Fares et al., SIGCOMM 2008), a
//! leaf-spine, or any listed graph in which each host has one link.

use sluice_wire::Nanos;

use crate::error::FabricError;
use crate::ids::{HostId, SwitchId};

/// The largest fat-tree: 8,192 hosts and 1,280 switches.
const FAT_TREE_MAX: u32 = 32;
/// The rate of the fastest link, in Gb/s.
const GBPS_MAX: f64 = 1_600.0;

/// The rate and delay of a link, in each direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSpeed {
    /// Rate in Gb/s; infinite if frames take no time.
    pub gbps: f64,
    /// From the end of a frame's departure to the end of its arrival.
    pub delay: Nanos,
}

impl Default for LinkSpeed {
    /// 100 Gb/s and 1 µs (HF²T §5.1).
    fn default() -> Self {
        Self { gbps: 100.0, delay: Nanos::from_micros(1) }
    }
}

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricEnd {
    Host(HostId),
    Switch(SwitchId),
}

/// A link between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FabricLink {
    /// The link's ends, in any order.
    pub ends: [FabricEnd; 2],
    /// The link's rate and delay.
    pub speed: LinkSpeed,
}

/// The nodes and links of a fabric. Hosts and switches are numbered from 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    pub hosts: u32,
    pub switches: u32,
    pub links: Vec<FabricLink>,
}

impl Topology {
    /// A fat-tree of switches with `k` ports: k³/4 hosts, k²/2 ToR switches, as many aggregation switches and
    /// k²/4 core switches, numbered in this order, pod by pod.
    pub fn fat_tree(k: u32, speed: LinkSpeed) -> Result<Self, FabricError> {
        if k == 0 || k % 2 == 1 || k > FAT_TREE_MAX {
            return Err(FabricError::FatTree { k, max: FAT_TREE_MAX });
        }
        let half = k / 2;
        let (edges, hosts) = (k * half, k * half * half);
        let link = |a, b| FabricLink { ends: [a, b], speed };
        let tor = |pod, tor| FabricEnd::Switch(SwitchId(pod * half + tor));
        let aggregation = |pod, number| FabricEnd::Switch(SwitchId(edges + pod * half + number));
        let core = |group, number| FabricEnd::Switch(SwitchId(2 * edges + group * half + number));
        let to_hosts = (0..hosts).map(|host| link(FabricEnd::Host(HostId(host)), tor(0, host / half)));
        let squares =
            || (0..k).flat_map(move |pod| (0..half * half).map(move |at| (pod, at / half, at % half)));
        let inside = squares().map(|(pod, a, b)| link(tor(pod, a), aggregation(pod, b)));
        let across = squares().map(|(pod, a, b)| link(aggregation(pod, a), core(a, b)));
        Self {
            hosts,
            switches: 2 * edges + half * half,
            links: to_hosts.chain(inside).chain(across).collect(),
        }
        .checked()
    }

    /// A leaf-spine with `hosts` per leaf, in which each leaf has a link to each spine. Leaves are numbered
    /// first.
    pub fn leaf_spine(
        leaves: u32,
        spines: u32,
        hosts_each: u32,
        to_hosts: LinkSpeed,
        to_spines: LinkSpeed,
    ) -> Result<Self, FabricError> {
        let counts = [(leaves, "leaves"), (spines, "spines"), (hosts_each, "hosts at each leaf")];
        if let Some((_, what)) = counts.into_iter().find(|(count, _)| *count == 0) {
            return Err(FabricError::LeafSpine { what });
        }
        let hosts = (0..leaves * hosts_each).map(|host| FabricLink {
            ends: [FabricEnd::Host(HostId(host)), FabricEnd::Switch(SwitchId(host / hosts_each))],
            speed: to_hosts,
        });
        let up = (0..leaves * spines).map(|at| FabricLink {
            ends: [
                FabricEnd::Switch(SwitchId(at / spines)),
                FabricEnd::Switch(SwitchId(leaves + at % spines)),
            ],
            speed: to_spines,
        });
        Self { hosts: leaves * hosts_each, switches: leaves + spines, links: hosts.chain(up).collect() }
            .checked()
    }

    /// Any graph of nodes and links.
    pub fn listed(hosts: u32, switches: u32, links: Vec<FabricLink>) -> Result<Self, FabricError> {
        Self { hosts, switches, links }.checked()
    }

    /// This topology with one more host at this switch, over a link of its own. The new host is the last.
    pub fn and_host(mut self, at: SwitchId, speed: LinkSpeed) -> Result<(Self, HostId), FabricError> {
        let host = HostId(self.hosts);
        self.hosts += 1;
        self.links.push(FabricLink { ends: [FabricEnd::Host(host), FabricEnd::Switch(at)], speed });
        Ok((self.checked()?, host))
    }

    /// The switch at the other end of a host's link, if the host exists.
    pub fn switch_of(&self, host: HostId) -> Option<SwitchId> {
        self.links.iter().find_map(|link| match link.ends {
            [FabricEnd::Host(of), FabricEnd::Switch(at)] | [FabricEnd::Switch(at), FabricEnd::Host(of)] => {
                (of == host).then_some(at)
            }
            _ => None,
        })
    }

    fn checked(self) -> Result<Self, FabricError> {
        let (hosts, switches) = (self.hosts, self.switches);
        if hosts < 2 {
            return Err(FabricError::Hosts { hosts });
        }
        let mut attached = vec![0; hosts as usize];
        for (link, FabricLink { ends, speed: LinkSpeed { gbps, .. } }) in self.links.iter().enumerate() {
            if !(*gbps > 0.0 && (*gbps <= GBPS_MAX || gbps.is_infinite())) {
                return Err(FabricError::Rate { link, gbps: *gbps, max: GBPS_MAX });
            }
            if let Some(end) = ends.iter().find(|end| !self.has(**end)) {
                let end = end.to_string();
                return Err(FabricError::FabricEnd { link, end, hosts, switches });
            }
            match ends {
                [FabricEnd::Host(host), FabricEnd::Switch(_)]
                | [FabricEnd::Switch(_), FabricEnd::Host(host)] => {
                    attached[host.index()] += 1;
                }
                [FabricEnd::Host(host), FabricEnd::Host(_)] => {
                    return Err(FabricError::Attached { host: host.0, links: 0 });
                }
                [FabricEnd::Switch(_), FabricEnd::Switch(_)] => {}
            }
        }
        match attached.iter().position(|links| *links != 1) {
            Some(host) => Err(FabricError::Attached { host: host as u32, links: attached[host] }),
            None => Ok(self),
        }
    }

    const fn has(&self, end: FabricEnd) -> bool {
        match end {
            FabricEnd::Host(HostId(host)) => host < self.hosts,
            FabricEnd::Switch(SwitchId(switch)) => switch < self.switches,
        }
    }
}

impl core::fmt::Display for FabricEnd {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Host(host) => write!(f, "host {}", host.0),
            Self::Switch(switch) => write!(f, "switch {}", switch.0),
        }
    }
}
