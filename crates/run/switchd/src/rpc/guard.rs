//! At which addresses gRPC may be served, and to whom.

use std::net::SocketAddr;

use sluice_rpc::ServerTls;

use crate::SwitchdError;

/// How a service is protected from strangers.
#[derive(Clone, Debug, Default)]
pub enum Guard {
    /// Serves addresses of the loopback only.
    #[default]
    Loopback,
    /// TLS. Other machines are served only if callers must show a certificate.
    Tls(ServerTls),
    /// No stranger is on the network: it is a namespace that was made for this rack (see `sluice-kernel`).
    OwnNetwork,
}

impl Guard {
    /// TLS if it is configured, otherwise loopback only.
    pub fn of(tls: Option<ServerTls>) -> Self {
        tls.map_or(Self::Loopback, Self::Tls)
    }

    pub(super) const fn tls(&self) -> Option<&ServerTls> {
        match self {
            Self::Tls(tls) => Some(tls),
            Self::Loopback | Self::OwnNetwork => None,
        }
    }

    /// Whether callers must show a certificate.
    pub(super) const fn asks_callers(&self) -> bool {
        matches!(self, Self::Tls(tls) if tls.asks_callers())
    }

    /// Checks that this guard protects the address.
    ///
    /// # Errors
    /// [`SwitchdError::Insecure`] for an address beyond loopback without TLS; [`SwitchdError::OpenToAll`]
    /// if TLS asks callers for no certificate.
    pub(super) fn check(&self, at: SocketAddr) -> Result<(), SwitchdError> {
        match self {
            _ if at.ip().to_canonical().is_loopback() => Ok(()),
            Self::Loopback => Err(SwitchdError::Insecure { at }),
            Self::Tls(tls) if !tls.asks_callers() => Err(SwitchdError::OpenToAll { at }),
            Self::Tls(_) | Self::OwnNetwork => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_needs_no_tls_in_either_family() {
        for at in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            Guard::Loopback.check(at.parse().unwrap()).unwrap();
            Guard::Tls(ServerTls::new(b"", b"")).check(at.parse().unwrap()).unwrap();
        }
    }

    #[test]
    fn any_other_address_without_tls_or_with_tls_for_everybody_is_refused_with_the_reason() {
        for at in ["0.0.0.0:1", "10.0.0.1:1", "[::]:1"] {
            let error = Guard::Loopback.check(at.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(at) && error.contains("without TLS"), "{error}");
            let error =
                Guard::Tls(ServerTls::new(b"", b"")).check(at.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(at) && error.contains("--client-ca"), "{error}");
        }
    }

    #[test]
    fn any_other_address_is_fine_where_callers_show_who_they_are_or_nobody_else_is() {
        for guard in [Guard::Tls(ServerTls::new(b"", b"").only_clients_of(b"")), Guard::OwnNetwork] {
            guard.check("0.0.0.0:1".parse().unwrap()).unwrap();
        }
    }
}
