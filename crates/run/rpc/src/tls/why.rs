//! Why a TLS connection failed: a sentence for each cause, with what to do next.

use std::error::Error;
use std::io;

use tokio_rustls::rustls::{self, AlertDescription, CertificateError};

use super::pem::VERSION_1;
use super::pinned::is_authority_as_end;

const DAY_S: u64 = 24 * 60 * 60;
/// How rustls describes an alert after the handshake. Only these words get through HTTP/2.
const ALERT: &str = "received fatal alert: ";
/// How HTTP/2 describes the first bytes of a server that speaks TLS.
const TLS_AS_HTTP: &str = "frame with invalid size";

/// A sentence about the TLS error in `error`; `None` if there is none.
pub(crate) fn tls_error_text(error: &(dyn Error + 'static)) -> Option<String> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(why) = as_rustls(error) {
            return Some(of(why));
        }
        if error.source().is_none() {
            return of_words(&error.to_string());
        }
        next = error.source();
    }
    None
}

/// A sentence about a TLS error.
pub(super) fn of(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => certificate(why, "--ca"),
        rustls::Error::AlertReceived(alert) => of_alert(&format!("{alert:?}")),
        rustls::Error::InvalidMessage(_) => {
            "it does not speak TLS: start it with --tls, or call it without --ca".to_owned()
        }
        rustls::Error::InconsistentKeys(_) => {
            "the key does not belong to the certificate: give the two that were made together".to_owned()
        }
        rustls::Error::NoCertificatesPresented => "it shows no certificate".to_owned(),
        other => format!("TLS failed: {other}"),
    }
}

/// A sentence about a TLS error with a service that is not a rack's. `authority` is the flag that names whom
/// to trust, `identity` the one that names what is shown.
pub fn of_other_service(error: &rustls::Error, authority: &str, identity: &str) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => certificate(why, authority),
        rustls::Error::AlertReceived(AlertDescription::CertificateRequired) => {
            format!("it asks for a certificate: give yours, and its key, with {identity}")
        }
        rustls::Error::AlertReceived(alert) => {
            format!("it ended the TLS handshake ({alert:?}): its log says why")
        }
        rustls::Error::InvalidMessage(_) => {
            "it does not speak TLS: start it with TLS, or write its address with http://".to_owned()
        }
        other => format!("TLS failed: {other}"),
    }
}

/// A sentence about a TLS error with a caller.
pub fn of_caller(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(why) => certificate(why, "--client-ca"),
        rustls::Error::AlertReceived(alert) => {
            format!("it does not go on with this server's certificate ({alert:?})")
        }
        rustls::Error::InvalidMessage(_) => "it does not speak TLS".to_owned(),
        other => format!("TLS failed: {other}"),
    }
}

/// The TLS error that this error is or contains.
pub fn as_rustls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let held = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    error.downcast_ref().or_else(|| held?.downcast_ref())
}

fn certificate(error: &CertificateError, authority: &str) -> String {
    match error {
        // `BadSignature` comes if another authority has the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => format!(
            "its certificate is not signed by the authority that was given ({authority}): give the file of the one that \
             signed it, or of the certificate itself if it signed itself"
        ),
        CertificateError::NotValidForNameContext { expected, presented } if presented.is_empty() => {
            let called = expected.to_str();
            format!(
                "its certificate holds no address (no subjectAltName), so not {called} either: make one with -addext \
                 subjectAltName=IP:{called}, or DNS: for a name"
            )
        }
        CertificateError::NotValidForNameContext { expected, presented } => format!(
            "its certificate is for {}, not for {}: call it by what it is for, or make one with -addext subjectAltName=",
            presented.iter().map(|name| bare(name)).collect::<Vec<_>>().join(" and "),
            expected.to_str()
        ),
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / DAY_S;
            format!("its certificate expired {days} days ago: make a new one, or set the clock right")
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let days = not_before.as_secs().saturating_sub(time.as_secs()) / DAY_S;
            format!("its certificate begins to be valid in {days} days: set the clocks right")
        }
        CertificateError::Expired => "its certificate has expired: make a new one".to_owned(),
        CertificateError::Other(other) if is_of_version_1(other) => format!("its certificate {VERSION_1}"),
        CertificateError::Other(_) if is_authority_as_end(error) => format!(
            "its certificate is an authority's (CA:TRUE), and not the one that was given ({authority}): give that very \
             file, or let the authority sign a certificate for it"
        ),
        CertificateError::InvalidPurposeContext { .. } | CertificateError::InvalidPurpose => {
            "its certificate is for another purpose (extendedKeyUsage): make one with serverAuth for servers and \
             clientAuth for callers, or without that extension"
                .to_owned()
        }
        other => format!("its certificate cannot be used ({other}): make another"),
    }
}

fn is_of_version_1(error: &rustls::OtherError) -> bool {
    matches!(error.0.downcast_ref(), Some(webpki::Error::UnsupportedCertVersion))
}

/// The text inside `DnsName("…")` or `IpAddress(…)`.
fn bare(name: &str) -> &str {
    let inner = name.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or(name);
    inner.trim_matches('"')
}

/// What the peer objects to in our certificate, by the alert's name.
fn of_alert(alert: &str) -> String {
    match alert {
        "CertificateRequired" => {
            "it asks for a certificate: give yours, and its key, with --identity".to_owned()
        }
        // `DecryptError` comes if another authority has the same name.
        "UnknownCA" | "DecryptError" => {
            "it does not know who signed the certificate that was shown (--identity): have it signed by the authority \
             that it was given with --client-ca"
                .to_owned()
        }
        "CertificateExpired" => {
            "the certificate that was shown (--identity) has expired: make a new one".to_owned()
        }
        "BadCertificate" | "CertificateUnknown" | "UnsupportedCertificate" | "CertificateRevoked" => {
            "it does not accept the certificate that was shown (--identity): its log says why".to_owned()
        }
        other => format!("it ended the TLS handshake ({other}): its log says why"),
    }
}

/// Handles errors of which only the text is left.
fn of_words(words: &str) -> Option<String> {
    if let Some((_, alert)) = words.split_once(ALERT) {
        let name: String = alert.chars().take_while(char::is_ascii_alphanumeric).collect();
        return Some(of_alert(&name));
    }
    words
        .contains(TLS_AS_HTTP)
        .then(|| "it speaks TLS: give the authority of its certificate with --ca".to_owned())
}

/// Whether a handshake failed because of the caller's certificate.
pub fn is_of_certificate(error: &rustls::Error) -> bool {
    matches!(error, rustls::Error::InvalidCertificate(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_told_also_where_their_words_are_all_that_is_left() {
        for (alert, next) in [
            (AlertDescription::CertificateRequired, "--identity"),
            (AlertDescription::UnknownCA, "--client-ca"),
            (AlertDescription::CertificateExpired, "expired"),
            (AlertDescription::BadCertificate, "its log says why"),
        ] {
            let direct = rustls::Error::AlertReceived(alert);
            assert!(of(&direct).contains(next), "{alert:?}: {}", of(&direct));
            let words = io::Error::other(format!("connection error: {direct}"));
            assert_eq!(tls_error_text(&words).as_deref(), Some(&*of(&direct)));
        }
    }

    #[test]
    fn an_error_of_tls_is_found_inside_one_of_the_system() {
        let inner = rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer);
        let why = tls_error_text(&io::Error::new(io::ErrorKind::InvalidData, inner)).unwrap();
        assert!(why.contains("not signed by the authority"), "{why}");
        assert_eq!(tls_error_text(&io::Error::from(io::ErrorKind::ConnectionRefused)), None);
    }
}
