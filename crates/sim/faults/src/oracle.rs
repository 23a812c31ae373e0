//! The promises about what becomes of tasks (1, 2 and 5), checked apart from the machines that have to keep
//! them.
//!
//! The other promises are checked beside it: tokens, queues and memory in `inspection` (3, 4, 6), servers'
//! rows and memory in `servers` (4, 5), the tokens that a pass admits in `passes` (3), the order of tasks in
//! `order` and `labels` (8), a client's share in `effects::clients` (10), and in `effects::workers`, at the
//! start of a service, whether a worker serves what it runs (7), and within the task's budget (9; see
//! `budgets`).

use std::collections::{BTreeMap, BTreeSet};

use sluice_host::client::{RefusedWhy, UnknownWhy};
use sluice_wire::{
    Attempt, Handle, Incarnation, Nanos, Payload, Reject, RejectReason, ReplyStatus, Serial, Submit, TaskId,
};

use super::limits::{DEADLINE, SETTLED};
use super::pieces::{FIRST_BYTES, content};
use super::scenario::Scenario;
use super::tally::Tally;

/// One start of a worker process.
pub(super) type Life = u64;

/// The key of a task in the oracle's records. A task that waited while its client's row went leaves the
/// switch under another id, and is the same task.
pub(super) type TaskKey = (u32, u32);

pub(super) const fn key(task: TaskId) -> TaskKey {
    let (incarnation, Serial(sequence)) = task.kept();
    (incarnation, sequence)
}

/// How a task ended at its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With a reply of these bytes and this status.
    Replied(Payload, ReplyStatus),
    /// Refused: no try can have run.
    Refused(RefusedWhy),
    /// Unknown: it may have run.
    Unknown(UnknownWhy),
}

#[derive(Debug, Default)]
struct TaskRecord {
    task: TaskId,
    submitted: Nanos,
    attempts: u32,
    /// Whether the task's client asked for one try only.
    only_once: bool,
    /// Until when it is worth beginning the task.
    begin_by: Option<Nanos>,
    /// The workers' lives that refused the task as late.
    refused_in: Vec<Life>,
    runs: Vec<Life>,
    /// The runs of the task under another id: their lives cannot say later whether they know it.
    renamed: Vec<Life>,
    /// The runs that have ended, with their times.
    ended: Vec<(Life, Nanos)>,
    ending: Option<Ending>,
    abandoned: bool,
    /// Whether a try of the task found no room where a repeat of its client's tasks had taken some.
    is_crowded_out: bool,
}

/// Until this time clients may still fetch replies that workers lost under faults; later they have given
/// those up. A client fetches few replies at a time. So until then it may be too late for the reply of a
/// task from after the faults, if its worker keeps few.
const FETCHED: Nanos = Nanos(SETTLED.0 + 20_000_000);

/// The record of all tasks.
#[derive(Debug)]
pub(super) struct Oracle {
    /// Whether workers have room for all tasks that arrive.
    has_room: bool,
    /// [`Scenario::settled`].
    settled: Nanos,
    fates: BTreeMap<TaskKey, TaskRecord>,
    /// Repeats that have already explained a refusal for lack of room.
    charged: BTreeSet<(TaskKey, Attempt)>,
}

impl Oracle {
    pub(super) fn new(scenario: &Scenario) -> Self {
        Self {
            has_room: scenario.has_room_for_what_is_pushed(),
            settled: scenario.settled,
            fates: BTreeMap::new(),
            charged: BTreeSet::new(),
        }
    }

    pub(super) fn submitted(&mut self, now: Nanos, task: TaskId) -> Result<(), String> {
        let fate = TaskRecord { task, submitted: now, ..TaskRecord::default() };
        match self.fates.insert(key(task), fate) {
            Some(_) => Err(format!("task {task} was taken on twice")),
            None => Ok(()),
        }
    }

    /// The task that was just accepted must not be tried again.
    pub(super) fn only_once(&mut self, task: TaskId) -> Result<(), String> {
        self.fate(task)?.only_once = true;
        Ok(())
    }

    /// The task that was just accepted is worth beginning until then.
    pub(super) fn begin_by(&mut self, task: TaskId, by: Option<Nanos>) -> Result<(), String> {
        self.fate(task)?.begin_by = by;
        Ok(())
    }

    /// A client sent one try.
    pub(super) fn tried(&mut self, now: Nanos, submit: &Submit, retry_for: Nanos) -> Result<(), String> {
        let task = submit.task;
        self.tells_budget(now, submit)?;
        let fate = self.fate(task)?;
        fate.attempts += 1;
        if fate.attempts > 1 && now > fate.submitted + retry_for {
            return Err(format!(
                "promise 2: task {task} was tried again after workers may have forgotten it"
            ));
        }
        if fate.only_once && fate.attempts > 1 {
            return Err(format!("promise 2: task {task} was tried again against its client's will"));
        }
        match fate.ending {
            Some(ending) => Err(format!("task {task} was sent again after it ended: {ending:?}")),
            None => Ok(()),
        }
    }

