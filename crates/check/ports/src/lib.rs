//! Loopback addresses that one test has for itself, for tests that must know a port before they start a
//! server there.
//!
//! A port that the kernel chose, and that was closed again, may be somebody else's by the time the server
//! starts: another test binds, a client connects. These ports lie below those that the kernel chooses, and
//! each is held until this process ends, by a listener with the same port on another loopback address.
#![forbid(unsafe_code)]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Who listens here holds the port on [`Ipv4Addr::LOCALHOST`].
const HOLDERS: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 77, 0, 1));
/// Servers that everybody knows have lower ports.
const FIRST: u16 = 10_000;

static HELD: Mutex<Vec<TcpListener>> = Mutex::new(Vec::new());

/// A loopback address where nobody listens, neither for connections nor for datagrams, and which no other
/// test gets while this process lives.
///
/// # Panics
/// If all ports are taken, or the kernel chooses from all ports.
pub fn free_address() -> SocketAddr {
    let ports = unchosen();
    let span = usize::from(ports.end - ports.start);
    // Processes begin at different ports, so that few of their tries meet.
    let first = std::process::id() as usize * 61 % span;
    let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
    let nth = |at: usize| ports.start + ((first + at) % span) as u16;
    let (holder, address) =
        (0..span).map(nth).find_map(hold).expect("a free port: end processes that listen");
    held.push(holder);
    address
}

/// The ports that the kernel does not choose for sockets that ask for any.
fn unchosen() -> Range<u16> {
    let chosen = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let low = chosen.split_whitespace().next().and_then(|low| low.parse().ok()).unwrap_or(32_768);
    assert!(low > FIRST, "the kernel chooses ports from {low} on: raise net.ipv4.ip_local_port_range");
    FIRST..low
}

/// Holds a port if nobody does and nobody uses it.
fn hold(port: u16) -> Option<(TcpListener, SocketAddr)> {
    let holder = TcpListener::bind((HOLDERS, port)).ok()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    is_unused(address).then_some((holder, address))
}

fn is_unused(address: SocketAddr) -> bool {
    TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    #[test]
    fn nobody_gets_an_address_twice_and_the_kernel_gives_it_to_nobody() {
        let threads = [(); 4].map(|()| thread::spawn(|| [(); 50].map(|()| free_address())));
        let all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().expect("it ends")).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        let chosen = TcpListener::bind("127.0.0.1:0").and_then(|bound| bound.local_addr()).expect("a port");
        assert!(
            all.iter().all(|address| address.port() < chosen.port() || !unchosen().contains(&chosen.port()))
        );
    }

    #[test]
    fn what_is_used_for_connections_or_datagrams_is_not_unused() {
        // Both stay held: no other test gets them meanwhile.
        let (first, second) = (free_address(), free_address());
        let tcp = TcpListener::bind(first).expect("free");
        let udp = UdpSocket::bind(second).expect("free");
        assert!(!is_unused(first) && !is_unused(second));
        drop((tcp, udp));
        assert!(is_unused(first) && is_unused(second));
    }

    #[test]
    fn what_is_held_is_not_held_again() {
        let address = free_address();
        assert!(is_unused(address) && hold(address.port()).is_none());
    }
}
