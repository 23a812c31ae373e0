//! Frames into and out of the switch, through two pipes.
//!
//! BMv2 can read a link's frames from a capture file and write those that leave to another. Here both files
//! are named pipes, so a frame is passed as soon as it is written, and no link and no privilege is needed.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use sluice_wire::Nanos;
use sluice_wire::pcap::{FILE_HEADER, record_header};

use crate::error::Bmv2Error;

/// How long a frame may take through the switch.
const PATIENCE: Duration = Duration::from_secs(30);
const RECORD_BYTES: usize = 16;

/// The packet in a frame, as far as the headers before it are as they should be.
pub(crate) fn packet_in(frame: &[u8]) -> &[u8] {
    let ip = if frame.get(12..14) == Some(&[0x86, 0xdd]) { 40 } else { 20 };
    frame.get(14 + ip + 8..).unwrap_or_default()
}

/// The two pipes of a link.
#[derive(Debug)]
pub(crate) struct Frames {
    into: File,
    out: File,
    /// What was read and not yet taken apart.
    unread: Vec<u8>,
    /// Whether the capture's own header was read.
    begun: bool,
}

impl Frames {
    /// Makes the pipes of the link `name` in a folder.
    pub(crate) fn new(folder: &Path, name: &str) -> Result<Self, Bmv2Error> {
        let pipe = |end: &str| -> Result<(PathBuf, File), Bmv2Error> {
            let path = folder.join(format!("{name}_{end}.pcap"));
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
                .map_err(|why| Bmv2Error::system("make a pipe")(why.into()))?;
            // Open for both, so that opening waits for nobody.
            let file = OpenOptions::new().read(true).write(true).open(&path);
            Ok((path, file.map_err(Bmv2Error::system("open a pipe"))?))
        };
        let ((_, mut into), (_, out)) = (pipe("in")?, pipe("out")?);
        into.write_all(&FILE_HEADER).map_err(Bmv2Error::system("write to BMv2's pipe"))?;
        Ok(Self { into, out, unread: Vec::new(), begun: false })
    }

    /// Gives a frame to the switch.
    pub(crate) fn send(&mut self, frame: &[u8]) -> Result<(), Bmv2Error> {
        let record = [&record_header(Nanos(0), frame.len() as u32), frame].concat();
        self.into.write_all(&record).map_err(Bmv2Error::system("write to BMv2's pipe"))
    }

    /// The next frame that leaves the switch.
    pub(crate) fn receive(&mut self) -> Result<Vec<u8>, Bmv2Error> {
        loop {
            if !self.begun && self.unread.len() >= FILE_HEADER.len() {
                self.unread.drain(..FILE_HEADER.len());
                self.begun = true;
            }
            if self.begun
                && let Some(frame) = self.take()
            {
                return Ok(frame);
            }
            self.read()?;
        }
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        let record: [u8; RECORD_BYTES] = *self.unread.first_chunk()?;
        let length = u32::from_ne_bytes([record[8], record[9], record[10], record[11]]) as usize;
        let end = RECORD_BYTES + length;
        let frame = self.unread.get(RECORD_BYTES..end)?.to_vec();
        self.unread.drain(..end);
        Some(frame)
    }

    fn read(&mut self) -> Result<(), Bmv2Error> {
        let waits = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        let ready = poll(&mut [PollFd::new(&self.out, PollFlags::IN)], Some(&waits))
            .map_err(|why| Bmv2Error::system("wait for BMv2")(why.into()))?;
        if ready == 0 {
            return Err(Bmv2Error::Gone(format!("gave no frame back within {} s", PATIENCE.as_secs())));
        }
        let mut bytes = [0; 4_096];
        let read = self.out.read(&mut bytes).map_err(Bmv2Error::system("read from BMv2's pipe"))?;
        self.unread.extend(&bytes[..read]);
        Ok(())
    }
}
