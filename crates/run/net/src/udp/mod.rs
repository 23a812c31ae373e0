//! UDP sockets with batches: one system call receives or sends up to [`BATCH`] datagrams.
//!
//! A [`Socket`] belongs to one thread. It waits by spinning or in the kernel; a [`Waker`] ends its wait
//! from any other thread. The faults of its plan happen inside it, in both directions. No memory is
//! allocated per datagram.
//!
//! Left out: GSO, which joins datagrams for one destination. A switch's datagrams go to many destinations,
//! and a host has only one datagram at a time.

mod inbox;
mod lateness;
mod name;
mod outbox;
mod ready;
#[allow(unsafe_code, reason = "the kernel takes batches as arrays of raw pointers")]
mod ring;
mod tap;
mod waker;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use sluice_wire::{Endpoint, Nanos};

pub use inbox::{Datagram, Inbox};
pub use lateness::{Lateness, PublishedLateness};
pub use outbox::Outbox;
pub use ready::{Ready, ReadySet};
pub use ring::BATCH;
pub(crate) use tap::LinkTap;
pub use waker::Waker;

use crate::NetError;
use crate::pin::cores;
use crate::sys;
use name::Family;
use sluice_netem::{FaultCounts, FaultPlan};

/// The UDP payload of an Ethernet frame beside the IPv4 and UDP headers, in bytes.
pub const DATAGRAM_BYTES: usize = 1_472;

/// The size requested from the kernel for each of a socket's two buffers, in bytes.
const BUFFER_BYTES: libc::c_int = 8 << 20;
/// How long an adaptive wait spins before it sleeps, if the machine has cores to spare.
const SPIN: Nanos = Nanos::from_micros(50);
/// A shorter wait spins, except with [`Waiting::Block`]: a sleep would last longer than the wait.
const TOO_SHORT_TO_SLEEP: Nanos = Nanos::from_micros(20);
/// A machine with fewer cores cannot spare one for spinning.
const CORES_TO_SPIN: usize = 4;

/// The settings of a socket.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// The longest datagram that is received or sent, in bytes.
    pub datagram_max: usize,
    /// The largest number of datagrams per system call, 1 to [`BATCH`].
    pub batch: usize,
    /// Whether the kernel stamps each arrival.
    pub stamps: bool,
    /// Whether to report peers at which no socket listens.
    pub refusals: bool,
    pub waiting: Waiting,
    /// The injected faults.
    pub faults: FaultPlan,
}

impl Default for SocketOptions {
    /// A host's socket: stamps and refusals on, no faults.
    fn default() -> Self {
        Self {
            datagram_max: DATAGRAM_BYTES,
            batch: BATCH,
            stamps: true,
            refusals: true,
            waiting: Waiting::Adaptive,
            faults: FaultPlan::none(),
        }
    }
}

/// How a socket waits when nothing has arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Waiting {
    /// Polls continuously: the lowest latency, but occupies a core.
    Spin,
    /// Sleeps in the kernel at once.
    Block,
    /// Spins for a short time if the machine has cores to spare, then sleeps.
    #[default]
    Adaptive,
}

/// How long a receive may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    Poll,
    /// Until this time.
    Until(Nanos),
    /// Until something comes.
    Forever,
}

/// Counters of a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketCounts {
    /// Datagrams received from the kernel.
    pub received: u64,
    /// Datagrams handed to the kernel.
    pub sent: u64,
    /// Datagrams that could not be sent.
    pub failed: u64,
    /// Datagrams dropped because they were longer than the socket accepts.
    pub oversized: u64,
    /// Datagrams dropped because too many others were held.
    pub overrun: u64,
    /// Faults injected into arriving datagrams.
    pub faults_in: FaultCounts,
    /// Faults injected into leaving datagrams.
    pub faults_out: FaultCounts,
    /// The lateness of held datagrams.
    pub late: Lateness,
    /// Time slept.
    pub slept: Nanos,
}

/// A UDP socket.
pub struct Socket {
    inbox: Inbox,
    outbox: Outbox,
    waker: Waker,
    spin: Option<Nanos>,
    local: SocketAddr,
    slept: Nanos,
}

impl Socket {
    /// Binds `at`; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// [`NetError::Bind`] if the address cannot be bound, [`NetError::Socket`] if the kernel refuses an
    /// option.
    pub fn bind(at: SocketAddr, options: &SocketOptions) -> Result<Self, NetError> {
        let socket = UdpSocket::bind(at).map_err(|why| NetError::Bind { at, why })?;
        Self::over(socket, options)
    }

