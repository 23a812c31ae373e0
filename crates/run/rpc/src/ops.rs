//! Table operations and their answers, converted from and to messages.

use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{
    ClientRow, Feed, RingCounts, RingRow, ServerRow, ServerState, Shape, SliceRow, SliceState, SpineRow,
    TableAnswer, TableOp, WorkerRow, WorkerState,
};
use sluice_wire::{
    ClientId, Epoch, Generation, Incarnation, Key, Nanos, Psn, Qpn, Rkey, Serial, ServerId, SliceId, Sweep,
    SweepOf, TaskType, Term, WorkerId,
};

use super::fields::{Malformed, classes, endpoint, jobs, number, present, quota_max};
use super::v1;
use super::v1::table_answer::Answer;
use super::v1::table_op::Op;

impl From<TableOp> for v1::TableOp {
    fn from(op: TableOp) -> Self {
        let nothing = v1::Nothing {};
        let op = match op {
            TableOp::ReadShape => Op::ReadShape(nothing),
            TableOp::SetType(task_type, slice) => Op::SetType(v1::SetTypeRow {
                task_type: task_type.0.into(),
                slice: slice.map(|s| s.0.into()),
            }),
            TableOp::SetNeeds(task_type, needs) => {
                Op::SetNeeds(v1::SetTypeNeeds { task_type: task_type.0.into(), labels: needs.0.into() })
            }
            TableOp::ReadType(task_type) => Op::ReadType(task_type.0.into()),
            TableOp::SetSlice(slice, row) => {
                Op::SetSlice(v1::SetSliceRow { slice: slice.0.into(), row: Some(row.into()) })
            }
            TableOp::ReadSlice(slice) => Op::ReadSlice(slice.0.into()),
            TableOp::SetWorker(worker, row) => {
                Op::SetWorker(v1::SetWorkerRow { worker: worker.0.into(), row: row.map(Into::into) })
            }
            TableOp::ReadWorker(worker) => Op::ReadWorker(worker.0.into()),
            TableOp::RaiseGeneration(worker, generation) => {
                Op::RaiseGeneration(v1::WorkerNumber { worker: worker.0.into(), number: generation.0 })
            }
            TableOp::ResetCounters(worker, start) => {
                Op::ResetCounters(v1::WorkerNumber { worker: worker.0.into(), number: start.0 })
            }
            TableOp::SetClient(client, row) => Op::SetClient(v1::SetClientRow {
                client: client.0.into(),
                row: row.map(|(row, _)| row.into()),
                floor: row.map_or(0, |(_, floor)| floor.0),
            }),
            TableOp::ReadClient(client) => Op::ReadClient(client.0.into()),
            TableOp::SetServer(server, row) => Op::SetServer(v1::SetServerRow {
                server: server.0.into(),
                row: row.map(|(row, _)| row.into()),
                psn: row.map_or(0, |(_, psn)| psn.get()),
            }),
            TableOp::ReadServer(server) => Op::ReadServer(server.0.into()),
            TableOp::SetRing(slice, server, row) => Op::SetRing(v1::SetRingRow {
                slice: slice.0.into(),
                server: server.0.into(),
                row: row.map(Into::into),
            }),
            TableOp::ReadRing(slice, server) => {
                Op::ReadRing(v1::RingName { slice: slice.0.into(), server: server.0.into() })
            }
            TableOp::SetCopies(slice, copies) => {
                Op::SetCopies(v1::SetSliceCopies { slice: slice.0.into(), copies: copies.into() })
            }
            TableOp::SetSpine(slice, row) => {
                Op::SetSpine(v1::SetSpineRow { slice: slice.0.into(), row: Some(row.into()) })
            }
            TableOp::Inject(sweep) => Op::Inject(sweep.into()),
            TableOp::Drain => Op::Drain(nothing),
            TableOp::Claim(term) => Op::Claim(term.0),
        };
        Self { op: Some(op) }
    }
}

impl TryFrom<v1::TableOp> for TableOp {
    type Error = Malformed;

