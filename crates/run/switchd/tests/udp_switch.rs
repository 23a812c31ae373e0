//! The switch's thread with real packets. The hosts are plain sockets, and the tables are written directly.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sluice_host::rdma::{Mtu, PairSpec, RoceRefusal};
use sluice_net::NetError;
use sluice_net::rdma::{Receiver, SharedMemory};
use sluice_net::udp::{SocketOptions, Wait};
use sluice_netem::FaultPlan;
use sluice_switch::{Config, Refusal};
use sluice_switchd::SwitchdError;
use sluice_switchd::switch::{Count, Delays, SwitchConfig, SwitchDriver, SwitchHandle};
use sluice_wire::roce::{Psn, Qpn, Rkey, Transport};
use sluice_wire::tables::{
    ClientRow, RingCounts, RingRow, ServerRow, SliceRow, SliceState, TableAnswer, TableOp, WorkerRow,
};
use sluice_wire::{
    Age, Attempt, Budget, ClientId, Dispatch, Epoch, Generation, HEADER_BYTES, Handle, Incarnation, Key,
    Nanos, Nonce, Packet, ParseError, Payload, Place, Reject, RejectReason, SLOT_HEAD_BYTES, Serial,
    ServerId, SliceId, Submit, Sweep, SweepOf, TaskId, TaskType, Term, Token, WorkerId, check_large, encode,
    first_bytes_max, large_descriptor, parse, read_slot,
};

/// A time limit for events that usually come within a moment: a busy machine may stand still for seconds.
const PATIENCE: Duration = Duration::from_mins(2);
const EPOCH: Epoch = Epoch(77);
const WORKER_KEY: Key = Key(0x1111);
const CLIENT_KEY: Key = Key(0x2222);
const GENERATION: Generation = Generation(5);
const TYPE: TaskType = TaskType(1);
const SLICE: SliceId = SliceId(0);

fn size() -> Config {
    Config {
        epoch: EPOCH,
        term: Term(0),
        workers: 4,
        clients: 4,
        slices: 2,
        types: 8,
        tasks_per_slice: 64,
        tokens_per_slice: 64,
        replay_cells: 64,
        servers: 0,
        counters_start: Serial(0),
        polls_ahead: 0,
        seed: 0,
    }
}

/// A running switch with one slice, one worker and one client.
struct Rack {
    switch: SwitchHandle,
    thread: Option<JoinHandle<Result<(), NetError>>>,
    worker: UdpSocket,
    client: UdpSocket,
}

impl Rack {
    fn start() -> Self {
        Self::with(&SwitchConfig::new(size()))
    }

    fn with(config: &SwitchConfig) -> Self {
        let driver = SwitchDriver::new(config).expect("the loopback has free ports");
        let switch = driver.handle();
        let thread = Some(driver.spawn().expect("threads are left"));
        let rack = Self { switch, thread, worker: host(), client: host() };
        let slice =
            SliceRow { open: true, limit: 32, retry_after: Nanos::from_millis(1), ..SliceRow::default() };
        let answers = rack.ops(vec![
            TableOp::SetSlice(SLICE, slice),
            TableOp::SetType(TYPE, Some(SLICE)),
            TableOp::RaiseGeneration(WorkerId(0), GENERATION),
            TableOp::SetWorker(WorkerId(0), Some(rack.worker_row())),
            TableOp::SetClient(ClientId(0), Some((rack.client_row(), Serial(0)))),
        ]);
        assert!(answers.iter().all(|answer| *answer == TableAnswer::Done), "{answers:?}");
        rack
    }

    fn worker_row(&self) -> WorkerRow {
        WorkerRow {
            key: WORKER_KEY,
            at: address(&self.worker).into(),
            slice: SLICE,
            generation: GENERATION,
            open: true,
            life: 1,
            ..WorkerRow::default()
        }
    }

    fn client_row(&self) -> ClientRow {
        ClientRow { key: CLIENT_KEY, at: address(&self.client).into(), incarnation: Incarnation(9) }
    }

    fn ops(&self, ops: Vec<TableOp>) -> Vec<TableAnswer> {
        self.switch.tables().call(ops).expect("the switch runs")
    }

