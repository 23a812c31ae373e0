//! The extension module as cargo builds it beside the tests: pytest imports the same file.

use std::fs;
use std::path::PathBuf;

/// Where cargo puts it: beside this test.
fn module() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows where it is");
    test.parent().expect("a folder").join("lib_sluice.so")
}

/// An interpreter has its own symbols: one more in a library beside it would be another interpreter.
#[test]
fn the_module_has_its_entry_and_no_python_of_its_own() {
    let bytes = fs::read(module()).expect("cargo builds it before this test");
    let has = |words: &str| bytes.windows(words.len()).any(|window| window == words.as_bytes());
    assert!(has("PyInit__sluice"));
    assert!(!has("libpython"), "set PYO3_BUILD_EXTENSION_MODULE, as .cargo/config.toml does");
}
