//! Reads and prints how Rain is asked for: `rain:2,ranked`.

use alloc::boxed::Box;
use core::fmt;
use core::ops::RangeInclusive;

use sluice_units::{Adaptive, WholeSpan, span};
use sluice_wire::Nanos;
use sluice_wire::tables::{Feed, KINDS_MAX};

use super::selective::WAIT_MAX;
use super::sized::SizedQueue;
use super::stages::Kinds;
use super::{Rain, Selective, Targeted};
use crate::arguments;
use crate::config::Config;
use crate::early::Early;
use crate::front::Scheduler;
use crate::program::Program;
use crate::settings::{About, ProgramSettings};
use crate::traits::{ProgramTraits, Published, TASKS_MAX, TOKENS_MAX};

/// The default number of tokens of each worker.
const DEPTH: u8 = 2;
/// The argument for patience, and its default value in tasks.
const PATIENT: &str = "patient";
const PATIENCE: u8 = 16;
/// The argument for ranks.
const RANKED: &str = "ranked";
/// The argument for classes.
const CLASSES: &str = "classes";
/// The argument for workers that serve some tasks only.
const LABELS: &str = "labels";
/// The argument for how often a task asks again for a worker that meets its wish.
const WAIT: &str = "wait";
/// The argument for the error of tasks' stated sizes.
const SIZES: &str = "sizes";
const SIZE_ERROR_MAX: u8 = 200;
/// The argument for the longest wait that is worth having, and its range.
const TARGET: &str = "target";
const TARGETS: RangeInclusive<Nanos> = Nanos::from_micros(1)..=Nanos::from_millis(1_000);

/// The argument for how many tasks may wait in each slice.
const QUEUE: &str = "queue";

/// How many tokens each worker has, and what the program does with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    tokens: u8,
    ranked: bool,
    classes: u8,
    /// Whether workers are of kinds and serve some tasks only.
    labels: bool,
    /// How often tasks ask again for workers that meet their wishes.
    wait: u8,
    /// The error of tasks' stated sizes, in percent.
    size_error: u8,
    /// How many tasks have to wait before a worker sends more than one token.
    patience: u8,
    /// Whether slices may have targets.
    targets: bool,
    /// The longest wait in the switch that is worth having, where a slice's row gives none.
    target: Option<Nanos>,
    /// How many tasks may wait in each slice, if the slices' rows allow more.
    queue: Option<u16>,
    adaptive: Option<Adaptive>,
    early: Option<Early>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tokens: DEPTH,
            ranked: false,
            classes: 1,
            labels: false,
            wait: 0,
            size_error: 0,
            patience: 0,
            targets: false,
            target: None,
            queue: None,
            adaptive: None,
            early: None,
        }
    }
}

impl Settings {
    /// As many ranks as workers have tokens, rounded up to a power of two; the last rank stands for all
    /// beyond it.
    const fn ranks(&self) -> u8 {
        match (self.ranked, self.tokens) {
            (false, _) => 1,
            (true, ..=2) if self.adaptive.is_none() => 2,
            (true, _) => KINDS_MAX as u8,
        }
    }

    fn read(&mut self, argument: &str) -> Option<()> {
        if argument == RANKED {
            self.ranked = true;
            return Some(());
        }
        if argument == LABELS {
            self.labels = true;
            return Some(());
        }
        if argument == TARGET {
            self.targets = true;
            return Some(());
        }
        if let Some(early) = Early::take(argument) {
            self.early = Some(early);
            return Some(());
        }
        if let Some(patience) = patience(argument) {
            self.patience = patience;
            return Some(());
        }
        match argument.split_once('=') {
            Some((CLASSES, number)) => {
                self.classes =
                    arguments::number(number, 2..=4).filter(|classes| classes.is_power_of_two())?;
                return Some(());
            }
            Some((WAIT, passes)) => {
                (self.labels, self.wait) = (true, arguments::number(passes, 1..=WAIT_MAX)?);
                return Some(());
            }
            Some((SIZES, error)) => {
                self.size_error = arguments::number(error.strip_suffix('%')?, 0..=SIZE_ERROR_MAX)?;
                return Some(());
            }
            Some((TARGET, text)) => {
                self.target = Some(span(text).ok().filter(|target| TARGETS.contains(target))?);
                self.targets = true;
                return Some(());
            }
            Some((QUEUE, number)) => {
                self.queue = Some(number.parse().ok().filter(|queue| *queue > 0)?);
                return Some(());
            }
            _ => {}
        }
        match arguments::number(argument, 1..=8) {
            Some(tokens) => self.tokens = tokens,
            None => self.adaptive = Some(Adaptive::take(self.adaptive, argument)?),
        }
        Some(())
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.adaptive {
            None => write!(f, "{}", self.tokens)?,
            Some(adaptive) if self.tokens == DEPTH => adaptive.fmt(f)?,
            Some(adaptive) => write!(f, "{},{adaptive}", self.tokens)?,
        }
        if self.ranked {
            write!(f, ",{RANKED}")?;
        }
        if self.classes > 1 {
            write!(f, ",{CLASSES}={}", self.classes)?;
        }
        if self.labels {
            write!(f, ",{LABELS}")?;
        }
        if self.wait > 0 {
            write!(f, ",{WAIT}={}", self.wait)?;
        }
        if self.size_error > 0 {
            write!(f, ",{SIZES}={}%", self.size_error)?;
        }
        match self.target {
            Some(target) => write!(f, ",{TARGET}={}", WholeSpan(target))?,
            None if self.targets => write!(f, ",{TARGET}")?,
            None => {}
        }
        if let Some(queue) = self.queue {
            write!(f, ",{QUEUE}={queue}")?;
        }
        match self.patience {
            0 => {}
            PATIENCE => write!(f, ",{PATIENT}")?,
            other => write!(f, ",{PATIENT}={other}")?,
        }
        self.early.map_or(Ok(()), |early| write!(f, ",{early}"))
    }
}

