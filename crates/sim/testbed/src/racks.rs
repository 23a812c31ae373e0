//! Racks below spines: the switches of a datacenter and their relation (Horus §4.1, §5.1).

use serde::{Deserialize, Serialize};
use sluice_wire::Nanos;

use super::toml_text::span;

/// The most workers of one pool that a testbed may have: a pool of the paper has at most 20,000.
pub(super) const WORKERS_MAX: u32 = 1 << 16;
/// The most workers that a leaf's tables hold.
const RACK_MAX: u32 = 4_096;
/// The most leaves that a removal from a spine's list can name.
const RACKS_MAX: usize = 4_095;
const SPINES_MAX: u16 = 256;
/// The shortest time between two looks at the queues.
const WATCH_MIN: Nanos = Nanos(1_000);

/// The racks of the workers, and the spines above them; none if all workers are below one switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RackLayout {
    /// Spines above the racks. Each has a block of racks, in order.
    pub spines: u16,
    /// Workers in each rack; together they have to be the testbed's workers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<u32>,
    /// Alternatively so many workers in each rack; the rest is in the last.
    #[serde(skip_serializing_if = "is_zero")]
    pub each: u32,
    /// The delay between a spine and a leaf, one way.
    #[serde(with = "span")]
    pub hop: Nanos,
    /// The delay between a rack's switch and the server of the rack that its leaf runs on, one way; the
    /// switch then only forwards. Zero: the switch is the leaf.
    #[serde(with = "span", skip_serializing_if = "is_never")]
    pub detour: Nanos,
    /// How often the imbalance of queues is measured; zero: never.
    #[serde(with = "span")]
    pub watch: Nanos,
    /// How often the times of tasks that ended since are reported; zero: never.
    #[serde(with = "span", skip_serializing_if = "is_never")]
    pub interval: Nanos,
    /// Switches that fail for a while.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
}

/// The failure of a leaf or a spine: it is silent, and its memory is lost (Horus §4.3, Appendix C). A leaf
/// that fails at the beginning is a rack that joins later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Outage {
    /// The leaf, by its rack's index; without one the spine fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spine: Option<u32>,
    #[serde(with = "span")]
    pub at: Nanos,
    /// How long the controller does not notice the failure, so that tasks still go to the switch.
    #[serde(with = "span")]
    pub heard_after: Nanos,
    /// After how long the switch is back and the controller knows so; zero: never.
    #[serde(with = "span")]
    pub lasts: Nanos,
}

impl RackLayout {
    /// Whether all workers are below one switch.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// How many of these workers are in each rack.
    pub fn sizes(&self, workers: u32) -> Vec<u32> {
        if self.each == 0 {
            return self.workers.clone();
        }
        let rest = workers % self.each;
        let full = (0..workers / self.each).map(|_| self.each);
        full.chain((rest > 0).then_some(rest)).collect()
    }

    /// What is wrong with it, and what to write; `None` if it is right.
    pub(super) fn complaint(&self, workers: u32, queue: u32) -> Option<String> {
        if self.are_none() {
            return None;
        }
        let sizes = self.sizes(workers);
        self.bad_sizes(workers, &sizes)
            .or_else(|| bad_mean(u64::from(queue) + u64::from(workers), &sizes))
            .or_else(|| self.bad_spines(sizes.len()))
            .or_else(|| {
                let times = [("watch", self.watch), ("interval", self.interval)];
                let is_rare = |time: Nanos| time == Nanos(0) || time >= WATCH_MIN;
                let (name, _) = times.into_iter().find(|(_, time)| !is_rare(*time))?;
                Some(format!("racks.{name} is too short: look every 1us at most"))
            })
            .or_else(|| self.bad_outages(sizes.len()))
    }

    fn bad_outages(&self, racks: usize) -> Option<String> {
        let spines = usize::from(self.spines);
        self.outages.iter().enumerate().find_map(|(at, outage)| {
            let why = outage.complaint(racks, spines)?;
            Some(format!("racks.outages: the one numbered {at} {why}"))
        })
    }

    fn bad_sizes(&self, workers: u32, sizes: &[u32]) -> Option<String> {
        if self.workers.is_empty() == (self.each == 0) {
            let why = "racks need their workers: write racks.workers with a number for each, or racks.each, \
                 and not both";
            return Some(why.to_owned());
        }
        if let Some(rack) = sizes.iter().position(|size| *size == 0) {
            return Some(format!(
                "racks.workers: rack {rack} has no workers, so that it would weigh nothing: leave it out"
            ));
        }
        if let Some((rack, size)) = sizes.iter().enumerate().find(|(_, size)| **size > RACK_MAX) {
            return Some(format!(
                "racks: rack {rack} has {size} workers, and a leaf's tables hold {RACK_MAX}: make it \
                 several racks"
            ));
        }
        let sum: u64 = sizes.iter().map(|size| u64::from(*size)).sum();
        (sum != u64::from(workers)).then(|| {
            format!("racks.workers have {sum} workers together, the testbed {workers}: make them the same")
        })
    }

