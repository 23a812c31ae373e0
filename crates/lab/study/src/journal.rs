//! The journal: a line for every finished replication, so that a stopped run can continue.
//!
//! The first line identifies the folder's run: two runs with different settings never share a journal. Each
//! further line is written completely before the next one begins. An incomplete last line is removed, and
//! its replication runs again.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sluice_system::{Attempt, advice};

use super::error::StudyError;

const FILE: &str = "journal.jsonl";
const SCHEMA: &str = "sluice.journal.v3";

/// The settings that decide a run's results, by name. A run continues another one only if all of them are
/// equal.
pub type Identity = Vec<(String, String)>;

#[derive(Serialize, Deserialize)]
struct Head {
    schema: String,
    identity: Identity,
}

#[derive(Serialize, Deserialize)]
struct Line<P, T> {
    point: P,
    replication: u32,
    result: T,
}

/// A journal that is being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
}

impl Journal {
    /// Opens the journal in `folder`, which is created if necessary, and passes its contents to `take`,
    /// line by line.
    ///
    /// # Errors
    /// The folder cannot be written, contains another run, or is being written by another process.
    pub fn open<P: DeserializeOwned, T: DeserializeOwned>(
        folder: &Path,
        identity: &Identity,
        mut take: impl FnMut(P, u32, T),
    ) -> Result<Self, StudyError> {
        let path = folder.join(FILE);
        let cannot = |why: &dyn std::fmt::Display| StudyError::Folder {
            path: folder.to_owned(),
            why: format!("results cannot be written there ({why}): choose another folder with --out"),
        };
        fs::create_dir_all(folder).map_err(|why| cannot(&why))?;
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(|why| cannot(&why))?;
        lock(&path, &file)?;
        let kept = read(&path, &file, identity, &mut take)?;
        file.set_len(kept).and_then(|()| file.seek(SeekFrom::End(0))).map_err(|why| cannot(&why))?;
        let mut journal = Self { path, file };
        if kept == 0 {
            journal.append(&Head { schema: SCHEMA.into(), identity: identity.clone() })?;
        }
        Ok(journal)
    }

    /// Adds a finished replication.
    pub fn add<P: Serialize, T: Serialize>(
        &mut self,
        point: &P,
        replication: u32,
        result: &T,
    ) -> Result<(), StudyError> {
        self.append(&Line { point, replication, result })
    }

    fn append<L: Serialize>(&mut self, line: &L) -> Result<(), StudyError> {
        let broken = |why| StudyError::Broken(format!("{}: {why}; start it again then", self.path.display()));
        let mut text = serde_json::to_string(line).map_err(|why| broken(why.to_string()))?;
        text.push('\n');
        let written = self.file.write_all(text.as_bytes());
        written.map_err(|why| broken(format!("{why}; {}", advice(Attempt::Write, &why))))
    }
}

/// Whether a folder may take this run: it contains this run's journal, or none.
pub fn is_of(folder: &Path, identity: &Identity) -> bool {
    let Ok(file) = File::open(folder.join(FILE)) else { return true };
    let mut text = String::new();
    let read = BufReader::new(file).read_line(&mut text);
    // An incomplete first line is written again.
    if read.is_ok() && !text.ends_with('\n') {
        return true;
    }
    serde_json::from_str::<Head>(&text).is_ok_and(|head| same(&head, identity).is_ok())
}

/// Passes the contents of a folder's journal to `take`, line by line, and changes nothing there. A folder
/// without a journal has none.
///
/// # Errors
/// The journal is another run's, or damaged.
pub fn read_from<P: DeserializeOwned, T: DeserializeOwned>(
    folder: &Path,
    identity: &Identity,
    mut take: impl FnMut(P, u32, T),
) -> Result<(), StudyError> {
    let path = folder.join(FILE);
    match File::open(&path) {
        Ok(file) => read(&path, &file, identity, &mut take).map(drop),
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        Err(why) => Err(StudyError::Folder { path, why: format!("cannot be read ({why})") }),
    }
}

/// Removes the journal of a folder, if there is one.
///
/// # Errors
/// Another run writes it now, which would lose what it keeps; or it cannot be removed.
pub fn forget(folder: &Path) -> Result<(), StudyError> {
    let path = folder.join(FILE);
    if let Ok(file) = File::open(&path) {
        lock(&path, &file)?;
    }
    match fs::remove_file(&path) {
        Err(why) if why.kind() != ErrorKind::NotFound => Err(StudyError::Folder {
            path,
            why: format!("cannot be removed ({why}): choose another folder with --out"),
        }),
        _ => Ok(()),
    }
}

/// Locks a journal, as long as `file` is open. Slurm may run an array task twice, and two notebooks may have
/// one folder. Some disks have no locks.
fn lock(path: &Path, file: &File) -> Result<(), StudyError> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(StudyError::Folder {
            path: path.to_owned(),
            why: "another run writes it now: wait for its end, or choose another folder with --out".into(),
        }),
        _ => Ok(()),
    }
}

