//! Records the commit that is built: a failed fault run names it beside its seed.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = git(&["describe", "--always", "--dirty"]);
    println!("cargo::rustc-env=SLUICE_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    if commit.is_some() {
        watch();
    }
}

/// Tells cargo when to run this script again. Without git: when a file of this crate changes. With git:
/// when a commit is made or checked out, and when a source of any crate changes, since the tree may then
/// differ from the commit.
fn watch() {
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    let crates = Path::new("..").read_dir().into_iter().flatten().flatten();
    let sources = crates.map(|entry| entry.path().join("src"));
    let own = ["build.rs", "Cargo.toml", "../../../Cargo.lock"].map(Into::into);
    // Only existing paths: cargo would run the script at each build for a missing one.
    for path in sources.chain(own).chain(log.map(Into::into)).filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// The output of git; `None` if git or its folder is missing.
fn git(asked: &[&str]) -> Option<String> {
    let output = Command::new("git").args(asked).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
