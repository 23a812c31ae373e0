//! Folders of racks in shared memory. A rack removes its folder at its end. A killed rack cannot; `doctor`
//! finds its folder, and the next start removes it.
//!
//! The process that runs a rack locks its folder, and the kernel releases the lock when the process ends.
//! So an unlocked folder of this user is a leftover.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::fail::{Failure, Outcome};
use crate::print;

/// A file system in memory, if the machine has one.
pub const IN_MEMORY: &str = "/dev/shm";

/// The prefix of racks' folders; the rack's number follows.
const NAME: &str = "sluice-";
const DIGITS: usize = 16;
/// The prefix of live sweeps' folders; a random number follows.
const LIVE_NAME: &str = "sluice-live-";

/// The name of the folder of the rack with this number.
pub fn folder_name(number: u64) -> String {
    format!("{NAME}{number:0DIGITS$x}")
}

/// The name of the folder of a live sweep with this number; the rack is a single process.
pub fn live_folder_name(number: u64) -> String {
    format!("{LIVE_NAME}{number:0DIGITS$x}")
}

/// A folder that this process has locked; dropping it removes the folder.
#[derive(Debug)]
pub struct HeldMemory {
    path: PathBuf,
    /// The lock; `None` if folders cannot be locked.
    _folder: Option<File>,
}

impl HeldMemory {
    /// Creates and locks a folder that only this user can read, after removing the leftovers of dead racks.
    pub fn take(path: PathBuf) -> Outcome<Self> {
        for left in leftovers(Path::new(IN_MEMORY)) {
            if left.remove().is_ok() {
                print::to_stderr(format_args!("removed {left}"));
            }
        }
        let failed = |why: io::Error| {
            let path = path.display();
            Failure::bad_input(format!("shared memory {path} cannot be made: {why}; remove it, or make room"))
        };
        loop {
            DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed)?;
            let Ok(folder) = File::open(&path) else { return Ok(Self { path, _folder: None }) };
            let is_held = folder.lock().is_ok();
            // Another start may have taken the folder for a leftover and removed it just now.
            if !is_held || is_same(&folder, &path) {
                return Ok(Self { path, _folder: is_held.then_some(folder) });
            }
        }
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        // A folder that cannot be removed is found again by the next start.
        fs::remove_dir_all(&self.path).ok();
    }
}

/// A folder that a dead rack left.
#[derive(Debug)]
pub struct Leftover {
    path: PathBuf,
    bytes: u64,
    _held: File,
}

impl Leftover {
    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn remove(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)
    }
}

impl std::fmt::Display for Leftover {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = self.bytes as f64 / f64::from(1 << 20);
        write!(f, "{}, {mib:.1} MiB of shared memory that a rack left when it died", self.path.display())
    }
}

/// Leftovers of this user's dead racks in `memory`; each is locked until it is dropped.
pub fn leftovers(memory: &Path) -> Vec<Leftover> {
    let entries = fs::read_dir(memory).into_iter().flatten().flatten();
    let mut left: Vec<Leftover> = entries.filter_map(|entry| left_over(&entry)).collect();
    left.sort_by(|one, other| one.path.cmp(&other.path));
    left
}

fn left_over(entry: &fs::DirEntry) -> Option<Leftover> {
    let (path, found) = (entry.path(), entry.metadata().ok()?);
    let is_ours = found.is_dir() && found.uid() == geteuid().as_raw();
    if !is_ours || !is_a_racks(entry.file_name().to_str()?) {
        return None;
    }
    let held = File::open(&path).ok()?;
    held.try_lock().ok()?;
    Some(Leftover { bytes: bytes_in(&path), path, _held: held })
}

/// Folders with other names are not ours, such as one that the user gave to a server.
fn is_a_racks(name: &str) -> bool {
    let is_number = |text: &str| text.len() == DIGITS && text.chars().all(|digit| digit.is_ascii_hexdigit());
    name.strip_prefix(LIVE_NAME).or_else(|| name.strip_prefix(NAME)).is_some_and(is_number)
}

fn is_same(folder: &File, path: &Path) -> bool {
    let id = |found: io::Result<fs::Metadata>| found.map(|found| (found.dev(), found.ino())).ok();
    id(folder.metadata()) == id(fs::metadata(path))
}

fn bytes_in(folder: &Path) -> u64 {
    let of = |entry: fs::DirEntry| {
        let found = entry.metadata().ok()?;
        Some(if found.is_dir() { bytes_in(&entry.path()) } else { found.blocks() * 512 })
    };
    fs::read_dir(folder).into_iter().flatten().flatten().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_left_over_and_what_is_not_a_racks_is_left_alone() {
        let memory = tempfile::tempdir().expect("a folder");
        let at = |name: &str| memory.path().join(name);
        let (dead, swept, alive) = (folder_name(7), live_folder_name(12), folder_name(u64::MAX));
        for name in [&*dead, &*swept, "sluice-live-12", "sluice-mine", "sluice", "sluice-live-", "other"] {
            fs::create_dir(at(name)).expect("made");
        }
        fs::write(at(&dead).join("ring-0"), [1; 8_192]).expect("there is room");
        fs::write(at("sluice-0000000000000001"), "a file").expect("there is room");
        let held = HeldMemory::take(at(&alive)).expect("nobody has it");
        assert_eq!(
            fs::metadata(held.path()).expect("a folder").mode() & 0o777,
            0o700,
            "others read no tasks"
        );
        let left = leftovers(memory.path());
        let paths: Vec<_> = left.iter().map(|left| left.path.clone()).collect();
        assert_eq!(paths, [at(&dead), at(&swept)]);
        assert!(left[0].bytes >= 8_192, "{left:?}");
        assert!(leftovers(memory.path()).is_empty(), "they are held by whoever found them");
        left[0].remove().expect("it is ours");
        drop(left);
        drop(held);
        assert!(!at(&dead).exists() && !at(&alive).exists() && at("sluice-mine").exists());
    }
}
