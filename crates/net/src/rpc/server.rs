//! Serving gRPC on a thread of its own, away from the packets.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio_rustls::rustls::ServerConfig;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};

use super::gate::Gate;
use super::refused::Refused;
use super::{Guard, ServerTls, accept, v1};
use crate::NetError;

const PING_EVERY: Duration = Duration::from_secs(1);
const PING_TIMEOUT: Duration = Duration::from_secs(1);
/// Calls of one connection that may be under way.
const CALLS_PER_CONNECTION: usize = 64;

/// What a server's thread does beside answering calls.
pub(crate) type Background = Pin<Box<dyn Future<Output = ()>>>;

/// A gRPC server with a thread of its own; dropping it stops it.
#[derive(Debug)]
pub struct RpcServer {
    local: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RpcServer {
    /// Listens on `at` and serves what `build` makes, until dropped. `build` runs inside the thread's runtime; it is given
    /// where refused calls are counted.
    pub(crate) fn start(
        name: &'static str,
        at: SocketAddr,
        guard: &Guard,
        build: impl FnOnce(Arc<Refused>) -> (Routes, Background) + Send + 'static,
    ) -> Result<Self, NetError> {
        guard.check(at)?;
        let bind = |why: io::Error| NetError::Bind { at, why };
        let listener = TcpListener::bind(at).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        let local = listener.local_addr().map_err(bind)?;
        let tls = guard.tls().map(ServerTls::config).transpose()?;
        let asks_callers = guard.asks_callers();
        let failed = |why| NetError::Thread { name, why };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            runtime.block_on(async {
                let serving = async {
                    let refused = Arc::<Refused>::default();
                    let (routes, background) = build(Arc::clone(&refused));
                    let gate = Gate::new(routes.prepare(), asks_callers, Arc::clone(&refused));
                    let ended = tokio::select! {
                        ended = serve(listener, tls, gate, refused) => ended.err(),
                        () = background => None,
                    };
                    if let Some(why) = ended {
                        tracing::error!("serving gRPC on {local} ended: {why}");
                    }
                };
                // A dropped sender stops as well as a message does.
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(run).map_err(failed)?;
        Ok(Self { local, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether it serves; if not, it said why in the log.
    pub fn is_running(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for RpcServer {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

/// The service that lists `service`, so that tools need no proto files.
pub(crate) fn reflection(service: &str) -> ServerReflectionServer<impl ServerReflection> {
    tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(v1::DESCRIPTORS)
        .with_service_name(service)
        .build_v1()
        .expect("the description is what the build script wrote")
}

async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    gate: Gate<Routes>,
    refused: Arc<Refused>,
) -> Result<(), Box<dyn std::error::Error>> {
    let server = Server::builder()
        .concurrency_limit_per_connection(CALLS_PER_CONNECTION)
        .http2_keepalive_interval(Some(PING_EVERY))
        .http2_keepalive_timeout(Some(PING_TIMEOUT));
    let listener = tokio::net::TcpListener::from_std(listener)?;
    if let Some(config) = tls {
        server.serve_with_incoming(gate, accept::incoming(listener, config, refused)).await?;
    } else {
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        server.serve_with_incoming(gate, incoming).await?;
    }
    Ok(())
}
