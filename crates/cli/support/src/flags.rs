//! Flags that commands share.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use sluice_log::LogForm;

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

/// Where results go beside their folder.
#[derive(Clone, Debug, Default, Args)]
pub struct ExportArgs {
    /// Write the tables in GitHub's Markdown into this file; `-` is stdout.
    #[arg(long, value_name = "FILE")]
    export_markdown: Option<PathBuf>,
}

impl ExportArgs {
    /// The file for tables in Markdown, if there is to be one.
    pub fn file(&self) -> Option<&Path> {
        self.export_markdown.as_deref()
    }
}

/// How log lines are written.
#[derive(Clone, Debug, Args)]
pub struct LogArgs {
    /// How log lines are written; RUST_LOG says which. With json stderr has nothing else.
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub log: LogForm,
}

impl LogArgs {
    /// Sends log lines to stderr, with this name of the process in them.
    pub fn start(&self, process: &str, output: &Output) {
        sluice_log::start(process, self.log, output.quiet);
    }

    /// The same for a command with a live view, which shows no log lines unless somebody asked for them.
    pub fn start_if_asked(&self, process: &str, output: &Output) {
        let is_asked = self.log != LogForm::Text || std::env::var_os("RUST_LOG").is_some();
        if is_asked {
            self.start(process, output);
        }
    }
}

/// Where packets are switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Io {
    /// On a UDP socket.
    Udp,
    /// In the kernel, on links.
    Xdp,
    /// On BMv2, the reference switch of P4, on links: some thousand packets a second.
    Bmv2,
}

/// Which of BMv2's servers takes the program's tables, groups and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[value(rename_all = "lower")]
pub enum TableServer {
    /// BMv2's own.
    Thrift,
    /// P4Runtime's, which switches of other makers have too.
    P4Runtime,
}

impl Io {
    /// The name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Xdp => "xdp",
            Self::Bmv2 => "bmv2",
        }
    }

    /// Whether packets are switched on links, so that each host of a rack has a network namespace.
    pub const fn is_on_links(self) -> bool {
        !matches!(self, Self::Udp)
    }
}
