//! One logged event as one line, of text or of JSON.
//!
//! Whatever a string from outside contains, a line stays one line and commands no terminal: text has such
//! characters written out, and JSON escapes them.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::{self, Write as _};

use serde::Serialize;
use serde_json::Value;
use sluice_units::shown;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

use crate::events::LogEvent;

/// The schema of a line of JSON.
const SCHEMA: &str = "sluice.log.v1";

/// One event with all that its line says.
#[derive(Debug, Serialize)]
pub(crate) struct EventLine<'l> {
    schema: &'static str,
    timestamp: String,
    level: &'static str,
    event: String,
    process: &'l str,
    pid: u32,
    /// The module that logged it.
    target: String,
    message: String,
    #[serde(skip_serializing_if = "is_zero")]
    left_out: u64,
    fields: BTreeMap<&'static str, Value>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands on a reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl<'l> EventLine<'l> {
    /// An event of this moment.
    pub(crate) fn new(process: &'l str, level: Level, event: LogEvent, target: &str) -> Self {
        let mut timestamp = String::new();
        // A string takes all that is written.
        SystemTime.format_time(&mut Writer::new(&mut timestamp)).ok();
        Self {
            schema: SCHEMA,
            timestamp,
            level: level.as_str(),
            event: event.name().to_owned(),
            process,
            pid: std::process::id(),
            target: target.to_owned(),
            message: String::new(),
            left_out: 0,
            fields: BTreeMap::new(),
        }
    }

    /// What was logged through `tracing`: one of our events, or a library's line.
    pub(crate) fn of(process: &'l str, event: &Event<'_>) -> Self {
        let metadata = event.metadata();
        let mut line = Self::new(process, *metadata.level(), LogEvent::Library, metadata.target());
        event.record(&mut line);
        line
    }

    /// The same with this message.
    pub(crate) fn saying(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// The line as JSON, without its end.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("text and numbers have a JSON form")
    }

    /// The line as text, without its end.
    pub(crate) fn text(&self, coloured: bool) -> String {
        let level = match (coloured, self.level) {
            (true, "ERROR") => "\x1b[31mERROR\x1b[0m".to_owned(),
            (true, "WARN") => "\x1b[33m WARN\x1b[0m".to_owned(),
            (true, "INFO") => "\x1b[32m INFO\x1b[0m".to_owned(),
            (_, level) => format!("{level:>5}"),
        };
        let mut line = format!("{} {level} {}", self.timestamp, self.event);
        let mut add = |what: &str| {
            line.push(' ');
            line.push_str(&shown(what));
        };
        if self.event == LogEvent::Library.name() {
            add(&self.target);
            self.fields.iter().for_each(|(name, value)| add(&format!("{name}={value}")));
        }
        if !self.message.is_empty() {
            add(&self.message);
        }
        if self.left_out > 0 {
            add(&format!("({} like it before were left out)", self.left_out));
        }
        line
    }

    fn take(&mut self, field: &Field, value: Value) {
        match field.name() {
            "message" => self.message = text_of(value),
            "event" => self.event = text_of(value),
            "left_out" => self.left_out = value.as_u64().unwrap_or_default(),
            // What comes through the crate `log` says here where it is from.
            "log.target" => self.target = text_of(value),
            name if name.starts_with("log.") => {}
            name => drop(self.fields.insert(name, value)),
        }
    }
}

fn text_of(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

impl Visit for EventLine<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.take(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.take(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.take(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.take(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value.into());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.take(field, value.to_string().into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let mut text = String::new();
        // A string takes all that is written.
        write!(text, "{value:?}").ok();
        self.take(field, text.into());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(message: &str) -> EventLine<'static> {
        EventLine::new("worker w", Level::WARN, LogEvent::CallRefused, "sluice").saying(message.to_owned())
    }

    #[test]
    fn text_has_the_time_the_level_the_name_and_the_message() {
        let mut line = line("\"a\" was refused");
        line.left_out = 3;
        let text = line.text(false);
        let (time, said) = text.split_once(' ').expect("a time");
        assert_eq!(said, " WARN call-refused \"a\" was refused (3 like it before were left out)");
        assert!(time.len() == 27 && time.ends_with('Z') && time.as_bytes()[10] == b'T', "{time}");
        assert!(line.text(true).contains("\x1b[33m WARN\x1b[0m call-refused"));
    }

    proptest! {
        #[test]
        fn whatever_a_string_contains_a_line_stays_one_line(said in any::<String>()) {
            let of = line(&said);
            prop_assert!(!of.text(false).contains(|letter: char| letter.is_control()), "{}", of.text(false));
            let json = of.json();
            prop_assert!(!json.contains(|letter: char| letter < ' '), "{json}");
            let read: Value = serde_json::from_str(&json).expect("JSON");
            prop_assert_eq!(read["message"].as_str(), Some(said.as_str()));
        }
    }
}
