//! The network of a rack's processes: this machine's loopback, or network namespaces around a switch on
//! links.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use sluice_kernel::spaces::{HOSTS_MAX, LinkFaults, MTU_BYTES, RackSpaces, Space, mounts_of_its_own};
use sluice_netem::Rates;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::flags::Io;
use sluice_support::plan::{Plan, WorkerPlan};
use sluice_wire::roce;

use super::servers;

/// A rack's network. Its namespaces disappear with this value and all processes inside them.
pub(super) enum Network {
    /// All processes use this machine's loopback.
    Loopback {
        /// The loopback address, of the switch's address family.
        home: IpAddr,
        servers: Vec<SocketAddr>,
    },
    /// Each part has a namespace: the client first, then each server with its workers, or each worker.
    Spaces {
        /// The namespaces and the links between them.
        rack: RackSpaces,
        /// Fault injection on the links.
        faults: Vec<LinkFaults>,
    },
}

/// A part of the rack that has a network namespace.
#[derive(Clone, Copy)]
pub(super) enum RackPart<'p> {
    /// The switch, and a controller in a process of its own.
    Switch,
    /// A server, by its index in the plan.
    Server(usize),
    Worker(&'p WorkerPlan),
}

impl Network {
    /// Creates the network that a plan's rack needs. Moves the calling thread, and everything that it
    /// starts later, into the client's namespace.
    pub(super) fn of(plan: &Plan) -> Outcome<Self> {
        let io = plan.switch.io;
        if !io.is_on_links() {
            let over_v6 = plan.switch.listen.is_some_and(|at| at.is_ipv6());
            let home = if over_v6 { Ipv6Addr::LOCALHOST.into() } else { IpAddr::from(Ipv4Addr::LOCALHOST) };
            return Ok(Self::Loopback { home, servers: servers::addresses(plan.servers().len(), home)? });
        }
        check(plan)?;
        match io {
            Io::Bmv2 => super::bmv2::check(plan)?,
            _ => check_kernel(plan)?,
        }
        let mut rack = RackSpaces::new(1 + homes(plan))?;
        match io {
            Io::Bmv2 => rack.bare_links()?,
            _ => mounts_of_its_own()?,
        }
        let faults = link_faults(plan, &rack)?;
        rack.hosts()[0].space.enter()?;
        Ok(Self::Spaces { rack, faults })
    }

    /// Runs `work`, which starts a process, in the namespace of `who`.
    pub(super) fn within<T>(&self, plan: &Plan, who: RackPart<'_>, work: impl FnOnce() -> T) -> Outcome<T> {
        match self {
            Self::Loopback { .. } => Ok(work()),
            Self::Spaces { rack, .. } => Ok(space(rack, plan, who).within(work)?),
        }
    }

    /// The address of a process on the switch's side: from the plan or an earlier start, otherwise a port
    /// that the kernel chooses.
    pub(super) fn listen(&self, known: Option<SocketAddr>) -> SocketAddr {
        let port = known.map_or(0, |at| at.port());
        match self {
            Self::Loopback { home, .. } => known.unwrap_or_else(|| (*home, 0).into()),
            Self::Spaces { rack, .. } => (four(&rack.switch_addresses()), port).into(),
        }
    }

    /// The address of a worker, or of the client if `worker` is `None`.
    pub(super) fn host(&self, plan: &Plan, worker: Option<&WorkerPlan>) -> SocketAddr {
        let ip = match self {
            Self::Loopback { home, .. } => *home,
            Self::Spaces { rack, .. } => {
                let place = worker.map_or(0, |worker| 1 + home(plan, worker));
                four(&rack.hosts()[place].addresses())
            }
        };
        (ip, 0).into()
    }

    /// The address of a server.
    pub(super) fn server(&self, place: usize) -> SocketAddr {
        match self {
            Self::Loopback { servers, .. } => servers[place],
            Self::Spaces { rack, .. } => (four(&rack.hosts()[1 + place].addresses()), roce::PORT).into(),
        }
    }

    /// The switch's arguments about its links.
    pub(super) fn switch_args(&self) -> Vec<String> {
        let Self::Spaces { rack, .. } = self else { return Vec::new() };
        rack.links().flat_map(|link| ["--interface".to_owned(), link.to_owned()]).collect()
    }

