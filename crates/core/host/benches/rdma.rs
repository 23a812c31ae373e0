//! The cost of building and of receiving an RDMA write, compared with the least work that either must do:
//! write headers, copy bytes, and compute one checksum over as many bytes as the iCRC covers.
//!
//! Building is `encode_write` of packets whose number and address change; receiving is `Endpoint::receive`
//! and the copy into the region. All variants take turns, batch by batch, in one run; the result is the
//! median of the turns' ratios. Prints one line of JSON.

use std::hint::black_box;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Instant;

use sluice_host::rdma::{Endpoint, Mtu, PairSpec, RegionSpec};
use sluice_wire::roce::{PORT, Path, Psn, Qpn, Rkey, Transport, Write, encode_write, write_len};

const SIZES: [usize; 3] = [64, 640, 4_096];
/// Packets in a batch, as a driver takes them from the kernel in one call.
const BATCH: usize = 64;
const BATCHES_A_TURN: usize = 200;
const TURNS: usize = 41;
const RKEY: Rkey = Rkey(7);
/// The link, IPv4, UDP, BTH and RETH headers that the iCRC covers, in bytes.
const HEADERS: usize = 8 + 20 + 8 + 12 + 16;

fn main() {
    let cases: Vec<_> = SIZES.into_iter().map(case).collect();
    println!(r#"{{"bench":"rdma","cases":[{}]}}"#, cases.join(","));
}

/// Measures both directions at one size; returns JSON.
fn case(bytes: usize) -> String {
    let mut bare = Bare::new(bytes);
    let mut ours = Ours::new(bytes);
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        let mut turn = Turn::default();
        for _ in 0..BATCHES_A_TURN {
            turn.bare += timed(|| bare.build());
            turn.build += timed(|| ours.build());
            turn.receive += timed(|| ours.receive());
        }
        turns.push(turn);
    }
    assert_eq!(ours.endpoint.counts().placed as usize, TURNS * BATCHES_A_TURN * BATCH, "all are taken");
    let packets = (BATCHES_A_TURN * BATCH) as f64;
    let of = |number: fn(&Turn) -> f64| median(turns.iter().map(number));
    let [bare, build, receive] =
        [of(|turn| turn.bare), of(|turn| turn.build), of(|turn| turn.receive)].map(|ns| ns / packets);
    let (build_ratio, receive_ratio) =
        (of(|turn| turn.build / turn.bare), of(|turn| turn.receive / turn.bare));
    format!(
        r#"{{"bytes":{bytes},"bare_ns":{bare:.2},"build_ns":{build:.2},"receive_ns":{receive:.2},"build_ratio":{build_ratio:.3},"receive_ratio":{receive_ratio:.3}}}"#
    )
}

/// The time of one turn, in nanoseconds.
#[derive(Default)]
struct Turn {
    bare: f64,
    build: f64,
    receive: f64,
}

fn timed(mut work: impl FnMut()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_nanos() as f64
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut of: Vec<f64> = of.collect();
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The baseline.
struct Bare {
    header: [u8; HEADERS],
    payload: Vec<u8>,
    packets: Vec<Vec<u8>>,
}

impl Bare {
    fn new(bytes: usize) -> Self {
        Self {
            header: [0x5a; HEADERS],
            payload: payload(bytes),
            packets: vec![vec![0; HEADERS + bytes + 4]; BATCH],
        }
    }

    fn build(&mut self) {
        for (turn, out) in self.packets.iter_mut().enumerate() {
            let (covered, seal) = out.split_at_mut(HEADERS + self.payload.len());
            covered[..HEADERS].copy_from_slice(black_box(&self.header));
            covered[HEADERS - 20..HEADERS - 16].copy_from_slice(&(turn as u32).to_be_bytes());
            covered[HEADERS - 16..HEADERS - 8].copy_from_slice(&(turn as u64).to_be_bytes());
            covered[HEADERS..].copy_from_slice(black_box(&self.payload));
            seal.copy_from_slice(&crc32fast::hash(covered).to_le_bytes());
            black_box(&out);
        }
    }
}

struct Ours {
    path: Path,
    payload: Vec<u8>,
    packets: Vec<Vec<u8>>,
    endpoint: Endpoint,
    memory: Vec<u8>,
}

impl Ours {
    fn new(bytes: usize) -> Self {
        let at = |last, port| SocketAddr::from((Ipv4Addr::new(10, 0, 0, last), port));
        let path = Path::new(at(1, 50_000), at(2, PORT)).expect("one family");
        let mut endpoint = Endpoint::new();
        let region = RegionSpec { rkey: RKEY, address: 0, bytes: BATCH * bytes };
        endpoint.register(region).expect("the key is free");
        endpoint.connect(PairSpec {
            number: pair(),
            peer_number: pair(),
            peer: Some(Ipv4Addr::new(10, 0, 0, 1).into()),
            transport: Transport::Uc,
            first: Psn::new(0),
            mtu: Mtu::B4096,
            icrc: true,
        });
        let packets = vec![vec![0; write_len(bytes)]; BATCH];
        Self { path, payload: payload(bytes), packets, endpoint, memory: vec![0; BATCH * bytes] }
    }

    fn build(&mut self) {
        for (turn, out) in self.packets.iter_mut().enumerate() {
            let write = Write {
                transport: Transport::Uc,
                to: pair(),
                psn: Psn::new(turn as u32),
                ack_request: false,
                address: (turn * self.payload.len()) as u64,
                rkey: RKEY,
            };
            let (write, payload) = (black_box(&write), black_box(&self.payload));
            encode_write(write, payload, Some(&self.path), out).expect("there is room");
            black_box(&out);
        }
    }

    fn receive(&mut self) {
        for packet in &self.packets {
            let received = self.endpoint.receive(black_box(packet), &self.path);
            let placed = received.outcome.expect("nothing changed it");
            let end = placed.offset + placed.bytes.len();
            self.memory[placed.offset..end].copy_from_slice(placed.bytes);
            black_box(&self.memory);
        }
    }
}

fn pair() -> Qpn {
    Qpn::new(17).expect("24 bits")
}

fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| at as u8).collect()
}
