//! Links, addresses and routes of one namespace, by rtnetlink: only what a rack needs.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

use super::ends::{LinkEnd, MTU_BYTES};

/// A netlink socket of one namespace; it stays there even if its owner moves.
pub(super) struct Netlink {
    socket: Socket,
}

impl Netlink {
    /// Opens a socket in the calling thread's namespace.
    pub(super) fn open() -> io::Result<Self> {
        let socket = Socket::new(NETLINK_ROUTE)?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Joins this namespace, with one end, to another by a veth pair. Both ends are down.
    pub(super) fn add_veth(&self, here: &LinkEnd, there: &LinkEnd, other: BorrowedFd<'_>) -> io::Result<()> {
        let mut peer = link_message(there);
        peer.attributes.push(LinkAttribute::NetNsFd(other.as_raw_fd()));
        let mut link = link_message(here);
        link.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
        ]));
        self.make(RouteNetlinkMessage::NewLink(link))
    }

    /// Brings a link up.
    pub(super) fn set_up(&self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.ask(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Adds an address to a link. The address works at once: no other link can have it, so duplicate
    /// detection is off.
    pub(super) fn add_address(&self, index: u32, ip: IpAddr, prefix_bits: u8) -> io::Result<()> {
        let mut address = AddressMessage::default();
        address.header.family = family(ip);
        address.header.prefix_len = prefix_bits;
        address.header.index = index;
        if ip.is_ipv6() {
            address.header.flags = AddressHeaderFlags::Nodad;
        }
        address.attributes = vec![AddressAttribute::Local(ip), AddressAttribute::Address(ip)];
        self.make(RouteNetlinkMessage::NewAddress(address))
    }

    /// Adds a default route to `gateway`.
    pub(super) fn add_default_route(&self, gateway: IpAddr) -> io::Result<()> {
        let mut route = RouteMessage::default();
        route.header.address_family = family(gateway);
        route.header.table = RouteHeader::RT_TABLE_MAIN;
        route.header.protocol = RouteProtocol::Static;
        route.header.scope = RouteScope::Universe;
        route.header.kind = RouteType::Unicast;
        route.attributes = vec![RouteAttribute::Gateway(gateway.into())];
        self.make(RouteNetlinkMessage::NewRoute(route))
    }

    fn make(&self, message: RouteNetlinkMessage) -> io::Result<()> {
        self.ask(message, NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends a request and waits for the kernel's acknowledgement.
    fn ask(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
        packet.finalize();
        let mut bytes = vec![0; packet.buffer_len()];
        packet.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer).map_err(io::Error::other)?;
        match answer.payload {
            NetlinkPayload::Error(answer) if answer.code.is_none() => Ok(()),
            NetlinkPayload::Error(answer) => Err(answer.to_io()),
            other => Err(io::Error::other(format!("netlink answers {other:?}"))),
        }
    }
}

fn link_message(end: &LinkEnd) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.index = end.index;
    link.attributes = vec![
        LinkAttribute::IfName(end.name.clone()),
        LinkAttribute::Address(end.mac.to_vec()),
        LinkAttribute::Mtu(MTU_BYTES),
    ];
    link
}

fn family(ip: IpAddr) -> AddressFamily {
    if ip.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
