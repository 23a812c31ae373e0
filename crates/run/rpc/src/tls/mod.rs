//! The certificates that servers and callers show each other, and which ones they trust.

mod calling;
mod ending;
mod pem;
mod pinned;
mod renewed;
pub mod why;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::server::NoServerSessionStorage;
use tonic::transport::{ClientTlsConfig, Endpoint, Identity};
use webpki::EndEntityCert;

use super::caller::Caller;
use crate::RpcError;
pub use calling::CallerTls;
pub use ending::{ENDS_SOON, end_of, end_text, end_text_at};
pub(crate) use pem::Pem;
use pinned::{ClientVerifier, ServerVerifier};
pub use renewed::read_anew;
pub(crate) use renewed::{FromPemFiles, Renewed};

/// gRPC is HTTP/2.
const ALPN_H2: &[u8] = b"h2";
/// Pages are HTTP/1.1.
const ALPN_HTTP_1: &[u8] = b"http/1.1";

/// A server's certificate and key, and the authority of its callers. All in PEM.
#[derive(Clone)]
pub struct ServerTls {
    certificate: Pem,
    key: Pem,
    clients: Option<Pem>,
    /// Whether the server speaks HTTP/1.1 instead of gRPC's HTTP/2.
    is_for_pages: bool,
}

impl ServerTls {
    /// A server with this certificate chain and key. It asks callers for no certificate, so it serves this
    /// machine only.
    pub fn new(certificate: &[u8], key: &[u8]) -> Self {
        Self {
            certificate: Pem::given("the server's certificate", certificate),
            key: Pem::given("the server's key", key),
            clients: None,
            is_for_pages: false,
        }
    }

    /// Reads the same from files. With `clients`, callers must show a certificate that this authority
    /// signed, and may do what the certificate grants ([`CallerRole`](super::CallerRole)).
    ///
    /// # Errors
    /// [`RpcError::Tls`] for a file that cannot be read.
    pub fn from_files(certificate: &Path, key: &Path, clients: Option<&Path>) -> Result<Self, RpcError> {
        Ok(Self {
            certificate: Pem::read("certificate", certificate)?,
            key: Pem::read("key", key)?,
            clients: clients.map(|path| Pem::read("client authority", path)).transpose()?,
            is_for_pages: false,
        })
    }

    /// Serves pages (HTTP/1.1) instead of gRPC.
    #[must_use]
    pub fn for_pages(self) -> Self {
        Self { is_for_pages: true, ..self }
    }

    /// Accepts only callers whose certificate this authority signed, or who show this certificate itself.
    #[must_use]
    pub fn only_clients_of(mut self, authority: &[u8]) -> Self {
        self.clients = Some(Pem::given("the client authority", authority));
        self
    }

    /// Whether callers must show a certificate.
    pub const fn asks_callers(&self) -> bool {
        self.clients.is_some()
    }

