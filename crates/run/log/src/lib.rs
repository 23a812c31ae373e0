//! What the processes of a rack log: each event has a name, and is one line of text or JSON on stderr.
//!
//! [`log!`](crate::log!) logs an event through `tracing`, so that an application with a subscriber of its own
//! gets our events there, with the field `event`. [`start`] is the subscriber of our own programs.
//! `RUST_LOG` chooses among the lines by module and level.
#![forbid(unsafe_code)]

mod admission;
mod events;
mod filter;
mod limit;
mod line;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::panic::{self, PanicHookInfo};
use std::sync::OnceLock;
use std::thread;

use serde::{Deserialize, Serialize};
#[doc(hidden)]
pub use tracing;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;

pub use events::LogEvent;
pub use limit::LineLimit;
use line::EventLine;

/// Logs an event: its name in [`LogEvent`], fields as `tracing` takes them, and a message for people, which
/// says all that the fields say.
///
/// ```
/// sluice_log::log!(WorkerRegistered, host = "w-1", worker = 3, "{}: worker {}", "w-1", 3);
/// ```
#[macro_export]
macro_rules! log {
    ($event:ident, $($what:tt)+) => {
        $crate::log_at!($crate::LogEvent::$event, $crate::LogEvent::$event.level(), $($what)+)
    };
}

/// Logs an event that is known only when it happens, at a level that all such events have.
#[macro_export]
macro_rules! log_at {
    ($event:expr, $level:expr, $($what:tt)+) => {{
        let event: $crate::LogEvent = $event;
        if let Some(left_out) = event.admit() {
            $crate::tracing::event!($level, event = event.name(), left_out, $($what)+);
        }
    }};
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogForm {
    /// As text, in colour on a terminal.
    #[default]
    Text,
    /// As JSON, one object a line, also what a command tells people.
    Json,
}

impl LogForm {
    /// The name, as the flag takes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// What all lines of this process have in common.
#[derive(Debug)]
struct LoggedProcess {
    name: String,
    form: LogForm,
}

static PROCESS: OnceLock<LoggedProcess> = OnceLock::new();

/// Sends log lines to stderr: those that `RUST_LOG` asks for, else all that tell something at level info;
/// with `quiet`, errors only. `process` is the name of this process in them, as metrics have it.
///
/// A program that set up its own logging before keeps it. A line that cannot be written is lost, which ends
/// nothing.
pub fn start(process: &str, form: LogForm, quiet: bool) {
    PROCESS.get_or_init(|| LoggedProcess { name: process.to_owned(), form });
    if form == LogForm::Json {
        panic::set_hook(Box::new(|panicked| tell(LogEvent::Panicked, told_of(panicked))));
    }
    let (filter, complaint) = filter::of(std::env::var_os("RUST_LOG").as_deref(), quiet);
    let colour =
        io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let lines = tracing_subscriber::fmt::layer()
        .event_format(LineFormat)
        .with_writer(io::stderr)
        .with_ansi(colour)
        // If stderr is closed, an error about it could not be printed either.
        .log_internal_errors(false);
    tracing_subscriber::registry().with(lines).with(filter).try_init().ok();
    if let Some(why) = complaint {
        log!(FilterMalformed, why, "RUST_LOG has no effect: {why}; write it as info,sluice_rpc=debug");
    }
}

/// A panic in one message, with its stack if `RUST_BACKTRACE` asks for that.
fn told_of(panicked: &PanicHookInfo<'_>) -> String {
    let stack = Backtrace::capture();
    let thread = thread::current();
    let name = thread.name().unwrap_or("without a name");
    let said = format!("thread {name}: {panicked}");
    if stack.status() == BacktraceStatus::Captured { format!("{said}\n{stack}") } else { said }
}

/// Whether this process writes log lines to stderr.
pub fn is_started() -> bool {
    PROCESS.get().is_some()
}

/// Whether this process writes JSON to stderr.
pub fn is_json() -> bool {
    PROCESS.get().is_some_and(|process| process.form == LogForm::Json)
}

/// Writes to stderr what a command tells people, whatever is logged beside it: as it is, or as the JSON of
/// [`LogEvent::Said`] or [`LogEvent::Failed`]. Errors are ignored.
pub fn tell(event: LogEvent, what: impl fmt::Display) {
    let line = match PROCESS.get() {
        Some(LoggedProcess { name, form: LogForm::Json }) => {
            let said = what.to_string().trim_end().to_owned();
            EventLine::new(name, event.level(), event, "sluice").saying(said).json()
        }
        _ => what.to_string(),
    };
    // In one write, so that lines of several threads do not mix.
    io::stderr().lock().write_all(format!("{line}\n").as_bytes()).ok();
}

/// The message of a line in a log: of one of JSON the message alone, of another all.
pub fn message_of(line: &str) -> String {
    let read = serde_json::from_str::<serde_json::Value>(line).ok();
    let message = read.as_ref().and_then(|read| read["message"].as_str());
    message.unwrap_or(line).to_owned()
}

/// Writes each event in the form of this process.
#[derive(Debug)]
struct LineFormat;

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let line = EventLine::of(PROCESS.get().map_or("", |process| &process.name), event);
        let coloured = writer.has_ansi_escapes();
        let line = if is_json() { line.json() } else { line.text(coloured) };
        writeln!(writer, "{line}")
    }
}
