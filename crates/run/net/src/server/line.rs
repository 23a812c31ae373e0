//! The state of a server's queue pair, in one word that its workers read.

use std::path::Path;

use crate::NetError;
use crate::rdma::SharedMemory;

const FILE: &str = "pair";
const BYTES: usize = size_of::<u64>();

/// The word: twice the number of failures, plus one while the pair is in its error state.
#[derive(Debug)]
pub struct PairLine {
    word: SharedMemory,
}

impl PairLine {
    /// Opens the word for the server. The count of an earlier life continues, since workers have read it.
    ///
    /// # Errors
    /// [`NetError::Memory`] if the folder has no room.
    pub fn of_server(memory: &Path) -> Result<Self, NetError> {
        let file = memory.join(FILE);
        let word = match SharedMemory::open(&file) {
            Ok(word) if word.bytes() == BYTES => word,
            _ => SharedMemory::create(&file, BYTES)?,
        };
        let line = Self { word };
        line.ready();
        Ok(line)
    }

    /// Opens the word for a worker.
    ///
    /// # Errors
    /// [`NetError::Memory`] if no server has created it yet.
    pub fn of_worker(memory: &Path) -> Result<Self, NetError> {
        Ok(Self { word: SharedMemory::open(&memory.join(FILE))? })
    }

    /// Notes that the pair went into its error state.
    pub fn failed(&self) {
        let word = self.read();
        self.write(word | 1);
    }

    /// Notes that the pair is connected.
    pub fn ready(&self) {
        let word = self.read();
        self.write(word + word % 2);
    }

    /// How often the pair has failed, and whether it accepts packets.
    pub fn state(&self) -> (u32, bool) {
        let word = self.read();
        (word.div_ceil(2) as u32, word.is_multiple_of(2))
    }

    fn read(&self) -> u64 {
        let mut bytes = [0; BYTES];
        self.word.read(0, &mut bytes);
        u64::from_ne_bytes(bytes)
    }

    fn write(&self, word: u64) {
        self.word.write(0, &word.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_see_how_often_the_pair_failed_and_whether_it_is_back_over_restarts_too() {
        let folder = tempfile::tempdir().expect("there is room");
        assert!(PairLine::of_worker(folder.path()).is_err(), "no server was there yet");
        let server = PairLine::of_server(folder.path()).expect("there is room");
        let worker = PairLine::of_worker(folder.path()).expect("the server made it");
        assert_eq!(worker.state(), (0, true));
        server.failed();
        server.failed();
        assert_eq!(worker.state(), (1, false));
        drop(server);
        let server = PairLine::of_server(folder.path()).expect("it is there");
        assert_eq!(worker.state(), (1, true), "killed while it mended");
        server.failed();
        server.ready();
        assert_eq!(worker.state(), (2, true));
    }
}
