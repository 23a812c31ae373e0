//! A capture of every kind of packet over both families, and a table of its content, for
//! `scripts/rdma-check`: other programs read the capture and must find what the table says.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use sluice_wire::Nanos;
use sluice_wire::pcap;
use sluice_wire::roce::{
    Acknowledge, Frame, Link, NakCode, PORT, Packet, Path, Psn, Qpn, Rkey, Syndrome, Transport, View, Write,
    encode, encode_frame, encoded_len, frame_len,
};

const LINK: Link = Link { from: [2, 0, 0, 0, 0, 1], to: [2, 0, 0, 0, 0, 2] };
/// Columns of the table, one line per frame; a field that a packet does not have is empty.
const COLUMNS: &str = "source\tdestination\tsource_port\topcode\tpadding\tqpn\tack_request\tpsn\taddress\trkey\tlength\tpayload\t\
     syndrome\tmessages\ticrc";

fn paths() -> [Path; 2] {
    let v4 = [([10, 1, 2, 3], 49_152).into(), ([10, 1, 2, 254], PORT).into()];
    let v6: [SocketAddr; 2] = [
        ([0xfd00, 0, 0, 0x17, 0, 0, 0, 1], 65_535).into(),
        ([0xfd00, 0, 0, 0x17, 0, 0, 0, 0xfe], PORT).into(),
    ];
    [v4, v6].map(|[from, to]| Path::new(from, to).expect("one family"))
}

fn packets() -> Vec<(Packet, Vec<u8>)> {
    let lengths = [0, 1, 2, 3, 4, 64, 255, 256, 257, 640, 1_024, 2_048, 4_095, 4_096];
    let writes = lengths.into_iter().enumerate().flat_map(|(at, length)| {
        [Transport::Uc, Transport::Rc].map(|transport| {
            let write = Write {
                transport,
                to: Qpn::new(0xab_cdef - at as u32).expect("24 bits"),
                psn: Psn::new(0xff_fff8 + at as u32),
                ack_request: transport == Transport::Rc && at % 2 == 0,
                address: 0x1122_3344_5566_7788 + at as u64,
                rkey: Rkey(0x99aa_bbcc + at as u32),
            };
            let payload = (0..length).map(|byte| (byte * 7 + at) as u8).collect();
            (Packet::Write(write), payload)
        })
    });
    let syndromes = [
        Syndrome::ACK,
        Syndrome::Ack { credits: 3 },
        Syndrome::NotReady { timer: 14 },
        Syndrome::Nak(NakCode::Sequence),
        Syndrome::Nak(NakCode::InvalidRequest),
        Syndrome::Nak(NakCode::RemoteAccess),
        Syndrome::Nak(NakCode::RemoteOperation),
    ];
    let answers = syndromes.into_iter().map(|syndrome| {
        let to = Qpn::new(0x12_3456).expect("24 bits");
        let (psn, messages) = (Psn::new(0xfe_dcba), Psn::new(0x65_4321));
        (Packet::Acknowledge(Acknowledge { to, psn, syndrome, messages }), Vec::new())
    });
    writes.chain(answers).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a string grows");
        text
    })
}

/// One line of the table.
fn row(path: &Path, packet: &Packet, payload: &[u8], transport: &[u8]) -> String {
    let ends = format!("{}\t{}\t{}", ip(path.from()), ip(path.to()), path.from().port);
    let padding = payload.len().next_multiple_of(4) - payload.len();
    let middle = match packet {
        Packet::Write(write) => {
            let opcode = if write.transport == Transport::Rc { 0x0a } else { 0x2a };
            let request = u8::from(write.ack_request);
            let Write { to, psn, address, rkey: Rkey(rkey), .. } = write;
            let length = payload.len();
            let payload = hex(payload);
            format!("{opcode}\t{padding}\t{to}\t{request}\t{psn}\t{address}\t{rkey}\t{length}\t{payload}\t\t")
        }
        Packet::Acknowledge(Acknowledge { to, psn, messages, .. }) => {
            format!("{}\t0\t{to}\t0\t{psn}\t\t\t\t\t{}\t{messages}", 0x11, transport[12])
        }
    };
    format!("{ends}\t{middle}\t{}", hex(&transport[transport.len() - 4..]))
}

fn ip(at: sluice_wire::Endpoint) -> String {
    SocketAddr::from(at).ip().to_string()
}

#[test]
fn a_capture_holds_every_kind_of_packet_and_reads_back() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (mut capture, mut table) = (pcap::FILE_HEADER.to_vec(), format!("{COLUMNS}\n"));
    for (number, (path, (packet, payload))) in
        paths().iter().flat_map(|path| packets().into_iter().map(move |packet| (path, packet))).enumerate()
    {
        let mut transport = vec![0; encoded_len(&packet, payload.len())];
        encode(&packet, &payload, Some(path), &mut transport).expect("a legal packet");
        let mut frame = vec![0; frame_len(path, transport.len())];
        encode_frame(&LINK, path, &transport, &mut frame).expect("there is room");
        let read = Frame::parse(&frame).expect("well formed");
        let view = View::parse(read.transport).expect("well formed");
        assert!(read.icrc_holds(&view) && view.icrc_holds(path));
        capture.extend(pcap::record_header(Nanos::from_micros(number as u64), frame.len() as u32));
        capture.extend(&frame);
        writeln!(table, "{}", row(path, &packet, &payload, &transport)).expect("a string grows");
    }
    fs::write(folder.join("roce.pcap"), capture).expect("the folder is there");
    fs::write(folder.join("roce.tsv"), table).expect("the folder is there");
}
