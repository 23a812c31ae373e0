//! Memory shared by a server's process and its workers: a file that each of them maps.
//!
//! One process writes while others read. All access is by atomic words, so a reader finds each word old or
//! new, never a mixture. Ids and checksums in the data tell whether words belong together. Maps of programs
//! in the kernel are accessed in the same way ([`SharedMemory::of_map`]). The file keeps its length as long
//! as it is mapped. Put it into a folder in memory (`/dev/shm`, or a state folder on tmpfs); otherwise the
//! kernel writes it to disk from time to time.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::NetError;

const WORD: usize = size_of::<u64>();

/// A mapped file.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<AtomicU64>,
    bytes: usize,
}

// SAFETY: `start` points to atomic words that stay mapped until the drop.
unsafe impl Send for SharedMemory {}
// SAFETY: as above; all access goes through shared references to the atomic words.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// Creates the file from zeros, in whole words, and maps it. An existing file is replaced; processes
    /// that mapped it keep the old one.
    ///
    /// # Errors
    /// [`NetError::Memory`] if the file cannot be created or mapped.
    pub fn create(path: &Path, bytes: usize) -> Result<Self, NetError> {
        let unusable = |doing, why| NetError::Memory { path: path.to_owned(), doing, why };
        match std::fs::remove_file(path) {
            Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(unusable("replace it", why)),
            _ => {}
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let file = file.map_err(|why| unusable("make it", why))?;
        let bytes = bytes.next_multiple_of(WORD);
        reserve(&file, bytes).map_err(|why| unusable("make room in it", why))?;
        Self::map(file.as_fd(), bytes).map_err(|why| unusable("map it", why))
    }

    /// Maps the values of an array map, which programs in the kernel change concurrently.
    ///
    /// # Errors
    /// The kernel's reason, such as a length that differs from the map's.
    pub fn of_map(map: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        Self::map(map, bytes.next_multiple_of(WORD))
    }

    /// Maps a file that another process created.
    ///
    /// # Errors
    /// [`NetError::Memory`] if the file does not exist, does not consist of whole words, or cannot be
    /// mapped.
    pub fn open(path: &Path) -> Result<Self, NetError> {
        let unusable = |doing, why| NetError::Memory { path: path.to_owned(), doing, why };
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.map_err(|why| unusable("open it", why))?;
        let bytes = file.metadata().map_err(|why| unusable("measure it", why))?.len();
        let whole = usize::try_from(bytes).ok().filter(|bytes| bytes.is_multiple_of(WORD));
        let bytes = whole.ok_or_else(|| unusable("map it", io::ErrorKind::InvalidData.into()))?;
        Self::map(file.as_fd(), bytes).map_err(|why| unusable("map it", why))
    }

    fn map(file: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_POPULATE);
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced; `file` is open.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// The length in bytes, a multiple of the word size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies `bytes` to `offset`. Only one process may write at a time.
    ///
    /// # Panics
    /// If the bytes do not fit.
    pub fn write(&self, offset: usize, bytes: &[u8]) {
        let words = self.words_of(offset, bytes.len());
        let within = offset % WORD;
        let (head, rest) = bytes.split_at(((WORD - within) % WORD).min(bytes.len()));
        let words = match words.split_first() {
            Some((first, behind)) if within != 0 => {
                change(first, within, head);
                behind
            }
            _ => words,
        };
        let (whole, tail) = rest.as_chunks::<WORD>();
        for (word, bytes) in words.iter().zip(whole) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        if let Some(last) = words.get(whole.len()) {
            change(last, 0, tail);
        }
    }

    /// Fills `out` with the bytes at `offset`.
    ///
    /// # Panics
    /// If there are not enough bytes.
    pub fn read(&self, offset: usize, mut out: &mut [u8]) {
        let mut within = offset % WORD;
        for word in self.words_of(offset, out.len()) {
            let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
            let taken = (WORD - within).min(out.len());
            let (place, behind) = out.split_at_mut(taken);
            place.copy_from_slice(&bytes[within..within + taken]);
            (out, within) = (behind, 0);
        }
    }

    /// All words, for callers that need a memory order between words.
    pub fn words(&self) -> &[AtomicU64] {
        self.words_of(0, self.bytes)
    }

    /// The words that these bytes touch.
    fn words_of(&self, offset: usize, bytes: usize) -> &[AtomicU64] {
        let end = offset.checked_add(bytes).filter(|end| *end <= self.bytes);
        let end = end.unwrap_or_else(|| panic!("{bytes} bytes at {offset} of {}", self.bytes));
        // SAFETY: `start` is mapped for `bytes` bytes, which are whole words, until the drop, and is
        // page-aligned; every value is a valid word. Other processes change the words only atomically.
        let words = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes / WORD) };
        if bytes == 0 { &[] } else { &words[offset / WORD..end.div_ceil(WORD)] }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no reference to it is left.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Sets the file's length and reserves its memory: a write to a mapped page without memory would end the
/// process.
fn reserve(file: &File, bytes: usize) -> io::Result<()> {
    let length = libc::off_t::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: a call without pointers; `file` is open.
    match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, length) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Replaces some of a word's bytes.
fn change(word: &AtomicU64, at: usize, bytes: &[u8]) {
    let mut all = word.load(Ordering::Relaxed).to_ne_bytes();
    all[at..at + bytes.len()].copy_from_slice(bytes);
    word.store(u64::from_ne_bytes(all), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_anywhere_is_read_there_and_nothing_else_changes() {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join("memory");
        let written = SharedMemory::create(&file, 61).expect("there is room");
        let read = SharedMemory::open(&file).expect("it was just made");
        assert_eq!((written.bytes(), read.bytes()), (64, 64));
        let mut expected = [0; 64];
        for offset in 0..64 {
            for length in 0..=64 - offset {
                let bytes: Vec<u8> = (0..length).map(|at| (offset * 31 + length * 7 + at) as u8).collect();
                written.write(offset, &bytes);
                expected[offset..offset + length].copy_from_slice(&bytes);
                let mut found = [0; 64];
                read.read(0, &mut found);
                assert_eq!(found, expected, "{length} bytes at {offset}");
                let mut part = vec![0; length];
                read.read(offset, &mut part);
                assert_eq!(part, bytes);
            }
        }
    }

    #[test]
    #[should_panic(expected = "8 bytes at 57 of 64")]
    fn nothing_is_written_past_the_end() {
        let folder = tempfile::tempdir().expect("there is room");
        let memory = SharedMemory::create(&folder.path().join("memory"), 64).expect("there is room");
        memory.write(57, &[0; 8]);
    }

    #[test]
    fn memory_that_no_file_system_has_room_for_is_an_error_before_anything_is_written() {
        let folder = tempfile::tempdir().expect("there is room");
        let file = folder.path().join("memory");
        let full = SharedMemory::create(&file, 1 << 52).expect_err("four petabytes");
        assert!(full.to_string().contains("cannot make room in it"), "{full}");
    }

    #[test]
    fn memory_that_cannot_be_had_is_an_error_that_names_the_file() {
        let folder = tempfile::tempdir().expect("there is room");
        let missing = SharedMemory::open(&folder.path().join("none")).expect_err("nobody made it");
        assert!(missing.to_string().contains("none"), "{missing}");
    }
}
