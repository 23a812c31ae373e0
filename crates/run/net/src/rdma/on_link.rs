//! Checks the headers that the kernel puts on a link against those that the iCRC assumes: over the
//! loopback, and between two namespaces joined by a veth pair.

use std::fs::File;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use sluice_host::pacer::{GapShare, PacerSettings};
use sluice_host::rdma::{Mtu, PairSpec};
use sluice_wire::Nanos;
use sluice_wire::roce::{Frame, PORT, Path, Psn, Qpn, Rkey, Transport, View, Write, encode_write};

use super::{
    LinkWatch, Receiver, SharedMemory, WaitsBy, WriteLeft, WriteSeen, WriteSender, WriteSenderOptions,
};
use crate::NetError;
use crate::clock::Clock;
use crate::sys::{enter_network, leave_network, packet_socket};
use crate::udp::{LinkTap, Socket, SocketOptions, Wait};

const PATIENCE: Nanos = Nanos::from_millis(30_000);
const BYTES: usize = 1_024;
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 71, 0, 2);
/// The addresses of the switch and of the server, of both families.
const NETWORKS: [(&str, &str); 2] = [("10.71.0.1", "10.71.0.2"), ("fd71::1", "fd71::2")];

#[test]
fn the_loopback_has_the_headers_that_the_checksum_was_made_for() {
    for ip in [IpAddr::from(Ipv4Addr::new(127, 71, 3, 9)), Ipv6Addr::LOCALHOST.into()] {
        let Ok(tap) = packet_socket() else {
            eprintln!("not run: looking at the link takes a privilege");
            return;
        };
        let Ok(receiver) = receiver(ip) else {
            eprintln!("not run: {ip} cannot be had");
            continue;
        };
        check(File::from(tap), receiver, ip);
    }
}

#[test]
fn a_veth_has_the_headers_that_the_checksum_was_made_for() {
    // Each case has a thread of its own, since the thread leaves this machine's network for good.
    let veth = thread::spawn(|| {
        let Ok((switch, server)) = two_networks() else {
            eprintln!("not run: making networks takes a privilege, and `ip`");
            return;
        };
        for (from, to) in NETWORKS {
            let [from, to]: [IpAddr; 2] = [from, to].map(|ip| ip.parse().expect("an address"));
            enter_network(server.as_fd()).expect("it worked before");
            let tap = packet_socket().expect("who makes networks may look at them");
            let receiver = receiver(to).expect("a new network's addresses are free");
            enter_network(switch.as_fd()).expect("it worked before");
            check(File::from(tap), receiver, from);
        }
    });
    veth.join().expect("the headers are those");
}

#[test]
fn on_a_link_exactly_the_gaps_of_held_frames_were_made_as_long_as_the_threshold() {
    let sent = thread::spawn(|| {
        let Ok((here, _there)) = two_networks() else {
            eprintln!("not run: making networks takes a privilege, and `ip`");
            return;
        };
        enter_network(here.as_fd()).expect("it worked before");
        let _stamps = once_frames_are_stamped();
        for waits in [WaitsBy::Spinning, WaitsBy::Sleeping] {
            held_gaps_are_the_thresholds(waits);
        }
    });
    sent.join().expect("they are");
}

/// A tap, once the kernel stamps frames. It starts to do so some time after the request, and continues as
/// long as a tap is open.
fn once_frames_are_stamped() -> LinkTap {
    let mut tap = LinkTap::open().expect("who makes networks may look at them");
    let socket = UdpSocket::bind("10.71.0.1:0").expect("a new network's ports are free");
    let from = socket.local_addr().expect("it has one").into();
    let ours = |frame: &[u8]| Frame::parse(frame).is_ok_and(|frame| frame.path.from() == from);
    let (clock, mut stamped) = (Clock::start(), false);
    let end = clock.now() + PATIENCE;
    while !stamped && clock.now() < end {
        socket.send_to(&[0], (SERVER, PORT)).expect("there is a way");
        thread::sleep(Duration::from_millis(1));
        tap.take(|at, frame| stamped |= at.is_some() && ours(frame)).expect("it may look");
    }
    tap
}

