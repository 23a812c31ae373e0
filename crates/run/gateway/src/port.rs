//! Addresses that are bound, and who may come in: TLS and roles as at the rack's other doors.
//!
//! Without TLS only this machine is served. With TLS a caller shows a certificate whose role says that it may
//! send tasks: `sender`, or `host`, which may do so without a gateway, too. Who shows none, or is slow to,
//! loses his place.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper_util::rt::TokioIo;
use sluice_rpc::{Caller, CallerRole, RenewedTls, ServerTls, end_of, why};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::GatewayError;
use crate::counts::{Protocol, TurnedAway};
use crate::hall::Hall;
use crate::patient::{FAREWELL, Patient, part};
use crate::{grpc, http_door, resp, resp_door};

/// How long a connection may take to begin, and to shake hands.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(5);
/// One of so many connections may be of callers that have shown no certificate yet, where one is asked for.
const UNKNOWN_SHARE: usize = 4;
/// After so long without a byte the kernel asks whether the other end is still there.
const KEEPALIVE: Duration = Duration::from_mins(1);
/// The pause after a connection that could not be taken, such as for want of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);
/// The first byte of a TLS connection: a record that is a handshake.
const TLS_HANDSHAKE: u8 = 22;

/// An address that is bound and not yet served.
pub(crate) struct GatewayPort {
    protocol: Protocol,
    listener: std::net::TcpListener,
    local: SocketAddr,
    tls: Option<Arc<RenewedTls>>,
    asks_callers: bool,
}

impl GatewayPort {
    pub(crate) fn bind(
        protocol: Protocol,
        at: SocketAddr,
        tls: Option<&ServerTls>,
    ) -> Result<Self, GatewayError> {
        let name = protocol.text();
        let asks_callers = tls.is_some_and(ServerTls::asks_callers);
        if !at.ip().to_canonical().is_loopback() && !asks_callers {
            let without = if tls.is_some() { "to callers that show no certificate" } else { "without TLS" };
            return Err(GatewayError::Open { protocol: name, at, without });
        }
        let of_protocol = |tls: &ServerTls| match protocol {
            Protocol::Grpc => tls.clone(),
            Protocol::Resp | Protocol::Http => tls.clone().for_pages(),
        };
        let tls = tls.map(|tls| of_protocol(tls).renewed()).transpose()?.map(Arc::new);
        let failed = |why: io::Error| GatewayError::Bind { protocol: name, at, why };
        let listener = std::net::TcpListener::bind(at).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        Ok(Self { protocol, listener, local, tls, asks_callers })
    }

    pub(crate) const fn protocol(&self) -> Protocol {
        self.protocol
    }

    pub(crate) const fn local(&self) -> SocketAddr {
        self.local
    }

    /// Takes connections until the gateway drains.
    pub(crate) async fn serve(self, hall: Rc<Hall>, places: Arc<Semaphore>) {
        let protocol = self.protocol.text();
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(why) => {
                let at = self.local;
                return sluice_log::log!(GatewayFailed, %why, "{protocol} is not served on {at}: {why}");
            }
        };
        let unknown = Arc::new(Semaphore::new(hall.connections_max().div_ceil(UNKNOWN_SHARE)));
        let door = Rc::new(Door { protocol: self.protocol, tls: self.tls, asks_callers: self.asks_callers });
        loop {
            let accepted = tokio::select! {
                biased;
                () = hall.drains() => return,
                accepted = listener.accept() => accepted,
            };
            let (stream, from) = match accepted {
                Ok(accepted) => accepted,
                Err(why) => {
                    sluice_log::log!(ConnectionsUntaken, %why, "{protocol}: none can be taken: {why}");
                    sleep(PAUSE).await;
                    continue;
                }
            };
            let place = Arc::clone(&places).try_acquire_owned().ok();
            let unknown = self.asks_callers.then(|| Arc::clone(&unknown).try_acquire_owned().ok());
            let place = place.filter(|_| unknown.as_ref().is_none_or(Option::is_some));
            let unknown = unknown.flatten();
            let (door, hall) = (Rc::clone(&door), Rc::clone(&hall));
            match place {
                Some(place) => {
                    tokio::task::spawn_local(async move {
                        let _place: OwnedSemaphorePermit = place;
                        door.receive(stream, from, &hall, unknown).await;
                    });
                }
                None => door.turn_away(&stream, &hall),
            }
        }
    }
}

/// What a new connection goes through.
struct Door {
    protocol: Protocol,
    tls: Option<Arc<RenewedTls>>,
    asks_callers: bool,
}

impl Door {
    /// Tells a connection that finds no place why. What cannot be sent at once is not heard.
    fn turn_away(&self, stream: &TcpStream, hall: &Hall) {
        hall.counting().turned_away(TurnedAway::Full);
        let connections = hall.connections_max();
        match (self.protocol, &self.tls) {
            (Protocol::Resp, None) => drop(stream.try_write(&resp::full(connections))),
            (Protocol::Http, None) => drop(stream.try_write(http_door::FULL)),
            _ => {}
        }
        sluice_log::log!(
            GatewayFull,
            "{} connections are here, and no more are taken: start another gateway, or see --connections",
            connections
        );
    }

