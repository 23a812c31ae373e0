//! A caller's certificates for rustls itself: for a service of others over HTTP/1.1, without tonic.

use std::sync::Arc;

use tokio_rustls::rustls::ClientConfig;

use super::pinned::ServerVerifier;
use super::{ALPN_HTTP_1, ClientTls, FromPemFiles, Pem, Renewed, provider, why};
use crate::RpcError;

/// The authority that a caller trusts and the certificate that it shows, as their files hold them now.
#[derive(Debug)]
pub struct CallerTls(Renewed<ClientTls>);

impl CallerTls {
    /// The configuration for rustls.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.0.now().1
    }
}

impl ClientTls {
    /// A configuration that follows the files: they are read again when they change.
    ///
    /// # Errors
    /// [`RpcError::Tls`] for an unusable certificate or key, or for two that do not belong together.
    pub fn renewed(&self) -> Result<CallerTls, RpcError> {
        Renewed::new(self.clone()).map(CallerTls)
    }
}

impl FromPemFiles for ClientTls {
    type Made = Arc<ClientConfig>;

    fn files(&mut self) -> Vec<&mut Pem> {
        Self::files(self)
    }

    fn make(&self) -> Result<Self::Made, RpcError> {
        let wrong = |why| self.authority.wrong(why::of(&why));
        let builder = ClientConfig::builder_with_provider(provider());
        let builder = builder.with_safe_default_protocol_versions().map_err(wrong)?;
        let verifier = ServerVerifier::new(&self.authority, provider())?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some((certificate, key)) => {
                let (chain, private) = (certificate.own_certificates()?, key.key()?);
                builder.with_client_auth_cert(chain, private).map_err(|why| key.wrong(why::of(&why)))?
            }
        };
        config.alpn_protocols.push(ALPN_HTTP_1.to_vec());
        Ok(Arc::new(config))
    }
}
