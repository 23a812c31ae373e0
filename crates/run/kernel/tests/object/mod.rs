//! Object files of the programs in `targets/ebpf`, for tests that load them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of an object file. Builds the programs once, unless an environment variable names a folder with
/// them.
pub(crate) fn object(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        if let Some(built) = std::env::var_os("XDP_OBJECTS") {
            return built.into();
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let out = root.join("target/ebpf");
        let built = Command::new("make")
            .arg("-sC")
            .arg(root.join("targets/ebpf"))
            .arg(format!("OUT={}", out.canonicalize().unwrap_or(out.clone()).display()))
            .status()
            .expect("make is there");
        assert!(built.success(), "the program does not build: clang-14 and libbpf-dev are needed");
        out
    });
    folder.join(name)
}

/// Whether this process may load programs.
pub(crate) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| std::os::unix::fs::MetadataExt::uid(&process) == 0)
}
