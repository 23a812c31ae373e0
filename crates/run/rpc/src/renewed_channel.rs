//! A channel to a service that is replaced when the certificates for it change on disk, or when another of
//! its addresses is to be called. Each call and each answer says which versions its sender speaks.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use hyper_util::client::legacy::connect::HttpConnector;
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint, Error};
use tower_service::Service;

use super::ClientTls;
use super::tls::{FromPemFiles, Pem, Renewed};
use crate::{PeerVersion, RpcError};

/// The header of answers by a controller that does not lead. Its value is where the leader is, as far as
/// that is known.
pub const LEADER_HEADER: &str = "sluice-leader";

/// An endpoint, and the certificates for it.
#[derive(Clone)]
pub(super) struct RenewedEndpoint {
    pub(super) at: Endpoint,
    pub(super) tls: Option<ClientTls>,
}

impl FromPemFiles for RenewedEndpoint {
    type Made = Endpoint;

    fn files(&mut self) -> Vec<&mut Pem> {
        self.tls.iter_mut().flat_map(ClientTls::files).collect()
    }

    fn make(&self) -> Result<Endpoint, RpcError> {
        self.tls.as_ref().map_or_else(|| Ok(self.at.clone()), |tls| tls.over(self.at.clone()))
    }
}

/// The addresses of a service, and which of them is called. Clones share the latter.
#[derive(Clone)]
pub(super) struct Addresses {
    all: Arc<[Arc<Renewed<RenewedEndpoint>>]>,
    at: Arc<AtomicUsize>,
}

impl Addresses {
    /// There must be at least one.
    pub(super) fn new(all: Vec<Arc<Renewed<RenewedEndpoint>>>) -> Self {
        Self { all: all.into(), at: Arc::new(AtomicUsize::new(0)) }
    }

    pub(super) fn all(&self) -> &[Arc<Renewed<RenewedEndpoint>>] {
        &self.all
    }

    pub(super) fn here(&self) -> usize {
        self.at.load(Ordering::Relaxed)
    }

    /// This address is of no use now: the next one is called. Of several calls that fail together, one
    /// turns.
    fn turn_from(&self, at: usize) {
        let next = (at + 1) % self.all.len();
        self.at.compare_exchange(at, next, Ordering::Relaxed, Ordering::Relaxed).ok();
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addresses").field("here", &self.here()).finish_non_exhaustive()
    }
}

/// A call that waits for something to happen may end without an answer, which says nothing about the
/// address.
const AWAITS: &str = "/AwaitChange";

/// Calls a service with the certificates that are valid at the call. Calls under way finish on their old
/// channel.
#[derive(Clone)]
pub struct RenewedChannel {
    to: Addresses,
    /// Whether calls have no time limit.
    patient: bool,
    channel: Arc<Mutex<MadeChannel>>,
}

/// A channel, its address, and the version of the certificates with which it was made.
struct MadeChannel {
    at: usize,
    version: u64,
    channel: Channel,
}

impl RenewedChannel {
    /// Must be called inside a tokio runtime.
    pub(super) fn new(to: Addresses, patient: bool) -> Self {
        let made = connect(&to, patient);
        Self { to, patient, channel: Arc::new(Mutex::new(made)) }
    }

    /// The channel for the next call, and its address.
    fn channel(&self) -> (usize, Channel) {
        // Nothing that can panic happens under this lock.
        let mut held = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let here = self.to.here();
        if here != held.at || self.to.all[here].version() != held.version {
            *held = connect(&self.to, self.patient);
        }
        (held.at, held.channel.clone())
    }
}

fn connect(to: &Addresses, patient: bool) -> MadeChannel {
    let at = to.here();
    let (version, endpoint) = to.all[at].now();
    let endpoint = if patient { endpoint.timeout(Duration::MAX) } else { endpoint };
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // With a connector that is given, the endpoint's time limit is for TCP and TLS together. Otherwise it is
    // for TCP alone, and a process that stands still keeps its callers in the handshake.
    MadeChannel { at, version, channel: endpoint.connect_with_connector_lazy(tcp) }
}

impl Service<Request<Body>> for RenewedChannel {
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let (at, mut channel) = self.channel();
        let to = self.to.clone();
        let awaits = request.uri().path().ends_with(AWAITS);
        PeerVersion::put_own(request.headers_mut());
        Box::pin(async move {
            let answer = async {
                poll_fn(|context| channel.poll_ready(context)).await?;
                channel.call(request).await
            };
            let answer = answer.await;
            let is_useless = match &answer {
                Ok(answer) => answer.headers().contains_key(LEADER_HEADER),
                Err(_) => !awaits,
            };
            if is_useless {
                to.turn_from(at);
            }
            let mut answer = answer?;
            let said = PeerVersion::of_headers(answer.headers());
            if let Err(status) = said.check("the process that was called") {
                return Ok(status.into_http());
            }
            answer.extensions_mut().insert(said);
            Ok(answer)
        })
    }
}

impl fmt::Debug for RenewedChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RenewedChannel").field("patient", &self.patient).finish_non_exhaustive()
    }
}
