//! A channel to a service that is replaced when the certificates for it change on disk. Each call and each
//! answer says which versions its sender speaks.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use tonic::body::Body;
use tonic::transport::{Channel, Endpoint, Error};
use tower_service::Service;

use super::ClientTls;
use super::tls::{FromPemFiles, Pem, Renewed};
use crate::{PeerVersion, RpcError};

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

/// Calls a service with the certificates that are valid at the call. Calls under way finish on their old
/// channel.
#[derive(Clone)]
pub struct RenewedChannel {
    to: Arc<Renewed<RenewedEndpoint>>,
    /// Whether calls have no time limit.
    patient: bool,
    /// The channel, and the version of the certificates with which it was made.
    channel: Arc<Mutex<(u64, Channel)>>,
}

impl RenewedChannel {
    /// Must be called inside a tokio runtime.
    pub(super) fn new(to: Arc<Renewed<RenewedEndpoint>>, patient: bool) -> Self {
        let made = connect(&to, patient);
        Self { to, patient, channel: Arc::new(Mutex::new(made)) }
    }

    fn channel(&self) -> Channel {
        // Nothing that can panic happens under this lock.
        let mut held = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        if self.to.version() != held.0 {
            *held = connect(&self.to, self.patient);
        }
        held.1.clone()
    }
}

fn connect(to: &Renewed<RenewedEndpoint>, patient: bool) -> (u64, Channel) {
    let (version, endpoint) = to.now();
    let endpoint = if patient { endpoint.timeout(Duration::MAX) } else { endpoint };
    (version, endpoint.connect_lazy())
}

impl Service<Request<Body>> for RenewedChannel {
    type Response = Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let mut channel = self.channel();
        PeerVersion::put_own(request.headers_mut());
        Box::pin(async move {
            poll_fn(|context| channel.poll_ready(context)).await?;
            let mut answer = channel.call(request).await?;
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
