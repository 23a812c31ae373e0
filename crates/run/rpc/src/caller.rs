//! The caller of a gRPC method, as its certificate describes it.
//!
//! A certificate states by URIs in its `subjectAltName` what its holder may do, and under which name.
//! `sluice:host/b` is a host that may use the name `b` and names that begin with `b/`. A certificate may
//! have several such URIs. Packets for a host may go to the address from which it calls, and to the
//! addresses in its certificate (`IP:10.77.2.2`).

use std::fmt;
use std::net::IpAddr;

use sluice_control::check_name;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use webpki::EndEntityCert;

/// The prefix of the URIs.
const SCHEME: &str = "sluice:";

/// A role that a certificate grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerRole {
    /// Registers, renews, leaves and reports: workers, clients and servers.
    Host,
    /// Sees everything, and changes the rack's settings.
    Operator,
    /// Sees all.
    Reader,
    /// Writes a switch's tables: a controller in another process.
    Controller,
    /// Sends tasks through a gateway.
    Sender,
}

impl CallerRole {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Host, Self::Operator, Self::Reader, Self::Controller, Self::Sender];

    /// The role's name in a certificate.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Operator => "operator",
            Self::Reader => "reader",
            Self::Controller => "controller",
            Self::Sender => "sender",
        }
    }
}

/// The caller of a service.
#[derive(Clone, Debug)]
pub enum Caller {
    /// A caller that need not show a certificate: no stranger can reach the service.
    Trusted,
    /// The holder of a certificate.
    Known {
        /// The granted roles, with a name for each.
        roles: Vec<(CallerRole, String)>,
        /// The address from which the holder calls.
        from: Option<IpAddr>,
        certificate: Option<CertificateDer<'static>>,
    },
}

impl Caller {
    /// A caller without a certificate, which may do nothing.
    pub const NOBODY: Self = Self::Known { roles: Vec::new(), from: None, certificate: None };

    /// The holder of this certificate, calling from this address; `None` if the certificate cannot be read.
    pub fn of_certificate(certificate: &CertificateDer<'_>, from: Option<IpAddr>) -> Option<Self> {
        let read = EndEntityCert::try_from(certificate).ok()?;
        let roles = read.valid_uri_names().filter_map(role_and_name).collect();
        let from = from.map(|from| from.to_canonical());
        Some(Self::Known { roles, from, certificate: Some(certificate.clone().into_owned()) })
    }

    /// The name beside the roles, if there is one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Trusted => None,
            Self::Known { roles, .. } => roles.first().map(|(_, name)| name.as_str()),
        }
    }

    /// The roles that the certificate grants.
    pub fn roles(&self) -> Vec<CallerRole> {
        match self {
            Self::Trusted => CallerRole::ALL.to_vec(),
            Self::Known { roles, .. } => roles.iter().map(|(role, _)| *role).collect(),
        }
    }

    /// Whether the caller may use this name as a host.
    pub fn may_be(&self, asked: &str) -> bool {
        let goes_by = |(role, own): &(CallerRole, String)| {
            let below = asked.strip_prefix(own.as_str());
            *role == CallerRole::Host && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match self {
            Self::Trusted => true,
            Self::Known { roles, .. } => roles.iter().any(goes_by),
        }
    }

    /// The address from which it calls; `None` if it does not matter.
    pub const fn from(&self) -> Option<IpAddr> {
        match self {
            Self::Trusted => None,
            Self::Known { from, .. } => *from,
        }
    }

    /// Whether packets for the caller may go to this address: the one from which it calls, or one in its
    /// certificate.
    pub fn may_be_at(&self, asked: IpAddr) -> bool {
        let asked = asked.to_canonical();
        match self {
            Self::Trusted => true,
            Self::Known { from, certificate, .. } => {
                let holds = |certificate: &CertificateDer<'_>| {
                    let read = EndEntityCert::try_from(certificate).ok();
                    read.is_some_and(|it| {
                        it.verify_is_valid_for_subject_name(&ServerName::from(asked)).is_ok()
                    })
                };
                *from == Some(asked) || certificate.as_ref().is_some_and(holds)
            }
        }
    }
}

