//! A span of a task's way, and the names of traces and spans, which follow from the task's id.

use sluice_wire::TaskId;

/// The name of a task's trace. Whoever knows the task's id knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId {
    high: u64,
    low: u64,
}

impl TraceId {
    /// The trace of a task. Of the client's incarnation only the half counts that the switch keeps, too.
    pub const fn of(task: TaskId) -> Self {
        let (incarnation, sequence) = task.kept();
        let seed = (incarnation as u64) << 32 | sequence.0 as u64;
        let (high, low) = (mixed(seed), mixed(seed ^ 0x51_75_1c_e0_7a_5c_00_01));
        // All zeros would be no name.
        Self { high, low: low | 1 }
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        [self.high.to_be_bytes(), self.low.to_be_bytes()].concat()
    }

    /// The name of the client's span, under which all others are.
    pub const fn root(self) -> u64 {
        self.span(0)
    }

    /// The name of the span that `part` numbers.
    pub const fn span(self, part: u64) -> u64 {
        mixed(self.low.wrapping_add(mixed(part))) | 1
    }
}

/// A task's id as spans have it.
pub fn task_name(task: TaskId) -> String {
    format!("{:016x}-{}", task.incarnation.0, task.sequence.0)
}

/// The last steps of `SplitMix64`: each bit of what goes in changes half of what comes out.
const fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What a span is to those on the other side of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A part of another span.
    Internal,
    /// The switch's or the worker's side of a task.
    Server,
    /// The client's side of a task.
    Client,
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A number.
    Number(i64),
    /// Text.
    Text(String),
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// A part of a task's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpan {
    pub trace: TraceId,
    pub id: u64,
    /// The span under which it is; `None` for the client's.
    pub parent: Option<u64>,
    pub name: &'static str,
    pub kind: SpanKind,
    /// In nanoseconds since 1970, as its end.
    pub from_ns: u64,
    pub to_ns: u64,
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// What happened meanwhile, and when.
    pub events: Vec<(u64, &'static str)>,
    /// Why what it spans failed.
    pub failure: Option<String>,
}

impl TaskSpan {
    /// A part of the span `parent`, from and to these nanoseconds since 1970, of which no more is told yet.
    pub fn within(
        trace: TraceId,
        (id, parent): (u64, u64),
        name: &'static str,
        (from_ns, to_ns): (u64, u64),
    ) -> Self {
        let (kind, parent) = (SpanKind::Internal, Some(parent));
        let (attributes, events) = (Vec::new(), Vec::new());
        Self { trace, id, parent, name, kind, from_ns, to_ns, attributes, events, failure: None }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sluice_wire::{Incarnation, Serial};

    use super::*;

    #[test]
    fn each_task_has_a_trace_of_its_own_and_each_part_a_name_of_its_own() {
        let tasks = (0..4_u64).flat_map(|life| (0..1_000).map(move |number| (life << 20, number)));
        let task = |(life, number)| TaskId { incarnation: Incarnation(life), sequence: Serial(number) };
        let traces: Vec<_> = tasks.map(task).map(TraceId::of).collect();
        let names: BTreeSet<_> = traces.iter().map(|trace| trace.bytes()).collect();
        assert_eq!(names.len(), traces.len());
        let parts: BTreeSet<_> =
            traces.iter().flat_map(|trace| (0..4).map(|part| trace.span(part))).collect();
        assert_eq!(parts.len(), 4 * traces.len());
        assert!(!parts.contains(&0) && names.iter().all(|name| name.len() == 16));
    }

    #[test]
    fn the_half_of_an_incarnation_that_a_switch_forgets_changes_nothing() {
        let of = |life| TraceId::of(TaskId { incarnation: Incarnation(life), sequence: Serial(7) });
        assert_eq!(of(0xaaaa_0000_1234), of(0x1234));
        assert_ne!(of(0x1235), of(0x1234));
    }
}
