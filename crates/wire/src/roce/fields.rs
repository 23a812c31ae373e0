//! The names and codes of RDMA, each a type of its own.

use core::fmt;

const BITS_24: u32 = 0x00ff_ffff;

/// A queue pair's number: 24 bits, chosen by the end that it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Qpn(u32);

impl Qpn {
    /// The queue pair of this number; `None` beyond 24 bits.
    pub const fn new(number: u32) -> Option<Self> {
        if number > BITS_24 { None } else { Some(Self(number)) }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    pub(super) const fn of_bytes(bytes: [u8; 3]) -> Self {
        Self(from_3(bytes))
    }

    pub(super) const fn bytes(self) -> [u8; 3] {
        to_3(self.0)
    }
}

impl fmt::Display for Qpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A packet's sequence number within a queue pair: 24 bits that wrap. Compare with [`Psn::since`] only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Psn(u32);

impl Psn {
    /// The number modulo 2²⁴.
    pub const fn new(number: u32) -> Self {
        Self(number & BITS_24)
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number `steps` later.
    #[must_use]
    pub const fn plus(self, steps: u32) -> Self {
        Self::new(self.0.wrapping_add(steps))
    }

    /// How far this is past `older`, −2²³ … 2²³ − 1; negative when it is behind.
    pub const fn since(self, older: Self) -> i32 {
        (self.0.wrapping_sub(older.0) << 8) as i32 >> 8
    }

    pub(super) const fn of_bytes(bytes: [u8; 3]) -> Self {
        Self(from_3(bytes))
    }

    pub(super) const fn bytes(self) -> [u8; 3] {
        to_3(self.0)
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// What a writer shows to be let into a region of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rkey(pub u32);

/// How a queue pair treats loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Reliable connection: acknowledged, and repeated from the first that is missing.
    Rc,
    /// Unreliable connection: what is lost is lost, and what follows is taken.
    #[default]
    Uc,
}

/// What an acknowledgement says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// All up to this PSN came. The credits, 0 … 31, count receive buffers; 31 says that they are not counted.
    Ack {
        /// The code of the credits.
        credits: u8,
    },
    /// Not ready: try again after the time of this code, 0 … 31.
    NotReady {
        /// The code of the time.
        timer: u8,
    },
    /// Refused.
    Nak(NakCode),
}

impl Syndrome {
    /// An acknowledgement that counts no credits: writes need no receive buffers.
    pub const ACK: Self = Self::Ack { credits: LOW_BITS };

    pub(super) const fn code(self) -> u8 {
        match self {
            Self::Ack { credits } => credits & LOW_BITS,
            Self::NotReady { timer } => 0x20 | timer & LOW_BITS,
            Self::Nak(code) => 0x60 | code as u8,
        }
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        let low = code & LOW_BITS;
        match code >> 5 {
            0 => Some(Self::Ack { credits: low }),
            1 => Some(Self::NotReady { timer: low }),
            3 => NakCode::ALL.get(usize::from(low)).copied().map(Self::Nak),
            _ => None,
        }
    }
}

/// A syndrome's two upper of seven bits say what it is, the five lower ones what exactly.
const LOW_BITS: u8 = 0x1f;

/// Why a reliable connection's end refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NakCode {
    /// A PSN is missing; the one that is expected stands in the packet.
    Sequence = 0,
    /// The request makes no sense: its opcode, its place or its length.
    InvalidRequest = 1,
    /// The key or the bounds forbid it.
    RemoteAccess = 2,
    /// The memory could not be written.
    RemoteOperation = 3,
    /// Of another transport.
    InvalidDatagram = 4,
}

impl NakCode {
    const ALL: [Self; 5] = [
        Self::Sequence,
        Self::InvalidRequest,
        Self::RemoteAccess,
        Self::RemoteOperation,
        Self::InvalidDatagram,
    ];
}

pub(super) const fn from_3([high, middle, low]: [u8; 3]) -> u32 {
    u32::from_be_bytes([0, high, middle, low])
}

pub(super) const fn to_3(number: u32) -> [u8; 3] {
    let [_, high, middle, low] = number.to_be_bytes();
    [high, middle, low]
}
