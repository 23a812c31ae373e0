//! Counts beside the switch's passes: the age of each task that leaves (promise 2), the number of
//! recirculating packets, and how far a pointer runs ahead of the tasks that came (promise 6).

use std::collections::BTreeMap;

use sluice_switch::{Arrival, Cargo, Circulating, Verdict};
use sluice_wire::{Age, Attempt, Budget, Dispatch, Nanos, Packet, Reject, Submit, SweepOf, TaskJob};

use super::budgets::{UNIT, check_left};
use super::limits::SLICES;
use super::oracle::{TaskKey, key};

/// Times in the switch are cut to whole ticks, and spans rounded up, so an age may differ by this.
const SLACK: u32 = 2;
/// How many packets may recirculate. For a slice: as many tasks as may wait, plus fixes and sweeps. For a
/// worker: its tokens.
const ROUNDS_OF_SLICE: u32 = 32 + 16;
const ROUNDS_OF_WORKER: u32 = 16;

#[derive(Debug, Default)]
pub(super) struct SwitchLife {
    /// The tries that may be in the switch, with their times of arrival, ages and budgets.
    came: BTreeMap<(TaskKey, Attempt), (Nanos, Age, Budget)>,
    /// How many tasks ever came.
    pub(super) tasks: u32,
    going_round: u32,
    /// How many sweeps recirculate in each slice, for tokens and for tasks.
    sweeps: [[u32; 2]; SLICES],
}

impl SwitchLife {
    /// Checks the verdict on an arrival at this time, with so many worker rows.
    pub(super) fn check(
        &mut self,
        now: Nanos,
        arrival: &Arrival,
        verdict: &Verdict,
        worker_rows: u16,
    ) -> Result<(), String> {
        self.count_arrival(now, arrival, verdict);
        match verdict {
            Verdict::Again(circulating) => self.count_recirculation(circulating)?,
            Verdict::Late { reject, .. } => {
                self.going_round += 1;
                self.check_late(now, reject)?;
            }
            _ => {}
        }
        let most = SLICES as u32 * ROUNDS_OF_SLICE + u32::from(worker_rows) * ROUNDS_OF_WORKER;
        if self.going_round > most {
            let going = self.going_round;
            return Err(format!("promise 6: {going} packets go round in a switch with room for {most}"));
        }
        match verdict {
            Verdict::Send { packet: Packet::Dispatch(task), .. } => self.check_age(now, task),
            _ => Ok(()),
        }
    }

    /// Whether a sweep recirculates.
    pub(super) fn has_sweep(&self) -> bool {
        self.sweeps.as_flattened().iter().any(|sweeps| *sweeps > 0)
    }

    fn count_arrival(&mut self, now: Nanos, arrival: &Arrival, verdict: &Verdict) {
        let is_refused = match verdict {
            Verdict::Drop(_) => true,
            Verdict::Send { packet, .. } => matches!(packet, Packet::Reject(_) | Packet::Notice(_)),
            _ => false,
        };
        match arrival {
            Arrival::Round(circulating) => {
                self.going_round -= 1;
                if let Some(sweeps) = self.sweeps_of(circulating) {
                    *sweeps -= 1;
                }
            }
            Arrival::Wire { packet: Packet::Submit(task), .. } => self.record_submit(now, task, is_refused),
            Arrival::Wire { packet: Packet::Job(job), .. } => {
                let each = std::iter::successors(Some(*job), TaskJob::rest);
                each.for_each(|job| self.record_submit(now, job.first(), is_refused));
            }
            _ => {}
        }
    }

    fn record_submit(&mut self, now: Nanos, task: &Submit, is_refused: bool) {
        self.tasks += 1;
        if !is_refused {
            self.came.insert((key(task.task), task.attempt), (now, task.age, task.budget));
        }
    }

    /// Promise 2: the worker that gets a task is told its whole age.
    fn check_age(&mut self, now: Nanos, task: &Dispatch) -> Result<(), String> {
        let Some((at, age, budget)) = self.came.remove(&(key(task.task), task.attempt)) else {
            return Ok(());
        };
        check_left(task.task, budget, now.since(at), task.budget)?;
        let least = age.plus(now.since(at));
        if task.age.0.saturating_add(SLACK) >= least.0 {
            return Ok(());
        }
        let (told, least) = (task.age.0, least.0);
        Err(format!("promise 2: task {} is said to be {told} units old, and is {least}", task.task))
    }

    /// Promise 9: nobody is refused as late in time.
    fn check_late(&mut self, now: Nanos, reject: &Reject) -> Result<(), String> {
        let Some((at, _, budget)) = self.came.remove(&(key(reject.task), reject.attempt)) else {
            return Ok(());
        };
        let left = budget.after(now.since(at));
        match left.span() {
            Some(span) if span <= UNIT.times(2) => Ok(()),
            _ => Err(format!("promise 9: task {} is refused as late, with {left:?} left", reject.task)),
        }
    }

    /// Promise 6: in a slice one sweep of a sort recirculates at most, however many the controller sends.
    fn count_recirculation(&mut self, circulating: &Circulating) -> Result<(), String> {
        self.going_round += 1;
        match self.sweeps_of(circulating) {
            Some(sweeps) if *sweeps > 0 => Err("promise 6: two sweeps of a sort go round a slice".to_owned()),
            Some(sweeps) => {
                *sweeps += 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn sweeps_of(&mut self, circulating: &Circulating) -> Option<&mut u32> {
        let Cargo::Sweep(sweep) = &circulating.cargo else { return None };
        let sort = usize::from(sweep.of == SweepOf::Tasks);
        Some(&mut self.sweeps[usize::from(sweep.slice.0)][sort])
    }
}
