//! Where each field stands in the header, and which kind uses which fields.
//!
//! All kinds have one layout: so a TOKEN or a SUBMIT becomes a DISPATCH in place, and a switch parses one
//! header. A field that a kind does not use must be zero, which is checked. `docs/manual/wire.md` is
//! written from these tables.

use core::mem::{offset_of, size_of};

use zerocopy::byteorder::network_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::roce::ICRC_BYTES;

/// The version of the protocol that this crate speaks.
pub const VERSION: u8 = 1;

/// Length of the header, which carries the inline payload bytes.
pub const HEADER_BYTES: usize = size_of::<Header>();

/// How many payload bytes a queue entry in the switch holds (Rain §4).
pub const INLINE_BYTES: usize = 8;

/// The longest payload of any kind: what remains of the largest UDP datagram over IPv4 for a task and the
/// trailer behind it. Links allow less.
pub const MAX_PAYLOAD_BYTES: usize = first_bytes_max(65_507);

/// The trailer of a task of so many bytes: how many zeros follow the bytes in a SUBMIT.
///
/// A switch writes a task ahead as a `RoCEv2` WRITE, which ends with up to three bytes of padding and four
/// of checksum. A chip cannot append bytes to a packet, so a large task's SUBMIT brings them.
#[inline]
pub const fn trailer_bytes(task: usize) -> usize {
    if task > INLINE_BYTES { task.next_multiple_of(4) - task + ICRC_BYTES } else { 0 }
}

/// How many bytes of a payload fit a datagram of at most so many bytes, in any kind but SUBMIT.
pub const fn payload_bytes_max(datagram: usize) -> usize {
    let behind = datagram.saturating_sub(HEADER_BYTES);
    if behind < MAX_PAYLOAD_BYTES { behind } else { MAX_PAYLOAD_BYTES }
}

/// How many bytes of a large task a SUBMIT brings if the datagram has at most so many bytes.
pub const fn first_bytes_max(datagram: usize) -> usize {
    (datagram.saturating_sub(HEADER_BYTES) / 4 * 4).saturating_sub(ICRC_BYTES)
}

/// The header, as its bytes lie on the wire. All numbers are big endian.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub(crate) struct Header {
    pub(crate) version: u8,
    pub(crate) kind: u8,
    pub(crate) own_length: u8,
    pub(crate) code: u8,
    pub(crate) epoch: U32,
    pub(crate) key: U32,
    pub(crate) task_type: U16,
    pub(crate) priority: u8,
    pub(crate) constraints: u8,
    pub(crate) client: U16,
    pub(crate) worker: U16,
    pub(crate) generation: U32,
    pub(crate) incarnation: U64,
    pub(crate) sequence: U32,
    pub(crate) attempt: U16,
    pub(crate) length: U16,
    pub(crate) inline: [u8; INLINE_BYTES],
    pub(crate) address: [u8; 16],
    pub(crate) port: U16,
    pub(crate) slice: U16,
    pub(crate) words: [U32; 5],
}

impl Header {
    /// A header of this kind with all other fields zero.
    pub(crate) fn empty(kind: Kind) -> Self {
        let mut header = Self::new_zeroed();
        header.version = VERSION;
        header.kind = kind as u8;
        header.own_length = HEADER_BYTES as u8;
        header
    }

    /// Whether every field that `kind` does not use is zero.
    #[inline]
    pub(crate) fn unused_is_zero(&self, kind: Kind) -> bool {
        const { assert!(HEADER_BYTES.is_multiple_of(4), "the header is whole words") };
        let (words, _) = self.as_bytes().as_chunks();
        let (mask, _) = UNUSED[kind as usize - 1].as_chunks();
        words
            .iter()
            .zip(mask)
            .fold(0, |found, (word, mask)| found | (u32::from_ne_bytes(*word) & u32::from_ne_bytes(*mask)))
            == 0
    }
}

/// The kind of a packet; the number is its code on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Client to switch: a task.
    Submit = 1,
    /// Switch to worker: a task.
    Dispatch = 2,
    /// Worker to client: the answer to a task.
    Reply = 3,
    /// Worker to switch: room for one more task.
    Token = 4,
    /// Worker to switch: asks for its counters.
    Probe = 5,
    /// Switch to worker: its counters.
    Answer = 6,
    /// Switch to client: the task was not taken.
    Reject = 7,
    /// Switch to client: the switch has another epoch.
    Notice = 8,
    /// Asks the other host for missing bytes of a task or reply.
    Need = 9,
    /// Missing bytes, which a NEED asked for.
    Part = 10,
    /// Controller to switch, where it recirculates.
    Sweep = 11,
    /// Switch to worker: no task waits.
    Empty = 12,
    /// A rack's switch to its spine: news of the rack.
    Update = 13,
    /// Client to switch: several tasks in one submission.
    Job = 14,
}