    fn slice(&self) -> SliceState {
        match self.ops(vec![TableOp::ReadSlice(SLICE)])[..] {
            [TableAnswer::Slice(state)] => state,
            ref other => panic!("{other:?}"),
        }
    }

    fn count(&self, count: Count) -> u64 {
        self.switch.counters().of(count)
    }

    fn send(&self, from: &UdpSocket, packet: &Packet, body: &[u8]) {
        let mut bytes = [0; 2_048];
        let length = encode(packet, body, &mut bytes).expect("a legal packet");
        self.raw(from, &bytes[..length]);
    }

    fn raw(&self, from: &UdpSocket, bytes: &[u8]) {
        from.send_to(bytes, self.switch.local()).expect("sent");
    }

    fn submit(&self, sequence: u32, bytes: &[u8]) {
        let (submit, body) = submit(sequence, bytes);
        self.send(&self.client, &Packet::Submit(submit), body);
    }

    fn token(&self, issued: u32) {
        self.send(&self.worker, &Packet::Token(token(issued)), &[]);
    }

    /// Waits until the switch has received this many datagrams, and then handles one batch more.
    fn settle(&self, received: u64) {
        eventually(|| self.count(Count::Received) >= received);
        self.slice();
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        self.switch.stop();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("no panic").expect("no error");
            }
        }
    }
}

fn host() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("free ports");
    socket.set_read_timeout(Some(PATIENCE)).expect("a legal timeout");
    socket
}

fn address(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().expect("it is bound")
}

fn eventually(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < PATIENCE, "it did not come about");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn submit(sequence: u32, bytes: &[u8]) -> (Submit, &[u8]) {
    let mut payload = Payload { len: bytes.len() as u16, inline: [0; 8], handle: Handle::NONE };
    let body = if payload.is_large() {
        payload.inline = large_descriptor(bytes);
        bytes
    } else {
        payload.inline[..bytes.len()].copy_from_slice(bytes);
        &[]
    };
    let task = TaskId { incarnation: Incarnation(9), sequence: Serial(sequence) };
    let submit = Submit {
        epoch: EPOCH,
        key: CLIENT_KEY,
        client: ClientId(0),
        task,
        attempt: Attempt(1),
        task_type: TYPE,
        priority: 0,
        constraints: 0,
        age: Age::default(),
        budget: Budget::NONE,
        payload,
    };
    (submit, body)
}

fn token(issued: u32) -> Token {
    Token {
        epoch: EPOCH,
        key: WORKER_KEY,
        worker: WorkerId(0),
        generation: GENERATION,
        nonce: Nonce(issued),
        issued: Serial(issued),
        ..Token::default()
    }
}

fn next(at: &UdpSocket) -> (Packet, Vec<u8>) {
    let mut bytes = [0; 2_048];
    let length = at.recv(&mut bytes).expect("a packet comes");
    let (packet, body) = parse(&bytes[..length]).expect("the switch sends legal packets");
    (packet, body.to_vec())
}

fn dispatched(at: &UdpSocket) -> (Dispatch, Vec<u8>) {
    match next(at) {
        (Packet::Dispatch(dispatch), body) => (dispatch, body),
        (other, _) => panic!("{other:?}"),
    }
}

fn rejected(at: &UdpSocket) -> Reject {
    match next(at) {
        (Packet::Reject(reject), _) => reject,
        (other, _) => panic!("{other:?}"),
    }
}

fn large(seed: u8, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i as u8).wrapping_mul(31).wrapping_add(seed)).collect()
}

#[test]
fn a_task_and_a_token_meet_in_either_order() {
    let rack = Rack::start();
    rack.token(1);
    rack.settle(1);
    assert_eq!(rack.slice().balance, 1);
    rack.submit(0, b"first");
    let (first, _) = dispatched(&rack.worker);
    assert_eq!((first.sent, first.seen), (Serial(1), Serial(1)));
    assert_eq!(first.task, submit(0, b"").0.task);
    assert_eq!(&first.payload.inline[..5], b"first");
    assert_eq!(first.client_at, address(&rack.client).into());

    rack.submit(1, b"second");
    rack.settle(3);
    assert_eq!(rack.slice().balance, -1);
    rack.token(2);
    let (second, _) = dispatched(&rack.worker);
    assert_eq!((second.sent, second.task.sequence), (Serial(2), Serial(1)));
    assert!(second.wait_ns > 0);
    assert_eq!(rack.slice().balance, 0);
    eventually(|| rack.count(Count::Dispatched) == 2);
}

