//! The program on links of a rack: WRITEs and DISPATCHes in one batch, each with the right contents.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use sluice_conformance::explore::SERVERS_SHAPE;
use sluice_conformance::model::Model;
use sluice_conformance::{Plane as _, Sent, Shape, Step};
use sluice_kernel::KernelError;
use sluice_kernel::spaces::{BPF_FOLDER, RackSpaces, Space, mounts_of_its_own};
use sluice_kernel::xdp::{AttachMode, XdpDriver, XdpOptions};
use sluice_switchd::switch::{Count, SwitchHandle};
use sluice_wire::roce::{Packet as Roce, View};
use sluice_wire::tables::TableAnswer;
use sluice_wire::{
    Answer, Attempt, ClientId, Dispatch, Epoch, Generation, HEADER_BYTES, Key, Nanos, Packet, Payload, Place,
    Probe, Serial, Submit, TaskId, TaskType, Token, WorkerId, encode, encoded_len, large_descriptor, parse,
    read_slot, trailer_bytes,
};

use crate::object::is_root;

const SHAPE: Shape = Shape { counters_start: 0, tasks_per_slice: 64, replay_cells: 256, ..SERVERS_SHAPE };
/// A time limit that only a fault can exceed, since no datagram here is lost.
const PATIENCE: Duration = Duration::from_mins(2);
/// Tasks in each batch: as many datagrams as the kernel makes of one buffer in a call.
const BATCH: usize = 60;
const TASK_BYTES: usize = 301;

/// A client and three machines with a server and a worker each, around a switch; and the model of the same
/// rack.
struct Rack {
    switch: SwitchHandle,
    model: Model,
    client: UdpSocket,
    workers: Vec<UdpSocket>,
    servers: Vec<UdpSocket>,
    next: u32,
}

