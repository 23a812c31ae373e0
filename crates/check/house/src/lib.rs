//! What the tests of the house look at: its files, and who imports whom.
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
