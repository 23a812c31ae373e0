//! Where etcd is, and how it and this process know each other.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use thiserror::Error;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
/// How soon a dead connection is noticed.
const PING_EVERY: Duration = Duration::from_millis(250);
/// The shortest lease that etcd grants with the settings that it comes with; in seconds.
const LEASE_S_MIN: u64 = 2;

/// Where etcd is, and how it and this process know each other.
#[derive(Clone, Debug, Default)]
pub struct EtcdOptions {
    /// The URLs of its members, or their addresses.
    pub endpoints: Vec<String>,
    /// The file of the authority that signed its certificate; turns TLS on.
    pub ca: Option<PathBuf>,
    /// The files of the certificate to show, and of its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// What distinguishes this datacenter's keys from others': the plan's name.
    pub name: String,
    /// How long a leader may be silent at least.
    pub silence: Duration,
}

/// Why etcd cannot be used.
#[derive(Debug, Error)]
pub enum EtcdError {
    /// Nobody answers there, or not as etcd does.
    #[error("no etcd answers at {at} ({why}): start it, name with --etcd where it runs{hint}")]
    Silent { at: String, why: String, hint: &'static str },
    /// The options do not go together, or name a file that cannot be read.
    #[error("{0}")]
    Options(String),
    /// The system has no thread left.
    #[error("no thread for etcd: {0}; end other processes, or raise the limit")]
    Thread(io::Error),
}

impl EtcdOptions {
    /// The leader's lease, in whole seconds as etcd counts.
    pub(crate) fn lease(&self) -> Duration {
        let whole = self.silence.as_secs() + u64::from(self.silence.subsec_nanos() > 0);
        Duration::from_secs(whole.max(LEASE_S_MIN))
    }

    /// Checks what can be checked without a call.
    pub(crate) fn check(&self) -> Result<(), EtcdError> {
        let wrong = |why: &str| Err(EtcdError::Options(why.to_owned()));
        for url in &self.endpoints {
            match url.split_once("://").map(|(scheme, _)| scheme) {
                _ if url.trim().is_empty() => {
                    return wrong("--etcd has an empty address: name where etcd runs");
                }
                Some("http") if self.ca.is_some() => {
                    return wrong("--etcd-ca is for https, and --etcd says http: one of them has to go");
                }
                Some("https") if self.ca.is_none() => {
                    return wrong("https needs the authority that signed etcd's certificate (--etcd-ca)");
                }
                None | Some("http" | "https") => {}
                Some(_) => return wrong("--etcd is neither http nor https"),
            }
        }
        self.connect_options().map(|_| ()).map_err(EtcdError::Options)
    }

    /// What else may be wrong if nobody answers.
    pub(crate) const fn hint(&self) -> &'static str {
        if self.ca.is_none() {
            ", or give --etcd-ca if it wants TLS"
        } else {
            ", or give certificates that it takes"
        }
    }

    /// How long one answer may take.
    pub(crate) fn patience(&self) -> Duration {
        self.lease() / 4
    }

    /// The keys' common beginning.
    pub(crate) fn prefix(&self) -> String {
        format!("/sluice/{}/", self.name)
    }

    /// Reads the files of certificates, so that a new connection has the newest.
    pub(crate) fn connect_options(&self) -> Result<ConnectOptions, String> {
        let read = |path: &PathBuf| {
            let failed = |why| format!("{}: {why}; give a PEM file that can be read", path.display());
            std::fs::read(path).map_err(failed)
        };
        let connect = ConnectOptions::new()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_keep_alive(PING_EVERY, PING_EVERY)
            .with_require_leader(true)
            .with_timeout(self.patience());
        let Some(ca) = &self.ca else { return Ok(connect) };
        let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read(ca)?));
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        Ok(connect.with_tls(tls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_has_whole_seconds_and_at_least_what_etcd_grants() {
        let lease = |ms| EtcdOptions { silence: Duration::from_millis(ms), ..EtcdOptions::default() }.lease();
        assert_eq!([0, 1_000, 2_000, 2_001].map(lease), [2, 2, 2, 3].map(Duration::from_secs));
    }
}
