//! Which worker serves which task inside a slice, if the switch tells kinds of workers apart.
//!
//! The plan says which labels tasks of a type need and which labels workers may have. A worker's kind is
//! the one that has most of the worker's labels, and stands in its row in the switch; another set of labels
//! takes another generation. While no worker serves a class of tasks, the class is closed: its new tasks
//! are refused, and its waiting tasks are swept out. A slice's table of kinds and classes changes only
//! while the slice has no worker and no waiting task.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{SliceRow, SliceState, TableOp};
use sluice_wire::{Nanos, SliceId, TaskType, WorkerId};

use crate::controller::{Controller, SOON, wait};
use crate::ledger::Expect;
use crate::message::{Action, Answer, Refusal, Waiting};
use crate::note::Note;
use crate::slice::{CALM_READINGS, Slice};
use crate::view::ClassView;

impl Controller {
    /// The bits of labels with these names.
    pub(crate) fn labels(&self, names: &[String]) -> Result<Labels, Refusal> {
        let known = &self.plan.labels;
        let bit = |name: &String| {
            let place = known.iter().position(|label| label == name);
            place.map(|place| 1 << place).ok_or_else(|| Refusal::UnknownLabel {
                asked: name.clone(),
                known: if known.is_empty() { "none".to_string() } else { known.join(", ") },
            })
        };
        names.iter().map(bit).try_fold(0, |all, bit| Ok(all | bit?)).map(Labels)
    }

    /// The labels that a task may ask for, in the order of their bits.
    pub(crate) fn told_labels(&self) -> Vec<String> {
        if self.tells_kinds() { self.plan.labels.clone() } else { Vec::new() }
    }

    /// The kind of a worker with these labels in a slice; 0 if all workers are alike; `None` if the slice
    /// has no such kind.
    pub(crate) fn kind_in(&self, labels: Labels, slice: SliceId) -> Option<u8> {
        if self.tells_kinds() { self.serving(slice).kind_of(labels) } else { Some(0) }
    }

    /// Checks that a worker is of a kind that its slice knows.
    pub(crate) fn check_kind(&self, worker: &str, labels: Labels, slice: SliceId) -> Result<(), Refusal> {
        if self.kind_in(labels, slice).is_some() {
            return Ok(());
        }
        let kinds = self.serving(slice);
        let kinds: Vec<String> = kinds.kinds().iter().map(|kind| self.label_names(*kind)).collect();
        Err(Refusal::NoKind {
            worker: worker.to_string(),
            has: self.label_names(labels),
            slice: self.slice_name(slice),
            kinds: kinds.join("; "),
        })
    }

    /// Checks that tasks of a type are of a class that their slice knows.
    pub(crate) fn check_needs(&self, task_type: TaskType, slice: SliceId) -> Result<(), Refusal> {
        if !self.tells_kinds() || self.serving(slice).class_of(self.plan.needs_of(task_type)).is_some() {
            return Ok(());
        }
        let task_type = self.plan.type_shown(task_type);
        Err(Refusal::Unserved { slice: self.slice_name(slice), task_type })
    }

    /// Whether a token of a worker with these labels may meet a task of this type in this slice.
    pub(crate) fn may_meet(&self, labels: Labels, slice: SliceId, task_type: TaskType) -> bool {
        let serving = self.serving(slice);
        if !self.tells_kinds() || serving.is_wished() {
            return true;
        }
        let needs = self.plan.needs_of(task_type);
        let serves = serving.kind_of(labels).map_or(0, |kind| serving.serves(kind));
        let classes = serving.classes().iter().enumerate();
        classes.filter(|(_, class)| class.have(needs)).any(|(class, _)| serves >> class & 1 == 1)
    }

    /// Checks that a slice's table of kinds and classes is the plan's. If it is another plan's, no worker
    /// joins before the slice is empty.
    pub(crate) fn check_serving(&self, id: SliceId) -> Result<(), Answer> {
        let Some(slice) = self.slices.get(usize::from(id.0)) else { return Ok(()) };
        let is_planned = slice.row.serving == self.serving(id) || slice.may_change_hands();
        if is_planned || !self.tells_kinds() { Ok(()) } else { Err(wait(Waiting::SliceEmptying, SOON)) }
    }

    /// A slice was found empty: writes the plan's table of kinds and classes, which may have waited for
    /// that.
    pub(crate) fn take_hands(&mut self, now: Nanos, id: SliceId, out: &mut Vec<Action>) {
        if self.is_of_other_hands(id) {
            self.refresh_slice(now, id, out);
        }
    }

    /// Whether a row that was read back has another plan's table of kinds and classes. Then the slice's
    /// workers have to join anew.
    pub(crate) fn is_of_other_hands(&self, id: SliceId) -> bool {
        let found = self.slices.get(usize::from(id.0)).map(|slice| slice.row.serving);
        self.tells_kinds() && found != Some(self.serving(id))
    }

