//! Watches when WRITEs really leave, by the kernel's timestamps of frames on their link.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{io, panic};

use sluice_wire::Endpoint;
use sluice_wire::roce::{Frame, Psn, View};

use crate::NetError;
use crate::udp::LinkTap;

/// How often frames are read; meanwhile the kernel buffers 64 MiB of them.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A WRITE on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteSeen {
    /// The source port.
    pub port: u16,
    /// The sequence number in its flow.
    pub psn: Psn,
    /// The time in ns since 1970; `None` if the kernel did not stamp the frame.
    pub at: Option<u64>,
}

/// A thread that watches all WRITEs to one receiver, on all links of the network namespace in which it was
/// started.
#[derive(Debug)]
pub struct LinkWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<WriteSeen>>>,
}

impl LinkWatch {
    /// Starts to watch.
    ///
    /// # Errors
    /// [`NetError::NoTap`] without the privilege, [`NetError::Thread`] if the system has no thread left.
    pub fn start(to: SocketAddr) -> Result<Self, NetError> {
        let tap = LinkTap::open().map_err(|why| NetError::NoTap { why })?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("link".to_owned());
        let thread = thread.spawn(move || look(tap, to.into(), &stopped));
        Ok(Self { stop, thread: thread.map_err(|why| NetError::Thread { name: "link", why })? })
    }

    /// Stops, and returns the WRITEs in the order of the link. On the loopback each WRITE is seen twice.
    ///
    /// # Errors
    /// [`NetError::NoTap`] if the kernel failed to deliver frames.
    pub fn end(self) -> Result<Vec<WriteSeen>, NetError> {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.thread.join().unwrap_or_else(|panic| panic::resume_unwind(panic));
        seen.map_err(|why| NetError::NoTap { why })
    }
}

fn look(mut tap: LinkTap, to: Endpoint, stop: &AtomicBool) -> io::Result<Vec<WriteSeen>> {
    let mut seen = Vec::new();
    loop {
        let last = stop.load(Ordering::Relaxed);
        while tap.take(|at, frame| seen.extend(write_in(frame, to, at)))? > 0 {}
        if last {
            return Ok(seen);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// The WRITE in a frame; `None` if there is none for this receiver.
fn write_in(frame: &[u8], to: Endpoint, at: Option<u64>) -> Option<WriteSeen> {
    let frame = Frame::parse(frame).ok().filter(|frame| frame.path.to() == to)?;
    let (write, _) = View::parse(frame.transport).ok()?.write().ok()?;
    Some(WriteSeen { port: frame.path.from().port, psn: write.psn, at })
}