#[test]
fn a_long_payload_goes_through_whole_whether_it_waits_or_not() {
    let rack = Rack::start();
    let lengths = [9, 640, 1_024, first_bytes_max(1_472)];
    for (index, length) in lengths.into_iter().enumerate() {
        rack.submit(index as u32, &large(index as u8, length));
    }
    rack.settle(4);
    eventually(|| rack.count(Count::PayloadsWaiting) == 4);
    for (index, length) in lengths.into_iter().enumerate() {
        rack.token(index as u32 + 1);
        let (dispatch, body) = dispatched(&rack.worker);
        assert_eq!(dispatch.task.sequence, Serial(index as u32));
        assert_eq!(body, large(index as u8, length));
        assert_eq!(dispatch.payload.inline, large_descriptor(&body));
    }
    eventually(|| rack.count(Count::PayloadsWaiting) == 0);
    rack.token(5);
    rack.settle(9);
    rack.submit(10, &large(7, 1_000));
    assert_eq!(dispatched(&rack.worker).1, large(7, 1_000));
    eventually(|| rack.count(Count::PayloadsWaiting) == 0);
}

#[test]
fn without_room_for_a_payload_the_task_is_rejected_and_a_short_one_is_not() {
    let cell = 1_472 - HEADER_BYTES;
    let rack = Rack::with(&SwitchConfig { slab_bytes: 2 * cell, ..SwitchConfig::new(size()) });
    for sequence in 0..3 {
        rack.submit(sequence, &large(sequence as u8, 100));
    }
    let reject = rejected(&rack.client);
    assert_eq!((reject.reason, reject.task.sequence), (RejectReason::NoRoom, Serial(2)));
    rack.submit(3, b"short");
    rack.settle(4);
    assert_eq!(rack.slice().balance, -3);
    rack.token(1);
    assert_eq!(dispatched(&rack.worker).1, large(0, 100));
    rack.submit(4, &large(4, 100));
    rack.settle(6);
    assert_eq!(rack.slice().balance, -3);
}

#[test]
fn a_payload_of_a_rejected_or_replayed_task_gives_its_room_back() {
    let rack = Rack::start();
    let row = SliceRow { open: true, limit: 1, retry_after: Nanos(0), ..SliceRow::default() };
    rack.ops(vec![TableOp::SetSlice(SLICE, row)]);
    rack.submit(0, &large(0, 500));
    for sequence in 1..10 {
        rack.submit(sequence, &large(0, 500));
        assert_eq!(rejected(&rack.client).reason, RejectReason::QueueFull);
    }
    rack.submit(0, &large(0, 500));
    rack.settle(11);
    assert_eq!(rack.switch.counters().refused(Refusal::Replayed), 1);
    assert_eq!(rack.count(Count::PayloadsWaiting), 1);
}

#[test]
fn a_sweep_of_a_slice_without_workers_rejects_its_tasks_and_frees_their_room() {
    let rack = Rack::start();
    rack.submit(0, &large(0, 500));
    rack.submit(1, &large(1, 500));
    rack.settle(2);
    let row = SliceRow { open: false, ..rack.slice().row };
    let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tasks, left: 64, carried: None };
    rack.ops(vec![TableOp::SetSlice(SLICE, row), TableOp::Inject(sweep), TableOp::Inject(sweep)]);
    for sequence in 0..2 {
        let reject = rejected(&rack.client);
        assert_eq!((reject.reason, reject.task.sequence), (RejectReason::NoWorkers, Serial(sequence)));
    }
    assert_eq!(rack.slice().balance, 0);
    eventually(|| rack.count(Count::PayloadsWaiting) == 0);
}

