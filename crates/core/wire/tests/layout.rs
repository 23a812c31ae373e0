//! Compares the layout byte by byte with a golden file, and checks the reason for which bytes are refused.

mod common;

use std::fmt::Write;

use common::{Numbers, packet};
use sluice_wire::{Kind, Packet, ParseError, Place, SliceId, encode, encoded_len, parse};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packets.hex");

/// Offsets, as in `docs/manual/wire.md`.
const VERSION: usize = 0;
const KIND: usize = 1;
const HEADER_LENGTH: usize = 2;
const CODE: usize = 3;
const KEY: usize = 8;
const GENERATION: usize = 20;
const LENGTH: usize = 38;
const INLINE: usize = 40;
const SLICE: usize = 66;
const WORDS: usize = 68;

/// One packet of each kind, with a different number in each byte of its fields; the last ones are large.
fn samples() -> Vec<(&'static str, Vec<u8>)> {
    let numbers: Vec<u8> = (0x11..=0xff).collect();
    let samples = Kind::ALL.map(|kind| (kind.name(), packet(kind, 5, &mut Numbers(&numbers))));
    let large =
        [("SUBMIT-LARGE", Kind::Submit), ("PART-LARGE", Kind::Part), ("DISPATCH-LARGE", Kind::Dispatch)]
            .map(|(name, kind)| (name, packet(kind, 12, &mut Numbers(&numbers))));
    samples.into_iter().chain(large).map(|(name, (packet, body))| (name, bytes_of(&packet, &body))).collect()
}

fn bytes_of(packet: &Packet, body: &[u8]) -> Vec<u8> {
    let mut out = vec![0; encoded_len(packet)];
    encode(packet, body, &mut out).unwrap();
    out
}

fn sample(kind: Kind) -> Vec<u8> {
    samples().into_iter().find(|(name, _)| *name == kind.name()).unwrap().1
}

/// How many tasks the sample of a JOB has.
fn job_tasks() -> u8 {
    sample(Kind::Job)[CODE]
}

/// A sample with some bytes replaced.
fn with(kind: Kind, at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut sample = sample(kind);
    sample[at..at + bytes.len()].copy_from_slice(bytes);
    sample
}

