//! Sockets with faults and held datagrams, over the loopback.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use sluice_net::NetError;
use sluice_net::clock::Clock;
use sluice_net::udp::{BATCH, Socket, SocketOptions, Wait, Waiting};
use sluice_netem::{FaultPlan, Rates};
use sluice_wire::{Endpoint, Nanos};

const PATIENCE: Nanos = Nanos::from_millis(120_000);

fn anywhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn socket(options: &SocketOptions) -> Socket {
    Socket::bind(anywhere(), options).expect("the loopback has free ports")
}

fn plain() -> Socket {
    socket(&SocketOptions::default())
}

fn at(socket: &Socket) -> Endpoint {
    socket.local().into()
}

/// Receives numbers until there are `count`, or none comes for `patience`.
fn numbers(socket: &mut Socket, count: usize, patience: Nanos) -> Vec<u32> {
    let mut out = Vec::new();
    let clock = Clock::start();
    while out.len() < count {
        let end = clock.now() + patience;
        if socket.receive(Wait::Until(end)).expect("the socket works") == 0 && clock.now() >= end {
            break;
        }
        for datagram in socket.inbox().datagrams() {
            out.push(u32::from_be_bytes(datagram.bytes[..4].try_into().expect("four bytes were sent")));
        }
    }
    out
}

/// Sends numbers slowly enough for the kernel's buffer, and receives what arrives.
fn exchange(from: &mut Socket, to: &mut Socket, count: u32) -> Vec<u32> {
    let peer = at(to);
    let mut out = Vec::new();
    for chunk in (0..count).collect::<Vec<_>>().chunks(100) {
        for number in chunk {
            from.send(peer, &number.to_be_bytes());
        }
        from.receive(Wait::Poll).expect("the socket works");
        out.extend(numbers(to, chunk.len(), Nanos::from_millis(2)));
    }
    from.receive(Wait::Until(Clock::start().now() + Nanos::from_millis(20))).expect("the socket works");
    out.extend(numbers(to, usize::MAX, Nanos::from_millis(100)));
    out
}

fn faulty(rates: &str, seed: u64) -> (FaultPlan, FaultPlan) {
    let rates: Rates = rates.parse().expect("well written");
    let none = Rates::default();
    let plan = |receive, send| FaultPlan { seed, socket: "test".to_owned(), receive, send };
    (plan(rates, none), plan(none, rates))
}

#[test]
fn a_batch_comes_back_whole_in_order_and_with_its_source_and_time() {
    let (mut here, mut there) = (plain(), plain());
    let before = Clock::start().now();
    let count = 3 * BATCH as u32 + 1;
    for number in 0..count {
        here.send(at(&there), &number.to_be_bytes());
    }
    here.flush();
    let mut seen = 0_u32;
    while seen < count {
        assert!(there.receive(Wait::Until(before + PATIENCE)).expect("works") > 0);
        let after = Clock::start().now();
        for datagram in there.inbox().datagrams() {
            assert_eq!(datagram.bytes, seen.to_be_bytes());
            assert_eq!(datagram.from, at(&here));
            assert!(datagram.received <= after);
            assert!(
                datagram.received + Nanos::from_millis(1) >= before,
                "{:?} {before:?}",
                datagram.received
            );
            seen += 1;
        }
    }
    assert_eq!(there.counts().received, u64::from(count));
    assert_eq!(here.counts().sent, u64::from(count));
    assert_eq!(here.counts().failed, 0);
}

#[test]
fn a_datagram_goes_over_ipv6_where_the_machine_has_it() {
    let loopback: SocketAddr = "[::1]:0".parse().expect("an address");
    if UdpSocket::bind(loopback).is_err() {
        return;
    }
    let bind = || Socket::bind(loopback, &SocketOptions::default()).expect("the loopback has free ports");
    let (mut here, mut there) = (bind(), bind());
    here.send(at(&there), &7_u32.to_be_bytes());
    here.flush();
    assert_eq!(numbers(&mut there, 1, PATIENCE), [7]);
    here.send(at(&there), &8_u32.to_be_bytes());
    here.flush();
    while there.receive(Wait::Forever).expect("works") == 0 {}
    assert_eq!(there.inbox().datagram(0).from, at(&here));
}

#[test]
fn a_datagram_longer_than_the_socket_takes_is_dropped_and_counted() {
    let mut here = socket(&SocketOptions { datagram_max: 100, ..SocketOptions::default() });
    let peer = UdpSocket::bind(anywhere()).expect("free ports");
    peer.send_to(&[7; 101], here.local()).expect("sent");
    peer.send_to(&[7; 100], here.local()).expect("sent");
    let mut taken = 0;
    while taken == 0 {
        taken = here.receive(Wait::Forever).expect("works");
    }
    assert_eq!(here.inbox().datagram(0).bytes.len(), 100);
    assert_eq!(here.counts().oversized, 1);
}

