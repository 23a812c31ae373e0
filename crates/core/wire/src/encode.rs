//! Writes packets as bytes.

use zerocopy::FromBytes;
use zerocopy::byteorder::network_endian::U32;

use crate::layout::{HEADER_BYTES, Header, INLINE_BYTES, MAX_PAYLOAD_BYTES, trailer_bytes};
use crate::view::has_clean_padding;
use crate::{
    Answer, Attempt, Budget, BytesOf, ClientId, Counters, Dispatch, Empty, EncodeError, Endpoint, Generation,
    Kind, MeanQueue, Need, Notice, Packet, Part, Payload, Place, Probe, RackNews, Reject, RejectReason,
    Reply, ReplyStatus, Submit, Sweep, SweepOf, TaskId, TaskJob, Token, Update, WorkerId,
};

/// How many bytes [`encode`] writes for this packet.
pub const fn encoded_len(packet: &Packet) -> usize {
    match packet {
        Packet::Job(job) => HEADER_BYTES + job_bytes(job),
        Packet::Submit(submit) => {
            let task = submit.payload.len as usize;
            HEADER_BYTES + packet.body_len() + trailer_bytes(task)
        }
        _ => HEADER_BYTES + packet.body_len(),
    }
}

/// Writes a packet to the front of `out` and returns how many bytes it wrote.
///
/// `body` holds the payload's bytes if the payload is large, and is empty otherwise. The payload's handle
/// is ignored. Nothing is written on an error.
pub fn encode(packet: &Packet, body: &[u8], out: &mut [u8]) -> Result<usize, EncodeError> {
    let kind = packet.kind();
    // Each kind has code of its own, so the kind is tested once.
    match packet {
        Packet::Submit(p) => with_trailer(kind, p, body, out),
        Packet::Dispatch(p) if p.place != Place::Here => elsewhere(p, body, out),
        Packet::Dispatch(p) => with_payload(kind, &p.payload, body, out, |header| dispatch(header, p)),
        Packet::Reply(p) => with_payload(kind, &p.payload, body, out, |header| reply(header, p)),
        Packet::Part(p) => with_payload(kind, &p.payload, body, out, |header| part(header, p)),
        Packet::Token(p) => alone(kind, body, out, |header| token(header, p)),
        Packet::Probe(p) => alone(kind, body, out, |header| probe(header, p)),
        Packet::Answer(p) => alone(kind, body, out, |header| answer(header, p)),
        Packet::Reject(p) => alone(kind, body, out, |header| reject(header, p)),
        Packet::Notice(p) => alone(kind, body, out, |header| notice(header, p)),
        Packet::Need(p) => alone(kind, body, out, |header| need(header, p)),
        Packet::Sweep(p) => alone(kind, body, out, |header| sweep(header, p)),
        Packet::Empty(p) => alone(kind, body, out, |header| empty(header, p)),
        Packet::Update(p) => alone(kind, body, out, |header| update(header, p)),
        Packet::Job(job) => encode_job(job, body, out),
    }
}

/// Writes a packet with a payload; a large payload stands behind the header.
#[inline]
fn with_payload(
    kind: Kind,
    payload: &Payload,
    body: &[u8],
    out: &mut [u8],
    fill: impl FnOnce(&mut Header),
) -> Result<usize, EncodeError> {
    check_payload(payload, body)?;
    write(kind, body, 0, out, fill)
}

/// Writes a SUBMIT: a large task has a trailer.
#[inline]
fn with_trailer(kind: Kind, p: &Submit, body: &[u8], out: &mut [u8]) -> Result<usize, EncodeError> {
    check_payload(&p.payload, body)?;
    write(kind, body, trailer_bytes(body.len()), out, |header| submit(header, p))
}

#[inline]
fn check_payload(payload: &Payload, body: &[u8]) -> Result<(), EncodeError> {
    let stated = if payload.is_large() { payload.len.into() } else { 0 };
    check_body(body, stated)?;
    if stated > MAX_PAYLOAD_BYTES {
        return Err(EncodeError::PayloadLength);
    }
    if has_clean_padding(payload) { Ok(()) } else { Err(EncodeError::Padding) }
}

/// Writes a DISPATCH whose task's bytes are not in it. There must be more bytes than a header holds, and no
/// more than a packet can bring.
#[inline(never)]
fn elsewhere(p: &Dispatch, body: &[u8], out: &mut [u8]) -> Result<usize, EncodeError> {
    check_body(body, 0)?;
    if !p.payload.is_large() || usize::from(p.payload.len) > MAX_PAYLOAD_BYTES {
        return Err(EncodeError::PayloadLength);
    }
    write(Kind::Dispatch, body, 0, out, |header| dispatch(header, p))
}

