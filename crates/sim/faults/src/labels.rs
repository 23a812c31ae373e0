//! Who serves whom in a run, where the program tells kinds of workers apart, and promise 8 there: no task
//! waits beyond a few passes while a token that serves it is parked, and who goes first is who should.

use sluice_events::dice::Dice;
use sluice_switch::{Parked, Program, Verdict};
use sluice_wire::serving::{Labels, Serving};
use sluice_wire::tables::{KINDS_MAX, TableAnswer, TableOp, WorkerState};
use sluice_wire::{Dispatch, Packet, Submit, TaskType, WorkerId};

/// A class that waits has its turn within so many tokens of each kind that serves it, for each class.
const TURN: u32 = 16;
/// Within so many passes of what goes round a task meets a token that serves it: stale ones are many.
const ROUNDS: u32 = 400;

/// What workers have and types need.
#[derive(Clone, Debug, Default)]
pub(super) struct Hands {
    pub(super) serving: Serving,
    has: Vec<Labels>,
    /// The needs of types; those that are not there need nothing.
    pub(super) needs: Vec<(TaskType, Labels)>,
}

impl Hands {
    /// Drawn from a stream of its own.
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

    /// The same where so many workers each have them together.
    pub(super) fn of_each(self, workers: usize) -> Self {
        let has = self.has.iter().flat_map(|has| std::iter::repeat_n(*has, workers)).collect();
        Self { has, ..self }
    }

    /// What a worker's labels are called.
    pub(super) fn names_of(&self, worker: usize) -> Vec<String> {
        let has = self.has.get(worker).copied().unwrap_or_default();
        let own = NAMES.iter().enumerate().filter(|(bit, _)| has.have(Labels(1 << bit)));
        own.map(|(_, name)| (*name).to_owned()).collect()
    }

    /// What a task needs, its type's needs included.
    fn needs_of(&self, task_type: TaskType, own: Labels) -> Labels {
        let of_type =
            self.needs.iter().find(|(of, _)| *of == task_type).map_or(Labels::NONE, |(_, needs)| *needs);
        own.and(of_type)
    }

    /// The class of a task that says so much itself.
    pub(super) fn class_of(&self, task_type: TaskType, own: Labels) -> Option<u8> {
        self.serving.class_of(self.needs_of(task_type, own))
    }

    /// A worker was sent a task: it has to have what the task needs.
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
}

/// The labels of all runs.
const NAMES: [&str; 2] = ["gpu", "ssd"];

pub(super) fn names() -> Vec<String> {
    NAMES.map(str::to_owned).to_vec()
}

/// What is looked at beside each pass.
#[derive(Clone, Debug, Default)]
pub(super) struct Fairness {
    /// For how many passes of what goes round a task of each slice could have been served.
    waits: Vec<u32>,
    /// How many packets go round.
    going: u32,
    /// How often each class of a slice was passed over by tokens of each kind.
    passed_over: Vec<[[u32; KINDS_MAX]; KINDS_MAX]>,
}

/// What a pass did to a queue.
struct Passed<'a> {
    slice: usize,
    before: &'a Parked,
    after: &'a Parked,
    /// The kinds of the tokens that lie there now, a bit each, of live workers only.
    live_kinds: u8,
    /// The kind of the worker that was sent a task, and the task.
    sent: Option<(u8, &'a Dispatch)>,
    /// Whether the pass was one of what goes round.
    was_round: bool,
}

/// A worker's row, if its token of this generation counts.
fn state(program: &mut dyn Program, worker: WorkerId) -> Option<WorkerState> {
    match program.table(TableOp::ReadWorker(worker)) {
        TableAnswer::Worker(state) => Some(state),
        _ => None,
    }
}

fn kind_of(program: &mut dyn Program, worker: WorkerId) -> Option<u8> {
    Some(state(program, worker)?.row?.kind)
}

impl Fairness {
    /// What a pass made of the queues as they were.
    pub(super) fn check(
        &mut self,
        hands: &Hands,
        program: &mut dyn Program,
        (before, after): (&[Parked], &[Parked]),
        (was_round, verdict): (bool, &Verdict),
    ) -> Result<(), String> {
        self.going += u32::from(matches!(verdict, Verdict::Again(_)));
        self.going -= u32::from(was_round);
        let sent = match verdict {
            Verdict::Send { packet: Packet::Dispatch(dispatch), .. } => {
                kind_of(program, dispatch.worker).map(|kind| (kind, dispatch))
            }
            _ => None,
        };
        for (slice, (before, after)) in before.iter().zip(after).enumerate() {
            let live = after.tokens.iter().filter_map(|(worker, generation)| {
                state(program, *worker).filter(|state| state.generation_out == *generation)?.row
            });
            let live_kinds = live.fold(0, |kinds, row| kinds | 1 << row.kind);
            self.check_slice(hands, &Passed { slice, before, after, live_kinds, sent, was_round })?;
        }
        Ok(())
    }

    fn check_slice(&mut self, hands: &Hands, passed: &Passed<'_>) -> Result<(), String> {
        let slice = passed.slice;
        if self.waits.len() <= slice {
            self.waits.resize(slice + 1, 0);
            self.passed_over.resize(slice + 1, [[0; KINDS_MAX]; KINDS_MAX]);
        }
        self.check_wait(hands, passed)?;
        let Some((kind, dispatch)) = passed.sent else { return Ok(()) };
        let left = passed
            .before
            .tasks
            .iter()
            .find(|task| (task.task, task.attempt) == (dispatch.task, dispatch.attempt));
        left.map_or(Ok(()), |left| self.check_left(hands, passed, kind, left))
    }

    /// While a token that serves a task is parked, something goes round that will bring them together.
    fn check_wait(&mut self, hands: &Hands, passed: &Passed<'_>) -> Result<(), String> {
        let slice = passed.slice;
        let could =
            |task: &Submit| hands.serving.served_by(hands.class_of_task(task)) & passed.live_kinds != 0;
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

    /// A waiting task left for a worker of this kind: it was the oldest of its class, and no class that the
    /// kind serves is passed over for ever.
    fn check_left(
        &mut self,
        hands: &Hands,
        passed: &Passed<'_>,
        kind: u8,
        left: &Submit,
    ) -> Result<(), String> {
        let slice = passed.slice;
        let class = hands.class_of_task(left);
        let oldest = |class: u8| passed.before.tasks.iter().find(|task| hands.class_of_task(task) == class);
        if oldest(class).is_some_and(|oldest| (oldest.task, oldest.attempt) != (left.task, left.attempt)) {
            return Err(format!(
                "promise 8: task {} left slice {slice} before an older one of its class",
                left.task
            ));
        }
        let serves = hands.serving.serves(kind);
        for (other, times) in (0_u8..).zip(&mut self.passed_over[slice][usize::from(kind)]) {
            let waits = other != class && serves >> other & 1 == 1 && oldest(other).is_some();
            *times = if waits { *times + 1 } else { 0 };
            if *times > TURN * KINDS_MAX as u32 {
                return Err(format!(
                    "promise 8: class {other} of slice {slice} was passed over {times} times"
                ));
            }
        }
        Ok(())
    }
}