    fn bad_spines(&self, racks: usize) -> Option<String> {
        if racks > RACKS_MAX {
            return Some(format!(
                "racks: {racks} of them are more than the {RACKS_MAX} that a spine's list can name: make \
                 them larger"
            ));
        }
        if !(1..=SPINES_MAX).contains(&self.spines) {
            return Some(format!("racks.spines = {}: write a number from 1 to {SPINES_MAX}", self.spines));
        }
        let blocks = racks.div_ceil(racks.div_ceil(usize::from(self.spines)));
        (blocks < usize::from(self.spines)).then(|| {
            format!(
                "racks.spines = {}: {racks} racks in equal blocks need {blocks}, and the others would have \
                 no rack below them; write {blocks}",
                self.spines
            )
        })
    }
}

/// Whether a rack's mean queue could exceed its 16 bits of whole tasks, if the rack got all tasks that may
/// be under way.
fn bad_mean(tasks: u64, sizes: &[u32]) -> Option<String> {
    let overflows = |size: &u32| tasks > u64::from(u16::MAX) * u64::from(*size);
    let rack = sizes.iter().position(overflows)?;
    Some(format!(
        "queue: with the workers' own {tasks} tasks may be under way, and the mean of rack {rack} with {} \
         workers tells at most 65535 a worker: make the queue shorter",
        sizes[rack]
    ))
}

impl Outage {
    fn complaint(&self, racks: usize, spines: usize) -> Option<String> {
        let beyond = |what: &str, named: u32, there: usize| {
            (named as usize >= there).then(|| {
                format!("is of {what} {named}, and there are {there}: name one from 0 to {}", there - 1)
            })
        };
        match (self.leaf, self.spine) {
            (Some(leaf), None) => beyond("leaf", leaf, racks),
            (None, Some(spine)) => beyond("spine", spine, spines),
            _ => Some("is of no switch, or of two: write leaf or spine".to_owned()),
        }
        .or_else(|| {
            (self.lasts > Nanos(0) && self.heard_after > self.lasts)
                .then(|| "is heard of when it is over: make heard_after at most lasts".to_owned())
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_never(span: &Nanos) -> bool {
    *span == Nanos(0)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use crate::Testbed;

    #[test]
    fn racks_that_cannot_be_are_refused_in_one_line_with_what_is_wrong() {
        for (text, key) in [
            ("spines = 1", "racks.workers"),
            ("spines = 1\nworkers = [16, 16]\neach = 8", "not both"),
            ("spines = 1\nworkers = [32, 0]", "rack 1 has no workers"),
            ("spines = 1\nworkers = [16, 15]", "31 workers together"),
            ("spines = 0\nworkers = [16, 16]", "racks.spines = 0"),
            ("spines = 3\nworkers = [16, 16]", "write 2"),
            ("spines = 1\neach = 8\nwatch = \"10ns\"", "racks.watch"),
            ("spines = 1\neach = 8\nhop = \"11s\"", "racks.hop"),
            ("spines = 1\neach = 8\ndetour = \"11s\"", "racks.detour"),
            ("spines = 1\neach = 8\ninterval = \"10ns\"", "racks.interval"),
            ("spines = 1\neach = 8\noutages = [{ leaf = 4 }]", "there are 4"),
            ("spines = 1\neach = 8\noutages = [{ spine = 1 }]", "spine 1"),
            ("spines = 1\neach = 8\noutages = [{ at = \"1s\" }]", "leaf or spine"),
            (
                "spines = 1\neach = 8\noutages = [{ leaf = 1, heard_after = \"2s\", lasts = \"1s\" }]",
                "at most lasts",
            ),
        ] {
            let said = Testbed::parse(&format!("workers = 32\n[racks]\n{text}")).unwrap_err().to_string();
            assert!(said.contains(key) && !said.contains('\n'), "{text}: {said}");
        }
        for (text, key) in [
            ("workers = 5000\n[racks]\nspines = 1\neach = 5000", "tables hold 4096"),
            ("workers = 5000\n[racks]\nspines = 1\neach = 1", "5000 of them"),
            ("workers = 70000\n[racks]\nspines = 1\neach = 32", "workers = 70000"),
            ("workers = 2\nqueue = 65534\n[racks]\nspines = 1\neach = 1", "65536 tasks may be under way"),
        ] {
            let said = Testbed::parse(text).unwrap_err().to_string();
            assert!(said.contains(key) && !said.contains('\n'), "{text}: {said}");
        }
    }

    #[test]
    fn racks_of_one_size_take_all_workers() {
        let testbed = Testbed::parse("workers = 50\n[racks]\nspines = 1\neach = 24").unwrap();
        assert_eq!(testbed.racks.sizes(testbed.workers), [24, 24, 2]);
        assert_eq!(Testbed::parse(&testbed.to_toml()).unwrap(), testbed);
    }
}
