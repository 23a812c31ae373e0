//! The RDMA endpoint: what it accepts, what it refuses and why, and that no byte lands outside a region.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use sluice_host::rdma::{
    Endpoint, Mtu, NAK_EVERY, PairSpec, PairState, Placed, RdmaError, Received, RegionId, RegionSpec,
    RoceRefusal, WriterEnd,
};
use sluice_wire::roce::{
    Acknowledge, NakCode, PORT, Path, Psn, Qpn, Rkey, Syndrome, Transport, Write, encode_acknowledge,
    encode_write, write_len,
};
use sluice_wire::{Endpoint as Address, Epoch, ServerId};

const RKEY: Rkey = Rkey(0x5eed);
const ADDRESS: u64 = 0x7f00_0000_0000;
const BYTES: usize = 4_096;
/// The first sequence number: 4 below the wrap.
const FIRST: Psn = Psn::new(0xff_fffc);

fn qpn(number: u32) -> Qpn {
    Qpn::new(number).expect("24 bits")
}

fn ip(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

fn path() -> Path {
    Path::new(SocketAddr::new(ip(1), 50_000), SocketAddr::new(ip(2), PORT)).expect("one family")
}

fn pair(transport: Transport) -> PairSpec {
    PairSpec {
        number: qpn(17),
        peer_number: qpn(99),
        peer: Some(ip(1)),
        transport,
        first: FIRST,
        mtu: Mtu::B1024,
        icrc: true,
    }
}

fn endpoint(transport: Transport) -> Endpoint {
    let mut endpoint = Endpoint::new();
    let region = RegionSpec { rkey: RKEY, address: ADDRESS, bytes: BYTES };
    assert_eq!(endpoint.register(region), Ok(RegionId(0)));
    endpoint.connect(pair(transport));
    endpoint
}

/// The `turn`-th write of a connection; each has 16 bytes.
fn write(transport: Transport, turn: u32) -> Write {
    let address = ADDRESS + 16 * u64::from(turn);
    Write { transport, to: qpn(17), psn: FIRST.plus(turn), ack_request: true, address, rkey: RKEY }
}

fn sealed(write: &Write, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0; write_len(payload.len())];
    encode_write(write, payload, Some(&path()), &mut out).expect("a legal packet");
    out
}

