//! Serving gRPC on a thread of its own, away from the packets.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_reflection::server::v1::{ServerReflection, ServerReflectionServer};

use super::{Guard, ServerTls, v1};
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
    /// Listens on `at` and serves what `build` makes, until dropped. `build` runs inside the thread's runtime.
    pub(crate) fn start(
        name: &'static str,
        at: SocketAddr,
        guard: &Guard,
        build: impl FnOnce() -> (Routes, Background) + Send + 'static,
    ) -> Result<Self, NetError> {
        guard.check(at)?;
        let bind = |why: io::Error| NetError::Bind { at, why };
        let listener = TcpListener::bind(at).map_err(bind)?;
        listener.set_nonblocking(true).map_err(bind)?;
        let local = listener.local_addr().map_err(bind)?;
        let server = server(guard.tls())?;
        let failed = |why| NetError::Thread { name, why };
        let runtime = Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let (stop, stopped) = oneshot::channel();
        let run = move || {
            runtime.block_on(async {
                let serving = async {
                    let (routes, background) = build();
                    let ended = tokio::select! {
                        ended = serve(server, listener, routes) => ended.err(),
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

fn server(tls: Option<&ServerTls>) -> Result<Server, NetError> {
    let server = Server::builder()
        .concurrency_limit_per_connection(CALLS_PER_CONNECTION)
        .http2_keepalive_interval(Some(PING_EVERY))
        .http2_keepalive_timeout(Some(PING_TIMEOUT));
    let Some(tls) = tls else { return Ok(server) };
    let unusable = |why: tonic::transport::Error| {
        let why = std::error::Error::source(&why).map_or_else(|| why.to_string(), ToString::to_string);
        NetError::Tls { what: "the server's certificate and key".to_owned(), why }
    };
    server.tls_config(tls.config()).map_err(unusable)
}

async fn serve(
    mut server: Server,
    listener: TcpListener,
    routes: Routes,
) -> Result<(), Box<dyn std::error::Error>> {
    let incoming = TcpIncoming::from(tokio::net::TcpListener::from_std(listener)?).with_nodelay(Some(true));
    server.add_routes(routes).serve_with_incoming(incoming).await?;
    Ok(())
}