impl Rack {
    /// Slice 0 has rings on the first two servers, slice 1 on the last two. Worker 0 is in slice 1, the
    /// others in slice 0.
    fn set_up(spaces: &RackSpaces, switch: SwitchHandle, family: usize) -> Self {
        let hosts = spaces.hosts();
        let socket = |host: usize, port| socket(&hosts[host].space, hosts[host].addresses()[family], port);
        let mut rack = Self {
            switch,
            model: Model::new(&SHAPE),
            client: socket(0, 0),
            workers: (1..4).map(|host| socket(host, 0)).collect(),
            servers: (1..4).map(|host| socket(host, 4_791)).collect(),
            next: 0,
        };
        segment(&rack.client, HEADER_BYTES + TASK_BYTES + trailer_bytes(TASK_BYTES));
        let mut steps =
            vec![Step::SetClient { client: 0, key: 5, at: local(&rack.client), incarnation: 0, start: 0 }];
        for slice in 0..2 {
            steps.push(Step::SetSlice {
                slice,
                open: true,
                limit: 64,
                retry_after_ns: 0,
                target_ns: 0,
                expected: 0,
            });
            steps.push(Step::SetType { r#type: slice, slice: Some(slice) });
        }
        for worker in 0..3 {
            let (at, slice) = (local(&rack.workers[usize::from(worker)]), u16::from(worker == 0));
            steps.push(Step::RaiseGeneration { worker, generation: 1 });
            steps.push(Step::SetWorker { worker, key: 6, at, slice, generation: 1, open: true });
        }
        rack.take(&steps);
        // The switch learns the paths to the workers from these packets.
        for worker in 0..3 {
            let probe = Probe {
                epoch: epoch(),
                key: Key(6),
                worker: WorkerId(worker),
                generation: Generation(1),
                ..Probe::default()
            };
            let bytes = encoded(&Packet::Probe(probe), &[]);
            let socket = &rack.workers[usize::from(worker)];
            socket.send_to(&bytes, rack.switch.local()).expect("a way");
            received(socket);
        }
        let serve = |server: u16| Step::SetServer {
            server,
            at: local(&rack.servers[usize::from(server)]),
            qpn: 40 + u32::from(server),
            psn: 0xff_fff0,
        };
        let ring = |(slice, server): (u16, u16)| Step::SetRing {
            slice,
            server,
            rkey: 100 + u32::from(server),
            address: 0x1000 << server,
            slots: 32,
            slot_bytes: 512,
        };
        let rings = [(0, 0), (0, 1), (1, 1), (1, 2)].map(ring);
        let steps: Vec<Step> = (0..3).map(serve).chain(rings).collect();
        rack.take(&steps);
        rack
    }

    /// Steps on both.
    fn take(&mut self, steps: &[Step]) {
        let ops: Vec<_> = steps.iter().filter_map(Step::table).collect();
        let answers = self.switch.tables().call(ops.clone()).expect("it runs");
        assert!(answers.iter().all(|answer| *answer == TableAnswer::Done), "{answers:?}");
        for op in ops {
            let Ok(()) = self.model.table(op);
        }
    }

    /// Parks `count` of the first worker's tokens.
    fn park(&mut self, from: u32, count: u32) {
        for issued in from + 1..=from + count {
            let token = Token {
                epoch: epoch(),
                key: Key(6),
                worker: WorkerId(0),
                generation: Generation(1),
                issued: Serial(issued),
                ..Token::default()
            };
            let bytes = encoded(&Packet::Token(token), &[]);
            self.workers[0].send_to(&bytes, self.switch.local()).expect("a way");
            let Ok(sent) = self.model.packet(Nanos(0), local(&self.workers[0]), &bytes);
            assert_eq!(sent, None);
        }
        // The answer to the PROBE shows that the tokens sent before it have arrived.
        let probe = Probe { epoch: epoch(), key: Key(6), generation: Generation(1), ..Probe::default() };
        self.workers[0].send_to(&encoded(&Packet::Probe(probe), &[]), self.switch.local()).expect("a way");
        let answer = parse(&received(&self.workers[0])).expect("a packet").0;
        let Packet::Answer(Answer { counters: Some(counters), .. }) = answer else { panic!("{answer:?}") };
        assert_eq!(counters.seen, Serial(from + count));
    }

    /// Sends tasks of these types in one call. Returns what the model sends for them, with each task's
    /// copies apart.
    fn submit(&mut self, types: &[u16]) -> Vec<Vec<Sent>> {
        let tasks: Vec<Vec<u8>> = types.iter().map(|of| self.task(*of)).collect();
        self.client.send_to(&tasks.concat(), self.switch.local()).expect("a way");
        let at = local(&self.client);
        let written = |task: &Vec<u8>| {
            let Ok(_) = self.model.packet(Nanos(0), at, task);
            let Ok(written) = self.model.written();
            written
        };
        tasks.iter().map(written).collect()
    }

    fn task(&mut self, of: u16) -> Vec<u8> {
        let bytes = bytes_of(self.next);
        let submit = Submit {
            epoch: epoch(),
            key: Key(5),
            client: ClientId(0),
            task: TaskId { sequence: Serial(self.next), ..TaskId::default() },
            attempt: Attempt(1),
            task_type: TaskType(of),
            payload: Payload { len: bytes.len() as u16, inline: large_descriptor(&bytes), ..Payload::EMPTY },
            ..Submit::default()
        };
        self.next += 1;
        encoded(&Packet::Submit(submit), &bytes)
    }

    /// Checks that the next packet at a server is this one.
    fn written(&self, sent: &Sent) {
        let server = self.servers.iter().find(|server| local(server) == sent.to).expect("a server");
        let mut bytes = vec![0; 2_048];
        let (length, from) = server.recv_from(&mut bytes).expect("a WRITE");
        assert_eq!((from, &bytes[..length]), (self.switch.local(), &sent.bytes[..]));
    }
}

/// Runs `work` in a rack of four hosts with addresses of this family.
fn with_rack(family: usize, work: impl FnOnce(Rack) + Send) {
    if !is_root() {
        eprintln!("skipped: network namespaces and programs take root");
        return;
    }
    let spaces = RackSpaces::new(4).expect("root may make them");
    let Some(at) = spaces.switch_addresses().get(family).copied() else { return };
    thread::scope(|scope| {
        let (switch, thread) = scope.spawn(|| drive(&spaces, at)).join().expect("no panic");
        work(Rack::set_up(&spaces, switch.clone(), family));
        switch.stop();
        thread.join().expect("no panic").expect("it ran");
    });
}

fn socket(space: &Space, at: IpAddr, port: u16) -> UdpSocket {
    let socket = space.within(|| UdpSocket::bind((at, port))).expect("root may move").expect("a free port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    socket
}

/// Attaches the program to the switch's links, with pins that no other process sees, and starts the
/// driver's thread.
fn drive(spaces: &RackSpaces, at: IpAddr) -> (SwitchHandle, JoinHandle<Result<(), KernelError>>) {
    mounts_of_its_own().expect("root may mount");
    spaces.switch().enter().expect("root may move");
    let options = XdpOptions {
        size: SHAPE.config(),
        at: SocketAddr::new(at, 0),
        generic: false,
        interfaces: spaces.links().map(str::to_owned).collect(),
        pins: PathBuf::from(BPF_FOLDER).join("rack"),
    };
    let driver = XdpDriver::new(&options, || Ok(epoch())).expect("the links carry it");
    assert!(
        driver.attach_modes().iter().all(|(_, carried)| *carried == AttachMode::Native),
        "{:?}",
        driver.attach_modes()
    );
    (driver.handle(), driver.spawn().expect("a thread"))
}

/// Lets one call send several datagrams of this length, which the kernel hands to the link together.
#[expect(unsafe_code, reason = "a system call")]
fn segment(socket: &UdpSocket, bytes: usize) {
    let bytes = bytes as libc::c_int;
    let length = size_of_val(&bytes) as libc::socklen_t;
    // SAFETY: the kernel reads one c_int from `bytes`.
    let answer = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_UDP,
            libc::UDP_SEGMENT,
            (&raw const bytes).cast(),
            length,
        )
    };
    assert_eq!(answer, 0, "the kernel cuts datagrams");
}

const fn epoch() -> Epoch {
    Epoch(SHAPE.epoch)
}

fn local(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().expect("it is bound")
}

fn bytes_of(task: u32) -> Vec<u8> {
    (0..TASK_BYTES as u32).map(|at| (at * 3 + task) as u8).collect()
}

fn encoded(packet: &Packet, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; encoded_len(packet)];
    encode(packet, body, &mut bytes).expect("legal");
    bytes
}

