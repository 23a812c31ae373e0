//! Bytes, read as a packet.
//!
//! What makes a packet is inlined into its reader: written in pieces and then copied whole, it would wait for its own
//! stores, and parsing would take twice as long.

use zerocopy::FromBytes;
use zerocopy::byteorder::network_endian::U32;

use crate::layout::{HEADER_BYTES, Header, Kind, MAX_PAYLOAD_BYTES, VERSION};
use crate::{
    Answer, Attempt, ClientId, Counters, Dispatch, Endpoint, Epoch, Generation, Handle, INLINE_BYTES,
    Incarnation, Key, Need, Nonce, Notice, Packet, ParseError, Part, Payload, Probe, Reject, RejectReason,
    Reply, ReplyStatus, Serial, SliceId, Submit, Sweep, SweepOf, TaskId, TaskType, Token, WorkerId,
};

/// Reads a packet and its payload's bytes, which are empty when the payload is inline.
///
/// The payload's handle is [`Handle::NONE`]: whoever keeps the bytes sets it.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<(Packet, &[u8]), ParseError> {
    let view = View::parse(bytes)?;
    Ok((view.packet()?, view.body()))
}

/// Bytes that have a packet's form: a whole header of a known kind with nothing in the fields that the kind does
/// not use, and as many bytes behind it as it states. What its values mean is checked by [`View::packet`].
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    header: &'a Header,
    kind: Kind,
    body: &'a [u8],
}

