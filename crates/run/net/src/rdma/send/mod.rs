//! A host's sending end of RDMA: WRITE-Only packets over unreliable pairs, each at its time, with a pacer
//! before them (HF²T §4, §6).
//!
//! A flow is a queue pair with a source port of its own, by which switches tell flows apart. One frame of a
//! flow is on its way out at a time: what comes while it is held leaves behind it. [`WaitsBy`] says where
//! frames wait for their time.
//!
//! Left out: reliable connections, whose answers nobody reads here; messages of several packets; congestion
//! control.

mod flow;
mod options;

use std::hint;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use flow::WriteFlow;
use options::AHEAD;
use sluice_host::pacer::{Pacer, PacerCounts, PacerError};
use sluice_wire::Nanos;

use crate::NetError;
use crate::clock::{monotonic, thread_cpu};
use crate::sys::sharpen_timers;
pub use options::{WaitsBy, WriteLeft, WriteSenderOptions};

/// So long a sleep at most, so that the end is heard of.
const SLEEP_MAX: Nanos = Nanos::from_millis(20);

/// What a sender did, all flows together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WriteTotals {
    /// WRITEs that the kernel took.
    pub sent: u64,
    /// WRITEs that it did not take.
    pub failed: u64,
    /// What the pacer did.
    pub pacer: PacerCounts,
    /// T, once it is known.
    pub tail: Option<Nanos>,
    /// How long it sent.
    pub ran: Nanos,
    /// For how long of that its thread had a processor.
    pub cpu: Nanos,
}

/// A host that writes.
pub struct WriteSender {
    flows: Vec<WriteFlow>,
    pacer: Option<Pacer>,
    waits: WaitsBy,
    ran: Nanos,
    cpu: Nanos,
}

/// The address that this machine has on its way to `to`.
///
/// # Errors
/// [`NetError::Bind`] if there is no way there.
pub fn local_address(to: SocketAddr) -> Result<IpAddr, NetError> {
    let any = if to.is_ipv4() { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let found = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(to)?;
        socket.local_addr()
    });
    found.map(|local| local.ip()).map_err(|why| NetError::NoWay { to, why })
}

impl WriteSender {
    /// Opens a socket for each flow.
    ///
    /// # Errors
    /// [`NetError::Pacer`] for settings of the pacer that make no sense, else as sockets have them.
    pub fn new(options: &WriteSenderOptions) -> Result<Self, NetError> {
        let pacer = options.pacer.map(|settings| Pacer::new(settings, options.frame)).transpose();
        let pacer = pacer.map_err(|why: PacerError| NetError::Pacer { why })?;
        let flows = (0..options.flows).map(|place| WriteFlow::open(options, place));
        let flows = flows.collect::<Result<_, _>>()?;
        Ok(Self { flows, pacer, waits: options.waits, ran: Nanos(0), cpu: Nanos(0) })
    }

    /// The source ports, in the order of the flows.
    pub fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.flows.iter().map(WriteFlow::port)
    }

    /// Sends each flow's WRITEs at the times that its schedule gives, from now on and in their order, and
    /// says of each that it left. Ends when no schedule has more, or `stop` is set.
    pub fn run<S: Iterator<Item = Nanos>>(
        &mut self,
        mut schedules: Vec<S>,
        stop: &AtomicBool,
        mut left: impl FnMut(WriteLeft),
    ) {
        sharpen_timers();
        let (start, cpu) = (monotonic(), thread_cpu());
        let mut next = |place: usize| schedules.get_mut(place)?.next().map(|at| start + at);
        for (place, flow) in self.flows.iter_mut().enumerate() {
            flow.expect(next(place));
        }
        while !stop.load(Ordering::Relaxed) {
            let now = monotonic();
            for (place, flow) in self.flows.iter_mut().enumerate() {
                while let Some(sent) = flow.turn(self.waits, &mut self.pacer, now) {
                    left(WriteLeft { flow: place, ..sent });
                    flow.expect(next(place));
                }
                flow.hand_over(self.waits);
            }
            let Some(soonest) = self.flows.iter().filter_map(WriteFlow::next).min() else { break };
            self.wait(soonest);
        }
        self.ran = self.ran + monotonic().since(start);
        self.cpu = self.cpu + thread_cpu().since(cpu);
    }

    /// What it did so far.
    pub fn totals(&self) -> WriteTotals {
        let sockets = || self.flows.iter().map(WriteFlow::counts);
        WriteTotals {
            sent: sockets().map(|of| of.sent).sum(),
            failed: sockets().map(|of| of.failed + of.overrun).sum(),
            pacer: self.pacer.as_ref().map(Pacer::counts).unwrap_or_default(),
            tail: self.pacer.as_ref().and_then(Pacer::tail),
            ran: self.ran,
            cpu: self.cpu,
        }
    }

    /// Waits until about then, as far as this sender waits itself.
    fn wait(&self, soonest: Nanos) {
        let wake = match self.waits {
            WaitsBy::Spinning => return hint::spin_loop(),
            WaitsBy::Sleeping => soonest,
            WaitsBy::Kernel => Nanos(soonest.0.saturating_sub(AHEAD.0 / 2)),
        };
        let left = wake.since(monotonic()).min(SLEEP_MAX);
        if left > Nanos(0) {
            thread::sleep(Duration::from_nanos(left.0));
        }
    }
}