#[test]
fn a_task_that_meets_stale_tokens_goes_round_with_its_payload() {
    let rack = Rack::start();
    (1..=3).for_each(|issued| rack.token(issued));
    rack.settle(3);
    let generation = Generation(GENERATION.0 + 1);
    let row = WorkerRow { generation, ..rack.worker_row() };
    rack.ops(vec![
        TableOp::RaiseGeneration(WorkerId(0), generation),
        TableOp::ResetCounters(WorkerId(0), Serial(0)),
        TableOp::SetWorker(WorkerId(0), Some(row)),
    ]);
    rack.submit(0, &large(3, 700));
    rack.settle(4);
    eventually(|| rack.count(Count::Recirculated) == 3);
    assert_eq!(rack.slice().balance, -1);
    let fresh = Token { generation, ..token(1) };
    rack.send(&rack.worker, &Packet::Token(fresh), &[]);
    let (dispatch, body) = dispatched(&rack.worker);
    assert_eq!((dispatch.generation, dispatch.sent), (generation, Serial(1)));
    assert_eq!(body, large(3, 700));
}

#[test]
fn a_task_that_goes_round_passes_behind_what_arrived_meanwhile() {
    eventually(goes_round_behind_what_arrives);
}

/// Whether what was sent meanwhile arrived before the task had gone round: a busy machine may deliver it
/// later, and then nothing is proven.
fn goes_round_behind_what_arrives() -> bool {
    let mut driver = SwitchDriver::new(&SwitchConfig::new(size())).expect("the loopback has free ports");
    let rack = Rack { switch: driver.handle(), thread: None, worker: host(), client: host() };
    let slice = SliceRow { open: true, limit: 32, retry_after: Nanos(0), ..SliceRow::default() };
    let tables = |driver: &mut SwitchDriver, ops: Vec<TableOp>| {
        rack.switch.tables().send(ops, |_| ()).expect("the switch lives");
        driver.step().expect("the socket works");
    };
    let first = vec![
        TableOp::SetSlice(SLICE, slice),
        TableOp::SetType(TYPE, Some(SLICE)),
        TableOp::RaiseGeneration(WorkerId(0), GENERATION),
        TableOp::SetWorker(WorkerId(0), Some(rack.worker_row())),
        TableOp::SetClient(ClientId(0), Some((rack.client_row(), Serial(0)))),
    ];
    tables(&mut driver, first);
    // One step with the packet; those before it find nothing to do.
    let pass = |driver: &mut SwitchDriver, from: &UdpSocket, packet: &Packet, body: &[u8]| {
        rack.send(from, packet, body);
        while driver.step().expect("the socket works") == 0 {}
    };
    let generation = Generation(GENERATION.0 + 1);
    let row = WorkerRow { generation, ..rack.worker_row() };
    let change = vec![
        TableOp::RaiseGeneration(WorkerId(0), generation),
        TableOp::ResetCounters(WorkerId(0), Serial(0)),
        TableOp::SetWorker(WorkerId(0), Some(row)),
    ];
    let (early, late) = (large(1, 90), large(2, 80));
    let (round, meanwhile) = (submit(0, &early), submit(1, &late));
    pass(&mut driver, &rack.worker, &Packet::Token(token(1)), &[]);
    tables(&mut driver, change);
    pass(&mut driver, &rack.client, &Packet::Submit(round.0), round.1);
    rack.send(&rack.client, &Packet::Submit(meanwhile.0), meanwhile.1);
    if driver.step().expect("the socket works") == 0 {
        return false;
    }
    for (issued, sequence, bytes) in [(1, 1, &late), (2, 0, &early)] {
        let fresh = Token { generation, ..token(issued) };
        pass(&mut driver, &rack.worker, &Packet::Token(fresh), &[]);
        let (dispatch, body) = dispatched(&rack.worker);
        assert_eq!((dispatch.task.sequence, &body), (Serial(sequence), bytes));
    }
    true
}

