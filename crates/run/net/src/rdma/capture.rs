//! Writes what a server received and sent to a file for tshark. Frames are as the kernel builds them,
//! except that the Ethernet addresses, which are not known here, are zero.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path as FilePath, PathBuf};

use sluice_wire::Nanos;
use sluice_wire::pcap;
use sluice_wire::roce::{Link, Path, encode_frame, frame_len};

use crate::NetError;

/// A capture file that is being written.
#[derive(Debug)]
pub struct Capture {
    path: PathBuf,
    file: BufWriter<File>,
    frame: Vec<u8>,
}

impl Capture {
    /// Creates the file, or empties it.
    ///
    /// # Errors
    /// [`NetError::Capture`] if it cannot be written.
    pub fn create(path: &FilePath) -> Result<Self, NetError> {
        let unusable = |why| NetError::Capture { path: path.to_owned(), why };
        let mut file = BufWriter::new(File::create(path).map_err(unusable)?);
        file.write_all(&pcap::FILE_HEADER).map_err(unusable)?;
        Ok(Self { path: path.to_owned(), file, frame: Vec::new() })
    }

    /// Passes the buffered frames to the kernel, so that they outlive this process.
    ///
    /// # Errors
    /// [`NetError::Capture`] if it cannot be written.
    pub fn flush(&mut self) -> Result<(), NetError> {
        self.file.flush().map_err(|why| NetError::Capture { path: self.path.clone(), why })
    }

    /// Adds a datagram that was seen `at` this time since 1970.
    ///
    /// # Errors
    /// [`NetError::Capture`] if it cannot be written.
    pub fn record(&mut self, at: Nanos, path: &Path, datagram: &[u8]) -> Result<(), NetError> {
        self.frame.resize(frame_len(path, datagram.len()), 0);
        // A datagram always fits into a frame.
        let Ok(length) = encode_frame(&Link::default(), path, datagram, &mut self.frame) else {
            return Ok(());
        };
        let header = pcap::record_header(at, length as u32);
        let written = self.file.write_all(&header).and_then(|()| self.file.write_all(&self.frame[..length]));
        written.map_err(|why| NetError::Capture { path: self.path.clone(), why })
    }
}
