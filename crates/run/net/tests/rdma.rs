//! A server's receiver over the loopback: another mapping of the file sees the bytes that were written.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path as FilePath;
use std::sync::Arc;

use sluice_host::rdma::{Mtu, PairSpec, RoceRefusal};
use sluice_net::NetError;
use sluice_net::clock::Clock;
use sluice_net::rdma::{Capture, Receiver, SharedMemory};
use sluice_net::udp::{Socket, SocketOptions, Wait};
use sluice_wire::Nanos;
use sluice_wire::roce::{Packet, Path, Psn, Qpn, Rkey, Syndrome, Transport, View, Write, encode_write};

const RKEY: Rkey = Rkey(0x5eed);
const ADDRESS: u64 = 1 << 40;
const BYTES: usize = 4_096;
const PATIENCE: Nanos = Nanos::from_millis(120_000);

/// A switch's socket, a server, and the memory as a worker sees it.
struct Rig {
    switch: Socket,
    server: Receiver,
    worker: SharedMemory,
    path: Path,
    next: Psn,
    transport: Transport,
}

impl Rig {
    fn new(folder: &FilePath, transport: Transport) -> Self {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let switch = Socket::bind(at, &SocketOptions::default()).expect("the loopback has free ports");
        let mut server = Receiver::bind(at, &SocketOptions::default()).expect("the loopback has free ports");
        let file = folder.join("rings");
        let memory = SharedMemory::create(&file, BYTES).expect("there is room");
        server.register(RKEY, ADDRESS, Arc::new(memory)).expect("the key is free");
        server.connect(PairSpec {
            number: Qpn(17),
            peer_number: Qpn(99),
            peer: Some(Ipv4Addr::LOCALHOST.into()),
            transport,
            first: Psn::new(0),
            mtu: Mtu::B2048,
            icrc: true,
        });
        let worker = SharedMemory::open(&file).expect("it was just made");
        let path = Path::new(switch.local(), server.local()).expect("one family");
        Self { switch, server, worker, path, next: Psn::new(0), transport }
    }

    fn write(&mut self, address: u64, rkey: Rkey, bytes: &[u8]) {
        let (transport, psn) = (self.transport, self.next);
        let write = Write { transport, to: Qpn(17), psn, ack_request: true, address, rkey };
        self.next = psn.plus(1);
        self.switch.outbox().send_with(self.path.to(), |out| {
            encode_write(&write, bytes, Some(&self.path), out).expect("there is room")
        });
        self.switch.flush();
        let end = Clock::start().now() + PATIENCE;
        assert_eq!(self.server.step(Wait::Until(end)).expect("the socket works"), 1);
    }

    fn read(&self, offset: usize, bytes: usize) -> Vec<u8> {
        let mut out = vec![0; bytes];
        self.worker.read(offset, &mut out);
        out
    }

    /// The server's answer to the last write.
    fn answer(&mut self) -> Syndrome {
        let end = Clock::start().now() + PATIENCE;
        assert_eq!(self.switch.receive(Wait::Until(end)).expect("the socket works"), 1);
        let view = View::parse(self.switch.inbox().datagram(0).bytes).expect("well formed");
        assert!(view.icrc_holds(&self.path.back()), "sealed for the way back");
        match view.packet().expect("well formed").0 {
            Packet::Acknowledge(answer) => answer.syndrome,
            Packet::Write(write) => panic!("no answer: {write:?}"),
        }
    }
}

#[test]
fn what_the_switch_writes_a_worker_reads() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut rig = Rig::new(folder.path(), Transport::Uc);
    rig.write(ADDRESS + 13, RKEY, b"thirteen further");
    assert_eq!(rig.read(13, 16), b"thirteen further");
    let longest = [7; 1_400];
    rig.write(ADDRESS + (BYTES - longest.len()) as u64, RKEY, &longest);
    assert_eq!(rig.read(BYTES - longest.len(), longest.len()), longest);
    assert_eq!((rig.server.counts().placed, rig.server.counts().resynchronised), (2, 0));
}

#[test]
fn what_is_refused_is_counted_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut rig = Rig::new(folder.path(), Transport::Uc);
    rig.write(ADDRESS + 1, Rkey(1), b"another key");
    rig.write(ADDRESS + BYTES as u64 - 3, RKEY, b"four");
    rig.write(ADDRESS - 1, RKEY, b"four");
    assert_eq!(rig.read(0, BYTES), [0; BYTES]);
    let counts = rig.server.counts();
    assert_eq!((counts.refused(RoceRefusal::Key), counts.refused(RoceRefusal::Bounds)), (1, 2));
}

#[test]
fn a_reliable_connection_hears_of_its_writes() {
    let folder = tempfile::tempdir().expect("there is room");
    let mut rig = Rig::new(folder.path(), Transport::Rc);
    rig.write(ADDRESS, RKEY, b"first");
    assert_eq!(rig.answer(), Syndrome::ACK);
    rig.next = rig.next.plus(1);
    rig.write(ADDRESS, RKEY, b"third");
    assert!(matches!(rig.answer(), Syndrome::Nak(_)));
    assert_eq!(rig.read(0, 5), b"first");
}

#[test]
fn a_capture_holds_what_came_and_what_went() {
    let folder = tempfile::tempdir().expect("there is room");
    let file = folder.path().join("server.pcap");
    let mut rig = Rig::new(folder.path(), Transport::Rc);
    rig.server.capture(Some(Capture::create(&file).expect("there is room")));
    rig.write(ADDRESS, RKEY, b"bytes");
    rig.answer();
    rig.server.capture(None);
    let written = std::fs::read(&file).expect("it was written");
    // The file header; before each packet a record header and Ethernet, IPv4 and UDP headers; 40 bytes of
    // WRITE, 20 of ACK.
    assert_eq!(written.len(), 24 + (16 + 42 + 40) + (16 + 42 + 20));
}

#[test]
fn a_server_at_no_address_is_refused_at_once() {
    let at = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let refused = Receiver::bind(at, &SocketOptions::default());
    assert!(matches!(refused, Err(NetError::Unreachable { .. })));
}
