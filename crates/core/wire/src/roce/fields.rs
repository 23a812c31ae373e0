//! The codes of RDMA, each a type of its own.

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
    /// All up to this PSN came. The credits, 0 … 31, count receive buffers; 31 says that they are not
    /// counted.
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