    fn try_from(message: v1::TableOp) -> Result<Self, Malformed> {
        Ok(match present("op", message.op)? {
            Op::ReadShape(_) => Self::ReadShape,
            Op::SetType(m) => Self::SetType(
                TaskType(number("set_type.task_type", m.task_type)?),
                m.slice.map(|s| number("set_type.slice", s).map(SliceId)).transpose()?,
            ),
            Op::SetNeeds(m) => Self::SetNeeds(
                TaskType(number("set_needs.task_type", m.task_type)?),
                Labels(number("set_needs.labels", m.labels)?),
            ),
            Op::ReadType(task_type) => Self::ReadType(TaskType(number("read_type", task_type)?)),
            Op::SetSlice(m) => Self::SetSlice(
                SliceId(number("set_slice.slice", m.slice)?),
                present("set_slice.row", m.row)?.try_into()?,
            ),
            Op::ReadSlice(slice) => Self::ReadSlice(SliceId(number("read_slice", slice)?)),
            Op::SetWorker(m) => Self::SetWorker(
                WorkerId(number("set_worker.worker", m.worker)?),
                m.row.map(TryInto::try_into).transpose()?,
            ),
            Op::ReadWorker(worker) => Self::ReadWorker(WorkerId(number("read_worker", worker)?)),
            Op::RaiseGeneration(m) => Self::RaiseGeneration(
                WorkerId(number("raise_generation.worker", m.worker)?),
                Generation(m.number),
            ),
            Op::ResetCounters(m) => {
                Self::ResetCounters(WorkerId(number("reset_counters.worker", m.worker)?), Serial(m.number))
            }
            Op::SetClient(m) => Self::SetClient(
                ClientId(number("set_client.client", m.client)?),
                m.row.map(|row| Ok((row.try_into()?, Serial(m.floor)))).transpose()?,
            ),
            Op::ReadClient(client) => Self::ReadClient(ClientId(number("read_client", client)?)),
            Op::SetServer(m) => Self::SetServer(
                ServerId(number("set_server.server", m.server)?),
                m.row.map(|row| Ok((row.try_into()?, Psn::new(m.psn)))).transpose()?,
            ),
            Op::ReadServer(server) => Self::ReadServer(ServerId(number("read_server", server)?)),
            Op::SetRing(m) => Self::SetRing(
                SliceId(number("set_ring.slice", m.slice)?),
                ServerId(number("set_ring.server", m.server)?),
                m.row.map(Into::into),
            ),
            Op::ReadRing(m) => Self::ReadRing(
                SliceId(number("read_ring.slice", m.slice)?),
                ServerId(number("read_ring.server", m.server)?),
            ),
            Op::SetCopies(m) => Self::SetCopies(
                SliceId(number("set_copies.slice", m.slice)?),
                number("set_copies.copies", m.copies)?,
            ),
            Op::SetSpine(m) => Self::SetSpine(
                SliceId(number("set_spine.slice", m.slice)?),
                present("set_spine.row", m.row)?.try_into()?,
            ),
            Op::Inject(sweep) => Self::Inject(sweep.try_into()?),
            Op::Drain(_) => Self::Drain,
            Op::Claim(term) => Self::Claim(Term(term)),
        })
    }
}

impl From<TableAnswer> for v1::TableAnswer {
    fn from(answer: TableAnswer) -> Self {
        let answer = match answer {
            TableAnswer::Done => Answer::Done(v1::Nothing {}),
            TableAnswer::OutOfRange => Answer::OutOfRange(v1::Nothing {}),
            TableAnswer::Superseded(term) => Answer::Superseded(term.0),
            TableAnswer::Shape(shape) => Answer::Shape(shape.into()),
            TableAnswer::Type(slice) => Answer::Type(v1::TypeState { slice: slice.map(|s| s.0.into()) }),
            TableAnswer::Slice(state) => Answer::Slice(v1::SliceState {
                row: Some(state.row.into()),
                balance: state.balance,
                tokens_in: state.tokens_in.0.map(|count| count.0).to_vec(),
                tokens_out: state.tokens_out.0.map(|count| count.0).to_vec(),
                tasks_in: state.tasks_in.0.map(|count| count.0).to_vec(),
                tasks_out: state.tasks_out.0.map(|count| count.0).to_vec(),
                measured_limit: state.measured_limit,
                refused_busy: state.refused_busy,
                refused_late: state.refused_late,
            }),
            TableAnswer::Worker(state) => Answer::Worker(v1::WorkerState {
                row: state.row.map(Into::into),
                generation_out: state.generation_out.0,
                seen: state.seen.0,
                sent: state.sent.0,
            }),
            TableAnswer::Server(state) => {
                Answer::Server(v1::ServerState { row: state.row.map(Into::into), psn: state.next.get() })
            }
            TableAnswer::Ring(row) => Answer::Ring(v1::RingState { row: row.map(Into::into) }),
            TableAnswer::Client(row) => Answer::Client(v1::ClientState { row: row.map(Into::into) }),
        };
        Self { answer: Some(answer) }
    }
}