    /// Uses a socket that is bound already.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the kernel refuses an option.
    pub fn over(socket: UdpSocket, options: &SocketOptions) -> Result<Self, NetError> {
        let local = socket.local_addr().map_err(|why| NetError::Socket { what: "getsockname", why })?;
        let family = if local.is_ipv4() { Family::V4 } else { Family::V6 };
        let fd = Arc::new(OwnedFd::from(socket));
        prepare(fd.as_fd(), family, options).map_err(|why| NetError::Socket { what: "setsockopt", why })?;
        let waker = Waker::new().map_err(|why| NetError::Socket { what: "eventfd", why })?;
        Ok(Self {
            inbox: Inbox::new((options.datagram_max, options.batch), options.stamps, &options.faults),
            outbox: Outbox::new(fd, family, (options.datagram_max, options.batch), &options.faults),
            waker,
            spin: spin_of(options.waiting),
            local,
            slept: Nanos(0),
        })
    }

    /// The address on which the socket listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Ends this socket's wait from another thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Sends what is queued or due, then receives the next batch. Returns the number of its datagrams. Zero
    /// if the time is over, the waker was called, or all received datagrams were dropped (see
    /// [`SocketCounts`]). The batch stays valid until the next call.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the kernel refuses to receive or to wait.
    pub fn receive(&mut self, wait: Wait) -> Result<usize, NetError> {
        let mut began = None;
        let received = self.inbox.received();
        loop {
            let now = sys::monotonic();
            self.outbox.release(now);
            self.outbox.flush();
            let taken = self.take(now)?;
            let over = match wait {
                Wait::Poll => true,
                Wait::Until(end) => now >= end,
                Wait::Forever => false,
            };
            if taken > 0 || self.inbox.received() > received || over || self.waker.take() {
                return Ok(taken);
            }
            if self.idle(now, *began.get_or_insert(now), wait)? {
                return self.take(sys::monotonic());
            }
        }
    }

    /// Receives the next batch without waiting. `now` is taken as the arrival time of all datagrams.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the socket fails.
    pub fn receive_at(&mut self, now: Nanos) -> Result<usize, NetError> {
        self.outbox.release(now);
        self.outbox.flush();
        let taken = self.inbox.take_at(self.outbox.fd(), now);
        self.taken(taken)
    }

    /// The receiving half, with the last batch.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// The receiving and the sending half at once, to send while reading the last batch.
    pub fn split(&mut self) -> (&Inbox, &mut Outbox) {
        (&self.inbox, &mut self.outbox)
    }

    /// The sending half.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// Queues a copy of `bytes`; see [`Outbox::send`].
    pub fn send(&mut self, to: Endpoint, bytes: &[u8]) {
        self.outbox.send(to, bytes);
    }

    /// Sends what is queued.
    pub fn flush(&mut self) {
        self.outbox.flush();
    }

    /// Sends what is queued or due, for an owner that does not receive at once.
    pub fn send_due(&mut self) {
        self.outbox.release(sys::monotonic());
        self.outbox.flush();
    }

    /// Enables departure times of datagrams ([`Outbox::send_leaving`]).
    ///
    /// # Errors
    /// [`NetError::Socket`] if the kernel does not support them.
    pub(crate) fn take_departure_times(&self) -> Result<(), NetError> {
        sys::take_departure_times(self.fd()).map_err(|why| NetError::Socket { what: "setsockopt", why })
    }

    /// The counters so far.
    pub fn counts(&self) -> SocketCounts {
        SocketCounts {
            received: self.inbox.received(),
            sent: self.outbox.sent(),
            failed: self.outbox.failed(),
            oversized: self.inbox.oversized(),
            overrun: self.inbox.overrun() + self.outbox.overrun(),
            faults_in: self.inbox.faults(),
            faults_out: self.outbox.faults(),
            late: self.outbox.late(),
            slept: self.slept,
        }
    }

    /// When a held datagram is due to be received or sent.
    pub fn next_due(&self) -> Option<Nanos> {
        [self.inbox.next_due(), self.outbox.next_due()].into_iter().flatten().min()
    }

    /// Lets `waker` end this socket's waits instead of its own, for sockets that share a thread.
    pub fn share_waker(&mut self, waker: Waker) {
        self.waker = waker;
    }

    /// Reads pending errors about peers; otherwise the socket would look ready for ever.
    pub fn take_errors(&mut self) {
        self.outbox.take_errors();
    }

