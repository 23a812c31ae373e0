//! Encodes and parses `RoCEv2` packets, in frames and without, and checks the reason for which bytes are
//! refused. `scripts/rdma-check` checks that other programs read the same bytes as `RoCEv2`.

use std::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use proptest::sample::Index;
use sluice_wire::roce::{
    Acknowledge, Frame, Link, MAX_WRITE_BYTES, NakCode, Opcode, PORT, Packet, Path, Psn, Qpn, Rkey, Syndrome,
    Transport, View, Write, encode, encode_frame, encode_write, encoded_len, frame_len, write_len,
};
use sluice_wire::{EncodeError, RoceError};

const LINK: Link = Link { from: [2, 0, 0, 0, 0, 1], to: [2, 0, 0, 0, 0, 2] };

fn any_path() -> impl Strategy<Value = Path> {
    let v4 =
        (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(from, to)| (IpAddr::from(from), IpAddr::from(to)));
    let v6 =
        (any::<[u8; 15]>(), any::<[u8; 15]>()).prop_map(|(from, to)| (unique_local(from), unique_local(to)));
    (prop_oneof![v4, v6], any::<u16>()).prop_map(|((from, to), port)| {
        let path = Path::new(SocketAddr::new(from, port), SocketAddr::new(to, PORT));
        path.expect("both are of one family")
    })
}

/// An IPv6 address that is not an IPv4-mapped one.
fn unique_local(rest: [u8; 15]) -> IpAddr {
    let mut ip = [0xfd; 16];
    ip[1..].copy_from_slice(&rest);
    ip.into()
}

fn any_write() -> impl Strategy<Value = (Packet, Vec<u8>)> {
    let fields = (any::<bool>(), 0..1_u32 << 24, any::<u32>(), any::<bool>(), any::<u64>(), any::<u32>());
    let lengths = prop_oneof![0..=16_usize, 17..=600_usize, Just(MAX_WRITE_BYTES)];
    let bytes = lengths.prop_flat_map(|length| prop::collection::vec(any::<u8>(), length));
    (fields, bytes).prop_map(|((reliable, to, psn, ack_request, address, rkey), bytes)| {
        let transport = if reliable { Transport::Rc } else { Transport::Uc };
        let to = Qpn::new(to).expect("24 bits");
        let write = Write { transport, to, psn: Psn::new(psn), ack_request, address, rkey: Rkey(rkey) };
        (Packet::Write(write), bytes)
    })
}

fn any_syndrome() -> impl Strategy<Value = Syndrome> {
    prop_oneof![
        (0..32_u8).prop_map(|credits| Syndrome::Ack { credits }),
        (0..32_u8).prop_map(|timer| Syndrome::NotReady { timer }),
        Just(Syndrome::Nak(NakCode::Sequence)),
        Just(Syndrome::Nak(NakCode::InvalidRequest)),
        Just(Syndrome::Nak(NakCode::RemoteAccess)),
        Just(Syndrome::Nak(NakCode::RemoteOperation)),
        Just(Syndrome::Nak(NakCode::InvalidDatagram)),
    ]
}

fn any_packet() -> impl Strategy<Value = (Packet, Vec<u8>)> {
    let answer = (0..1_u32 << 24, any::<u32>(), any_syndrome(), any::<u32>());
    let answer = answer.prop_map(|(to, psn, syndrome, messages)| {
        let (to, messages) = (Qpn::new(to).expect("24 bits"), Psn::new(messages));
        Packet::Acknowledge(Acknowledge { to, psn: Psn::new(psn), syndrome, messages })
    });
    prop_oneof![3 => any_write(), 1 => answer.prop_map(|packet| (packet, Vec::new()))]
}

fn encoded(packet: &Packet, payload: &[u8], path: Option<&Path>) -> Vec<u8> {
    let mut out = vec![0xaa; encoded_len(packet, payload.len())];
    assert_eq!(encode(packet, payload, path, &mut out), Ok(out.len()));
    out
}

