//! The racks that run on this machine. Each has a file while it runs, so that `status`, `move`, `map` and
//! `load` find its controller without being told the address.
//!
//! The files lie in `$XDG_RUNTIME_DIR/sluice`, otherwise in `/tmp/sluice-UID`, which must belong to this
//! user alone. A file is removed if its process is gone, or if its process number now belongs to another
//! process. Containers that share the folder have process numbers of their own, so files of other
//! containers are left alone. A rack in network namespaces has no file, since its controller cannot be
//! reached from outside.

use std::fmt::Write as _;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use sluice_net::program::{CONTROLLER_DEFAULT, TlsArgs};
use sluice_rpc::Remote;

use crate::fail::{Failure, Outcome};
use crate::print;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunningRack {
    name: String,
    /// The address of the controller.
    controller: String,
    /// The number of the process that runs it.
    pid: u32,
    /// When that process started, in the kernel's ticks: it distinguishes processes that had the same
    /// number.
    began: u64,
    /// The PID namespace of the process number.
    numbers: u64,
}

/// The file of this process's rack; dropping it removes the file.
#[derive(Debug)]
pub struct RackFile(Option<PathBuf>);

impl RackFile {
    /// Announces that this process runs a rack called `name` with its controller at `controller`. A failure
    /// is ignored: it only makes the rack harder to find.
    pub fn running(name: &str, controller: &str) -> Self {
        let pid = std::process::id();
        Self(start_ticks(pid).zip(numbers()).and_then(|(began, numbers)| {
            let (name, controller) = (name.to_owned(), controller.to_owned());
            let rack = RunningRack { name, controller, pid, began, numbers };
            let failed = |why: &io::Error| {
                print::to_stderr(format_args!("`sluice status` must be told where this rack is: {why}"));
            };
            write(&rack).inspect_err(failed).ok()
        }))
    }
}

impl Drop for RackFile {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // A file that stays is ignored once the process is gone.
            fs::remove_file(file).ok();
        }
    }
}

/// Which rack is meant, and how it and its caller know each other.
#[derive(Clone, Debug, clap::Args)]
pub struct RackArgs {
    /// Where the controller is: HOST:PORT, http://HOST:PORT or https://HOST:PORT [default: of the one rack
    /// that runs here, else 127.0.0.1:7400]. Of several spines, or of a leader and its standbys, all are
    /// named, with commas between; one spine's controllers, of which one leads, with plus signs. What
    /// changes something takes no spines but one.
    #[arg(long, value_name = "ADDRESS")]
    controller: Option<String>,
    #[command(flatten)]
    tls: TlsArgs,
}

impl RackArgs {
    /// The controller for a change, or those of one rack, of which one leads. They may not be those of
    /// several spines: spines share one map of types and pools, which cannot be changed for one alone.
    pub fn remote(&self) -> Outcome<Remote> {
        let all = self.remotes()?;
        if all.len() > 1 && sluice_rpc::are_of_one_rack(&all) == Some(false) {
            let spines: Vec<&str> = all.iter().map(Remote::url).collect();
            return Err(Failure::bad_input(format!(
                "{} spines ({}) have one map of types and pools, which stands in their plan: change it, and \
                 start them anew; a worker moves at its leaf, whose controller --controller names",
                all.len(),
                spines.join(", ")
            )));
        }
        Ok(Remote::any_of(&all))
    }

    /// The rack's controller, or those of all spines; at least one.
    pub fn remotes(&self) -> Outcome<Vec<Remote>> {
        Ok(self.tls.remotes(&controller(self.controller.as_deref())?)?)
    }
}

/// The controller's address: as given, otherwise of the only rack that runs here, otherwise the default.
fn controller(said: Option<&str>) -> Outcome<String> {
    if let Some(said) = said {
        return Ok(said.to_owned());
    }
    match &racks()[..] {
        [] => Ok(CONTROLLER_DEFAULT.to_owned()),
        [one] => Ok(one.controller.clone()),
        several => Err(Failure::bad_input(which(several))),
    }
}