impl ProgramSettings for Settings {
    fn about(&self) -> About {
        About {
            name: Rain::NAME,
            about: "one queue holds either waiting tasks or workers' tokens (a token: room for one task); \
                    where both meet, a task leaves",
            arguments: "N, how many tasks each worker may have at once (its tokens, its depth): 1 to 8, \
                        else 2; adaptive, depths and who serves which slice follow the load; advise, the \
                        same is found and told, but not done; theta=0.3, behind one of these two: the \
                        share of its wait that a task may spend at the worker, 0 to 1; slowdown=10, \
                        likewise: the p99 slowdown that is wished for, 2 to 255; replay, likewise: our \
                        rule for depths, not the paper's; stay, likewise: workers stay in their slices; \
                        ranked, a task goes where the fewest tasks stand before it; labels, tasks go to \
                        workers that have what they need (neither with ranked nor with classes); wait=8, \
                        likewise, and a task that wishes for labels goes round so often for who has them, \
                        1 to 64; classes=4, so many classes of tasks, 2 or 4: the first that waits goes \
                        first; sizes=10%, what tasks say of their size is off by this (simulator only); \
                        target=50us, a task that would wait longer in the switch is refused at once, 1us \
                        to 1s (not with ranked or labels, and the last class is refused first); target, \
                        likewise, but only in slices with a target of their own; queue=160, so many tasks \
                        wait in a slice at most, 1 to 65535, and one that comes then is refused (not with \
                        target, ranked, labels or classes); patient, workers send one token only, until 16 \
                        tasks wait in the switch; patient=8, the same with 8, 1 to 255; early, tokens \
                        leave before tasks end, as services tell when; early=10%, the same, told with this \
                        error (simulator only); early=learned, likewise, as tasks of one type took \
                        (simulator only)",
            example: "rain:2",
        }
    }

    fn take(&mut self, argument: &str) -> Option<()> {
        self.read(argument)?;
        // A program with labels tells tasks apart by what they need, and so excludes ranks and classes.
        // A target beside ranks was not built.
        let is_plain = !self.ranked && !self.labels && self.classes == 1;
        let fits = !(self.ranked && (self.labels || self.targets))
            && !(self.labels && (self.targets || self.classes > 1))
            && (self.queue.is_none() || is_plain && !self.targets);
        fits.then_some(())
    }

    fn traits(&self) -> ProgramTraits {
        let classes = if self.labels { KINDS_MAX as u8 } else { self.classes };
        let token_rings = if self.labels { classes } else { self.ranks() };
        let is_counted = classes > 1 || token_rings > 1;
        ProgramTraits {
            tasks_max: if is_counted { TASKS_MAX / 2 } else { TASKS_MAX },
            tokens_max: if is_counted { TOKENS_MAX * 2 } else { TOKENS_MAX },
            token_rings,
            adaptive: self.adaptive,
            writes_ahead: true,
            hosts_choose_depth: true,
            runs_in_kernel: !self.ranked && classes == 1 && self.queue.is_none(),
            takes_targets: self.targets,
            target: self.target,
            classes,
            kinds: if self.labels { classes } else { 1 },
            limits_each_class: self.labels,
            size_error: self.size_error,
            patience: self.patience,
            early: self.early,
            // Rain §4. No other paper gives figures for this program.
            published: Some(Published { stages: 11, sram: 0.241, entries: TASKS_MAX }),
            ..ProgramTraits::new(self.tokens, Feed::Tokens { ranked: self.ranked })
        }
    }

    fn build(&self, config: Config) -> Box<dyn Program> {
        if self.labels {
            return Box::new(Selective::new(config).with_wait(self.wait));
        }
        if self.targets {
            return Box::new(Targeted::new(config, self.target.unwrap_or_default(), self.classes));
        }
        if let Some(queue) = self.queue {
            return Box::new(SizedQueue::new(config, queue));
        }
        Box::new(Rain::of_kinds(config, Kinds { ranks: self.ranks(), classes: self.classes }))
    }
}

/// Reads `patient` or `patient=8`.
fn patience(argument: &str) -> Option<u8> {
    match argument.split_once('=') {
        None if argument == PATIENT => Some(PATIENCE),
        Some((PATIENT, tasks)) => arguments::number(tasks, 1..=u8::MAX),
        _ => None,
    }
}
