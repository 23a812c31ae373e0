//! Certificates, and where gRPC may be spoken without them.

use std::net::SocketAddr;
use std::path::Path;
use std::{fmt, fs};

use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};

use crate::NetError;

/// What a server shows, and whom it lets in. PEM throughout.
#[derive(Clone)]
pub struct ServerTls {
    identity: Identity,
    clients: Option<Certificate>,
}

impl ServerTls {
    /// A server with this certificate chain and key, open to every caller.
    pub fn new(certificate: &[u8], key: &[u8]) -> Self {
        Self { identity: Identity::from_pem(certificate, key), clients: None }
    }

    /// The same, from files; with `clients`, only callers whose certificate that authority signed are let in.
    ///
    /// # Errors
    /// [`NetError::Tls`] for a file that cannot be read.
    pub fn from_files(certificate: &Path, key: &Path, clients: Option<&Path>) -> Result<Self, NetError> {
        let tls = Self::new(&read("certificate", certificate)?, &read("key", key)?);
        match clients {
            Some(path) => Ok(tls.only_clients_of(&read("client authority", path)?)),
            None => Ok(tls),
        }
    }

    /// Lets only those callers in whose certificate this authority signed.
    #[must_use]
    pub fn only_clients_of(mut self, authority: &[u8]) -> Self {
        self.clients = Some(Certificate::from_pem(authority));
        self
    }

    pub(super) fn config(&self) -> ServerTlsConfig {
        let config = ServerTlsConfig::new().identity(self.identity.clone());
        match &self.clients {
            Some(authority) => config.client_ca_root(authority.clone()),
            None => config,
        }
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("checks_clients", &self.clients.is_some()).finish_non_exhaustive()
    }
}

/// Whom a caller trusts, and what it shows. PEM throughout.
#[derive(Clone)]
pub struct ClientTls {
    authority: Certificate,
    server_name: Option<String>,
    identity: Option<Identity>,
}

impl ClientTls {
    /// Trusts servers whose certificate this authority signed.
    pub fn new(authority: &[u8]) -> Self {
        Self { authority: Certificate::from_pem(authority), server_name: None, identity: None }
    }

    /// The same, from a file, and with a certificate and key to show if the server asks for one.
    ///
    /// # Errors
    /// [`NetError::Tls`] for a file that cannot be read.
    pub fn from_files(authority: &Path, identity: Option<(&Path, &Path)>) -> Result<Self, NetError> {
        let tls = Self::new(&read("authority", authority)?);
        match identity {
            Some((certificate, key)) => {
                Ok(tls.showing(&read("certificate", certificate)?, &read("key", key)?))
            }
            None => Ok(tls),
        }
    }

    /// Shows this certificate if the server asks for one.
    #[must_use]
    pub fn showing(mut self, certificate: &[u8], key: &[u8]) -> Self {
        self.identity = Some(Identity::from_pem(certificate, key));
        self
    }

    /// Expects this name in the server's certificate, instead of the host that is called.
    #[must_use]
    pub fn expecting(mut self, server_name: impl Into<String>) -> Self {
        self.server_name = Some(server_name.into());
        self
    }

    pub(super) fn config(&self) -> ClientTlsConfig {
        let mut config = ClientTlsConfig::new().ca_certificate(self.authority.clone());
        if let Some(name) = &self.server_name {
            config = config.domain_name(name);
        }
        if let Some(identity) = &self.identity {
            config = config.identity(identity.clone());
        }
        config
    }
}

impl fmt::Debug for ClientTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shows = self.identity.is_some();
        f.debug_struct("ClientTls")
            .field("name", &self.server_name)
            .field("shows_itself", &shows)
            .finish_non_exhaustive()
    }
}

/// What keeps strangers from what is served.
#[derive(Clone, Debug, Default)]
pub enum Guard {
    /// Only this machine is served: addresses of the loopback.
    #[default]
    Loopback,
    /// TLS.
    Tls(ServerTls),
    /// Nobody else is on the network: a namespace that was made for this rack (see [`spaces`](crate::spaces)).
    OwnNetwork,
}

impl Guard {
    /// TLS if there is any, else the loopback.
    pub fn of(tls: Option<ServerTls>) -> Self {
        tls.map_or(Self::Loopback, Self::Tls)
    }

    pub(super) const fn tls(&self) -> Option<&ServerTls> {
        match self {
            Self::Tls(tls) => Some(tls),
            Self::Loopback | Self::OwnNetwork => None,
        }
    }

    /// Refuses an address that it does not keep strangers from.
    ///
    /// # Errors
    /// [`NetError::Insecure`] for an address beyond loopback without TLS.
    pub(super) fn check(&self, at: SocketAddr) -> Result<(), NetError> {
        if matches!(self, Self::Loopback) && !at.ip().to_canonical().is_loopback() {
            return Err(NetError::Insecure { at });
        }
        Ok(())
    }
}

fn read(what: &str, path: &Path) -> Result<Vec<u8>, NetError> {
    let failed = |why: &dyn fmt::Display| NetError::Tls {
        what: format!("{what} {}", path.display()),
        why: why.to_string(),
    };
    let bytes = fs::read(path).map_err(|why| failed(&why))?;
    if !bytes.windows(11).any(|w| w == b"-----BEGIN ") {
        return Err(failed(&"no PEM block (-----BEGIN …) in it"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_needs_no_tls_in_either_family() {
        for at in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            Guard::Loopback.check(at.parse().unwrap()).unwrap();
        }
    }

    #[test]
    fn any_other_address_without_tls_is_refused_with_the_reason() {
        for at in ["0.0.0.0:1", "10.0.0.1:1", "[::]:1"] {
            let error = Guard::Loopback.check(at.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(at) && error.contains("without TLS"), "{error}");
        }
    }

    #[test]
    fn any_other_address_is_fine_with_tls_or_where_nobody_else_is() {
        for guard in [Guard::Tls(ServerTls::new(b"", b"")), Guard::OwnNetwork] {
            guard.check("0.0.0.0:1".parse().unwrap()).unwrap();
        }
    }

    #[test]
    fn a_certificate_that_is_none_is_named() {
        let error = ClientTls::from_files(Path::new("/dev/null"), None).unwrap_err().to_string();
        assert!(error.contains("authority /dev/null") && error.contains("PEM"), "{error}");
    }
}
