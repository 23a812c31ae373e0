//! Files that a command reads more than once: it checks them first and uses them later.
//!
//! The content of a pipe arrives only once, so it is kept for the second reading.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use sluice_system::text::{self, TextError};

/// The most bytes that are kept of one pipe.
const PIPE_BYTES_MAX: u64 = 256 << 20;

/// The content of pipes, by the numbers of their devices and inodes.
type Piped = BTreeMap<(u64, u64), Arc<[u8]>>;

static PIPED: Mutex<Piped> = Mutex::new(BTreeMap::new());

/// Reads the text of a file.
pub fn read(path: &Path) -> Result<String, TextError> {
    text::read_from(open(path)?)
}

/// Opens a file at its beginning, even a pipe that was read to its end.
pub fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    let file = File::open(path)?;
    let node = file.metadata()?;
    if node.is_file() || node.is_dir() {
        return Ok(Box::new(file));
    }
    let mut piped = PIPED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = piped.get(&(node.dev(), node.ino())).cloned();
    let bytes = if let Some(known) = known {
        known
    } else {
        let mut bytes = Vec::new();
        file.take(PIPE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > PIPE_BYTES_MAX {
            let most = PIPE_BYTES_MAX >> 20;
            return Err(io::Error::other(format!(
                "more than {most} MiB come through it: write them into a file"
            )));
        }
        let bytes = Arc::<[u8]>::from(bytes);
        piped.insert((node.dev(), node.ino()), Arc::clone(&bytes));
        bytes
    };
    Ok(Box::new(Cursor::new(bytes)))
}