/// Two flows with gaps of 1 to 9 ms pass a pacer that holds gaps above about 8.8 ms, once it learnt half of
/// the gaps. The test's claims hold on a machine of any speed, since a frame passes the tap within the
/// kernel's send call.
fn held_gaps_are_the_thresholds(waits: WaitsBy) {
    let mut sender = WriteSender::new(&options(waits)).expect("a new network's ports are free");
    let watch = LinkWatch::start(options(waits).to).expect("who makes networks may look at them");
    let ports: Vec<u16> = sender.ports().collect();
    let mut left: Vec<WriteLeft> = Vec::new();
    sender.run(vec![uneven(1), uneven(2)], &AtomicBool::new(false), |write| left.push(write));
    let seen = watch.end().expect("the kernel shows what passed");
    let on_link = |write: &WriteLeft| {
        let is_it = |seen: &&WriteSeen| seen.port == ports[write.flow] && seen.psn == write.psn;
        let found = seen.iter().find(is_it);
        found.unwrap_or_else(|| panic!("{write:?} of {} is not among {}", left.len(), seen.len())).at
    };
    let (mut held, mut known) = (0, 0);
    for flow in 0..2 {
        let writes: Vec<&WriteLeft> = left.iter().filter(|write| write.flow == flow).collect();
        for two in writes.windows(2) {
            let (last, this) = (two[0], two[1]);
            held += u64::from(this.held);
            let (Some(left), Some(came)) = (on_link(last), on_link(this)) else { continue };
            let gap = came - left;
            known += 1;
            let most = this.at.since(last.before).0 + CLOCKS_APART;
            assert!(gap <= most, "{gap} ns on the link, and {most} as its sender saw it");
            assert!(this.before >= this.due, "a frame left before it was there");
            if this.held {
                assert!(gap + CLOCKS_APART >= THRESHOLD.0, "held for a gap of {gap} ns only");
            } else if gap >= THRESHOLD.0 {
                let late = this.at.since(this.due).0 + CLOCKS_APART;
                assert!(late >= THRESHOLD.0 - LONGEST.0, "a gap of {gap} ns that was neither held nor late");
            }
        }
    }
    assert!(known > 0, "the kernel stamps frames");
    let totals = sender.totals();
    assert_eq!((totals.sent, left.len(), totals.pacer.holds), (2 * WRITES, 2 * WRITES as usize, held));
    // A machine that stalls in more than one of forty gaps learns its stalls as gaps, and may hold nothing.
    let stalls = totals.tail > Some(LEARNT_MOST);
    assert!(held > 0 || stalls, "some of the last gaps are above most of the first: {totals:?}");
}

/// The flowlet threshold.
const THRESHOLD: Nanos = Nanos::from_millis(20);
/// The longest gap between two WRITEs of a flow, and how many WRITEs there are.
const LONGEST: Nanos = Nanos::from_millis(9);
const WRITES: u64 = 400;
/// The largest T that is learnt if no frame is late: one in forty gaps is above 8.88 ms, and five of the
/// second half's gaps are above this.
const LEARNT_MOST: Nanos = Nanos::from_micros(8_900);

fn options(waits: WaitsBy) -> WriteSenderOptions {
    let pacer = PacerSettings {
        percentile: GapShare::P97_5,
        training_gaps: 400,
        alpha: None,
        ..PacerSettings::new(THRESHOLD)
    };
    WriteSenderOptions {
        from: "10.71.0.1".parse().expect("an address"),
        to: SocketAddr::from((SERVER, PORT)),
        flows: 2,
        pair: Qpn(1),
        rkey: Rkey(1),
        address: 0,
        bytes: 256,
        frame: Nanos(100),
        pacer: Some(pacer),
        waits,
    }
}

/// How far two clocks may drift apart during a gap, in ns: the wall clock is slewed by at most half a
/// thousandth.
const CLOCKS_APART: u64 = 15_000;

/// Times with pseudo-random gaps of 1 to 9 ms.
fn uneven(seed: u64) -> impl Iterator<Item = Nanos> {
    let distance_us = move |place: u64| 1_000 + (place * 7_919 + seed * 104_729) * 2_654_435_761 % 8_000;
    (0..WRITES).scan(Nanos(0), move |at, place| {
        *at = *at + Nanos::from_micros(distance_us(place));
        Some(*at)
    })
}

/// A receiver that accepts all writes, whatever their key.
fn receiver(ip: IpAddr) -> Result<Receiver, NetError> {
    let at = SocketAddr::new(ip, PORT);
    let mut receiver = Receiver::bind(at, &SocketOptions::default())?;
    let folder = tempfile::tempdir().expect("there is room");
    let memory = SharedMemory::create(&folder.path().join("memory"), BYTES).expect("there is room");
    receiver.register(Rkey(0), 0, Arc::new(memory)).expect("the key is free");
    receiver.connect(PairSpec {
        number: Qpn(0),
        peer_number: Qpn(0),
        peer: None,
        transport: Transport::Uc,
        first: Psn::new(0),
        mtu: Mtu::B1024,
        icrc: true,
    });
    Ok(receiver)
}

