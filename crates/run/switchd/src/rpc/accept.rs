//! Accepts connections. Each gets a seat; TLS handshakes run side by side, so that none waits for another.
//!
//! A refused caller is counted. It is logged at most once a second, since anyone can connect. The caller is
//! told the reason before its connection is closed, and the server first reads what the caller still sends:
//! otherwise the kernel would reset the connection and discard the reason.

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

use super::connection::Connection;
use super::connection_slots::{ConnectionSlot, ConnectionSlots, Limits};
use super::refused::{Reason, Refused};

const HANDSHAKE_MAX: Duration = Duration::from_secs(2);
/// How many accepted connections may wait to be served.
const READY_MAX: usize = 16;
/// The limits within which the server reads from a refused caller: a time, and a number of bytes.
const FAREWELL: Duration = Duration::from_millis(500);
const FAREWELL_BYTES: usize = 64 * 1024;
/// The pause after the system could accept no more connections.
const PAUSE: Duration = Duration::from_millis(100);

type Ready = mpsc::Sender<io::Result<Connection>>;

/// Accepts connections and completes their handshakes, as long as the receiver takes them. Must be called
/// inside a tokio runtime.
pub(super) fn incoming(
    listener: TcpListener,
    tls: Option<Arc<RenewedTls>>,
    limits: Limits,
    refused: Arc<Refused>,
) -> ReceiverStream<io::Result<Connection>> {
    let (ready, incoming) = mpsc::channel(READY_MAX);
    let acceptor = Acceptor { tls, slots: ConnectionSlots::new(limits), refused };
    tokio::spawn(accept_all(Arc::new(acceptor), listener, ready));
    ReceiverStream::new(incoming)
}

struct Acceptor {
    tls: Option<Arc<RenewedTls>>,
    slots: Arc<ConnectionSlots>,
    refused: Arc<Refused>,
}

async fn accept_all(acceptor: Arc<Acceptor>, listener: TcpListener, ready: Ready) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = ready.closed() => return,
        };
        match accepted {
            Ok((stream, from)) => {
                let Some(slot) = acceptor.slots.take(from.ip()) else {
                    acceptor.count(
                        from,
                        Reason::Connections,
                        "there are too many connections, too many to tell it so",
                    );
                    continue;
                };
                if let Some(full) = slot.full() {
                    acceptor.count(from, Reason::Connections, &full.to_string());
                }
                tokio::spawn(Arc::clone(&acceptor).greet(stream, from, ready.clone(), slot));
            }
            Err(why) => {
                sluice_log::log!(ConnectionsUntaken, %why, "cannot take connections: {why}; trying again");
                sleep(PAUSE).await;
            }
        }
    }
}

impl Acceptor {
    async fn greet(self: Arc<Self>, stream: TcpStream, from: SocketAddr, ready: Ready, slot: ConnectionSlot) {
        // Messages are small, so they should leave at once. A failure here only delays them.
        stream.set_nodelay(true).ok();
        let Some(tls) = &self.tls else {
            // The server may have ended.
            return ready.send(Ok(Connection::plain(stream, from.ip(), slot))).await.unwrap_or_default();
        };
        let acceptor = TlsAcceptor::from(tls.config());
        match timeout(HANDSHAKE_MAX, acceptor.accept(stream).into_fallible()).await {
            Ok(Ok(stream)) => {
                ready.send(Ok(Connection::tls(stream, from.ip(), slot))).await.unwrap_or_default();
            }
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
        self.refused.log_refusal(reason, format_args!("a caller from {from}"), why);
    }
}

/// Keeps a refused connection open until the caller could read the reason.
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
