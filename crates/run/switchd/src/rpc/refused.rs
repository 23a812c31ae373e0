//! Calls and connections that were refused because of who made them or what they said, counted by reason.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sluice_rpc::{Malformed, RenewedTls, shown, told_of_end, v1};

/// Why a call is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The caller shows no certificate.
    NoCertificate,
    /// Its certificate is not believed, or cannot be read.
    BadCertificate,
    /// It does not speak TLS, or no further than half of a handshake.
    NoTls,
    /// There are as many connections as there may be.
    Connections,
    /// Its certificate gives it no role.
    NoRole,
    /// Its certificate gives it another role than the call takes.
    OtherRole,
    /// It goes by a name that its certificate does not give it.
    OtherName,
    /// It would have packets sent to an address that is not its own.
    OtherAddress,
    /// It tells of workers that its certificate does not speak for.
    OtherWorker,
    /// A field does not hold what it should.
    Field,
    /// A name that is none.
    Name,
}

impl Reason {
    const ALL: [Self; 11] = [
        Self::NoCertificate,
        Self::BadCertificate,
        Self::NoTls,
        Self::Connections,
        Self::NoRole,
        Self::OtherRole,
        Self::OtherName,
        Self::OtherAddress,
        Self::OtherWorker,
        Self::Field,
        Self::Name,
    ];

    /// Why a field that cannot be read is refused.
    pub(crate) const fn of(malformed: &Malformed) -> Self {
        if malformed.is_of_name() { Self::Name } else { Self::Field }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::NoCertificate => "no_certificate",
            Self::BadCertificate => "bad_certificate",
            Self::NoTls => "no_tls",
            Self::Connections => "connections",
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

/// How often the log is told of one that was refused: anybody can knock.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Callers whose certificates end soon that are known at once.
const ENDING_MAX: usize = 256;

/// How many calls were refused, and whose certificates end soon.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    counts: [AtomicU64; Reason::ALL.len()],
    /// When a refusal was last told of.
    told: Mutex<Option<Instant>>,
    /// The server's own certificates.
    own: Option<Arc<RenewedTls>>,
    /// Those of callers, as they showed them last.
    ending: Mutex<BTreeMap<String, SystemTime>>,
}

impl Refused {
    /// By a server that shows these certificates.
    pub(crate) fn beside(own: Option<Arc<RenewedTls>>) -> Self {
        Self { own, ..Self::default() }
    }

    pub(crate) fn count(&self, reason: Reason) {
        self.counts[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refusal and has the log say who it was, at most once a second.
    pub(crate) fn tell(&self, reason: Reason, who: impl Display, why: &str) {
        self.count(reason);
        let mut told = locked(&self.told);
        if told.is_none_or(|at| at.elapsed() >= TELL_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!("{who} was refused: {}", shown(why));
        }
    }

    /// A caller showed a certificate that ends then.
    pub(crate) fn saw(&self, caller: &str, end: SystemTime) {
        let mut ending = locked(&self.ending);
        if told_of_end(end).is_none() {
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
        let soon = own.chain(callers).filter(|(_, end)| told_of_end(*end).is_some());
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