fn framed(path: &Path, transport: &[u8]) -> Vec<u8> {
    let mut out = vec![0xaa; frame_len(path, transport.len())];
    assert_eq!(encode_frame(&LINK, path, transport, &mut out), Ok(out.len()));
    out
}

fn sample(payload: &[u8]) -> Vec<u8> {
    encoded(&Packet::Write(Write::default()), payload, None)
}

/// A sample with one byte replaced.
fn with(payload: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut sample = sample(payload);
    sample[at] = byte;
    sample
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn a_packet_comes_back_from_its_bytes((packet, payload) in any_packet(), path in any_path()) {
        let bytes = encoded(&packet, &payload, Some(&path));
        let view = View::parse(&bytes).expect("well formed");
        prop_assert_eq!(view.packet(), Ok((packet, &payload[..])));
        prop_assert!(view.icrc_holds(&path));
        prop_assert_eq!(bytes.len() % 4, 0);
    }

    #[test]
    fn a_frame_comes_back_from_its_bytes((packet, payload) in any_packet(), path in any_path(), behind in 0..9_usize) {
        let transport = encoded(&packet, &payload, Some(&path));
        let mut bytes = framed(&path, &transport);
        bytes.resize(bytes.len() + behind, 0);
        let frame = Frame::parse(&bytes).expect("well formed");
        prop_assert_eq!((frame.link, frame.path), (LINK, path));
        prop_assert_eq!(frame.transport, &transport[..]);
        prop_assert!(frame.icrc_holds(&View::parse(frame.transport).expect("well formed")));
    }

    #[test]
    fn no_change_of_what_the_checksum_covers_goes_unseen(
        (packet, payload) in any_packet(),
        path in any_path(),
        at in any::<Index>(),
        bit in 0..8_u32,
    ) {
        let mut bytes = framed(&path, &encoded(&packet, &payload, Some(&path)));
        let at = at.index(bytes.len() - 14) + 14;
        bytes[at] ^= 1 << bit;
        let holds = Frame::parse(&bytes).is_ok_and(|frame| {
            View::parse(frame.transport).is_ok_and(|view| frame.icrc_holds(&view))
        });
        let ip = if path.is_v4() { 14 + 20 } else { 14 + 40 };
        let may_change = if path.is_v4() {
            false // The IP checksum sees it.
        } else {
            (14..18).contains(&at) && !(at == 14 && bit >= 4) || at == 14 + 7
        };
        let may_change = may_change || at == ip + 6 || at == ip + 7 || at == ip + 8 + 4;
        prop_assert_eq!(holds, may_change, "byte {}", at);
    }

    #[test]
    fn whatever_the_bytes_are_nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        if let Ok(frame) = Frame::parse(&bytes) {
            let _ = View::parse(frame.transport);
        }
        if let Ok(view) = View::parse(&bytes) {
            let _ = view.packet();
        }
    }

    #[test]
    fn a_cut_frame_is_refused((packet, payload) in any_packet(), path in any_path(), keep in any::<Index>()) {
        let bytes = framed(&path, &encoded(&packet, &payload, Some(&path)));
        prop_assert_eq!(Frame::parse(&bytes[..keep.index(bytes.len())]).err(), Some(RoceError::Short));
    }

    #[test]
    fn sequence_numbers_wrap_at_24_bits(number in any::<u32>(), steps in 0..1_u32 << 23) {
        let psn = Psn::new(number);
        prop_assert_eq!(psn.plus(steps).since(psn), steps as i32);
        prop_assert_eq!(psn.since(psn.plus(steps)), -(steps as i32));
    }
}

