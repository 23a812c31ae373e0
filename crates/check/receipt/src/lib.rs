//! The receipt of the P4 programs: what the P4 tools said of them, and of which files they said it.
//!
//! `make p4` runs the tools and writes `targets/p4/receipt.json`. The tests of this crate need no tools: they
//! fail when a source, a vector or the model's layout is another than that of the receipt, or when the
//! README of `targets/p4` says something else.
#![forbid(unsafe_code)]

mod error;
mod fit;
mod inputs;
mod passes;
mod run;
mod tables;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use error::ReceiptError;
pub use fit::{ArrayPlace, Fit};
pub use inputs::{Inputs, held_vectors};
pub use passes::{PassCounts, passes_of};
pub use run::run;
pub use tables::{fit_rows, passes_table, stages_table};

/// The version of the format.
const SCHEMA: &str = "sluice.p4-receipt.v1";

/// What the tools said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The version of the format.
    pub schema: String,
    /// The tools' versions, by their names.
    pub tools: BTreeMap<String, String>,
    /// The programs, by their names.
    pub programs: BTreeMap<String, ProgramReceipt>,
}

/// What the tools said of one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramReceipt {
    /// Of which files, vectors and model the rest is true.
    pub inputs: Inputs,
    /// What the program takes of a Tofino, if the assembler took it.
    pub fit: Option<Fit>,
    /// Why the program does not fit, in the compiler's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_fit: Option<String>,
}

impl Receipt {
    /// Reads the receipt of a folder of programs.
    ///
    /// # Errors
    /// [`ReceiptError::File`] if there is none, [`ReceiptError::Format`] if it is of another version.
    pub fn read(folder: &Path) -> Result<Self, ReceiptError> {
        let path = path_in(folder);
        let text = fs::read_to_string(&path).map_err(ReceiptError::file("read", &path))?;
        let receipt: Self = serde_json::from_str(&text).map_err(ReceiptError::format(&path))?;
        if receipt.schema == SCHEMA { Ok(receipt) } else { Err(ReceiptError::Schema(receipt.schema)) }
    }

    /// Writes the receipt into a folder of programs.
    ///
    /// # Errors
    /// [`ReceiptError::File`].
    pub fn write(&self, folder: &Path) -> Result<(), ReceiptError> {
        let path = path_in(folder);
        let receipt = Self { schema: SCHEMA.to_owned(), ..self.clone() };
        let text = serde_json::to_string_pretty(&receipt).map_err(ReceiptError::format(&path))?;
        fs::write(&path, text + "\n").map_err(ReceiptError::file("write", &path))
    }
}

fn path_in(folder: &Path) -> PathBuf {
    folder.join("receipt.json")
}

/// The project's folder `targets`.
pub fn targets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../targets")
}