impl<'a> View<'a> {
    /// Checks the form.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let (header, body) = Header::ref_from_prefix(bytes).map_err(|_| ParseError::Short)?;
        if header.version != VERSION {
            return Err(ParseError::Version);
        }
        let kind = Kind::from_code(header.kind).ok_or(ParseError::Kind)?;
        if usize::from(header.own_length) != HEADER_BYTES {
            return Err(ParseError::HeaderLength);
        }
        if !header.unused_is_zero(kind) {
            return Err(ParseError::Unused);
        }
        let stated = usize::from(header.length.get());
        if stated > MAX_PAYLOAD_BYTES {
            return Err(ParseError::PayloadLength);
        }
        let beside = if stated > INLINE_BYTES { stated } else { 0 };
        match body.len() {
            found if found < beside => Err(ParseError::Short),
            found if found > beside => Err(ParseError::Long),
            _ => Ok(Self { header, kind, body }),
        }
    }

    /// What it is.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The payload's bytes when they do not fit the header; empty otherwise.
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The packet, with [`Handle::NONE`] in its payload.
    #[inline]
    pub fn packet(&self) -> Result<Packet, ParseError> {
        Ok(match self.kind {
            Kind::Submit => Packet::Submit(self.submit()?),
            Kind::Dispatch => Packet::Dispatch(self.dispatch()?),
            Kind::Reply => Packet::Reply(self.reply()?),
            Kind::Token => Packet::Token(self.token()),
            Kind::Probe => Packet::Probe(self.probe()),
            Kind::Answer => Packet::Answer(self.answer()?),
            Kind::Reject => Packet::Reject(self.reject()?),
            Kind::Notice => Packet::Notice(self.notice()),
            Kind::Need => Packet::Need(self.need()),
            Kind::Part => Packet::Part(self.part()?),
            Kind::Sweep => Packet::Sweep(self.sweep()?),
        })
    }

    #[inline]
    fn submit(&self) -> Result<Submit, ParseError> {
        Ok(Submit {
            epoch: self.epoch(),
            key: self.key(),
            client: self.client(),
            task: self.task(),
            attempt: self.attempt(),
            task_type: self.task_type(),
            priority: self.header.priority,
            constraints: self.header.constraints,
            payload: self.payload()?,
        })
    }

    #[inline]
    fn dispatch(&self) -> Result<Dispatch, ParseError> {
        let [seen, sent, wait_ns, occupancy] = self.words();
        Ok(Dispatch {
            epoch: self.epoch(),
            worker: self.worker(),
            generation: self.generation(),
            sent: Serial(sent),
            seen: Serial(seen),
            client: self.client(),
            client_at: self.endpoint(),
            task: self.task(),
            attempt: self.attempt(),
            task_type: self.task_type(),
            priority: self.header.priority,
            constraints: self.header.constraints,
            wait_ns,
            occupancy,
            payload: self.payload()?,
        })
    }

    #[inline]
    fn reply(&self) -> Result<Reply, ParseError> {
        let [worker_wait_ns, service_ns, switch_wait_ns, _] = self.words();
        Ok(Reply {
            epoch: self.epoch(),
            worker: self.worker(),
            client: self.client(),
            task: self.task(),
            attempt: self.attempt(),
            task_type: self.task_type(),
            status: match self.header.code {
                0 => ReplyStatus::Done,
                1 => ReplyStatus::Failed,
                2 => ReplyStatus::Gone,
                _ => return Err(ParseError::Code),
            },
            switch_wait_ns,
            worker_wait_ns,
            service_ns,
            payload: self.payload()?,
        })
    }

    #[inline]
    fn token(&self) -> Token {
        let [issued, _, nonce, _] = self.words();
        Token {
            epoch: self.epoch(),
            key: self.key(),
            worker: self.worker(),
            generation: self.generation(),
            nonce: Nonce(nonce),
            issued: Serial(issued),
        }
    }

    #[inline]
    fn probe(&self) -> Probe {
        let [_, _, nonce, _] = self.words();
        Probe {
            epoch: self.epoch(),
            key: self.key(),
            worker: self.worker(),
            generation: self.generation(),
            nonce: Nonce(nonce),
        }
    }

    #[inline]
    fn answer(&self) -> Result<Answer, ParseError> {
        let [seen, sent, nonce, _] = self.words();
        let counters = match self.header.code {
            0 if seen != 0 || sent != 0 => return Err(ParseError::Unused),
            0 => None,
            1 => Some(Counters { seen: Serial(seen), sent: Serial(sent) }),
            _ => return Err(ParseError::Code),
        };
        Ok(Answer {
            epoch: self.epoch(),
            worker: self.worker(),
            generation: self.generation(),
            nonce: Nonce(nonce),
            counters,
        })
    }

    #[inline]
    fn reject(&self) -> Result<Reject, ParseError> {
        let [_, _, retry_after_ns, _] = self.words();
        let reason = RejectReason::ALL.get(usize::from(self.header.code)).ok_or(ParseError::Code)?;
        Ok(Reject {
            epoch: self.epoch(),
            client: self.client(),
            task: self.task(),
            attempt: self.attempt(),
            task_type: self.task_type(),
            reason: *reason,
            retry_after_ns,
        })
    }

    #[inline]
    fn notice(&self) -> Notice {
        Notice { epoch: self.epoch(), client: self.client(), task: self.task(), attempt: self.attempt() }
    }

    #[inline]
    fn need(&self) -> Need {
        let [offset, length, ..] = self.words();
        Need {
            worker: self.worker(),
            worker_at: self.endpoint(),
            client: self.client(),
            task: self.task(),
            attempt: self.attempt(),
            offset,
            length,
        }
    }

    #[inline]
    fn part(&self) -> Result<Part, ParseError> {
        let [offset, ..] = self.words();
        Ok(Part {
            worker: self.worker(),
            client: self.client(),
            task: self.task(),
            attempt: self.attempt(),
            offset,
            payload: self.payload()?,
        })
    }

    #[inline]
    fn sweep(&self) -> Result<Sweep, ParseError> {
        let [.., left] = self.words();
        let (of, carries) = match self.header.code {
            0 => (SweepOf::Tokens, false),
            1 => (SweepOf::Tasks, false),
            2 => (SweepOf::Tokens, true),
            3 => (SweepOf::Tasks, true),
            _ => return Err(ParseError::Code),
        };
        let token = (self.worker(), self.generation());
        if !carries && token != (WorkerId(0), Generation(0)) {
            return Err(ParseError::Unused);
        }
        Ok(Sweep {
            epoch: self.epoch(),
            slice: SliceId(self.header.slice.get()),
            of,
            left: u16::try_from(left).map_err(|_| ParseError::Range)?,
            carried: carries.then_some(token),
        })
    }

    #[inline]
    fn payload(&self) -> Result<Payload, ParseError> {
        let payload =
            Payload { len: self.header.length.get(), inline: self.header.inline, handle: Handle::NONE };
        if has_clean_padding(&payload) { Ok(payload) } else { Err(ParseError::Padding) }
    }

    fn epoch(&self) -> Epoch {
        Epoch(self.header.epoch.get())
    }

    fn key(&self) -> Key {
        Key(self.header.key.get())
    }

    fn client(&self) -> ClientId {
        ClientId(self.header.client.get())
    }

    fn worker(&self) -> WorkerId {
        WorkerId(self.header.worker.get())
    }

    fn generation(&self) -> Generation {
        Generation(self.header.generation.get())
    }

    fn task(&self) -> TaskId {
        TaskId {
            incarnation: Incarnation(self.header.incarnation.get()),
            sequence: Serial(self.header.sequence.get()),
        }
    }

    fn attempt(&self) -> Attempt {
        Attempt(self.header.attempt.get())
    }

    fn task_type(&self) -> TaskType {
        TaskType(self.header.task_type.get())
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint { ip: self.header.address, port: self.header.port.get() }
    }

    fn words(&self) -> [u32; 4] {
        self.header.words.map(U32::get)
    }
}

/// Whether nothing stands behind a short payload's end. A large one fills the inline bytes.
pub(crate) fn has_clean_padding(payload: &Payload) -> bool {
    let behind = u64::from_be_bytes(payload.inline).checked_shl(8 * u32::from(payload.len));
    behind.unwrap_or(0) == 0
}
