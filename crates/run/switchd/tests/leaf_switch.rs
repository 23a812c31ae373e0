//! A leaf's switch with real packets: from which packets it learns clients' addresses.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use sluice_switch::horus::FabricReading;
use sluice_switch::registry::Choice;
use sluice_switch::{Config, Refusal};
use sluice_switchd::switch::{Count, SwitchConfig, SwitchDriver, SwitchHandle, SwitchPlace};
use sluice_wire::tables::{SliceRow, SpineRow, TableAnswer, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Dispatch, Endpoint, Epoch, Generation, Incarnation, Key, Nanos, Nonce, Packet,
    Payload, Serial, SliceId, TaskId, TaskType, Term, Token, WorkerId, encode, parse,
};

const EPOCH: Epoch = Epoch(77);
const SPINE_EPOCH: Epoch = Epoch(500);
const SPINE_GENERATION: Generation = Generation(9);
const GENERATION: Generation = Generation(5);
const SLICE: SliceId = SliceId(0);
const CLIENT_START: u64 = 0x1234_5678_9abc_d009;

struct Leaf {
    switch: SwitchHandle,
    worker: UdpSocket,
    spine: UdpSocket,
    client: UdpSocket,
    stranger: UdpSocket,
}

fn host() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    socket
}

fn at(socket: &UdpSocket) -> Endpoint {
    socket.local_addr().unwrap().into()
}

impl Leaf {
    fn start() -> Self {
        let size = Config {
            epoch: EPOCH,
            term: Term(0),
            workers: 4,
            clients: 1,
            slices: 2,
            types: 8,
            tasks_per_slice: 64,
            tokens_per_slice: 64,
            replay_cells: 1,
            servers: 0,
            counters_start: Serial(0),
            polls_ahead: 0,
            seed: 0,
        };
        let config = SwitchConfig {
            place: SwitchPlace::Leaf(FabricReading::default()),
            program: Choice::parse("rain:1").unwrap(),
            ..SwitchConfig::new(size)
        };
        let driver = SwitchDriver::new(&config).unwrap();
        let switch = driver.handle();
        drop(driver.spawn::<sluice_net::NetError>().unwrap());
        let leaf = Self { switch, worker: host(), spine: host(), client: host(), stranger: host() };
        let slice =
            SliceRow { open: true, limit: 32, retry_after: Nanos::from_millis(1), ..SliceRow::default() };
        let row = WorkerRow {
            key: Key(0x1111),
            at: at(&leaf.worker),
            slice: SLICE,
            generation: GENERATION,
            open: true,
            life: 1,
            ..WorkerRow::default()
        };
        let spine = SpineRow {
            at: at(&leaf.spine),
            epoch: SPINE_EPOCH,
            leaf: WorkerId(3),
            generation: SPINE_GENERATION,
            start: Serial(0),
        };
        let answers = leaf.ops(vec![
            TableOp::SetSlice(SLICE, slice),
            TableOp::SetType(TaskType(1), Some(SLICE)),
            TableOp::RaiseGeneration(WorkerId(0), GENERATION),
            TableOp::SetWorker(WorkerId(0), Some(row)),
            TableOp::SetSpine(SLICE, spine),
        ]);
        assert!(answers.iter().all(|answer| *answer == TableAnswer::Done), "{answers:?}");
        leaf
    }

    fn ops(&self, ops: Vec<TableOp>) -> Vec<TableAnswer> {
        self.switch.tables().call(ops).unwrap()
    }

    fn send(&self, from: &UdpSocket, packet: &Packet) {
        let mut bytes = [0; 2_048];
        let length = encode(packet, &[], &mut bytes).unwrap();
        from.send_to(&bytes[..length], self.switch.local()).unwrap();
    }

    fn received(&self, packets: u64) {
        let start = Instant::now();
        while self.switch.counters().of(Count::Received) < packets {
            assert!(start.elapsed() < Duration::from_secs(10), "the switch hears nothing");
            std::thread::sleep(Duration::from_millis(1));
        }
        self.ops(vec![TableOp::ReadShape]);
    }