    /// The configuration for rustls.
    ///
    /// # Errors
    /// [`RpcError::Tls`] for an unusable certificate or key, or for two that do not belong together.
    pub fn config(&self) -> Result<Arc<ServerConfig>, RpcError> {
        let (chain, key) = (self.certificate.own_certificates()?, self.key.key()?);
        let provider = provider();
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder
            .with_safe_default_protocol_versions()
            .map_err(|why| self.certificate.wrong(why::of(&why)))?;
        let builder = match &self.clients {
            Some(authority) => {
                builder.with_client_cert_verifier(Arc::new(ClientVerifier::new(authority, provider)?))
            }
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(chain, key).map_err(|why| self.key.wrong(why::of(&why)))?;
        config.alpn_protocols.push(if self.is_for_pages { ALPN_HTTP_1 } else { ALPN_H2 }.to_vec());
        // No session resumption: a caller that reconnects must show its certificate again, which may have
        // ended meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    /// A configuration that follows the files: they are read again when they change.
    ///
    /// # Errors
    /// As [`ServerTls::config`].
    pub fn renewed(&self) -> Result<RenewedTls, RpcError> {
        Renewed::new(self.clone()).map(RenewedTls)
    }
}

impl FromPemFiles for ServerTls {
    type Made = ServedTls;

    fn files(&mut self) -> Vec<&mut Pem> {
        [&mut self.certificate, &mut self.key].into_iter().chain(&mut self.clients).collect()
    }

    fn make(&self) -> Result<Self::Made, RpcError> {
        let all = [&self.certificate].into_iter().chain(&self.clients);
        let own = self.certificate.own_certificates()?.into_iter().next();
        Ok(ServedTls { config: self.config()?, ends: all.filter_map(ends).collect(), own })
    }
}

/// What a server's files come to.
#[derive(Clone)]
pub(crate) struct ServedTls {
    config: Arc<ServerConfig>,
    ends: Ends,
    /// The server's own certificate.
    own: Option<CertificateDer<'static>>,
}

/// Names of certificates, each with the certificate's end.
pub type Ends = Vec<(String, SystemTime)>;

/// The name of the file in messages, and when the first of its certificates expires. `None` if no expiry can
/// be read, as in an authority of X.509 version 1, which may still be trusted.
fn ends(pem: &Pem) -> Option<(String, SystemTime)> {
    let end = ending::first_end(&pem.certificates().ok()?)?;
    Some((pem.what().to_owned(), end))
}

/// A server's certificates and trusted authority, as its files hold them now.
#[derive(Debug)]
pub struct RenewedTls(Renewed<ServerTls>);

impl RenewedTls {
    /// The configuration for rustls.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.0.now().1.config
    }

    /// The ends of the certificates.
    pub fn ends(&self) -> Ends {
        self.0.now().1.ends
    }

    /// Whether the server's certificate is for this host: a name, or an address.
    pub fn is_for(&self, host: &str) -> bool {
        let own = self.0.now().1.own;
        let name = ServerName::try_from(host).ok();
        let read = own.as_ref().and_then(|own| EndEntityCert::try_from(own).ok());
        read.zip(name).is_some_and(|(own, name)| own.verify_is_valid_for_subject_name(&name).is_ok())
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("asks_callers", &self.asks_callers()).finish_non_exhaustive()
    }
}

/// The authority that a caller trusts, and the certificate that it shows. All in PEM.
#[derive(Clone)]
pub struct ClientTls {
    authority: Pem,
    server_name: Option<String>,
    identity: Option<(Pem, Pem)>,
}

impl ClientTls {
    /// Trusts servers whose certificate this authority signed, and the server whose certificate this is.
    pub fn new(authority: &[u8]) -> Self {
        Self { authority: Pem::given("the authority", authority), server_name: None, identity: None }
    }

    /// Reads the same from a file, with a certificate and key to show if the server asks for one.
    ///
    /// # Errors
    /// [`RpcError::Tls`] for a file that cannot be read.
    pub fn from_files(authority: &Path, identity: Option<(&Path, &Path)>) -> Result<Self, RpcError> {
        let shown = |(certificate, key)| -> Result<_, RpcError> {
            Ok((Pem::read("certificate", certificate)?, Pem::read("key", key)?))
        };
        Ok(Self {
            authority: Pem::read("authority", authority)?,
            server_name: None,
            identity: identity.map(shown).transpose()?,
        })
    }

    /// Shows this certificate if the server asks for one.
    #[must_use]
    pub fn showing(mut self, certificate: &[u8], key: &[u8]) -> Self {
        self.identity = Some((Pem::given("the certificate", certificate), Pem::given("its key", key)));
        self
    }

    /// Expects this name in the server's certificate instead of the name of the called host.
    #[must_use]
    pub fn expecting(mut self, server_name: impl Into<String>) -> Self {
        self.server_name = Some(server_name.into());
        self
    }

    /// The ends of the certificates that are shown or trusted.
    ///
    /// # Errors
    /// [`RpcError::Tls`] for an unusable certificate.
    pub fn ends(&self) -> Result<Ends, RpcError> {
        let shown = self.identity.iter().map(|(certificate, _)| certificate);
        let all: Vec<&Pem> = [&self.authority].into_iter().chain(shown).collect();
        all.iter().try_for_each(|pem| pem.certificates().map(drop))?;
        Ok(all.into_iter().filter_map(ends).collect())
    }