fn which(racks: &[RunningRack]) -> String {
    let mut text = format!("{} racks run here: ", racks.len());
    for RunningRack { name, controller, pid, .. } in racks {
        // Writing to a string cannot fail.
        let _ = write!(text, "`{}` (process {pid}) with --controller {controller}, ", name.escape_debug());
    }
    text + "say which"
}

/// All running racks, by process number.
fn racks() -> Vec<RunningRack> {
    let folder = folder();
    if !is_ours(&folder) {
        return Vec::new();
    }
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut racks: Vec<RunningRack> =
        files.filter(|file| is_rack_file(file)).filter_map(|file| read(&file)).collect();
    racks.sort_by_key(|rack| rack.pid);
    racks
}

/// The rack in a file, if its process number is one of this namespace; removes the file of a rack that has
/// ended.
fn read(file: &Path) -> Option<RunningRack> {
    let rack: RunningRack = serde_json::from_str(&fs::read_to_string(file).ok()?).ok()?;
    if numbers() != Some(rack.numbers) {
        return None;
    }
    if start_ticks(rack.pid) == Some(rack.began) {
        return Some(rack);
    }
    fs::remove_file(file).ok();
    None
}

fn write(rack: &RunningRack) -> io::Result<PathBuf> {
    let folder = folder();
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    if !is_ours(&folder) {
        let why = format!("{} is not this user's alone", folder.display());
        return Err(io::Error::other(why));
    }
    let file = folder.join(format!("{}-{}.json", rack.numbers, rack.pid));
    let half = file.with_extension("half");
    fs::write(&half, serde_json::to_string(rack)?)?;
    // In one step, so that a reader finds a complete file or none.
    fs::rename(&half, &file)?;
    Ok(file)
}

fn is_rack_file(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "json")
}

fn folder() -> PathBuf {
    let given = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute());
    given.map_or_else(
        || std::env::temp_dir().join(format!("sluice-{}", geteuid().as_raw())),
        |folder| folder.join("sluice"),
    )
}

/// Whether no other user could have written there.
fn is_ours(folder: &Path) -> bool {
    let found = fs::symlink_metadata(folder);
    found.is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0)
}

/// The PID namespace in which this process sees others.
fn numbers() -> Option<u64> {
    fs::metadata("/proc/self/ns/pid").ok().map(|space| space.ino())
}

/// When a process started, in the kernel's ticks since boot; `None` if there is none.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process's name, in brackets, may contain anything.
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rack(pid: u32, began: u64) -> RunningRack {
        let numbers = numbers().expect("this process has a number");
        RunningRack { name: "demo".into(), controller: "127.0.0.1:7400".into(), pid, began, numbers }
    }

    #[test]
    fn a_file_counts_only_while_its_very_process_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let (pid, file) = (std::process::id(), folder.path().join("1.json"));
        let now = start_ticks(pid).expect("this process runs");
        for (began, found) in [(now, true), (now + 1, false)] {
            fs::write(&file, serde_json::to_string(&rack(pid, began)).expect("JSON")).expect("written");
            assert_eq!((read(&file).is_some(), file.exists()), (found, found));
        }
        fs::write(&file, "{").expect("written");
        assert_eq!(read(&file), None);
    }

    #[test]
    fn a_rack_of_another_container_is_none_of_ours_and_its_file_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("1.json");
        let others = RunningRack { numbers: 1, ..rack(std::process::id(), 1) };
        fs::write(&file, serde_json::to_string(&others).expect("JSON")).expect("written");
        assert_eq!((read(&file), file.exists()), (None, true));
    }

    #[test]
    fn several_racks_are_named_each_with_what_would_choose_it() {
        let said = which(&[rack(7, 1), rack(9, 1)]);
        assert!(
            said.starts_with("2 racks run here: `demo` (process 7) with --controller 127.0.0.1:7400, "),
            "{said}"
        );
    }
}
