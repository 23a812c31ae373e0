//! Packets made of arbitrary numbers.

use sluice_wire::{
    Age, Answer, Attempt, Budget, BytesOf, ClientId, Counters, Dispatch, Empty, Endpoint, Epoch, Generation,
    Handle, INLINE_BYTES, Incarnation, JOB_TASKS_MAX, Key, Kind, MeanQueue, Need, Nonce, Notice, Packet,
    Part, Payload, Place, Probe, RackNews, Rank, Reject, RejectReason, Reply, ReplyStatus, Serial, SliceId,
    SliceLoad, Submit, Sweep, SweepOf, TaskId, TaskJob, TaskType, Token, Update, WorkerId,
};

/// A source of numbers for fields; zeros after the last.
pub(crate) struct Numbers<'a>(pub(crate) &'a [u8]);

impl Numbers<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        let count = N.min(self.0.len());
        let (now, later) = self.0.split_at(count);
        taken[..count].copy_from_slice(now);
        self.0 = later;
        taken
    }

    fn u8(&mut self) -> u8 {
        u8::from_be_bytes(self.take())
    }

    fn u16(&mut self) -> u16 {
        u16::from_be_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_be_bytes(self.take())
    }

    fn task(&mut self) -> TaskId {
        TaskId { incarnation: Incarnation(u64::from_be_bytes(self.take())), sequence: Serial(self.u32()) }
    }

    fn endpoint(&mut self) -> Endpoint {
        Endpoint { ip: self.take(), port: self.u16() }
    }
}

/// A legal packet of this kind with a payload of `length` bytes, and its body.
pub(crate) fn packet(kind: Kind, length: usize, numbers: &mut Numbers<'_>) -> (Packet, Vec<u8>) {
    let (payload, body) = payload(length, numbers);
    let packet = match kind {
        Kind::Submit => Packet::Submit(submit(payload, numbers)),
        Kind::Dispatch => Packet::Dispatch(dispatch(payload, numbers)),
        Kind::Reply => Packet::Reply(reply(payload, numbers)),
        Kind::Token => Packet::Token(token(numbers)),
        Kind::Probe => Packet::Probe(probe(numbers)),
        Kind::Answer => Packet::Answer(answer(numbers)),
        Kind::Reject => Packet::Reject(reject(numbers)),
        Kind::Notice => Packet::Notice(notice(numbers)),
        Kind::Need => Packet::Need(need(numbers)),
        Kind::Part => Packet::Part(part(payload, numbers)),
        Kind::Sweep => Packet::Sweep(sweep(numbers)),
        Kind::Empty => Packet::Empty(empty(numbers)),
        Kind::Update => Packet::Update(update(numbers)),
        Kind::Job => Packet::Job(job(payload, numbers)),
    };
    let body = if packet.body_len() > 0 { body } else { Vec::new() };
    (packet, body)
}

fn payload(length: usize, numbers: &mut Numbers<'_>) -> (Payload, Vec<u8>) {
    let mut inline: [u8; INLINE_BYTES] = numbers.take();
    inline.iter_mut().skip(length).for_each(|byte| *byte = 0);
    let body = if length > INLINE_BYTES { length } else { 0 };
    let payload = Payload { len: u16::try_from(length).unwrap(), inline, handle: Handle::NONE };
    (payload, (0..body).map(|at| at as u8).collect())
}

/// A job of at least two tasks. A payload that is too long for a job is replaced by an empty one.
fn job(payload: Payload, n: &mut Numbers<'_>) -> TaskJob {
    let short = if payload.is_large() { Payload::EMPTY } else { payload };
    let mut job = TaskJob::of(submit(short, n)).unwrap();
    for _ in 0..=usize::from(n.u8()) % (JOB_TASKS_MAX - 1) {
        let mut next = *job.first();
        next.task.sequence = next.task.sequence.plus(job.tasks().into());
        next.payload.len = u16::from(n.u8()) % 9;
        next.payload.inline = n.take();
        next.payload.inline[usize::from(next.payload.len)..].fill(0);
        assert!(job.push(&next));
    }
    job
}

fn submit(payload: Payload, n: &mut Numbers<'_>) -> Submit {
    Submit {
        epoch: Epoch(n.u32()),
        key: Key(n.u32()),
        client: ClientId(n.u16()),
        task: n.task(),
        attempt: Attempt(n.u16()),
        task_type: TaskType(n.u16()),
        priority: n.u8(),
        constraints: n.u8(),
        age: Age(n.u32()),
        budget: Budget(n.u16()),
        payload,
    }
}

fn dispatch(payload: Payload, n: &mut Numbers<'_>) -> Dispatch {
    Dispatch {
        epoch: Epoch(n.u32()),
        worker: WorkerId(n.u16()),
        generation: Generation(n.u32()),
        sent: Serial(n.u32()),
        seen: Serial(n.u32()),
        client: ClientId(n.u16()),
        client_at: n.endpoint(),
        task: n.task(),
        attempt: Attempt(n.u16()),
        task_type: TaskType(n.u16()),
        priority: n.u8(),
        constraints: n.u8(),
        wait_ns: n.u32(),
        occupancy: n.u16(),
        budget: Budget(n.u16()),
        age: Age(n.u32()),
        place: place(&payload, n),
        payload,
    }
}

