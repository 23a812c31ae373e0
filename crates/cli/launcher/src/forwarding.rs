//! The switch of a rack whose leaf runs on a server: it only forwards. Packets for the leaf go to that
//! server, and the leaf's packets come back here. The time that packets are away is measured.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use sluice_outcome::run::LeafTrip;
use sluice_support::fail::{Failure, Outcome};
use sluice_support::results::quantiles;
use sluice_switchd::detour;
use sluice_wire::{Packet, TaskId, parse};

/// How often the thread checks whether it should end.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How many packets are known to be away; beyond this number all are forgotten.
const AWAY_MAX: usize = 4_096;
/// The longest time that is recorded exactly, in ns.
const TRIP_MAX_NS: u64 = 60_000_000_000;
/// The longest UDP datagram.
const DATAGRAM_MAX: usize = 1 << 16;

/// The forwarding of one rack: a thread that ends when this value is dropped.
#[derive(Debug)]
pub(super) struct Forwarding {
    at: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    ends: AtomicBool,
    /// The address of the leaf's process, once it listens.
    leaf: Mutex<Option<SocketAddr>>,
    /// The times that packets took to this rack's leaf and back, in ns.
    trips: Mutex<Histogram<u64>>,
}

impl Forwarding {
    /// Starts to forward from `at`.
    pub(super) fn start(at: SocketAddr) -> Outcome<Self> {
        let broken = |why| Failure::broken(format!("a rack's forwarding: {why}"));
        let socket = UdpSocket::bind(at).map_err(broken)?;
        socket.set_read_timeout(Some(LOOK_EVERY)).map_err(broken)?;
        let at = socket.local_addr().map_err(broken)?;
        let shared = Arc::new(Shared {
            ends: AtomicBool::new(false),
            leaf: Mutex::new(None),
            trips: Mutex::new(Histogram::new_with_max(TRIP_MAX_NS, 3).expect("three digits are legal")),
        });
        let mut forwarder = Forwarder { socket, shared: Arc::clone(&shared), away: HashMap::new() };
        let spawned = thread::Builder::new().name("forwarding".to_owned()).spawn(move || forwarder.run());
        Ok(Self { at, shared, thread: Some(spawned.map_err(broken)?) })
    }

    /// The address that the rack's hosts and its spine use for the leaf.
    pub(super) const fn at(&self) -> SocketAddr {
        self.at
    }

    /// Sets the address at which the leaf's process listens.
    pub(super) fn set_leaf(&self, leaf: Option<SocketAddr>) {
        *locked(&self.shared.leaf) = leaf;
    }

    /// The times that packets took to this rack's leaf and back.
    pub(super) fn leaf_trip(&self, rack: u16) -> LeafTrip {
        let trips = locked(&self.shared.trips);
        LeafTrip { rack, packets: trips.len(), trip_ns: quantiles(&trips, 1.0) }
    }
}

impl Drop for Forwarding {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed on stderr.
            thread.join().ok();
        }
    }
}

/// Matches an outgoing packet with an incoming one: a task goes down and its reply goes up under the task's
/// name.
type TripName = (bool, TaskId);

struct Forwarder {
    socket: UdpSocket,
    shared: Arc<Shared>,
    away: HashMap<TripName, Instant>,
}

impl Forwarder {
    fn run(&mut self) {
        let mut bytes = vec![0; DATAGRAM_MAX];
        while !self.shared.ends.load(Ordering::Relaxed) {
            // Leaves room for the address that is written before a packet to the leaf.
            let received = self.socket.recv_from(&mut bytes[detour::HEAD_BYTES..]);
            // An error means that nothing arrived, or that a dead leaf refused an earlier packet.
            if let Ok((length, from)) = received {
                self.forward(&mut bytes[..detour::HEAD_BYTES + length], from);
            }
        }
    }

    fn forward(&mut self, bytes: &mut [u8], from: SocketAddr) {
        let leaf = *locked(&self.shared.leaf);
        let Some(leaf) = leaf else { return };
        let packet = &bytes[detour::HEAD_BYTES..];
        if from == leaf {
            let Some((to, packet)) = detour::take(packet) else { return };
            self.record_return(packet);
            // A datagram that cannot be sent is lost, as any datagram may be.
            self.socket.send_to(packet, SocketAddr::from(to)).ok();
            return;
        }
        self.record_departure(packet);
        let length = packet.len();
        let sent = detour::put(from.into(), bytes, |_| length);
        self.socket.send_to(&bytes[..sent], leaf).ok();
    }

    fn record_departure(&mut self, packet: &[u8]) {
        if self.away.len() == AWAY_MAX {
            self.away.clear();
        }
        if let Some(known) = known(packet) {
            self.away.insert(known, Instant::now());
        }
    }

    fn record_return(&mut self, packet: &[u8]) {
        let Some(went) = known(packet).and_then(|known| self.away.remove(&known)) else { return };
        let trip_ns = u64::try_from(went.elapsed().as_nanos()).unwrap_or(u64::MAX);
        locked(&self.shared.trips).saturating_record(trip_ns);
    }
}

fn known(packet: &[u8]) -> Option<TripName> {
    match parse(packet).ok()?.0 {
        Packet::Dispatch(down) => Some((false, down.task)),
        Packet::Reply(up) => Some((true, up.task)),
        _ => None,
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
