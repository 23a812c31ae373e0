//! Encodes and parses packets in both directions.

mod common;

use common::{Numbers, packet};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use sluice_wire::{
    Dispatch, EncodeError, HEADER_BYTES, Handle, Incarnation, Kind, MAX_PAYLOAD_BYTES, Packet, ParseError,
    Payload, Place, RejectReason, SLOT_HEAD_BYTES, Serial, SliceId, Submit, TaskId, TaskJob, VERSION,
    check_large, descriptor_len, encode, encoded_len, first_bytes_max, large_descriptor, parse,
    payload_bytes_max, read_slot, roce::write_len, slot_head, trailer_bytes,
};

fn encoded(packet: &Packet, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; encoded_len(packet)];
    assert_eq!(encode(packet, body, &mut out), Ok(out.len()));
    out
}

fn any_packet(lengths: impl Strategy<Value = usize>) -> impl Strategy<Value = (Packet, Vec<u8>)> {
    let numbers = prop::collection::vec(any::<u8>(), 0..96);
    (select(Kind::ALL.to_vec()), lengths, numbers)
        .prop_map(|(kind, length, numbers)| packet(kind, length, &mut Numbers(&numbers)))
}

/// Any bytes are refused, or are the only encoding of the packet that they hold.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok((packet, body)) = parse(bytes) {
        prop_assert_eq!(encoded(&packet, body), bytes);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_packet_comes_back_from_its_bytes(
        (packet, body) in any_packet(prop_oneof![0..=8_usize, 9..=2_000_usize])
    ) {
        let bytes = encoded(&packet, &body);
        prop_assert_eq!(parse(&bytes), Ok((packet, &body[..])));
    }

    #[test]
    fn bytes_that_are_a_packet_are_its_only_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&bytes)?;
    }

    #[test]
    fn bytes_behind_a_good_start_are_a_packet_or_refused(
        kind in 0..=14_u8,
        rest in prop::collection::vec(prop_oneof![9 => Just(0), 1 => any::<u8>()], 0..100),
    ) {
        check(&[&[VERSION, kind, HEADER_BYTES as u8][..], &rest].concat())?;
    }

    #[test]
    fn a_changed_byte_is_refused_or_makes_another_packet(
        (packet, body) in any_packet(0..=40_usize),
        at in any::<Index>(),
        change in 1..=255_u8,
    ) {
        let mut bytes = encoded(&packet, &body);
        let at = at.index(bytes.len());
        bytes[at] ^= change;
        check(&bytes)?;
        prop_assert_ne!(parse(&bytes), Ok((packet, &body[..])));
    }

    #[test]
    fn a_cut_packet_is_short((packet, body) in any_packet(0..=40_usize), keep in any::<Index>()) {
        let bytes = encoded(&packet, &body);
        prop_assert_eq!(parse(&bytes[..keep.index(bytes.len())]), Err(ParseError::Short));
    }

    #[test]
    fn a_packet_with_bytes_behind_it_is_long((packet, body) in any_packet(0..=40_usize), more in 1..20_usize) {
        let mut bytes = encoded(&packet, &body);
        bytes.resize(bytes.len() + more, 0);
        prop_assert_eq!(parse(&bytes), Err(ParseError::Long));
    }

    #[test]
    fn a_descriptor_knows_its_bytes(bytes in prop::collection::vec(any::<u8>(), 9..300), at in any::<Index>()) {
        let descriptor = large_descriptor(&bytes);
        prop_assert!(check_large(descriptor, &bytes));
        prop_assert_eq!(descriptor_len(descriptor) as usize, bytes.len());
        prop_assert!(!check_large(descriptor, &bytes[1..]));
        let mut changed = bytes.clone();
        changed[at.index(bytes.len())] ^= 1;
        prop_assert!(!check_large(descriptor, &changed));
    }
}