impl TryFrom<v1::TableAnswer> for TableAnswer {
    type Error = Malformed;

    fn try_from(message: v1::TableAnswer) -> Result<Self, Malformed> {
        Ok(match present("answer", message.answer)? {
            Answer::Done(_) => Self::Done,
            Answer::OutOfRange(_) => Self::OutOfRange,
            Answer::Superseded(term) => Self::Superseded(Term(term)),
            Answer::Shape(shape) => Self::Shape(shape.try_into()?),
            Answer::Type(state) => {
                Self::Type(state.slice.map(|s| number("type.slice", s).map(SliceId)).transpose()?)
            }
            Answer::Slice(state) => Self::Slice(SliceState {
                row: present("slice.row", state.row)?.try_into()?,
                balance: state.balance,
                tokens_in: ring_counts("slice.tokens_in", &state.tokens_in)?,
                tokens_out: ring_counts("slice.tokens_out", &state.tokens_out)?,
                tasks_in: ring_counts("slice.tasks_in", &state.tasks_in)?,
                tasks_out: ring_counts("slice.tasks_out", &state.tasks_out)?,
                measured_limit: state.measured_limit,
                refused_busy: state.refused_busy,
                refused_late: state.refused_late,
            }),
            Answer::Worker(state) => Self::Worker(WorkerState {
                row: state.row.map(TryInto::try_into).transpose()?,
                generation_out: Generation(state.generation_out),
                seen: Serial(state.seen),
                sent: Serial(state.sent),
            }),
            Answer::Server(state) => Self::Server(ServerState {
                row: state.row.map(TryInto::try_into).transpose()?,
                next: Psn::new(state.psn),
            }),
            Answer::Ring(state) => Self::Ring(state.row.map(Into::into)),
            Answer::Client(state) => Self::Client(state.row.map(TryInto::try_into).transpose()?),
        })
    }
}

impl From<Shape> for v1::Shape {
    fn from(shape: Shape) -> Self {
        Self {
            epoch: shape.epoch.0,
            term: shape.term.0,
            workers: shape.workers.into(),
            clients: shape.clients.into(),
            slices: shape.slices.into(),
            types: shape.types.into(),
            tasks_per_slice: shape.tasks_per_slice,
            tokens_per_slice: shape.tokens_per_slice,
            replay_cells: shape.replay_cells,
            feed: Some(shape.feed.into()),
            servers: shape.servers.into(),
            classes: shape.classes.into(),
            kinds: shape.kinds.into(),
            jobs: shape.jobs.into(),
            plain_writes: shape.plain_writes,
            quota_max: shape.quota_max.into(),
        }
    }
}

impl TryFrom<v1::Shape> for Shape {
    type Error = Malformed;

    fn try_from(message: v1::Shape) -> Result<Self, Malformed> {
        Ok(Self {
            epoch: Epoch(message.epoch),
            term: Term(message.term),
            workers: number("shape.workers", message.workers)?,
            clients: number("shape.clients", message.clients)?,
            slices: number("shape.slices", message.slices)?,
            types: number("shape.types", message.types)?,
            tasks_per_slice: message.tasks_per_slice,
            tokens_per_slice: message.tokens_per_slice,
            replay_cells: message.replay_cells,
            feed: message.feed.map_or_else(Feed::default, Feed::from),
            servers: number("shape.servers", message.servers)?,
            classes: classes("shape.classes", message.classes)?,
            kinds: classes("shape.kinds", message.kinds)?,
            jobs: jobs("shape.jobs", message.jobs)?,
            plain_writes: message.plain_writes,
            quota_max: quota_max("shape.quota_max", message.quota_max)?,
        })
    }
}

/// One count for each of the sender's rings.
fn ring_counts(field: &'static str, counts: &[u32]) -> Result<RingCounts, Malformed> {
    let mut all = RingCounts::default();
    if counts.len() > all.0.len() {
        return Err(Malformed::new(
            field,
            format!("has {} counts, {} are the most", counts.len(), all.0.len()),
        ));
    }
    all.0.iter_mut().zip(counts).for_each(|(to, count)| *to = Serial(*count));
    Ok(all)
}

