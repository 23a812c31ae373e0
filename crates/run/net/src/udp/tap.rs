//! What a network's links carry, frame by frame, each with the time at which the kernel let it pass.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::ring::{BATCH, ReceiveRing};
use crate::sys;

/// Bytes of a frame that are looked at: the headers, and what `RoCEv2` writes with one packet.
const FRAME_BYTES: usize = 4_300;
/// Bytes asked of the kernel for frames that were not taken yet.
const BUFFER_BYTES: libc::c_int = 64 << 20;

/// A copy of every frame that leaves or comes to the network of the thread that opened it. Only the
/// privileged get one. A frame over the loopback is seen twice.
pub(crate) struct LinkTap {
    fd: OwnedFd,
    ring: ReceiveRing,
}

impl LinkTap {
    /// Looks from now on.
    ///
    /// # Errors
    /// The kernel's reason: it takes a privilege.
    pub(crate) fn open() -> io::Result<Self> {
        let fd = sys::packet_socket()?;
        sys::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES)
            .or_else(|_| sys::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES))?;
        // Not SO_TIMESTAMPNS, with which the kernel gives what it has not stamped the time of its reading.
        let stamps = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        sys::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, stamps as libc::c_int)?;
        Ok(Self { fd, ring: ReceiveRing::new(FRAME_BYTES, BATCH, true) })
    }

    /// Takes what was seen since, without waiting: each frame with the wall clock's time, ns since 1970. Says
    /// how many there were. The kernel stamps none until it has found the time to begin with it: some
    /// milliseconds after the first socket of the machine asked for that, and longer if it is busy.
    ///
    /// # Errors
    /// The kernel's reason.
    pub(crate) fn take(&mut self, mut each: impl FnMut(Option<u64>, &[u8])) -> io::Result<usize> {
        let taken = self.ring.receive(self.fd.as_fd())?;
        for place in 0..taken {
            each(self.ring.stamp(place), self.ring.bytes(place));
        }
        Ok(taken)
    }
}
