//! Flags that commands share.

use clap::Args;
use serde::{Deserialize, Serialize};

/// How results are told.
#[derive(Clone, Debug, Args)]
pub struct Output {
    /// Print JSON on stdout.
    #[arg(long)]
    pub json: bool,
    /// No progress and no live view.
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where packets are switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Io {
    /// On a UDP socket.
    Udp,
    /// In the kernel, on links.
    Xdp,
}

impl Io {
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Xdp => "xdp",
        }
    }
}
