//! The deliberate bugs of `planted/`, of this crate, the fabric, the controllers and Sparrow, still fit the
//! code. `scripts/planted-bugs` and `scripts/planted-bugs-fabric` show that the tests find each of them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn every_planted_bug_still_applies() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut broken = Vec::new();
    for folder in ["planted", "../fabric/planted", "../../core/control/planted", "../models/planted"] {
        let patches = patches(&here.join(folder));
        assert!(!patches.is_empty(), "no patch in {folder}");
        broken.extend(patches.iter().filter_map(|patch| complaint(&here.join("../../.."), patch)));
    }
    assert!(broken.is_empty(), "these patches have to follow the code they change:\n{}", broken.join("\n"));
}

fn patches(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("crates/sim/faults/planted is there");
    let paths = entries.map(|entry| entry.expect("its entries can be read").path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "patch")).collect()
}

/// The message of `patch` if this patch does not apply; a dry run that changes nothing.
fn complaint(root: &Path, patch: &Path) -> Option<String> {
    let text = File::open(patch).expect("a patch that was listed can be read");
    let run =
        Command::new("patch").args(["--dry-run", "--batch", "-p1", "-d"]).arg(root).stdin(text).output();
    let output = run.expect("the program `patch` is installed");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (!output.status.success()).then(|| format!("{}:\n{said}", patch.display()))
}