#[test]
fn a_sweep_of_tokens_drops_the_stale_ones_and_parks_the_live_ones_again() {
    let rack = Rack::start();
    (1..=4).for_each(|issued| rack.token(issued));
    rack.settle(4);
    let sweep = Sweep { epoch: EPOCH, slice: SLICE, of: SweepOf::Tokens, left: 4, carried: None };
    rack.ops(vec![TableOp::Inject(sweep)]);
    eventually(|| rack.slice().tokens_out == RingCounts::of_one(Serial(4)) && rack.slice().balance == 4);
    rack.ops(vec![TableOp::RaiseGeneration(WorkerId(0), Generation(9)), TableOp::Inject(sweep)]);
    eventually(|| rack.slice().tokens_out == RingCounts::of_one(Serial(8)) && rack.slice().balance == 0);
}

/// The state that must not change, whatever garbage arrives.
fn state(rack: &Rack) -> Vec<TableAnswer> {
    rack.ops(vec![
        TableOp::ReadSlice(SLICE),
        TableOp::ReadSlice(SliceId(1)),
        TableOp::ReadWorker(WorkerId(0)),
        TableOp::ReadWorker(WorkerId(1)),
        TableOp::ReadClient(ClientId(0)),
        TableOp::ReadType(TYPE),
    ])
}

/// The bytes of a valid TOKEN after a change.
fn bent(bend: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bytes = vec![0; 2_048];
    let length = encode(&Packet::Token(token(1)), &[], &mut bytes).expect("a legal packet");
    bytes.truncate(length);
    bend(&mut bytes);
    bytes
}

#[test]
fn bytes_that_are_no_packet_are_counted_by_reason_and_change_nothing() {
    let rack = Rack::start();
    let before = state(&rack);
    let cases = [
        (bent(Vec::clear), ParseError::Short),
        (bent(|bytes| bytes.truncate(HEADER_BYTES - 1)), ParseError::Short),
        (bent(|bytes| bytes.push(0)), ParseError::Long),
        (bent(|bytes| bytes[0] = 9), ParseError::Version),
        (bent(|bytes| bytes[1] = 200), ParseError::Kind),
        (bent(|bytes| bytes[1] = 0), ParseError::Kind),
        (bent(|bytes| bytes[2] = 1), ParseError::HeaderLength),
    ];
    for (index, (bytes, reason)) in cases.iter().enumerate() {
        let counted = rack.switch.counters().malformed(*reason);
        rack.raw(&rack.worker, bytes);
        rack.settle(index as u64 + 1);
        assert_eq!(rack.switch.counters().malformed(*reason), counted + 1, "case {index}");
    }
    rack.raw(&rack.worker, &[1; 5_000]);
    eventually(|| rack.count(Count::Oversized) == 1);
    assert_eq!(state(&rack), before);
    assert_eq!(rack.count(Count::Sent), 0);
}

#[test]
fn packets_from_the_wrong_host_life_or_time_are_counted_by_reason_and_change_nothing() {
    let rack = Rack::start();
    rack.token(1);
    rack.submit(0, b"one");
    dispatched(&rack.worker);
    let before = state(&rack);
    let stranger = host();
    let good_token = token(2);
    let (good_submit, _) = submit(1, b"two");
    let worker = |token: Token| (&rack.worker, Packet::Token(token));
    let client = |submit: Submit| (&rack.client, Packet::Submit(submit));
    let cases = [
        (worker(Token { key: Key(1), ..good_token }), Refusal::WrongKey),
        (client(Submit { key: Key(1), ..good_submit }), Refusal::WrongKey),
        ((&stranger, Packet::Token(good_token)), Refusal::WrongAddress),
        ((&stranger, Packet::Submit(good_submit)), Refusal::WrongAddress),
        (worker(Token { worker: WorkerId(3), ..good_token }), Refusal::UnknownSource),
        (worker(Token { worker: WorkerId(60_000), ..good_token }), Refusal::UnknownSource),
        (client(Submit { client: ClientId(2), ..good_submit }), Refusal::UnknownSource),
        (client(Submit { client: ClientId(u16::MAX), ..good_submit }), Refusal::UnknownSource),
        (worker(Token { epoch: Epoch(76), ..good_token }), Refusal::WrongEpoch),
        (client(Submit { epoch: Epoch(78), ..good_submit }), Refusal::WrongEpoch),
        (worker(Token { generation: Generation(4), ..good_token }), Refusal::WrongGeneration),
        (client(submit(0, b"one").0), Refusal::Replayed),
        (worker(token(1)), Refusal::RepeatedToken),
        (worker(token(500)), Refusal::ImpossibleCounter),
        (worker(token(u32::MAX - 5)), Refusal::RepeatedToken),
        ((&rack.worker, Packet::Dispatch(Dispatch::default())), Refusal::Unexpected),
        (
            (&rack.worker, Packet::Sweep(Sweep { epoch: EPOCH, left: 9, ..Sweep::default() })),
            Refusal::Unexpected,
        ),
    ];
    for (index, ((from, packet), reason)) in cases.iter().enumerate() {
        let counted = rack.switch.counters().refused(*reason);
        rack.send(from, packet, &[]);
        rack.settle(index as u64 + 3);
        assert_eq!(rack.switch.counters().refused(*reason), counted + 1, "case {index}");
    }
    assert_eq!(state(&rack), before);
    rack.token(2);
    rack.send(&rack.client, &Packet::Submit(good_submit), &[]);
    while !matches!(next(&rack.worker).0, Packet::Dispatch(dispatch) if dispatch.sent == Serial(2)) {}
}

