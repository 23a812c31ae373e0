//! Fault injection on links: the counters are right, and the faults are of the requested kinds.

use std::collections::HashSet;
use std::net::UdpSocket;

use sluice_kernel::spaces::LinkFaults;
use sluice_netem::FaultCounts;

use crate::rack;
use crate::reach::socket;

/// How many frames can be held between two hosts: one in each of the two directions' lanes.
const KEPT_MAX: u64 = 2;

#[test]
fn links_lose_double_and_reorder_what_they_say() {
    let Some(rack) = rack(2) else { return };
    let rates = "loss=0.05,dup=0.04,reorder=0.1".parse().expect("rates");
    let [first, second] = rack.hosts() else { panic!("two hosts") };
    for (from, to) in first.addresses().into_iter().zip(second.addresses()) {
        let links = [first, second].map(|host| LinkFaults::attach(host, rates, 7).expect("root may"));
        let (from, to) = (socket(&first.space, from), socket(&second.space, to));
        to.set_nonblocking(true).expect("a socket");
        let mut seen = Seen::default();
        let mut sent = 0;
        // If the last frame is to be overtaken, it is held until another one comes.
        while sent < 4_000 || seen.came < expected(&links, sent) {
            from.send_to(&u64::to_be_bytes(sent), to.local_addr().unwrap()).expect("it leaves");
            sent += 1;
            seen.receive(&to);
            while seen.came + KEPT_MAX < expected(&links, sent) {
                std::thread::yield_now();
                seen.receive(&to);
            }
        }
        let said = counts(&links);
        assert_eq!(seen.came, sent - said.lost + said.doubled);
        // One of two copies may be lost; the overtaking frame may be lost, or overtaken on the next link.
        let twice = seen.came - seen.numbers.len() as u64;
        assert!(twice > said.doubled * 8 / 10, "{twice} of {}", said.doubled);
        assert!(seen.overtaken > said.held / 2, "{} of {}", seen.overtaken, said.held);
        let near = |count: u64, share: f64| (count as f64 / sent as f64 / share - 2.0).abs() < 0.4;
        assert!(near(said.lost, 0.05) && near(said.doubled, 0.04) && near(said.held, 0.1), "{said:?}");
    }
}

/// What arrived at the other end.
#[derive(Default)]
struct Seen {
    numbers: HashSet<u64>,
    came: u64,
    newest: u64,
    overtaken: u64,
}

impl Seen {
    /// Receives all datagrams that have arrived.
    fn receive(&mut self, to: &UdpSocket) {
        let mut bytes = [0; 8];
        while to.recv(&mut bytes).is_ok() {
            let number = u64::from_be_bytes(bytes);
            let is_new = self.numbers.insert(number);
            self.overtaken += u64::from(is_new && number < self.newest);
            self.newest = self.newest.max(number);
            self.came += 1;
        }
    }
}

/// How many of `sent` datagrams arrive if none is held.
fn expected(links: &[LinkFaults], sent: u64) -> u64 {
    let said = counts(links);
    sent - said.lost + said.doubled
}

fn counts(links: &[LinkFaults]) -> FaultCounts {
    links.iter().map(|link| link.counts().expect("root may")).fold(FaultCounts::default(), |sum, link| {
        FaultCounts {
            lost: sum.lost + link.lost,
            doubled: sum.doubled + link.doubled,
            held: sum.held + link.held,
        }
    })
}
