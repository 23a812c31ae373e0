//! Of what a receipt speaks: hashes of a program's sources, of its vectors and of the model's layout.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sluice_bmv2::P4Program;
use sluice_conformance::{TestedProgram, Vector};
use sluice_switch::Program;
use sluice_switch::registry::Choice;

use crate::PUBLISHED;
use crate::error::ReceiptError;

/// Hashes (CRC-32) of a program's inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inputs {
    /// The files that the program's two tops include, and the tops.
    pub sources: BTreeMap<String, String>,
    /// The vectors that the program is held to.
    pub vectors: BTreeMap<String, String>,
    /// The register arrays of the model's program, with their stages and sizes.
    pub model: String,
}

impl Inputs {
    /// The inputs as they are now, with `targets` the folder of programs and vectors.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn now(targets: &Path, program: P4Program) -> Result<Self, ReceiptError> {
        let folder = targets.join("p4");
        let mut sources = BTreeMap::new();
        for top in ["v1model", "tna"] {
            add_source(&folder, &format!("{}_{top}.p4", program.name()), &mut sources)?;
        }
        let vectors = held_vectors(targets, program)?;
        let vectors = vectors.iter().map(|vector| (vector.name.clone(), hash(&vector.to_text()))).collect();
        Ok(Self { sources, vectors, model: hash(&layout(program)) })
    }

    /// The inputs of Rain with what the paper's switch has: no vectors are held to it.
    ///
    /// # Errors
    /// What cannot be read.
    pub fn of_published(targets: &Path) -> Result<Self, ReceiptError> {
        let mut sources = BTreeMap::new();
        add_source(&targets.join("p4"), &format!("{PUBLISHED}_tna.p4"), &mut sources)?;
        Ok(Self { sources, vectors: BTreeMap::new(), model: hash(&layout(P4Program::Rain)) })
    }
}

/// The vectors that a program is held to: those of its scheduler, without those for what is not written in
/// P4 yet.
///
/// # Errors
/// What cannot be read.
pub fn held_vectors(targets: &Path, program: P4Program) -> Result<Vec<Vector>, ReceiptError> {
    let all = sluice_conformance::all(&targets.join("vectors"))?;
    let is_of = |of: TestedProgram| P4Program::of(of.policy()) == Some(program);
    Ok(all.into_iter().filter(|vector| is_of(vector.shape.program) && !vector.has_target()).collect())
}

/// Hashes a file, and what it includes.
fn add_source(folder: &Path, name: &str, sources: &mut BTreeMap<String, String>) -> Result<(), ReceiptError> {
    if sources.contains_key(name) {
        return Ok(());
    }
    let path = folder.join(name);
    let text = fs::read_to_string(&path).map_err(ReceiptError::file("read", &path))?;
    sources.insert(name.to_owned(), hash(&text));
    for included in text.lines().filter_map(included) {
        add_source(folder, included, sources)?;
    }
    Ok(())
}

/// The file that a line includes from the same folder.
fn included(line: &str) -> Option<&str> {
    line.trim().strip_prefix("#include \"")?.strip_suffix('"')
}

/// The program in the model, at its full size.
pub(crate) fn model(program: P4Program) -> Box<dyn Program> {
    let tested =
        TestedProgram::ALL.into_iter().find(|tested| P4Program::of(tested.policy()) == Some(program));
    let policy = tested.expect("each program has vectors").policy();
    let choice = Choice::parse(policy).expect("a program of ours");
    choice.on_a_whole_chip()
}

/// What the model's program has in each stage, a stage a line.
fn layout(program: P4Program) -> String {
    let model = model(program);
    let stages = model.layout().stages().iter().enumerate();
    let lines = stages.map(|(stage, used)| {
        format!("{stage} {} {} {} {}\n", used.names.join(","), used.blocks, used.map_ram, used.units)
    });
    lines.collect()
}

fn hash(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_top_brings_all_that_it_includes() {
        let mut sources = BTreeMap::new();
        let folder = crate::targets().join("p4");
        add_source(&folder, "rain_tna.p4", &mut sources).unwrap_or_else(|why| panic!("{why}"));
        for name in ["rain_tna.p4", "top_tna.p4", "headers.p4", "queue.p4", "slots_tna.p4"] {
            assert!(sources.contains_key(name), "{name} is not among {sources:?}");
        }
        assert!(!sources.contains_key("draconis.p4"), "{sources:?}");
    }
}
