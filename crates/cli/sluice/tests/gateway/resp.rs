//! RESP over a socket: what a pipeline sees, who is bounded, and what reports about other gateways tell of.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::common::terminate;
use super::rig::{KvRack, PATIENCE, connect, counted, exchange, exchange_until, read, text};

/// Commands that change one key again and again, each followed by a read.
fn writes_and_reads(key: &str, count: usize) -> (Vec<u8>, String) {
    let (mut sent, mut expected) = (Vec::new(), String::new());
    for value in 0..count {
        sent.extend_from_slice(format!("SET {key} {value}\r\nGET {key}\r\n").as_bytes());
        let digits = value.to_string();
        write!(expected, "+OK\r\n${}\r\n{digits}\r\n", digits.len()).expect("a text takes it");
    }
    (sent, expected)
}

#[test]
fn pipelines_see_their_own_writes_and_other_connections_change_nothing() {
    let rack = KvRack::start();
    let (gateway, at) = rack.resp(&[]);
    let clients = (0..8).map(|client| {
        let at = at.clone();
        thread::spawn(move || {
            let (sent, expected) = writes_and_reads(&format!("key-{client}"), 100);
            assert_eq!(exchange(&at, &sent), expected);
        })
    });
    clients.collect::<Vec<_>>().into_iter().for_each(|client| client.join().expect("it sees its writes"));
    // What was acknowledged is seen by a connection that begins afterwards, soon.
    for client in 0..8 {
        let get = format!("GET key-{client}\r\n");
        exchange_until(&at, get.as_bytes(), |came| came == "$2\r\n99\r\n");
    }
    // A cursor goes on in another connection, and leads to each key once.
    let first = exchange(&at, b"SCAN 0 COUNT 5\r\n");
    let cursor = first.lines().nth(2).expect("a cursor");
    assert_ne!(cursor, "0", "{first}");
    let second = exchange(&at, format!("SCAN {cursor} COUNT 5\r\n").as_bytes());
    assert!(second.starts_with("*2\r\n$1\r\n0\r\n*3\r\n"), "{second}");
    gateway.ends_well();
}

#[test]
fn a_client_that_never_reads_is_bounded_and_stops_nobody() {
    let rack = KvRack::start();
    let (_gateway, at) = rack.resp(&["--metrics", "127.0.0.1:0"]);
    let value = "v".repeat(60_000);
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\n{value}\r\n");
    assert_eq!(exchange(&at, set.as_bytes()), "+OK\r\n");
    // It sends until nobody takes any more, and never reads.
    let mut silent = connect(&at);
    silent.set_nonblocking(true).expect("an option");
    let gets = b"GET k\r\n".repeat(1_000);
    let (mut taken, mut last) = (0_usize, Instant::now());
    while last.elapsed() < Duration::from_secs(1) {
        match silent.write(&gets) {
            Ok(count) => {
                taken += count;
                last = Instant::now();
            }
            Err(_) => thread::yield_now(),
        }
        assert!(taken < 64 << 20, "it takes all");
    }
    // Others are served, also with the same key.
    for _ in 0..20 {
        let reply = exchange(&at, b"GET k\r\nPING\r\n");
        assert!(reply.ends_with("v\r\n+PONG\r\n"), "{} bytes", reply.len());
    }
}

#[test]
fn malformed_bytes_get_one_error_and_those_of_others_are_not_mixed_in() {
    let rack = KvRack::start();
    let (_gateway, at) = rack.resp(&[]);
    assert_eq!(exchange(&at, b"SET a 1\r\n"), "+OK\r\n");
    for (bytes, reply) in [
        (&b"*3\r\n$3\r\nSET\r\n$5\r\nkey1\r\n$1\r\nv\r\n"[..], "-ERR Protocol error: "),
        (b"*1\n$4\nPING\n", "-ERR Protocol error: invalid multibulk length"),
        (b"GET \"x\x04\r\n", "-ERR Protocol error: unbalanced quotes"),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            "-ERR wrong number of arguments for 'get' command\r\n-ERR Protocol error: this is HTTP",
        ),
        (b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "-ERR Protocol error: this is HTTP"),
        (b"\x16\x03\x01\x02\x00\n", "-ERR unknown command '\\x16\\x03\\x01\\x02\\x00'"),
    ] {
        let came = exchange(&at, bytes);
        assert!(came.starts_with(reply) && came.ends_with("\r\n"), "{}: {came}", bytes.escape_ascii());
    }
    // Clients that are gone in the middle of a pipeline leave nothing to those who come after them.
    for _ in 0..20 {
        let mut gone = connect(&at);
        gone.write_all(&b"GET a\r\n".repeat(50)).expect("it is taken");
        drop(gone);
        assert_eq!(exchange(&at, b"GET nothing\r\nECHO mine\r\n"), "$-1\r\n$4\r\nmine\r\n");
    }
    // Empty commands are none.
    assert_eq!(exchange(&at, b"*0\r\n*-1\r\n\r\nPING\n"), "+PONG\r\n");
}

