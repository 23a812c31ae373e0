//! A gateway's start and end: its addresses, its thread, and how it drains.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sluice_net::client::SpineClients;
use sluice_rpc::ServerTls;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot, watch};
use tokio::task::LocalSet;

use crate::GatewayError;
use crate::counts::{Counting, GatewayMetrics, Protocol};
use crate::grpc::{GrpcMethod, types_of};
use crate::hall::Hall;
use crate::port::GatewayPort;
use crate::rack::{GatewayRack, TaskLimits};
use crate::resp_door::{hand_out, outcomes};

/// What a gateway serves.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Where each protocol is served, if it is.
    pub listen: [(Protocol, Option<SocketAddr>); 3],
    /// The gateway's certificate and the authority of its callers. Without them only this machine is served.
    pub tls: Option<ServerTls>,
    /// The time until a task's outcome is unknown, if its caller states none.
    pub deadline: Option<Duration>,
    /// For how long a task is worth beginning, if its caller says nothing about that.
    pub budget: Option<Duration>,
    /// gRPC's methods.
    pub methods: Vec<GrpcMethod>,
    /// How many connections are served at once.
    pub connections_max: usize,
    /// Where the gateway counts.
    pub metrics: GatewayMetrics,
}

/// A gateway whose addresses are bound.
pub struct BoundGateway {
    ports: Vec<GatewayPort>,
    options: GatewayOptions,
}

impl BoundGateway {
    /// Takes the addresses.
    ///
    /// # Errors
    /// [`GatewayError::Bind`] and [`GatewayError::Open`] for an address that cannot be had, or that strangers
    /// could use; [`GatewayError::Tls`].
    pub fn bind(options: GatewayOptions) -> Result<Self, GatewayError> {
        let wanted = options.listen.iter().filter_map(|(protocol, at)| Some((*protocol, (*at)?)));
        let ports = wanted.map(|(protocol, at)| GatewayPort::bind(protocol, at, options.tls.as_ref()));
        Ok(Self { ports: ports.collect::<Result<_, _>>()?, options })
    }

    /// Where it listens, with the ports that the kernel chose.
    pub fn local(&self) -> Vec<(Protocol, SocketAddr)> {
        self.ports.iter().map(|port| (port.protocol(), port.local())).collect()
    }

    /// Takes connections, on a thread of its own.
    ///
    /// # Errors
    /// [`GatewayError::UnknownType`] and [`GatewayError::TwoTypes`] for gRPC's methods;
    /// [`GatewayError::Thread`].
    pub fn serve(self, clients: SpineClients) -> Result<Gateway, GatewayError> {
        let failed = |why: io::Error| GatewayError::Thread { why };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (drain, drains) = watch::channel(false);
        let (started, starts) = mpsc::channel();
        let (over, ended) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let run = move || {
            let serving = async move {
                match start(self, clients, drains) {
                    Ok(served) => {
                        started.send(Ok(())).ok();
                        // Dropping the sender ends it, as a message does.
                        tokio::select! {
                            () = served.until_drained() => {}
                            _ = stopped => {}
                        }
                    }
                    Err(why) => drop(started.send(Err(why))),
                }
            };
            LocalSet::new().block_on(&runtime, serving);
            over.send(()).ok();
        };
        let thread = thread::Builder::new().name("sluice-gateway".to_owned()).spawn(run).map_err(failed)?;
        let ended_early = || GatewayError::Thread { why: io::Error::other("it ended at its start") };
        starts.recv().map_err(|_| ended_early())??;
        Ok(Gateway { drain, ended, stop: Some(stop), thread: Some(thread) })
    }
}

/// What runs on the gateway's thread.
struct Served {
    hall: Rc<Hall>,
    places: Arc<Semaphore>,
    connections_max: u32,
}

fn start(
    bound: BoundGateway,
    clients: SpineClients,
    drains: watch::Receiver<bool>,
) -> Result<Served, GatewayError> {
    let BoundGateway { ports, options } = bound;
    let limits = TaskLimits { deadline: options.deadline, budget: options.budget };
    let rack = GatewayRack::new(clients, limits);
    let methods = types_of(&options.methods, &rack)?;
    let connections_max = u32::try_from(options.connections_max).unwrap_or(u32::MAX).max(1);
    let counting = Counting::new(options.metrics);
    let hall = Rc::new(Hall::new(rack, counting, connections_max as usize, drains, methods));
    let places = Arc::new(Semaphore::new(connections_max as usize));
    for port in ports {
        tokio::task::spawn_local(port.serve(Rc::clone(&hall), Arc::clone(&places)));
    }
    let (draining, looking) = (Rc::clone(&hall), Rc::clone(&hall));
    tokio::task::spawn_local(async move { draining.tell_of_drain().await });
    tokio::task::spawn_local(async move { looking.look_for_room().await });
    let handing_out = hand_out(Rc::clone(&hall), outcomes(&hall)?);
    tokio::task::spawn_local(async move {
        if let Err(why) = handing_out.await {
            sluice_log::log!(GatewayFailed, %why, "RESP is not answered any more: {why}");
        }
    });
    Ok(Served { hall, places, connections_max })
}

impl Served {
    /// Waits until the gateway drains and no connection is left.
    async fn until_drained(self) {
        self.hall.drains().await;
        // It is never closed.
        self.places.acquire_many(self.connections_max).await.ok();
    }
}

/// A gateway that runs; dropping it ends it at once.
#[must_use = "it serves until it is dropped"]
pub struct Gateway {
    drain: watch::Sender<bool>,
    ended: mpsc::Receiver<()>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Gateway {
    /// Whether it still runs; if not, the log says why.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Takes no more connections and commands, and waits until what runs has ended and is answered, for
    /// `limit` at most. Returns whether all has.
    pub fn drain(self, limit: Duration) -> bool {
        self.drain.send_replace(true);
        self.ended.recv_timeout(limit) != Err(RecvTimeoutError::Timeout)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing left to stop.
            thread.join().ok();
        }
    }
}
