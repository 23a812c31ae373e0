//! The port that serves the page: HTTP/1.1, over TLS if certificates are given.
//!
//! Connections are few and end by themselves, so that nobody keeps others from the page: who does not ask
//! in time, reads too slowly or shows no certificate loses his place. Who speaks plain HTTP to a port with
//! TLS is told so.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sluice_rpc::{RenewedTls, ServerTls, why};
use sluice_support::fail::{Failure, Outcome};
use sluice_system::{Attempt, advice};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::answer::Desk;
use crate::shown::ShownPage;
use crate::visitor::Visitor;

/// How many connections are served at once; a browser opens up to six for a page.
const CONNECTIONS_MAX: usize = 64;
/// How many of them may be of visitors that have shown no certificate yet, where one is asked for.
const UNKNOWN_MAX: usize = 16;
/// How long a connection may take to begin, and to send a request's head.
const ASK_PATIENCE: Duration = Duration::from_secs(5);
/// How long a connection serves one request after the other.
const CONNECTION_LIFE: Duration = Duration::from_secs(30);
/// How long a connection that is to end may still take to send its last answer.
const LAST_PATIENCE: Duration = Duration::from_secs(10);
/// The most bytes that a request's head may have.
const HEAD_BYTES_MAX: usize = 16 * 1_024;
/// The pause after a connection that could not be taken, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// How long and how many bytes are read of who is sent away, so that he can read why.
const FAREWELL: Duration = Duration::from_millis(500);
const FAREWELL_BYTES: usize = 64 * 1_024;
/// The first byte of a TLS connection: a record that is a handshake.
const TLS_HANDSHAKE: u8 = 22;
/// The answer to a connection that finds no place.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// An address that is bound and not yet served.
pub struct DashboardPort {
    listener: TcpListener,
    local: SocketAddr,
    tls: Option<Arc<RenewedTls>>,
    asks_visitors: bool,
}

impl DashboardPort {
    /// Takes the address.
    ///
    /// # Errors
    /// An address that cannot be had; one beyond this machine that strangers could use; certificates that
    /// cannot be used.
    pub fn bind(at: SocketAddr, tls: Option<ServerTls>) -> Outcome<Self> {
        let asks_visitors = tls.as_ref().is_some_and(ServerTls::asks_callers);
        check_reach(at, tls.is_some(), asks_visitors)?;
        let tls = tls.map(|tls| tls.for_pages().renewed()).transpose()?.map(Arc::new);
        let failed = |why: io::Error| {
            let helps = advice(Attempt::Listen, &why);
            Failure::bad_input(format!("cannot serve the dashboard on {at}: {why}; {helps}"))
        };
        let listener = TcpListener::bind(at).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, local, tls, asks_visitors })
    }

    /// The address, with the port that the kernel chose if port 0 was asked for.
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        format!("{}://{}/", if self.tls.is_some() { "https" } else { "http" }, self.local)
    }

    /// Serves the page until it is dropped.
    pub(crate) async fn serve(self, shown: Rc<ShownPage>) {
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(why) => {
                let at = self.local;
                return sluice_log::log!(PageFailed, %why, "the dashboard is not served on {at}: {why}");
            }
        };
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let unknown = Arc::new(Semaphore::new(UNKNOWN_MAX));
        let (tls, local, asks_visitors) = (self.tls, self.local, self.asks_visitors);
        let desk = Rc::new(Desk { tls: tls.clone(), shown });
        loop {
            let Ok((stream, from)) = listener.accept().await else {
                sleep(PAUSE).await;
                continue;
            };
            let place = Arc::clone(&places).try_acquire_owned().ok();
            let unknown = asks_visitors.then(|| Arc::clone(&unknown).try_acquire_owned().ok());
            let (Some(place), true) = (place, unknown.as_ref().is_none_or(Option::is_some)) else {
                // A connection whose first bytes cannot be sent at once hears nothing.
                if tls.is_none() {
                    stream.try_write(FULL).ok();
                }
                continue;
            };
            let door = Door { tls: tls.clone(), local, from, asks_visitors, desk: Rc::clone(&desk) };
            tokio::task::spawn_local(async move {
                let _place = place;
                door.receive(stream, unknown.flatten()).await;
            });
        }
    }
}

