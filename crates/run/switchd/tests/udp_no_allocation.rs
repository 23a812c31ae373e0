//! The switch's thread allocates nothing per packet, also while it traces each task: a counting allocator
//! checks this.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;

use sluice_net::traces::{TraceEndpoint, Tracer};

use sluice_net::udp::{Socket, SocketOptions, Wait};
use sluice_switch::Config;
use sluice_switchd::switch::{SwitchConfig, SwitchDriver};
use sluice_wire::tables::{ClientRow, SliceRow, TableOp, WorkerRow};
use sluice_wire::{
    Attempt, ClientId, Epoch, Generation, Handle, Incarnation, Key, Nonce, Packet, Payload, Serial, SliceId,
    Submit, TaskId, TaskType, Token, WorkerId, encode, large_descriptor,
};

struct Counting;

thread_local! {
    /// How often this thread allocated.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const EPOCH: Epoch = Epoch(1);
const KEY: Key = Key(2);

fn socket() -> Socket {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Socket::bind(at, &SocketOptions::default()).expect("the loopback has free ports")
}

#[test]
fn thousands_of_tasks_pass_without_an_allocation() {
    assert_eq!(allocations(None), 0);
}

#[test]
fn what_a_span_needs_of_each_task_is_noted_without_an_allocation() {
    // Nobody is there: spans are dropped on the way.
    let endpoint = TraceEndpoint::found(Some("http://127.0.0.1:9"), None).expect("an address");
    let (tracer, _running) = Tracer::start(endpoint, NonZeroU32::MIN, "switch").expect("a thread");
    assert_eq!(allocations(Some(tracer)), 0);
}

/// How often the thread of a switch allocates for thousands of tasks.
fn allocations(traces: Option<Tracer>) -> u64 {
    let config = SwitchConfig { traces, ..SwitchConfig::new(Config::full(EPOCH)) };
    let mut driver = SwitchDriver::new(&config).expect("free ports");
    let (mut worker, mut client) = (socket(), socket());
    let (at, generation) = (worker.local().into(), Generation(0));
    let row = WorkerRow {
        key: KEY,
        at,
        slice: SliceId(0),
        generation,
        open: true,
        life: 1,
        ..WorkerRow::default()
    };
    let client_row = ClientRow { key: KEY, at: client.local().into(), incarnation: Incarnation(1) };
    let ops = vec![
        TableOp::SetSlice(SliceId(0), SliceRow { open: true, limit: 64, ..SliceRow::default() }),
        TableOp::SetType(TaskType(0), Some(SliceId(0))),
        TableOp::SetWorker(WorkerId::default(), Some(row)),
        TableOp::SetClient(ClientId::default(), Some((client_row, Serial(0)))),
    ];
    driver.handle().tables().send(ops, |_| ()).expect("the switch lives");
    driver.step().expect("the socket works");

    let body = [7; 600];
    let payload = Payload { len: 600, inline: large_descriptor(&body), handle: Handle::NONE };
    let switch = driver.local().into();
    let mut before = 0;
    for sequence in 0..4_000_u32 {
        // Odd tasks wait for their token, even ones find a parked token.
        let task = TaskId { incarnation: Incarnation(1), sequence: Serial(sequence) };
        let (epoch, key, attempt) = (EPOCH, KEY, Attempt(1));
        let submit = Packet::Submit(Submit { epoch, key, task, attempt, payload, ..Submit::default() });
        let (nonce, issued) = (Nonce(sequence), Serial(sequence + 1));
        let token = Packet::Token(Token { epoch, key, generation, nonce, issued, ..Token::default() });
        let write_submit = |out: &mut [u8]| encode(&submit, &body, out).expect("a legal packet");
        let write_token = |out: &mut [u8]| encode(&token, &[], out).expect("a legal packet");
        if sequence % 2 == 0 {
            worker.outbox().send_with(switch, write_token);
            worker.flush();
        }
        client.outbox().send_with(switch, write_submit);
        client.flush();
        if sequence % 2 == 1 {
            worker.outbox().send_with(switch, write_token);
            worker.flush();
        }
        let mut taken = 0;
        while taken < 2 {
            taken += driver.step().expect("the socket works");
        }
        while worker.receive(Wait::Forever).expect("the socket works") == 0 {}
        if sequence == 100 {
            before = ALLOCATIONS.get();
        }
    }
    ALLOCATIONS.get() - before
}
