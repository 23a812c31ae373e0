//! The codes of RDMA, each a type of its own.

/// How a queue pair treats loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Transport {
    /// Reliable connection: acknowledged, and repeated from the first missing packet on.
    Rc,
    /// Unreliable connection: a lost packet is not repeated, and later ones are taken.
    #[default]
    Uc,
}

/// The meaning of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// All packets up to this PSN arrived. The credits, 0 to 31, count receive buffers; 31 means that they
    /// are not counted.
    Ack {
        /// The code of the credits.
        credits: u8,
    },
    /// Not ready: try again after the time of this code, 0 to 31.
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

/// The two upper of a syndrome's seven bits say its kind, and these five lower bits its value.
const LOW_BITS: u8 = 0x1f;

/// Why the receiver of a reliable connection refuses a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum NakCode {
    /// A PSN is missing; the packet holds the expected one.
    Sequence = 0,
    /// The request's opcode, place or length is wrong.
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