fn role_and_name(uri: &str) -> Option<(CallerRole, String)> {
    let (role, name) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let role = CallerRole::ALL.into_iter().find(|known| known.word() == role)?;
    check_name(name).ok()?;
    Some((role, name.to_owned()))
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "the certificate of {name}"),
            None if matches!(self, Self::Trusted) => f.write_str("somebody on this machine or network"),
            None => f.write_str("a certificate without a name"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rcgen::{CertificateParams, KeyPair, SanType};

    use super::*;

    fn caller(uris: &[&str]) -> Caller {
        calling_from(uris, &[], None)
    }

    fn calling_from(uris: &[&str], addresses: &[&str], from: Option<&str>) -> Caller {
        let mut params = CertificateParams::new(vec!["b.example".to_owned()]).unwrap();
        let uri = |uri: &&str| SanType::URI((*uri).try_into().unwrap());
        params.subject_alt_names.extend(uris.iter().map(uri));
        let address = |address: &&str| SanType::IpAddress(address.parse().unwrap());
        params.subject_alt_names.extend(addresses.iter().map(address));
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        Caller::of_certificate(certificate.der(), from.map(|from| from.parse().unwrap())).unwrap()
    }

    #[test]
    fn packets_go_where_a_host_calls_from_and_where_its_certificate_says() {
        let host = calling_from(&["sluice:host/b"], &["10.1.0.7", "fd00::7"], Some("::ffff:10.0.0.7"));
        for own in ["10.0.0.7", "::ffff:10.0.0.7", "10.1.0.7", "fd00::7"] {
            assert!(host.may_be_at(own.parse().unwrap()), "{own}");
        }
        for other in ["10.0.0.8", "127.0.0.1", "::1", "::", "fd00::8", "10.1.0.70"] {
            assert!(!host.may_be_at(other.parse().unwrap()), "{other}");
        }
        let unseen = calling_from(&["sluice:host/b"], &[], None);
        assert!(!unseen.may_be_at("10.0.0.7".parse().unwrap()), "nobody knows where it calls from");
    }

    #[test]
    fn a_host_goes_by_its_own_name_and_those_below_it() {
        let host = caller(&["sluice:host/b"]);
        assert_eq!(host.roles(), [CallerRole::Host]);
        for own in ["b", "b/", "b/worker-1", "b/x/y"] {
            assert!(host.may_be(own), "{own}");
        }
        for other in ["", "a", "bb", "b-1", "a/b", "B", "bb/x", "/b", "b.example"] {
            assert!(!host.may_be(other), "{other}");
        }
    }

    #[test]
    fn several_roles_each_have_their_name() {
        let both = caller(&["sluice:operator/ann", "sluice:host/b"]);
        assert_eq!(both.roles(), [CallerRole::Operator, CallerRole::Host]);
        assert!(both.may_be("b") && !both.may_be("ann"));
        assert_eq!(both.name(), Some("ann"));
    }

    #[test]
    fn what_is_no_role_or_no_name_gives_nothing() {
        for uri in [
            "sluice:Host/b",
            "sluice:hosts/b",
            "sluice:host",
            "sluice:host/",
            "sluice:host/b c",
            "sluice:host/b\n",
            "host/b",
            "https:host/b",
            "sluice:/b",
            "sluice:host/*",
        ] {
            let nobody = caller(&[uri]);
            assert!(nobody.roles().is_empty() && nobody.name().is_none(), "{uri}");
            assert!(!nobody.may_be("b") && !nobody.may_be(""), "{uri}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_break_the_reader(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(Caller::of_certificate(&CertificateDer::from(bytes), None).is_none());
        }

        #[test]
        fn a_certificate_that_was_damaged_breaks_nothing(place in 0_usize..2_000, byte in any::<u8>()) {
            let params = CertificateParams::new(vec!["sluice:host/b".to_owned()]).unwrap();
            let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let mut der = made.der().to_vec();
            let place = place % der.len();
            der[place] = byte;
            let read = Caller::of_certificate(&CertificateDer::from(der), None);
            let name = read.and_then(|caller| caller.name().map(str::to_owned));
            prop_assert!(name.is_none_or(|name| check_name(&name).is_ok()));
        }
    }
}