    /// Serves a connection until it ends.
    /// `unknown` is the place of a caller that has shown no certificate yet.
    async fn receive(
        &self,
        stream: TcpStream,
        from: SocketAddr,
        hall: &Rc<Hall>,
        unknown: Option<OwnedSemaphorePermit>,
    ) {
        // Answers should leave at once, and a lost peer be found. A failure here only delays either.
        stream.set_nodelay(true).ok();
        SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE)).ok();
        let Some(tls) = &self.tls else {
            return self.plain(stream, from, hall).await;
        };
        let mut first = [0];
        let Ok(Ok(1)) = timeout(HANDSHAKE_PATIENCE, stream.peek(&mut first)).await else { return };
        if first != [TLS_HANDSHAKE] {
            self.refuse(hall, TurnedAway::Misread, from, "it speaks without TLS to an address with it");
            return self.say_tls(stream).await;
        }
        let accepted = TlsAcceptor::from(tls.config()).accept(Patient::new(stream)).into_fallible();
        let Ok(accepted) = timeout(HANDSHAKE_PATIENCE, accepted).await else {
            return self.refuse(hall, TurnedAway::Handshake, from, "the TLS handshake took too long");
        };
        match accepted {
            Ok(stream) => {
                let certificates = stream.get_ref().1.peer_certificates();
                let may = if self.asks_callers { may_send(certificates) } else { Ok(()) };
                if self.protocol == Protocol::Resp && stream.get_ref().1.alpn_protocol().is_some() {
                    let why = "it speaks another protocol than RESP";
                    return self.refuse(hall, TurnedAway::Misread, from, why);
                }
                // Who may not send keeps the place of one who is not known.
                let _unknown = unknown.filter(|_| may.is_err());
                if let Err(why) = &may {
                    self.refuse(hall, TurnedAway::Role, from, why);
                }
                self.converse(stream, hall, may.err()).await;
            }
            Err((failed, stream)) => {
                let told = why::as_rustls(&failed).map(why::of_caller);
                let told = told.unwrap_or_else(|| format!("the TLS handshake ended: {failed}"));
                self.refuse(hall, TurnedAway::Handshake, from, &told);
                timeout(FAREWELL, part(stream)).await.ok();
            }
        }
    }

    /// A connection without TLS: who speaks TLS here is told to the log only.
    async fn plain(&self, stream: TcpStream, from: SocketAddr, hall: &Rc<Hall>) {
        if self.protocol == Protocol::Resp {
            return self.converse(Patient::new(stream), hall, None).await;
        }
        let mut first = [0];
        let Ok(Ok(1)) = timeout(HANDSHAKE_PATIENCE, stream.peek(&mut first)).await else { return };
        if first == [TLS_HANDSHAKE] {
            let why = "it speaks TLS to an address without";
            return self.refuse(hall, TurnedAway::Misread, from, why);
        }
        self.converse(Patient::new(stream), hall, None).await;
    }

    fn refuse(&self, hall: &Hall, reason: TurnedAway, from: SocketAddr, why: &str) {
        hall.counting().turned_away(reason);
        let protocol = self.protocol.text();
        sluice_log::log!(CallerRefused, %from, why, "{protocol}: a caller from {from} was refused: {why}");
    }

    /// Speaks the protocol; `refused` says why all that is asked is refused.
    async fn converse(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + 'static,
        hall: &Rc<Hall>,
        refused: Option<String>,
    ) {
        hall.counting().accepted(self.protocol);
        match (self.protocol, refused) {
            (Protocol::Resp, Some(why)) => resp_door::refuse(stream, &why).await,
            (Protocol::Resp, None) => resp_door::converse(stream, Rc::clone(hall)).await,
            (Protocol::Http, why) => {
                let mut stream = stream;
                http_door::converse(TokioIo::new(&mut stream), Rc::clone(hall), why).await;
                // A body that is too long to be read would make the kernel throw away the answer.
                timeout(FAREWELL, part(stream)).await.ok();
            }
            (Protocol::Grpc, why) => grpc::converse(TokioIo::new(stream), Rc::clone(hall), why).await,
        }
        hall.counting().ended(self.protocol);
    }

    async fn say_tls(&self, mut stream: TcpStream) {
        let told = match self.protocol {
            Protocol::Resp => "-ERR this address speaks TLS: call it with --tls\r\n",
            Protocol::Http => {
                "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 47\r\n\
                 connection: close\r\n\r\nthis address speaks TLS: call it with https://\n"
            }
            Protocol::Grpc => return,
        };
        if stream.write_all(told.as_bytes()).await.is_ok() {
            timeout(FAREWELL, part(stream)).await.ok();
        }
    }
}

/// Whether the holder of these certificates, its own first, may send tasks.
fn may_send(certificates: Option<&[CertificateDer<'_>]>) -> Result<(), String> {
    let Some(own) = certificates.and_then(<[_]>::first) else {
        return Err("callers have to show a certificate here".to_owned());
    };
    if end_of(own).is_some_and(|end| end < SystemTime::now()) {
        return Err("the certificate has ended: give a new one".to_owned());
    }
    let caller = Caller::of_certificate(own, None).unwrap_or(Caller::NOBODY);
    let roles = caller.roles();
    if roles.iter().any(|role| [CallerRole::Sender, CallerRole::Host].contains(role)) {
        return Ok(());
    }
    let has = match &roles[..] {
        [] => "gives no role".to_owned(),
        roles => {
            let words: Vec<_> = roles.iter().map(|role| role.word()).collect();
            format!("has the role {}", words.join(" and "))
        }
    };
    Err(format!("a task takes a certificate with the role sender or host, and {caller} {has}"))
}
