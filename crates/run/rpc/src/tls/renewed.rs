//! Values made from PEM files, made again when the files change.
//!
//! No thread watches the files. Code that connects, calls or accepts asks for the current value; at most
//! once a second this checks the files. A changed file is read once it stayed the same from one check to
//! the next, since several files are rarely written at the same moment. After [`read_anew`] (SIGHUP) it is
//! read at once. Unusable files, such as a certificate whose key is not there yet, change nothing; the log
//! says why.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::pem::Pem;
use crate::RpcError;

/// The shortest time between two checks of the files.
const LOOK_EVERY: Duration = Duration::from_secs(1);

static ASKED: AtomicU64 = AtomicU64::new(0);

/// Makes this process read all certificates again; its signal handler for SIGHUP calls this. The next value
/// is made from what the files hold then. Connections under way are not interrupted.
pub fn read_anew() {
    ASKED.fetch_add(1, Ordering::Relaxed);
}

/// The contents of PEM files that a value is made from.
pub(crate) trait FromPemFiles: Clone {
    type Made: Clone;

    /// All of them.
    fn files(&mut self) -> Vec<&mut Pem>;

    fn make(&self) -> Result<Self::Made, RpcError>;
}

/// The value, and the files that it was made from.
pub(crate) struct Renewed<F: FromPemFiles>(Mutex<State<F>>);

struct State<F: FromPemFiles> {
    of: F,
    made: F::Made,
    /// How many times the value was made again.
    version: u64,
    /// The files' stamps when the value was made, and at the last check.
    stamps: Vec<Stamp>,
    seen: Vec<Stamp>,
    looked: Instant,
    asked: u64,
    /// Why the files could not be used, as logged.
    wrong: Option<String>,
}

/// Tells whether a file has changed.
type Stamp = Option<(u64, u64, i64, i64)>;

impl<F: FromPemFiles> Renewed<F> {
    /// Makes the first value.
    ///
    /// # Errors
    /// [`RpcError::Tls`] for unusable files.
    pub(crate) fn new(mut of: F) -> Result<Self, RpcError> {
        let (made, stamps) = (of.make()?, stamps(&mut of));
        let asked = ASKED.load(Ordering::Relaxed);
        let (version, looked, wrong) = (0, Instant::now(), None);
        let seen = stamps.clone();
        Ok(Self(Mutex::new(State { of, made, version, stamps, seen, looked, asked, wrong })))
    }

    /// The current version and value.
    pub(crate) fn now(&self) -> (u64, F::Made) {
        let state = self.looked();
        (state.version, state.made.clone())
    }

    /// The current version: how often the value has changed.
    pub(crate) fn version(&self) -> u64 {
        self.looked().version
    }

    fn looked(&self) -> MutexGuard<'_, State<F>> {
        // Nothing that can panic happens under this lock.
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.look();
        state
    }
}

impl<F: FromPemFiles> State<F> {
    fn look(&mut self) {
        let asked = ASKED.load(Ordering::Relaxed);
        let is_asked = asked != self.asked;
        if !is_asked && self.looked.elapsed() < LOOK_EVERY {
            return;
        }
        (self.looked, self.asked) = (Instant::now(), asked);
        let now = stamps(&mut self.of);
        let has_rested = self.seen == now;
        self.seen.clone_from(&now);
        if !is_asked && (now == self.stamps || !has_rested) {
            return;
        }
        match self.read() {
            Ok(()) => (self.stamps, self.wrong) = (now, None),
            Err(why) => {
                let why = why.to_string();
                if self.wrong.as_ref() != Some(&why) {
                    sluice_log::log!(CertificatesUnread, why, "{why}; what was read before is used on");
                    self.wrong = Some(why);
                }
            }
        }
    }

    fn read(&mut self) -> Result<(), RpcError> {
        let mut next = self.of.clone();
        let mut is_new = false;
        for pem in next.files() {
            is_new |= pem.read_again()?;
        }
        if is_new {
            self.made = next.make()?;
            self.of = next;
            self.version += 1;
            sluice_log::log!(CertificatesRead, "certificates were read anew");
        }
        Ok(())
    }
}

fn stamps(of: &mut impl FromPemFiles) -> Vec<Stamp> {
    of.files().into_iter().map(|pem| pem.path().and_then(stamp)).collect()
}

fn stamp(path: &Path) -> Stamp {
    let found = fs::metadata(path).ok()?;
    Some((found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
}

impl<F: FromPemFiles> fmt::Debug for Renewed<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renewed").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerTls;

    #[test]
    fn files_that_do_not_go_together_change_nothing_until_they_do() {
        let folder = tempfile::tempdir().unwrap();
        let [certificate, key] = ["pem", "key"].map(|ending| folder.path().join(ending));
        let made = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
        let (before, after) = (made("before"), made("after"));
        fs::write(&certificate, before.cert.pem()).unwrap();
        fs::write(&key, before.signing_key.serialize_pem()).unwrap();
        let renewed = Renewed::new(ServerTls::from_files(&certificate, &key, None).unwrap()).unwrap();
        let first = renewed.now().0;
        fs::write(&certificate, after.cert.pem()).unwrap();
        for _ in 0..2 {
            read_anew();
            assert_eq!(renewed.version(), first, "the key is another one's");
        }
        fs::write(&key, after.signing_key.serialize_pem()).unwrap();
        read_anew();
        assert_eq!(renewed.version(), first + 1);
        read_anew();
        assert_eq!(renewed.version(), first + 1, "nothing is new");
    }
}