    pub(super) fn files(&mut self) -> Vec<&mut Pem> {
        let shown = self.identity.iter_mut().flat_map(|(certificate, key)| [certificate, key]);
        [&mut self.authority].into_iter().chain(shown).collect()
    }

    /// The name in the certificate that is shown.
    pub(super) fn name(&self) -> Result<Option<String>, RpcError> {
        let Some((certificate, _)) = &self.identity else { return Ok(None) };
        let chain = certificate.certificates()?;
        let own = chain.first().and_then(|own| Caller::of_certificate(own, None));
        Ok(own.and_then(|caller| caller.name().map(str::to_owned)))
    }

    /// `endpoint` with TLS.
    pub(super) fn over(&self, endpoint: Endpoint) -> Result<Endpoint, RpcError> {
        let verifier = ServerVerifier::new(&self.authority, provider())?;
        let mut config = ClientTlsConfig::new();
        if let Some(name) = &self.server_name {
            config = config.domain_name(name);
        }
        if let Some((certificate, key)) = &self.identity {
            certificate.own_certificates()?;
            key.key()?;
            config = config.identity(Identity::from_pem(certificate.text(), key.text()));
        }
        endpoint.tls_config_with_verifier(config, Arc::new(verifier)).map_err(|why| {
            let wrong = self.identity.as_ref().map_or(&self.authority, |(_, key)| key);
            wrong.wrong(why::tls_error_text(&why).unwrap_or_else(|| why.to_string()))
        })
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

fn provider() -> Arc<CryptoProvider> {
    CryptoProvider::get_default().cloned().unwrap_or_else(|| Arc::new(ring::default_provider()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_that_is_none_is_named() {
        let tls = ClientTls::from_files(Path::new("/dev/null"), None).unwrap();
        let error = tls.over(Endpoint::from_static("https://127.0.0.1:1")).unwrap_err().to_string();
        assert!(error.contains("authority /dev/null") && error.contains("holds none"), "{error}");
    }

    #[test]
    fn files_that_do_not_go_together_are_told_apart() {
        let made = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let (one, other) = (made("one"), made("other"));
        let (certificate, key) = (one.cert.pem(), one.signing_key.serialize_pem());
        let wrong = |certificate: &str, key: &str| {
            ServerTls::new(certificate.as_bytes(), key.as_bytes()).config().unwrap_err().to_string()
        };
        ServerTls::new(certificate.as_bytes(), key.as_bytes()).config().unwrap();
        assert!(wrong(&key, &key).contains("server's certificate: PEM with a certificate is needed"));
        assert!(wrong(&key, &key).contains("it holds a key"));
        assert!(wrong(&certificate, &certificate).contains("server's key: PEM with a private key is needed"));
        let others = other.signing_key.serialize_pem();
        assert!(wrong(&certificate, &others).contains("does not belong to the certificate"));
        let locked = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
        assert!(wrong(&certificate, &locked).contains("passphrase"), "{}", wrong(&certificate, &locked));
        let caller =
            ClientTls::new(certificate.as_bytes()).showing(certificate.as_bytes(), others.as_bytes());
        let why = caller.over(Endpoint::from_static("https://127.0.0.1:1")).unwrap_err().to_string();
        assert!(why.contains("does not belong to the certificate"), "{why}");
    }

    /// A certificate as `openssl x509 -req -signkey` makes it without extensions.
    #[test]
    fn a_certificate_of_version_1_is_told_as_the_certificate_that_it_is() {
        let both = include_bytes!("pem/version-1.pem");
        let why = ServerTls::new(both, both).config().unwrap_err().to_string();
        assert!(why.contains("certificate: is of X.509 version 1") && !why.contains("key"), "{why}");
        let caller = ClientTls::new(both).showing(both, both);
        let why = caller.over(Endpoint::from_static("https://127.0.0.1:1")).unwrap_err().to_string();
        assert!(why.contains("certificate: is of X.509 version 1") && !why.contains("key"), "{why}");
    }
}
