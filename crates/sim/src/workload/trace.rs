//! Tasks as they came once: a file of `MICROSECONDS,CLASS[,SERVICE_MICROSECONDS[,LARGE]]` lines in order of
//! time.
//!
//! The first column counts from the start, with up to three decimals. Without a service one is drawn from the
//! class; `LARGE` is 1 for a task of more than 8 bytes, else 0. `#` starts a remark.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;

use sluice_wire::Nanos;

use super::text::{self, Cell};
use super::{Request, SERVICE_MAX, WorkloadError};

/// A trace that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    label: String,
    classes: Vec<String>,
    tasks: Vec<TracedTask>,
    is_scaled: bool,
}

/// One task of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedTask {
    /// When it is due, from the start.
    pub at: Nanos,
    /// Its class, by its place in [`Trace::classes`].
    pub class: u8,
    /// How long it takes, when the trace says so.
    pub service: Option<Nanos>,
    /// Whether it carries more than 8 bytes, when the trace says so.
    pub large: Option<bool>,
}

/// A trace with its own times.
const AS_IS: &str = "trace:";
/// A trace with its times stretched.
const SCALED: &str = "scaled-trace:";

/// As many classes as a task's `u8` can name.
pub(super) const CLASSES_MAX: usize = 256;

impl Trace {
    /// Reads a trace; its classes are numbered as in `known`, or as they first come when that is `None`.
    pub fn read(path: &Path, known: Option<&[String]>) -> Result<Self, WorkloadError> {
        let file = |source| WorkloadError::File { path: path.to_owned(), source };
        let mut trace = Self { label: path.display().to_string(), ..Self::default() };
        trace.classes.extend(known.into_iter().flatten().cloned());
        let mut last_line = 0;
        for (i, line) in BufReader::new(File::open(path).map_err(file)?).lines().enumerate() {
            let line = line.map_err(file)?;
            last_line = i + 1;
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            trace.take(&line, known.is_some()).map_err(|(column, why)| WorkloadError::Content {
                path: path.to_owned(),
                line: i + 1,
                column,
                why,
            })?;
        }
        if trace.tasks.is_empty() {
            let why = format!("there are no tasks; add {LINE} lines");
            return Err(WorkloadError::Content {
                path: path.to_owned(),
                line: last_line.max(1),
                column: 1,
                why,
            });
        }
        Ok(trace)
    }

    /// The file, as it was named.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Reads it as a workload names it: `trace:FILE`, or `scaled-trace:FILE` to have its times stretched to
    /// any rate; none if `text` is neither.
    pub(super) fn named(
        text: &str,
        folder: &Path,
        known: Option<&[String]>,
    ) -> Option<Result<Self, WorkloadError>> {
        let (is_scaled, file) = match text.strip_prefix(SCALED) {
            Some(file) => (true, file),
            None => (false, text.strip_prefix(AS_IS)?),
        };
        let read = Self::read(&folder.join(file), known);
        Some(read.map(|trace| Self { label: file.to_owned(), is_scaled, ..trace }))
    }

    /// Whether its times are stretched to the rate that is asked for.
    pub const fn is_scaled(&self) -> bool {
        self.is_scaled
    }

    /// As a workload names it.
    pub(super) fn text(&self) -> String {
        format!("{}{}", if self.is_scaled { SCALED } else { AS_IS }, self.label)
    }

    /// When a task is due if the trace is to bring so many a second.
    pub(super) fn due(&self, task: &TracedTask, rate_per_s: f64) -> Nanos {
        if self.is_scaled {
            Nanos((task.at.0 as f64 * (self.rate_per_s() / rate_per_s)) as u64)
        } else {
            task.at
        }
    }

    /// The names of the classes.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The tasks, in order of time.
    pub fn tasks(&self) -> &[TracedTask] {
        &self.tasks
    }

    /// Tasks per second from the start to the last one.
    pub fn rate_per_s(&self) -> f64 {
        let span = self.tasks.last().map_or(Nanos(0), |last| last.at);
        self.tasks.len() as f64 * 1e9 / span.0.max(1) as f64
    }

    fn take(&mut self, line: &str, closed: bool) -> Result<(), (usize, String)> {
        let cells = text::cells(line);
        let [at, class, ref rest @ ..] = cells[..] else {
            return Err((1, format!("`{line}` has no comma: write {LINE}")));
        };
        if let Some(extra) = rest.get(2) {
            return Err((extra.column, format!("`{}` is more than a line holds: write {LINE}", extra.text)));
        }
        let due = text::micros(at.text).map_err(|why| (at.column, why))?;
        if self.tasks.last().is_some_and(|last| last.at > due) {
            return Err((at.column, format!("{} comes after a later time: sort the lines", at.text)));
        }
        let class = self.class(class, closed)?;
        let service = rest.first().map(service).transpose()?;
        let large = rest.get(1).map(large).transpose()?;
        self.tasks.push(TracedTask { at: due, class, service, large });
        Ok(())
    }

    fn class(&mut self, cell: Cell<'_>, closed: bool) -> Result<u8, (usize, String)> {
        if let Some(class) = self.classes.iter().position(|name| name == cell.text) {
            return Ok(class as u8);
        }
        if closed {
            let names = self.classes.iter().map(String::as_str);
            return Err((cell.column, text::unknown("class", cell.text, names)));
        }
        text::check_name(cell.text).map_err(|why| (cell.column, why))?;
        if self.classes.len() == CLASSES_MAX {
            return Err((cell.column, format!("there are more than {CLASSES_MAX} classes")));
        }
        self.classes.push(cell.text.to_owned());
        Ok((self.classes.len() - 1) as u8)
    }
}

const LINE: &str = "MICROSECONDS,CLASS[,SERVICE_MICROSECONDS[,LARGE]]";

fn service(cell: &Cell<'_>) -> Result<Nanos, (usize, String)> {
    let service = text::micros(cell.text).map_err(|why| (cell.column, why))?;
    if service > Nanos(0) && service <= SERVICE_MAX {
        return Ok(service);
    }
    let most = text::show_micros(SERVICE_MAX);
    Err((cell.column, format!("the service {} is not from 0.001 to {most} microseconds", cell.text)))
}

fn large(cell: &Cell<'_>) -> Result<bool, (usize, String)> {
    match cell.text {
        "0" => Ok(false),
        "1" => Ok(true),
        other => {
            Err((cell.column, format!("`{other}` does not say whether the task is large: write 0 or 1")))
        }
    }
}

/// Writes a trace task by task.
#[derive(Debug)]
pub struct TraceWriter<W> {
    out: W,
    classes: Vec<String>,
}

impl<W: Write> TraceWriter<W> {
    /// Starts a trace of these classes.
    pub fn new(mut out: W, classes: impl IntoIterator<Item = String>) -> io::Result<Self> {
        writeln!(out, "# {LINE}")?;
        Ok(Self { out, classes: classes.into_iter().collect() })
    }

    /// Adds a task; tasks come in order of time.
    pub fn write(&mut self, request: &Request) -> io::Result<()> {
        let (at, service) = (text::show_micros(request.at), text::show_micros(request.service));
        let class = self.classes.get(usize::from(request.class));
        let class =
            class.ok_or_else(|| io::Error::other("a task of a class that the trace does not have"))?;
        writeln!(self.out, "{at},{class},{service},{}", u8::from(request.large))
    }

    /// Ends the trace.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}
