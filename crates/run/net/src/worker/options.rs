//! The settings of a worker.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use sluice_netem::FaultPlan;
use sluice_rpc::Remote;
use sluice_traces::Tracer;
use sluice_wire::Nanos;

use super::ServerMemory;
use super::metrics::WorkerMetrics;
use crate::NetError;
use crate::first::DATAGRAM_BYTES_MOST;
use crate::udp::{DATAGRAM_BYTES, Socket, SocketOptions, Waiting};

/// For how long a worker drains by default.
pub const DRAIN_LIMIT: Nanos = Nanos::from_millis(30_000);

/// The settings of a worker. [`WorkerOptions::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// The address of the controller.
    pub controller: Remote,
    /// The worker's name: unique among running workers.
    pub name: String,
    /// The address at which switch and clients reach this worker; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// The server whose memory the worker shares, if there is one.
    pub memory: Option<ServerMemory>,
    /// The slice to join; empty for the first slice whose types the service understands.
    pub slice: String,
    /// The worker's labels, among those in the plan.
    pub labels: Vec<String>,
    /// How many tasks may be granted or held at once (N), 1 to 8.
    pub quota: u8,
    /// How many tasks per second the worker can serve; 0 to report the measured number.
    pub capacity: u32,
    /// A factor for service times and network times.
    pub dilation: u32,
    /// Whether tokens leave before their tasks end, if that end can be predicted
    /// ([`crate::service::Task::left`]).
    pub early: bool,
    /// How many tasks must wait in the switch before the worker asks for more than one; 0 for no such
    /// condition.
    pub patience: u8,
    /// The file of the server's agent ([`crate::agent::Lines`]), if the agent finds the quota.
    pub agent: Option<PathBuf>,
    /// The longest packet that is sent, in bytes of UDP payload. Longer ones are received too.
    pub datagram_max: usize,
    /// How the thread waits.
    pub waiting: Waiting,
    /// For how long a worker that was stopped may go on to finish its tasks. Then it ends without them, as
    /// after a second [`Stopper::stop`](super::Stopper::stop).
    pub drain_limit: Nanos,
    /// The core to which the thread is pinned.
    pub pin: Option<usize>,
    /// The injected faults.
    pub faults: FaultPlan,
    /// Where the worker counts for Prometheus, if anybody wants that.
    pub metrics: Option<WorkerMetrics>,
    /// Who takes the spans of one task in N, if anybody wants them.
    pub traces: Option<Tracer>,
}

impl WorkerOptions {
    /// A worker on this machine with a unique name. `controller` is `HOST:PORT` or a URL.
    ///
    /// # Errors
    /// [`NetError::Rpc`] if `controller` is not an address.
    pub fn new(controller: &str) -> Result<Self, NetError> {
        Ok(Self::of(Remote::new(controller, None)?))
    }

    /// Like [`Self::new`], for a controller that may need TLS.
    pub fn of(controller: Remote) -> Self {
        Self {
            name: controller.own_name("worker"),
            controller,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            memory: None,
            slice: String::new(),
            labels: Vec::new(),
            quota: 2,
            capacity: 0,
            dilation: 1,
            early: false,
            patience: 0,
            agent: None,
            datagram_max: DATAGRAM_BYTES,
            waiting: Waiting::default(),
            drain_limit: DRAIN_LIMIT,
            pin: None,
            faults: FaultPlan::none(),
            metrics: None,
            traces: None,
        }
    }
}

/// Opens its socket.
pub(super) fn bind(options: &WorkerOptions) -> Result<Socket, NetError> {
    let of_socket = SocketOptions {
        datagram_max: options.datagram_max.max(DATAGRAM_BYTES_MOST),
        waiting: options.waiting,
        faults: options.faults.clone(),
        ..SocketOptions::default()
    };
    Socket::bind(options.listen, &of_socket)
}