    /// Promise 9: a try tells what is left of its task's budget, and no try leaves when nothing is.
    fn tells_budget(&mut self, now: Nanos, submit: &Submit) -> Result<(), String> {
        let (task, told) = (submit.task, submit.budget.span());
        let left = self.fate(task)?.begin_by.map(|by| by.since(now));
        match (left, told) {
            (None, None) => Ok(()),
            (Some(left), Some(told)) if told <= left && told > Nanos(0) => Ok(()),
            _ => Err(format!("promise 9: a try of task {task} tells {told:?}, and it has {left:?} left")),
        }
    }

    /// A worker says that it did not run a task, because the task's budget was spent.
    pub(super) fn called_late(&mut self, life: Life, task: TaskId) -> Result<(), String> {
        let fate = self.fate(task)?;
        if fate.runs.contains(&life) {
            return Err(format!("promise 9: task {task} is called late in the life that ran it"));
        }
        fate.refused_in.push(life);
        Ok(())
    }

    /// A worker starts to run a task on these bytes.
    pub(super) fn started(&mut self, life: Life, task: TaskId, payload: &Payload) -> Result<(), String> {
        let fate = self.fate(task)?;
        if *payload != request(fate.task) {
            return Err(format!("promise 5: task {task} was run on other bytes: {payload:?}"));
        }
        if fate.runs.contains(&life) {
            return Err(format!("promise 2: task {task} was run twice in the worker's life {life:x}"));
        }
        if fate.refused_in.contains(&life) {
            return Err(format!("promise 9: task {task} runs in the life {life:x} that called it late"));
        }
        fate.runs.push(life);
        if fate.task != task {
            fate.renamed.push(life);
        }
        if fate.runs.len() > fate.attempts as usize {
            return Err(format!(
                "promise 2: task {task} ran {} times on {} tries",
                fate.runs.len(),
                fate.attempts
            ));
        }
        match fate.ending {
            Some(Ending::Refused(_)) => {
                Err(format!("promise 1: task {task} was refused and ran all the same"))
            }
            _ => Ok(()),
        }
    }

    /// A worker has run a task.
    pub(super) fn served(&mut self, now: Nanos, life: Life, task: TaskId) -> Result<(), String> {
        self.fate(task)?.ended.push((life, now));
        Ok(())
    }

    /// A worker says that it may have forgotten a task. It must remember tasks that it runs, and for so
    /// long those that it ran.
    pub(super) fn called_old(
        &mut self,
        now: Nanos,
        (life, remembers): (Life, Nanos),
        task: TaskId,
    ) -> Result<(), String> {
        let fate = self.fate(task)?;
        if fate.task != task || fate.renamed.contains(&life) {
            return Ok(());
        }
        let ended = fate.ended.iter().find(|(of, _)| *of == life).map(|(_, at)| *at);
        if fate.runs.contains(&life) && ended.is_none_or(|at| now < at + remembers) {
            return Err(format!("promise 2: task {task} is said to be forgotten in the life that knows it"));
        }
        Ok(())
    }

    /// A client was told how its task ended.
    pub(super) fn ended(&mut self, now: Nanos, task: TaskId, ending: Ending) -> Result<(), String> {
        let (has_room, settled) = (self.has_room, self.settled);
        let fate = self.fate(task)?;
        if let Some(earlier) = fate.ending.replace(ending) {
            return Err(format!("promise 1: task {task} ended twice: {earlier:?}, then {ending:?}"));
        }
        match ending {
            Ending::Refused(_) if !fate.runs.is_empty() => {
                Err(format!("promise 1: task {task} was refused, but it ran"))
            }
            Ending::Replied(bytes, status)
                if !fate.runs.iter().any(|life| gives(*life, task, bytes, status)) =>
            {
                Err(format!("promise 2: task {task} got an answer that no run of it gave"))
            }
            Ending::Unknown(UnknownWhy::ReplyGone) if fate.runs.is_empty() => {
                Err(format!("promise 1: task {task} is said to have run, and did not"))
            }
            Ending::Unknown(UnknownWhy::Deadline) if now < fate.submitted + DEADLINE => {
                Err(format!("promise 1: task {task} was given up before its deadline"))
            }
            Ending::Unknown(_) if fate.submitted < FETCHED && !fate.runs.is_empty() => Ok(()),
            Ending::Unknown(_) if fate.submitted >= settled && has_room => {
                Err(format!("promise 4: task {task} found no worker in a rack without faults"))
            }
            Ending::Refused(why) if fate.submitted >= settled && !is_busy(why) => {
                Err(format!("task {task} was refused in a rack without faults and with room"))
            }
            _ => Ok(()),
        }
    }