#[test]
fn the_longest_payload_fits_one_datagram() {
    let (packet, body) = packet(Kind::Submit, MAX_PAYLOAD_BYTES, &mut Numbers(&[]));
    let bytes = encoded(&packet, &body);
    assert!((65_504..=65_507).contains(&bytes.len()), "{} bytes", bytes.len());
    assert_eq!(parse(&bytes), Ok((packet, &body[..])));
}

#[test]
fn a_longer_payload_is_impossible_both_ways() {
    let (packet, body) = packet(Kind::Submit, MAX_PAYLOAD_BYTES + 1, &mut Numbers(&[]));
    let mut bytes = vec![0; HEADER_BYTES + body.len()];
    assert_eq!(encode(&packet, &body, &mut bytes), Err(EncodeError::PayloadLength));
    let (longest, body) = common::packet(Kind::Submit, MAX_PAYLOAD_BYTES, &mut Numbers(&[]));
    let mut bytes = encoded(&longest, &body);
    bytes[38..40].copy_from_slice(&(MAX_PAYLOAD_BYTES as u16 + 1).to_be_bytes());
    bytes.push(0);
    assert_eq!(parse(&bytes), Err(ParseError::PayloadLength));
}

#[test]
fn a_packet_that_does_not_fit_the_buffer_is_not_written() {
    for (kind, needs) in [(Kind::Submit, HEADER_BYTES + 20 + 4), (Kind::Part, HEADER_BYTES + 20)] {
        let (packet, body) = packet(kind, 20, &mut Numbers(&[7; 96]));
        let mut out = vec![0; needs - 1];
        let refused = EncodeError::Buffer { needs, has: needs - 1 };
        assert_eq!(encode(&packet, &body, &mut out), Err(refused));
        assert_eq!(out, vec![0; needs - 1]);
    }
}

#[test]
fn zeros_for_the_end_of_a_write_follow_a_large_task_and_nothing_else() {
    for length in (0..80).chain([1_023, 4_084]) {
        for kind in Kind::ALL {
            let (packet, body) = packet(kind, length, &mut Numbers(&[7; 96]));
            let trailer = if kind == Kind::Submit { trailer_bytes(length) } else { 0 };
            if kind != Kind::Job {
                assert_eq!(encoded_len(&packet), HEADER_BYTES + body.len() + trailer, "{kind:?} of {length}");
            }
        }
        let slot = SLOT_HEAD_BYTES + length;
        let behind_slot = write_len(slot) - write_len(0) + 4 - slot;
        assert_eq!(trailer_bytes(length), if length > 8 { behind_slot } else { 0 }, "{length}");
    }
}

#[test]
fn a_trailer_that_is_missing_or_cut_or_not_zero_is_refused() {
    for length in 9..=40 {
        let (packet, body) = packet(Kind::Submit, length, &mut Numbers(&[7; 96]));
        let good = encoded(&packet, &body);
        let end = HEADER_BYTES + length;
        let mut written_over = [0xff; 200];
        assert_eq!(encode(&packet, &body, &mut written_over), Ok(good.len()));
        assert_eq!(written_over[..good.len()], good, "whatever the buffer held");
        for cut in end..good.len() {
            assert_eq!(parse(&good[..cut]), Err(ParseError::Short), "{length} bytes cut to {cut}");
            let mut bytes = good.clone();
            bytes[cut] = 1;
            assert_eq!(parse(&bytes), Err(ParseError::Padding), "{length} bytes with a one at {cut}");
        }
    }
}

#[test]
fn a_first_packet_is_as_long_as_its_datagram_allows() {
    for datagram in HEADER_BYTES + 9 + 7..3_000 {
        let most = first_bytes_max(datagram);
        let [fits, more] = [most, most + 1].map(|task| HEADER_BYTES + task + trailer_bytes(task));
        assert!(fits <= datagram && datagram < more, "{most} bytes in {datagram}");
    }
    assert_eq!(first_bytes_max(HEADER_BYTES), 0);
    let largest = [HEADER_BYTES, 1_472, 65_507].map(payload_bytes_max);
    assert_eq!(largest, [0, 1_472 - HEADER_BYTES, MAX_PAYLOAD_BYTES]);
}

