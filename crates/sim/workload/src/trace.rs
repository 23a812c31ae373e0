//! Recorded tasks: a file of `MICROSECONDS,CLASS[,SERVICE_MICROSECONDS[,LARGE]]` lines in order of time.
//!
//! The first column counts from the start, with up to three decimals. A line without a service gets one
//! that is drawn from its class. `LARGE` is 1 for a task of more than 8 bytes, else 0. `#` starts a
//! remark.

use std::io::{self, Read, Write};
use std::path::Path;

use sluice_system::text::{self as system_text, TextError};
use sluice_wire::Nanos;

use super::cluster::{self, BIG, ClusterEvents};
use super::made::{self, MADE};
use super::text::{self, Cell};
use super::{MEAN_MAX, Request, SERVICE_MAX, WorkloadError};
use crate::files;

/// A trace that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    label: String,
    classes: Vec<String>,
    tasks: Vec<TracedTask>,
    form: Form,
    left_out: u64,
}

/// The form in which a workload names a trace, which decides how its times are used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Form {
    /// The trace's own times.
    #[default]
    AsIs,
    /// Times that are scaled to any rate.
    Scaled,
    /// Events of a cluster: times are scaled too, and services are scaled to a mean.
    Cluster { mean: Nanos, big: f64 },
}

/// One task of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracedTask {
    /// When the task is due, from the start of the run.
    pub at: Nanos,
    /// The index of the task's class in [`Trace::classes`].
    pub class: u8,
    /// The task's service time, if the trace has one.
    pub service: Option<Nanos>,
    /// Whether the task has more than 8 bytes, if the trace says so.
    pub large: Option<bool>,
}

/// The prefix of a trace with its own times.
const AS_IS: &str = "trace:";
/// The prefix of a trace with scaled times.
const SCALED: &str = "scaled-trace:";
/// The prefix of a cluster's events.
const CLUSTER: &str = "cluster-trace:";

/// How many classes a task's `u8` can name.
pub(super) const CLASSES_MAX: usize = 256;

impl Trace {
    /// Reads a trace. Its classes are numbered as in `known`; with `None` in the order in which they first
    /// appear.
    pub fn read(path: &Path, known: Option<&[String]>) -> Result<Self, WorkloadError> {
        let mut trace = Self::empty(path, known);
        let last_line = each_line(path, |line| trace.take(line, known.is_some()))?;
        trace.with_tasks(path, last_line, &format!("add {LINE} lines"))
    }

    /// Reads a cluster's task events. Services are scaled to this mean, and tasks that request more than
    /// `big` of the largest machine get a class of their own.
    fn read_cluster(
        path: &Path,
        known: Option<&[String]>,
        mean: Nanos,
        big: f64,
    ) -> Result<Self, WorkloadError> {
        let mut trace = Self::empty(path, known);
        let mut events = ClusterEvents::new(big);
        let take = |line: &str| events.take(line, |cell| trace.class(cell, known.is_some()));
        let last_line = if path.file_name().is_some_and(|name| name == MADE) {
            each_line_of(made::lines().as_bytes(), path, take)?
        } else {
            each_line(path, take)?
        };
        trace.left_out = events.left_out();
        let tasks = events.finish(mean).into_iter();
        trace.tasks = tasks
            .map(|task| TracedTask {
                at: task.at,
                class: task.class,
                service: Some(task.service),
                large: Some(false),
            })
            .collect();
        trace.form = Form::Cluster { mean, big };
        if known.is_none() {
            trace.keep_classes_with_tasks();
        }
        trace.with_tasks(
            path,
            last_line,
            "none was submitted, scheduled and finished in it: take a longer part",
        )
    }

    fn empty(path: &Path, known: Option<&[String]>) -> Self {
        let classes = known.into_iter().flatten().cloned().collect();
        Self { label: path.display().to_string(), classes, ..Self::default() }
    }

    /// Returns the trace, or an error if it has no tasks.
    fn with_tasks(self, path: &Path, last_line: usize, helps: &str) -> Result<Self, WorkloadError> {
        if !self.tasks.is_empty() {
            return Ok(self);
        }
        let (path, line) = (path.to_owned(), last_line.max(1));
        Err(WorkloadError::Content { path, line, column: 1, why: format!("there are no tasks; {helps}") })
    }

    /// Removes the classes without a task.
    fn keep_classes_with_tasks(&mut self) {
        let mut has = vec![false; self.classes.len()];
        self.tasks.iter().for_each(|task| has[usize::from(task.class)] = true);
        let number = |class: u8| has[..usize::from(class)].iter().filter(|has| **has).count() as u8;
        self.tasks.iter_mut().for_each(|task| task.class = number(task.class));
        let mut has = has.iter();
        self.classes.retain(|_| has.next().copied().unwrap_or_default());
    }