/// Sends writes from a plain socket at `ip`. Checks their frames on the link, and that the server accepts
/// them.
fn check(mut tap: File, mut receiver: Receiver, ip: IpAddr) {
    let mut sender =
        Socket::bind(SocketAddr::new(ip, 0), &SocketOptions::default()).expect("the address is there");
    let path = Path::new(sender.local(), receiver.local()).expect("one family");
    let clock = Clock::start();
    for length in [1_usize, 64, BYTES] {
        sender.outbox().send_with(path.to(), |out| {
            encode_write(&Write::default(), &vec![7; length], Some(&path), out).expect("there is room")
        });
        sender.flush();
        let end = clock.now() + PATIENCE;
        let (mut frame, mut found) = ([0; 2_048], None);
        while found.is_none() && clock.now() < end {
            let Ok(bytes) = tap.read(&mut frame) else { continue };
            let read = Frame::parse(&frame[..bytes]).ok().filter(|frame| frame.path == path);
            found = read.map(|frame| View::parse(frame.transport).map(|view| frame.icrc_holds(&view)));
        }
        assert_eq!(found, Some(Ok(true)), "{length} bytes from {ip}");
        assert_eq!(receiver.step(Wait::Until(end)).expect("the socket works"), 1);
    }
    assert_eq!(receiver.counts().placed, 3, "what the kernel says of the sender is what the link showed");
}

/// The namespaces of a switch (10.71.0.1, `fd71::1`) and of a server (…2), joined by a veth pair.
fn two_networks() -> io::Result<(File, File)> {
    let here = || File::open("/proc/thread-self/ns/net");
    leave_network()?;
    let server = here()?;
    leave_network()?;
    let switch = here()?;
    let server_at = format!("/proc/{}/fd/{}", std::process::id(), server.as_raw_fd());
    let up = |end: &str, last: u8| {
        format!(
            "ip addr add 10.71.0.{last}/24 dev {end}; ip addr add fd71::{last}/64 dev {end} nodad; ip link set {end} up"
        )
    };
    let script = format!(
        "set -e; ip link add veth-a type veth peer name veth-b netns {server_at}; {}; nsenter --net={server_at} sh -ec '{}'",
        up("veth-a", 1),
        up("veth-b", 2)
    );
    let made = Command::new("sh").args(["-c", &script]).output()?;
    if !made.status.success() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    wait_until_it_carries(&switch, &server)?;
    Ok((switch, server))
}

/// Waits until a new link carries packets of both families. At first the kernel drops packets until it has
/// started the link, and gives nobody an IPv6 address until a worker of its own has looked at the link. Then
/// a neighbour solicitation may take a second, and the kernel also drops packets if too many wait for it.
fn wait_until_it_carries(switch: &File, server: &File) -> io::Result<()> {
    let clock = Clock::start();
    let end = clock.now() + PATIENCE;
    for (from, to) in NETWORKS {
        let [from, to]: [IpAddr; 2] = [from, to].map(|ip| ip.parse().expect("an address"));
        enter_network(server.as_fd())?;
        let there = once_it_is_given(SocketAddr::new(to, PORT), &clock, end)?;
        there.set_read_timeout(Some(Duration::from_millis(1)))?;
        enter_network(switch.as_fd())?;
        let here = once_it_is_given(SocketAddr::new(from, 0), &clock, end)?;
        let mut carries = false;
        while !carries {
            assert!(clock.now() < end, "the link carries nothing from {from} to {to}");
            // The kernel refuses to send until it has the way.
            let sent = here.send_to(&[0], (to, PORT)).is_ok();
            carries = there.recv(&mut [0]).is_ok() && sent;
        }
    }
    Ok(())
}

/// A socket at an address of this network, once the kernel gives the address.
fn once_it_is_given(address: SocketAddr, clock: &Clock, end: Nanos) -> io::Result<UdpSocket> {
    loop {
        match UdpSocket::bind(address) {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable && clock.now() < end => {
                thread::sleep(Duration::from_millis(1));
            }
            bound => return bound,
        }
    }
}
