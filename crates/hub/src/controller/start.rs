//! Starting a controller on a thread of its own.

use std::net::SocketAddr;

use sluice_control::{Controller, Plan};
use tokio::sync::{broadcast, mpsc};
use tonic::service::Routes;

use super::link::{Link, Source, SwitchLink};
use super::runner::{Runner, SizesSender, Telling};
use super::service::Service;
use crate::HubError;
use crate::rpc::server::reflection;
use crate::rpc::services::controller_server::ControllerServer;
use crate::rpc::{Guard, RpcServer};

const SERVICE: &str = "sluice.v1.Controller";
/// Calls that may wait for the state machine; hosts beyond that are told to come back.
const COMMANDS_MAX: usize = 1_024;
/// Events that a watcher may be behind before it misses some.
const EVENTS_MAX: usize = 1_024;

/// How a controller is set up.
#[derive(Clone)]
pub struct ControllerOptions {
    /// Where it listens.
    pub at: SocketAddr,
    /// What keeps strangers from there.
    pub guard: Guard,
    /// Its slices, limits and times. The switch itself says where hosts reach it; the plan's word is not
    /// used.
    pub plan: Plan,
    /// What keys are drawn from: fresh random bits, except in tests.
    pub seed: [u8; 32],
    /// Its switch.
    pub switch: SwitchLink,
}

/// Starts a controller on a thread of its own; it runs until the server is dropped.
///
/// # Errors
/// [`HubError::Plan`], [`HubError::Insecure`] for an address beyond loopback without TLS, and in
/// [`HubError::Net`] what keeps a thread or a socket from being had, and certificates that cannot be used.
pub fn start_controller(options: ControllerOptions) -> Result<RpcServer, HubError> {
    start(options, None)
}

/// The same with somebody who wants to hear how large the rack's pools are.
pub(super) fn start(options: ControllerOptions, sizes: Option<SizesSender>) -> Result<RpcServer, HubError> {
    let controller = Controller::new(options.plan, options.seed)?;
    let switch = options.switch;
    RpcServer::start("sluice-controller", options.at, &options.guard, move |refused| {
        let source = Source::new(switch);
        let (commands, asked) = mpsc::channel(COMMANDS_MAX);
        let telling = Telling::new(broadcast::Sender::new(EVENTS_MAX));
        let service = Service::new(commands, telling.clone(), source.clone(), refused);
        let runner = Runner::new(controller, asked, Link::start(source), telling, sizes);
        let routes = Routes::new(ControllerServer::new(service)).add_service(reflection(SERVICE));
        (routes, Box::pin(runner.run()))
    })
}
