//! The gate before all services: which versions a caller has to speak, and which roles may make which call. A
//! call that is not listed here requires an operator.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use sluice_rpc::{Caller, CallerRole, PeerVersion};
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

use super::connection::ConnectionPeer;
use super::refused::{Reason, Refused};

/// Checks calls, and passes them to `inner` with a [`Caller`] in their extensions.
#[derive(Clone)]
pub(super) struct Gate<S> {
    inner: S,
    asks_callers: bool,
    refused: Arc<Refused>,
}

impl<S> Gate<S> {
    pub(super) fn new(inner: S, asks_callers: bool, refused: Arc<Refused>) -> Self {
        Self { inner, asks_callers, refused }
    }

    fn admit(&self, request: &Request<Body>, version: &PeerVersion) -> Result<Caller, Status> {
        let line = request.extensions().get::<ConnectionPeer>();
        if let Some(full) = line.and_then(|line| line.full) {
            // The refusal was counted when the connection was accepted.
            return Err(Status::resource_exhausted(full.to_string()));
        }
        let from = line.map(|line| line.from);
        let who = || from.map_or_else(|| "a caller".to_owned(), |from| format!("a caller from {from}"));
        if let Err(status) = version.check("the caller") {
            self.refused.log_refusal(Reason::OtherVersion, who(), status.message());
            return Err(status);
        }
        if !self.asks_callers {
            return Ok(Caller::Trusted);
        }
        let call = request.uri().path().trim_start_matches('/');
        let shown = line.and_then(|line| line.certificates.as_deref());
        let Some(own) = shown.and_then(<[_]>::first) else {
            let why = "callers have to show a certificate here: give yours, and its key, with --identity";
            self.refused.log_refusal(Reason::NoCertificate, who(), why);
            return Err(Status::unauthenticated(why));
        };
        let Some(caller) = Caller::of_certificate(own, from) else {
            let why = "the certificate that was shown cannot be read: make another";
            self.refused.log_refusal(Reason::BadCertificate, who(), why);
            return Err(Status::unauthenticated(why));
        };
        if let Some((name, end)) = caller.name().zip(line.and_then(|line| line.ends)) {
            self.refused.note_certificate_end(name, end);
        }
        let roles = roles(call);
        if roles.iter().any(|role| caller.roles().contains(role)) {
            return Ok(caller);
        }
        Err(self.lacks(call, &caller, roles))
    }

    fn lacks(&self, call: &str, caller: &Caller, needed: &[CallerRole]) -> Status {
        let list = |roles: &[CallerRole], between: &str| {
            roles.iter().map(|role| role.word()).collect::<Vec<_>>().join(between)
        };
        if caller.roles().is_empty() {
            let all = list(&CallerRole::ALL, ", ");
            let why = format!(
                "this certificate gives no role: make one with -addext subjectAltName=URI:sluice:ROLE/NAME, where ROLE is one \
                 of {all}"
            );
            self.refused.log_refusal(Reason::NoRole, caller, &why);
            return Status::permission_denied(why);
        }
        let (needed, has) = (list(needed, " or "), list(&caller.roles(), " and "));
        let call = call.rsplit('/').next().unwrap_or(call);
        let why =
            format!("{call} takes a certificate with the role {needed}, and {caller} has the role {has}");
        self.refused.log_refusal(Reason::OtherRole, caller, &why);
        Status::permission_denied(why)
    }
}

/// An answer that says which versions this process speaks.
fn with_own_version(mut answer: Response<Body>) -> Response<Body> {
    PeerVersion::put_own(answer.headers_mut());
    answer
}

/// The roles of which a caller needs at least one.
fn roles(call: &str) -> &'static [CallerRole] {
    use CallerRole::{Controller, Host, Operator, Reader};
    match call {
        "sluice.v1.Controller/RenewWorker"
        | "sluice.v1.Controller/AwaitChange"
        | "sluice.v1.Controller/LeaveWorker"
        | "sluice.v1.Controller/RenewClient"
        | "sluice.v1.Controller/LeaveClient"
        | "sluice.v1.Controller/RenewServer"
        | "sluice.v1.Controller/LeaveServer"
        | "sluice.v1.Controller/ReportInterval" => &[Host],
        "sluice.v1.Controller/Standing" => &[Host, Reader, Operator],
        "sluice.v1.Controller/Status" | "sluice.v1.Controller/Watch" => &[Reader, Operator],
        "sluice.v1.Tables/Describe"
        | "sluice.v1.Tables/Apply"
        | "sluice.v1.Tables/Count"
        | "sluice.v1.Tables/Lead" => &[Controller],
        "grpc.reflection.v1.ServerReflection/ServerReflectionInfo" => &CallerRole::ALL,
        _ => &[Operator],
    }
}

impl<S> Service<Request<Body>> for Gate<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let version = PeerVersion::of_headers(request.headers());
        match self.admit(&request, &version) {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                request.extensions_mut().insert(version);
                let answer = self.inner.call(request);
                Box::pin(async move { answer.await.map(with_own_version) })
            }
            Err(status) => Box::pin(ready(Ok(with_own_version(status.into_http())))),
        }
    }
}
