//! Reads a machine's queueing disciplines by rtnetlink. Only `fq` sends datagrams at their stated departure
//! times.

use std::io;
use std::net::IpAddr;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::tc::{TcAttribute, TcMessage};
use rustix::net::netdevice::index_to_name;
use rustix::net::{AddressFamily, SocketType, socket};

use crate::KernelError;
use crate::rtnetlink::dump;

/// The discipline that keeps departure times.
const FAIR_QUEUE: &str = "fq";

/// Checks that packets from this local address leave through a fair queue.
///
/// # Errors
/// [`KernelError::NoFairQueue`] if they do not, with what would help; [`KernelError::Queues`] with the
/// kernel's reason if this cannot be read.
pub fn need_fair_queue(from: IpAddr) -> Result<(), KernelError> {
    let failed = |why| KernelError::Queues { why };
    let link = link_of(from).map_err(failed)?;
    let kinds = disciplines(link).map_err(failed)?;
    if kinds.iter().any(|kind| kind == FAIR_QUEUE) {
        return Ok(());
    }
    Err(KernelError::NoFairQueue { link: name_of(link).map_err(failed)?, has: kinds.join(", ") })
}

/// The link with this address.
fn link_of(ip: IpAddr) -> io::Result<u32> {
    let all = dump(RouteNetlinkMessage::GetAddress(AddressMessage::default()))?;
    let with_it = all.into_iter().find_map(|message| {
        let RouteNetlinkMessage::NewAddress(address) = message else { return None };
        let is_it = |attribute: &AddressAttribute| match attribute {
            AddressAttribute::Address(at) | AddressAttribute::Local(at) => *at == ip,
            _ => false,
        };
        address.attributes.iter().any(is_it).then_some(address.header.index)
    });
    with_it.ok_or_else(|| io::Error::other(format!("no link has the address {ip}")))
}

/// The kinds of a link's queueing disciplines.
fn disciplines(link: u32) -> io::Result<Vec<String>> {
    let mut asked = TcMessage::default();
    asked.header.index = link as i32;
    let all = dump(RouteNetlinkMessage::GetQueueDiscipline(asked))?;
    let of_link = all.into_iter().filter_map(|message| match message {
        RouteNetlinkMessage::NewQueueDiscipline(tc) if tc.header.index == link as i32 => Some(tc.attributes),
        _ => None,
    });
    let kind = |attribute| if let TcAttribute::Kind(kind) = attribute { Some(kind) } else { None };
    Ok(of_link.filter_map(|attributes| attributes.into_iter().find_map(kind)).collect())
}

fn name_of(link: u32) -> io::Result<String> {
    let any = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(index_to_name(any, link)?)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn a_link_without_a_fair_queue_is_named_with_what_it_has() {
        let said = need_fair_queue(Ipv4Addr::LOCALHOST.into()).unwrap_err().to_string();
        assert!(said.contains("link lo") && said.contains("root fq"), "{said}");
        let said = need_fair_queue(Ipv4Addr::new(192, 0, 2, 1).into()).unwrap_err().to_string();
        assert!(said.contains("no link has the address 192.0.2.1"), "{said}");
    }
}