#[test]
fn a_wait_ends_at_its_time_or_when_called() {
    for waiting in [Waiting::Spin, Waiting::Block, Waiting::Adaptive] {
        let mut socket = socket(&SocketOptions { waiting, ..SocketOptions::default() });
        let clock = Clock::start();
        let end = clock.now() + Nanos::from_millis(20);
        assert_eq!(socket.receive(Wait::Until(end)).expect("works"), 0);
        assert!(clock.now() >= end);

        let waker = socket.waker();
        waker.wake();
        assert_eq!(socket.receive(Wait::Forever).expect("works"), 0);
        let caller = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            waker.wake();
        });
        assert_eq!(socket.receive(Wait::Forever).expect("works"), 0);
        caller.join().expect("it only sleeps and calls");
    }
}

#[test]
fn a_peer_with_nobody_listening_is_reported_and_others_still_hear() {
    let (mut here, mut there) = (plain(), plain());
    let absent = sluice_ports::free_address().into();
    let mut refused = Vec::new();
    let (clock, mut sent) = (Clock::start(), 0_u32);
    let end = clock.now() + PATIENCE;
    while refused.is_empty() && clock.now() < end {
        here.send(absent, b"anyone?");
        here.send(at(&there), &sent.to_be_bytes());
        sent += 1;
        here.receive(Wait::Until(clock.now() + Nanos::from_millis(5))).expect("works");
        refused.extend(here.outbox().refused());
    }
    assert_eq!(refused.first(), Some(&absent));
    assert_eq!(numbers(&mut there, sent as usize, PATIENCE), (0..sent).collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_reached_or_does_not_fit_is_not_sent() {
    let mut here = plain();
    let v6: SocketAddr = "[2001:db8::1]:9".parse().expect("an address");
    here.send(v6.into(), b"hello");
    here.send(at(&plain()), &[0; 5_000]);
    here.flush();
    assert_eq!(here.counts().failed, 1);
    assert_eq!(here.counts().sent, 0);
}

#[test]
fn a_taken_port_is_named_in_the_error() {
    let first = plain();
    let second = Socket::bind(first.local(), &SocketOptions::default());
    let Err(why @ NetError::Bind { .. }) = second else { panic!("bound twice") };
    assert!(why.to_string().contains(&first.local().to_string()), "{why}");
}

#[test]
fn the_same_seed_loses_and_doubles_the_same_datagrams_in_either_direction() {
    let (receive, send) = faulty("loss=0.1,dup=0.1", 42);
    let run = |from: &FaultPlan, to: &FaultPlan| {
        let with =
            |plan: &FaultPlan| socket(&SocketOptions { faults: plan.clone(), ..SocketOptions::default() });
        exchange(&mut with(from), &mut with(to), 2_000)
    };
    let received = run(&FaultPlan::none(), &receive);
    assert_eq!(received, run(&FaultPlan::none(), &receive));
    let mut sent = run(&send, &FaultPlan::none());
    sent.sort_unstable();
    let mut again = run(&send, &FaultPlan::none());
    again.sort_unstable();
    assert_eq!(sent, again);
    assert_ne!(sent, received);
    for arrived in [received, sent] {
        let lost = (0..2_000).filter(|number| !arrived.contains(number)).count();
        let doubled = arrived.len() + lost - 2_000;
        assert!((150..250).contains(&lost), "{lost}");
        assert!((140..230).contains(&doubled), "{doubled}");
    }
}

#[test]
fn a_datagram_held_back_is_overtaken_but_comes() {
    let (receive, send) = faulty("reorder=0.2,delay=5ms", 1);
    for (from, to) in [(FaultPlan::none(), receive), (send, FaultPlan::none())] {
        let mut from = socket(&SocketOptions { faults: from, ..SocketOptions::default() });
        let mut to = socket(&SocketOptions { faults: to, ..SocketOptions::default() });
        let mut arrived = exchange(&mut from, &mut to, 1_000);
        assert!(!arrived.is_sorted());
        arrived.sort_unstable();
        assert_eq!(arrived, (0..1_000).collect::<Vec<_>>());
        let held = from.counts().faults_out.held + to.counts().faults_in.held;
        assert!((150..250).contains(&held), "{held}");
    }
}

#[test]
fn a_datagram_with_a_time_leaves_then_and_not_before() {
    let (mut here, mut there) = (plain(), plain());
    let (clock, peer) = (Clock::start(), at(&there));
    let start = clock.now();
    for (number, after_ms) in [(3_u32, 30), (1, 10), (2, 20)] {
        let due = start + Nanos::from_millis(after_ms);
        here.outbox().send_at(due, peer, |out| {
            out[..4].copy_from_slice(&number.to_be_bytes());
            4
        });
    }
    let mut arrived = Vec::new();
    while arrived.len() < 3 {
        here.receive(Wait::Until(clock.now() + Nanos::from_millis(1))).expect("works");
        there.receive(Wait::Poll).expect("works");
        for datagram in there.inbox().datagrams() {
            arrived.push((datagram.bytes[3], datagram.received.since(start)));
        }
        assert!(clock.now().since(start) < PATIENCE);
    }
    for (index, (number, after)) in arrived.into_iter().enumerate() {
        assert_eq!(number as usize, index + 1);
        assert!(after >= Nanos::from_millis(10 * u64::from(number)), "{number} after {after:?}");
    }
}
