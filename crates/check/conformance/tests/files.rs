//! The vectors in `targets/vectors` are complete, and the model agrees with them.

use std::fs;
use std::path::{Path, PathBuf};

use sluice_conformance::model::Model;
use sluice_conformance::{TestedProgram, Vector, all, play};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../targets/vectors")
}

#[test]
fn the_model_does_what_the_vectors_say() {
    let vectors = all(&folder()).unwrap_or_else(|why| panic!("{why}"));
    for program in TestedProgram::ALL {
        let of_it = vectors.iter().filter(|vector| vector.shape.program == program).count();
        assert!(of_it > 5, "there are {of_it} of {program:?}");
    }
    for vector in vectors {
        play(&vector, &mut Model::new(&vector.shape)).unwrap_or_else(|why| panic!("{why}"));
    }
}

#[test]
fn the_vectors_are_as_they_would_be_written() {
    for vector in all(&folder()).unwrap_or_else(|why| panic!("{why}")) {
        let path = folder().join(vector.shape.program.folder()).join(format!("{}.json", vector.name));
        let text = fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        assert_eq!(vector.to_text(), text, "{}", path.display());
    }
}

#[test]
fn another_version_is_refused_by_its_name() {
    let mut vector = Vector::new("x", "", sluice_conformance::explore::SHAPE);
    vector.schema = "sluice.vector.v0".to_owned();
    let refused = Vector::parse(&vector.to_text()).expect_err("another version").to_string();
    assert!(refused.contains("sluice.vector.v0"), "{refused}");
}