    /// The switch rejects a try and those behind it, whose queue held the `waiting` tasks. A repeat in the
    /// queue takes the room of one task, however long it stays. So each waiting repeat, of the same
    /// client's open tasks or of a task that has ended, explains one refusal.
    pub(super) fn rejected(&mut self, reject: &Reject, waiting: &[Submit]) -> Result<(), String> {
        let task = reject.task;
        let is_open = |task| self.fates.get(&key(task)).is_some_and(|fate| fate.ending.is_none());
        let mut tasks = BTreeSet::new();
        let of_client = waiting.iter().filter(|of| of.task.incarnation == task.incarnation);
        let repeats = of_client.filter(|of| !is_open(of.task) || !tasks.insert(key(of.task)));
        let repeats: Vec<_> = repeats.map(|of| (key(of.task), of.attempt)).collect();
        let mut uncharged = repeats.into_iter().filter(|repeat| self.charged.insert(*repeat));
        for at in 0..=reject.behind.into() {
            let task = TaskId { sequence: task.sequence.plus(at), ..task };
            let fate = self.fates.get_mut(&key(task)).ok_or_else(|| out_of_nowhere(task))?;
            fate.is_crowded_out |= !fate.only_once && !fate.is_crowded_out && uncharged.next().is_some();
        }
        Ok(())
    }

    /// A client was restarted: no submitter waits for its old tasks.
    pub(super) fn abandoned(&mut self, incarnation: Incarnation) {
        for (_, fate) in self.fates.range_mut((incarnation.low(), 0)..=(incarnation.low(), u32::MAX)) {
            fate.abandoned |= fate.ending.is_none();
        }
    }

    /// Whether a task that a submitter waits for has not ended yet.
    pub(super) fn has_open(&self) -> bool {
        self.fates.values().any(|fate| fate.ending.is_none() && !fate.abandoned)
    }

    /// The final check: each task has ended. Returns the counts.
    pub(super) fn close(&self) -> Result<Tally, String> {
        let mut tally = Tally::default();
        for fate in self.fates.values() {
            tally.submitted += 1;
            tally.run_again += fate.runs.len().saturating_sub(1) as u64;
            match fate.ending {
                Some(Ending::Replied(..)) => tally.replied += 1,
                Some(Ending::Refused(why)) => {
                    tally.refused += 1;
                    tally.crowded_out += u64::from(is_for_room(why) && fate.is_crowded_out);
                }
                Some(Ending::Unknown(_)) => tally.unknown += 1,
                None if fate.abandoned => tally.abandoned += 1,
                None => {
                    return Err(format!("promise 1: task {} never ended", fate.task));
                }
            }
        }
        Ok(tally.of_run())
    }

    fn fate(&mut self, task: TaskId) -> Result<&mut TaskRecord, String> {
        self.fates.get_mut(&key(task)).ok_or_else(|| out_of_nowhere(task))
    }
}

/// Whether a refused task would have waited for longer than its slice's target.
const fn is_busy(why: RefusedWhy) -> bool {
    matches!(why, RefusedWhy::Busy { .. })
}

/// Whether the last try of a refused task found no room.
const fn is_for_room(why: RefusedWhy) -> bool {
    matches!(why, RefusedWhy::Rejected(RejectReason::QueueFull | RejectReason::NoRoom))
}

fn out_of_nowhere(task: TaskId) -> String {
    format!("task {task} came out of nowhere")
}

/// The content of a task: bytes that no other task has. Half of the tasks fit a queue entry, a quarter one
/// packet.
pub(super) fn request(task: TaskId) -> Payload {
    bytes_of(mix(task.incarnation.0, u64::from(task.sequence.0)))
}

/// The answer of a worker's life to a task: bytes that no other run returns, as long as tasks are.
pub(super) fn answer(life: Life, task: TaskId) -> Payload {
    bytes_of(mix(life, mix(task.incarnation.0, u64::from(task.sequence.0))))
}

fn bytes_of(word: u64) -> Payload {
    let total = match word % 4 {
        0 | 1 => return Payload { len: 8, inline: word.to_be_bytes(), handle: Handle::NONE },
        2 => 640,
        _ => 1_500 + (word >> 8) as u32 % 20_000,
    };
    let inline = (u64::from(total) << 32 | u64::from(word as u32)).to_be_bytes();
    Payload { len: total.min(FIRST_BYTES.into()) as u16, inline, handle: content(inline) }
}

/// Whether the service in this life of a worker fails this task, as a service may.
pub(super) const fn fails(life: Life, task: TaskId) -> bool {
    (life ^ task.sequence.0 as u64).is_multiple_of(31)
}

fn gives(life: Life, task: TaskId, bytes: Payload, status: ReplyStatus) -> bool {
    let expected = if fails(life, task) { ReplyStatus::Failed } else { ReplyStatus::Done };
    (answer(life, task), expected) == (bytes, status)
}

fn mix(a: u64, b: u64) -> u64 {
    let mut word = a ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^= word >> 29;
    word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ (word >> 32)
}
