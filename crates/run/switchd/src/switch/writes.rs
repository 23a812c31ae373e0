//! Waiting tasks on their way to the servers that may run them: one RDMA write for each copy.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use sluice_net::udp::Outbox;
use sluice_switch::{Arrival, Replica};
use sluice_wire::roce::{
    Acknowledge, NakCode, Opcode, Packet, Path, Syndrome, Transport, View, Write, encode_write_of,
};
use sluice_wire::{Endpoint, Nanos, ServerId};

/// The paths to the servers, each determined at the first write.
pub(super) struct Writes {
    local: SocketAddr,
    paths: Vec<Option<Path>>,
}

impl Writes {
    /// Writes from a socket with this address, to at most `servers` servers.
    pub(super) fn new(local: SocketAddr, servers: u16) -> Self {
        Self { local, paths: vec![None; usize::from(servers)] }
    }

    /// Sends a copy at once or at its due time. A copy to a server without a known path is lost, as on a
    /// link.
    pub(super) fn send(
        &mut self,
        replica: &Replica,
        bytes: [&[u8]; 2],
        due: Option<Nanos>,
        outbox: &mut Outbox,
    ) {
        let Some(path) = self.path_to(replica) else { return };
        let write = Write {
            transport: if replica.reliable { Transport::Rc } else { Transport::Uc },
            to: replica.qpn,
            psn: replica.psn,
            ack_request: false,
            address: replica.address,
            rkey: replica.rkey,
        };
        let fill =
            |out: &mut [u8]| encode_write_of(&write, bytes, replica.icrc.then_some(&path), out).unwrap_or(0);
        match due {
            None => outbox.send_with(replica.to, fill),
            Some(due) => outbox.send_at(due, replica.to, fill),
        }
    }

    /// Takes a server's NAK. The queue pair at the switch's end has the server's index as its number.
    pub(super) fn nak(&self, from: Endpoint, bytes: &[u8]) -> Option<Arrival> {
        let view = View::parse(bytes).ok().filter(|view| view.opcode() == Opcode::Acknowledge)?;
        let server = u16::try_from(view.destination().get()).ok()?;
        let path = self.paths.get(usize::from(server)).copied().flatten().filter(|path| path.to() == from)?;
        if !view.icrc_holds(&path.back()) {
            return None;
        }
        match view.packet().ok()?.0 {
            Packet::Acknowledge(Acknowledge { psn, syndrome: Syndrome::Nak(NakCode::Sequence), .. }) => {
                Some(Arrival::Nak { from, server: ServerId(server), expected: psn })
            }
            _ => None,
        }
    }

    fn path_to(&mut self, replica: &Replica) -> Option<Path> {
        let known = self.paths.get_mut(usize::from(replica.server.0))?;
        if known.is_none_or(|path| path.to() != replica.to) {
            *known = path(self.local, replica.to);
        }
        *known
    }
}

/// The path from a socket to a server. Its source address is the one that the kernel gives to packets to
/// that server.
fn path(local: SocketAddr, to: Endpoint) -> Option<Path> {
    let ip = if local.ip().is_unspecified() { leading_to(to.into()).ok()? } else { local.ip() };
    Path::new(SocketAddr::new(ip, local.port()), to.into())
}

/// This machine's address on the route to another machine.
fn leading_to(to: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let probe = UdpSocket::bind((any, 0))?;
    probe.connect(to)?;
    Ok(probe.local_addr()?.ip())
}