/// Checks that no stranger beyond this machine could use the page.
fn check_reach(at: SocketAddr, is_tls: bool, asks_visitors: bool) -> Outcome<()> {
    if at.ip().to_canonical().is_loopback() || asks_visitors {
        return Ok(());
    }
    let needed = "give a certificate and a key with --tls, and the authority of those who may visit it with \
                  --client-ca, or listen on 127.0.0.1";
    let why = if is_tls { "to visitors that show no certificate" } else { "without TLS" };
    Err(Failure::bad_input(format!(
        "cannot serve the dashboard on {at} {why}: whoever reaches it could read and change \
         everything; {needed}"
    )))
}

/// What a new connection goes through.
struct Door {
    tls: Option<Arc<RenewedTls>>,
    local: SocketAddr,
    from: SocketAddr,
    asks_visitors: bool,
    desk: Rc<Desk>,
}

impl Door {
    /// Serves a connection until it ends. `unknown` is the place of a visitor that shows no certificate.
    async fn receive(self, stream: TcpStream, unknown: Option<OwnedSemaphorePermit>) {
        // Answers are small, so they should leave at once. A failure here only delays them.
        stream.set_nodelay(true).ok();
        let mut first = [0];
        let Ok(Ok(1)) = timeout(ASK_PATIENCE, stream.peek(&mut first)).await else { return };
        let speaks_tls = first == [TLS_HANDSHAKE];
        match &self.tls {
            None if speaks_tls => {
                let from = self.from;
                sluice_log::log!(
                    PageMisread,
                    %from,
                    "{from} speaks TLS to a page without: open http://{}/",
                    self.local
                );
            }
            None => self.converse(stream, Visitor::on_this_machine()).await,
            Some(_) if !speaks_tls => self.send_to_https(stream).await,
            Some(tls) => {
                let accepted = TlsAcceptor::from(tls.config()).accept(stream).into_fallible();
                let Ok(accepted) = timeout(ASK_PATIENCE, accepted).await else { return };
                match accepted {
                    Ok(stream) if self.asks_visitors => {
                        let visitor = Visitor::with(stream.get_ref().1.peer_certificates());
                        // Who is not known keeps the place of one who is not.
                        let _unknown = unknown.filter(|_| !visitor.is_known());
                        self.converse(stream, visitor).await;
                    }
                    Ok(stream) => self.converse(stream, Visitor::on_this_machine()).await,
                    Err((failed, stream)) => {
                        let told = why::as_rustls(&failed).map(why::of_caller);
                        let told = told.unwrap_or_else(|| format!("the TLS handshake ended: {failed}"));
                        sluice_log::log!(
                            VisitorRefused,
                            from = self.from.to_string(),
                            "a visitor from {} was refused: {told}",
                            self.from
                        );
                        timeout(FAREWELL, part(stream)).await.ok();
                    }
                }
            }
        }
    }

    async fn converse(&self, stream: impl AsyncRead + AsyncWrite + Unpin, visitor: Visitor) {
        let is_known = visitor.is_known();
        let answers = service_fn(|request| {
            let (desk, visitor) = (Rc::clone(&self.desk), visitor.clone());
            async move { Ok::<_, Infallible>(desk.answer(request, &visitor).await) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(ASK_PATIENCE)
            .max_buf_size(HEAD_BYTES_MAX)
            .keep_alive(is_known)
            .serve_connection(TokioIo::new(stream), answers);
        let mut served = pin!(served);
        // A visitor that hangs up or speaks no HTTP is no event for this process.
        let life = if is_known { CONNECTION_LIFE } else { ASK_PATIENCE };
        if timeout(life, served.as_mut()).await.is_err() {
            served.as_mut().graceful_shutdown();
            timeout(LAST_PATIENCE, served).await.ok();
        }
    }

    async fn send_to_https(&self, mut stream: TcpStream) {
        let told = format!("this port speaks TLS: open https://{}/\n", self.local);
        let answer = format!(
            "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{told}",
            told.len()
        );
        if stream.write_all(answer.as_bytes()).await.is_ok() {
            timeout(FAREWELL, part(stream)).await.ok();
        }
    }
}

/// Keeps a connection open until the other end could read why it is sent away.
async fn part(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let (mut unread, mut left) = ([0; 4_096], FAREWELL_BYTES);
    while let Ok(read @ 1..) = stream.read(&mut unread).await {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}

impl std::fmt::Debug for DashboardPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DashboardPort").field("local", &self.local).finish_non_exhaustive()
    }
}
