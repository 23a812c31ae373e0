//! `RoCEv2`: one-sided writes as their bytes lie on the wire, with which a switch writes into a host's
//! memory (Rain §3.2.2).
//!
//! The content of a UDP datagram to port 4791 is the *transport part*: BTH, then RETH and bytes for a
//! WRITE-Only or AETH for an ACK or NAK, padding to whole words, and the invariant checksum (iCRC).
//! [`encode`] writes it and [`View`] reads it. The iCRC also covers those fields of the IP and UDP headers
//! that do not change on the way. A [`Path`] says what the kernel of a plain socket writes there (no
//! options, DF, identification 0). [`Frame`] is the whole Ethernet frame, for captures and for data planes
//! that write their own headers.
//!
//! ```
//! use core::net::{Ipv4Addr, SocketAddr};
//! use sluice_wire::roce::{Packet, Path, Psn, Qpn, Rkey, Transport, View, Write, encode_write, write_len};
//!
//! let at = |last, port| SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), port));
//! let path = Path::new(at(1, 49_152), at(2, 4_791)).ok_or("one family")?;
//! let write = Write {
//!     transport: Transport::Uc,
//!     to: Qpn::new(17).ok_or("24 bits")?,
//!     psn: Psn::new(0),
//!     ack_request: false,
//!     address: 0x1000,
//!     rkey: Rkey(7),
//! };
//! let mut bytes = [0; write_len(5)];
//! let length = encode_write(&write, b"bytes", Some(&path), &mut bytes)?;
//! let view = View::parse(&bytes[..length])?;
//! assert!(view.icrc_holds(&path));
//! assert_eq!(view.packet()?, (Packet::Write(write), &b"bytes"[..]));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! Left out: SEND, READ and atomics, messages of more than one packet (a WRITE is one packet, Rain §6.2),
//! the other transports, congestion notifications, VLAN tags, IP options and extension headers.

mod encode;
mod fields;
mod frame;
mod icrc;
mod layout;
mod packet;
mod path;
mod view;

pub use crate::{Psn, Qpn, Rkey};
pub use encode::{
    MAX_WRITE_BYTES, encode, encode_acknowledge, encode_write, encode_write_of, encoded_len, write_len,
};
pub use fields::{NakCode, Syndrome, Transport};
pub use frame::{Frame, Link, Mac, encode_frame, frame_len};
pub(crate) use layout::ICRC_BYTES;
pub use layout::Opcode;
pub use packet::{Acknowledge, Packet, Write};
pub use path::{PORT, Path};
pub use view::View;
