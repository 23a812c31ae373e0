//! Reliable pairs under losses: Rain's engine on one end, the endpoint on the other, and between them a
//! link that loses WRITEs and NAKs alike. Lost WRITEs are not sent again, but a pair must never stop for
//! ever.

use std::collections::VecDeque;
use std::net::SocketAddr;

use proptest::prelude::*;
use sluice_host::rdma::{Endpoint, Mtu, NAK_EVERY, PairSpec, RegionSpec};
use sluice_switch::rain::Rain;
use sluice_switch::{Arrival, Config, Program, Verdict};
use sluice_wire::roce::{Acknowledge, NakCode, Path, Syndrome, Transport, Write, encode_write};
use sluice_wire::tables::{ClientRow, RingRow, ServerRow, SliceRow, TableAnswer, TableOp};
use sluice_wire::{
    Attempt, ClientId, Epoch, Handle, Incarnation, Key, Nanos, Packet, Payload, Psn, Qpn, Rkey, Serial,
    ServerId, SliceId, Submit, TaskId, TaskType,
};

const KEY: Key = Key(7);
const SLOTS: u32 = 64;
const SLOT_BYTES: u32 = 128;
/// Just before the numbers wrap.
const FIRST: Psn = Psn::new(0xff_fff0);

struct Pair {
    rain: Rain,
    endpoint: Endpoint,
    path: Path,
    reliable: bool,
    sequence: u32,
    /// The number of later WRITEs after which a WRITE or NAK takes effect.
    delay: usize,
    writes: VecDeque<Vec<u8>>,
    naks: VecDeque<Option<Psn>>,
    lost: u32,
    placed: u32,
}

impl Pair {
    fn new(reliable: bool, delay: usize) -> Self {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let path = Path::new(at("10.0.0.1:4791"), at("10.0.0.2:4791")).expect("both are IPv4");
        let config = Config { servers: 1, slices: 1, ..Config::full(Epoch(1)) };
        let mut rain = Rain::new(config);
        let row = SliceRow {
            open: true,
            limit: config.tasks_per_slice,
            retry_after: Nanos(0),
            ..SliceRow::default()
        };
        let client = ClientRow { key: KEY, at: path.from(), incarnation: Incarnation(1) };
        let server = ServerRow { at: path.to(), qpn: Qpn(5), reliable, icrc: true };
        let ring = RingRow { rkey: Rkey(1), address: 0, slots: SLOTS, slot_bytes: SLOT_BYTES };
        for op in [
            TableOp::SetSlice(SliceId(0), row),
            TableOp::SetType(TaskType(1), Some(SliceId(0))),
            TableOp::SetClient(ClientId(0), Some((client, Serial(0)))),
            TableOp::SetServer(ServerId(0), Some((server, FIRST))),
            TableOp::SetRing(SliceId(0), ServerId(0), Some(ring)),
        ] {
            rain.table(op);
        }
        let mut endpoint = Endpoint::new();
        let bytes = (SLOTS * SLOT_BYTES) as usize;
        endpoint.register(RegionSpec { rkey: Rkey(1), address: 0, bytes }).expect("one region");
        endpoint.connect(PairSpec {
            number: Qpn(5),
            peer_number: Qpn(0),
            peer: None,
            transport: if reliable { Transport::Rc } else { Transport::Uc },
            first: FIRST,
            mtu: Mtu::B256,
            icrc: true,
        });
        let (writes, naks) = (VecDeque::new(), VecDeque::new());
        Self { rain, endpoint, path, reliable, sequence: 0, delay, writes, naks, lost: 0, placed: 0 }
    }

    /// One more waiting task. Its WRITE, and the NAK that arrives now, may be lost. Returns whether a WRITE
    /// was placed.
    fn task(&mut self, loses_write: bool, loses_nak: bool) -> bool {
        let write = self.write();
        self.lost += u32::from(loses_write);
        self.writes.push_back(if loses_write { Vec::new() } else { write });
        let due = if self.writes.len() > self.delay { self.writes.pop_front() } else { None };
        let (placed, nak) = due.map_or((false, None), |bytes| self.arrives(&bytes));
        self.naks.push_back(nak.filter(|_| !loses_nak));
        if self.naks.len() > self.delay
            && let Some(Some(expected)) = self.naks.pop_front()
        {
            self.rain.pass(Nanos(0), Arrival::Nak { from: self.path.to(), server: ServerId(0), expected });
        }
        self.placed += u32::from(placed);
        placed
    }

