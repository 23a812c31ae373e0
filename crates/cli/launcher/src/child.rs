//! A supervised child process.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sluice_support::fail::{Failure, Kind, Outcome};
use sluice_support::file_name::file_name;
use sluice_system::{Attempt, advice};

/// The time between two polls of a process that is ending.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a failed process may take to end.
const COMPLAINT_PATIENCE: Duration = Duration::from_secs(1);
/// Makes glibc put the heap into huge pages. A service that rests between its tasks finds its page tables
/// evicted from the processor's caches; under virtual machines a miss costs microseconds, and a RocksDB GET
/// took six times as long.
const HUGE_PAGES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1");

/// A running child process. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Child {
    name: String,
    log: PathBuf,
    process: std::process::Child,
}

impl Child {
    /// Starts `program` with `args`. Its stderr is appended to `NAME.log` in the folder `logs`.
    ///
    /// The child gets a process group of its own, so that Ctrl-C reaches only this process, which stops its
    /// children in the right order.
    pub(super) fn start(name: &str, program: &Path, args: &[String], logs: &Path) -> Outcome<Self> {
        let log = logs.join(format!("{}.log", file_name(&name.replace(' ', "-"))));
        let open = || OpenOptions::new().create(true).append(true).open(&log);
        let stderr = open().map_err(|why| {
            let (log, helps) = (log.display(), advice(Attempt::Write, &why));
            Failure::bad_input(format!("{log} (in `out`) cannot be written: {why}; {helps}"))
        })?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).process_group(0);
        if env::var_os(HUGE_PAGES.0).is_none() {
            command.env(HUGE_PAGES.0, HUGE_PAGES.1);
        }
        let process = command.spawn().map_err(|why| {
            let (program, helps) = (program.display(), advice(Attempt::Program, &why));
            Failure::broken(format!("{name} ({program}) cannot be started: {why}; {helps}"))
        })?;
        Ok(Self { name: name.to_owned(), log, process })
    }

    /// The first line that the child prints on stdout; if the child ends before, its error.
    pub(super) fn first_line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        if let Some(stdout) = self.process.stdout.take() {
            // An empty line is handled below.
            BufReader::new(stdout).read_line(&mut line).ok();
        }
        if line.is_empty() { Err(self.complaint()) } else { Ok(line) }
    }

    /// An error unless the child still runs; it contains the child's own message.
    pub(super) fn check(&mut self) -> Outcome<()> {
        if self.has_ended() { Err(self.complaint()) } else { Ok(()) }
    }

    /// Whether the child has ended.
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.process.try_wait(), Ok(None))
    }

    /// Kills the child with SIGKILL, and waits until it is gone.
    pub(super) fn kill(&mut self) {
        // Both calls fail only if the child has ended already.
        self.process.kill().ok();
        self.process.wait().ok();
    }

    /// Asks the child to finish the tasks that it holds and end.
    pub(super) fn ask_to_end(&self) {
        if let Some(pid) = Pid::from_raw(self.process.id() as i32) {
            // The call fails only if the child has ended already; its number is not reused before it is
            // waited for.
            kill_process(pid, Signal::TERM).ok();
        }
    }

    /// Waits for the child's end, but no longer than until `patience`. Returns whether it ended.
    pub(super) fn wait_until(&mut self, patience: Instant) -> bool {
        loop {
            match self.process.try_wait() {
                Ok(None) if Instant::now() < patience => thread::sleep(LOOK_EVERY),
                Ok(None) => return false,
                _ => return true,
            }
        }
    }

    /// Why the child ends, from its exit code and the last line of its log. Kills it if it does not end.
    pub(super) fn complaint(&mut self) -> Failure {
        if !self.wait_until(Instant::now() + COMPLAINT_PATIENCE) {
            self.kill();
        }
        let Ok(status) = self.process.wait() else {
            return Failure::broken(format!("{} cannot be waited for", self.name));
        };
        let kind = status.code().map_or(Kind::Broken, Kind::of_code);
        let said = last_line(&self.log)
            .map_or_else(|| "it said nothing".to_owned(), |line| sluice_log::message_of(&line));
        let said = said.trim_start_matches("sluice: ");
        let said = if status.signal().is_some() { String::new() } else { format!(": {said}") };
        Failure::new(kind, format!("{} {}{said}", self.name, ending(status)))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

fn ending(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

fn last_line(path: &Path) -> Option<String> {
    let lines = BufReader::new(File::open(path).ok()?).lines().map_while(Result::ok);
    lines.filter(|line| !line.trim().is_empty()).last()
}