#[test]
fn with_a_testbeds_delays_a_dispatch_takes_as_long_as_the_links_and_the_pass() {
    let delays = Delays::testbed(20_000);
    let rack = Rack::with(&SwitchConfig { delays, ..SwitchConfig::new(size()) });
    rack.token(1);
    eventually(|| rack.slice().balance == 1);
    let start = Instant::now();
    rack.submit(0, &large(1, 600));
    let (_, body) = dispatched(&rack.worker);
    let took = start.elapsed();
    assert_eq!(body, large(1, 600));
    let least = delays.client + delays.pass + delays.worker;
    assert!(took >= Duration::from_nanos(least.0), "{took:?}");
}

#[test]
fn a_switch_with_faults_loses_and_doubles_but_never_grants_or_takes_twice() {
    let rates = "loss=0.3,dup=0.3,reorder=0.2".parse().expect("well written");
    let faults = FaultPlan::both(3, "switch", rates);
    let rack = Rack::with(&SwitchConfig { faults, ..SwitchConfig::new(size()) });
    for sequence in 0..20 {
        rack.submit(sequence, b"x");
    }
    // Includes delayed packets.
    let came = || rack.count(Count::Submits) + rack.count(Count::FaultLost);
    eventually(|| rack.count(Count::Received) == 20 && came() == 20 + rack.count(Count::FaultDoubled));
    let waiting = -rack.slice().balance;
    assert!((8..20).contains(&waiting), "{waiting}");
    assert!(rack.count(Count::FaultLost) > 0 && rack.count(Count::FaultDoubled) > 0);
    let replayed = rack.switch.counters().refused(Refusal::Replayed);
    assert_eq!(rack.count(Count::Submits), waiting as u64 + replayed);
}

#[test]
fn a_stopped_switch_says_so_to_its_controller() {
    let rack = Rack::start();
    let tables = rack.switch.tables();
    drop(rack);
    assert!(matches!(tables.call(vec![TableOp::ReadShape]), Err(SwitchdError::SwitchStopped)));
}

/// A server with one ring of eight slots for the slice, and the server's memory as a worker sees it.
fn with_a_server(rack: &Rack, folder: &std::path::Path, transport: Transport) -> (Receiver, SharedMemory) {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut server = Receiver::bind(at, &SocketOptions::default()).expect("free ports");
    let file = folder.join("ring");
    let memory = SharedMemory::create(&file, 8 * SLOT_BYTES).expect("there is room");
    server.register(Rkey(5), 1 << 32, Arc::new(memory)).expect("the key is free");
    server.connect(PairSpec {
        number: Qpn(17),
        peer_number: Qpn(0),
        peer: Some(Ipv4Addr::LOCALHOST.into()),
        transport,
        first: Psn::new(9),
        mtu: Mtu::B1024,
        icrc: true,
    });
    let row = ServerRow {
        at: server.local().into(),
        qpn: Qpn(17),
        reliable: transport == Transport::Rc,
        icrc: true,
    };
    let ring = RingRow { rkey: Rkey(5), address: 1 << 32, slots: 8, slot_bytes: SLOT_BYTES as u32 };
    let answers = rack.ops(vec![
        TableOp::SetServer(ServerId(0), Some((row, Psn::new(9)))),
        TableOp::SetRing(SLICE, ServerId(0), Some(ring)),
    ]);
    assert!(answers.iter().all(|answer| *answer == TableAnswer::Done), "{answers:?}");
    (server, SharedMemory::open(&file).expect("it was just made"))
}