    /// The file descriptor, for a thread that waits for several sockets at once ([`ReadySet`]).
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.outbox.fd()
    }

    /// Datagrams that the kernel dropped because the socket's buffer was full.
    pub fn kernel_drops(&self) -> u64 {
        sys::kernel_drops(self.outbox.fd())
    }

    fn take(&mut self, now: Nanos) -> Result<usize, NetError> {
        let taken = self.inbox.take(self.outbox.fd(), now);
        self.taken(taken)
    }

    fn taken(&mut self, taken: io::Result<usize>) -> Result<usize, NetError> {
        match taken {
            Err(why) if sys::is_of_a_peer(&why) => {
                self.outbox.take_errors();
                Ok(0)
            }
            taken => taken.map_err(|why| NetError::Socket { what: "recvmmsg", why }),
        }
    }

    /// Spins once, or sleeps until something may have arrived. Returns whether the waker was called.
    fn idle(&mut self, now: Nanos, began: Nanos, wait: Wait) -> Result<bool, NetError> {
        let end = match wait {
            Wait::Until(end) => Some(end),
            Wait::Poll | Wait::Forever => None,
        };
        let until = [end, self.next_due()].into_iter().flatten().min();
        let longest = until.map(|until| until.since(now));
        let short = longest.is_some_and(|longest| longest < TOO_SHORT_TO_SLEEP);
        if self.spin.is_some_and(|spin| short || now.since(began) < spin) {
            std::hint::spin_loop();
            return Ok(false);
        }
        let fd = self.outbox.fd();
        let mut ended = Ok(sys::Woken::default());
        let called = self.waker.sleep(|event| ended = sys::wait(fd, event, longest));
        self.slept = self.slept + sys::monotonic().since(now);
        let ended = ended.map_err(|why| NetError::Socket { what: "ppoll", why })?;
        if ended.error {
            self.outbox.take_errors();
        }
        Ok(called)
    }
}

/// How long to spin before each sleep; `None` to never spin, not even for short waits.
fn spin_of(waiting: Waiting) -> Option<Nanos> {
    match waiting {
        Waiting::Spin => Some(Nanos(u64::MAX)),
        Waiting::Block => None,
        Waiting::Adaptive if cores() >= CORES_TO_SPIN => Some(SPIN),
        Waiting::Adaptive => Some(Nanos(0)),
    }
}

fn prepare(fd: BorrowedFd<'_>, family: Family, options: &SocketOptions) -> io::Result<()> {
    // The privileged option may exceed the system's limit; without the privilege the limit applies.
    for (forced, plain) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        sys::set_option(fd, libc::SOL_SOCKET, forced, BUFFER_BYTES)
            .or_else(|_| sys::set_option(fd, libc::SOL_SOCKET, plain, BUFFER_BYTES))?;
    }
    sys::set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, libc::c_int::from(options.stamps))?;
    let refusals = libc::c_int::from(options.refusals);
    match family {
        Family::V4 => {
            sys::set_option(fd, libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
            sys::set_option(fd, libc::SOL_IP, libc::IP_RECVERR, refusals)
        }
        Family::V6 => {
            sys::set_option(fd, libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
            sys::set_option(fd, libc::SOL_IPV6, libc::IPV6_RECVERR, refusals)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// Forges an ICMP error (type 3, this code) about a datagram that `socket` sent to port 9.
    fn tell_unreachable(socket: &Socket, code: u8) -> io::Result<()> {
        let home = Ipv4Addr::LOCALHOST.octets();
        let mut message = vec![3, code, 0, 0, 0, 0, 0, 0];
        message.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0]);
        message.extend([home, home].concat());
        message.extend(socket.local().port().to_be_bytes());
        message.extend([0, 9, 0, 20, 0, 0]);
        let words = message.chunks_exact(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]])));
        let sum: u32 = words.sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        message[2..4].copy_from_slice(&(!(folded as u16)).to_be_bytes());
        UdpSocket::from(sys::raw_icmp()?).send_to(&message, (Ipv4Addr::LOCALHOST, 0)).map(drop)
    }

    /// Waits for a datagram, and returns how many came.
    fn hear(socket: &mut Socket) -> usize {
        let end = sys::monotonic() + Nanos::from_millis(60_000);
        socket.receive(Wait::Until(end)).expect("the socket works")
    }

    #[test]
    fn whatever_the_network_says_of_one_peer_the_socket_serves_the_others() {
        let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut socket = Socket::bind(at, &SocketOptions::default()).expect("the loopback has free ports");
        let mut friend = Socket::bind(at, &SocketOptions::default()).expect("the loopback has free ports");
        for code in 0..16 {
            if tell_unreachable(&socket, code).is_err() {
                eprintln!("not run: forging ICMP messages takes a privilege");
                return;
            }
            friend.send(socket.local().into(), &[code]);
            friend.flush();
            assert_eq!(hear(&mut socket), 1, "code {code}");
            tell_unreachable(&socket, code).expect("it worked before");
            socket.send(friend.local().into(), &[code]);
            socket.flush();
            assert_eq!(hear(&mut friend), 1, "code {code}");
        }
        assert_eq!((socket.counts().sent, socket.counts().failed), (16, 0));
    }
}
