//! A connection to a server: its bytes, its seat, and its peer.
//!
//! A connection that does not start HTTP/2 within a few seconds is closed. A connection that was accepted
//! only to be told why it is not served (no seat, or no certificate) is closed within the same kind of
//! limit. So neither blocks a seat. Later silences are left to the keep-alive. A connection is also closed
//! when its peer's certificate ends, so that the peer reconnects with a new one.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use sluice_rpc::end_of;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

use super::connection_slots::{ConnectionSlot, LimitReached};

/// The length of the HTTP/2 preface, in bytes.
const PREFACE_BYTES: usize = 24;
const PREFACE_WITHIN: Duration = Duration::from_secs(5);
/// The shortest time between two checks of a certificate's end.
const LOOK_MIN: Duration = Duration::from_millis(100);
const LOOK_MAX: Duration = Duration::from_mins(1);
/// How long a connection that is not served may take to read the reason.
const TOLD_WITHIN: Duration = Duration::from_secs(2);

/// A connection with its seat.
pub(super) struct Connection {
    stream: Stream,
    from: IpAddr,
    /// When the connection is closed, unless the peer has sent enough by then.
    ends: Option<Pin<Box<Sleep>>>,
    read: usize,
    slot: ConnectionSlot,
    /// When the peer's certificate ends, and the timer for the next check.
    certificate: Option<(SystemTime, Pin<Box<Sleep>>)>,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

#[derive(Clone)]
pub(super) struct ConnectionPeer {
    pub(super) from: IpAddr,
    /// The peer's certificate chain, its own certificate first.
    pub(super) certificates: Option<Arc<[CertificateDer<'static>]>>,
    /// When the peer's certificate ends.
    pub(super) ends: Option<SystemTime>,
    /// The limit that keeps the connection from being served, if one does.
    pub(super) full: Option<LimitReached>,
}

impl Connection {
    pub(super) fn plain(stream: TcpStream, from: IpAddr, slot: ConnectionSlot) -> Self {
        Self::new(Stream::Plain(stream), from, slot)
    }

    /// A connection after its TLS handshake: the peer's certificate, if it showed one, was verified.
    pub(super) fn tls(stream: TlsStream<TcpStream>, from: IpAddr, mut slot: ConnectionSlot) -> Self {
        if stream.get_ref().1.peer_certificates().is_some() {
            slot.shows_certificate();
        }
        Self::new(Stream::Tls(Box::new(stream)), from, slot)
    }

    fn new(stream: Stream, from: IpAddr, slot: ConnectionSlot) -> Self {
        let within = if slot.is_kept() { PREFACE_WITHIN } else { TOLD_WITHIN };
        let certificate = certificates(&stream).and_then(|shown| shown.iter().filter_map(end_of).min());
        let certificate = certificate.map(|end| (end, Box::pin(sleep(Duration::ZERO))));
        Self { stream, from, ends: Some(Box::pin(sleep(within))), read: 0, slot, certificate }
    }

    /// Whether the peer's certificate has ended.
    fn has_ended(&mut self, context: &mut Context<'_>) -> bool {
        let Some((end, look)) = &mut self.certificate else { return false };
        while look.as_mut().poll(context).is_ready() {
            let Ok(left) = end.duration_since(SystemTime::now()) else { return true };
            // The wall clock may be changed meanwhile, so the timer looks again at least this often.
            look.as_mut().reset(Instant::now() + left.clamp(LOOK_MIN, LOOK_MAX));
        }
        false
    }

    fn stream(&mut self) -> Pin<&mut (dyn Duplex + '_)> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream),
            Stream::Tls(stream) => Pin::new(&mut **stream),
        }
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl Connected for Connection {
    type ConnectInfo = ConnectionPeer;

    fn connect_info(&self) -> ConnectionPeer {
        let ends = self.certificate.as_ref().map(|(end, _)| *end);
        let certificates = certificates(&self.stream).map(Into::into);
        ConnectionPeer { from: self.from, certificates, ends, full: self.slot.full() }
    }
}

fn certificates(stream: &Stream) -> Option<&[CertificateDer<'static>]> {
    match stream {
        Stream::Plain(_) => None,
        Stream::Tls(stream) => stream.get_ref().1.peer_certificates(),
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(ends) = &mut self.ends
            && ends.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        if self.has_ended(context) {
            return Poll::Ready(Err(io::Error::other("the certificate that was shown has ended")));
        }
        let before = into.filled().len();
        ready!(self.stream().poll_read(context, into))?;
        if self.ends.is_some() {
            self.read += into.filled().len() - before;
            if self.read >= PREFACE_BYTES && self.slot.is_kept() {
                self.ends = None;
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;
    use crate::rpc::connection_slots::{ConnectionSlots, Limits};

    /// A caller, and its connection, which holds the only seat.
    async fn connected(slots: &Arc<ConnectionSlots>) -> (TcpStream, Connection) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("the loopback has free ports");
        let at = listener.local_addr().expect("it is bound");
        let caller = TcpStream::connect(at).await.expect("someone listens");
        let (stream, from) = listener.accept().await.expect("someone calls");
        (caller, Connection::plain(stream, from.ip(), slots.take(from.ip()).expect("a seat to be told in")))
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_caller_that_says_too_little_loses_its_seat() {
        let slots = ConnectionSlots::new(Limits { in_all: 1, from_one: 1, unknown: None });
        let (mut caller, mut line) = connected(&slots).await;
        // One byte less than a preface does not count as one.
        caller.write_all(&[b' '; PREFACE_BYTES - 1]).await.expect("it is connected");
        let ended = async { while line.read(&mut [0; 64]).await.is_ok() {} };
        timeout(PREFACE_WITHIN.saturating_mul(2), ended).await.expect("it is closed");
        drop(line);
        assert!(connected(&slots).await.1.slot.full().is_none(), "the seat is free again");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn one_that_has_begun_may_be_silent_and_one_that_has_no_seat_may_not() {
        let slots = ConnectionSlots::new(Limits { in_all: 1, from_one: 1, unknown: None });
        let (mut caller, mut line) = connected(&slots).await;
        caller.write_all(&[b' '; PREFACE_BYTES]).await.expect("it is connected");
        let mut said = [0; PREFACE_BYTES];
        line.read_exact(&mut said).await.expect("it came");
        let (mut told, mut seatless) = connected(&slots).await;
        assert!(seatless.slot.full().is_some());
        told.write_all(&[b' '; PREFACE_BYTES]).await.expect("it is connected");
        let ended = async { while seatless.read(&mut [0; 64]).await.is_ok() {} };
        timeout(PREFACE_WITHIN, ended).await.expect("it was told why, and is closed");
        let silent = timeout(PREFACE_WITHIN.saturating_mul(2), line.read(&mut said)).await;
        silent.expect_err("it is left alone");
    }
}
