//! The process of `simple_switch`.

use std::io::{BufRead as _, BufReader, PipeReader, pipe};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::Bmv2Error;

/// How long a process that breaks a connection may take to end.
const END_PATIENCE: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// What BMv2 says several times a second of a link whose namespace has no `/sys` of its own.
const NOISE: &str = "open: No such file or directory";

/// The switch's process, which ends with this value.
pub(crate) struct Process {
    child: Child,
    said: LastLine,
}

/// Without these BMv2 makes the text of a log of each packet, and writes it nowhere.
pub(crate) const QUIET: [&str; 2] = ["--log-level", "off"];

impl Process {
    /// Starts the process in a process group of its own, so that Ctrl-C does not reach it.
    pub(crate) fn start(command: &mut Command) -> Result<Self, Bmv2Error> {
        let failed = || Bmv2Error::system("start simple_switch");
        let (reader, out) = pipe().map_err(failed())?;
        let err = out.try_clone().map_err(failed())?;
        let started = command.stdin(Stdio::null()).stdout(out).stderr(err).process_group(0).spawn();
        // Of the pipe's writing ends only the child's may stay.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: started.map_err(failed())?, said: LastLine::of(reader)? })
    }

    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Why a call failed: the process's own end explains it better, and may be seen a moment later.
    pub(crate) fn reason(&mut self, why: Bmv2Error) -> Bmv2Error {
        let began = Instant::now();
        while self.is_alive() && began.elapsed() < END_PATIENCE {
            thread::sleep(LOOK_EVERY);
        }
        self.check().err().unwrap_or(why)
    }

    /// An error with its last words if the process has ended.
    pub(crate) fn check(&mut self) -> Result<(), Bmv2Error> {
        let Ok(Some(status)) = self.child.try_wait() else { return Ok(()) };
        Err(Bmv2Error::Gone(format!("ended by itself, {status}{}", self.said.at_end())))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The last line that a process has written.
struct LastLine {
    line: Arc<Mutex<String>>,
    reading: Option<JoinHandle<()>>,
}

impl LastLine {
    /// Reads all that comes, on a thread of its own, so that the process never waits to write.
    fn of(reader: PipeReader) -> Result<Self, Bmv2Error> {
        let line = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&line);
        let read = move || {
            let lines = BufReader::new(reader).lines().map_while(Result::ok);
            for said in lines.filter(|said| !said.trim().is_empty() && said != NOISE) {
                sluice_log::log!(Bmv2Said, "simple_switch: {said}");
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = said;
            }
        };
        let reading = thread::Builder::new().name("bmv2 says".to_owned()).spawn(read);
        Ok(Self { line, reading: Some(reading.map_err(Bmv2Error::system("start a thread"))?) })
    }

    /// The last line of a process that has ended, behind a colon; nothing if it wrote none.
    fn at_end(&mut self) -> String {
        // The thread ends with the pipe; it cannot panic.
        self.reading.take().map(JoinHandle::join);
        let line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.is_empty() { String::new() } else { format!(": {line}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_by_itself_is_told_with_its_last_words() {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo no such port >&2; echo {NOISE}; exit 3")]);
        let mut process = Process::start(&mut command).expect("a shell");
        while process.is_alive() {
            thread::yield_now();
        }
        let said = process.reason(Bmv2Error::NotRoot).to_string();
        assert_eq!(said, "BMv2 ended by itself, exit status: 3: no such port");
    }
}
