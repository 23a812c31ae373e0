//! One queue pair: its peer, the sequence number that it expects, and its error state.

use core::net::{IpAddr, SocketAddr};

use sluice_wire::Endpoint as Address;
use sluice_wire::roce::{Acknowledge, NakCode, Opcode, Path, Psn, Qpn, Syndrome, Transport, View};

use super::RoceRefusal;

/// When the first packet behind a gap comes, the pair sends a NAK; it repeats the NAK after so many more
/// packets. A NAK may be lost, and so may the packet that the writer sends again.
pub const NAK_EVERY: u32 = 32;

/// The largest number of payload bytes in one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mtu {
    /// 256 bytes.
    B256,
    /// 512 bytes.
    B512,
    /// 1,024 bytes.
    B1024,
    /// 2,048 bytes.
    #[default]
    B2048,
    /// 4,096 bytes.
    B4096,
}

impl Mtu {
    /// All sizes, in ascending order.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// In bytes.
    pub const fn bytes(self) -> usize {
        256 << self as usize
    }

    /// The MTU of `bytes` bytes, if it is one.
    pub fn of_bytes(bytes: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.bytes() == bytes)
    }
}

/// The settings of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairSpec {
    /// The pair's number at this end.
    pub number: Qpn,
    /// The writer's number, to which answers go.
    pub peer_number: Qpn,
    /// The writer's address; packets from other addresses are refused. `None` accepts all addresses.
    pub peer: Option<IpAddr>,
    /// Reliable or unreliable: what a lost packet does to the pair.
    pub transport: Transport,
    /// The sequence number of the first packet.
    pub first: Psn,
    /// The largest number of payload bytes in one packet.
    pub mtu: Mtu,
    /// Whether the iCRC must be right. Off for writers that compute none, such as some switches.
    pub icrc: bool,
}

/// The state of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairState {
    /// The pair accepts packets.
    Ready,
    /// The pair accepts nothing until it is connected anew.
    Error,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    spec: PairSpec,
    peer: Option<[u8; 16]>,
    state: PairState,
    expected: Psn,
    /// Messages completed.
    messages: Psn,
    /// Packets behind the missing one that were dropped since the gap appeared.
    behind: u32,
}

impl Pair {
    pub(super) fn new(spec: PairSpec) -> Self {
        let peer = spec.peer.map(|ip| Address::from(SocketAddr::new(ip, 0)).ip);
        let (expected, messages) = (spec.first, Psn::new(0));
        Self { spec, peer, state: PairState::Ready, expected, messages, behind: 0 }
    }

    pub(super) const fn number(&self) -> Qpn {
        self.spec.number
    }

    pub(super) const fn transport(&self) -> Transport {
        self.spec.transport
    }

    pub(super) const fn mtu(&self) -> Mtu {
        self.spec.mtu
    }

    pub(super) const fn state(&self) -> PairState {
        self.state
    }

    pub(super) const fn expected(&self) -> Psn {
        self.expected
    }

    pub(super) fn fail(&mut self) {
        self.state = PairState::Error;
    }

    /// Whether the packet is well-formed and for this pair, whatever it asks for. A packet that is not
    /// changes nothing.
    #[inline]
    pub(super) fn admits(&self, view: &View<'_>, path: &Path) -> Result<(), RoceRefusal> {
        if self.spec.icrc && !view.icrc_holds(path) {
            return Err(RoceRefusal::Icrc);
        }
        if self.peer.is_some_and(|peer| peer != path.from().ip) {
            return Err(RoceRefusal::Peer);
        }
        if view.transport() != self.spec.transport {
            return Err(RoceRefusal::Transport);
        }
        // This end sends no requests, so no acknowledgement can be for it.
        if view.opcode() == Opcode::Acknowledge {
            return Err(RoceRefusal::Opcode);
        }
        if self.state == PairState::Error { Err(RoceRefusal::PairInError) } else { Ok(()) }
    }

    /// Whether a reliable connection's packet is the next one. If not, the reason and the answer to send.
    #[inline]
    pub(super) fn in_order(&mut self, psn: Psn) -> Result<(), (RoceRefusal, Option<Acknowledge>)> {
        match psn.since(self.expected) {
            0 => Ok(()),
            // The packet came before, and its answer may be lost.
            ..0 => Err((RoceRefusal::Duplicate, Some(self.acknowledge()))),
            // Without the interval, each packet under way behind the gap would trigger another NAK.
            _ => {
                let asks = self.behind.is_multiple_of(NAK_EVERY);
                self.behind = self.behind.wrapping_add(1);
                Err((RoceRefusal::Gap, asks.then(|| self.refuse(self.expected, NakCode::Sequence))))
            }
        }
    }

    /// Counts an accepted packet. Returns whether it was another one than expected.
    #[inline]
    pub(super) fn advance(&mut self, psn: Psn) -> bool {
        let jumped = psn != self.expected;
        self.expected = psn.plus(1);
        self.messages = self.messages.plus(1);
        self.behind = 0;
        jumped
    }

    /// An ACK for all packets up to the last one in order.
    pub(super) fn acknowledge(&self) -> Acknowledge {
        self.answer(self.expected.plus(u32::MAX), Syndrome::ACK)
    }

    pub(super) fn refuse(&self, psn: Psn, code: NakCode) -> Acknowledge {
        self.answer(psn, Syndrome::Nak(code))
    }

    fn answer(&self, psn: Psn, syndrome: Syndrome) -> Acknowledge {
        Acknowledge { to: self.spec.peer_number, psn, syndrome, messages: self.messages }
    }
}