    /// The number that the switch uses next.
    fn next(&mut self) -> Psn {
        match self.rain.table(TableOp::ReadServer(ServerId(0))) {
            TableAnswer::Server(state) => state.next,
            other => panic!("{other:?}"),
        }
    }

    fn write(&mut self) -> Vec<u8> {
        self.sequence += 1;
        let inline = (64_u64 << 32).to_be_bytes();
        let submit = Submit {
            epoch: Epoch(1),
            key: KEY,
            task: TaskId { incarnation: Incarnation(1), sequence: Serial(self.sequence) },
            attempt: Attempt(1),
            task_type: TaskType(1),
            payload: Payload { len: 64, inline, handle: Handle::NONE },
            ..Submit::default()
        };
        let (from, packet) = (self.path.from(), Packet::Submit(submit));
        let verdict = self.rain.pass(Nanos(0), Arrival::Wire { from, packet, room: true });
        let Verdict::Ahead(ahead) = verdict else { panic!("it waits: {verdict:?}") };
        let replica = self.rain.replica(&ahead, 0).expect("its server is there");
        let write = Write {
            transport: if self.reliable { Transport::Rc } else { Transport::Uc },
            to: replica.qpn,
            psn: replica.psn,
            ack_request: false,
            address: replica.address,
            rkey: replica.rkey,
        };
        let mut bytes = vec![0; 256];
        let length = encode_write(&write, &[1; 64], Some(&self.path), &mut bytes).expect("there is room");
        bytes.truncate(length);
        bytes
    }

    fn arrives(&mut self, bytes: &[u8]) -> (bool, Option<Psn>) {
        if bytes.is_empty() {
            return (false, None);
        }
        let received = self.endpoint.receive(bytes, &self.path);
        assert!(received.failed.is_none(), "losses put no pair in error: {received:?}");
        let nak = match received.answer {
            Some(Acknowledge { psn, syndrome: Syndrome::Nak(NakCode::Sequence), .. }) => Some(psn),
            _ => None,
        };
        (received.outcome.is_ok(), nak)
    }
}

/// WRITEs that are not placed, per lost WRITE, if one in `one_in` is lost.
fn missed_by_lost(reliable: bool, delay: usize, one_in: u32) -> f64 {
    let mut pair = Pair::new(reliable, delay);
    let tasks = 4_000;
    for turn in 0..tasks {
        pair.task(turn % one_in == one_in / 2, false);
    }
    f64::from(tasks - delay as u32 - pair.placed) / f64::from(pair.lost)
}

#[test]
fn a_loss_costs_one_write_and_over_a_reliable_pair_those_on_the_way_as_well() {
    for (delay, reliable_costs) in [(0, 2.0), (5, 12.0), (15, 32.0)] {
        assert!((missed_by_lost(false, delay, 200) - 1.0).abs() < 0.1);
        let costs = missed_by_lost(true, delay, 200);
        assert!((costs - reliable_costs).abs() < 0.5, "{costs} with {delay} on each way");
    }
}

proptest! {
    #[test]
    fn whatever_was_lost_a_pair_takes_writes_again_soon_after(
        reliable in any::<bool>(),
        delay in 0_usize..20,
        losses in prop::collection::vec((prop::bool::weighted(0.3), prop::bool::weighted(0.5)), 1..600),
    ) {
        let mut pair = Pair::new(reliable, delay);
        for (write, nak) in losses {
            pair.task(write, nak);
        }
        // The NAK may have been lost, and the last one counted until a few more numbers were sent. On a
        // long link it is repeated while the packet that it asked for arrives, and sets the switch back a
        // second time.
        let soon = 3 * NAK_EVERY as usize + 4 * delay + 2;
        for _ in 0..soon {
            pair.task(false, false);
        }
        for _ in 0..100 {
            prop_assert!(pair.task(false, false), "nothing is lost any more");
        }
    }

    #[test]
    fn the_very_first_writes_and_the_same_number_again_and_again_may_be_lost(times in 1_usize..6) {
        let mut pair = Pair::new(true, 0);
        for _ in 0..times {
            // Each WRITE under the number for which the server waits is lost.
            let expected = pair.endpoint.expected(Qpn(5)).expect("it is connected");
            let mut lost = false;
            for _ in 0..4 * NAK_EVERY {
                let next = pair.next();
                let loses = !lost && next == expected;
                lost |= loses;
                pair.task(loses, false);
            }
        }
        for _ in 0..2 * NAK_EVERY {
            pair.task(false, false);
        }
        prop_assert!(pair.task(false, false));
    }
}