impl Kind {
    /// All kinds, in the order of their codes, which start at 1.
    pub const ALL: [Self; 14] = [
        Self::Submit,
        Self::Dispatch,
        Self::Reply,
        Self::Token,
        Self::Probe,
        Self::Answer,
        Self::Reject,
        Self::Notice,
        Self::Need,
        Self::Part,
        Self::Sweep,
        Self::Empty,
        Self::Update,
        Self::Job,
    ];

    /// The kind's name, as the protocol writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Submit => "SUBMIT",
            Self::Dispatch => "DISPATCH",
            Self::Reply => "REPLY",
            Self::Token => "TOKEN",
            Self::Probe => "PROBE",
            Self::Answer => "ANSWER",
            Self::Reject => "REJECT",
            Self::Notice => "NOTICE",
            Self::Need => "NEED",
            Self::Part => "PART",
            Self::Sweep => "SWEEP",
            Self::Empty => "EMPTY",
            Self::Update => "UPDATE",
            Self::Job => "JOB",
        }
    }

    /// The kind with this code on the wire.
    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code).wrapping_sub(1)).copied()
    }
}

/// A field's name and place.
struct Field {
    name: &'static str,
    offset: usize,
    bytes: usize,
}

macro_rules! fields {
    ($($name:ident: $bytes:expr),* $(,)?) => {
        &[$(Field { name: stringify!($name), offset: offset_of!(Header, $name), bytes: $bytes }),*]
    };
}

/// The fields whose use depends on the kind. Version, kind and header length stand before them in all
/// kinds.
const FIELDS: &[Field] = fields![
    code: 1, epoch: 4, key: 4, task_type: 2, priority: 1, constraints: 1, client: 2, worker: 2, generation: 4,
    incarnation: 8, sequence: 4, attempt: 2, length: 2, inline: INLINE_BYTES, address: 16, port: 2, slice: 2,
];

