//! What a page can show.

use std::path::PathBuf;

use sluice_rpc::Remote;
use sluice_support::board::Board;

/// The most controllers that one page watches.
pub const CONTROLLERS_MAX: usize = 64;

/// What a page shows.
pub enum Watched {
    /// Racks, and spines above them.
    Racks {
        /// The title of the page.
        title: String,
        /// One for each rack and spine.
        controllers: Vec<Remote>,
        /// The load and the events of a rack that this process runs.
        board: Option<Board>,
    },
    /// The study in a folder, as it grows.
    Study(PathBuf),
    /// Two results beside each other: files, or their folders.
    Results([PathBuf; 2]),
}