    /// The spine's DISPATCH of the client's task, which has to wait at the leaf.
    fn handed_down(&self) -> Dispatch {
        Dispatch {
            epoch: SPINE_EPOCH,
            worker: WorkerId(3),
            generation: SPINE_GENERATION,
            sent: Serial(1),
            client: ClientId(0),
            client_at: at(&self.client),
            task: TaskId { incarnation: Incarnation(CLIENT_START), sequence: Serial(7) },
            attempt: Attempt(1),
            task_type: TaskType(1),
            payload: Payload { len: 4, inline: [1, 2, 3, 4, 0, 0, 0, 0], ..Payload::EMPTY },
            ..Dispatch::default()
        }
    }

    /// The client's address in the DISPATCH that the worker gets.
    fn client_as_told(&self) -> SocketAddr {
        let token = Token {
            epoch: EPOCH,
            key: Key(0x1111),
            worker: WorkerId(0),
            generation: GENERATION,
            nonce: Nonce(1),
            issued: Serial(1),
            ..Token::default()
        };
        self.send(&self.worker, &Packet::Token(token));
        let mut bytes = [0; 2_048];
        let length = self.worker.recv(&mut bytes).unwrap();
        match parse(&bytes[..length]).unwrap().0 {
            Packet::Dispatch(dispatch) => dispatch.client_at.into(),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Leaf {
    fn drop(&mut self) {
        self.switch.stop();
    }
}

#[test]
fn a_worker_is_told_where_the_client_of_a_task_is_that_was_handed_down() {
    let leaf = Leaf::start();
    leaf.send(&leaf.spine, &Packet::Dispatch(leaf.handed_down()));
    leaf.received(1);
    assert_eq!(leaf.client_as_told(), leaf.client.local_addr().unwrap());
}

/// The spine's DISPATCH number 1 comes again after its number 2; the client moved between them.
#[test]
fn an_old_copy_of_the_spine_s_own_does_not_say_where_a_client_is() {
    let leaf = Leaf::start();
    let old = Dispatch { client_at: at(&leaf.stranger), ..leaf.handed_down() };
    let new = Dispatch { sent: Serial(2), attempt: Attempt(2), ..leaf.handed_down() };
    for (packets, dispatch) in [(1, old), (2, new), (3, old)] {
        leaf.send(&leaf.spine, &Packet::Dispatch(dispatch));
        leaf.received(packets);
    }
    assert_eq!(leaf.switch.counters().refused(Refusal::Replayed), 1);
    assert_eq!(
        leaf.client_as_told(),
        leaf.client.local_addr().unwrap(),
        "the worker replies to where it was"
    );
}

/// A DISPATCH from an unknown address, without a valid life and generation, is refused as `unknown_source`.
/// It must change nothing.
#[test]
fn a_strangers_dispatch_does_not_say_where_a_client_is() {
    let leaf = Leaf::start();
    leaf.send(&leaf.spine, &Packet::Dispatch(leaf.handed_down()));
    leaf.received(1);
    let forged = Dispatch {
        epoch: Epoch(1),
        worker: WorkerId(0),
        generation: Generation(1),
        client_at: at(&leaf.stranger),
        ..leaf.handed_down()
    };
    leaf.send(&leaf.stranger, &Packet::Dispatch(forged));
    leaf.received(2);
    assert_eq!(leaf.switch.counters().refused(Refusal::UnknownSource), 1);
    assert_eq!(
        leaf.client_as_told(),
        leaf.client.local_addr().unwrap(),
        "the worker replies to the stranger"
    );
}

/// Needs no knowledge of a client's incarnation: four datagrams for each of 4,096 sets would be enough to
/// make a leaf forget every client.
#[test]
fn a_strangers_dispatches_do_not_make_a_leaf_forget_its_clients() {
    let leaf = Leaf::start();
    leaf.send(&leaf.spine, &Packet::Dispatch(leaf.handed_down()));
    leaf.received(1);
    for nth in 1..=4_u64 {
        let task =
            TaskId { incarnation: Incarnation(CLIENT_START % 4_096 + nth * 4_096), sequence: Serial(1) };
        let forged = Dispatch { task, client_at: at(&leaf.stranger), epoch: Epoch(1), ..leaf.handed_down() };
        leaf.send(&leaf.stranger, &Packet::Dispatch(forged));
    }
    leaf.received(5);
    assert_eq!(leaf.client_as_told(), leaf.client.local_addr().unwrap(), "nobody hears the reply");
}
