//! Type names that several types share.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{code_outside_tests, visibility};
use crate::files::File;

/// The types that are visible outside of their file, each with the files that declare a type of this name.
pub fn visible_types(files: &[File]) -> BTreeMap<String, BTreeSet<String>> {
    let mut types = BTreeMap::<String, BTreeSet<String>>::new();
    for file in files {
        for line in code_outside_tests(&file.text).lines() {
            if let (true, item) = visibility(line)
                && let Some(name) = type_name(item)
            {
                types.entry(name.to_owned()).or_default().insert(file.name.clone());
            }
        }
    }
    types
}

fn type_name(item: &str) -> Option<&str> {
    let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
    let behind = kinds.iter().find_map(|kind| item.strip_prefix(kind))?;
    behind.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()
}
