//! Calls and connections that were refused because of who made them or what they said, counted by reason.

use std::sync::atomic::{AtomicU64, Ordering};

use sluice_net::rpc::{Malformed, v1};

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

/// How many calls were refused.
#[derive(Debug, Default)]
pub(crate) struct Refused([AtomicU64; Reason::ALL.len()]);

impl Refused {
    pub(crate) fn count(&self, reason: Reason) {
        self.0[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// All reasons, with how often each was one.
    pub(crate) fn counters(&self) -> Vec<v1::Counter> {
        let counter = |reason: Reason| v1::Counter {
            name: reason.word().to_owned(),
            value: self.0[reason as usize].load(Ordering::Relaxed),
        };
        Reason::ALL.into_iter().map(counter).collect()
    }
}