impl From<Feed> for v1::Feed {
    fn from(feed: Feed) -> Self {
        use v1::feed::Kind;
        let kind = match feed {
            Feed::Tokens { ranked: false } => Kind::Tokens(v1::Nothing {}),
            Feed::Tokens { ranked: true } => Kind::RankedTokens(v1::Nothing {}),
            Feed::Polls { every } => Kind::PollsEveryNs(every.0),
            Feed::Pushed { reports } => Kind::PushedReports(reports),
        };
        Self { kind: Some(kind) }
    }
}

impl From<v1::Feed> for Feed {
    fn from(message: v1::Feed) -> Self {
        use v1::feed::Kind;
        match message.kind {
            None | Some(Kind::Tokens(_)) => Self::TOKENS,
            Some(Kind::RankedTokens(_)) => Self::Tokens { ranked: true },
            Some(Kind::PollsEveryNs(every)) => Self::Polls { every: Nanos(every) },
            Some(Kind::PushedReports(reports)) => Self::Pushed { reports },
        }
    }
}

impl From<SliceRow> for v1::SliceRow {
    fn from(row: SliceRow) -> Self {
        let SliceRow { open, limit, retry_after, serving, closed, target, expected } = row;
        let bits = |sets: &[Labels]| sets.iter().map(|set| set.0.into()).collect();
        let serving = (serving != Serving::default()).then(|| v1::Serving {
            needs: bits(serving.classes()),
            has: bits(serving.kinds()),
            wished: serving.is_wished(),
        });
        Self {
            open,
            limit,
            retry_after_ns: retry_after.0,
            serving,
            closed: closed.into(),
            target_ns: target.0,
            expected,
        }
    }
}

impl TryFrom<v1::SliceRow> for SliceRow {
    type Error = Malformed;

    fn try_from(message: v1::SliceRow) -> Result<Self, Malformed> {
        Ok(Self {
            open: message.open,
            limit: message.limit,
            retry_after: Nanos(message.retry_after_ns),
            serving: message.serving.map_or_else(|| Ok(Serving::default()), serving)?,
            closed: number("row.closed", message.closed)?,
            target: Nanos(message.target_ns),
            expected: message.expected,
        })
    }
}

fn serving(message: v1::Serving) -> Result<Serving, Malformed> {
    let sets = |field, sets: Vec<u32>| -> Result<Vec<Labels>, Malformed> {
        sets.into_iter().map(|set| number(field, set).map(Labels)).collect()
    };
    let (needs, has) = (sets("serving.needs", message.needs)?, sets("serving.has", message.has)?);
    let wrong = |why| Malformed::new("serving", format!("cannot be: {why:?}"));
    let serving = Serving::of(&needs, &has).map_err(wrong)?;
    Ok(if message.wished { serving.wished() } else { serving })
}

impl From<WorkerRow> for v1::WorkerRow {
    fn from(row: WorkerRow) -> Self {
        Self {
            key: row.key.0,
            at: row.at.to_string(),
            slice: row.slice.0.into(),
            generation: row.generation.0,
            open: row.open,
            life: row.life,
            kind: row.kind.into(),
            workers: row.workers.into(),
        }
    }
}

impl TryFrom<v1::WorkerRow> for WorkerRow {
    type Error = Malformed;

    fn try_from(message: v1::WorkerRow) -> Result<Self, Malformed> {
        Ok(Self {
            key: Key(message.key),
            at: endpoint("row.at", &message.at)?,
            slice: SliceId(number("row.slice", message.slice)?),
            generation: Generation(message.generation),
            open: message.open,
            life: message.life,
            kind: number("row.kind", message.kind)?,
            workers: number("row.workers", message.workers)?,
        })
    }
}

impl From<SpineRow> for v1::SpineRow {
    fn from(row: SpineRow) -> Self {
        Self {
            at: row.at.to_string(),
            epoch: row.epoch.0,
            leaf: row.leaf.0.into(),
            generation: row.generation.0,
            start: row.start.0,
        }
    }
}

impl TryFrom<v1::SpineRow> for SpineRow {
    type Error = Malformed;

    fn try_from(message: v1::SpineRow) -> Result<Self, Malformed> {
        Ok(Self {
            at: endpoint("row.at", &message.at)?,
            epoch: Epoch(message.epoch),
            leaf: WorkerId(number("row.leaf", message.leaf)?),
            generation: Generation(message.generation),
            start: Serial(message.start),
        })
    }
}