/// Writes a packet without a payload.
#[inline]
fn alone(
    kind: Kind,
    body: &[u8],
    out: &mut [u8],
    fill: impl FnOnce(&mut Header),
) -> Result<usize, EncodeError> {
    check_body(body, 0)?;
    write(kind, body, 0, out, fill)
}

#[inline]
fn check_body(body: &[u8], needs: usize) -> Result<(), EncodeError> {
    let has = body.len();
    if has == needs { Ok(()) } else { Err(EncodeError::Body { needs, has }) }
}

/// Writes a header, the bytes behind it, and so many zeros.
#[inline]
fn write(
    kind: Kind,
    body: &[u8],
    zeros: usize,
    out: &mut [u8],
    fill: impl FnOnce(&mut Header),
) -> Result<usize, EncodeError> {
    let needs = HEADER_BYTES + body.len() + zeros;
    let buffer = EncodeError::Buffer { needs, has: out.len() };
    let (header, behind) = Header::mut_from_prefix(out).map_err(|_| buffer)?;
    let behind = behind.get_mut(..body.len() + zeros).ok_or(buffer)?;
    // The header is built in place. A header that is written in pieces elsewhere and then copied whole
    // stalls on its own stores.
    *header = Header::empty(kind);
    fill(header);
    let (bytes, trailer) = behind.split_at_mut(body.len());
    bytes.copy_from_slice(body);
    // Most packets have none, and to fill nothing is a call too.
    if !trailer.is_empty() {
        trailer.fill(0);
    }
    Ok(needs)
}

/// Writes a job: its tasks stand behind the header, eight bytes each. A job of one task is written as a
/// SUBMIT.
///
/// Kept apart from the other kinds, so that their code stays short.
#[inline(never)]
fn encode_job(job: &TaskJob, body: &[u8], out: &mut [u8]) -> Result<usize, EncodeError> {
    if !body.is_empty() {
        return Err(EncodeError::Body { needs: 0, has: body.len() });
    }
    if job.behind() == 0 {
        return Err(EncodeError::PayloadLength);
    }
    if job.iter().any(|task| !has_clean_padding(&task.payload)) {
        return Err(EncodeError::Padding);
    }
    let buffer = EncodeError::Buffer { needs: HEADER_BYTES + job_bytes(job), has: out.len() };
    let (header, behind) = Header::mut_from_prefix(out).map_err(|_| buffer)?;
    let behind = behind.get_mut(..job_bytes(job)).ok_or(buffer)?;
    *header = Header::empty(Kind::Job);
    submit(header, job.first());
    header.code = job.tasks();
    header.length = (behind.len() as u16).into();
    header.inline = [0; INLINE_BYTES];
    let mut lengths = 0;
    for (at, (place, task)) in behind.chunks_exact_mut(INLINE_BYTES).zip(job.iter()).enumerate() {
        place.copy_from_slice(&task.payload.inline);
        lengths |= u32::from(task.payload.len) << (4 * at);
    }
    header.words[0] = lengths.into();
    Ok(HEADER_BYTES + behind.len())
}

const fn job_bytes(job: &TaskJob) -> usize {
    job.tasks() as usize * INLINE_BYTES
}

fn submit(header: &mut Header, p: &Submit) {
    header.epoch = p.epoch.0.into();
    header.key = p.key.0.into();
    header.task_type = p.task_type.0.into();
    header.priority = p.priority;
    header.constraints = p.constraints;
    set_try(header, p.client, p.task, p.attempt);
    set_payload(header, &p.payload);
    header.words = [0, 0, 0, halves(p.budget, 0), p.age.0].map(U32::new);
}

fn dispatch(header: &mut Header, p: &Dispatch) {
    header.epoch = p.epoch.0.into();
    header.task_type = p.task_type.0.into();
    header.priority = p.priority;
    header.constraints = p.constraints;
    set_token(header, p.worker, p.generation);
    set_try(header, p.client, p.task, p.attempt);
    set_endpoint(header, p.client_at);
    set_payload(header, &p.payload);
    match p.place {
        Place::Here => {}
        Place::Ahead { slice, ticket } => {
            header.code = 1;
            header.key = ticket.into();
            header.slice = slice.0.into();
        }
        Place::AtClient => header.code = 2,
    }
    header.words = [p.seen.0, p.sent.0, p.wait_ns, halves(p.budget, p.occupancy), p.age.0].map(U32::new);
}

fn reply(header: &mut Header, p: &Reply) {
    header.code = match p.status {
        ReplyStatus::Done => 0,
        ReplyStatus::Failed => 1,
        ReplyStatus::Gone => 2,
        ReplyStatus::Old => 3,
        ReplyStatus::Late => 4,
    };
    header.epoch = p.epoch.0.into();
    header.task_type = p.task_type.0.into();
    header.worker = p.worker.0.into();
    set_try(header, p.client, p.task, p.attempt);
    set_endpoint(header, p.worker_at);
    set_payload(header, &p.payload);
    header.words = [p.worker_wait_ns, p.service_ns, p.switch_wait_ns, p.load, 0].map(U32::new);
}

