//! Holds this build to the packets of earlier versions: each is read, and written with the same bytes. The
//! files in `frozen` are never written anew. A version that is no longer spoken leaves with its file.

use sluice_wire::{Packet, encode, encoded_len, parse};

/// One packet of each kind, and some with long payloads: its name, and its bytes in hexadecimal.
const VERSION_1: &str = include_str!("frozen/version-1.hex");

fn packets(file: &str) -> impl Iterator<Item = (&str, Vec<u8>)> {
    let byte = |hex: &str, at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    file.lines().map(move |line| {
        let (name, hex) = line.split_once(' ').expect("a name and bytes");
        (name, (0..hex.len()).step_by(2).map(|at| byte(hex, at)).collect())
    })
}

#[test]
fn packets_of_version_1_are_read_and_written_with_the_same_bytes() {
    assert_eq!(packets(VERSION_1).count(), 17);
    for (name, bytes) in packets(VERSION_1) {
        let (packet, body): (Packet, &[u8]) = parse(&bytes).unwrap_or_else(|why| panic!("{name}: {why}"));
        let mut written = vec![0; encoded_len(&packet)];
        encode(&packet, body, &mut written).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(written, bytes, "{name}");
    }
}
