//! A host's sending end of RDMA: WRITE-Only packets over unreliable pairs, each at its scheduled time and
//! behind a pacer (HF²T §4, §6).
//!
//! A flow is a queue pair with a source port of its own, by which switches tell flows apart. Only one frame
//! of a flow is on its way out at a time: a frame that becomes ready during a hold leaves after the held
//! one. [`WaitsBy`] says where frames wait for their time.
//!
//! Left out: reliable connections (no answers are read), messages of several packets, and congestion
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

/// The longest sleep, so that a stop request is noticed soon.
const SLEEP_MAX: Nanos = Nanos::from_millis(20);

/// Totals of a sender over all flows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WriteTotals {
    /// WRITEs that the kernel accepted.
    pub sent: u64,
    /// WRITEs that the kernel refused.
    pub failed: u64,
    /// The pacer's counters.
    pub pacer: PacerCounts,
    /// T, the learnt percentile of the host's gaps; `None` during the training.
    pub tail: Option<Nanos>,
    /// How long the sender ran.
    pub ran: Nanos,
    /// For how long the sender's thread had a processor.
    pub cpu: Nanos,
}

/// A host that sends WRITEs.
pub struct WriteSender {
    flows: Vec<WriteFlow>,
    pacer: Option<Pacer>,
    waits: WaitsBy,
    ran: Nanos,
    cpu: Nanos,
}

/// This machine's address on the route to `to`.
///
/// # Errors
/// [`NetError::Bind`] if there is no route.
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
    /// [`NetError::Pacer`] for invalid settings of the pacer, otherwise the sockets' errors.
    pub fn new(options: &WriteSenderOptions) -> Result<Self, NetError> {
        let pacer = options.pacer.map(|settings| Pacer::new(settings, options.frame)).transpose();
        let pacer = pacer.map_err(|why: PacerError| NetError::Pacer { why })?;
        let flows = (0..options.flows).map(|place| WriteFlow::open(options, place));
        let flows = flows.collect::<Result<_, _>>()?;
        Ok(Self { flows, pacer, waits: options.waits, ran: Nanos(0), cpu: Nanos(0) })
    }

    /// The source ports of the flows, in order.
    pub fn ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.flows.iter().map(WriteFlow::port)
    }

    /// Sends each flow's WRITEs at the times in its schedule, in order, and reports each departure. Ends
    /// when all schedules are exhausted or `stop` is set.
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

    /// The totals so far.
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

    /// Waits until about `soonest`, as far as this sender itself waits.
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
