//! Pins: names in a BPF file system by which maps and links outlive the process that made them.
//!
//! The folder contains every map by name, and each link as `link-INDEX`. `layout` is written last: a folder
//! without it was left incomplete by a process that ended, and its contents are removed. A process that
//! drives the switch locks the folder.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use super::machine::check_bpf_fs;
use super::sys;
use crate::KernelError;

/// The map that describes the layout of the others.
pub(super) const LAYOUT: &str = "layout";
const LINK: &str = "link-";

/// A locked folder of pins.
#[derive(Debug)]
pub(super) struct Pins {
    path: PathBuf,
    /// Whether the folder contains the complete maps of an earlier process.
    whole: bool,
    /// Whether the folder's contents stay when this value is dropped.
    kept: bool,
    _lock: File,
}

impl Pins {
    /// Locks the folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// [`KernelError::NoBpfFs`], [`KernelError::PinsTaken`], or [`KernelError::Pins`] with the kernel's
    /// message.
    pub(super) fn open(path: &Path) -> Result<Self, KernelError> {
        check_bpf_fs(path)?;
        fs::create_dir_all(path).map_err(|why| unusable(path, "make the folder", &why))?;
        let lock = lock(path)?;
        let whole = path.join(LAYOUT).exists();
        let pins = Self { path: path.to_owned(), whole, kept: whole, _lock: lock };
        if !whole {
            pins.clear()?;
        }
        Ok(pins)
    }

    /// Removes everything: first links, which detaches the program, then maps. Returns whether there was
    /// anything.
    ///
    /// # Errors
    /// [`KernelError::PinsTaken`] while a process drives the switch, [`KernelError::Pins`] with the
    /// kernel's message.
    pub(super) fn detach(path: &Path) -> Result<bool, KernelError> {
        if !path.exists() {
            return Ok(false);
        }
        let mut pins = Self::open(path)?;
        pins.kept = false;
        Ok(pins.whole)
    }

    /// Whether the folder contains the complete maps of an earlier process.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Keeps the folder's contents when this value is dropped.
    pub(super) fn keep(&mut self) {
        self.kept = true;
    }

    /// The path of the folder of pinned maps.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The path at which an interface's link is pinned.
    pub(super) fn link(&self, index: u32) -> PathBuf {
        self.path.join(format!("{LINK}{index}"))
    }

    /// The interfaces whose links are pinned.
    pub(super) fn links(&self) -> Result<Vec<u32>, KernelError> {
        Ok(self.names()?.iter().filter_map(|name| name.strip_prefix(LINK)?.parse().ok()).collect())
    }

    /// The names of the pinned maps.
    pub(super) fn maps(&self) -> Result<Vec<String>, KernelError> {
        Ok(self.names()?.into_iter().filter(|name| !name.starts_with(LINK)).collect())
    }

    /// Detaches a link's program from its interface, and removes the pin.
    pub(super) fn remove_link(&self, index: u32) -> Result<(), KernelError> {
        let name = self.link(index);
        sys::detach(&name).map_err(|why| self.failed("end a link", &why))?;
        self.remove(&name)
    }

    fn remove(&self, name: &Path) -> Result<(), KernelError> {
        fs::remove_file(name).map_err(|why| self.failed("take a pin away", &why))
    }

    pub(super) fn failed(&self, doing: &'static str, why: &(impl ToString + ?Sized)) -> KernelError {
        unusable(&self.path, doing, why)
    }

    fn names(&self) -> Result<Vec<String>, KernelError> {
        let entries = fs::read_dir(&self.path).map_err(|why| unusable(&self.path, "look into it", &why))?;
        Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
    }

    /// Links go first: otherwise a program could stay on a link for ever with maps that no process can
    /// find.
    fn clear(&self) -> Result<(), KernelError> {
        self.links()?.into_iter().try_for_each(|index| self.remove_link(index))?;
        let mut names = self.names()?;
        names.sort_by_key(|name| name != LAYOUT);
        names.iter().try_for_each(|name| self.remove(&self.path.join(name)))
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let emptied = self.clear().and_then(|()| {
            fs::remove_dir(&self.path).map_err(|why| unusable(&self.path, "take the folder away", &why))
        });
        if let Err(why) = emptied {
            sluice_log::log!(PinsLeft, %why, "{why}");
        }
        // Removes the folder of all switches if this was the last one.
        let _ = self.path.parent().map(fs::remove_dir);
    }
}

fn lock(path: &Path) -> Result<File, KernelError> {
    let folder = File::open(path).map_err(|why| unusable(path, "open it", &why))?;
    match folder.try_lock() {
        Ok(()) => Ok(folder),
        Err(TryLockError::WouldBlock) => Err(KernelError::PinsTaken { path: path.to_owned() }),
        Err(TryLockError::Error(why)) => Err(unusable(path, "lock it", &why)),
    }
}

fn unusable(path: &Path, doing: &'static str, why: &(impl ToString + ?Sized)) -> KernelError {
    KernelError::Pins { path: path.to_owned(), doing, why: why.to_string() }
}