/// `BLESS=1 cargo test -p sluice-wire` writes the file anew. The fuzz targets start from it.
#[test]
fn each_kind_has_the_bytes_of_the_golden_file() {
    let mut found = String::new();
    for (name, bytes) in samples() {
        write!(found, "{name} ").unwrap();
        for byte in bytes {
            write!(found, "{byte:02x}").unwrap();
        }
        found.push('\n');
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(GOLDEN, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(GOLDEN).unwrap());
}

#[test]
fn each_reason_is_given_for_what_it_names() {
    let cases = [
        (vec![], ParseError::Short),
        (sample(Kind::Token)[..87].to_vec(), ParseError::Short),
        (with(Kind::Submit, LENGTH, &[0, 9]), ParseError::Short),
        ([sample(Kind::Submit), vec![0]].concat(), ParseError::Long),
        ([sample(Kind::Token), vec![0]].concat(), ParseError::Long),
        (with(Kind::Token, VERSION, &[2]), ParseError::Version),
        (with(Kind::Token, KIND, &[0]), ParseError::Kind),
        (with(Kind::Token, KIND, &[15]), ParseError::Kind),
        (with(Kind::Token, HEADER_LENGTH, &[89]), ParseError::HeaderLength),
        (with(Kind::Submit, LENGTH, &[0xff, 0xff]), ParseError::PayloadLength),
        (with(Kind::Submit, INLINE + 5, &[1]), ParseError::Padding),
        (with(Kind::Token, CODE, &[8]), ParseError::Code),
        (with(Kind::Reply, CODE, &[5]), ParseError::Code),
        (with(Kind::Answer, CODE, &[2]), ParseError::Code),
        (with(Kind::Reject, CODE, &[8]), ParseError::Code),
        (with(Kind::Sweep, CODE, &[4]), ParseError::Code),
        (with(Kind::Update, CODE, &[3]), ParseError::Code),
        (with(Kind::Need, CODE, &[2]), ParseError::Code),
        (with(Kind::Part, CODE, &[2]), ParseError::Code),
        (with(Kind::Dispatch, CODE, &[1]), ParseError::PayloadLength),
        (with(Kind::Dispatch, CODE, &[2]), ParseError::PayloadLength),
        (with(Kind::Dispatch, CODE, &[3]), ParseError::Code),
        (with(Kind::Sweep, WORDS + 13, &[1]), ParseError::Range),
        (with(Kind::Reject, WORDS, &[0, 0, 0, 5]), ParseError::Range),
        (with(Kind::Job, CODE, &[1]), ParseError::Code),
        (with(Kind::Job, CODE, &[6]), ParseError::Code),
        (with(Kind::Job, CODE, &[job_tasks() - 1]), ParseError::PayloadLength),
        (with(Kind::Job, WORDS, &[0, 0, 0, 0x19]), ParseError::Range),
        (with(Kind::Job, WORDS, &[1]), ParseError::Range),
        (with(Kind::Job, WORDS + 3, &[0]), ParseError::Padding),
        (with(Kind::Job, LENGTH, &[0, 8]), ParseError::Long),
    ];
    for (at, (bytes, reason)) in cases.into_iter().enumerate() {
        assert_eq!(parse(&bytes).unwrap_err(), reason, "case {at}");
    }
}

#[test]
fn a_field_that_the_kind_does_not_use_must_be_zero() {
    let cases = [
        (Kind::Submit, CODE),
        (Kind::Dispatch, KEY),
        (Kind::Token, LENGTH + 1),
        (Kind::Submit, WORDS + 14),
        (Kind::Probe, WORDS),
        (Kind::Notice, GENERATION),
        (Kind::Reject, SLICE),
        (Kind::Empty, WORDS + 8),
        (Kind::Update, KEY),
        (Kind::Job, INLINE),
        (Kind::Job, WORDS + 15),
    ];
    for (kind, at) in cases {
        assert_eq!(parse(&with(kind, at, &[1])).unwrap_err(), ParseError::Unused, "{kind:?} {at}");
    }
}

#[test]
fn two_unused_fields_do_not_make_up_for_each_other() {
    let mut bytes = with(Kind::Token, WORDS + 4, &[1]);
    bytes[WORDS + 12] = 1;
    assert_eq!(parse(&bytes).unwrap_err(), ParseError::Unused);
}

#[test]
fn a_closed_answer_holds_no_counters_a_sweep_without_a_token_names_none_and_idleness_has_no_mean() {
    let cases = [
        (Kind::Answer, 0, WORDS),
        (Kind::Sweep, 0, GENERATION),
        (Kind::Update, 0, WORDS),
        (Kind::Update, 1, WORDS),
    ];
    for (kind, code, at) in cases {
        let mut bytes = with(kind, CODE, &[code]);
        bytes[at + 3] = 1;
        assert_eq!(parse(&bytes).unwrap_err(), ParseError::Unused, "{kind:?}");
    }
}

#[test]
fn a_dispatch_names_a_slot_only_when_its_bytes_were_written_ahead() {
    let ahead = with(Kind::Dispatch, LENGTH, &[0, 99]);
    for (code, ticket, expected) in [
        (1, 7, Ok(Place::Ahead { slice: SliceId(0), ticket: 7 })),
        (2, 7, Err(ParseError::Unused)),
        (2, 0, Ok(Place::AtClient)),
    ] {
        let mut bytes = ahead.clone();
        (bytes[CODE], bytes[KEY + 3]) = (code, ticket);
        let place = parse(&bytes).map(|(packet, _)| match packet {
            Packet::Dispatch(dispatch) => dispatch.place,
            other => panic!("{other:?}"),
        });
        assert_eq!(place, expected, "code {code}");
    }
}

#[test]
fn each_reason_has_a_name_of_its_own() {
    for (at, reason) in ParseError::ALL.iter().enumerate() {
        assert!(ParseError::ALL[..at].iter().all(|earlier| earlier.name() != reason.name()));
    }
}
