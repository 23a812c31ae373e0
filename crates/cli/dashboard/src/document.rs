//! A study as it grows, or two results beside each other: a piece of HTML that the report's code makes, made
//! again when a file has changed.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};
use sluice_report::{beside, beside_loads, page_body};
use sluice_support::fail::{Failure, Outcome};
use sluice_support::results::either::{ResultFile, file_of, of_two_kinds, read};
use sluice_support::results::studies;

const STUDY: &str = "study.json";
const JOURNAL: &str = "journal.jsonl";

/// The files that are shown.
pub(crate) struct DocumentWatch {
    source: DocumentSource,
    made: RefCell<Option<DocumentMade>>,
}

/// What is shown.
enum DocumentSource {
    /// The folder of a study.
    Study(PathBuf),
    Results([PathBuf; 2]),
}

/// The piece of a page, and what it was made of.
struct DocumentMade {
    stamps: String,
    html: Outcome<String>,
    /// Whether a study has all points that were asked for.
    complete: Option<bool>,
}

impl DocumentWatch {
    /// The study in this folder, which may begin later.
    pub(crate) fn of_study(folder: PathBuf) -> Self {
        Self { source: DocumentSource::Study(folder), made: RefCell::default() }
    }

    /// Two results: files, or the folders that they are in.
    ///
    /// # Errors
    /// Files that cannot be read, and two that are of different kinds.
    pub(crate) fn of_results(results: [PathBuf; 2]) -> Outcome<Self> {
        let of = Self {
            source: DocumentSource::Results(results.map(|given| file_of(&given))),
            made: RefCell::default(),
        };
        of.make().map(|_| of)
    }

    pub(crate) fn title(&self) -> String {
        match &self.source {
            DocumentSource::Study(folder) => format!("The study in {}", folder.display()),
            DocumentSource::Results(_) => "Two results".to_owned(),
        }
    }

    /// What `state.json` says of it.
    pub(crate) fn to_json(&self) -> Value {
        self.look();
        let made = self.made.borrow();
        let Some(made) = made.as_ref() else { return Value::Null };
        json!({
            "version": made.stamps, "complete": made.complete, "grew_ago_ms": self.grew_ago_ms(),
            "why": made.html.as_ref().err().map(ToString::to_string),
        })
    }

    /// The piece of a page; empty while there is none.
    pub(crate) fn html(&self) -> String {
        self.look();
        let made = self.made.borrow();
        made.as_ref().and_then(|made| made.html.as_ref().ok().cloned()).unwrap_or_default()
    }

    /// Makes it anew if a file has changed.
    fn look(&self) {
        let stamps: String = self.files().iter().map(|file| stamp(file)).collect();
        if self.made.borrow().as_ref().is_some_and(|made| made.stamps == stamps) {
            return;
        }
        let (html, complete) = match self.make() {
            Ok((html, complete)) => (Ok(html), complete),
            Err(why) => (Err(why), None),
        };
        *self.made.borrow_mut() = Some(DocumentMade { stamps, html, complete });
    }

    fn files(&self) -> Vec<PathBuf> {
        match &self.source {
            DocumentSource::Study(folder) => vec![folder.join(STUDY)],
            DocumentSource::Results(files) => files.to_vec(),
        }
    }

    fn make(&self) -> Outcome<(String, Option<bool>)> {
        match &self.source {
            DocumentSource::Study(folder) => {
                let file = folder.join(STUDY);
                if !file.exists() {
                    return Err(Failure::bad_input(format!(
                        "there is no {} yet: a study writes it after some seconds, and at its end",
                        file.display()
                    )));
                }
                let study = studies::read(&file)?;
                Ok((page_body(&study), Some(study.complete)))
            }
            DocumentSource::Results([one, other]) => Ok((two(one, other)?, None)),
        }
    }

    /// How long ago a run of the study ended.
    fn grew_ago_ms(&self) -> Option<u64> {
        let DocumentSource::Study(folder) = &self.source else { return None };
        let written = fs::metadata(folder.join(JOURNAL)).and_then(|file| file.modified()).ok()?;
        let ago = SystemTime::now().duration_since(written).unwrap_or_default();
        Some(ago.as_millis() as u64)
    }
}

fn two(one: &Path, other: &Path) -> Outcome<String> {
    let names = [one, other].map(|path| path.display().to_string());
    match (read(one)?, read(other)?) {
        (ResultFile::Study(a), ResultFile::Study(b)) => Ok(beside((&names[0], &a), (&names[1], &b))),
        (ResultFile::Load(a), ResultFile::Load(b)) => Ok(beside_loads((&names[0], &a), (&names[1], &b))),
        _ => Err(of_two_kinds(one, other)),
    }
}

/// Tells whether a file has changed.
fn stamp(file: &Path) -> String {
    fs::metadata(file).map_or_else(
        |_| "none ".to_owned(),
        |found| format!("{}.{}.{}.{} ", found.ino(), found.len(), found.mtime(), found.mtime_nsec()),
    )
}
