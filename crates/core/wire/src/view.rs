//! Reads bytes as a packet.
//!
//! Each kind of packet has a function of its own that reads it, with everything that it calls inlined;
//! DISPATCH has one for each place where its bytes may be. The repetition is for speed: with one function
//! for all kinds, or with a packet that is built in pieces and then copied, reading takes twice as long.

use zerocopy::FromBytes;
use zerocopy::byteorder::network_endian::U32;

use crate::layout::{HEADER_BYTES, Header, Kind, MAX_PAYLOAD_BYTES, VERSION, trailer_bytes};
use crate::{
    Age, Answer, Attempt, Budget, BytesOf, ClientId, Counters, Dispatch, Empty, Endpoint, Epoch, Generation,
    Handle, INLINE_BYTES, Incarnation, JOB_TASKS_MAX, Key, MeanQueue, Need, Nonce, Notice, Packet,
    ParseError, Part, Payload, Place, Probe, RackNews, Rank, Reject, RejectReason, Reply, ReplyStatus,
    Serial, SliceId, SliceLoad, Submit, Sweep, SweepOf, TaskId, TaskJob, TaskType, Token, Update, WorkerId,
};

/// Reads a packet and its payload's bytes, which are empty if the payload is inline.
///
/// The payload's handle is [`Handle::NONE`]; the code that keeps the bytes sets it.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<(Packet, &[u8]), ParseError> {
    View::parse(bytes)?.whole()
}

/// Bytes with the form of a packet: a whole header of a known kind, zero in the fields that the kind does
/// not use, and as many bytes behind it as it states; in a large SUBMIT also the zeros behind these bytes.
/// [`View::packet`] checks the values.
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
        let elsewhere = kind == Kind::Dispatch && header.code != 0;
        let beside = if stated > INLINE_BYTES && !elsewhere { stated } else { 0 };
        if kind == Kind::Submit {
            return Ok(Self { header, kind, body: without_trailer(body, beside)? });
        }
        match body.len() {
            found if found < beside => Err(ParseError::Short),
            found if found > beside => Err(ParseError::Long),
            _ => Ok(Self { header, kind, body }),
        }
    }

    /// The packet's kind.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The payload's bytes when they do not fit the header; empty otherwise.
    pub const fn body(&self) -> &'a [u8] {
        self.body
    }

    /// The packet, with [`Handle::NONE`] in its payload.
    pub fn packet(&self) -> Result<Packet, ParseError> {
        self.whole().map(|(packet, _)| packet)
    }

    /// The packet with its payload's bytes.
    #[inline]
    fn whole(&self) -> Result<(Packet, &'a [u8]), ParseError> {
        let (header, body) = (self.header, self.body);
        match self.kind {
            Kind::Submit => read(header, body, |header| Ok(Packet::Submit(header.submit()?))),
            Kind::Dispatch if header.code == 0 => {
                read(header, body, |header| Ok(Packet::Dispatch(header.dispatch(header.here()?)?)))
            }
            Kind::Dispatch => {
                read(header, body, |header| Ok(Packet::Dispatch(header.dispatch(header.elsewhere()?)?)))
            }
            Kind::Reply => read(header, body, |header| Ok(Packet::Reply(header.reply()?))),
            Kind::Token => read(header, body, |header| header.token().map(Packet::Token)),
            Kind::Probe => read(header, body, |header| Ok(Packet::Probe(header.probe()))),
            Kind::Answer => read(header, body, |header| Ok(Packet::Answer(header.answer()?))),
            Kind::Reject => read(header, body, |header| Ok(Packet::Reject(header.reject()?))),
            Kind::Notice => read(header, body, |header| Ok(Packet::Notice(header.notice()))),
            Kind::Need => read(header, body, |header| Ok(Packet::Need(header.need()?))),
            Kind::Part => read(header, body, |header| Ok(Packet::Part(header.part()?))),
            Kind::Sweep => read(header, body, |header| Ok(Packet::Sweep(header.sweep()?))),
            Kind::Empty => read(header, body, |header| Ok(Packet::Empty(header.idle()))),
            Kind::Update => read(header, body, |header| header.update().map(Packet::Update)),
            // The job's bytes are in the packet, as those of a short payload.
            Kind::Job => read(header, &[], |header| header.job(body).map(Packet::Job)),
        }
    }
}

/// The bytes of a task, without the zeros that follow them in a SUBMIT.
#[inline]
fn without_trailer(behind: &[u8], task: usize) -> Result<&[u8], ParseError> {
    let (body, trailer) = behind.split_at_checked(task).ok_or(ParseError::Short)?;
    match trailer.len() {
        found if found < trailer_bytes(task) => Err(ParseError::Short),
        found if found > trailer_bytes(task) => Err(ParseError::Long),
        _ if trailer.iter().any(|byte| *byte != 0) => Err(ParseError::Padding),
        _ => Ok(body),
    }
}

