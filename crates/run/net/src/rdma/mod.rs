//! A server's end of RDMA: it takes writes from a socket, checks them, and copies them into memory that its
//! workers share (Rain §3.2.2).
//!
//! The socket is a plain one: unconnected and with DF set, so that the kernel writes the IP identification
//! 0 that [`Path`] assumes. An answer goes back to the port that its write came from.

mod capture;
#[allow(unsafe_code, reason = "memory that several processes map")]
mod memory;
#[cfg(test)]
mod on_link;
mod send;
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;

use sluice_host::rdma::{Endpoint, PairSpec, Placed, RdmaCounts, RegionId, RegionSpec};
use sluice_wire::Nanos;
use sluice_wire::roce::{Acknowledge, MAX_WRITE_BYTES, Path, Qpn, Rkey, encode_acknowledge, write_len};

pub use capture::Capture;
pub use memory::SharedMemory;
pub use send::{WaitsBy, WriteLeft, WriteSender, WriteSenderOptions, WriteTotals, local_address};
pub use sluice_host::rdma::Mtu;
pub use watch::{LinkWatch, WriteSeen};

use crate::NetError;
use crate::sys::realtime;
use crate::udp::{Datagram, Outbox, Socket, SocketOptions, Wait, Waker};

/// A server: its socket, its queue pairs, and the memory that may be written.
pub struct Receiver {
    socket: Socket,
    endpoint: Endpoint,
    regions: Vec<(RegionId, Arc<SharedMemory>)>,
    /// The path of the last datagram, as a cache: most come from one switch.
    path: Option<Path>,
    capture: Option<Capture>,
    failed: bool,
}

impl Receiver {
    /// Binds an address to which the switch can send.
    ///
    /// # Errors
    /// [`NetError::Unreachable`] for the unspecified address, since a sender could not compute its iCRC;
    /// otherwise as [`Socket::bind`].
    pub fn bind(at: SocketAddr, options: &SocketOptions) -> Result<Self, NetError> {
        if at.ip().is_unspecified() {
            return Err(NetError::Unreachable { at });
        }
        let datagram_max = write_len(MAX_WRITE_BYTES);
        let options = SocketOptions { datagram_max, refusals: false, ..options.clone() };
        let socket = Socket::bind(at, &options)?;
        Ok(Self {
            socket,
            endpoint: Endpoint::new(),
            regions: Vec::new(),
            path: None,
            capture: None,
            failed: false,
        })
    }

    /// The address on which the socket listens.
    pub fn local(&self) -> SocketAddr {
        self.socket.local()
    }

    /// A waker that ends the receiver's wait from another thread.
    pub fn waker(&self) -> Waker {
        self.socket.waker()
    }

    /// Registers all of `memory`: writers that show the key may write into it. They know its first byte as
    /// `address`.
    ///
    /// # Errors
    /// [`NetError::Region`] if the key is taken or the address range overflows.
    pub fn register(
        &mut self,
        rkey: Rkey,
        address: u64,
        memory: Arc<SharedMemory>,
    ) -> Result<RegionId, NetError> {
        let region = self.endpoint.register(RegionSpec { rkey, address, bytes: memory.bytes() })?;
        self.regions.push((region, memory));
        Ok(region)
    }

    /// Removes a region.
    pub fn deregister(&mut self, region: RegionId) {
        self.endpoint.deregister(region);
        self.regions.retain(|(known, _)| *known != region);
    }

    /// Opens a queue pair, or opens it anew.
    pub fn connect(&mut self, pair: PairSpec) {
        self.endpoint.connect(pair);
        self.failed = false;
    }

    /// Removes a queue pair.
    pub fn disconnect(&mut self, number: Qpn) {
        self.endpoint.disconnect(number);
    }

    /// Writes all received and sent packets to a capture file from now on.
    pub fn capture(&mut self, capture: Option<Capture>) {
        self.capture = capture;
    }

    /// Whether a pair went into its error state since one was last connected.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Counters of accepted and refused packets.
    pub fn counts(&self) -> &RdmaCounts {
        self.endpoint.counts()
    }

    /// Receives a batch. Returns how many datagrams it had; their bytes are in the memory on return.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the kernel refuses to receive, [`NetError::Capture`] if the capture file
    /// cannot be written.
    pub fn step(&mut self, wait: Wait) -> Result<usize, NetError> {
        let taken = self.socket.receive(wait)?;
        let local = self.socket.local().into();
        let (inbox, outbox) = self.socket.split();
        for index in 0..taken {
            let Datagram { from, bytes, .. } = inbox.datagram(index);
            let known = self.path.filter(|path| path.from() == from);
            let Some(path) = known.or_else(|| Path::between(from, local)) else { continue };
            self.path = Some(path);
            if let Some(capture) = &mut self.capture {
                capture.record(Nanos(realtime()), &path, bytes)?;
            }
            let received = self.endpoint.receive(bytes, &path);
            self.failed |= received.failed.is_some();
            if let Ok(placed) = received.outcome {
                put(&self.regions, &placed);
            }
            if let Some(answer) = received.answer {
                send(&answer, &path.back(), outbox, self.capture.as_mut())?;
            }
        }
        self.socket.flush();
        self.capture.as_mut().map_or(Ok(()), Capture::flush)?;
        Ok(taken)
    }
}

fn put(regions: &[(RegionId, Arc<SharedMemory>)], placed: &Placed<'_>) {
    if let Some((_, memory)) = regions.iter().find(|(region, _)| *region == placed.region) {
        memory.write(placed.offset, placed.bytes);
    }
}

fn send(
    answer: &Acknowledge,
    path: &Path,
    outbox: &mut Outbox,
    capture: Option<&mut Capture>,
) -> Result<(), NetError> {
    let mut bytes = [0; 32];
    let Ok(length) = encode_acknowledge(answer, Some(path), &mut bytes) else { return Ok(()) };
    outbox.send(path.to(), &bytes[..length]);
    capture.map_or(Ok(()), |capture| capture.record(Nanos(realtime()), path, &bytes[..length]))
}
