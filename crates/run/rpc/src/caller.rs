//! Who calls, as its certificate says.
//!
//! A certificate says what its holder may do, and under which name, by URIs in its `subjectAltName`:
//! `sluice:host/b` is a host that goes by the name `b`, or by one that begins with `b/`, and by no other. It
//! may have several. Packets are sent to a host where it calls from, and at the addresses that its
//! certificate holds (`IP:10.77.2.2`).

use std::fmt;
use std::net::IpAddr;

use sluice_control::check_name;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use webpki::EndEntityCert;

/// What its URIs begin with.
const SCHEME: &str = "sluice:";

/// What a certificate lets its holder do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallerRole {
    /// Registers, renews, leaves and reports: workers, clients, servers.
    Host,
    /// Sees all, and changes what the rack does.
    Operator,
    /// Sees all.
    Reader,
    /// Writes a switch's tables: a controller in a process of its own.
    Controller,
}

impl CallerRole {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Host, Self::Operator, Self::Reader, Self::Controller];

    /// As a certificate says it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Operator => "operator",
            Self::Reader => "reader",
            Self::Controller => "controller",
        }
    }
}

/// Who calls.
#[derive(Clone, Debug)]
pub enum Caller {
    /// Nobody that could do harm reaches what is served.
    Trusted,
    /// The holder of a certificate.
    Known {
        /// Its roles, with the name for each.
        roles: Vec<(CallerRole, String)>,
        /// Where it calls from.
        from: Option<IpAddr>,
        certificate: Option<CertificateDer<'static>>,
    },
}

impl Caller {
    /// Somebody of whom nothing is known, and who may do nothing.
    pub const NOBODY: Self = Self::Known { roles: Vec::new(), from: None, certificate: None };

    /// The holder of this certificate, who calls from there; `None` if it cannot be read.
    pub fn of_certificate(certificate: &CertificateDer<'_>, from: Option<IpAddr>) -> Option<Self> {
        let read = EndEntityCert::try_from(certificate).ok()?;
        let roles = read.valid_uri_names().filter_map(role_and_name).collect();
        let from = from.map(|from| from.to_canonical());
        Some(Self::Known { roles, from, certificate: Some(certificate.clone().into_owned()) })
    }

    /// The name that stands beside its roles, if there is any.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Trusted => None,
            Self::Known { roles, .. } => roles.first().map(|(_, name)| name.as_str()),
        }
    }

    /// The roles that its certificate gives it.
    pub fn roles(&self) -> Vec<CallerRole> {
        match self {
            Self::Trusted => CallerRole::ALL.to_vec(),
            Self::Known { roles, .. } => roles.iter().map(|(role, _)| *role).collect(),
        }
    }

    /// Whether it may go by this name as a host.
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

    /// Where it calls from, if it matters.
    pub const fn from(&self) -> Option<IpAddr> {
        match self {
            Self::Trusted => None,
            Self::Known { from, .. } => *from,
        }
    }

    /// Whether it may have packets sent there: to where it calls from, or to an address that its certificate
    /// holds.
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