impl From<ClientRow> for v1::ClientRow {
    fn from(row: ClientRow) -> Self {
        Self { key: row.key.0, at: row.at.to_string(), incarnation: row.incarnation.0 }
    }
}

impl TryFrom<v1::ClientRow> for ClientRow {
    type Error = Malformed;

    fn try_from(message: v1::ClientRow) -> Result<Self, Malformed> {
        Ok(Self {
            key: Key(message.key),
            at: endpoint("row.at", &message.at)?,
            incarnation: Incarnation(message.incarnation),
        })
    }
}

impl From<ServerRow> for v1::ServerRow {
    fn from(row: ServerRow) -> Self {
        Self { at: row.at.to_string(), qpn: row.qpn.0, reliable: row.reliable, icrc: row.icrc }
    }
}

impl TryFrom<v1::ServerRow> for ServerRow {
    type Error = Malformed;

    fn try_from(message: v1::ServerRow) -> Result<Self, Malformed> {
        let v1::ServerRow { at, qpn, reliable, icrc } = message;
        Ok(Self { at: endpoint("row.at", &at)?, qpn: Qpn(qpn), reliable, icrc })
    }
}

impl From<RingRow> for v1::RingRow {
    fn from(row: RingRow) -> Self {
        Self { rkey: row.rkey.0, address: row.address, slots: row.slots, slot_bytes: row.slot_bytes }
    }
}

impl From<v1::RingRow> for RingRow {
    fn from(message: v1::RingRow) -> Self {
        let v1::RingRow { rkey, address, slots, slot_bytes } = message;
        Self { rkey: Rkey(rkey), address, slots, slot_bytes }
    }
}

impl From<Sweep> for v1::Sweep {
    fn from(sweep: Sweep) -> Self {
        let of = match sweep.of {
            SweepOf::Tokens => v1::SweepOf::Tokens,
            SweepOf::Tasks => v1::SweepOf::Tasks,
        };
        Self { epoch: sweep.epoch.0, slice: sweep.slice.0.into(), of: of.into(), left: sweep.left.into() }
    }
}

impl TryFrom<v1::Sweep> for Sweep {
    type Error = Malformed;

