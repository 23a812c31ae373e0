//! When WRITEs really left: what their link shows, with the kernel's stamps.

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

/// How often frames are taken; the kernel keeps 64 MiB of them meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A WRITE on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteSeen {
    /// The port that it came from.
    pub port: u16,
    /// Its place in its flow.
    pub psn: Psn,
    /// When, in ns since 1970; nothing, if the kernel did not stamp it.
    pub at: Option<u64>,
}

/// A thread that looks at all WRITEs to one receiver, on all links of its starter's network.
#[derive(Debug)]
pub struct LinkWatch {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Vec<WriteSeen>>>,
}

impl LinkWatch {
    /// Looks from now on.
    ///
    /// # Errors
    /// [`NetError::NoTap`] without the privilege, [`NetError::Thread`] if there is no thread to be had.
    pub fn start(to: SocketAddr) -> Result<Self, NetError> {
        let tap = LinkTap::open().map_err(|why| NetError::NoTap { why })?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("link".to_owned());
        let thread = thread.spawn(move || look(tap, to.into(), &stopped));
        Ok(Self { stop, thread: thread.map_err(|why| NetError::Thread { name: "link", why })? })
    }

    /// Ends, and gives what was seen, in the order of the link. Over the loopback each WRITE is seen twice.
    ///
    /// # Errors
    /// [`NetError::NoTap`] if the kernel had no more to show.
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

/// The WRITE in a frame, if there is one for that receiver.
fn write_in(frame: &[u8], to: Endpoint, at: Option<u64>) -> Option<WriteSeen> {
    let frame = Frame::parse(frame).ok().filter(|frame| frame.path.to() == to)?;
    let (write, _) = View::parse(frame.transport).ok()?.write().ok()?;
    Some(WriteSeen { port: frame.path.from().port, psn: write.psn, at })
}
