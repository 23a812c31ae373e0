//! What the kernel tells by rtnetlink of links, addresses, routes and neighbours of the calling thread's
//! namespace.

use std::io;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Requests all objects of a kind.
pub(crate) fn dump(message: RouteNetlinkMessage) -> io::Result<Vec<RouteNetlinkMessage>> {
    let socket = ask(message, NLM_F_REQUEST | NLM_F_DUMP)?;
    let mut all = Vec::new();
    loop {
        let (answer, _) = socket.recv_from_full()?;
        if !read_part(&answer, &mut all)? {
            return Ok(all);
        }
    }
}

/// Requests one object.
pub(crate) fn get(message: RouteNetlinkMessage) -> io::Result<Option<RouteNetlinkMessage>> {
    let (answer, _) = ask(message, NLM_F_REQUEST)?.recv_from_full()?;
    let mut all = Vec::new();
    read_part(&answer, &mut all)?;
    Ok(all.pop())
}

/// Sends a request on a new socket.
fn ask(message: RouteNetlinkMessage, flags: u16) -> io::Result<Socket> {
    let mut socket = Socket::new(NETLINK_ROUTE)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let mut header = NetlinkHeader::default();
    header.flags = flags;
    let mut packet = NetlinkMessage::new(header, NetlinkPayload::from(message));
    packet.finalize();
    let mut bytes = vec![0; packet.buffer_len()];
    packet.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    Ok(socket)
}

/// Reads one datagram of an answer. Returns whether more follow.
fn read_part(mut answer: &[u8], all: &mut Vec<RouteNetlinkMessage>) -> io::Result<bool> {
    while !answer.is_empty() {
        let read = NetlinkMessage::<RouteNetlinkMessage>::deserialize(answer).map_err(io::Error::other)?;
        let length = (read.header.length as usize).next_multiple_of(4).max(1);
        match read.payload {
            NetlinkPayload::InnerMessage(message) => all.push(message),
            NetlinkPayload::Done(_) => return Ok(false),
            NetlinkPayload::Error(why) => return Err(why.to_io()),
            _ => {}
        }
        answer = answer.get(length..).unwrap_or_default();
    }
    Ok(true)
}