    fn try_from(message: v1::Sweep) -> Result<Self, Malformed> {
        let of = match message.of() {
            v1::SweepOf::Tokens => SweepOf::Tokens,
            v1::SweepOf::Tasks => SweepOf::Tasks,
            v1::SweepOf::Unspecified => return Err(Malformed::new("inject.of", "is missing")),
        };
        Ok(Self {
            epoch: Epoch(message.epoch),
            slice: SliceId(number("inject.slice", message.slice)?),
            of,
            left: number("inject.left", message.left)?,
            // Only the switch itself lets a SWEEP carry a token.
            carried: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> sluice_wire::Endpoint {
        std::net::SocketAddr::from(([10, 0, 0, 1], 9)).into()
    }

    const RING: RingRow =
        RingRow { rkey: Rkey(u32::MAX), address: u64::MAX, slots: 4_096, slot_bytes: 2_060 };

    fn server() -> ServerRow {
        ServerRow { at: at(), qpn: Qpn(0xff_ffff), reliable: true, icrc: true }
    }

    #[test]
    fn every_operation_survives_the_way() {
        let worker = WorkerRow {
            key: Key(u32::MAX),
            at: at(),
            slice: SliceId(3),
            generation: Generation(9),
            open: true,
            life: u64::MAX,
            kind: 3,
            workers: u16::MAX,
        };
        let client = ClientRow { key: Key(1), at: at(), incarnation: Incarnation(u64::MAX) };
        let (epoch, leaf, generation) = (Epoch(u32::MAX), WorkerId(u16::MAX), Generation(8));
        let spine = SpineRow { at: at(), epoch, leaf, generation, start: Serial(4) };
        let sets = [0, 1, 3].map(Labels);
        let serving = Serving::of(&sets, &sets).expect("all are served").wished();
        let slice = SliceRow {
            open: true,
            limit: 7,
            retry_after: Nanos(5),
            serving,
            closed: 5,
            target: Nanos(u64::MAX),
            expected: u32::MAX,
        };
        let sweep =
            Sweep { epoch: Epoch(2), slice: SliceId(1), of: SweepOf::Tasks, left: u16::MAX, carried: None };
        for op in [
            TableOp::ReadShape,
            TableOp::SetType(TaskType(1), Some(SliceId(0))),
            TableOp::SetType(TaskType(1), None),
            TableOp::ReadType(TaskType(u16::MAX)),
            TableOp::SetSlice(SliceId(1), slice),
            TableOp::SetNeeds(TaskType(9), Labels(255)),
            TableOp::ReadSlice(SliceId(2)),
            TableOp::SetWorker(WorkerId(3), Some(worker)),
            TableOp::SetWorker(WorkerId(3), None),
            TableOp::ReadWorker(WorkerId(4)),
            TableOp::RaiseGeneration(WorkerId(5), Generation(6)),
            TableOp::ResetCounters(WorkerId(7), Serial(u32::MAX - 7)),
            TableOp::SetClient(ClientId(8), Some((client, Serial(9)))),
            TableOp::SetClient(ClientId(8), None),
            TableOp::ReadClient(ClientId(9)),
            TableOp::SetServer(ServerId(1), Some((server(), Psn::new(u32::MAX)))),
            TableOp::SetServer(ServerId(1), None),
            TableOp::ReadServer(ServerId(2)),
            TableOp::SetRing(SliceId(1), ServerId(2), Some(RING)),
            TableOp::SetRing(SliceId(1), ServerId(2), None),
            TableOp::ReadRing(SliceId(3), ServerId(4)),
            TableOp::SetCopies(SliceId(5), 6),
            TableOp::SetSpine(SliceId(6), spine),
            TableOp::Claim(Term(u32::MAX)),
            TableOp::Inject(sweep),
            TableOp::Inject(Sweep { of: SweepOf::Tokens, ..sweep }),
            TableOp::Drain,
        ] {
            assert_eq!(TableOp::try_from(v1::TableOp::from(op)), Ok(op));
        }
    }

    #[test]
    fn every_answer_survives_the_way() {
        let shape = Shape {
            epoch: Epoch(1),
            term: Term(11),
            workers: 2,
            clients: 3,
            slices: 4,
            types: 5,
            tasks_per_slice: 6,
            tokens_per_slice: 7,
            replay_cells: 8,
            feed: Feed::Polls { every: Nanos(9) },
            servers: 10,
            classes: 4,
            kinds: 3,
            jobs: 5,
            plain_writes: true,
            quota_max: 9,
        };
        let slice = SliceState {
            balance: -5,
            tokens_in: RingCounts([1, u32::MAX, 3, 4].map(Serial)),
            tokens_out: RingCounts::of_one(Serial(1)),
            tasks_in: RingCounts([7, 8, 9, 10].map(Serial)),
            tasks_out: RingCounts::of_one(Serial(2)),
            measured_limit: Some(0),
            refused_busy: u64::MAX,
            refused_late: 11,
            ..SliceState::default()
        };
        let worker =
            WorkerState { row: None, generation_out: Generation(3), seen: Serial(4), sent: Serial(5) };
        for answer in [
            TableAnswer::Done,
            TableAnswer::OutOfRange,
            TableAnswer::Superseded(Term(12)),
            TableAnswer::Shape(shape),
            TableAnswer::Type(None),
            TableAnswer::Type(Some(SliceId(0))),
            TableAnswer::Slice(slice),
            TableAnswer::Worker(worker),
            TableAnswer::Worker(WorkerState {
                row: Some(WorkerRow { at: at(), ..WorkerRow::default() }),
                ..worker
            }),
            TableAnswer::Server(ServerState { row: Some(server()), next: Psn::new(7) }),
            TableAnswer::Server(ServerState { row: None, next: Psn::new(0) }),
            TableAnswer::Ring(Some(RING)),
            TableAnswer::Ring(None),
            TableAnswer::Client(None),
            TableAnswer::Client(Some(ClientRow { at: at(), ..ClientRow::default() })),
        ] {
            assert_eq!(TableAnswer::try_from(v1::TableAnswer::from(answer)), Ok(answer));
        }
    }

    #[test]
    fn an_operation_with_a_missing_or_oversized_field_is_malformed() {
        let slice_without_row = Op::SetSlice(v1::SetSliceRow { slice: 0, row: None });
        let sweep_of_nothing = Op::Inject(v1::Sweep::default());
        for op in [None, Some(slice_without_row), Some(sweep_of_nothing), Some(Op::ReadWorker(70_000))] {
            assert!(TableOp::try_from(v1::TableOp { op }).is_err());
        }
    }
}