#[test]
fn a_rack_without_workers_refuses_in_words_and_serves_when_one_comes() {
    let mut rack = KvRack::without_workers();
    let (_gateway, at) = rack.resp(&["--deadline", "60s"]);
    let refused = exchange(&at, b"SET a 1\r\nGET a\r\nMGET a b\r\n");
    assert_eq!(refused.matches("-TRYAGAIN it did not run: ").count(), 3, "{refused}");
    rack.start_store("writer");
    rack.wait_for_workers(1);
    rack.start_store("reader");
    rack.wait_for_workers(2);
    exchange_until(&at, b"SET a 1\r\nGET a\r\n", |came| came == "+OK\r\n$1\r\n1\r\n");
}

#[test]
fn a_worker_that_stands_still_leaves_commands_unknown_and_later_ones_are_served() {
    let mut rack = KvRack::without_workers();
    let (_gateway, at) = rack.resp(&["--deadline", "2s"]);
    rack.start_store("writer");
    rack.wait_for_workers(1);
    rack.start_store("reader");
    rack.wait_for_workers(2);
    exchange_until(&at, b"SET a 1\r\n", |came| came == "+OK\r\n");
    let worker = Pid::from_child(&rack.workers[0].0);
    kill_process(worker, Signal::STOP).expect("it lives");
    let came = exchange(&at, b"SET a 2\r\nPING\r\n");
    kill_process(worker, Signal::CONT).expect("it lives");
    assert!(came.starts_with("-UNKNOWN it may have run, or may run yet: "), "{came}");
    assert!(came.ends_with("\r\n+PONG\r\n"), "{came}");
    exchange_until(&at, b"GET b\r\n", |came| came.starts_with("$-1"));
}

#[test]
fn a_gateway_that_is_asked_to_end_answers_what_has_come() {
    let rack = KvRack::start();
    let (gateway, said) = rack.gateway(&["--resp", "127.0.0.1:0", "--metrics", "127.0.0.1:0"]);
    let (at, metrics) = (text(&said, "resp"), text(&said, "metrics"));
    let mut busy = connect(&at);
    let (sent, expected) = writes_and_reads("a", 300);
    busy.write_all(&sent).expect("it is taken");
    assert_eq!(read(&mut busy, 5), "+OK\r\n");
    assert!((counted(&metrics, "sluice_gateway_connections{", &["resp"]) - 1.0).abs() < 0.1);
    let mut idle = connect(&at);
    idle.write_all(b"PING\r\nGE").expect("it is taken");
    assert_eq!(read(&mut idle, 7), "+PONG\r\n");
    terminate(&gateway.0);
    // All replies are of whole commands, and as many as were taken.
    let mut rest = String::new();
    busy.read_to_string(&mut rest).expect("it ends");
    assert!(expected["+OK\r\n".len()..].starts_with(&rest), "{rest}");
    let mut rest = String::new();
    idle.read_to_string(&mut rest).expect("it ends");
    assert_eq!(rest, "");
    gateway.has_ended_well();
}

#[test]
fn a_connection_too_many_is_told_so_and_finds_a_place_when_one_is_free() {
    let rack = KvRack::start();
    let (_gateway, at) = rack.resp(&["--connections", "2"]);
    let mut two = [connect(&at), connect(&at)];
    for one in &mut two {
        one.write_all(b"PING\r\n").expect("it is taken");
        assert_eq!(read(one, 7), "+PONG\r\n");
    }
    let mut third = connect(&at);
    let mut told = String::new();
    third.read_to_string(&mut told).expect("it ends");
    assert_eq!(told, "-ERR max number of clients reached: this gateway takes 2\r\n");
    drop(two);
    let until = Instant::now() + PATIENCE;
    loop {
        let mut again = connect(&at);
        // The one who is sent away may be gone before it is written to.
        if again.write_all(b"PING\r\n").is_ok() {
            let mut came = [0; 5];
            if again.read_exact(&mut came).is_ok() && came == *b"+PONG" {
                break;
            }
        }
        assert!(Instant::now() < until, "no place becomes free");
    }
}