    /// The argument for processes that serve gRPC: no stranger can reach a namespace.
    pub(super) fn control_args(&self) -> Option<String> {
        matches!(self, Self::Spaces { .. }).then(|| "--own-network".to_owned())
    }

    /// How many frames the links lost, duplicated and reordered; `None` without fault injection.
    pub(super) fn link_faults_done(&self) -> Option<String> {
        let Self::Spaces { faults, .. } = self else { return None };
        let counts: Vec<_> = faults.iter().filter_map(|faults| faults.counts().ok()).collect();
        let sum = |count: fn(&sluice_netem::FaultCounts) -> u64| counts.iter().map(count).sum::<u64>();
        (!counts.is_empty()).then(|| {
            let (lost, doubled, held) =
                (sum(|counts| counts.lost), sum(|counts| counts.doubled), sum(|counts| counts.held));
            format!("the links lost {lost} frames, doubled {doubled} and reordered {held}")
        })
    }
}

/// Refuses plans for which there cannot be enough namespaces, before anything is created.
fn check(plan: &Plan) -> Outcome<()> {
    let io = plan.switch.io.name();
    let no = |what: &str| Err(Failure::bad_input(format!("--io {io} {what}")));
    if !rustix::process::geteuid().is_root() {
        return no("takes root, for namespaces, links and the program: run it with sudo, or leave --io out");
    }
    if homes(plan) >= HOSTS_MAX {
        let most = HOSTS_MAX - 1;
        return no(&format!(
            "has namespaces for {most} hosts: set `servers` in [rdma], so that workers share them"
        ));
    }
    Ok(())
}

/// Refuses plans that a rack in the kernel cannot run.
fn check_kernel(plan: &Plan) -> Outcome<()> {
    let no = |what: &str| Err(Failure::bad_input(format!("--io xdp {what}")));
    if !plan.program().traits().runs_in_kernel {
        return no(
            "schedules by rain only, without ranks, classes or labels: leave the policy out, or leave \
             --io out",
        );
    }
    if plan.switch.testbed_delays {
        return no("cannot hold packets for testbed_delays: leave them out, or leave --io out");
    }
    if plan.rdma.reliable && !plan.servers().is_empty() {
        return no("writes by unreliable pairs only: leave `transport` out of [rdma], or leave --io out");
    }
    if u32::from(plan.rdma.link_mtu) > MTU_BYTES {
        return no(&format!("has links of {MTU_BYTES} B: lower `link_mtu` in [rdma], or leave --io out"));
    }
    Ok(())
}

/// How many namespaces servers and workers need.
fn homes(plan: &Plan) -> usize {
    let servers = plan.servers().len();
    if servers > 0 { servers } else { plan.workers.len() }
}

/// The index of a worker's namespace behind the client's: its server's, or its own.
fn home(plan: &Plan, worker: &WorkerPlan) -> usize {
    let server = plan.server_of(worker);
    let at_server = server.and_then(|name| plan.servers().iter().position(|known| *known == name));
    let own = || plan.workers.iter().position(|known| known.name == worker.name);
    // Every worker is in the plan.
    at_server.or_else(own).unwrap_or(0)
}

fn space<'r>(rack: &'r RackSpaces, plan: &Plan, who: RackPart<'_>) -> &'r Space {
    match who {
        RackPart::Switch => rack.switch(),
        RackPart::Server(place) => &rack.hosts()[1 + place].space,
        RackPart::Worker(worker) => &rack.hosts()[1 + home(plan, worker)].space,
    }
}

fn link_faults(plan: &Plan, rack: &RackSpaces) -> Outcome<Vec<LinkFaults>> {
    let Some(text) = &plan.faults else { return Ok(Vec::new()) };
    let rates: Rates = text.parse()?;
    if rates.delay != Rates::default().delay {
        let (io, why) =
            (plan.switch.io.name(), "links hold a frame until the next one comes: leave `delay` out");
        return Err(Failure::bad_input(format!("faults `{text}` with --io {io}: {why}")));
    }
    let attach = |host| Ok(LinkFaults::attach(host, rates, plan.seed)?);
    rack.hosts().iter().map(attach).collect()
}

fn four(addresses: &[IpAddr]) -> IpAddr {
    // Every namespace has an IPv4 address.
    addresses.iter().copied().find(IpAddr::is_ipv4).unwrap_or(Ipv4Addr::UNSPECIFIED.into())
}
