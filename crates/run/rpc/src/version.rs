//! Which versions of the protocol two processes speak, and which builds they are.
//!
//! Each call and each answer says both in its headers. A version of the protocol stands for the packets and
//! the messages together. A build speaks its own version and the one before, so the processes of a rack are
//! replaced one after the other. A peer that says nothing is older than these headers, and speaks version 1.

use std::fmt;
use std::ops::RangeInclusive;

use http::{HeaderMap, HeaderValue};
use tonic::Status;

use crate::shown;

/// The versions that this build speaks: its own, and the one before.
pub const SPEAKS: RangeInclusive<u32> = 1..=2;
/// The version of this build, as in its `Cargo.toml`.
pub const BUILD: &str = env!("CARGO_PKG_VERSION");

/// The header with the versions, such as `1-2`.
const SPEAKS_HEADER: &str = "sluice-speaks";
/// The header with the build, such as `0.1.0`.
const BUILD_HEADER: &str = "sluice-build";
/// A longer name of a build is cut.
const BUILD_CHARS_MAX: usize = 32;

/// What a process says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerVersion {
    /// Its build; empty if it does not say.
    pub build: String,
    /// The oldest and the newest version of the protocol that it speaks.
    pub oldest: u32,
    pub newest: u32,
}

impl PeerVersion {
    /// This process.
    pub fn own() -> Self {
        Self { build: BUILD.to_owned(), oldest: *SPEAKS.start(), newest: *SPEAKS.end() }
    }

    /// What the headers of a call or an answer say. Versions that cannot be read are none that we speak.
    pub fn of_headers(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let build =
            shown(&text(BUILD_HEADER).unwrap_or_default().chars().take(BUILD_CHARS_MAX).collect::<String>());
        let (oldest, newest) = text(SPEAKS_HEADER).map_or((1, 1), |said| range(said).unwrap_or((0, 0)));
        Self { build, oldest, newest }
    }

    /// Writes what this process says into the headers of a call or an answer.
    pub fn put_own(headers: &mut HeaderMap) {
        let speaks = format!("{}-{}", SPEAKS.start(), SPEAKS.end());
        let speaks = HeaderValue::try_from(speaks).expect("digits and a dash are a header");
        headers.insert(SPEAKS_HEADER, speaks);
        headers.insert(BUILD_HEADER, HeaderValue::from_static(BUILD));
    }

    /// Checks that this process and the peer, which is called `who`, speak one version.
    ///
    /// # Errors
    /// A status with one line that names both and says what to do.
    pub fn check(&self, who: &str) -> Result<(), Status> {
        let (oldest, newest) = (*SPEAKS.start(), *SPEAKS.end());
        if self.oldest.max(oldest) <= self.newest.min(newest) {
            return Ok(());
        }
        let upgrade = match (self.oldest, self.newest) {
            (0, _) => format!("{who} says no versions that can be read: start it from a build of Sluice"),
            (than, _) if than > newest => format!("replace this process by a build like {who}'s"),
            _ => format!("replace {who} by a build like this one's"),
        };
        let own = Self::own();
        Err(Status::failed_precondition(format!(
            "{who} is {self}, and this is {own}: they have no version in common; {upgrade}, or go there \
             through a build between the two"
        )))
    }
}

impl fmt::Display for PeerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.build.as_str() {
            "" => f.write_str("Sluice of an unnamed build")?,
            build => write!(f, "Sluice {build}")?,
        }
        match (self.oldest, self.newest) {
            (0, _) => f.write_str(" (protocol unknown)"),
            (oldest, newest) if oldest == newest => write!(f, " (protocol {newest})"),
            (oldest, newest) => write!(f, " (protocol {oldest} to {newest})"),
        }
    }
}

/// Reads `1-2`.
fn range(text: &str) -> Option<(u32, u32)> {
    let (oldest, newest) = text.split_once('-')?;
    let (oldest, newest) = (oldest.parse().ok()?, newest.parse().ok()?);
    (1 <= oldest && oldest <= newest).then_some((oldest, newest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(speaks: &str, build: &str) -> PeerVersion {
        let mut headers = HeaderMap::new();
        headers.insert(SPEAKS_HEADER, HeaderValue::from_str(speaks).unwrap());
        headers.insert(BUILD_HEADER, HeaderValue::from_str(build).unwrap());
        PeerVersion::of_headers(&headers)
    }

    #[test]
    fn what_is_put_is_read_and_agrees_with_itself() {
        let mut headers = HeaderMap::new();
        PeerVersion::put_own(&mut headers);
        let own = PeerVersion::of_headers(&headers);
        assert_eq!(own, PeerVersion::own());
        own.check("the caller").unwrap();
    }

    #[test]
    fn a_peer_that_says_nothing_speaks_the_first_version() {
        let silent = PeerVersion::of_headers(&HeaderMap::new());
        assert_eq!((silent.oldest, silent.newest), (1, 1));
        assert_eq!(silent.check("the caller").is_ok(), SPEAKS.contains(&1));
    }

    #[test]
    fn one_version_newer_or_older_is_spoken_with_and_a_further_one_is_refused_in_one_line() {
        let newest = *SPEAKS.end();
        said(&format!("{newest}-{}", newest + 1), "0.2.0").check("the caller").unwrap();
        said(&format!("{}-{newest}", newest - 1), "0.1.0").check("the caller").unwrap();
        let far = said(&format!("{}-{}", newest + 1, newest + 2), "0.3.0").check("the caller").unwrap_err();
        let parts =
            ["the caller is Sluice 0.3.0 (protocol 3 to 4)", BUILD, "replace this process by a build like"];
        assert!(parts.iter().all(|part| far.message().contains(part)), "{far}");
        assert!(!far.message().contains('\n'));
    }

    #[test]
    fn versions_that_make_no_sense_are_refused_and_a_builds_name_cannot_fill_a_screen() {
        for speaks in ["", "2", "2-1", "0-2", "a-b", "1-2-3", "-1-2", "1-99999999999"] {
            let why = said(speaks, "0.1.0").check("the caller").unwrap_err();
            assert!(why.message().contains("no versions that can be read"), "{speaks}: {why}");
        }
        assert!(said("1-2", &"x".repeat(5_000)).build.len() <= 2 * BUILD_CHARS_MAX);
    }
}
