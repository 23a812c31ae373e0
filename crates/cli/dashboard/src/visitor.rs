//! Who is at the page, and what the visitor may do. The page acts with its own certificate towards the
//! controllers, so it has to look at the visitor's itself.

use std::time::SystemTime;

use hyper::StatusCode;
use sluice_rpc::{Caller, CallerRole, end_of};
use tokio_rustls::rustls::pki_types::CertificateDer;

/// A visitor of the page.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    caller: Caller,
    /// When the certificate that was shown ends.
    ends: Option<SystemTime>,
}

/// Why something is not answered: the status, and a line for the visitor.
#[derive(Debug)]
pub(crate) struct PageRefusal {
    pub(crate) status: StatusCode,
    pub(crate) why: String,
}

impl PageRefusal {
    pub(crate) fn new(status: StatusCode, why: impl Into<String>) -> Self {
        Self { status, why: why.into() }
    }
}

impl Visitor {
    /// A visitor on this machine, of whom no certificate is asked.
    pub(crate) const fn on_this_machine() -> Self {
        Self { caller: Caller::Trusted, ends: None }
    }

    /// A visitor who showed these certificates, its own first; or none.
    pub(crate) fn with(certificates: Option<&[CertificateDer<'_>]>) -> Self {
        let own = certificates.and_then(<[_]>::first);
        let caller = own.and_then(|own| Caller::of_certificate(own, None));
        Self { caller: caller.unwrap_or(Caller::NOBODY), ends: own.and_then(end_of) }
    }

    /// Whether anything is known of the visitor.
    pub(crate) fn is_known(&self) -> bool {
        !self.caller.roles().is_empty()
    }

    /// The name in the certificate.
    pub(crate) fn name(&self) -> Option<&str> {
        self.caller.name()
    }

    /// Whether the visitor may look.
    pub(crate) fn may_look(&self) -> Result<(), PageRefusal> {
        self.needs(&[CallerRole::Reader, CallerRole::Operator], "this page")
    }

    /// Whether the visitor may change the rack.
    pub(crate) fn may_change(&self) -> Result<(), PageRefusal> {
        self.needs(&[CallerRole::Operator], "a change")
    }

    fn needs(&self, needed: &[CallerRole], what: &str) -> Result<(), PageRefusal> {
        if let Caller::Known { certificate: None, .. } = &self.caller {
            let why = "visitors have to show a certificate here: add yours, with its key, to the browser (a \
                       .p12 file), with the role reader or operator";
            return Err(PageRefusal::new(StatusCode::UNAUTHORIZED, why));
        }
        if self.ends.is_some_and(|end| end < SystemTime::now()) {
            let why = "the certificate that the browser shows has ended: give it a new one";
            return Err(PageRefusal::new(StatusCode::UNAUTHORIZED, why));
        }
        let roles = self.caller.roles();
        if needed.iter().any(|role| roles.contains(role)) {
            return Ok(());
        }
        let words = |roles: &[CallerRole], between: &str| {
            roles.iter().map(|role| role.word()).collect::<Vec<_>>().join(between)
        };
        let has = match &roles[..] {
            [] => "gives no role".to_owned(),
            roles => format!("has the role {}", words(roles, " and ")),
        };
        let (needed, caller) = (words(needed, " or "), &self.caller);
        let why = format!("{what} takes a certificate with the role {needed}, and {caller} {has}");
        Err(PageRefusal::new(StatusCode::FORBIDDEN, why))
    }
}
