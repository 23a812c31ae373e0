//! Which worker serves which task in a run, if the program tells kinds of workers apart. Checks promise 8
//! for such programs: no task waits beyond a few passes while a token that serves it is parked, and tasks
//! leave in the promised order.

use sluice_events::dice::Dice;
use sluice_switch::{Parked, Program, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{KINDS_MAX, TableAnswer, TableOp, WorkerState};
use sluice_wire::{Attempt, Dispatch, Packet, Submit, TaskId, TaskType, WorkerId};

use super::turns::{PassedOver, between_turns};

/// Within so many recirculations a task meets a token that serves it; the number allows for stale tokens.
const ROUNDS: u32 = 400;

/// The labels that workers have and types need.
#[derive(Clone, Debug, Default)]
pub(super) struct DrawnLabels {
    pub(super) serving: Serving,
    has: Vec<Labels>,
    /// The needs of types; types without an entry need no label.
    pub(super) needs: Vec<(TaskType, Labels)>,
}

impl DrawnLabels {
    /// Draws the labels from a stream of their own.
    pub(super) fn draw(dice: &mut Dice, workers: usize) -> Self {
        let sets: Vec<Labels> = (0..KINDS_MAX as u8).map(Labels).collect();
        let has: Vec<Labels> = (0..workers).map(|_| Labels(dice.below(sets.len() as u64) as u8)).collect();
        let served = |needs: &Labels| has.iter().any(|has| has.have(*needs));
        let mut needs: Vec<Labels> = sets.into_iter().filter(served).collect();
        if needs.len() > 1 && dice.chance(200) {
            needs.remove(0);
        }
        let serving = Serving::of(&needs, &has).unwrap_or_default();
        let serving = if dice.chance(250) { serving.wished() } else { serving };
        let of_type = dice.pick(&serving.classes().iter().map(|class| class.0.into()).collect::<Vec<u64>>());
        let needs = if dice.chance(300) { vec![(TaskType(0), Labels(of_type as u8))] } else { Vec::new() };
        Self { serving, has, needs }
    }

    /// These labels, with each entry repeated for so many workers.
    pub(super) fn of_each(self, workers: usize) -> Self {
        let has = self.has.iter().flat_map(|has| std::iter::repeat_n(*has, workers)).collect();
        Self { has, ..self }
    }

    /// The names of a worker's labels.
    pub(super) fn names_of(&self, worker: usize) -> Vec<String> {
        let has = self.has.get(worker).copied().unwrap_or_default();
        let own = NAMES.iter().enumerate().filter(|(bit, _)| has.have(Labels(1 << bit)));
        own.map(|(_, name)| (*name).to_owned()).collect()
    }

    /// The labels that a task needs: its own and those of its type.
    fn needs_of(&self, task_type: TaskType, own: Labels) -> Labels {
        let of_type =
            self.needs.iter().find(|(of, _)| *of == task_type).map_or(Labels::NONE, |(_, needs)| *needs);
        own.and(of_type)
    }

    /// The class of a task that names these labels itself.
    pub(super) fn class_of(&self, task_type: TaskType, own: Labels) -> Option<u8> {
        self.serving.class_of(self.needs_of(task_type, own))
    }

    /// Checks that a worker that was sent a task has the labels that the task needs.
    pub(super) fn check_sent(&self, worker: usize, task: &Dispatch) -> Result<(), String> {
        let needs = self.needs_of(task.task_type, Labels(task.constraints));
        let has = self.has.get(worker).copied().unwrap_or_default();
        if self.serving.is_wished() || has.have(needs) {
            return Ok(());
        }
        Err(format!(
            "promise 8: worker {worker} has labels {:#b} and was sent a task that needs {:#b}",
            has.0, needs.0
        ))
    }

    fn class_of_task(&self, task: &Submit) -> u8 {
        self.class_of(task.task_type, Labels(task.constraints)).unwrap_or_default()
    }

    /// The classes that have a waiting task, one bit each.
    fn waiting(&self, queue: &Parked) -> u8 {
        queue.tasks.iter().fold(0, |waiting, task| waiting | 1 << self.class_of_task(task))
    }
}

/// The names of the labels in all runs.
const NAMES: [&str; 2] = ["gpu", "ssd"];

pub(super) fn names() -> Vec<String> {
    NAMES.map(str::to_owned).to_vec()
}

/// The state of the checks that are made beside each pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Fairness {
    /// For each slice, how many recirculations passed while a task could have been served.
    waits: Vec<u32>,
    /// How many packets recirculate.
    going: u32,
    /// How often each class of a slice was passed over by tokens of each kind, from when they came. A token
    /// that came before a class had a task, and recirculates still, had its turn before.
    passed_over: Vec<[PassedOver; KINDS_MAX]>,
}

/// What arrived for a pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Came {
    /// The worker whose token came from the network.
    pub(super) token: Option<WorkerId>,
    /// Whether it was a recirculating packet.
    pub(super) was_round: bool,
}