/// The packet with some bytes replaced and a valid checksum.
fn resealed(bytes: &[u8], changes: &[(usize, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (at, byte) in changes {
        bytes[*at] = *byte;
    }
    let covered = bytes.len() - 4;
    // The iCRC also covers a pseudo-header: all ones for the link, then the IP and UDP headers, with ones
    // in the fields that routers may change.
    let total = (28 + bytes.len() as u16).to_be_bytes();
    let mut block = vec![0xff; 8];
    block.extend([0x45, 0xff, total[0], total[1], 0, 0, 0x40, 0, 0xff, 17, 0xff, 0xff]);
    block.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    let length = (8 + bytes.len() as u16).to_be_bytes();
    block.extend([0xc3, 0x50, 0x12, 0xb7, length[0], length[1], 0xff, 0xff]);
    let variant = block.len() + 4;
    block.extend(&bytes[..covered]);
    block[variant] = 0xff;
    bytes[covered..].copy_from_slice(&crc32(&block).to_le_bytes());
    bytes
}

/// Computed bit by bit, so that it shares no code with what it checks.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

fn why(received: &Received<'_>) -> Option<RoceRefusal> {
    received.outcome.err()
}

fn answer(psn: Psn, syndrome: Syndrome, messages: u32) -> Acknowledge {
    Acknowledge { to: qpn(99), psn, syndrome, messages: Psn::new(messages) }
}

#[test]
fn a_write_is_placed_where_it_says() {
    for transport in [Transport::Uc, Transport::Rc] {
        let mut endpoint = endpoint(transport);
        let bytes = sealed(&write(transport, 3), b"sixteen bytes ok");
        endpoint.connect(PairSpec { first: FIRST.plus(3), ..pair(transport) });
        let received = endpoint.receive(&bytes, &path());
        let placed = Placed { region: RegionId(0), offset: 48, bytes: b"sixteen bytes ok" };
        assert_eq!(received.outcome, Ok(placed));
        assert_eq!((endpoint.counts().placed, endpoint.counts().bytes), (1, 16));
    }
}

#[test]
fn only_a_reliable_connection_acknowledges() {
    let bytes = sealed(&write(Transport::Rc, 0), b"x");
    let received = endpoint(Transport::Rc);
    let mut reliable = received;
    assert_eq!(reliable.receive(&bytes, &path()).answer, Some(answer(FIRST, Syndrome::ACK, 1)));
    let silent = Write { ack_request: false, ..write(Transport::Rc, 1) };
    assert_eq!(reliable.receive(&sealed(&silent, b"x"), &path()).answer, None);
    let bytes = sealed(&write(Transport::Uc, 0), b"x");
    assert_eq!(endpoint(Transport::Uc).receive(&bytes, &path()).answer, None);
}

#[test]
fn an_unreliable_connection_goes_on_behind_a_gap() {
    let mut endpoint = endpoint(Transport::Uc);
    // In order, behind a gap that crosses the wrap, overtaken, in order again.
    for (turn, jumps) in [(0, 0), (5, 1), (2, 2), (3, 2)] {
        let bytes = sealed(&write(Transport::Uc, turn), b"x");
        assert!(endpoint.receive(&bytes, &path()).outcome.is_ok(), "{turn}");
        assert_eq!(endpoint.counts().resynchronised, jumps, "{turn}");
        assert_eq!(endpoint.expected(qpn(17)), Some(FIRST.plus(turn + 1)));
    }
}

#[test]
fn a_reliable_connection_asks_once_for_what_is_missing_and_goes_back() {
    let mut endpoint = endpoint(Transport::Rc);
    let mut send = |turn| {
        let bytes = sealed(&write(Transport::Rc, turn), b"x");
        let received = endpoint.receive(&bytes, &path());
        (why(&received), received.answer)
    };
    assert_eq!(send(0), (None, Some(answer(FIRST, Syndrome::ACK, 1))));
    let missing = answer(FIRST.plus(1), Syndrome::Nak(NakCode::Sequence), 1);
    assert_eq!(send(6), (Some(RoceRefusal::Gap), Some(missing)));
    assert_eq!(send(7), (Some(RoceRefusal::Gap), None));
    assert_eq!(send(1), (None, Some(answer(FIRST.plus(1), Syndrome::ACK, 2))));
    assert_eq!(send(0), (Some(RoceRefusal::Duplicate), Some(answer(FIRST.plus(1), Syndrome::ACK, 2))));
    let missing = answer(FIRST.plus(2), Syndrome::Nak(NakCode::Sequence), 2);
    assert_eq!(send(4), (Some(RoceRefusal::Gap), Some(missing)), "a new gap is asked for anew");
}

#[test]
fn a_reliable_connection_asks_again_while_the_number_stays_missing() {
    let mut endpoint = endpoint(Transport::Rc);
    let mut asks = |turn: u32| {
        let bytes = sealed(&write(Transport::Rc, turn), b"x");
        endpoint.receive(&bytes, &path()).answer.is_some()
    };
    let asked: Vec<u32> = (1..100).filter(|turn| asks(*turn)).collect();
    assert_eq!(asked, [1, 1 + NAK_EVERY, 1 + 2 * NAK_EVERY, 1 + 3 * NAK_EVERY]);
}

/// For each faulty packet: what is wrong, the reason of its refusal, and the NAK if it puts a reliable
/// connection into its error state.
fn wrongs() -> Vec<(&'static str, Vec<u8>, RoceRefusal, Option<NakCode>)> {
    let good = sealed(&write(Transport::Rc, 0), b"sixteen bytes ok");
    let with = |changes: &[(usize, u8)]| resealed(&good, changes);
    let key = Write { rkey: Rkey(1), ..write(Transport::Rc, 0) };
    let before = Write { address: ADDRESS - 1, ..write(Transport::Rc, 0) };
    let behind = Write { address: ADDRESS + BYTES as u64 - 15, ..write(Transport::Rc, 0) };
    let wrap = Write { address: u64::MAX, ..write(Transport::Rc, 0) };
    let unreliable = sealed(&write(Transport::Uc, 0), b"x");
    let mut broken = good.clone();
    broken[30] ^= 1;
    let answer = Acknowledge { to: qpn(17), psn: FIRST, syndrome: Syndrome::ACK, messages: FIRST };
    let mut acknowledge = vec![0; 20];
    encode_acknowledge(&answer, Some(&path()), &mut acknowledge).expect("there is room");
    let invalid = Some(NakCode::InvalidRequest);
    let access = Some(NakCode::RemoteAccess);
    let bytes = b"sixteen bytes ok";
    vec![
        ("cut to nothing", vec![], RoceRefusal::Form, None),
        ("not words", good[1..].to_vec(), RoceRefusal::Form, None),
        ("another version", with(&[(1, 0x41)]), RoceRefusal::Version, None),
        ("another partition", with(&[(3, 0)]), RoceRefusal::Partition, None),
        ("another pair", with(&[(7, 18)]), RoceRefusal::UnknownPair, None),
        ("a changed bit", broken, RoceRefusal::Icrc, None),
        ("another transport", unreliable, RoceRefusal::Transport, None),
        ("a datagram", with(&[(0, 0x64)]), RoceRefusal::Transport, None),
        ("an acknowledgement", acknowledge, RoceRefusal::Opcode, None),
        ("a read", with(&[(0, 0x0c)]), RoceRefusal::Opcode, invalid),
        ("a first of many", with(&[(0, 0x06)]), RoceRefusal::Opcode, invalid),
        ("a middle", with(&[(0, 0x07)]), RoceRefusal::OpcodeSequence, invalid),
        ("a last", with(&[(0, 0x08)]), RoceRefusal::OpcodeSequence, invalid),
        ("stated longer", with(&[(27, 17)]), RoceRefusal::Length, invalid),
        ("stated shorter", with(&[(27, 15)]), RoceRefusal::Length, invalid),
        ("over the MTU", sealed(&write(Transport::Rc, 0), &[0; 1_025]), RoceRefusal::Mtu, invalid),
        ("another key", sealed(&key, bytes), RoceRefusal::Key, access),
        ("a byte before", sealed(&before, bytes), RoceRefusal::Bounds, access),
        ("a byte behind", sealed(&behind, bytes), RoceRefusal::Bounds, access),
        ("over the last address", sealed(&wrap, bytes), RoceRefusal::Bounds, access),
    ]
}

#[test]
fn each_wrong_packet_is_refused_for_its_reason_and_counted() {
    for (what, bytes, reason, nak) in wrongs() {
        let mut endpoint = endpoint(Transport::Rc);
        let received = endpoint.receive(&bytes, &path());
        assert_eq!(why(&received), Some(reason), "{what}");
        assert_eq!(endpoint.counts().refused(reason), 1, "{what}");
        assert_eq!(received.answer, nak.map(|code| answer(FIRST, Syndrome::Nak(code), 0)), "{what}");
        assert_eq!(received.failed, nak.map(|_| qpn(17)), "{what}");
        let state = if nak.is_some() { PairState::Error } else { PairState::Ready };
        assert_eq!(endpoint.state(qpn(17)), Some(state), "{what}");
    }
}

#[test]
fn an_unreliable_connection_drops_what_is_wrong_and_goes_on() {
    for (what, bytes, reason, nak) in wrongs() {
        if nak.is_none() {
            continue;
        }
        let mut endpoint = endpoint(Transport::Uc);
        let bytes = resealed(&bytes, &[(0, bytes[0] | 0x20)]);
        let received = endpoint.receive(&bytes, &path());
        assert_eq!(received, Received { outcome: Err(reason), answer: None, failed: None }, "{what}");
        let next = sealed(&write(Transport::Uc, 1), b"x");
        assert!(endpoint.receive(&next, &path()).outcome.is_ok(), "{what}");
    }
}

#[test]
fn a_pair_in_error_takes_nothing_until_it_is_connected_anew() {
    let mut endpoint = endpoint(Transport::Rc);
    assert!(endpoint.fail(qpn(17)));
    let bytes = sealed(&write(Transport::Rc, 0), b"x");
    assert_eq!(why(&endpoint.receive(&bytes, &path())), Some(RoceRefusal::PairInError));
    endpoint.connect(pair(Transport::Rc));
    assert_eq!(why(&endpoint.receive(&bytes, &path())), None);
    assert!(endpoint.disconnect(qpn(17)) && !endpoint.fail(qpn(17)));
}

#[test]
fn a_packet_of_another_sender_is_refused_though_its_checksum_holds() {
    let other = Path::new(SocketAddr::new(ip(3), 50_000), SocketAddr::new(ip(2), PORT)).expect("one family");
    let mut bytes = [0; write_len(1)];
    encode_write(&write(Transport::Uc, 0), b"x", Some(&other), &mut bytes).expect("there is room");
    assert_eq!(why(&endpoint(Transport::Uc).receive(&bytes, &other)), Some(RoceRefusal::Peer));
    assert_eq!(why(&endpoint(Transport::Uc).receive(&bytes, &path())), Some(RoceRefusal::Icrc));
}

#[test]
fn a_pair_without_checksums_takes_any() {
    let mut endpoint = endpoint(Transport::Uc);
    endpoint.connect(PairSpec { icrc: false, peer: None, ..pair(Transport::Uc) });
    let mut bytes = [0; write_len(1)];
    encode_write(&write(Transport::Uc, 0), b"x", None, &mut bytes).expect("there is room");
    assert_eq!(why(&endpoint.receive(&bytes, &path())), None);
}

#[test]
fn a_write_of_no_bytes_counts_in_the_sequence_and_needs_no_key() {
    let mut endpoint = endpoint(Transport::Rc);
    let empty = sealed(&Write { rkey: Rkey(0), ..write(Transport::Rc, 0) }, b"");
    let received = endpoint.receive(&empty, &path());
    assert_eq!(
        (why(&received), received.answer),
        (Some(RoceRefusal::Empty), Some(answer(FIRST, Syndrome::ACK, 1)))
    );
    assert_eq!(endpoint.expected(qpn(17)), Some(FIRST.plus(1)));
}

#[test]
fn memory_that_cannot_be_registered_is_refused() {
    let mut endpoint = endpoint(Transport::Uc);
    let spec = RegionSpec { rkey: Rkey(1), address: u64::MAX - 9, bytes: 10 };
    assert_eq!(endpoint.register(RegionSpec { rkey: RKEY, ..spec }), Err(RdmaError::KeyTaken));
    assert_eq!(endpoint.register(RegionSpec { bytes: 0, ..spec }), Err(RdmaError::NoBytes));
    assert_eq!(endpoint.register(RegionSpec { bytes: 11, ..spec }), Err(RdmaError::Address));
    assert_eq!(endpoint.register(spec), Ok(RegionId(1)));
    assert!(endpoint.deregister(RegionId(0)) && !endpoint.deregister(RegionId(0)));
    let bytes = sealed(&write(Transport::Uc, 0), b"x");
    assert_eq!(why(&endpoint.receive(&bytes, &path())), Some(RoceRefusal::Key));
}

#[test]
fn a_packet_may_have_just_as_many_bytes_as_its_pairs_mtu() {
    assert_eq!(Mtu::ALL.map(Mtu::bytes), [256, 512, 1_024, 2_048, 4_096]);
    for mtu in Mtu::ALL {
        assert_eq!((Mtu::of_bytes(mtu.bytes()), Mtu::of_bytes(mtu.bytes() + 1)), (Some(mtu), None));
        let mut endpoint = endpoint(Transport::Uc);
        endpoint.connect(PairSpec { mtu, ..pair(Transport::Uc) });
        let bytes = sealed(&write(Transport::Uc, 0), &vec![7; mtu.bytes()]);
        assert_eq!(why(&endpoint.receive(&bytes, &path())), None, "{mtu:?}");
    }
}

#[test]
fn each_refusal_is_counted_under_a_name_of_its_own() {
    for (at, refusal) in RoceRefusal::ALL.iter().enumerate() {
        let earlier = &RoceRefusal::ALL[..at];
        assert!(!earlier.iter().any(|earlier| earlier.name() == refusal.name()), "{refusal}");
        assert_eq!(refusal.to_string(), refusal.name());
    }
}

#[test]
fn a_pair_is_connected_anew_for_another_writer_and_a_reliable_one_for_its_next_life_too() {
    let switch = Address { ip: [1; 16], port: 5 };
    let end = WriterEnd { server: ServerId(1), epoch: Epoch(1), switch, icrc: true };
    let restarted = WriterEnd { epoch: Epoch(2), ..end };
    let elsewhere = WriterEnd { switch: Address { ip: [2; 16], ..switch }, ..end };
    let without = WriterEnd { icrc: false, ..end };
    let outdated =
        |reliable| [end, restarted, elsewhere, without].map(|to| end.is_outdated_by(&to, reliable));
    assert_eq!(outdated(true), [false, true, true, true]);
    assert_eq!(outdated(false), [false, false, true, true]);
}

/// Two regions in one stretch of memory; the bytes around them belong to no region.
const LAID: [(u32, usize, usize); 2] = [(0x11, 64, 512), (0x22, 640, 300)];
const STRETCH: usize = 1_024;

/// Arbitrary datagrams, mostly a write that is nearly right, so that it passes the first checks.
fn hostile() -> impl Strategy<Value = Vec<u8>> {
    let address = prop_oneof![
        6 => 0..STRETCH as u64 + 64,
        1 => any::<u64>(),
        1 => (u64::MAX - 64)..=u64::MAX,
    ];
    let keys = prop_oneof![8 => select(vec![0x11, 0x22]), 1 => any::<u32>()];
    let fields = (any::<bool>(), 15..20_u32, 0..4_u32, address, keys);
    let payload = prop::collection::vec(any::<u8>(), 0..300);
    let damage = prop::collection::vec((any::<Index>(), any::<u8>()), 0..3);
    let nearly = (fields, payload, damage, any::<bool>()).prop_map(
        |((reliable, to, psn, address, key), payload, damage, reseal)| {
            let transport = if reliable { Transport::Rc } else { Transport::Uc };
            let (to, psn) = (qpn(to), FIRST.plus(psn));
            let write = Write { transport, to, psn, ack_request: true, address, rkey: Rkey(key) };
            let good = sealed(&write, &payload);
            let changes: Vec<_> = damage.iter().map(|(at, byte)| (at.index(good.len()), *byte)).collect();
            if reseal {
                return resealed(&good, &changes);
            }
            let mut bytes = good;
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            bytes
        },
    );
    prop_oneof![9 => nearly, 1 => prop::collection::vec(any::<u8>(), 0..100)]
}

fn laid_out() -> Endpoint {
    let mut endpoint = Endpoint::new();
    for (key, address, bytes) in LAID {
        let spec = RegionSpec { rkey: Rkey(key), address: address as u64, bytes };
        endpoint.register(spec).expect("keys and addresses are good");
    }
    let of =
        |number, transport, icrc| PairSpec { number: qpn(number), icrc, mtu: Mtu::B256, ..pair(transport) };
    endpoint.connect(of(16, Transport::Uc, false));
    endpoint.connect(of(17, Transport::Uc, true));
    endpoint.connect(of(18, Transport::Rc, true));
    endpoint.connect(of(19, Transport::Rc, false));
    endpoint
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 20 } else { 2_000 }))]

    #[test]
    fn whatever_comes_nothing_lands_outside_a_region(packets in prop::collection::vec(hostile(), 1..20)) {
        let mut endpoint = laid_out();
        let mut memory = vec![0_u8; STRETCH];
        for packet in &packets {
            let received = endpoint.receive(packet, &path());
            let Ok(Placed { region, offset, bytes }) = received.outcome else { continue };
            let (_, start, length) = LAID[region.0 as usize];
            // The driver's slice is the region alone: the copy panics if the bytes do not fit.
            memory[start..start + length][offset..offset + bytes.len()].copy_from_slice(bytes);
            prop_assert!(bytes.len() <= 256, "over the MTU");
            prop_assert!(!bytes.is_empty() && packet.windows(bytes.len()).any(|part| part == bytes));
        }
        let inside = |at: usize| LAID.iter().any(|(_, start, length)| (*start..start + length).contains(&at));
        prop_assert!((0..STRETCH).all(|at| inside(at) || memory[at] == 0));
        let counts = endpoint.counts();
        let refused: u64 = RoceRefusal::ALL.iter().map(|why| counts.refused(*why)).sum();
        prop_assert_eq!(counts.placed + refused, packets.len() as u64, "each packet is counted once");
    }
}