    /// A slice's table of kinds and classes from now on, and a bit for each class that no worker serves.
    pub(crate) fn serving_row(&self, id: SliceId) -> (Serving, u8) {
        let Some(slice) = self.slices.get(usize::from(id.0)).filter(|_| self.tells_kinds()) else {
            return (Serving::default(), 0);
        };
        let planned = self.serving(id);
        let serving = if slice.may_change_hands() { planned } else { slice.row.serving };
        let kinds = self.workers.iter().filter(|(_, w)| w.serves == Some(id)).map(|(_, w)| w.row.kind);
        let served = kinds.fold(0, |served, kind| served | serving.serves(kind));
        let classes = (1 << serving.classes().len()) - 1;
        (serving, classes & !served)
    }

    /// Handles classes that were closed or opened in an open slice.
    pub(crate) fn classes_turned(&mut self, now: Nanos, id: SliceId, was: SliceRow, out: &mut Vec<Action>) {
        let Some(slice) = self.slices.get_mut(usize::from(id.0)) else { return };
        let row = slice.row;
        if !row.open {
            return;
        }
        let before = if was.open { was.closed } else { 0 };
        if row.closed & !before != 0 {
            slice.calm_left = CALM_READINGS;
            self.ledger.ask(TableOp::Drain, Expect::Done, out);
            self.sweep_soon(now, id);
        }
        for (class, needs) in row.serving.classes().iter().enumerate() {
            let (is, was) = (row.closed >> class & 1 == 1, before >> class & 1 == 1);
            if is != was {
                let (slice, needs) = (self.slice_name(id), self.label_names(*needs));
                out.push(Action::Note(if is {
                    Note::ClassClosed { slice, needs }
                } else {
                    Note::ClassOpened { slice, needs }
                }));
            }
        }
    }

    /// Tells the switch what tasks of each type need.
    pub(crate) fn write_needs(&mut self, out: &mut Vec<Action>) {
        let types = self.shape.filter(|_| self.tells_kinds()).map_or(0, |shape| shape.types);
        for task_type in (0..types).map(TaskType) {
            let needs = self.plan.needs_of(task_type);
            self.ledger.ask(TableOp::SetNeeds(task_type, needs), Expect::Done, out);
        }
    }

    /// Asks for a new generation of a worker whose kind is not the one in its row.
    pub(crate) fn rejoin_if_other_kind(&mut self, worker: WorkerId) {
        let Some(known) = self.workers.get(worker.0) else { return };
        let kind = self.kind_in(known.labels, known.slice);
        let is_other = known.in_switch && known.row.slice == known.slice && kind != Some(known.row.kind);
        if let Some(worker) = self.workers.get_mut(worker.0).filter(|_| is_other) {
            worker.rejoin = true;
        }
    }

    fn tells_kinds(&self) -> bool {
        self.shape.is_some_and(|shape| shape.kinds > 1)
    }

    /// A slice's table of kinds and classes, as the plan has it.
    pub(crate) fn serving(&self, slice: SliceId) -> Serving {
        self.plan.slices.get(usize::from(slice.0)).map_or_else(Serving::default, |slice| slice.serving)
    }

    /// The names of these labels.
    pub(crate) fn names_of(&self, labels: Labels) -> Vec<String> {
        let has = |(place, _): &(usize, &String)| labels.have(Labels(1 << place));
        self.plan.labels.iter().enumerate().filter(has).map(|(_, name)| name.clone()).collect()
    }

    /// The classes of a slice, and how many workers each has; empty if all tasks are alike.
    pub(crate) fn classes_in(&self, id: SliceId) -> Vec<ClassView> {
        let Some(slice) = self.slices.get(usize::from(id.0)).filter(|_| self.tells_kinds()) else {
            return Vec::new();
        };
        let serving = slice.row.serving;
        if serving == Serving::default() {
            return Vec::new();
        }
        let kinds: Vec<u8> =
            self.workers.iter().filter(|(_, w)| w.serves == Some(id)).map(|(_, w)| w.row.kind).collect();
        let types = self.types_of(id);
        let class = |(class, needs): (u8, &Labels)| ClassView {
            needs: self.names_of(*needs),
            types: (types.iter().copied())
                .filter(|t| serving.class_of(self.plan.needs_of(*t)) == Some(class))
                .collect(),
            workers: kinds.iter().filter(|kind| serving.meets(**kind) >> class & 1 == 1).count() as u32,
            refused: slice.row.closed >> class & 1 == 1,
        };
        (0..).zip(serving.classes()).map(class).collect()
    }

    fn label_names(&self, labels: Labels) -> String {
        let names = self.names_of(labels);
        if names.is_empty() { "no label".to_string() } else { names.join("+") }
    }
}

impl Slice {
    /// Whether the slice has no worker and no waiting task, so that its table of kinds and classes may
    /// change.
    pub(crate) fn may_change_hands(&self) -> bool {
        self.serving == 0 && (self.was_never_open() || !self.row.open && self.calm_left == 0)
    }

    /// How many waiting tasks no worker will serve.
    pub(crate) fn wait_in_vain(&self, state: &SliceState) -> u32 {
        if !self.row.open {
            return state.balance.min(0).unsigned_abs();
        }
        let rings = state.tasks_in.0.iter().zip(state.tasks_out.0).enumerate();
        let closed = rings.filter(|(class, _)| self.row.closed >> class & 1 == 1);
        closed.map(|(_, (came, left))| came.since(left).max(0) as u32).sum()
    }
}
