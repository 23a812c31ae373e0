//! Notes which commit is built: a broken fault run names it beside its seed.

use std::process::Command;

fn main() {
    let described = Command::new("git").args(["describe", "--always", "--dirty"]).output();
    let commit = described.ok().filter(|output| output.status.success());
    let commit = commit
        .map_or_else(|| "unknown".into(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    println!("cargo::rustc-env=SLUICE_COMMIT={}", commit.trim());
}
