//! A switch whose process stands still (a paused machine, SIGSTOP) while a SUBMIT lies in its socket. The
//! time adds to the task's age, once; otherwise a worker that has forgotten the task could run it again.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use sluice_switch::Config;
use sluice_switchd::switch::{Delays, SwitchConfig, SwitchDriver};
use sluice_wire::tables::{ClientRow, SliceRow, TableAnswer, TableOp, WorkerRow};
use sluice_wire::{
    Age, Attempt, ClientId, Dispatch, Epoch, Generation, Incarnation, Key, Nanos, Nonce, Packet, Payload,
    Serial, SliceId, Submit, TaskId, TaskType, Term, Token, WorkerId, encode, parse,
};

const EPOCH: Epoch = Epoch(77);
const GENERATION: Generation = Generation(5);
const SLICE: SliceId = SliceId(0);
const STILL: Duration = Duration::from_millis(300);
const BEFORE: Nanos = Nanos::from_millis(50);
/// The rounding of an age above 0.13 s: once while the task waits, and twice that in packets.
const ROUNDED: Duration = Duration::from_micros(34_400);

/// A switch that the test steps, a worker and a client.
struct Rack {
    driver: SwitchDriver,
    worker: UdpSocket,
    client: UdpSocket,
}

impl Rack {
    fn new(delays: Delays) -> Self {
        let size = Config {
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
        };
        let driver = SwitchDriver::new(&SwitchConfig { delays, ..SwitchConfig::new(size) }).unwrap();
        let [worker, client] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        worker.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let mut rack = Self { driver, worker, client };
        rack.lay_out();
        rack
    }

    fn lay_out(&mut self) {
        let slice =
            SliceRow { open: true, limit: 32, retry_after: Nanos::from_millis(1), ..SliceRow::default() };
        let worker = WorkerRow {
            key: Key(1),
            at: self.worker.local_addr().unwrap().into(),
            slice: SLICE,
            generation: GENERATION,
            open: true,
            life: 1,
            ..WorkerRow::default()
        };
        let at = self.client.local_addr().unwrap().into();
        let client = ClientRow { key: Key(2), at, incarnation: Incarnation(9) };
        let tables = self.driver.handle().tables();
        let asks = thread::spawn(move || {
            tables.call(vec![
                TableOp::SetSlice(SLICE, slice),
                TableOp::SetType(TaskType(1), Some(SLICE)),
                TableOp::RaiseGeneration(WorkerId(0), GENERATION),
                TableOp::SetWorker(WorkerId(0), Some(worker)),
                TableOp::SetClient(ClientId(0), Some((client, Serial(0)))),
            ])
        });
        while !asks.is_finished() {
            // The datagram keeps the step from waiting for ever.
            self.client.send_to(&[0], self.driver.local()).unwrap();
            self.driver.step().unwrap();
        }
        assert!(asks.join().unwrap().unwrap().iter().all(|answer| *answer == TableAnswer::Done));
    }

    fn send(&self, from: &UdpSocket, packet: &Packet) {
        let mut bytes = [0; 2_048];
        let length = encode(packet, &[], &mut bytes).unwrap();
        from.send_to(&bytes[..length], self.driver.local()).unwrap();
    }

    /// The DISPATCH that the worker gets once the switch continues.
    fn dispatched(&mut self) -> Dispatch {
        let token = Token {
            epoch: EPOCH,
            key: Key(1),
            worker: WorkerId(0),
            generation: GENERATION,
            nonce: Nonce(1),
            issued: Serial(1),
            ..Token::default()
        };
        let mut bytes = [0; 2_048];
        loop {
            // The token gives each step a datagram.
            self.send(&self.worker, &Packet::Token(token));
            self.driver.step().unwrap();
            if let Ok(length) = self.worker.recv(&mut bytes)
                && let Ok((Packet::Dispatch(dispatch), _)) = parse(&bytes[..length])
            {
                return dispatch;
            }
        }
    }
}

/// The task's age when it left the switch, and the largest age that it can have.
fn age_after_standing_still(delays: Delays) -> [Duration; 2] {
    let mut rack = Rack::new(delays);
    // The second attempt of a task whose first attempt ran and whose reply was lost.
    let submit = Submit {
        epoch: EPOCH,
        key: Key(2),
        client: ClientId(0),
        task: TaskId { incarnation: Incarnation(9), sequence: Serial(1) },
        attempt: Attempt(2),
        task_type: TaskType(1),
        age: Age::of(BEFORE),
        payload: Payload::EMPTY,
        ..Submit::default()
    };
    let sent = Instant::now();
    rack.send(&rack.client, &Packet::Submit(submit));
    thread::sleep(STILL);
    let age = rack.dispatched().age.span().unwrap();
    [Duration::from_nanos(age.0), Duration::from_nanos(BEFORE.0) + sent.elapsed() + ROUNDED]
}

#[test]
fn a_task_that_lay_in_the_socket_of_a_switch_that_stood_still_is_older_for_it_once() {
    for delays in [Delays::NONE, Delays::testbed(1)] {
        let [age, most] = age_after_standing_still(delays);
        assert!(age >= STILL, "{age:?} with {delays:?}");
        assert!(age <= most, "{age:?} of {most:?} with {delays:?}");
    }
}
