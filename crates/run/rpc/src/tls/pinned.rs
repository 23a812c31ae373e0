//! Which peers a trusted certificate proves: those that the authority signed for, and the holder of a
//! certificate that was itself given as the authority.
//!
//! A single `openssl req -x509` makes a certificate that signs itself and may sign others. Operators show
//! this certificate and also give it as the authority. webpki refuses that (`CaUsedAsEndEntity`), since an
//! authority should not serve. This module accepts it if the certificate is, byte for byte, one of those
//! given, and webpki finds nothing else wrong with it. webpki decides everything else.

use std::sync::Arc;

use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::crypto::CryptoProvider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};

use super::pem::Pem;
use crate::RpcError;

/// Verifies a server's certificate.
#[derive(Debug)]
pub(super) struct ServerVerifier {
    given: Vec<CertificateDer<'static>>,
    signed: Arc<WebPkiServerVerifier>,
}

impl ServerVerifier {
    pub(super) fn new(authority: &Pem, provider: Arc<CryptoProvider>) -> Result<Self, RpcError> {
        let (given, roots) = roots(authority)?;
        let signed = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build();
        Ok(Self { given, signed: signed.map_err(|why| authority.wrong(why.to_string()))? })
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.signed.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(why))
                if is_authority_as_end(&why) && self.given.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// Verifies the certificate of a caller that shows one. A caller without a certificate reaches the gate,
/// which tells it why it is refused.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    given: Vec<CertificateDer<'static>>,
    signed: Arc<dyn ClientCertVerifier>,
}

impl ClientVerifier {
    pub(super) fn new(authority: &Pem, provider: Arc<CryptoProvider>) -> Result<Self, RpcError> {
        let (given, roots) = roots(authority)?;
        let signed = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
        Ok(Self { given, signed: signed.map_err(|why| authority.wrong(why.to_string()))? })
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.signed.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.signed.verify_client_cert(end_entity, intermediates, now) {
            Err(Error::InvalidCertificate(why))
                if is_authority_as_end(&why) && self.given.contains(end_entity) =>
            {
                Ok(ClientCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signed.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signed.supported_verify_schemes()
    }
}

/// The certificates of a file, and the same as webpki's trust anchors.
fn roots(authority: &Pem) -> Result<(Vec<CertificateDer<'static>>, RootCertStore), RpcError> {
    let given = authority.certificates()?;
    let mut roots = RootCertStore::empty();
    for certificate in &given {
        roots.add(certificate.clone()).map_err(|why| authority.wrong(why.to_string()))?;
    }
    Ok((given, roots))
}

/// Whether the only fault of a certificate is that an authority's certificate serves. webpki checks the
/// dates before.
pub(super) fn is_authority_as_end(error: &CertificateError) -> bool {
    let CertificateError::Other(other) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}
