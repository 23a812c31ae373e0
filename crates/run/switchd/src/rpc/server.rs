//! A gRPC server on a thread of its own, apart from the packet threads.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fmt, io};

use sluice_metrics::MetricSource;
use sluice_net::NetError;
use sluice_rpc::{RenewedTls, ServerTls};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};

use super::connection_slots::Limits;
use super::gate::Gate;
use super::refused::Refused;
use super::services::DESCRIPTORS;
use super::{Guard, accept};
use crate::SwitchdError;

const PING_EVERY: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// How many calls of one connection may be under way, including streams. HTTP/2 makes the caller wait with
/// further ones.
const CALLS_PER_CONNECTION: u32 = 64;

/// Work that a server's thread does beside answering calls.
pub(crate) type Background = Pin<Box<dyn Future<Output = ()>>>;

/// A gRPC server with a thread of its own; dropping it stops it.
pub struct RpcServer {
    local: SocketAddr,
    metrics: Vec<Arc<dyn MetricSource>>,
    farewell: Option<Box<dyn FnOnce() + Send>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RpcServer {
    /// Listens on `at` and serves what `build` returns, until dropped. `build` runs inside the thread's
    /// runtime, and gets the server's address and the counters of refused calls.
    pub(crate) fn start(
        name: &'static str,
        at: SocketAddr,
        guard: &Guard,
        build: impl FnOnce(SocketAddr, Arc<Refused>) -> (Routes, Background) + Send + 'static,
    ) -> Result<Self, SwitchdError> {
        Self::start_with(Limits::of_process(guard.asks_callers()), name, at, guard, build)
    }

    fn start_with(
        limits: Limits,
        name: &'static str,
        at: SocketAddr,
        guard: &Guard,
        build: impl FnOnce(SocketAddr, Arc<Refused>) -> (Routes, Background) + Send + 'static,
    ) -> Result<Self, SwitchdError> {
        guard.check(at)?;
        let bind = |why: io::Error| NetError::Bind { at, why };
        let listener = TcpListener::bind(at).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        let local = listener.local_addr().map_err(bind)?;
        let tls = guard.tls().map(ServerTls::renewed).transpose()?.map(Arc::new);
        let asks_callers = guard.asks_callers();
        let failed = |why| NetError::Thread { name, why };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let refused = Arc::new(Refused::beside(tls.clone()));
        let counts: Arc<dyn MetricSource> = refused.clone();
        let run = move || {
            runtime.block_on(async {
                let serving = async {
                    let (routes, background) = build(local, Arc::clone(&refused));
                    let gate = Gate::new(routes.prepare(), asks_callers, Arc::clone(&refused));
                    let ended = tokio::select! {
                        ended = serve(listener, tls, limits, gate, refused) => ended.err(),
                        () = background => None,
                    };
                    if let Some(why) = ended {
                        sluice_log::log!(GrpcEnded, %local, %why, "serving gRPC on {local} ended: {why}");
                    }
                };
                // Dropping the sender stops the server, as a message does.
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { local, metrics: vec![counts], farewell: None, stop: Some(stop), thread: Some(thread) })
    }

    /// The address on which the server listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The server with more to tell when it is scraped.
    pub(crate) fn with_metrics(mut self, source: Arc<dyn MetricSource>) -> Self {
        self.metrics.push(source);
        self
    }

    /// The server with something to do before it stops.
    pub(crate) fn with_farewell(mut self, farewell: impl FnOnce() + Send + 'static) -> Self {
        self.farewell = Some(Box::new(farewell));
        self
    }

    /// What gives its metrics: refused calls, and a controller's state.
    pub fn metrics(&self) -> Vec<Arc<dyn MetricSource>> {
        self.metrics.clone()
    }

    /// Whether the server still runs; if not, the log says why.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl fmt::Debug for RpcServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcServer").field("local", &self.local).finish_non_exhaustive()
    }
}

impl Drop for RpcServer {
    fn drop(&mut self) {
        if let Some(farewell) = self.farewell.take() {
            farewell();
        }
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

/// The reflection service that describes `service`, so that tools need no proto files.
pub(crate) fn reflection(service: &str) -> ServerReflectionServer<impl ServerReflection> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(DESCRIPTORS)
        .with_service_name(service)
        .build_v1()
        .expect("the description is what the build script wrote")
}

async fn serve(
    listener: TcpListener,
    tls: Option<Arc<RenewedTls>>,
    limits: Limits,
    gate: Gate<Routes>,
    refused: Arc<Refused>,
) -> Result<(), Box<dyn std::error::Error>> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    Server::builder()
        .max_concurrent_streams(CALLS_PER_CONNECTION)
        .http2_keepalive_interval(Some(PING_EVERY))
        .http2_keepalive_timeout(Some(PING_TIMEOUT))
        .serve_with_incoming(gate, accept::incoming(listener, tls, limits, refused))
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpStream;
    use std::sync::mpsc;

    use sluice_rpc::v1::controller_client::ControllerClient;
    use sluice_rpc::{Remote, v1};
    use tokio_stream::wrappers::ReceiverStream;
    use tonic::Code;
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;

    use super::*;

    /// A server that serves only its own description.
    fn served(limits: Limits) -> (RpcServer, Arc<Refused>) {
        let (give, given) = mpsc::channel();
        let build = move |_, refused| {
            give.send(refused).unwrap();
            let nothing: Background = Box::pin(std::future::pending());
            (Routes::new(reflection("sluice.v1.Controller")), nothing)
        };
        let any = "127.0.0.1:0".parse().unwrap();
        let server = RpcServer::start_with(limits, "test", any, &Guard::Loopback, build).unwrap();
        (server, given.recv().unwrap())
    }

    fn refused_connections(refused: &Refused) -> u64 {
        refused.counters().iter().find(|counter| counter.name == "connections").unwrap().value
    }

    /// Makes a call on a connection of its own, and returns the status. A server that admits the call
    /// answers that it does not know the service.
    async fn called(server: &RpcServer) -> tonic::Status {
        let remote = Remote::new(&server.local().to_string(), None).unwrap();
        ControllerClient::new(remote.connect()).status(v1::StatusRequest {}).await.unwrap_err()
    }

    /// Repeats [`called`] until closed connections have freed their seats.
    async fn called_in_the_end(server: &RpcServer) -> tonic::Status {
        loop {
            let answer = called(server).await;
            if answer.code() != Code::ResourceExhausted {
                return answer;
            }
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn who_comes_when_all_seats_are_taken_is_told_so_and_counted() {
        for (limits, told) in [
            (
                Limits { in_all: 2, from_one: 9, unknown: None },
                "all 2 connections that are served here at once are taken",
            ),
            (Limits { in_all: 9, from_one: 2, unknown: None }, "your machine has 2 connections open here"),
        ] {
            let (server, refused) = served(limits);
            let silent = [(); 2].map(|()| TcpStream::connect(server.local()).unwrap());
            let answer = called(&server).await;
            assert_eq!(answer.code(), Code::ResourceExhausted, "{answer}");
            assert!(
                answer.message().contains(told) && answer.message().contains("call again later"),
                "{answer}"
            );
            assert_eq!(refused_connections(&refused), 1);
            drop(silent);
            assert_eq!(called_in_the_end(&server).await.code(), Code::Unimplemented);
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_crowd_at_the_door_is_sent_away_and_the_seated_are_served_on() {
        let (server, refused) = served(Limits { in_all: 2, from_one: 2, unknown: None });
        let _silent = TcpStream::connect(server.local()).unwrap();
        let remote = Remote::new(&server.local().to_string(), None).unwrap();
        let mut seated = ControllerClient::new(remote.connect());
        assert_eq!(seated.status(v1::StatusRequest {}).await.unwrap_err().code(), Code::Unimplemented);
        let crowd: Vec<_> = (0..100).map(|_| TcpStream::connect(server.local()).unwrap()).collect();
        let mut last = crowd.last().unwrap();
        // This connection is closed without a reason: enough others are being told theirs.
        assert!(matches!(last.read(&mut [0; 64]), Ok(0) | Err(_)));
        assert_eq!(refused_connections(&refused), 100);
        assert_eq!(seated.status(v1::StatusRequest {}).await.unwrap_err().code(), Code::Unimplemented);
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_has_so_many_calls_at_once_and_the_next_waits() {
        let (server, _) = served(Limits { in_all: 9, from_one: 9, unknown: None });
        let remote = Remote::new(&server.local().to_string(), None).unwrap();
        let calls = ServerReflectionClient::new(remote.connect_patiently());
        let asks = || {
            let mut calls = calls.clone();
            let (asking, asked) = tokio::sync::mpsc::channel::<ServerReflectionRequest>(1);
            async move { (calls.server_reflection_info(ReceiverStream::new(asked)).await.unwrap(), asking) }
        };
        let mut open = Vec::new();
        for _ in 0..CALLS_PER_CONNECTION {
            open.push(asks().await);
        }
        let next = tokio::spawn(asks());
        // Other connections are served meanwhile.
        assert_eq!(called(&server).await.code(), Code::Unimplemented);
        assert!(!next.is_finished());
        open.pop();
        next.await.unwrap();
    }
}
