//! Counters of calls and connections that were refused because of their caller or their contents, by
//! reason.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use sluice_metrics::{Collecting, MetricFamily, MetricSample, MetricSource};
use sluice_rpc::{Malformed, RenewedTls, end_text, shown, v1};

/// Why a call or connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The caller shows no certificate.
    NoCertificate,
    /// The caller's certificate is not trusted, or cannot be read.
    BadCertificate,
    /// The caller does not speak TLS, or broke the handshake off.
    NoTls,
    /// The limit on connections is reached.
    Connections,
    /// The caller speaks no version of the protocol that this process speaks.
    OtherVersion,
    /// The caller's certificate grants no role.
    NoRole,
    /// The caller's certificate does not grant the role that the call requires.
    OtherRole,
    /// The caller uses a name that its certificate does not grant.
    OtherName,
    /// The caller wants packets sent to an address that is not its own.
    OtherAddress,
    /// The caller reports about workers for which its certificate does not speak.
    OtherWorker,
    /// A field has an invalid value.
    Field,
    /// A field that should be a name is not a valid one.
    Name,
}

impl Reason {
    const ALL: [Self; 12] = [
        Self::NoCertificate,
        Self::BadCertificate,
        Self::NoTls,
        Self::Connections,
        Self::OtherVersion,
        Self::NoRole,
        Self::OtherRole,
        Self::OtherName,
        Self::OtherAddress,
        Self::OtherWorker,
        Self::Field,
        Self::Name,
    ];

    /// The reason that a malformed field stands for.
    pub(crate) const fn of(malformed: &Malformed) -> Self {
        if malformed.is_of_name() { Self::Name } else { Self::Field }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::NoCertificate => "no_certificate",
            Self::BadCertificate => "bad_certificate",
            Self::NoTls => "no_tls",
            Self::Connections => "connections",
            Self::OtherVersion => "other_version",
            Self::NoRole => "no_role",
            Self::OtherRole => "other_role",
            Self::OtherName => "other_name",
            Self::OtherAddress => "other_address",
            Self::OtherWorker => "other_worker",
            Self::Field => "field",
            Self::Name => "name",
        }
    }
}

/// How many callers are remembered whose certificates end soon.
const ENDING_MAX: usize = 256;

/// Counters of refused calls, and the callers whose certificates end soon.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    counts: [AtomicU64; Reason::ALL.len()],
    /// The server's own certificates.
    own: Option<Arc<RenewedTls>>,
    /// For each caller, the end of the certificate that it showed last.
    ending: Mutex<BTreeMap<String, SystemTime>>,
}

impl Refused {
    /// The counters of a server with these certificates.
    pub(crate) fn beside(own: Option<Arc<RenewedTls>>) -> Self {
        Self { own, ..Self::default() }
    }

    pub(crate) fn count(&self, reason: Reason) {
        self.counts[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal, and logs it within the limit of this event: anyone can connect.
    pub(crate) fn log_refusal(&self, reason: Reason, who: impl Display, why: &str) {
        self.count(reason);
        let reason = reason.word();
        sluice_log::log!(CallRefused, %who, reason, why, "{who} was refused: {}", shown(why));
    }

    /// Notes that a caller showed a certificate that ends at `end`.
    pub(crate) fn note_certificate_end(&self, caller: &str, end: SystemTime) {
        let mut ending = locked(&self.ending);
        if end_text(end).is_none() {
            ending.remove(caller);
        } else if ending.len() < ENDING_MAX || ending.contains_key(caller) {
            ending.insert(caller.to_owned(), end);
        }
    }

    /// Certificates that end soon.
    pub(crate) fn ending(&self) -> Vec<v1::CertificateEnd> {
        let own = self.own.iter().flat_map(|own| own.ends());
        let callers = locked(&self.ending).clone().into_iter();
        let callers = callers.map(|(caller, end)| (format!("the certificate of {caller}"), end));
        let soon = own.chain(callers).filter(|(_, end)| end_text(*end).is_some());
        let ends = |(certificate, end): (String, SystemTime)| v1::CertificateEnd {
            certificate,
            unix_s: end.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        };
        soon.map(ends).collect()
    }

    /// All reasons, with how often each was one.
    pub(crate) fn counters(&self) -> Vec<v1::Counter> {
        let counter = |reason: Reason| v1::Counter {
            name: reason.word().to_owned(),
            value: self.counts[reason as usize].load(Ordering::Relaxed),
        };
        Reason::ALL.into_iter().map(counter).collect()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MetricSource for Refused {
    fn collect(&self) -> Collecting<'_> {
        let reason = |counter: v1::Counter| {
            MetricSample::count(MetricFamily::CallsRefused, counter.value).with("reason", counter.name)
        };
        Box::pin(ready(self.counters().into_iter().map(reason).collect()))
    }
}
