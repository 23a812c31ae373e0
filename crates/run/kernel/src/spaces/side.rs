//! A namespace beside the calling thread's, joined to it by one link.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};

use super::{FIRST_LINK, LinkEnd, Space, failed, wait_until_running};
use crate::KernelError;

/// The link's name in the namespace beside.
const LINK: &str = "out";
const AT: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 1);
/// To all who are on the link, so that nobody is asked for an Ethernet address.
const TO_ALL: Ipv4Addr = Ipv4Addr::new(10, 77, 255, 255);
const PREFIX_BITS: u8 = 24;

/// A namespace with one link, whose other end is in the namespace of the thread that made it. The link
/// disappears with this value, also after kill -9.
#[derive(Debug)]
pub struct SideSpace {
    space: Space,
    link: String,
}

impl SideSpace {
    /// Makes the namespace, and the link, whose other end gets this name here.
    ///
    /// # Errors
    /// [`KernelError::Space`] with the kernel's reason, for example if the name is taken; needs root.
    pub fn new(link: &str) -> Result<Self, KernelError> {
        let (space, here) = (Space::new()?, Space::current()?);
        let inside = LinkEnd { name: LINK.to_owned(), index: FIRST_LINK, mac: [2, 0x77, 0, 1, 0, 2] };
        // The kernel chooses the index of the end that is among links of others.
        let outside = LinkEnd { name: link.to_owned(), index: 0, mac: [2, 0x77, 0, 1, 0, 1] };
        space.join(&inside, &here, &outside)?;
        let any = socket(AddressFamily::INET, SocketType::DGRAM, None);
        let index = any.and_then(|any| name_to_index(any, link));
        let index = index.map_err(|why| failed("find the link of a namespace beside")(why.into()))?;
        here.netlink()?.set_up(index).map_err(failed("bring a link up"))?;
        let netlink = space.netlink()?;
        netlink
            .set_up(FIRST_LINK)
            .and_then(|()| netlink.add_address(FIRST_LINK, AT.into(), PREFIX_BITS))
            .map_err(failed("give a link its addresses"))?;
        space.within(|| wait_until_running(LINK))??;
        wait_until_running(link)?;
        Ok(Self { space, link: link.to_owned() })
    }

    /// The name of the link's end in the namespace of the thread that made it.
    pub fn link(&self) -> &str {
        &self.link
    }

    /// A socket in the namespace, and where its datagrams must go to reach the link's other end.
    ///
    /// # Errors
    /// [`KernelError::Space`] with the kernel's reason.
    pub fn socket(&self, port: u16) -> Result<(UdpSocket, SocketAddr), KernelError> {
        let bound = self.space.within(|| UdpSocket::bind((AT, 0)))?;
        let socket = bound.and_then(|socket| socket.set_broadcast(true).map(|()| socket));
        Ok((
            socket.map_err(failed("open a socket in a namespace beside"))?,
            (IpAddr::from(TO_ALL), port).into(),
        ))
    }
}
