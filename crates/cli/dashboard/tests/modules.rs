//! The ES modules of this page and of reports: rules that a reader of text can check, and, where they are
//! installed, node's parser and TypeScript's checker (`tsc`), which reads the types in the comments. Neither
//! is needed to build.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What turns text into markup or code, or goes around the page's policy.
const FORBIDDEN: [&str; 9] = [
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
    "setAttribute(\"style\"",
    "localStorage",
    "console.",
];

fn folders() -> [PathBuf; 2] {
    ["src/page", "../../lab/report/src/page"].map(|folder| Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
}

fn modules() -> Vec<(PathBuf, String)> {
    let entries = folders().into_iter().flat_map(|folder| fs::read_dir(folder).expect("a folder").flatten());
    let entries = entries.map(|entry| entry.path());
    let modules = entries.filter(|path| path.extension().is_some_and(|ending| ending == "js"));
    let modules: Vec<_> =
        modules.map(|path| (path.clone(), fs::read_to_string(path).expect("text"))).collect();
    assert!(modules.len() >= 8, "{modules:#?}");
    modules
}

#[test]
fn modules_make_no_markup_of_text_and_are_short() {
    for (path, text) in modules() {
        let path = path.display();
        let found: Vec<&str> = FORBIDDEN.into_iter().filter(|word| text.contains(word)).collect();
        assert!(found.is_empty(), "{path}: {found:?}");
        assert!(text.starts_with("// "), "{path} does not say what it does");
        let long = text.lines().position(|line| line.chars().count() > 160);
        assert!(
            long.is_none() && text.lines().count() <= 400,
            "{path}: line {long:?} is too long, or the file"
        );
    }
}

#[test]
fn modules_are_what_node_parses_and_their_types_agree() {
    if run("node", &["--version"]).is_none() {
        return eprintln!("skipped: node is not installed here");
    }
    for (path, text) in modules() {
        // Node tells a module by its name or by its folder.
        let copy = std::env::temp_dir().join(format!("sluice-page-{}.mjs", std::process::id()));
        fs::write(&copy, text).expect("written");
        let said = run("node", &["--check", &copy.display().to_string()]).expect("it starts");
        fs::remove_file(&copy).expect("it is there");
        assert!(said.0, "{}: {}", path.display(), said.1);
    }
    for folder in folders() {
        let project = folder.join("jsconfig.json").display().to_string();
        match run("tsc", &["--project", &project]) {
            Some((is_well, said)) => assert!(is_well, "{said}"),
            None => {
                eprintln!("types are not checked: tsc is not in the path (npm install --global typescript)");
            }
        }
    }
}

/// Whether a program ends well, and what it says; `None` if it is not installed.
fn run(program: &str, args: &[&str]) -> Option<(bool, String)> {
    let output = Command::new(program).args(args).stdin(Stdio::null()).output().ok()?;
    let said = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}