/// Reads the fields of one kind, the kind that `packet` makes.
#[inline(never)]
fn read<'a>(
    header: &Header,
    body: &'a [u8],
    packet: impl FnOnce(&Header) -> Result<Packet, ParseError>,
) -> Result<(Packet, &'a [u8]), ParseError> {
    Ok((packet(header)?, body))
}

/// Reads the fields of each kind, each as a value of its type.
impl Header {
    #[inline]
    fn submit(&self) -> Result<Submit, ParseError> {
        Ok(Submit {
            epoch: self.epoch(),
            key: self.key(),
            client: self.client(),
            task: self.task(),
            attempt: self.attempt(),
            task_type: self.task_type(),
            priority: self.priority,
            constraints: self.constraints,
            age: Age(self.words[4].get()),
            budget: self.budget(),
            payload: self.payload()?,
        })
    }

    #[inline]
    fn dispatch(&self, place: Place) -> Result<Dispatch, ParseError> {
        let [seen, sent, wait_ns, halves, age] = self.words();
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
            priority: self.priority,
            constraints: self.constraints,
            wait_ns,
            occupancy: halves as u16,
            budget: self.budget(),
            age: Age(age),
            payload: self.payload()?,
            place,
        })
    }

    #[inline]
    fn reply(&self) -> Result<Reply, ParseError> {
        let [worker_wait_ns, service_ns, switch_wait_ns, load, _] = self.words();
        Ok(Reply {
            epoch: self.epoch(),
            worker: self.worker(),
            client: self.client(),
            task: self.task(),
            attempt: self.attempt(),
            task_type: self.task_type(),
            status: match self.code {
                0 => ReplyStatus::Done,
                1 => ReplyStatus::Failed,
                2 => ReplyStatus::Gone,
                3 => ReplyStatus::Old,
                4 => ReplyStatus::Late,
                _ => return Err(ParseError::Code),
            },
            switch_wait_ns,
            worker_wait_ns,
            service_ns,
            load,
            worker_at: self.endpoint(),
            payload: self.payload()?,
        })
    }

    #[inline]
    fn token(&self) -> Result<Token, ParseError> {
        let [issued, _, nonce, ..] = self.words();
        Ok(Token {
            epoch: self.epoch(),
            key: self.key(),
            worker: self.worker(),
            generation: self.generation(),
            nonce: Nonce(nonce),
            issued: Serial(issued),
            rank: Rank::new(self.code).ok_or(ParseError::Code)?,
        })
    }

    #[inline]
    fn probe(&self) -> Probe {
        let [_, _, nonce, ..] = self.words();
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
        let [seen, sent, nonce, ..] = self.words();
        let counters = match self.code {
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
        let [behind, room, retry_after_ns, clients, _] = self.words();
        let reason = RejectReason::ALL.get(usize::from(self.code)).ok_or(ParseError::Code)?;
        Ok(Reject {
            epoch: self.epoch(),
            client: self.client(),
            task: self.task(),
            attempt: self.attempt(),
            task_type: self.task_type(),
            reason: *reason,
            behind: u8::try_from(behind)
                .ok()
                .filter(|behind| usize::from(*behind) < JOB_TASKS_MAX)
                .ok_or(ParseError::Range)?,
            retry_after_ns,
            load: SliceLoad { room, clients },
        })
    }

    #[inline]
    fn notice(&self) -> Notice {
        Notice { epoch: self.epoch(), client: self.client(), task: self.task(), attempt: self.attempt() }
    }

    #[inline]
    fn need(&self) -> Result<Need, ParseError> {
        let [offset, length, ..] = self.words();
        Ok(Need {
            of: self.bytes_of()?,
            worker: self.worker(),
            asker_at: self.endpoint(),
            client: self.client(),
            task: self.task(),
            attempt: self.attempt(),
            offset,
            length,
        })
    }

    #[inline]
    fn part(&self) -> Result<Part, ParseError> {
        let [offset, ..] = self.words();
        Ok(Part {
            of: self.bytes_of()?,
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
        let [.., left, _] = self.words();
        let (of, carries) = match self.code {
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
            slice: SliceId(self.slice.get()),
            of,
            left: u16::try_from(left).map_err(|_| ParseError::Range)?,
            carried: carries.then_some(token),
        })
    }

    #[inline]
    fn idle(&self) -> Empty {
        let [seen, sent, ..] = self.words();
        Empty {
            epoch: self.epoch(),
            worker: self.worker(),
            generation: self.generation(),
            sent: Serial(sent),
            seen: Serial(seen),
        }
    }

    #[inline]
    fn update(&self) -> Result<Update, ParseError> {
        let [mean, ..] = self.words();
        let news = match self.code {
            0 | 1 if mean != 0 => return Err(ParseError::Unused),
            0 => RackNews::Idle,
            1 => RackNews::Busy,
            2 => RackNews::Load(MeanQueue(mean)),
            _ => return Err(ParseError::Code),
        };
        Ok(Update {
            epoch: self.epoch(),
            leaf: self.worker(),
            generation: self.generation(),
            pool: SliceId(self.slice.get()),
            news,
        })
    }

    fn job(&self, body: &[u8]) -> Result<TaskJob, ParseError> {
        let tasks = usize::from(self.code);
        if !(2..=JOB_TASKS_MAX).contains(&tasks) {
            return Err(ParseError::Code);
        }
        if body.len() != tasks * INLINE_BYTES {
            return Err(ParseError::PayloadLength);
        }
        let lengths = self.words[0].get();
        let length = |at: usize| (lengths >> (4 * at) & 0xf) as u16;
        if lengths >> (4 * tasks) != 0 || (0..tasks).any(|at| usize::from(length(at)) > INLINE_BYTES) {
            return Err(ParseError::Range);
        }
        let head = Submit { payload: Payload::EMPTY, ..self.submit()? };
        let (bytes, _) = body.as_chunks::<INLINE_BYTES>();
        let mut tasks = bytes.iter().enumerate().map(|(at, inline)| {
            let payload = Payload { len: length(at), inline: *inline, handle: Handle::NONE };
            let sequence = head.task.sequence.plus(at as u32);
            let clean = has_clean_padding(&payload);
            clean
                .then_some(Submit { payload, task: TaskId { sequence, ..head.task }, ..head })
                .ok_or(ParseError::Padding)
        });
        let first = tasks.next().ok_or(ParseError::PayloadLength)??;
        let mut job = TaskJob::of(first).ok_or(ParseError::PayloadLength)?;
        tasks.try_for_each(|task| if job.push(&task?) { Ok(()) } else { Err(ParseError::Range) })?;
        Ok(job)
    }

    #[inline]
    fn payload(&self) -> Result<Payload, ParseError> {
        let payload = Payload { len: self.length.get(), inline: self.inline, handle: Handle::NONE };
        if has_clean_padding(&payload) { Ok(payload) } else { Err(ParseError::Padding) }
    }

    /// Checks a DISPATCH that carries its bytes: the fields of other places are zero.
    #[inline]
    fn here(&self) -> Result<Place, ParseError> {
        if (self.key.get(), self.slice.get()) == (0, 0) { Ok(Place::Here) } else { Err(ParseError::Unused) }
    }

    /// Reads where the bytes of a DISPATCH are that does not carry them; such a payload is always large.
    fn elsewhere(&self) -> Result<Place, ParseError> {
        let (slice, ticket) = (SliceId(self.slice.get()), self.key.get());
        match self.code {
            1 | 2 if usize::from(self.length.get()) <= INLINE_BYTES => Err(ParseError::PayloadLength),
            1 => Ok(Place::Ahead { slice, ticket }),
            2 if (slice, ticket) == (SliceId(0), 0) => Ok(Place::AtClient),
            2 => Err(ParseError::Unused),
            _ => Err(ParseError::Code),
        }
    }

    fn budget(&self) -> Budget {
        Budget((self.words[3].get() >> 16) as u16)
    }

    fn bytes_of(&self) -> Result<BytesOf, ParseError> {
        match self.code {
            0 => Ok(BytesOf::Task),
            1 => Ok(BytesOf::Reply),
            _ => Err(ParseError::Code),
        }
    }

    fn epoch(&self) -> Epoch {
        Epoch(self.epoch.get())
    }

    fn key(&self) -> Key {
        Key(self.key.get())
    }

    fn client(&self) -> ClientId {
        ClientId(self.client.get())
    }

    fn worker(&self) -> WorkerId {
        WorkerId(self.worker.get())
    }

    fn generation(&self) -> Generation {
        Generation(self.generation.get())
    }

    fn task(&self) -> TaskId {
        TaskId { incarnation: Incarnation(self.incarnation.get()), sequence: Serial(self.sequence.get()) }
    }

    fn attempt(&self) -> Attempt {
        Attempt(self.attempt.get())
    }

    fn task_type(&self) -> TaskType {
        TaskType(self.task_type.get())
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint { ip: self.address, port: self.port.get() }
    }

    fn words(&self) -> [u32; 5] {
        self.words.map(U32::get)
    }
}

/// Whether the inline bytes behind a short payload's end are zero. A large payload fills the inline bytes.
pub(crate) fn has_clean_padding(payload: &Payload) -> bool {
    let behind = u64::from_be_bytes(payload.inline).checked_shl(8 * u32::from(payload.len));
    behind.unwrap_or(0) == 0
}