/// The fields that one kind uses.
struct Uses {
    kind: Kind,
    /// Names from [`FIELDS`], separated by spaces, in their order.
    fields: &'static str,
    /// The meanings of the five words at the end; empty for unused words. A word that is used in halves says
    /// "upper" for the one, and "lower" for the other if that is used too.
    words: [&'static str; 5],
    /// The meaning of the code, if the kind has one.
    #[cfg_attr(not(test), expect(dead_code, reason = "only the document shows it"))]
    codes: &'static str,
}

const BUDGET: &str = "upper half: budget, 1,024 ns";
const BUDGET_AND_OCCUPANCY: &str = "upper half: budget, 1,024 ns; lower half: occupancy";

const USES: [Uses; 14] = [
    Uses {
        kind: Kind::Submit,
        fields: "epoch key task_type priority constraints client incarnation sequence attempt length inline",
        words: ["", "", "", BUDGET, "age, 16,384 ns"],
        codes: "",
    },
    Uses {
        kind: Kind::Dispatch,
        fields: "code epoch key task_type priority constraints client worker generation incarnation sequence \
                 attempt length inline address port slice",
        words: ["seen", "sent", "wait, ns", BUDGET_AND_OCCUPANCY, "age, 16,384 ns"],
        codes: "0 the bytes are here, 1 written ahead (key is the ticket), 2 with the client (else key and slice are zero)",
    },
    Uses {
        kind: Kind::Reply,
        fields: "code epoch task_type client worker incarnation sequence attempt length inline address port",
        words: ["wait at the worker, ns", "service, ns", "wait in the switch, ns", "load", ""],
        codes: "0 done, 1 failed, 2 ran but the reply is gone, 3 too old to tell whether it ran, \
                4 late: it did not run",
    },
    Uses {
        kind: Kind::Token,
        fields: "code epoch key worker generation",
        words: ["issued", "", "nonce", "", ""],
        codes: "its rank: 0 to 7 tasks stand before it at its worker",
    },
    Uses {
        kind: Kind::Probe,
        fields: "epoch key worker generation",
        words: ["", "", "nonce", "", ""],
        codes: "",
    },
    Uses {
        kind: Kind::Answer,
        fields: "code epoch worker generation",
        words: ["seen", "sent", "nonce", "", ""],
        codes: "0 closed (seen and sent are zero), 1 open",
    },
    Uses {
        kind: Kind::Reject,
        fields: "code epoch task_type client incarnation sequence attempt",
        words: [
            "tasks behind it in its JOB that are not taken either",
            "busy: tasks that may wait",
            "retry after, ns",
            "busy: clients",
            "",
        ],
        codes: "0 queue full, 1 no room for the payload, 2 no workers, 3 unknown type, 4 stale tokens, \
                5 labels of no kind, 6 busy, 7 late",
    },
    Uses {
        kind: Kind::Notice,
        fields: "epoch client incarnation sequence attempt",
        words: ["", "", "", "", ""],
        codes: "",
    },
    Uses {
        kind: Kind::Need,
        fields: "code client worker incarnation sequence attempt address port",
        words: ["offset", "length", "", "", ""],
        codes: "0 a task's bytes, 1 a reply's",
    },
    Uses {
        kind: Kind::Part,
        fields: "code client worker incarnation sequence attempt length inline",
        words: ["offset", "", "", "", ""],
        codes: "0 a task's bytes, 1 a reply's",
    },
    Uses {
        kind: Kind::Sweep,
        fields: "code epoch worker generation slice",
        words: ["", "", "", "entries left, at most 65,535", ""],
        codes: "0 tokens, 1 tasks; + 2 when a token is carried (else worker and generation are zero)",
    },
    Uses {
        kind: Kind::Empty,
        fields: "epoch worker generation",
        words: ["seen", "sent", "", "", ""],
        codes: "",
    },
    Uses {
        kind: Kind::Update,
        fields: "code epoch worker generation slice",
        words: ["mean queue, 1/65,536 of a task", "", "", "", ""],
        codes: "0 idle workers, 1 none any more (the mean is zero in both), 2 the mean queue",
    },
    Uses {
        kind: Kind::Job,
        fields: "code epoch key task_type priority constraints client incarnation sequence attempt length",
        words: ["bytes of each task, 4 bits each, the first lowest", "", "", BUDGET, "age, 16,384 ns"],
        codes: "how many tasks, 2 to 5; length is 8 for each, behind the header, zero-padded",
    },
];

/// For each kind, ones in all bits of the header that must be zero.
static UNUSED: [[u8; HEADER_BYTES]; 14] = unused();

const fn unused() -> [[u8; HEADER_BYTES]; 14] {
    let mut masks = [[0; HEADER_BYTES]; 14];
    let mut kind = 0;
    while kind < USES.len() {
        assert!(USES[kind].kind as usize == kind + 1, "the table stands in the order of the codes");
        masks[kind] = unused_by(&USES[kind]);
        kind += 1;
    }
    masks
}

const fn unused_by(uses: &Uses) -> [u8; HEADER_BYTES] {
    let mut mask = [0; HEADER_BYTES];
    let mut field = 0;
    while field < FIELDS.len() {
        if !has_word(uses.fields.as_bytes(), FIELDS[field].name.as_bytes()) {
            fill(&mut mask, FIELDS[field].offset, FIELDS[field].bytes);
        }
        field += 1;
    }
    let mut word = 0;
    while word < uses.words.len() {
        let (meaning, at) = (uses.words[word].as_bytes(), offset_of!(Header, words) + 4 * word);
        if meaning.is_empty() {
            fill(&mut mask, at, 4);
        } else if has_word(meaning, b"upper") && !has_word(meaning, b"lower") {
            fill(&mut mask, at + 2, 2);
        }
        word += 1;
    }
    mask
}

const fn fill(mask: &mut [u8; HEADER_BYTES], offset: usize, bytes: usize) {
    let mut at = offset;
    while at < offset + bytes {
        mask[at] = 0xff;
        at += 1;
    }
}

/// Whether `word` is among the space-separated words of `text`.
const fn has_word(text: &[u8], word: &[u8]) -> bool {
    let mut start = 0;
    while start < text.len() {
        let mut end = start;
        while end < text.len() && text[end] != b' ' {
            end += 1;
        }
        let mut same = 0;
        while start + same < end && same < word.len() && text[start + same] == word[same] {
            same += 1;
        }
        if same == word.len() && start + same == end {
            return true;
        }
        start = end + 1;
    }
    false
}

#[cfg(test)]
mod tests {
    extern crate std;

    use core::fmt::Write;
    use std::string::String;

