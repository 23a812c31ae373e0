//! Socket addresses in the kernel's layout.

use sluice_wire::Endpoint;

const V4_BYTES: u32 = size_of::<libc::sockaddr_in>() as u32;
const V6_BYTES: u32 = size_of::<libc::sockaddr_in6>() as u32;
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/// Room for an address of either family, in the kernel's layout.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Name([u8; V6_BYTES as usize]);

/// Which addresses a socket speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    V4,
    V6,
}

impl Name {
    pub(super) const EMPTY: Self = Self([0; V6_BYTES as usize]);
    pub(super) const BYTES: u32 = V6_BYTES;

    /// Writes `to` and returns its length; `None` if a socket of this family cannot reach it.
    #[inline]
    pub(super) fn set(&mut self, to: Endpoint, family: Family) -> Option<u32> {
        let bytes = &mut self.0;
        bytes[2..4].copy_from_slice(&to.port.to_be_bytes());
        match family {
            Family::V4 if to.ip[..12] == MAPPED => {
                bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
                bytes[4..8].copy_from_slice(&to.ip[12..]);
                Some(V4_BYTES)
            }
            Family::V4 => None,
            Family::V6 => {
                bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
                bytes[8..24].copy_from_slice(&to.ip);
                Some(V6_BYTES)
            }
        }
    }

    /// The address that the kernel wrote; zero for another address family.
    #[inline]
    pub(super) fn get(&self) -> Endpoint {
        let bytes = &self.0;
        let family = i32::from(u16::from_ne_bytes([bytes[0], bytes[1]]));
        let port = u16::from_be_bytes([bytes[2], bytes[3]]);
        let mut ip = [0; 16];
        match family {
            libc::AF_INET => {
                ip[..12].copy_from_slice(&MAPPED);
                ip[12..].copy_from_slice(&bytes[4..8]);
            }
            libc::AF_INET6 => ip.copy_from_slice(&bytes[8..24]),
            _ => return Endpoint::default(),
        }
        Endpoint { ip, port }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn endpoint(text: &str) -> Endpoint {
        text.parse::<SocketAddr>().expect("an address").into()
    }

    #[test]
    fn an_address_comes_back_as_it_went_in() {
        let mut name = Name::EMPTY;
        for (text, family) in
            [("127.0.0.1:9", Family::V4), ("[::1]:77", Family::V6), ("10.1.2.3:4", Family::V6)]
        {
            assert!(name.set(endpoint(text), family).is_some());
            assert_eq!(name.get(), endpoint(text));
        }
    }

    #[test]
    fn an_ipv4_socket_reaches_no_ipv6_address() {
        let mut name = Name::EMPTY;
        assert_eq!(name.set(endpoint("[2001:db8::1]:1"), Family::V4), None);
    }
}
