//! A result's tables in a file that somebody named.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use sluice_system::{Attempt, advice};

use super::files;
use crate::fail::{Failure, Outcome};
use crate::print;

/// The name that stands for stdout.
const STDOUT: &str = "-";

/// Refuses a file that cannot be written, before anything runs. Its folder is created if necessary.
pub fn check(file: Option<&Path>) -> Outcome<()> {
    let Some(file) = file.filter(|file| *file != Path::new(STDOUT)) else { return Ok(()) };
    if file.is_dir() || file.file_name().is_none() {
        let shown = file.display();
        let why =
            format!("--export-markdown {shown} is a folder: name a file in it, such as {shown}/table.md");
        return Err(Failure::bad_input(why));
    }
    if is_to_stay(file) {
        return Ok(());
    }
    fs::create_dir_all(folder(file)).map_err(|why| {
        let (file, helps) = (file.display(), advice(Attempt::Write, &why));
        Failure::bad_input(format!("the folder of --export-markdown {file} cannot be made: {why}; {helps}"))
    })?;
    let probe = file.with_added_extension("half");
    fs::write(&probe, "").map_err(|why| files::unwritten(&probe, &why))?;
    // What stays of it is overwritten later.
    fs::remove_file(&probe).ok();
    Ok(())
}

/// Writes the tables, if somebody asked for them.
pub fn write(file: Option<&Path>, text: &str) -> Outcome<()> {
    let Some(file) = file else { return Ok(()) };
    if file == Path::new(STDOUT) {
        return print::text(text);
    }
    if is_to_stay(file) {
        let written = OpenOptions::new().append(true).open(file);
        let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
        return written.map_err(|why| files::unwritten(file, &why));
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    files::save(folder(file), &name, text)
}

/// What no file may replace: a pipe, a terminal, and an open file by its number. `/dev/stdout` names a file
/// if stdout goes into one; what stands there already is kept.
fn is_to_stay(file: &Path) -> bool {
    let Ok(of) = fs::metadata(file) else { return false };
    let is_by_number = |at: &Path| at == Path::new("/dev") || at.starts_with("/proc");
    !of.is_file() || fs::canonicalize(folder(file)).is_ok_and(|at| is_by_number(&at))
}

fn folder(file: &Path) -> &Path {
    file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
