//! Starting a controller on a thread of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use sluice_control::{Controller, Plan, Tier};
use sluice_etcd::Etcd;
use tokio::sync::{broadcast, mpsc};
use tonic::service::Routes;

use super::handle::RunnerHandle;
use super::keeper::keep;
use super::lead::LeadPart;
use super::link::{Link, Source, SwitchLink};
use super::memory::RackMemory;
use super::metrics::ControllerMetrics;
use super::note_counts::NoteCounts;
use super::pod_registry::PodRegistry;
use super::runner::{Command, ControllerObserver, NoteSink, Runner};
use super::service::{ServedSpine, Service};
use super::standing::StandingBoard;
use crate::SwitchdError;
use crate::rpc::server::reflection;
use crate::rpc::services::controller_server::ControllerServer;
use crate::rpc::{Guard, RpcServer};

const SERVICE: &str = "sluice.v1.Controller";
/// How many calls may wait for the state machine; hosts beyond this number are told to come back.
const COMMANDS_MAX: usize = 1_024;
/// How many events a watcher may fall behind before it misses some.
const EVENTS_MAX: usize = 1_024;

/// The settings of a controller.
#[derive(Clone)]
pub struct ControllerOptions {
    pub at: SocketAddr,
    /// How the address is protected from strangers.
    pub guard: Guard,
    /// Slices, limits and times. The address of the switch in the plan is not used: the switch itself
    /// reports where hosts reach it.
    pub plan: Plan,
    /// The seed of host keys: fresh random bits, except in tests.
    pub seed: [u8; 32],
    pub switch: SwitchLink,
    /// Whether the controller leads only while the switch lets it, and waits until then. Not in the switch's
    /// own process.
    pub standby: bool,
    /// Which spine the switch is, from 1; 0 for a rack. A spine with 0 counts as the first.
    pub spine: u16,
}

/// Starts a controller on a thread of its own. It runs until the returned server is dropped.
///
/// # Errors
/// [`SwitchdError::Plan`]; [`SwitchdError::Insecure`] for an address beyond loopback without TLS;
/// [`SwitchdError::Net`] if a thread or socket cannot be had or a certificate cannot be used.
pub fn start_controller(options: ControllerOptions) -> Result<RpcServer, SwitchdError> {
    start(options, ControllerObserver::Nobody)
}

/// Starts a controller above several spines: one state machine for each spine, all in this process. A host
/// registers with the spine to which its rack (or the client itself) belongs, or with the spine that stands
/// in for it. `racks` lists the racks below each spine by their leaves' names. A leaf may be given the
/// address of any of these services, a client gets all of them. Several such processes may run, each with a
/// connection to `etcd`: who holds its lease leads at all spines.
///
/// # Errors
/// As [`start_controller`].
pub fn start_above(
    spines: Vec<ControllerOptions>,
    racks: Vec<Vec<String>>,
    etcd: Option<&mut Etcd>,
) -> Result<Vec<RpcServer>, SwitchdError> {
    let lease = spines.iter().map(|options| options.plan.lease).max().unwrap_or_default();
    let queue = |(spine, options): (usize, &ControllerOptions)| command_queue(spine, options.standby);
    let (handles, asked): (Vec<_>, Vec<_>) = (1..).zip(&spines).map(queue).unzip();
    let lead = etcd.as_ref().map(|etcd| etcd.lead());
    let desk = Arc::new(PodRegistry::new(racks, lease, handles.clone(), lead));
    let start = |(spine, ((options, handle), asked))| {
        let pods = ServedSpine { spine, desk: Arc::clone(&desk) };
        let theirs = Arc::clone(&desk);
        let told_to = ControllerObserver::Above(Box::new(move |news| theirs.on_spine_event(spine, news)));
        serve(options, (handle, asked), Some(pods), told_to)
    };
    let servers = spines.into_iter().zip(handles).zip(asked).enumerate().map(start);
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    if let Some(etcd) = etcd {
        let at: Vec<_> = servers.iter().map(|server| server.local().to_string()).collect();
        etcd.contend(at.join(","), Box::new(move |stored| desk.begin(stored)))?;
    }
    Ok(servers)
}

/// Starts a controller that reports to an observer.
pub(super) fn start(
    options: ControllerOptions,
    told_to: ControllerObserver,
) -> Result<RpcServer, SwitchdError> {
    let least = u16::from(options.plan.tier == Tier::Spine);
    let queue = command_queue(options.spine.max(least).into(), options.standby);
    serve(options, queue, None, told_to)
}

/// The sender and the receiver of the command queue of a spine's controller, or of a rack's (0).
fn command_queue(spine: usize, standby: bool) -> (RunnerHandle, mpsc::Receiver<Command>) {
    let (commands, asked) = mpsc::channel(COMMANDS_MAX);
    (RunnerHandle::new(commands, StandingBoard::new(spine, standby)), asked)
}

fn serve(
    options: ControllerOptions,
    (handle, asked): (RunnerHandle, mpsc::Receiver<Command>),
    pods: Option<ServedSpine>,
    told_to: ControllerObserver,
) -> Result<RpcServer, SwitchdError> {
    let plan = options.plan.clone();
    let make = if options.standby { Controller::standby } else { Controller::new };
    let controller = make(options.plan, options.seed)?;
    let switch = options.switch;
    let scheme = if matches!(options.guard, Guard::Tls(_)) { "https" } else { "http" };
    let etcd = pods.as_ref().and_then(|pods| pods.desk.etcd());
    let leaving = handle.clone();
    let notes = NoteCounts::new();
    let metrics = ControllerMetrics::new(handle.clone(), notes.clone());
    let server = RpcServer::start("sluice-controller", options.at, &options.guard, move |at, refused| {
        let source = Source::new(switch);
        let at = format!("{scheme}://{at}");
        let lead = LeadPart::new(&plan, at, source.clone(), etcd, handle.standing().clone());
        let memory = RackMemory::default();
        tokio::spawn(keep(memory.clone(), handle.clone(), source.clone(), Arc::clone(&refused)));
        let telling = NoteSink::new(broadcast::Sender::new(EVENTS_MAX), notes, memory.clone());
        let service = Service::new(handle, pods, telling.clone(), source.clone(), refused, memory);
        let runner = Runner::new(controller, asked, Link::start(source), telling, told_to, lead);
        let routes = Routes::new(ControllerServer::new(service)).add_service(reflection(SERVICE));
        (routes, Box::pin(runner.run()))
    })?;
    Ok(server.with_metrics(Arc::new(metrics)).with_farewell(move || leaving.give_up()))
}
