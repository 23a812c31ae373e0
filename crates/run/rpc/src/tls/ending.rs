//! When certificates end.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, Error, KeyUsage};

/// How long before a certificate's end `status` and `doctor` warn.
pub const ENDS_SOON: Duration = Duration::from_hours(14 * 24);

/// A time after the end of any certificate.
const NEVER: UnixTime = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX / 2));

/// The last second in which a certificate is valid; `None` if it cannot be read.
pub fn end_of(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    let read = EndEntityCert::try_from(certificate).ok()?;
    // The verifier checks the dates first, so its error tells the end.
    let asked = read.verify_for_usage(&[], &[], &[], NEVER, KeyUsage::client_auth(), None, None);
    match asked {
        Err(Error::CertExpired { not_after, .. }) => {
            UNIX_EPOCH.checked_add(Duration::from_secs(not_after.as_secs()))
        }
        _ => None,
    }
}

/// The earliest end of several certificates.
pub(super) fn first_end(certificates: &[CertificateDer<'_>]) -> Option<SystemTime> {
    certificates.iter().filter_map(end_of).min()
}

/// A sentence about a certificate that ends soon or has ended; `None` while there is time.
pub fn end_text(end: SystemTime) -> Option<String> {
    end_text_at(end, SystemTime::now())
}

/// The sentence of [`end_text`] at the time `now`.
pub fn end_text_at(end: SystemTime, now: SystemTime) -> Option<String> {
    match end.duration_since(now) {
        Err(ago) => Some(format!("ended {} ago", span_text(ago.duration()))),
        Ok(left) => (left <= ENDS_SOON).then(|| format!("ends in {}", span_text(left))),
    }
}

/// A long time in words, such as `12 days`.
fn span_text(span: Duration) -> String {
    match span.as_secs() {
        seconds @ 0..7_200 => format!("{} min", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn a_certificate_says_when_it_ends_whoever_signed_it_and_whatever_it_is_for() {
        for year in [2_019, 2_048, 2_091] {
            let mut params = CertificateParams::new(vec!["b.example".to_owned()]).unwrap();
            params.not_before = date_time_ymd(2_018, 1, 1);
            params.not_after = date_time_ymd(year, 3, 4);
            let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            let end = end_of(made.der()).unwrap().duration_since(UNIX_EPOCH).unwrap();
            assert_eq!(end.as_secs(), params.not_after.unix_timestamp() as u64);
        }
        assert_eq!(end_of(&CertificateDer::from(vec![0x30, 0])), None);
    }

    #[test]
    fn an_end_is_told_of_two_weeks_ahead() {
        let now = SystemTime::now();
        let day = Duration::from_hours(24);
        assert_eq!(end_text(now + ENDS_SOON + day), None);
        assert_eq!(end_text(now + 13 * day).as_deref(), Some("ends in 12 days"));
        assert_eq!(end_text(now - 3 * day).as_deref(), Some("ended 3 days ago"));
        assert_eq!(end_text(now - Duration::from_secs(90)).as_deref(), Some("ended 1 min ago"));
    }
}
