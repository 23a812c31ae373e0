//! Datagrams between hosts, forwarded by the switch's network stack and by native redirect.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use sluice_kernel::spaces::{MTU_BYTES, Space};

use crate::hop::Hop;
use crate::rack;

/// A time limit that only a fault can exceed, since no datagram here is lost.
const PATIENCE: Duration = Duration::from_mins(2);
/// The largest payload of a packet over IPv6.
const PAYLOAD_MAX: usize = MTU_BYTES as usize - 40 - 8;

#[test]
fn hosts_reach_the_switch_and_each_other_in_both_families() {
    let Some(rack) = rack(3) else { return };
    let [first, .., last] = rack.hosts() else { panic!("three hosts") };
    for (of_host, of_switch) in first.addresses().into_iter().zip(rack.switch_addresses()) {
        let (host, switch) = (socket(&first.space, of_host), socket(rack.switch(), of_switch));
        assert_eq!(exchange(&host, &switch, 100).expect("it answers"), host.local_addr().unwrap());
    }
    for (from, to) in first.addresses().into_iter().zip(last.addresses()) {
        let (from, to) = (socket(&first.space, from), socket(&last.space, to));
        exchange(&from, &to, PAYLOAD_MAX).expect("the switch forwards");
    }
}

#[test]
fn frames_go_from_host_to_host_by_native_redirect() {
    let Some(rack) = rack(2) else { return };
    let mut hop = Hop::attach(&rack);
    let [first, second] = rack.hosts() else { panic!("two hosts") };
    hop.lead(&first.at_switch, second);
    hop.lead(&second.at_switch, first);
    // Otherwise the network stack would forward them too.
    rack.switch().within(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "0")).unwrap().unwrap();
    rack.switch().within(|| std::fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "0")).unwrap().unwrap();
    for (from, to) in first.addresses().into_iter().zip(second.addresses()) {
        let (from, to) = (socket(&first.space, from), socket(&second.space, to));
        for bytes in [0, 64, PAYLOAD_MAX] {
            exchange(&from, &to, bytes).expect("it is redirected, there and back, with a right checksum");
        }
    }
    assert_eq!([hop.frames(&first.at_switch), hop.frames(&second.at_switch)], [6, 6]);
}

pub(crate) fn socket(space: &Space, at: IpAddr) -> UdpSocket {
    let socket = space.within(|| UdpSocket::bind((at, 0))).expect("root may move").expect("a free port");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    socket
}

/// Sends a datagram there and back. Returns the address that it seemed to come from.
fn exchange(from: &UdpSocket, to: &UdpSocket, bytes: usize) -> io::Result<SocketAddr> {
    let sent: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
    let mut buffer = vec![0; MTU_BYTES as usize];
    from.send_to(&sent, to.local_addr()?)?;
    let (length, came_from) = to.recv_from(&mut buffer)?;
    to.send_to(&buffer[..length], came_from)?;
    let (length, _) = from.recv_from(&mut buffer)?;
    assert_eq!(buffer[..length], sent);
    Ok(came_from)
}
