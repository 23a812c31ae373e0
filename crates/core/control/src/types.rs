//! Which slice serves which task types, and whether a worker can serve them too.
//!
//! A worker's token may meet any task that waits in its slice. So a type is mapped to a slice only while it
//! is served by every worker whose tokens may be there, also by a worker that is leaving. And a worker
//! joins a slice only if it also serves the types that were mapped there before and whose tasks may still
//! wait.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sluice_wire::serving::Labels;
use sluice_wire::tables::TableOp;
use sluice_wire::{Nanos, SliceId, TaskType};

use crate::controller::{Controller, SOON, wait};
use crate::ledger::Expect;
use crate::message::{Action, Answer, CallId, Refusal, Waiting, WorkerHello};
use crate::registration::Fate;
use crate::tier::Tier;
use crate::worker::Worker;

/// How many questions to the switch may be open when a type is to be mapped.
const OPEN_MAX: usize = 4_096;

impl Controller {
    pub(crate) fn set_type(
        &mut self,
        now: Nanos,
        call: CallId,
        task_type: TaskType,
        slice: Option<String>,
        out: &mut Vec<Action>,
    ) {
        match self.check_type(task_type, slice) {
            Ok(slice) => {
                let before = self.types.get(&task_type).copied();
                for slice in [before, slice].into_iter().flatten() {
                    self.slice_used(slice);
                }
                if let Some(before) = before.filter(|before| Some(*before) != slice) {
                    self.type_left(now, before, task_type);
                }
                match slice {
                    Some(slice) => self.types.insert(task_type, slice),
                    None => self.types.remove(&task_type),
                };
                self.ledger.ask(TableOp::SetType(task_type, slice), Expect::Type(call), out);
            }
            Err(answer) => out.push(Action::Answer { call, answer }),
        }
    }

    /// The slice that a new worker asks for, or the first slice whose types it serves all.
    pub(crate) fn slice_for(&self, hello: &WorkerHello, labels: Labels) -> Result<SliceId, Refusal> {
        if !hello.slice.is_empty() {
            let slice = self.slice_called(&hello.slice)?;
            return self.check_served(&hello.name, &hello.types, labels, slice).map(|()| slice);
        }
        let serves = |slice: &SliceId| {
            let needed = self.types_met(labels, *slice);
            let is_of_a_kind = self.kind_in(labels, *slice).is_some();
            is_of_a_kind && !needed.is_empty() && needed.iter().all(|t| hello.types.contains(t))
        };
        (0..self.slices.len()).map(|i| SliceId(i as u16)).find(serves).ok_or_else(|| {
            Refusal::NoSliceForTypes {
                served: self.plan.types_shown(&hello.types),
                known: self.known_slices(),
            }
        })
    }

    pub(crate) fn slice_called(&self, name: &str) -> Result<SliceId, Refusal> {
        let unknown = || Refusal::UnknownSlice { asked: name.to_string(), known: self.known_slices() };
        let index = self.slices.iter().position(|s| s.name == name).ok_or_else(unknown)?;
        Ok(SliceId(index as u16))
    }

    /// Checks that a worker serves every type whose tasks its tokens may meet: all types of the slice whose
    /// labels it has.
    pub(crate) fn check_served(
        &self,
        worker: &str,
        types: &[TaskType],
        labels: Labels,
        slice: SliceId,
    ) -> Result<(), Refusal> {
        self.check_kind(worker, labels, slice)?;
        let needed = self.types_met(labels, slice);
        if needed.iter().all(|t| types.contains(t)) {
            return Ok(());
        }
        Err(Refusal::TypesNotServed {
            worker: worker.to_string(),
            slice: self.slice_name(slice),
            needed: self.plan.types_shown(&needed),
            served: self.plan.types_shown(types),
        })
    }

    /// Checks that a worker serves the types that were mapped to the slice before, while their tasks may
    /// still wait there.
    pub(crate) fn check_former(&self, types: &[TaskType], labels: Labels, id: SliceId) -> Result<(), Answer> {
        let serves = |t: TaskType| types.contains(&t) || !self.may_meet(labels, id, t);
        match self.slices.get(usize::from(id.0)) {
            Some(slice) if !slice.former_are_served(serves) => Err(wait(Waiting::FormerTypes, SOON)),
            _ => Ok(()),
        }
    }

    pub(crate) fn slice_exists(&self, slice: SliceId) -> bool {
        usize::from(slice.0) < self.slices.len()
    }

    /// A slice's name; empty if there is no such slice.
    pub fn slice_name(&self, slice: SliceId) -> String {
        self.slices.get(usize::from(slice.0)).map_or_else(String::new, |s| s.name.clone())
    }

    pub(crate) fn types_of(&self, slice: SliceId) -> Vec<TaskType> {
        self.types.iter().filter(|(_, s)| **s == slice).map(|(t, _)| *t).collect()
    }

    /// The types of a slice's tasks that the tokens of a worker with these labels may meet.
    fn types_met(&self, labels: Labels, slice: SliceId) -> Vec<TaskType> {
        self.types_of(slice).into_iter().filter(|t| self.may_meet(labels, slice, *t)).collect()
    }

    fn check_type(&self, task_type: TaskType, slice: Option<String>) -> Result<Option<SliceId>, Answer> {
        if self.plan.tier != Tier::Rack {
            return Err(Answer::Refused { why: Refusal::FixedAbove });
        }
        if let Some(answer) = self.unreachable() {
            return Err(answer);
        }
        if self.ledger.len() > OPEN_MAX {
            return Err(wait(Waiting::TooManyCalls, SOON));
        }
        let limit = self.shape.map_or(0, |shape| shape.types);
        if task_type.0 >= limit {
            return Err(Answer::Refused {
                why: Refusal::UnknownType { task_type: self.plan.type_shown(task_type), limit },
            });
        }
        let Some(name) = slice else { return Ok(None) };
        let slice = self.slice_called(&name).map_err(|why| Answer::Refused { why })?;
        self.check_needs(task_type, slice).map_err(|why| Answer::Refused { why })?;
        let leaves = |w: &Worker| w.fate != Fate::Stays || w.slice != slice;
        let keeps_tokens = |w: &Worker| leaves(w) && w.may_have_tokens_in(slice);
        let serves = |w: &Worker| w.types.contains(&task_type) || !self.may_meet(w.labels, slice, task_type);
        if self.workers.iter().any(|(_, w)| keeps_tokens(w) && !serves(w)) {
            return Err(wait(Waiting::WorkersLeaving, SOON));
        }
        let members = || self.workers.iter().filter(|(_, w)| w.slice == slice && w.fate == Fate::Stays);
        if members().any(|(_, w)| w.registration.name.is_none()) {
            return Err(wait(Waiting::NamesUnknown, self.plan.renew_every));
        }
        if let Some((_, worker)) = members().find(|(_, w)| !serves(w)) {
            return Err(Answer::Refused {
                why: Refusal::TypesNotServed {
                    worker: worker.registration.shown(),
                    slice: name,
                    needed: self.plan.type_shown(task_type),
                    served: self.plan.types_shown(&worker.types),
                },
            });
        }
        Ok(Some(slice))
    }

    /// The slices and their types, for the refusal of a call that named another slice.
    fn known_slices(&self) -> String {
        let of = |(i, slice): (usize, &crate::slice::Slice)| {
            alloc::format!(
                "{} (types {})",
                slice.name,
                self.plan.types_shown(&self.types_of(SliceId(i as u16)))
            )
        };
        self.slices.iter().enumerate().map(of).collect::<Vec<_>>().join(", ")
    }
}