fn received(socket: &UdpSocket) -> Vec<u8> {
    let mut bytes = vec![0; 2_048];
    let length = socket.recv(&mut bytes).expect("an answer");
    bytes.truncate(length);
    bytes
}

fn dispatched(socket: &UdpSocket) -> (Dispatch, Vec<u8>) {
    let bytes = received(socket);
    match parse(&bytes).expect("a packet") {
        (Packet::Dispatch(dispatch), body) => (dispatch, body.to_vec()),
        (other, _) => panic!("{other:?}"),
    }
}

#[test]
fn writes_and_dispatches_of_one_batch_leave_over_the_same_links_over_ipv4() {
    with_rack(0, writes_and_dispatches);
}

#[test]
fn writes_and_dispatches_of_one_batch_leave_over_the_same_links_over_ipv6() {
    with_rack(1, writes_and_dispatches);
}

fn writes_and_dispatches(mut rack: Rack) {
    // The kernel runs the first frame's program for a whole batch, so each kind comes first once.
    for first in 0..2 {
        let (tokens, tasks) = (BATCH as u32 / 2, u32::from(first) * BATCH as u32);
        rack.park(u32::from(first) * tokens, tokens);
        let types: Vec<u16> = (0..BATCH as u16).map(|at| (at + first) % 2).collect();
        let copies = rack.submit(&types);
        for ((task, copies), of) in (tasks..).zip(&copies).zip(&types) {
            if *of == 0 {
                assert_eq!(copies.len(), 2, "one for each server with a ring for the slice");
                for copy in copies {
                    rack.written(copy);
                }
            } else {
                assert!(copies.is_empty(), "it meets a token");
                let (dispatch, body) = dispatched(&rack.workers[0]);
                assert_eq!((dispatch.task.sequence.0, dispatch.place), (task, Place::Here));
                assert_eq!(body, bytes_of(task));
            }
        }
    }

    // The tokens are spent, so tasks of the other slice wait, and go to that slice's servers.
    for copy in rack.submit(&[1; 20]).iter().flatten() {
        rack.written(copy);
    }
    let counted = || rack.switch.counters().of(Count::WrittenAhead) == 2 * (BATCH as u64 + 20);
    let began = Instant::now();
    while !counted() {
        assert!(began.elapsed() < PATIENCE, "each copy is counted");
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(rack.switch.counters().of(Count::SendFailed), 0);
}

#[test]
fn a_dispatch_says_where_a_real_server_has_put_the_task() {
    with_rack(0, |mut rack| {
        let copies = rack.submit(&[0; 3]);
        copies.iter().flatten().for_each(|copy| rack.written(copy));
        for (issued, copies) in (1..).zip(&copies) {
            let token = Token {
                epoch: epoch(),
                key: Key(6),
                worker: WorkerId(1),
                generation: Generation(1),
                issued: Serial(issued),
                ..Token::default()
            };
            rack.workers[1]
                .send_to(&encoded(&Packet::Token(token), &[]), rack.switch.local())
                .expect("a way");
            let (Dispatch { place: Place::Ahead { slice, ticket }, task, .. }, _) =
                dispatched(&rack.workers[1])
            else {
                panic!("its bytes are ahead")
            };
            let copy =
                copies.iter().find(|copy| copy.to == local(&rack.servers[1])).expect("its server has them");
            let (Roce::Write(write), bytes) =
                View::parse(&copy.bytes).expect("whole").packet().expect("a WRITE")
            else {
                panic!("a WRITE")
            };
            assert_eq!((slice.0, write.address), (0, 0x2000 + u64::from(ticket) * 512));
            assert_eq!(read_slot(bytes), Some((task, &bytes_of(task.sequence.0)[..])));
        }
    });
}