/// Reads all complete lines; returns their total length in bytes.
fn read<P: DeserializeOwned, T: DeserializeOwned>(
    path: &Path,
    file: &File,
    identity: &Identity,
    take: &mut impl FnMut(P, u32, T),
) -> Result<u64, StudyError> {
    let wrong = |why: String| StudyError::Folder { path: path.to_owned(), why };
    let mut reader = BufReader::new(file);
    let mut kept = 0;
    let mut text = String::new();
    loop {
        text.clear();
        let bytes = reader.read_line(&mut text).map_err(|why| wrong(format!("cannot be read ({why})")))?;
        if bytes == 0 || !text.ends_with('\n') {
            return Ok(kept);
        }
        if kept == 0 {
            let head: Head = serde_json::from_str(&text).map_err(|_| {
                wrong("is not a journal of this version: choose another folder with --out, or forget that run with --fresh".into())
            })?;
            same(&head, identity).map_err(wrong)?;
        } else {
            let line: Line<P, T> = serde_json::from_str(&text)
                .map_err(|why| wrong(format!("is damaged ({why}): start anew with --fresh")))?;
            take(line.point, line.replication, line.result);
        }
        kept += bytes as u64;
    }
}

/// Checks that the folder's run is this one; the error names the difference.
fn same(head: &Head, identity: &Identity) -> Result<(), String> {
    let help = "choose another folder with --out, or forget that run with --fresh";
    if head.schema != SCHEMA {
        return Err(format!("was written by another version ({}): {help}", head.schema));
    }
    let value = |of: &Identity, name: &str| {
        of.iter().find(|(known, _)| known == name).map_or("nothing".to_owned(), |(_, value)| value.clone())
    };
    let names = identity.iter().chain(&head.identity).map(|(name, _)| name);
    for name in names {
        let (theirs, ours) = (value(&head.identity, name), value(identity, name));
        if theirs != ours {
            return Err(format!(
                "holds another run: its {name} is {}, not {}; {help}",
                short(&theirs),
                short(&ours)
            ));
        }
    }
    Ok(())
}

/// Replaces long values by their fingerprint: an error message should not contain a whole plan.
fn short(value: &str) -> String {
    if value.len() <= 40 && !value.contains('\n') {
        return format!("`{value}`");
    }
    let hash = value.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("the one with fingerprint {hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(seed: &str) -> Identity {
        vec![("what".into(), "sweep".into()), ("seed".into(), seed.into())]
    }

    type JournalContents = Vec<(String, u32, u64)>;

    fn open(folder: &Path, seed: &str) -> Result<(Journal, JournalContents), StudyError> {
        let mut found = Vec::new();
        let journal = Journal::open(folder, &identity(seed), |point: String, replication, result: u64| {
            found.push((point, replication, result));
        })?;
        Ok((journal, found))
    }

    #[test]
    fn what_was_added_is_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, found) = open(folder.path(), "1").unwrap();
        assert!(found.is_empty());
        journal.add(&"a", 0, &7).unwrap();
        journal.add(&"b", 3, &8).unwrap();
        drop(journal);
        let (_, found) = open(folder.path(), "1").unwrap();
        assert_eq!(found, [("a".into(), 0, 7), ("b".into(), 3, 8)]);
    }

    #[test]
    fn a_line_that_was_cut_off_is_taken_away() {
        let folder = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(folder.path(), "1").unwrap();
        journal.add(&"a", 0, &7).unwrap();
        drop(journal);
        let path = folder.path().join(FILE);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{{\"point\":\"b\",\"repl")).unwrap();
        let (mut journal, found) = open(folder.path(), "1").unwrap();
        assert_eq!(found.len(), 1);
        journal.add(&"b", 0, &9).unwrap();
        drop(journal);
        assert_eq!(open(folder.path(), "1").unwrap().1.len(), 2);
    }

    #[test]
    fn two_runs_do_not_write_one_journal_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let (journal, _) = open(folder.path(), "1").unwrap();
        let why = open(folder.path(), "1").expect_err("it is written").to_string();
        assert!(why.contains("another run writes it now: wait for its end"), "{why}");
        assert_eq!(forget(folder.path()).expect_err("it would be lost").to_string(), why);
        drop(journal);
        open(folder.path(), "1").unwrap();
    }

    #[test]
    fn another_runs_folder_is_refused_with_what_differs() {
        let folder = tempfile::tempdir().unwrap();
        drop(open(folder.path(), "1").unwrap());
        let why = open(folder.path(), "2").unwrap_err();
        assert!(why.is_bad_input());
        let why = why.to_string();
        assert!(why.contains("its seed is `1`, not `2`") && why.contains("--out"), "{why}");
    }

    #[test]
    fn a_folder_may_take_its_own_run_or_any_if_none_is_there() {
        let folder = tempfile::tempdir().unwrap();
        assert!(is_of(folder.path(), &identity("1")));
        drop(open(folder.path(), "1").unwrap());
        assert!(is_of(folder.path(), &identity("1")) && !is_of(folder.path(), &identity("2")));
        fs::write(folder.path().join(FILE), "{\"schema\":\"slui").unwrap();
        assert!(is_of(folder.path(), &identity("2")));
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_refused() {
        let why = open(Path::new("/dev/null/results"), "1").unwrap_err();
        assert!(why.is_bad_input() && why.to_string().contains("--out"), "{why}");
    }
}
