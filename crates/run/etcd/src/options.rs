//! Where etcd is, and how it and this process know each other.

use std::io;
use std::path::{Path, PathBuf};
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
    /// The user of etcd to log in as, and the file whose first line is the password.
    pub user: Option<(String, PathBuf)>,
    /// What distinguishes this datacenter's keys from others': the plan's name.
    pub name: String,
    /// How long a leader may be silent at least.
    pub silence: Duration,
}

/// Why etcd cannot be used.
#[derive(Debug, Error)]
pub enum EtcdError {
    /// Nobody answers there, or not as etcd does, or etcd refuses.
    #[error("etcd at {at} does not answer as it should ({why}): {next}")]
    Unusable { at: String, why: String, next: String },
    /// The options do not go together, or name a file that cannot be read.
    #[error("{0}")]
    Options(String),
    /// The system has no thread left.
    #[error("no thread for etcd: {0}; end other processes, or raise the limit")]
    Thread(io::Error),
}

impl EtcdError {
    /// Whether the caller's input is at fault. An etcd that does not answer yet may do so later, so that
    /// starting again helps.
    pub const fn is_bad_input(&self) -> bool {
        matches!(self, Self::Options(_))
    }
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

    /// What to do about an etcd that does not answer as it should, by its reason.
    pub(crate) fn next_step(&self, why: &str) -> String {
        let is_about = |words: &[&str]| words.iter().any(|word| why.contains(word));
        if is_about(&["user name is empty", "authentication failed", "invalid auth token"]) {
            return "give --etcd-user a user of etcd, and --etcd-password the file of its password"
                .to_owned();
        }
        if is_about(&["permission denied"]) {
            return format!("let etcd's user read and write below {}", self.prefix());
        }
        if self.user.is_some() && is_about(&["authentication is not enabled"]) {
            return "leave --etcd-user out, or turn etcd's authentication on".to_owned();
        }
        let tls = if self.ca.is_none() {
            "give --etcd-ca if it wants TLS"
        } else {
            "give certificates that it takes"
        };
        format!("start it, name with --etcd where it runs, or {tls}")
    }

    /// How long one answer may take.
    pub(crate) fn patience(&self) -> Duration {
        self.lease() / 4
    }

    /// The keys' common beginning.
    pub(crate) fn prefix(&self) -> String {
        format!("/sluice/{}/", self.name)
    }

    /// Reads the files of certificates and password, so that a new connection has the newest.
    pub(crate) fn connect_options(&self) -> Result<ConnectOptions, String> {
        let read = |path: &PathBuf| {
            let failed = |why| format!("{}: {why}; give a PEM file that can be read", path.display());
            std::fs::read(path).map_err(failed)
        };
        let mut connect = ConnectOptions::new()
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_keep_alive(PING_EVERY, PING_EVERY)
            .with_require_leader(true)
            .with_timeout(self.patience());
        if let Some((name, file)) = &self.user {
            connect = connect.with_user(name, password(file)?);
        }
        let Some(ca) = &self.ca else { return Ok(connect) };
        let mut tls = TlsOptions::new().ca_certificate(Certificate::from_pem(read(ca)?));
        if let Some((certificate, key)) = &self.identity {
            tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
        }
        Ok(connect.with_tls(tls))
    }
}

/// The first line of a file that holds a password.
fn password(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|why| format!("{shown}: {why}; give a file whose first line is the password"))?;
    // Some editors begin a file with a mark.
    match text.trim_start_matches('\u{feff}').lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(format!("{shown}: its first line is empty; write the password there")),
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

    #[test]
    fn a_password_is_the_first_line_whatever_ends_it_and_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("password");
        let read = |text: &[u8]| {
            std::fs::write(&file, text).expect("written");
            password(&file)
        };
        let passwords = [&b"a:$ b"[..], b"a:$ b\n", b"a:$ b\r\nmore", b"\xef\xbb\xbfa:$ b\n"].map(read);
        assert_eq!(passwords, [(); 4].map(|()| Ok("a:$ b".to_owned())));
        let wrong = [(&b""[..], "empty"), (b"\nsecret", "empty"), (b"\xff", "UTF-8")];
        for (text, part) in wrong {
            assert!(read(text).is_err_and(|why| why.contains(part)), "{part}");
        }
        std::fs::remove_file(&file).expect("removed");
        assert!(password(&file).is_err_and(|why| why.contains("No such file")));
    }
}