    /// The name of the file, as it was given.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Reads the forms of a workload: `trace:FILE`, `scaled-trace:FILE` with times scaled to any rate, or
    /// `cluster-trace:FILE:MEAN`. `None` if `text` has another form.
    pub(super) fn named(
        text: &str,
        folder: &Path,
        known: Option<&[String]>,
    ) -> Option<Result<Self, WorkloadError>> {
        if let Some(text) = text.strip_prefix(CLUSTER) {
            return Some(Self::named_cluster(text, folder, known));
        }
        let (form, file) = match text.strip_prefix(SCALED) {
            Some(file) => (Form::Scaled, file),
            None => (Form::AsIs, text.strip_prefix(AS_IS)?),
        };
        let read = Self::read(&folder.join(file), known);
        Some(read.map(|trace| Self { label: file.to_owned(), form, ..trace }))
    }

    /// Reads `FILE:MEAN`, or `FILE:MEAN:BIG`.
    fn named_cluster(text: &str, folder: &Path, known: Option<&[String]>) -> Result<Self, WorkloadError> {
        let wrong = |why: String| WorkloadError::Workload { text: format!("{CLUSTER}{text}"), why };
        let usage = || {
            wrong(format!(
                "write {CLUSTER}FILE:MEAN or {CLUSTER}FILE:MEAN:BIG, such as {CLUSTER}day.csv:500us:0.1"
            ))
        };
        let (rest, last) = text.rsplit_once(':').ok_or_else(usage)?;
        let (file, mean, big) = match (text::span(last), rest.rsplit_once(':')) {
            (Ok(mean), _) => (rest, mean, BIG),
            (Err(_), Some((file, mean))) => {
                let big = text::share(last).map_err(|why| wrong(format!("what is big: {why}")))?;
                (file, text::span(mean).map_err(|why| wrong(format!("the mean service: {why}")))?, big)
            }
            (Err(_), None) => return Err(usage()),
        };
        if mean == Nanos(0) || mean > MEAN_MAX {
            let most = text::show_span(MEAN_MAX);
            return Err(wrong(format!(
                "the mean service {} is not from 1ns to {most}",
                text::show_span(mean)
            )));
        }
        let read = Self::read_cluster(&folder.join(file), known, mean, big);
        read.map(|trace| Self { label: file.to_owned(), ..trace })
    }

    /// Whether its times are scaled to the rate that is asked for.
    pub const fn is_scaled(&self) -> bool {
        !matches!(self.form, Form::AsIs)
    }

    /// How many submissions of a cluster's trace became no task, because they did not finish, or not within
    /// the trace.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The priority of a class's tasks, 0 first, if the trace has priorities.
    pub(super) fn priority(&self, class: usize) -> Option<u8> {
        matches!(self.form, Form::Cluster { .. }).then(|| cluster::urgency(&self.classes[class])).flatten()
    }

    /// The text by which a workload names it.
    pub(super) fn text(&self) -> String {
        let label = &self.label;
        match self.form {
            Form::AsIs => format!("{AS_IS}{label}"),
            Form::Scaled => format!("{SCALED}{label}"),
            Form::Cluster { mean, big } => {
                let mean = text::show_span(mean);
                if big.to_bits() == BIG.to_bits() {
                    format!("{CLUSTER}{label}:{mean}")
                } else {
                    format!("{CLUSTER}{label}:{mean}:{big}")
                }
            }
        }
    }

    /// When a task is due if the trace is to give `rate_per_s` tasks a second.
    pub(super) fn due(&self, task: &TracedTask, rate_per_s: f64) -> Nanos {
        if self.is_scaled() {
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

    /// Tasks per second, from the start to the last task.
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

/// Calls `take` for each line that is no comment, and adds the file and the line to its errors. Returns the
/// number of lines.
fn each_line(
    path: &Path,
    take: impl FnMut(&str) -> Result<(), (usize, String)>,
) -> Result<usize, WorkloadError> {
    let file = |why: io::Error| WorkloadError::File { path: path.to_owned(), source: why.into() };
    each_line_of(files::open(path).map_err(file)?, path, take)
}

fn each_line_of(
    bytes: impl Read,
    path: &Path,
    mut take: impl FnMut(&str) -> Result<(), (usize, String)>,
) -> Result<usize, WorkloadError> {
    let read = system_text::each_line(bytes, |line, row| {
        if row.trim().is_empty() || row.trim_start().starts_with('#') {
            return Ok(());
        }
        take(row).map_err(|(column, why)| Unread::Content(line, column, why))
    });
    read.map_err(|why| match why {
        Unread::File(source) => WorkloadError::File { path: path.to_owned(), source },
        Unread::Content(line, column, why) => {
            WorkloadError::Content { path: path.to_owned(), line, column, why }
        }
    })
}

/// Why reading a trace stopped early.
enum Unread {
    File(TextError),
    /// Line, column, and what is wrong.
    Content(usize, usize, String),
}

impl From<TextError> for Unread {
    fn from(why: TextError) -> Self {
        Self::File(why)
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

    /// Adds a task; tasks must be in order of time.
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
