//! How a worker is set up.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use sluice_netem::FaultPlan;
use sluice_rpc::Remote;

use super::ServerMemory;
use crate::NetError;
use crate::udp::{DATAGRAM_BYTES, Socket, SocketOptions, Waiting};

/// How a worker is set up. [`WorkerOptions::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// Where the controller is.
    pub controller: Remote,
    /// The worker's name: unique among those that live.
    pub name: String,
    /// The address by which switch and clients reach this worker; port 0 lets the kernel choose.
    pub listen: SocketAddr,
    /// The server whose memory it shares, if there is one.
    pub memory: Option<ServerMemory>,
    /// The slice to join; empty for the first whose types the service understands.
    pub slice: String,
    /// The labels that it has, of those that the plan names.
    pub labels: Vec<String>,
    /// Tasks granted or held at once (N), 1 to 8.
    pub quota: u8,
    /// Tasks per second that it is expected to serve; 0 to report what is measured.
    pub capacity: u32,
    /// Service times and times of the network, multiplied.
    pub dilation: u32,
    /// Whether tokens leave before their tasks end, where that can be told ([`crate::service::Task::left`]).
    pub early: bool,
    /// How many tasks have to wait in the switch before more than one is asked for; 0: none.
    pub patience: u8,
    /// The lines of its server's agent ([`crate::agent::Lines`]), if that finds its quota.
    pub agent: Option<PathBuf>,
    /// The longest packet, in bytes of UDP payload.
    pub datagram_max: usize,
    /// How the thread waits.
    pub waiting: Waiting,
    /// The core of the thread.
    pub pin: Option<usize>,
    /// What goes wrong on purpose.
    pub faults: FaultPlan,
}

impl WorkerOptions {
    /// A worker on this machine with a name of its own. The controller is at `controller` (`HOST:PORT` or a
    /// URL).
    ///
    /// # Errors
    /// [`NetError::Rpc`] if that is no address.
    pub fn new(controller: &str) -> Result<Self, NetError> {
        Ok(Self::of(Remote::new(controller, None)?))
    }

    /// The same, for a controller that may need TLS.
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
            pin: None,
            faults: FaultPlan::none(),
        }
    }
}

/// Opens its socket.
pub(super) fn bind(options: &WorkerOptions) -> Result<Socket, NetError> {
    let of_socket = SocketOptions {
        datagram_max: options.datagram_max,
        waiting: options.waiting,
        faults: options.faults.clone(),
        ..SocketOptions::default()
    };
    Socket::bind(options.listen, &of_socket)
}
