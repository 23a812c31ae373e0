//! How many bytes of a task its first packet may bring.
//!
//! This packet crosses the rack as SUBMIT, as DISPATCH and, if the task waits, as a WRITE. In each form it
//! must fit into a link's MTU with all headers, and a WRITE must also fit into the RDMA MTU. The worker
//! asks for the remaining bytes (NEED).

use std::fmt;

use sluice_host::rdma::Mtu;
use sluice_wire::roce::write_len;
use sluice_wire::{SLOT_HEAD_BYTES, first_bytes_max};

/// IPv4's and UDP's headers. For IPv6, pass an MTU that is 20 bytes smaller.
const IP_UDP_BYTES: usize = 20 + 8;
/// Ring slots consist of whole words.
const WORD: usize = 8;
/// The default MTU of the links in a rack on one machine.
pub const LINK_MTU: u16 = 3_400;
/// The smallest MTU that carries every packet except a long first one: parts of a task are 1,024 bytes.
pub const LINK_MTU_MIN: u16 = 1_280;
/// The largest MTU of a link: what jumbo frames have. Hosts take packets up to it whatever they are told:
/// one that expected shorter ones would lose what its rack sends.
pub const LINK_MTU_MAX: u16 = 9_000;
/// The longest datagram on such a link, in bytes of UDP payload.
pub(crate) const DATAGRAM_BYTES_MOST: usize = LINK_MTU_MAX as usize - IP_UDP_BYTES;

/// The room for the first packet of a task, given a link's MTU and the RDMA MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstPacket {
    /// How many bytes of a task fit.
    pub bytes: usize,
    /// The longest datagram on the link, in bytes of UDP payload.
    pub datagram_max: usize,
    /// Which MTU sets the limit.
    pub limit: Limit,
}

/// What limits a first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The link, as a SUBMIT: a DISPATCH is shorter.
    Header,
    /// The link, as a WRITE.
    Write,
    /// The RDMA MTU, for a WRITE of one packet.
    RdmaMtu,
}

impl FirstPacket {
    /// The limit on a link with this MTU. `rdma` is the RDMA MTU of servers to which tasks are written
    /// ahead, if there are any.
    pub fn fitting(link_mtu: u16, rdma: Option<Mtu>) -> Self {
        let datagram_max = usize::from(link_mtu).saturating_sub(IP_UDP_BYTES);
        let own = (first_bytes_max(datagram_max), Limit::Header);
        let of_write = |whole: usize| (whole.saturating_sub(SLOT_HEAD_BYTES)) / WORD * WORD;
        let (bytes, limit) = match rdma {
            None => own,
            Some(mtu) => {
                let link = datagram_max.saturating_sub(write_len(0));
                let on_link = (of_write(link / WORD * WORD), Limit::Write);
                let in_mtu = (mtu.bytes().saturating_sub(SLOT_HEAD_BYTES), Limit::RdmaMtu);
                [own, on_link, in_mtu].into_iter().min_by_key(|(bytes, _)| *bytes).unwrap_or(own)
            }
        };
        Self { bytes, datagram_max, limit }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Header => "the link",
            Self::Write => "a WRITE on the link",
            Self::RdmaMtu => "the RDMA MTU",
        })
    }
}

#[cfg(test)]
mod tests {
    use sluice_wire::{HEADER_BYTES, trailer_bytes};

    use super::*;

    #[test]
    fn on_the_usual_links_the_rdma_mtu_sets_the_limit() {
        let first = FirstPacket::fitting(LINK_MTU, Some(Mtu::B2048));
        assert_eq!((first.bytes, first.limit), (2_036, Limit::RdmaMtu));
    }

    #[test]
    fn a_first_packet_fits_the_link_in_each_of_its_shapes() {
        for link_mtu in LINK_MTU_MIN..9_100 {
            for mtu in Mtu::ALL {
                let first = FirstPacket::fitting(link_mtu, Some(mtu));
                let room = usize::from(link_mtu) - IP_UDP_BYTES;
                let slot = (first.bytes + SLOT_HEAD_BYTES).next_multiple_of(WORD);
                let submit = HEADER_BYTES + first.bytes + trailer_bytes(first.bytes);
                assert!(submit <= room, "{link_mtu} {mtu:?}");
                assert!(write_len(first.bytes + SLOT_HEAD_BYTES) <= room, "{link_mtu} {mtu:?}");
                assert!(slot <= mtu.bytes(), "{link_mtu} {mtu:?}");
            }
        }
    }

    #[test]
    fn without_servers_only_the_link_counts() {
        let first = FirstPacket::fitting(1_500, None);
        assert_eq!((first.bytes, first.limit), (1_500 - 28 - HEADER_BYTES - 4, Limit::Header));
    }
}