#[test]
fn a_body_of_another_length_is_not_written() {
    let mut out = [0; 200];
    for (length, has, needs) in [(20, 19, 20), (8, 8, 0)] {
        let (packet, _) = packet(Kind::Submit, length, &mut Numbers(&[7; 96]));
        assert_eq!(encode(&packet, &vec![0; has], &mut out), Err(EncodeError::Body { needs, has }));
    }
}

#[test]
fn bytes_that_are_few_or_impossibly_many_are_not_said_to_be_elsewhere() {
    for (len, place) in [(8, Place::AtClient), (u16::MAX, Place::Ahead { slice: SliceId(1), ticket: 2 })] {
        let payload = Payload { len, inline: [1; 8], handle: Handle::NONE };
        let packet = Packet::Dispatch(Dispatch { place, payload, ..Dispatch::default() });
        assert_eq!(encode(&packet, &[], &mut [0; 200]), Err(EncodeError::PayloadLength), "{len}");
    }
}

#[test]
fn a_payload_is_as_long_as_its_descriptor_says_unless_it_is_in_the_header() {
    let large = |len, total| Payload { len, inline: large_descriptor(&vec![7; total]), handle: Handle(1) };
    let short = Payload { len: 8, inline: [0xff; 8], handle: Handle::NONE };
    let payloads = [short, large(9, 9), large(9, 500)];
    let found = payloads.map(|payload| (payload.total(), payload.has_more()));
    assert_eq!(found, [(8, false), (9, false), (500, true)]);
}

#[test]
fn what_has_a_payload_can_be_pointed_at_other_bytes() {
    for kind in Kind::ALL {
        let (mut packet, _) = packet(kind, 20, &mut Numbers(&[7; 96]));
        assert_eq!(packet.name(), kind.name());
        if let Some(payload) = packet.payload_mut() {
            payload.handle = Handle(9);
        }
        let carries = matches!(kind, Kind::Submit | Kind::Dispatch | Kind::Reply | Kind::Part);
        assert_eq!(packet.payload().map(|payload| payload.handle), carries.then_some(Handle(9)), "{kind:?}");
    }
}

#[test]
fn each_reason_of_a_refusal_says_what_to_do() {
    for reason in RejectReason::ALL {
        assert!(reason.to_string().contains(": "), "{reason:?}");
    }
}

#[test]
fn bytes_behind_a_short_payloads_end_are_not_written() {
    let payload = Payload { len: 7, inline: [1; 8], handle: Handle::NONE };
    let packet = Packet::Submit(Submit { payload, ..Submit::default() });
    assert_eq!(encode(&packet, &[], &mut [0; 200]), Err(EncodeError::Padding));
}

#[test]
fn a_slot_names_its_task() {
    let task = TaskId { incarnation: Incarnation(u64::MAX - 1), sequence: Serial(7) };
    let slot = [&slot_head(task)[..], b"bytes"].concat();
    assert_eq!(read_slot(&slot), Some((task, &b"bytes"[..])));
    assert_eq!(read_slot(&slot[..SLOT_HEAD_BYTES - 1]), None);
}

#[test]
fn the_checksum_is_the_usual_crc_32() {
    assert_eq!(large_descriptor(b"123456789"), [0, 0, 0, 9, 0xcb, 0xf4, 0x39, 0x26]);
}

#[test]
fn a_job_makes_no_packet_larger_in_memory() {
    let [job, dispatch, packet] = [size_of::<TaskJob>(), size_of::<Dispatch>(), size_of::<Packet>()];
    assert!(job <= dispatch && packet <= dispatch + 8, "{job}, {dispatch} and {packet} bytes");
}