#[test]
fn each_reason_is_given_for_what_it_names() {
    let five = b"bytes";
    let cases = [
        (vec![0; 15], RoceError::Short),
        (sample(five)[..38].to_vec(), RoceError::Words),
        (with(five, 1, 0x71), RoceError::Version),
        (with(five, 2, 0x12), RoceError::Partition),
        (with(five, 0, 0x64), RoceError::Transport),
        ([&with(five, 1, 0x30)[..12], &[0; 4]].concat(), RoceError::Padding),
    ];
    for (at, (bytes, reason)) in cases.into_iter().enumerate() {
        assert_eq!(View::parse(&bytes).err(), Some(reason), "case {at}");
    }
    let cases = [
        (with(five, 0, 0x26), RoceError::Opcode),
        (with(five, 0, 0x27), RoceError::Opcode),
        (with(five, 27, 6), RoceError::Length),
        (with(five, 1, 0x40), RoceError::Length),
        (with(&[], 0, 0x11), RoceError::Length),
        ([&with(five, 1, 0x40)[..24], &[0; 4]].concat(), RoceError::Short),
    ];
    for (at, (bytes, reason)) in cases.into_iter().enumerate() {
        assert_eq!(View::parse(&bytes).and_then(|view| view.packet()).err(), Some(reason), "case {at}");
    }
}

#[test]
fn a_syndrome_without_a_meaning_is_refused() {
    let answer = Acknowledge {
        to: Qpn::default(),
        psn: Psn::default(),
        syndrome: Syndrome::ACK,
        messages: Psn::default(),
    };
    let mut bytes = encoded(&Packet::Acknowledge(answer), &[], None);
    for code in [0x40, 0x65, 0x80] {
        bytes[12] = code;
        let read = View::parse(&bytes).and_then(|view| view.packet());
        assert_eq!(read.err(), Some(RoceError::Syndrome), "{code:#x}");
    }
}

#[test]
fn each_header_below_is_held_to_what_we_take() {
    let path = Path::new(([10, 0, 0, 1], 50_000).into(), ([10, 0, 0, 2], PORT).into()).expect("one family");
    let good = framed(&path, &sample(b"bytes"));
    // Offset, byte, reason; the IP checksum is checked after the form of the header.
    let cases = [
        (12, 0x11, RoceError::EtherType),
        (14, 0x46, RoceError::Ip),
        (20, 0x60, RoceError::Ip),
        (22, 63, RoceError::IpChecksum),
        (36, 0x53, RoceError::Port),
        (39, 9, RoceError::UdpLength),
    ];
    for (at, byte, reason) in cases {
        let mut bytes = good.clone();
        bytes[at] = byte;
        assert_eq!(Frame::parse(&bytes).err(), Some(reason), "byte {at}");
    }
    let mut bytes = good;
    (bytes[23], bytes[24], bytes[25]) = (6, 0, 0);
    let sum: u32 = bytes[14..34].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[24..26].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(Frame::parse(&bytes).err(), Some(RoceError::Protocol));
}

#[test]
fn an_ip_packet_holds_a_udp_header_at_least() {
    let at = |last, port| SocketAddr::from(([0xfd, 0, 0, 0, 0, 0, 0, last], port));
    let path = Path::new(at(1, 50_000), at(2, PORT)).expect("one family");
    let mut bytes = framed(&path, &[]);
    assert_eq!(Frame::parse(&bytes).map(|frame| frame.transport), Ok(&[][..]));
    bytes[14 + 5] = 7;
    assert_eq!(Frame::parse(&bytes).err(), Some(RoceError::Ip));
}

