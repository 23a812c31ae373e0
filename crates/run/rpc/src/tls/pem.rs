//! Certificates and keys in PEM, and errors for text that holds none.

use std::fs;
use std::path::Path;

use sluice_system::{Attempt, advice};
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use webpki::EndEntityCert;

use crate::RpcError;

/// The error for a certificate of version 1, a format from before 1996 that cannot state its purpose.
pub(super) const VERSION_1: &str = "is of X.509 version 1, which holds no addresses and no names: make one \
    of version 3 (openssl req -x509 -addext subjectAltName=…, or openssl x509 -req -extfile)";

/// Text that should hold certificates or a key, and its name in errors.
#[derive(Clone)]
pub(crate) struct Pem {
    what: String,
    text: Vec<u8>,
    /// The file that the text came from, if any.
    path: Option<Box<Path>>,
}

impl Pem {
    pub(super) fn given(what: &str, text: &[u8]) -> Self {
        Self { what: what.to_owned(), text: text.to_vec(), path: None }
    }

    pub(super) fn read(what: &str, path: &Path) -> Result<Self, RpcError> {
        let what = format!("{what} {}", path.display());
        let mut read = Self { what, text: Vec::new(), path: Some(path.into()) };
        read.read_again()?;
        Ok(read)
    }

    /// Reads the file again. Returns whether its contents changed.
    pub(super) fn read_again(&mut self) -> Result<bool, RpcError> {
        let Some(path) = &self.path else { return Ok(false) };
        let text = fs::read(path).map_err(|why| {
            let helps = advice(Attempt::Read, &why);
            self.wrong(format!("{why}; {helps}"))
        })?;
        let is_new = self.text != text;
        self.text = text;
        Ok(is_new)
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(super) fn what(&self) -> &str {
        &self.what
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The file's certificates, at least one.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, RpcError> {
        let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.text).collect();
        let certificates = read.map_err(|why| self.wrong(why.to_string()))?;
        if certificates.is_empty() {
            let found = if self.holds("PRIVATE KEY-----") { "a key" } else { "none" };
            return Err(self.wrong(format!(
                "PEM with a certificate is needed (-----BEGIN CERTIFICATE-----), and it holds {found}: give the file \
                 that openssl wrote with -out"
            )));
        }
        Ok(certificates)
    }

    /// The certificates of the process that shows them; its own comes first.
    pub(super) fn own_certificates(&self) -> Result<Vec<CertificateDer<'static>>, RpcError> {
        let certificates = self.certificates()?;
        match EndEntityCert::try_from(&certificates[0]) {
            Ok(_) => {}
            Err(webpki::Error::UnsupportedCertVersion) => return Err(self.wrong(VERSION_1)),
            Err(what) => {
                return Err(
                    self.wrong(format!("it is no certificate that can be read ({what}): make another"))
                );
            }
        }
        Ok(certificates)
    }

    pub(super) fn key(&self) -> Result<PrivateKeyDer<'static>, RpcError> {
        PrivateKeyDer::from_pem_slice(&self.text).map_err(|why| match why {
            PemError::NoItemsFound if self.holds("BEGIN ENCRYPTED PRIVATE KEY") => self.wrong(
                "the key has a passphrase, which nobody could type in: take it off with openssl pkey -in OLD -out NEW",
            ),
            PemError::NoItemsFound => self.wrong(
                "PEM with a private key is needed (-----BEGIN PRIVATE KEY-----), and it holds none: give the file that \
                 openssl wrote with -keyout",
            ),
            why => self.wrong(why.to_string()),
        })
    }

    pub(super) fn wrong(&self, why: impl Into<String>) -> RpcError {
        RpcError::Tls { what: self.what.clone(), why: why.into() }
    }

    fn holds(&self, words: &str) -> bool {
        self.text.windows(words.len()).any(|window| window == words.as_bytes())
    }
}
