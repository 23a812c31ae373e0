//! A rack on a fabric: the hosts of its servers, clients and switch, and the other traffic of the fabric.

use serde::{Deserialize, Serialize};
use sluice_fabric::{HostId, Idle, LinkSpeed, Parcel, SwitchId, Topology};
use sluice_wire::Nanos;

/// The flows that a fabric's hosts send each other beside a rack's packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackgroundFlows {
    /// The distribution of their sizes: `web-search`, `hadoop` or `storage`.
    pub flows: String,
    /// What hosts send, as a share of their links; 0 for no flows.
    pub load: f64,
    /// How frames of all kinds get their paths, and whether hosts make flowlets: a policy for flows, such
    /// as `letflow:paced`.
    pub scheme: String,
}

impl Default for BackgroundFlows {
    fn default() -> Self {
        Self { flows: "web-search".to_owned(), load: 0.5, scheme: "ecmp".to_owned() }
    }
}

/// The hosts of a fabric at which a rack's nodes are.
#[derive(Clone, Debug)]
pub struct RackHosts {
    /// All nodes and links, with the port of the rack's switch.
    pub topology: Topology,
    pub servers: Vec<HostId>,
    pub clients: Vec<HostId>,
    /// The port of the first ToR switch behind which the pipeline is.
    pub switch: HostId,
}

impl RackHosts {
    /// The rack is below the first ToR switch: the first of its hosts are the servers. Clients are spread
    /// evenly over the hosts of the other ToR switches. An error is one line that says what to change.
    pub fn new(topology: Topology, servers: u16, clients: u16) -> Result<Self, String> {
        let tor = topology.switch_of(HostId(0)).unwrap_or(SwitchId(0));
        let (here, across): (Vec<_>, Vec<_>) =
            (0..topology.hosts).map(HostId).partition(|host| topology.switch_of(*host) == Some(tor));
        if servers == 0 || usize::from(servers) > here.len() {
            return Err(format!(
                "servers.count = {servers}: on this fabric a rack's servers are hosts of its first ToR \
                 switch, write 1 to {}",
                here.len()
            ));
        }
        if across.is_empty() {
            return Err("fabric.topology has one switch with hosts, and a rack's clients are at others: \
                        write a fat-tree, or more leaves"
                .to_owned());
        }
        let client = |client| across[client * across.len() / usize::from(clients)];
        let inside = LinkSpeed { gbps: f64::INFINITY, delay: Nanos(0) };
        let (topology, switch) = topology.and_host(tor, inside).map_err(|why| why.to_string())?;
        Ok(Self {
            topology,
            servers: here[..servers.into()].to_vec(),
            clients: (0..clients.into()).map(client).collect(),
            switch,
        })
    }

    /// A packet's time to the rack's switch in an idle fabric: from the farthest client, and from a server.
    pub(super) fn links(&self, idle: &Idle, bytes: u32) -> [Nanos; 2] {
        let to_switch =
            |from: &HostId| idle.parcel_time(&Parcel { from: *from, to: self.switch, bytes, tag: 0 });
        let farthest = |hosts: &[HostId]| hosts.iter().map(to_switch).max().unwrap_or_default();
        [farthest(&self.clients), farthest(&self.servers)]
    }
}