#[test]
fn udp_checksums_are_right_over_ipv6_and_left_out_over_ipv4() {
    let sum = |bytes: &[u8]| -> u64 {
        bytes.chunks(2).map(|two| u64::from(u16::from_be_bytes([two[0], two[1]]))).sum()
    };
    let at = |last, port| SocketAddr::from(([0xfd12, 3, 4, 5, 6, 7, 8, last], port));
    let path = Path::new(at(1, 50_000), at(2, PORT)).expect("one family");
    let frame = framed(&path, &sample(b"even bytes"));
    let datagram = &frame[14 + 40..];
    let total = sum(&frame[14 + 8..]) + 17 + datagram.len() as u64;
    assert_eq!(total % 0xffff, 0, "the sum of all words is all ones");
    assert_ne!(datagram[6..8], [0, 0]);
    let path = Path::new(([10, 0, 0, 1], 50_000).into(), ([10, 0, 0, 2], PORT).into()).expect("one family");
    assert_eq!(framed(&path, &sample(b"bytes"))[14 + 26..14 + 28], [0, 0]);
}

#[test]
fn an_icrc_of_another_path_does_not_hold() {
    let at = |last| Path::new(([10, 0, 0, last], 50_000).into(), ([10, 0, 0, 9], PORT).into());
    let (path, other) = (at(1).expect("one family"), at(2).expect("one family"));
    let bytes = encoded(&Packet::Write(Write::default()), b"bytes", Some(&path));
    let view = View::parse(&bytes).expect("well formed");
    assert_eq!((view.icrc_holds(&path), view.icrc_holds(&other)), (true, false));
}

#[test]
fn an_icrc_is_the_crc_32_of_the_headers_with_ones_where_routers_write() {
    let path = Path::new(([10, 0, 0, 1], 50_000).into(), ([10, 0, 0, 9], PORT).into()).expect("one family");
    let frame = framed(&path, &encoded(&Packet::Write(Write::default()), b"bytes", Some(&path)));
    let (headers, icrc) = frame[14..].split_last_chunk::<4>().expect("it is longer");
    let mut covered = [&[0xff; 8], headers].concat();
    let [ip, udp, base] = [8, 8 + 20, 8 + 20 + 8];
    for at in [ip + 1, ip + 8, ip + 10, ip + 11, udp + 6, udp + 7, base + 4] {
        covered[at] = 0xff;
    }
    assert_eq!(*icrc, crc32fast::hash(&covered).to_le_bytes());
}

#[test]
fn opcodes_are_told_apart_before_their_headers_are_read() {
    let opcode = |code| View::parse(&with(b"bytes", 0, code)).map(|view| (view.transport(), view.opcode()));
    assert_eq!(opcode(0x0a), Ok((Transport::Rc, Opcode::WriteOnly)));
    assert_eq!(opcode(0x2a), Ok((Transport::Uc, Opcode::WriteOnly)));
    assert_eq!(opcode(0x28), Ok((Transport::Uc, Opcode::Continued)));
    assert_eq!(opcode(0x0c), Ok((Transport::Rc, Opcode::Other(0x0c))));
}

#[test]
fn ends_of_two_families_are_no_path() {
    let v6 = SocketAddr::from(([0xfd, 0, 0, 0, 0, 0, 0, 1], PORT));
    assert_eq!(Path::new(([10, 0, 0, 1], 1).into(), v6), None);
}

#[test]
fn what_does_not_fit_is_not_written() {
    let write = Write::default();
    let mut out = [0x55; write_len(8) - 1];
    let refused = EncodeError::Buffer { needs: write_len(8), has: write_len(8) - 1 };
    assert_eq!(encode_write(&write, &[0; 8], None, &mut out), Err(refused));
    assert!(out.iter().all(|byte| *byte == 0x55));
    let long = [0; MAX_WRITE_BYTES + 1];
    assert_eq!(encode_write(&write, &long, None, &mut [0; 5_000]), Err(EncodeError::PayloadLength));
    let (to, psn) = (Qpn::default(), Psn::default());
    let answer = Packet::Acknowledge(Acknowledge { to, psn, syndrome: Syndrome::ACK, messages: psn });
    assert_eq!(encode(&answer, b"x", None, &mut out), Err(EncodeError::Body { needs: 0, has: 1 }));
    assert_eq!(Qpn::new(1 << 24), None);
}
