//! Helpers of the house tests: the repository's files and their imports.
#![forbid(unsafe_code)]

mod circles;
mod code;
mod docs;
mod files;
mod names;

pub use circles::{circles, module_circles};
pub use code::code_outside_tests;
pub use docs::items_without_docs;
pub use files::{File, crates, files, root, rust_files};
pub use names::visible_types;