fn token(header: &mut Header, p: &Token) {
    header.code = p.rank.get();
    header.epoch = p.epoch.0.into();
    header.key = p.key.0.into();
    set_token(header, p.worker, p.generation);
    header.words = [p.issued.0, 0, p.nonce.0, 0, 0].map(U32::new);
}

fn probe(header: &mut Header, p: &Probe) {
    header.epoch = p.epoch.0.into();
    header.key = p.key.0.into();
    set_token(header, p.worker, p.generation);
    header.words = [0, 0, p.nonce.0, 0, 0].map(U32::new);
}

fn answer(header: &mut Header, p: &Answer) {
    let Counters { seen, sent } = p.counters.unwrap_or_default();
    header.code = u8::from(p.counters.is_some());
    header.epoch = p.epoch.0.into();
    set_token(header, p.worker, p.generation);
    header.words = [seen.0, sent.0, p.nonce.0, 0, 0].map(U32::new);
}

fn reject(header: &mut Header, p: &Reject) {
    header.code = match p.reason {
        RejectReason::QueueFull => 0,
        RejectReason::NoRoom => 1,
        RejectReason::NoWorkers => 2,
        RejectReason::UnknownType => 3,
        RejectReason::StaleTokens => 4,
        RejectReason::Unserved => 5,
        RejectReason::Busy => 6,
        RejectReason::Late => 7,
    };
    header.epoch = p.epoch.0.into();
    header.task_type = p.task_type.0.into();
    set_try(header, p.client, p.task, p.attempt);
    header.words = [p.behind.into(), p.load.room, p.retry_after_ns, p.load.clients, 0].map(U32::new);
}

fn notice(header: &mut Header, p: &Notice) {
    header.epoch = p.epoch.0.into();
    set_try(header, p.client, p.task, p.attempt);
}

fn need(header: &mut Header, p: &Need) {
    header.code = code_of(p.of);
    header.worker = p.worker.0.into();
    set_try(header, p.client, p.task, p.attempt);
    set_endpoint(header, p.asker_at);
    header.words = [p.offset, p.length, 0, 0, 0].map(U32::new);
}

fn part(header: &mut Header, p: &Part) {
    header.code = code_of(p.of);
    header.worker = p.worker.0.into();
    set_try(header, p.client, p.task, p.attempt);
    set_payload(header, &p.payload);
    header.words = [p.offset, 0, 0, 0, 0].map(U32::new);
}

fn empty(header: &mut Header, p: &Empty) {
    header.epoch = p.epoch.0.into();
    set_token(header, p.worker, p.generation);
    header.words = [p.seen.0, p.sent.0, 0, 0, 0].map(U32::new);
}

fn sweep(header: &mut Header, p: &Sweep) {
    let of = match p.of {
        SweepOf::Tokens => 0,
        SweepOf::Tasks => 1,
    };
    header.code = of + if p.carried.is_some() { 2 } else { 0 };
    header.epoch = p.epoch.0.into();
    header.slice = p.slice.0.into();
    let (worker, generation) = p.carried.unwrap_or_default();
    set_token(header, worker, generation);
    header.words = [0, 0, 0, u32::from(p.left), 0].map(U32::new);
}

fn update(header: &mut Header, p: &Update) {
    let (code, mean) = match p.news {
        RackNews::Idle => (0, MeanQueue(0)),
        RackNews::Busy => (1, MeanQueue(0)),
        RackNews::Load(mean) => (2, mean),
    };
    header.code = code;
    header.epoch = p.epoch.0.into();
    header.slice = p.pool.0.into();
    set_token(header, p.leaf, p.generation);
    header.words = [mean.0, 0, 0, 0, 0].map(U32::new);
}

/// The word whose upper half is a budget.
const fn halves(budget: Budget, lower: u16) -> u32 {
    (budget.0 as u32) << 16 | lower as u32
}

const fn code_of(of: BytesOf) -> u8 {
    match of {
        BytesOf::Task => 0,
        BytesOf::Reply => 1,
    }
}

fn set_token(header: &mut Header, worker: WorkerId, generation: Generation) {
    header.worker = worker.0.into();
    header.generation = generation.0.into();
}

fn set_try(header: &mut Header, client: ClientId, task: TaskId, attempt: Attempt) {
    header.client = client.0.into();
    header.incarnation = task.incarnation.0.into();
    header.sequence = task.sequence.0.into();
    header.attempt = attempt.0.into();
}

fn set_endpoint(header: &mut Header, at: Endpoint) {
    header.address = at.ip;
    header.port = at.port.into();
}

fn set_payload(header: &mut Header, payload: &Payload) {
    header.length = payload.len.into();
    header.inline = payload.inline;
}