/// The state of a queue around a pass.
struct Passed<'a> {
    slice: usize,
    before: &'a Parked,
    after: &'a Parked,
    /// The kinds of the parked tokens of live workers, one bit each.
    live_kinds: u8,
    /// The task that was sent to a worker, or that a token passed over because it was late.
    sent: Option<(TaskId, Attempt)>,
    /// The kind of the worker whose token was granted.
    granted: Option<u8>,
    /// Whether the pass was of a recirculating packet.
    was_round: bool,
}

/// The state of a worker in the switch.
fn state(program: &mut dyn Program, worker: WorkerId) -> Option<WorkerState> {
    match program.table(TableOp::ReadWorker(worker)) {
        TableAnswer::Worker(state) => Some(state),
        _ => None,
    }
}

impl Fairness {
    /// Checks the queues before and after a pass.
    pub(super) fn check(
        &mut self,
        labels: &DrawnLabels,
        program: &mut dyn Program,
        (before, after): (&[Parked], &[Parked]),
        (came, verdict): (Came, &Verdict),
    ) -> Result<(), String> {
        let goes_on = matches!(verdict, Verdict::Again(_) | Verdict::Late { .. });
        self.going += u32::from(goes_on);
        self.going -= u32::from(came.was_round);
        let sent = match verdict {
            Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => {
                Some((dispatch.task, dispatch.attempt))
            }
            Verdict::Late { reject, .. } => Some((reject.task, reject.attempt)),
            _ => None,
        };
        // A granted token takes a task or recirculates; any other is answered or dropped.
        let granted = came.token.filter(|_| goes_on || sent.is_some());
        let granted = granted.and_then(|worker| state(program, worker)?.row);
        for (slice, (before, after)) in before.iter().zip(after).enumerate() {
            let live = after.tokens.iter().filter_map(|(worker, generation)| {
                state(program, *worker).filter(|state| state.generation_out == *generation)?.row
            });
            let live_kinds = live.fold(0, |kinds, row| kinds | 1 << row.kind);
            let granted = granted.filter(|row| usize::from(row.slice.0) == slice).map(|row| row.kind);
            let was_round = came.was_round;
            self.check_slice(labels, &Passed { slice, before, after, live_kinds, sent, granted, was_round })?;
        }
        Ok(())
    }

    fn check_slice(&mut self, labels: &DrawnLabels, passed: &Passed<'_>) -> Result<(), String> {
        let slice = passed.slice;
        if self.waits.len() <= slice {
            self.waits.resize(slice + 1, 0);
            self.passed_over.resize(slice + 1, [PassedOver::default(); KINDS_MAX]);
        }
        self.check_wait(labels, passed)?;
        let is_sent = |task: &&Submit| passed.sent == Some((task.task, task.attempt));
        let left = passed.before.tasks.iter().find(is_sent);
        if let Some(left) = left {
            check_oldest(labels, passed, left)?;
        }
        self.check_turn(labels, passed, left)
    }

    /// While a token that serves a waiting task is parked, some packet has to recirculate that will bring
    /// them together.
    fn check_wait(&mut self, labels: &DrawnLabels, passed: &Passed<'_>) -> Result<(), String> {
        let slice = passed.slice;
        let could =
            |task: &Submit| labels.serving.served_by(labels.class_of_task(task)) & passed.live_kinds != 0;
        let waits = &mut self.waits[slice];
        if !passed.after.tasks.iter().any(could) {
            *waits = 0;
            return Ok(());
        }
        *waits += u32::from(passed.was_round);
        if self.going > 0 && *waits <= ROUNDS {
            return Ok(());
        }
        Err(format!("promise 8: a task waits in slice {slice}, where a token that serves it is parked"))
    }

    /// Counts how often classes were passed over. A class that the kind of a granted token serves has its
    /// turn before the token recirculates, and then a waiting task of the class is taken in that same pass.
    fn check_turn(
        &mut self,
        labels: &DrawnLabels,
        passed: &Passed<'_>,
        left: Option<&Submit>,
    ) -> Result<(), String> {
        let slice = passed.slice;
        for counts in self.passed_over[slice].iter_mut().filter(|counts| !counts.is_zero()) {
            counts.forget_all_but(labels.waiting(passed.before));
        }
        let Some(kind) = passed.granted else { return Ok(()) };
        let waiting = labels.waiting(passed.before) & labels.serving.serves(kind);
        let taken = left.map(|task| labels.class_of_task(task));
        let most = |_| between_turns(KINDS_MAX as u8);
        match self.passed_over[slice][usize::from(kind)].count(waiting, taken, most) {
            Some((class, times)) => {
                Err(format!("promise 8: class {class} of slice {slice} was passed over {times} times"))
            }
            None => Ok(()),
        }
    }
}

/// Checks that a waiting task that left for a worker was the oldest of its class.
fn check_oldest(labels: &DrawnLabels, passed: &Passed<'_>, left: &Submit) -> Result<(), String> {
    let class = labels.class_of_task(left);
    let oldest = passed.before.tasks.iter().find(|task| labels.class_of_task(task) == class);
    if oldest.is_some_and(|oldest| (oldest.task, oldest.attempt) != (left.task, left.attempt)) {
        let (task, slice) = (left.task, passed.slice);
        return Err(format!("promise 8: task {task} left slice {slice} before an older one of its class"));
    }
    Ok(())
}
