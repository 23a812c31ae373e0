//! Callers that come: each gets a seat, and over TLS shakes hands on its own, so that none waits for another.
//!
//! One that is refused is counted and told of in the log, at most once a second, since anybody can knock. It
//! hears why before its connection is closed: what it still sends is read first, or the kernel would reset
//! the connection and throw our last words away.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sluice_rpc::{RenewedTls, why};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;

use super::line::Line;
use super::refused::{Reason, Refused};
use super::seats::{Limits, Seat, Seats};

const HANDSHAKE_MAX: Duration = Duration::from_secs(2);
/// Connections that may wait to be served.
const READY_MAX: usize = 16;
/// How long, and for how many bytes, a caller that was refused is listened to.
const FAREWELL: Duration = Duration::from_millis(500);
const FAREWELL_BYTES: usize = 64 * 1024;
/// The system can take no more connections for the moment.
const PAUSE: Duration = Duration::from_millis(100);

type Ready = mpsc::Sender<io::Result<Line>>;

/// Connections that have their seats and whose handshakes are over, for as long as somebody takes them. Needs
/// a tokio runtime.
pub(super) fn incoming(
    listener: TcpListener,
    tls: Option<Arc<RenewedTls>>,
    limits: Limits,
    refused: Arc<Refused>,
) -> ReceiverStream<io::Result<Line>> {
    let (ready, incoming) = mpsc::channel(READY_MAX);
    let door = Door { tls, seats: Seats::new(limits), refused };
    tokio::spawn(stand(Arc::new(door), listener, ready));
    ReceiverStream::new(incoming)
}

struct Door {
    tls: Option<Arc<RenewedTls>>,
    seats: Arc<Seats>,
    refused: Arc<Refused>,
}

async fn stand(door: Arc<Door>, listener: TcpListener, ready: Ready) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ready.closed() => return,
        };
        match accepted {
            Ok((stream, from)) => {
                let Some(seat) = door.seats.take(from.ip()) else {
                    door.count(
                        from,
                        Reason::Connections,
                        "there are too many connections, too many to tell it so",
                    );
                    continue;
                };
                if let Some(full) = seat.full() {
                    door.count(from, Reason::Connections, &full.to_string());
                }
                tokio::spawn(Arc::clone(&door).greet(stream, from, ready.clone(), seat));
            }
            Err(why) => {
                tracing::warn!("cannot take connections: {why}; trying again");
                sleep(PAUSE).await;
            }
        }
    }
}

impl Door {
    async fn greet(self: Arc<Self>, stream: TcpStream, from: SocketAddr, ready: Ready, seat: Seat) {
        // Small messages both ways; one that goes later is no reason to refuse anybody.
        stream.set_nodelay(true).ok();
        let Some(tls) = &self.tls else {
            // Whoever would serve it may have gone.
            return ready.send(Ok(Line::plain(stream, from.ip(), seat))).await.unwrap_or_default();
        };
        let acceptor = TlsAcceptor::from(tls.config());
        match timeout(HANDSHAKE_MAX, acceptor.accept(stream).into_fallible()).await {
            Ok(Ok(stream)) => ready.send(Ok(Line::tls(stream, from.ip(), seat))).await.unwrap_or_default(),
            Ok(Err((why, stream))) => {
                self.refuse(from, &why);
                timeout(FAREWELL, part(stream)).await.ok();
            }
            Err(_) => self.count(from, Reason::NoTls, "it did not finish the TLS handshake in time"),
        }
    }

    fn refuse(&self, from: SocketAddr, why: &io::Error) {
        match why::as_rustls(why) {
            Some(tls) if why::is_of_certificate(tls) => {
                self.count(from, Reason::BadCertificate, &why::of_caller(tls));
            }
            Some(tls) => self.count(from, Reason::NoTls, &why::of_caller(tls)),
            None => self.count(from, Reason::NoTls, &format!("the TLS handshake ended: {why}")),
        }
    }

    fn count(&self, from: SocketAddr, reason: Reason, why: &str) {
        self.refused.tell(reason, format_args!("a caller from {from}"), why);
    }
}

/// Lets a caller read what it was told before the connection goes.
async fn part(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let (mut unread, mut left) = ([0; 4096], FAREWELL_BYTES);
    while let Ok(read @ 1..) = stream.read(&mut unread).await {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}