const SLOT_BYTES: usize = 512;

#[test]
fn a_task_that_waits_is_written_ahead_and_its_dispatch_says_where() {
    let folder = tempfile::tempdir().expect("there is room");
    let rack = Rack::with(&SwitchConfig::new(Config { servers: 1, ..size() }));
    let (mut server, memory) = with_a_server(&rack, folder.path(), Transport::Uc);
    for sequence in 0..10 {
        let bytes = large(sequence as u8, 300);
        rack.submit(sequence, &bytes);
        assert_eq!(server.step(Wait::Forever).expect("the socket works"), 1);
        rack.token(sequence + 1);
        let (dispatch, body) = dispatched(&rack.worker);
        assert!(body.is_empty(), "its bytes went ahead");
        let Place::Ahead { slice, ticket } = dispatch.place else { panic!("{dispatch:?}") };
        assert_eq!(slice, SLICE);
        let mut slot = vec![0; SLOT_HEAD_BYTES + 300];
        memory.read((ticket % 8) as usize * SLOT_BYTES, &mut slot);
        assert_eq!(read_slot(&slot), Some((dispatch.task, &bytes[..])));
        assert!(check_large(dispatch.payload.inline, &bytes));
    }
    assert_eq!((server.counts().placed, rack.count(Count::WrittenAhead)), (10, 10));
    assert_eq!(rack.count(Count::PayloadsWaiting), 0, "the switch keeps none");
}

#[test]
fn a_switch_whose_servers_have_not_come_yet_keeps_no_payloads_either() {
    let size = Config { servers: 1, ..size() };
    let rack = Rack::with(&SwitchConfig { slab_bytes: 2 * 1_472, ..SwitchConfig::new(size) });
    for sequence in 0..4 {
        rack.submit(sequence, &large(sequence as u8, 300));
    }
    for sequence in 0..4 {
        rack.token(sequence + 1);
        let (dispatch, body) = dispatched(&rack.worker);
        assert_eq!((dispatch.place, body.len()), (Place::AtClient, 0), "it is asked for");
    }
    assert_eq!((rack.count(Count::PayloadsWaiting), rack.count(Count::Rejected)), (0, 0));
}

#[test]
fn a_reliable_server_that_missed_a_write_takes_the_number_back() {
    let folder = tempfile::tempdir().expect("there is room");
    let rack = Rack::with(&SwitchConfig::new(Config { servers: 1, ..size() }));
    let (mut server, _) = with_a_server(&rack, folder.path(), Transport::Rc);
    let pair = |first| PairSpec {
        number: Qpn(17),
        peer_number: Qpn(0),
        peer: None,
        transport: Transport::Rc,
        first,
        mtu: Mtu::B1024,
        icrc: true,
    };
    rack.submit(0, &large(0, 100));
    assert_eq!(server.step(Wait::Forever).expect("the socket works"), 1);
    // Simulates the loss of one WRITE: the server expects number 10, and the switch sends 11.
    rack.submit(1, &large(1, 100));
    assert_eq!(server.step(Wait::Forever).expect("the socket works"), 1);
    server.connect(pair(Psn::new(10)));
    rack.submit(2, &large(2, 100));
    assert_eq!(server.step(Wait::Forever).expect("the socket works"), 1);
    rack.settle(4);
    rack.submit(3, &large(3, 100));
    assert_eq!(server.step(Wait::Forever).expect("the socket works"), 1);
    assert_eq!((server.counts().placed, server.counts().refused(RoceRefusal::Gap)), (3, 1));
}
