//! What the kernel tells of the way to a host, and a namespace beside.

use std::net::{IpAddr, Ipv4Addr};

use sluice_kernel::spaces::SideSpace;
use sluice_kernel::xdp::machine::Interface;
use sluice_kernel::{KernelError, NextHop};

use crate::rack;

#[test]
fn the_way_to_a_host_is_its_link_and_the_addresses_on_it() {
    let Some(rack) = rack(2) else { return };
    for host in rack.hosts() {
        for ip in host.addresses() {
            let way = rack.switch().within(|| NextHop::towards(ip)).expect("there").expect("a way");
            let expected =
                NextHop { link: host.at_switch.index, mac: host.at_host.mac, own_mac: host.at_switch.mac };
            assert_eq!(way, expected, "{ip}");
        }
    }
    let nobody = IpAddr::from(Ipv4Addr::new(10, 77, 1, 99));
    let none = rack.switch().within(|| NextHop::towards(nobody)).expect("there");
    assert!(matches!(none, Err(KernelError::NoWay { to, .. }) if to == nobody), "{none:?}");
}

#[test]
fn the_link_of_a_namespace_beside_disappears_with_it() {
    let Some(_) = rack(0) else { return };
    let name = "besidetest";
    let side = SideSpace::new(name).expect("root may");
    assert!(Interface::named(name).is_ok(), "{} is here", side.link());
    let (socket, to) = side.socket(9).expect("a socket");
    socket.send_to(b"all", to).expect("nobody is asked for an address");
    drop((socket, side));
    while Interface::named(name).is_ok() {
        std::thread::yield_now();
    }
}