    use super::*;

    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/manual/wire.md");
    const BEGIN: &str = "<!-- tables -->\n";
    const MASKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../targets/ebpf/unused.h");
    const MASKS_HEAD: &str = "/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Per kind, ones where its header must be zero: words as they lie in the memory of a little-endian machine.
 * Written by a test: BLESS=1 cargo test -p sluice-wire
 */
#pragma once

#include \"wire.h\"

static const __u64 unused[KINDS][HEADER_BYTES / 8] = {
";
    const P4_MASKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../targets/p4/unused.p4");
    const P4_MASKS_HEAD: &str = "/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Per kind, ones where its header must be zero: entries of a table.
 * Written by a test: BLESS=1 cargo test -p sluice-wire
 */
";

    fn tables() -> String {
        let mut out = String::from("| offset | bytes | field | used by |\n|---:|---:|---|---|\n");
        for (offset, name) in [(0, "version"), (1, "kind"), (2, "header length")] {
            writeln!(out, "| {offset} | 1 | {name} | all |").unwrap();
        }
        for Field { name, offset, bytes } in FIELDS {
            let used = USES.iter().filter(|uses| uses.fields.split(' ').any(|field| field == *name));
            let used = used.map(|uses| uses.kind.name()).collect::<std::vec::Vec<_>>().join(", ");
            let name = name.replace('_', " ");
            writeln!(out, "| {offset} | {bytes} | {name} | {used} |").unwrap();
        }
        let words = offset_of!(Header, words);
        for (index, name) in ["first", "second", "third", "fourth", "fifth"].into_iter().enumerate() {
            writeln!(out, "| {} | 4 | {name} word | see below |", words + 4 * index).unwrap();
        }
        out.push_str("\n| kind | its code | first word | second | third | fourth | fifth | field `code` |\n");
        out.push_str("|---|---:|---|---|---|---|---|---|\n");
        for Uses { kind, words, codes, .. } in &USES {
            let words = words.join(" | ");
            writeln!(out, "| {} | {} | {words} | {codes} |", kind.name(), *kind as u8).unwrap();
        }
        out
    }

    fn masks() -> String {
        let mut out = String::from(MASKS_HEAD);
        for (uses, mask) in USES.iter().zip(&UNUSED) {
            writeln!(out, "\t/* {} */\n\t{{", uses.kind.name()).unwrap();
            for row in mask.as_chunks::<8>().0.chunks(3) {
                let words = row.iter().map(|word| std::format!("{:#018x},", u64::from_le_bytes(*word)));
                writeln!(out, "\t\t{}", words.collect::<std::vec::Vec<_>>().join(" ")).unwrap();
            }
            out.push_str("\t},\n");
        }
        out + "};\n"
    }

    fn p4_masks() -> String {
        let mut out = String::from(P4_MASKS_HEAD) + "#define UNUSED_FIELDS";
        for (uses, mask) in USES.iter().zip(&UNUSED) {
            let mut digits = String::new();
            for byte in mask {
                write!(digits, "{byte:02x}").unwrap();
            }
            let (high, low) = digits.split_at(digits.len() / 2);
            let bits = 4 * high.len();
            let kind = uses.kind as u8;
            write!(out, " \\\n    {kind}: is_unused({bits}w0x{high} ++ \\\n        {bits}w0x{low});")
                .unwrap();
        }
        out + "\n"
    }

    /// Compares a file with its expected content, or writes it if BLESS is set.
    fn check_or_bless(path: &str, now: &str) {
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(path, now).unwrap();
        } else {
            assert_eq!(std::fs::read_to_string(path).unwrap(), now, "{path}");
        }
    }

    #[test]
    fn every_reason_of_a_reject_is_in_the_table() {
        let codes = USES[Kind::Reject as usize - 1].codes;
        let named = codes.split(", ").filter(|code| code.starts_with(|first: char| first.is_ascii_digit()));
        assert_eq!(named.count(), crate::RejectReason::ALL.len(), "{codes}");
    }

    #[test]
    fn every_name_that_a_kind_uses_is_a_field() {
        for uses in &USES {
            for name in uses.fields.split(' ') {
                assert!(FIELDS.iter().any(|field| field.name == name), "{}: {name}", uses.kind.name());
            }
        }
    }

    #[test]
    fn the_fields_fill_the_header_without_gap_or_overlap() {
        let mut next = 3;
        for field in FIELDS {
            assert_eq!(field.offset, next, "{}", field.name);
            next += field.bytes;
        }
        assert_eq!(next, offset_of!(Header, words));
        assert_eq!(next + 20, HEADER_BYTES);
    }

    /// `BLESS=1 cargo test -p sluice-wire` writes the tables anew.
    #[test]
    fn the_document_shows_these_tables() {
        let document = std::fs::read_to_string(DOCUMENT).unwrap();
        let (text, _) = document.split_once(BEGIN).expect("the marker before the tables");
        check_or_bless(DOCUMENT, &[text, BEGIN, &tables()].concat());
    }

    #[test]
    fn the_xdp_program_has_these_masks() {
        check_or_bless(MASKS, &masks());
    }

    #[test]
    fn the_p4_program_has_these_masks() {
        check_or_bless(P4_MASKS, &p4_masks());
    }
}
