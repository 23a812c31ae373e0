//! Watches a network namespace's links: a copy of each frame, with the kernel's timestamp.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::ring::{BATCH, ReceiveRing};
use crate::sys;

/// How many bytes of a frame are kept: the headers, and the largest `RoCEv2` write of one packet.
const FRAME_BYTES: usize = 4_300;
/// The size requested from the kernel for frames that were not read yet, in bytes.
const BUFFER_BYTES: libc::c_int = 64 << 20;

/// A copy of every frame that leaves or enters the network namespace of the thread that opened it. Needs a
/// privilege. On the loopback each frame is seen twice.
pub(crate) struct LinkTap {
    fd: OwnedFd,
    ring: ReceiveRing,
}

impl LinkTap {
    /// Starts to watch.
    ///
    /// # Errors
    /// The kernel's reason: it needs a privilege.
    pub(crate) fn open() -> io::Result<Self> {
        let fd = sys::packet_socket()?;
        sys::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES)
            .or_else(|_| sys::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES))?;
        // Not SO_TIMESTAMPNS: with that option the kernel stamps a frame that has no stamp when it is read.
        let stamps = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        sys::set_option(fd.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPING, stamps as libc::c_int)?;
        Ok(Self { fd, ring: ReceiveRing::new(FRAME_BYTES, BATCH, true) })
    }

    /// Reads the new frames without waiting: each with the wall clock's time in ns since 1970. Returns how
    /// many there were. The kernel starts to stamp frames some milliseconds after the machine's first
    /// socket asked for it, or later if it is busy; earlier frames have no time.
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
