//! One queue pair: whom it listens to, what it expects next, and whether it is in its error state.

use core::net::{IpAddr, SocketAddr};

use sluice_wire::Endpoint as Address;
use sluice_wire::roce::{Acknowledge, NakCode, Opcode, Path, Psn, Qpn, Syndrome, Transport, View};

use super::RoceRefusal;

/// A missing packet is asked for when the first one behind it comes, and again after so many more: the NAK
/// may be lost, or what the writer sends under the missing number.
pub const NAK_EVERY: u32 = 32;

/// The most bytes of one packet.
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
    /// All of them, from the smallest.
    pub const ALL: [Self; 5] = [Self::B256, Self::B512, Self::B1024, Self::B2048, Self::B4096];

    /// In bytes.
    pub const fn bytes(self) -> usize {
        256 << self as usize
    }

    /// The one of so many bytes.
    pub fn of_bytes(bytes: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.bytes() == bytes)
    }
}

/// How a pair is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairSpec {
    /// Its number at this end.
    pub number: Qpn,
    /// The writer's number, to which answers go.
    pub peer_number: Qpn,
    /// The writer's address; from others nothing is taken. `None` takes from all.
    pub peer: Option<IpAddr>,
    /// What loss does to it.
    pub transport: Transport,
    /// The sequence number of the first packet.
    pub first: Psn,
    /// The most bytes of one packet.
    pub mtu: Mtu,
    /// Whether the iCRC must hold. Off for writers that compute none, as some switches.
    pub icrc: bool,
}

/// How a pair stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairState {
    /// It takes packets.
    Ready,
    /// It takes nothing until it is connected anew.
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
    /// Packets behind the missing one that were dropped since it is missing.
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

    /// Whether the packet is whole and for this pair, whatever it asks for. One that is not changes nothing
    /// here.
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
        // This end asks for nothing, so that nothing can be acknowledged to it.
        if view.opcode() == Opcode::Acknowledge {
            return Err(RoceRefusal::Opcode);
        }
        if self.state == PairState::Error { Err(RoceRefusal::PairInError) } else { Ok(()) }
    }

    /// Whether a reliable connection's packet is the next; else why not, and what to send back.
    #[inline]
    pub(super) fn in_order(&mut self, psn: Psn) -> Result<(), (RoceRefusal, Option<Acknowledge>)> {
        match psn.since(self.expected) {
            0 => Ok(()),
            // It came before, and its answer may be lost.
            ..0 => Err((RoceRefusal::Duplicate, Some(self.acknowledge()))),
            // What follows on the way would else ask again for each packet.
            _ => {
                let asks = self.behind.is_multiple_of(NAK_EVERY);
                self.behind = self.behind.wrapping_add(1);
                Err((RoceRefusal::Gap, asks.then(|| self.refuse(self.expected, NakCode::Sequence))))
            }
        }
    }

    /// Counts a packet that is taken. Says whether it was not the one expected.
    #[inline]
    pub(super) fn advance(&mut self, psn: Psn) -> bool {
        let jumped = psn != self.expected;
        self.expected = psn.plus(1);
        self.messages = self.messages.plus(1);
        self.behind = 0;
        jumped
    }

    /// All up to the last in order came.
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
