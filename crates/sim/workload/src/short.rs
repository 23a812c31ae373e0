//! The short form of a workload, for command lines.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use sluice_wire::{Nanos, TaskType};

use super::class::{BYTES_MAX, PRIORITY_MAX};
use super::{
    Arrivals, Class, Flows, LARGE_BYTES, ONLY_CLASS, Service, Trace, Workload, WorkloadError, WorkloadTable,
    text,
};

const USAGE: &str = "write SERVICE, or NAME=SHARE@SERVICE+NAME=SHARE@SERVICE, each with `,large=SHARE`, \
                     `,bytes=NUMBER`, \
                     `,type=NUMBER`, `,priority=NUMBER` or `,budget=SPAN` if need be, and \
                     `;ARRIVALS` behind it all";

/// Nanoseconds per byte on a link of 100 Gb/s.
const NS_A_BYTE: f64 = 0.08;

impl Workload {
    /// Reads `exp:10us`, a mix, or `trace:FILE`; files are searched in the working directory.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        Self::parse_in(text, Path::new(""))
    }

    /// Reads the same forms; files are searched in `folder`.
    pub fn parse_in(text: &str, folder: &Path) -> Result<Self, WorkloadError> {
        if let Some(table) = WorkloadTable::read(text) {
            return table?.resolve(folder);
        }
        if let Some(trace) = Trace::named(text, folder, None) {
            return Self::of_trace(trace?);
        }
        if let Some(flows) = Flows::named(text, folder) {
            return Self::of_flows(flows?);
        }
        let (classes, arrivals) = match text.rsplit_once(';') {
            Some((classes, arrivals)) => (classes, Some(arrivals)),
            None => (text, None),
        };
        let classes = read_classes(classes, folder)?;
        let names: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
        let arrivals = arrivals.map(|text| Arrivals::parse_in(text, folder, &names)).transpose()?;
        Self::new(classes, arrivals.unwrap_or_default())
    }

    /// A flow's class is the part of the table into which its size falls. Its service is the time of its
    /// bytes on a link of 100 Gb/s, so a load is the share of the hosts' links that flows take.
    fn of_flows(flows: Flows) -> Result<Self, WorkloadError> {
        let class = |(place, (most, share, mean)): (usize, (u64, f64, f64))| {
            Ok(Class {
                name: short_size(most),
                task_type: TaskType(place as u16),
                share,
                service: Service::parse(&format!("const:{}ns", (mean * NS_A_BYTE).max(1.0).round()))?,
                large: 0.0,
                bytes: LARGE_BYTES,
                priority: None,
                budget: None,
            })
        };
        let classes = flows.sizes().parts().into_iter().enumerate().map(class).collect::<Result<_, _>>()?;
        Self::new(classes, Arrivals::Flows(Arc::new(flows)))
    }
}

/// The name of a class of flows by its size: `10k`, `2M`.
fn short_size(bytes: u64) -> String {
    match bytes {
        bytes if bytes > 0 && bytes.is_multiple_of(1_000_000) => format!("{}M", bytes / 1_000_000),
        bytes if bytes > 0 && bytes.is_multiple_of(1_000) => format!("{}k", bytes / 1_000),
        bytes => bytes.to_string(),
    }
}

impl FromStr for Workload {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

fn read_classes(text: &str, folder: &Path) -> Result<Vec<Class>, WorkloadError> {
    let wrong = |why| WorkloadError::Workload { text: text.to_owned(), why };
    if !starts_a_class(text) {
        let (service, Options { large, bytes, task_type, priority, budget }) =
            options(text).map_err(wrong)?;
        let (name, task_type) = (ONLY_CLASS.to_owned(), TaskType(task_type.unwrap_or(0)));
        let service = Service::parse_in(service, folder)?;
        return Ok(vec![Class { name, task_type, share: 1.0, service, large, bytes, priority, budget }]);
    }
    let parts = split_classes(text);
    let classes = parts.iter().enumerate().map(|(i, part)| {
        let complete = part.split_once('=').and_then(|(name, rest)| Some((name, rest.split_once('@')?)));
        let (name, (share, rest)) = complete.ok_or_else(|| wrong(format!("`{part}` has no `@`; {USAGE}")))?;
        let share = text::share(share).map_err(|why| wrong(format!("the share of `{name}`: {why}")))?;
        let (service, Options { large, bytes, task_type, priority, budget }) =
            options(rest).map_err(wrong)?;
        let service = Service::parse_in(service, folder)?;
        Ok(Class {
            name: name.to_owned(),
            task_type: TaskType(task_type.unwrap_or(i as u16)),
            share,
            service,
            large,
            bytes,
            priority,
            budget,
        })
    });
    classes.collect()
}

/// Splits at each `+` that starts a class; file names may contain others.
fn split_classes(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices('+') {
        if starts_a_class(&text[at + 1..]) {
            parts.push(&text[start..at]);
            start = at + 1;
        }
    }
    parts.push(&text[start..]);
    parts
}

fn starts_a_class(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| text::check_name(name).is_ok())
}

/// The options behind a service.
struct Options {
    large: f64,
    bytes: u16,
    task_type: Option<u16>,
    priority: Option<u8>,
    budget: Option<Nanos>,
}

/// Splits `SERVICE,large=SHARE,bytes=NUMBER,type=NUMBER,priority=NUMBER,budget=SPAN`.
fn options(text: &str) -> Result<(&str, Options), String> {
    let mut service = text;
    let mut options =
        Options { large: 0.0, bytes: LARGE_BYTES, task_type: None, priority: None, budget: None };
    while let Some((rest, (key, value))) =
        service.rsplit_once(',').and_then(|(rest, option)| Some((rest, option.split_once('=')?)))
    {
        service = rest;
        match key {
            "large" => options.large = text::share(value).map_err(|why| format!("large: {why}"))?,
            "bytes" => {
                let wrong = |_| format!("bytes: `{value}` is not a number from 9 to {BYTES_MAX}");
                options.bytes = value.parse().map_err(wrong)?;
            }
            "type" => {
                let wrong = |_| format!("type: `{value}` is not a number from 0 to {}", u16::MAX);
                options.task_type = Some(value.parse().map_err(wrong)?);
            }
            "priority" => {
                let wrong = |_| format!("priority: `{value}` is not a number from 0 to {PRIORITY_MAX}");
                options.priority = Some(value.parse().map_err(wrong)?);
            }
            "budget" => {
                options.budget = Some(text::span(value).map_err(|why| format!("budget: {why}"))?);
            }
            _ => return Err(text::unknown("option", key, ["large", "bytes", "type", "priority", "budget"])),
        }
    }
    Ok((service, options))
}