fn place(payload: &Payload, n: &mut Numbers<'_>) -> Place {
    let (slice, ticket) = (SliceId(n.u16()), n.u32());
    match n.u8() % 3 {
        1 if payload.is_large() => Place::Ahead { slice, ticket },
        2 if payload.is_large() => Place::AtClient,
        _ => Place::Here,
    }
}

fn bytes_of(n: &mut Numbers<'_>) -> BytesOf {
    [BytesOf::Task, BytesOf::Reply][usize::from(n.u8()) % 2]
}

fn reply(payload: Payload, n: &mut Numbers<'_>) -> Reply {
    Reply {
        epoch: Epoch(n.u32()),
        worker: WorkerId(n.u16()),
        client: ClientId(n.u16()),
        task: n.task(),
        attempt: Attempt(n.u16()),
        task_type: TaskType(n.u16()),
        status: [
            ReplyStatus::Done,
            ReplyStatus::Failed,
            ReplyStatus::Gone,
            ReplyStatus::Old,
            ReplyStatus::Late,
        ][usize::from(n.u8()) % 5],
        switch_wait_ns: n.u32(),
        worker_wait_ns: n.u32(),
        service_ns: n.u32(),
        load: n.u32(),
        worker_at: n.endpoint(),
        payload,
    }
}

fn token(n: &mut Numbers<'_>) -> Token {
    Token {
        epoch: Epoch(n.u32()),
        key: Key(n.u32()),
        worker: WorkerId(n.u16()),
        generation: Generation(n.u32()),
        nonce: Nonce(n.u32()),
        issued: Serial(n.u32()),
        rank: Rank::behind(u32::from(n.u8() % 8)),
    }
}

fn probe(n: &mut Numbers<'_>) -> Probe {
    Probe {
        epoch: Epoch(n.u32()),
        key: Key(n.u32()),
        worker: WorkerId(n.u16()),
        generation: Generation(n.u32()),
        nonce: Nonce(n.u32()),
    }
}

fn answer(n: &mut Numbers<'_>) -> Answer {
    Answer {
        epoch: Epoch(n.u32()),
        worker: WorkerId(n.u16()),
        generation: Generation(n.u32()),
        nonce: Nonce(n.u32()),
        counters: (!n.u8().is_multiple_of(2))
            .then(|| Counters { seen: Serial(n.u32()), sent: Serial(n.u32()) }),
    }
}

fn reject(n: &mut Numbers<'_>) -> Reject {
    Reject {
        epoch: Epoch(n.u32()),
        client: ClientId(n.u16()),
        task: n.task(),
        attempt: Attempt(n.u16()),
        task_type: TaskType(n.u16()),
        reason: RejectReason::ALL[usize::from(n.u8()) % RejectReason::ALL.len()],
        behind: n.u8() % JOB_TASKS_MAX as u8,
        retry_after_ns: n.u32(),
        load: SliceLoad { room: n.u32(), clients: n.u32() },
    }
}

fn notice(n: &mut Numbers<'_>) -> Notice {
    Notice { epoch: Epoch(n.u32()), client: ClientId(n.u16()), task: n.task(), attempt: Attempt(n.u16()) }
}

fn need(n: &mut Numbers<'_>) -> Need {
    Need {
        of: bytes_of(n),
        worker: WorkerId(n.u16()),
        asker_at: n.endpoint(),
        client: ClientId(n.u16()),
        task: n.task(),
        attempt: Attempt(n.u16()),
        offset: n.u32(),
        length: n.u32(),
    }
}

fn part(payload: Payload, n: &mut Numbers<'_>) -> Part {
    Part {
        of: bytes_of(n),
        worker: WorkerId(n.u16()),
        client: ClientId(n.u16()),
        task: n.task(),
        attempt: Attempt(n.u16()),
        offset: n.u32(),
        payload,
    }
}

fn empty(n: &mut Numbers<'_>) -> Empty {
    Empty {
        epoch: Epoch(n.u32()),
        worker: WorkerId(n.u16()),
        generation: Generation(n.u32()),
        sent: Serial(n.u32()),
        seen: Serial(n.u32()),
    }
}

fn update(n: &mut Numbers<'_>) -> Update {
    let mean = MeanQueue(n.u32());
    Update {
        epoch: Epoch(n.u32()),
        leaf: WorkerId(n.u16()),
        generation: Generation(n.u32()),
        pool: SliceId(n.u16()),
        news: [RackNews::Load(mean), RackNews::Idle, RackNews::Busy][usize::from(n.u8()) % 3],
    }
}

fn sweep(n: &mut Numbers<'_>) -> Sweep {
    Sweep {
        epoch: Epoch(n.u32()),
        slice: SliceId(n.u16()),
        of: [SweepOf::Tokens, SweepOf::Tasks][usize::from(n.u8()) % 2],
        left: n.u16(),
        carried: (!n.u8().is_multiple_of(2)).then(|| (WorkerId(n.u16()), Generation(n.u32()))),
    }
}
