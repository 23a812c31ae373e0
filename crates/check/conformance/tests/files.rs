//! The vectors in `targets/vectors` are complete, and the model agrees with them.

use std::fs;
use std::path::{Path, PathBuf};

use sluice_conformance::model::Model;
use sluice_conformance::{Vector, play};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../targets/vectors")
}

fn files() -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder()).expect("the folder").map(|entry| entry.expect("an entry").path());
    let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.map(|path| (path.clone(), fs::read_to_string(path).expect("a text"))).collect()
}

#[test]
fn the_model_does_what_the_vectors_say() {
    let files = files();
    assert!(files.len() > 10, "there are {}", files.len());
    for (path, text) in files {
        let vector = Vector::parse(&text).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        play(&vector, &mut Model::new(&vector.shape)).unwrap_or_else(|why| panic!("{why}"));
        assert_eq!(vector.to_text(), text, "{} is as it would be written", path.display());
    }
}

#[test]
fn another_version_is_refused_by_its_name() {
    let mut vector = Vector::new("x", "", sluice_conformance::explore::SHAPE);
    vector.schema = "sluice.vector.v0".to_owned();
    let refused = Vector::parse(&vector.to_text()).expect_err("another version").to_string();
    assert!(refused.contains("sluice.vector.v0"), "{refused}");
}
