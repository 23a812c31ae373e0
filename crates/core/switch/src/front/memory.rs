//! The registers that all programs have.

use sluice_wire::{Attempt, Serial};

use crate::config::Config;
use crate::pipeline::{Column, Layout, Register};

/// The stages of those front registers that stand behind a program's queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BackStages {
    pub(crate) gen_out: u8,
    pub(crate) sent: u8,
}

/// The columns of a replay cell. A newer sequence number writes the attempt too; of an equal one a newer
/// attempt is let in.
const REPLAY: [Column; 2] =
    [Column { name: "replay", stage: 0, bits: 32 }, Column { name: "replay attempt", stage: 1, bits: 16 }];

/// The counters and generation of each worker, and the replay cells of each client.
#[derive(Debug)]
pub(super) struct FrontMemory {
    /// Tokens granted to each worker.
    pub(super) seen: Register<u32>,
    /// The newest try that entered, for each client and each residue of its sequence numbers.
    pub(super) replay: Register<u64>,
    /// The generation that a popped token must have.
    pub(super) gen_out: Register<u32>,
    /// Tasks sent to each worker.
    pub(super) sent: Register<u32>,
    /// A copy of `seen`, at a stage where a packet that popped a token can still read it.
    pub(super) seen_out: Register<u32>,
}

impl FrontMemory {
    pub(super) fn new(layout: &mut Layout, config: &Config, back: BackStages) -> Self {
        let workers = config.workers as usize;
        let start = config.counters_start.0;
        let cells = config.clients as usize * config.replay_cells as usize;
        Self {
            seen: Register::new(layout, "seen", 0, 32, workers, start),
            replay: Register::split(layout, "replay", &REPLAY, cells, 0),
            gen_out: Register::new(layout, "gen_out", back.gen_out, 32, workers, 0),
            sent: Register::new(layout, "sent", back.sent, 32, workers, start),
            seen_out: Register::new(layout, "seen_out", back.sent, 32, workers, start),
        }
    }
}

/// The word of a try in its replay cell. Of two tries with the same residue, the newer one has the larger
/// word.
#[inline]
pub(super) const fn replay_word(sequence: Serial, attempt: Attempt) -> u64 {
    (sequence.0 as u64) << 32 | (attempt.0 as u64) << 16
}
