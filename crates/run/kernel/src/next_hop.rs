//! Where the kernel sends packets to a host: by which link, and to which Ethernet address.
//!
//! For a switch that has no neighbour table and learns nothing from arriving frames: what the kernel knows of
//! a host that has registered is what the switch is told.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use netlink_packet_route::link::{LinkAttribute, LinkMessage};
use netlink_packet_route::neighbour::{NeighbourAddress, NeighbourAttribute, NeighbourMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::KernelError;
use crate::rtnetlink::{dump, get};

/// How long a host may take to tell its Ethernet address.
const PATIENCE: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The port that discards what it gets (RFC 863): a datagram to it makes the kernel ask for the address.
const DISCARD: u16 = 9;

/// The way of packets to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The index of the link by which they leave.
    pub link: u32,
    /// The Ethernet address of the host, or of the router before it.
    pub mac: [u8; 6],
    /// The link's own Ethernet address.
    pub own_mac: [u8; 6],
}

impl NextHop {
    /// The way to `ip` from the calling thread's namespace.
    ///
    /// # Errors
    /// [`KernelError::NoWay`] if there is no route, or nobody tells the address.
    pub fn towards(ip: IpAddr) -> Result<Self, KernelError> {
        let failed = |why| KernelError::NoWay { to: ip, why };
        let (link, hop) = route(ip).map_err(failed)?;
        let own_mac = own_mac(link).map_err(failed)?;
        let mac = neighbour(link, hop).map_err(failed)?;
        Ok(Self { link, mac, own_mac })
    }
}

/// The link of the route to a host, and the next address on it.
fn route(ip: IpAddr) -> io::Result<(u32, IpAddr)> {
    let mut asked = RouteMessage::default();
    asked.header.address_family = family(ip);
    asked.header.destination_prefix_length = if ip.is_ipv4() { 32 } else { 128 };
    asked.attributes = vec![RouteAttribute::Destination(ip.into())];
    let Some(RouteNetlinkMessage::NewRoute(found)) = get(RouteNetlinkMessage::GetRoute(asked))? else {
        return Err(io::Error::other("the kernel tells no route"));
    };
    let (mut link, mut hop) = (None, ip);
    for attribute in found.attributes {
        match attribute {
            RouteAttribute::Oif(index) => link = Some(index),
            RouteAttribute::Gateway(RouteAddress::Inet(gateway)) => hop = gateway.into(),
            RouteAttribute::Gateway(RouteAddress::Inet6(gateway)) => hop = gateway.into(),
            _ => {}
        }
    }
    let link = link.ok_or_else(|| io::Error::other("its route leads to no link"))?;
    Ok((link, hop))
}

/// The Ethernet address of a neighbour. If the kernel does not know it, a datagram makes the kernel ask.
fn neighbour(link: u32, hop: IpAddr) -> io::Result<[u8; 6]> {
    let began = Instant::now();
    let mut asked = false;
    loop {
        if let Some(mac) = known_neighbour(link, hop)? {
            return Ok(mac);
        }
        if !asked {
            let any: IpAddr =
                if hop.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
            UdpSocket::bind((any, 0))?.send_to(&[], (hop, DISCARD))?;
            asked = true;
        }
        if began.elapsed() > PATIENCE {
            let why = format!("{hop} does not answer on its link");
            return Err(io::Error::new(io::ErrorKind::HostUnreachable, why));
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn known_neighbour(link: u32, hop: IpAddr) -> io::Result<Option<[u8; 6]>> {
    let mut asked = NeighbourMessage::default();
    asked.header.family = family(hop);
    let all = dump(RouteNetlinkMessage::GetNeighbour(asked))?;
    Ok(all.into_iter().find_map(|message| {
        let RouteNetlinkMessage::NewNeighbour(found) = message else { return None };
        let is_it = |attribute: &NeighbourAttribute| match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(at)) => IpAddr::V4(*at) == hop,
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(at)) => IpAddr::V6(*at) == hop,
            _ => false,
        };
        if found.header.ifindex != link || !found.attributes.iter().any(is_it) {
            return None;
        }
        found.attributes.iter().find_map(|attribute| match attribute {
            NeighbourAttribute::LinkLayerAddress(mac) => mac.as_slice().try_into().ok(),
            _ => None,
        })
    }))
}

/// A link's own Ethernet address.
fn own_mac(link: u32) -> io::Result<[u8; 6]> {
    let mut asked = LinkMessage::default();
    asked.header.index = link;
    let Some(RouteNetlinkMessage::NewLink(found)) = get(RouteNetlinkMessage::GetLink(asked))? else {
        return Err(io::Error::other("the kernel tells nothing of its link"));
    };
    let mac = found.attributes.into_iter().find_map(|attribute| match attribute {
        LinkAttribute::Address(mac) => <[u8; 6]>::try_from(mac).ok(),
        _ => None,
    });
    mac.ok_or_else(|| io::Error::other("its link is no Ethernet"))
}

fn family(ip: IpAddr) -> AddressFamily {
    if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
