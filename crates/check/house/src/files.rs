//! The repository's files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders with files of builds and runs, which the rules ignore.
const NOT_OURS: [&str; 8] =
    [".git", "target", "out", "node_modules", "fuzz/target", "fuzz/corpus", "fuzz/artifacts", "Cargo.lock"];

/// A text file.
#[derive(Debug)]
pub struct File {
    /// The path from the repository's root.
    pub name: String,
    /// The contents.
    pub text: String,
}

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."))
}

/// All files in Rust.
pub fn rust_files() -> impl Iterator<Item = File> {
    files().into_iter().filter(|file| Path::new(&file.name).extension().is_some_and(|ending| ending == "rs"))
}

/// The crates with Rust files, each with the files of its library or program.
pub fn crates() -> BTreeMap<String, Vec<File>> {
    let mut crates = BTreeMap::<String, Vec<File>>::new();
    for file in rust_files() {
        let inside = file.name.strip_prefix("crates/").and_then(|name| name.split_once("/src/"));
        if let Some((name, _)) = inside {
            crates.entry(name.to_owned()).or_default().push(file);
        }
    }
    crates
}

/// All files that are text.
pub fn files() -> Vec<File> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap().map(Result::unwrap) {
            let path = folder.join(entry.file_name());
            let name = path.to_string_lossy().into_owned();
            if NOT_OURS.contains(&name.as_str()) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if let Ok(text) = fs::read_to_string(root().join(&path)) {
                found.push(File { name, text });
            }
        }
    }
    found
}
