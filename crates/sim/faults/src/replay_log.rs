//! The log of a replay, for people: who did what, to whom and why, one line each, with aligned times.
//!
//! A task's name is its client and its number there: `task 1.7`, or `task 1/2.7` in the client's second
//! life. Rows of the switch's tables are named by their indices, which the controller chooses and which
//! differ from the processes' numbers.

use std::fmt;
use std::str::FromStr;

use sluice_control::{Answer as Answered, Event as Told};
use sluice_events::Address;
use sluice_host::client::Outcome;
use sluice_switch::Refusal;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{
    BytesOf, Incarnation, Nanos, Need, Packet, Part, Payload, RackNews, Reject, ReplyStatus, Serial, TaskId,
};

use super::hosts::{Host, SWITCH};
use super::limits::START;
use super::partitions::End;
use super::scenario::{GrayFailure, ProcessFailure, Scenario};
use super::servers::ServerFailure;

/// A party in a rack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Party {
    /// The whole rack: its lines concern all parties.
    Rack,
    Switch,
    Controller,
    /// A worker process, by its number.
    Worker(usize),
    Client(usize),
    Server(usize),
}

impl Party {
    /// The party at this address, in whichever life.
    pub(super) fn at(address: Address) -> Self {
        match Host::at(address) {
            Some(host) => self::host(host),
            None if address == SWITCH => Self::Switch,
            None => Self::Rack,
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = match self {
            Self::Rack => "rack".to_owned(),
            Self::Switch => "switch".to_owned(),
            Self::Controller => "controller".to_owned(),
            Self::Worker(number) => format!("worker {number}"),
            Self::Client(number) => format!("client {number}"),
            Self::Server(number) => format!("server {number}"),
        };
        f.pad(&said)
    }
}

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub at: Nanos,
    pub who: Party,
    /// The party to whom it happens, if there is one.
    pub to: Option<Party>,
    /// The name of the task that it is about.
    pub task: Option<String>,
    /// What happens, and why.
    pub what: String,
}

impl fmt::Display for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = self.to.map_or_else(String::new, |to| format!("-> {to}"));
        write!(f, "{:>10.3} us  {:<10}  {to:<13}  {}", self.at.0 as f64 / 1e3, self.who, self.what)
    }
}

/// Selects lines: those about one party, or about one task. Lines about the whole rack are always included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Only {
    /// Lines about this party.
    Who(Party),
    /// Lines about the task with this name.
    Task(String),
}

impl Only {
    /// Whether a line is selected.
    pub fn wants(&self, line: &LogLine) -> bool {
        let about = match self {
            Self::Who(who) => line.who == *who || line.to == Some(*who),
            Self::Task(task) => line.task.as_ref() == Some(task),
        };
        about || line.who == Party::Rack
    }
}

impl FromStr for Only {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is nobody in a fault run: write worker:2, client:0, server:1, task:0.17, switch or controller"
            )
        };
        let (kind, name) = text.split_once([':', ' ']).unwrap_or((text, ""));
        let number = || name.parse::<usize>().map_err(|_| wrong());
        Ok(match kind {
            "switch" if name.is_empty() => Self::Who(Party::Switch),
            "controller" if name.is_empty() => Self::Who(Party::Controller),
            "worker" => Self::Who(Party::Worker(number()?)),
            "client" => Self::Who(Party::Client(number()?)),
            "server" => Self::Who(Party::Server(number()?)),
            "task" if name.contains('.') => Self::Task(name.to_owned()),
            _ => return Err(wrong()),
        })
    }
}

/// The lives of all clients, from which tasks get their names.
#[derive(Debug, Default)]
pub(super) struct TaskNames(Vec<(Incarnation, usize)>);

impl TaskNames {
    /// A life of a client begins.
    pub(super) fn add_life(&mut self, client: usize, incarnation: Incarnation) {
        self.0.push((incarnation, client));
    }

    /// The name of a task, also of one that left the switch without the upper half of its incarnation.
    pub(super) fn task(&self, task: TaskId) -> String {
        let Some(place) = self.0.iter().position(|(life, _)| life.low() == task.incarnation.low()) else {
            return task.to_string();
        };
        let client = self.0[place].1;
        let life = self.0[..=place].iter().filter(|(_, known)| *known == client).count();
        let number = count(task.sequence);
        if life == 1 { format!("{client}.{number}") } else { format!("{client}/{life}.{number}") }
    }
}

/// The task that a packet is about.
pub(super) const fn task_of(packet: &Packet) -> Option<TaskId> {
    match packet {
        Packet::Submit(of) => Some(of.task),
        Packet::Job(of) => Some(of.first().task),
        Packet::Dispatch(of) => Some(of.task),
        Packet::Reply(of) => Some(of.task),
        Packet::Reject(of) => Some(of.task),
        Packet::Notice(of) => Some(of.task),
        Packet::Need(of) => Some(of.task),
        Packet::Part(of) => Some(of.task),
        Packet::Empty(_)
        | Packet::Token(_)
        | Packet::Probe(_)
        | Packet::Answer(_)
        | Packet::Sweep(_)
        | Packet::Update(_) => None,
    }
}

/// The text of a packet; `task` is the name of its task.
pub(super) fn packet(packet: &Packet, task: &str) -> String {
    let us = |ns: u32| format!("{:.1} us", f64::from(ns) / 1e3);
    match packet {
        Packet::Submit(of) => {
            let (attempt, class, age) = (
                of.attempt,
                of.task_type,
                of.age
                    .span()
                    .map_or_else(|| "long".to_owned(), |age| format!("{:.1} us", age.0 as f64 / 1e3)),
            );
            format!(
                "SUBMIT task {task}, try {attempt}: type {class}, {}, first sent {age} ago",
                bytes(&of.payload)
            )
        }
        Packet::Job(of) => {
            let (tasks, attempt, class) = (of.tasks(), of.first().attempt, of.first().task_type);
            format!("JOB of {tasks} tasks from task {task} on, try {attempt}: type {class}")
        }
        Packet::Dispatch(of) => {
            let (attempt, sent, wait) = (of.attempt, count(of.sent), us(of.wait_ns));
            format!(
                "DISPATCH task {task}, try {attempt}, number {sent} to this worker: met its token after {wait}, {} left waiting",
                of.occupancy
            )
        }
        Packet::Reply(of) => {
            let how = match of.status {
                ReplyStatus::Done => "done",
                ReplyStatus::Failed => "the service failed",
                ReplyStatus::Gone => "it ran, but its reply is no longer kept",
                ReplyStatus::Old => "too old to tell whether it ran, so it was not run",
                ReplyStatus::Late => "its budget was spent, so it was not run",
            };
            let (attempt, wait, service) = (of.attempt, us(of.worker_wait_ns), us(of.service_ns));
            format!(
                "REPLY task {task}, try {attempt}: {how}; waited {wait} here, ran {service}, {}",
                bytes(&of.payload)
            )
        }
        Packet::Empty(of) => format!("EMPTY: nothing waits; tokens seen: {}", count(of.seen)),
        Packet::Token(of) => format!("TOKEN {}: ready for one more task", count(of.issued)),
        Packet::Probe(_) => "PROBE: asks how its counters stand, having heard nothing".to_owned(),
        Packet::Answer(of) => match of.counters {
            Some(counters) => {
                let (seen, sent) = (count(counters.seen), count(counters.sent));
                format!("ANSWER: tokens seen: {seen}, tasks sent: {sent}, in generation {}", of.generation)
            }
            None => format!("ANSWER: generation {} is not open yet", of.generation),
        },
        Packet::Reject(of) => reject(of, task),
        Packet::Notice(of) => {
            format!(
                "NOTICE of task {task}, try {}: not taken, the switch lives in epoch {} now",
                of.attempt, of.epoch
            )
        }
        Packet::Need(of) => need(of, task),
        Packet::Part(of) => part(of, task),
        Packet::Sweep(of) => format!("SWEEP of slice {}: takes out what nobody may have any more", of.slice),
        Packet::Update(of) => match of.news {
            RackNews::Idle => format!("UPDATE of leaf {}: it has idle workers", of.leaf),
            RackNews::Busy => format!("UPDATE of leaf {}: no worker is idle any more", of.leaf),
            RackNews::Load(mean) => {
                format!("UPDATE of leaf {}: {:.2} tasks a worker", of.leaf, f64::from(mean.0) / 65_536.0)
            }
        },
    }
}

fn reject(of: &Reject, task: &str) -> String {
    let (attempt, reason, again) = (of.attempt, of.reason, f64::from(of.retry_after_ns) / 1e3);
    let more = if of.behind > 0 { format!(" and {} behind it", of.behind) } else { String::new() };
    format!("REJECT task {task}{more}, try {attempt}: {reason}; not before {again:.1} us")
}

/// A counter's value for people: all counters start just below the wrap.
fn count(counter: Serial) -> i32 {
    counter.since(START)
}

fn bytes(payload: &Payload) -> String {
    if payload.has_more() {
        format!("{} of {} bytes", payload.len, payload.total())
    } else {
        format!("{} bytes", payload.len)
    }
}

const fn whose(of: BytesOf) -> &'static str {
    match of {
        BytesOf::Task => "",
        BytesOf::Reply => "the reply to ",
    }
}

fn need(of: &Need, task: &str) -> String {
    let end = of.offset.saturating_add(of.length);
    format!("NEED {}task {task}: asks for bytes {} to {end}, which it lacks", whose(of.of), of.offset)
}

fn part(of: &Part, task: &str) -> String {
    if of.payload.len == 0 {
        return format!("PART of task {task}: none any more, it has ended");
    }
    let end = of.offset.saturating_add(of.payload.len.into());
    format!("PART of {}task {task}: bytes {} to {end}", whose(of.of), of.offset)
}

/// The size and load of a seed's rack.
pub(super) fn scenario(scenario: &Scenario) -> String {
    let Scenario { workers, clients, slices, quotas, .. } = scenario;
    let quotas: Vec<String> = quotas.iter().map(u8::to_string).collect();
    let limit =
        scenario.limit.map_or_else(|| "as many as workers report".to_owned(), |limit| limit.to_string());
    let bytes = match (scenario.writes_ahead, scenario.keeps_no_bytes()) {
        (true, _) => "written ahead to servers",
        (false, true) => "fetched from clients",
        (false, false) => "kept by the switch",
    };
    let early = if scenario.early.is_some() { ", early tokens" } else { "" };
    let cores = scenario.cores.map_or_else(String::new, |of| {
        let servers = number_of(of.servers, "server");
        format!(", lanes of {servers} with {} each", number_of(of.cores, "core"))
    });
    format!(
        "{}: {}{cores} with quotas of {}, {}, {}; each client sends a task every {:.1} us, service takes up \
         to {:.1} us; {limit} may wait in a slice, their bytes {bytes}{early}; {} to come",
        scenario.program.name(),
        number_of(*workers, "worker"),
        quotas.join(" "),
        number_of(*clients, "client"),
        number_of(*slices, "slice"),
        scenario.gap.0 as f64 / 1e3,
        scenario.service_max.0 as f64 / 1e3,
        number_of(scenario.process_failures.len(), "fault")
    )
}

/// A number with its noun, in the plural if need be.
fn number_of(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// The party of a registered host.
pub(super) const fn host(host: Host) -> Party {
    match host {
        Host::Worker(worker) => Party::Worker(worker),
        Host::Client(client) => Party::Client(client),
        Host::Server(server) => Party::Server(server),
    }
}

/// The text of a packet that the switch refuses.
pub(super) fn dropped(refusal: Refusal) -> String {
    format!("drops what came: {}", refusal.name().replace('_', " "))
}

/// How a task ended at its client.
pub(super) fn outcome(outcome: &Outcome, task: &str) -> String {
    match outcome {
        Outcome::Reply(reply) => {
            format!("has the outcome of task {task}: its reply, after try {}", reply.attempt)
        }
        Outcome::Refused(why) => format!("has the outcome of task {task}: REFUSED, {why}"),
        Outcome::Unknown(why) => format!("has the outcome of task {task}: UNKNOWN, {why}"),
    }
}

/// The text of when copies of a packet arrive, or that it is lost.
pub(super) fn fate(now: Nanos, arrivals: [Option<Nanos>; 2]) -> String {
    let after = |at: Nanos| format!("{:.1}", at.since(now).0 as f64 / 1e3);
    match arrivals {
        [None, None] => " (LOST on its way)".to_owned(),
        [Some(one), Some(two)] => format!(" (REPEATED: arrives after {} and {} us)", after(one), after(two)),
        [Some(one), None] | [None, Some(one)] => format!(" (arrives after {} us)", after(one)),
    }
}

/// A process failure: its party and its text.
pub(super) fn process_failure(process_failure: &ProcessFailure) -> (Party, String) {
    let us = |span: &Nanos| format!("{:.0} us", span.0 as f64 / 1e3);
    let (who, what) = match process_failure {
        ProcessFailure::WorkerCrash { worker, back_after } => {
            (Party::Worker(*worker), format!("crashes; back after {}", us(back_after)))
        }
        ProcessFailure::WorkerStall { worker, lasts } => {
            (Party::Worker(*worker), format!("its serving thread stands still for {}", us(lasts)))
        }
        ProcessFailure::Outage { lasts } => {
            (Party::Rack, format!("all workers' serving threads stand still for {}", us(lasts)))
        }
        ProcessFailure::WorkerFreeze { worker, lasts } => {
            (Party::Worker(*worker), format!("the whole process stands still for {}", us(lasts)))
        }
        ProcessFailure::WorkerCut { worker, lasts } => {
            (Party::Worker(*worker), format!("is cut off the network for {}", us(lasts)))
        }
        ProcessFailure::WorkerLeave { worker, back_after } => {
            (Party::Worker(*worker), format!("is told to leave; back after {}", us(back_after)))
        }
        ProcessFailure::SliceMove { worker, slice } => {
            (Party::Worker(*worker), format!("an operator moves it to slice {slice}"))
        }
        ProcessFailure::SwitchRestart { down_for } => {
            (Party::Rack, format!("the switch loses its memory and is away for {}", us(down_for)))
        }
        ProcessFailure::SwitchReplaced { back_after } => {
            (Party::Rack, format!("the switch drains, and is replaced {} later", us(back_after)))
        }
        ProcessFailure::ProcessRestart { down_for } => {
            (Party::Rack, format!("switch and controller are gone together for {}", us(down_for)))
        }
        ProcessFailure::ClientRestart { client } => {
            (Party::Client(*client), "is started anew and has forgotten its tasks".to_owned())
        }
        ProcessFailure::ClientFreeze { client, lasts } => {
            (Party::Client(*client), format!("stands still for {}", us(lasts)))
        }
        ProcessFailure::ClientCut { client, lasts } => {
            (Party::Client(*client), format!("is cut off the network for {}", us(lasts)))
        }
        ProcessFailure::QuotaChange { worker, quota } => {
            (Party::Worker(*worker), format!("asks for a quota of {quota} from its next renewal on"))
        }
        ProcessFailure::TypeMove { task_type, slice } => {
            (Party::Rack, format!("an operator maps type {task_type} to slice {slice}"))
        }
        ProcessFailure::ControllerStall { lasts } => {
            (Party::Rack, format!("the controller stands still for {}", us(lasts)))
        }
        ProcessFailure::ControllerCut { lasts } => {
            (Party::Rack, format!("the controller cannot reach the switch for {}", us(lasts)))
        }
        ProcessFailure::ControllerRestart { down_for } => {
            (Party::Rack, format!("the controller is gone for {}, and reads all back", us(down_for)))
        }
    };
    (who, format!("FAULT: {what}"))
}

/// A gray failure: its party and its text.
pub(super) fn gray_failure(gray_failure: &GrayFailure) -> (Party, String) {
    let us = |span: &Nanos| format!("{:.0} us", span.0 as f64 / 1e3);
    let end = |end: &End| match end {
        End::Anyone => "anyone".to_owned(),
        End::Switch => Party::Switch.to_string(),
        End::Controller => Party::Controller.to_string(),
        End::Host(of) => host(*of).to_string(),
    };
    let (who, what) = match gray_failure {
        GrayFailure::OneWay { from, to, lasts } => (
            Party::Rack,
            format!("nothing gets from {} to {} for {}; what goes back does", end(from), end(to), us(lasts)),
        ),
        GrayFailure::SwitchStall { lasts } => {
            (Party::Rack, format!("the switch stands still for {}", us(lasts)))
        }
        GrayFailure::NewAddress(of) => (host(*of), "has another address from now on".to_owned()),
        GrayFailure::ClientLeave(client) => {
            (Party::Client(*client), "leaves with tasks outstanding, and is started anew".to_owned())
        }
        GrayFailure::WorkerQuits { worker, gone_after, .. } => (
            Party::Worker(*worker),
            format!("is told to leave, and is gone {} later whatever it holds", us(gone_after)),
        ),
        GrayFailure::WorkerGone { worker, back_after } => {
            (Party::Worker(*worker), format!("is gone; back after {}", us(back_after)))
        }
    };
    (who, format!("FAULT: {what}"))
}

/// The text of a server's failure.
pub(super) const fn server_failure(server_failure: ServerFailure) -> &'static str {
    match server_failure {
        ServerFailure::Crash => "FAULT: crashes, and its memory is gone",
        ServerFailure::Back => "is back, with empty memory",
        ServerFailure::Leave => "leaves",
        ServerFailure::Stall => "FAULT: stands still for a while; what is written to it waits",
        ServerFailure::Intrusion => "FAULT: someone writes to it with a key that no region has",
    }
}

/// A call to the controller: its party and its text.
pub(super) fn party_and_text(told: &Told) -> (Party, String) {
    match told {
        Told::SwitchUp(shape) => (Party::Switch, format!("can be reached, in epoch {}", shape.epoch)),
        Told::SwitchDown => (Party::Switch, "cannot be reached any more".to_owned()),
        Told::TableAnswered(_) => (Party::Switch, "answers an operation on its tables".to_owned()),
        Told::WorkerHello { hello, .. } => {
            let held = hello.held.map_or_else(
                || "registers".to_owned(),
                |(row, _, generation)| format!("renews row {row}, generation {generation}"),
            );
            (named(&hello.name), format!("{held}: slice `{}`, quota {}", hello.slice, hello.quota))
        }
        Told::ClientHello { hello, .. } => {
            let held =
                hello.held.map_or_else(|| "registers".to_owned(), |(row, _)| format!("renews row {row}"));
            (named(&hello.name), format!("{held}; tasks before number {} have ended", count(hello.floor)))
        }
        Told::WorkerLeave { name, .. } | Told::ClientLeave { name, .. } | Told::ServerLeave { name, .. } => {
            (named(name), "leaves".to_owned())
        }
        Told::ClientElsewhere(_) => (Party::Rack, "one of its clients is at another spine".to_owned()),
        Told::ServerHello { hello, .. } => {
            (named(&hello.name), format!("registers: {}, {} rings", hello.qpn, hello.rings.len()))
        }
        Told::MoveWorker { name, slice, .. } => {
            (named(name), format!("an operator asks to move it to slice `{slice}`"))
        }
        Told::SetType { task_type, slice, .. } => {
            let to = slice.as_ref().map_or_else(|| "no slice".to_owned(), |slice| format!("slice `{slice}`"));
            (Party::Rack, format!("an operator asks to map type {task_type} to {to}"))
        }
        Told::Tallies { server, .. } => {
            (Party::Rack, format!("the agent of server {server} reports its interval"))
        }
        Told::Lead(term) => (Party::Switch, format!("lets it take over from the controller of term {term}")),
        Told::StandBy => (Party::Rack, "its lease at the switch is over".to_owned()),
        Told::Watch => (Party::Rack, "an operator looks at the rack".to_owned()),
    }
}

/// The party with this name; the controller knows hosts by names such as `worker-2`.
fn named(name: &str) -> Party {
    match Only::from_str(&name.replacen('-', ":", 1)) {
        Ok(Only::Who(who)) => who,
        _ => Party::Rack,
    }
}

/// The text of the controller's answer to a call.
pub(super) fn answered(answer: &Answered) -> String {
    match answer {
        Answered::Worker(grant) => {
            format!("grants row {}, generation {}, quota {}", grant.worker, grant.generation, grant.quota)
        }
        Answered::Client(grant) => {
            let shares: Vec<String> =
                grant.shares.iter().map(|(slice, share)| format!("{share} in slice {slice}")).collect();
            format!("grants row {}, with {} tasks outstanding at most", grant.client, shares.join(" and "))
        }
        Answered::Server(_) => "grants the server its rings".to_owned(),
        Answered::Left { .. } => "lets it go".to_owned(),
        Answered::Wait { why, .. } => format!("not yet: {why}"),
        Answered::Refused { why } => format!("refuses: {why}"),
        Answered::Done => "done".to_owned(),
    }
}

/// The text of a controller's operation on the switch's tables, with its answer.
pub(super) fn table(op: &TableOp, answer: &TableAnswer) -> String {
    let open = |open: bool| if open { "open" } else { "closed" };
    let did = match op {
        TableOp::ReadShape => "asks how large the switch is".to_owned(),
        TableOp::Claim(term) => format!("asks it to obey controller {term} from now on"),
        TableOp::SetType(of, Some(slice)) => format!("maps type {of} to slice {slice}"),
        TableOp::SetType(of, None) => format!("maps type {of} to no slice"),
        TableOp::SetNeeds(of, needs) => format!("lets type {of} need labels {:#b}", needs.0),
        TableOp::ReadType(of) => format!("reads which slice takes type {of}"),
        TableOp::SetSlice(slice, row) => {
            format!("sets slice {slice}: {}, {} may wait", open(row.open), row.limit)
        }
        TableOp::ReadSlice(slice) => format!("reads slice {slice}"),
        TableOp::SetWorker(row, Some(to)) => {
            let (who, slice, generation) = (Party::at(Address::of(&to.at)), to.slice, to.generation);
            format!(
                "sets worker row {row} for {who}: slice {slice}, generation {generation}, {}",
                open(to.open)
            )
        }
        TableOp::SetWorker(row, None) => format!("clears worker row {row}"),
        TableOp::ReadWorker(row) => format!("reads worker row {row}"),
        TableOp::RaiseGeneration(row, to) => {
            format!("lets only tokens of generation {to} through for worker row {row}")
        }
        TableOp::ResetCounters(row, _) => format!("starts the counters of worker row {row} anew"),
        TableOp::SetClient(row, Some((to, _))) => {
            format!("sets client row {row} for {}", Party::at(Address::of(&to.at)))
        }
        TableOp::SetClient(row, None) => format!("clears client row {row}"),
        TableOp::ReadClient(row) => format!("reads client row {row}"),
        TableOp::SetServer(row, to) => {
            format!("{} server row {row}", if to.is_some() { "sets" } else { "clears" })
        }
        TableOp::ReadServer(row) => format!("reads server row {row}"),
        TableOp::SetRing(slice, server, to) => {
            let does = if to.is_some() { "sets" } else { "clears" };
            format!("{does} the ring of slice {slice} at server row {server}")
        }
        TableOp::ReadRing(slice, server) => format!("reads the ring of slice {slice} at server row {server}"),
        TableOp::SetCopies(slice, copies) => format!("writes tasks of slice {slice} to {copies} servers"),
        TableOp::SetSpine(slice, row) => format!("takes tasks of slice {slice} from the spine at {}", row.at),
        TableOp::Inject(sweep) => format!("sends a SWEEP round slice {}", sweep.slice),
        TableOp::Drain => "asks to be told when all passes that had begun have ended".to_owned(),
    };
    match answer {
        TableAnswer::OutOfRange => format!("{did}: OUT OF RANGE"),
        TableAnswer::Superseded(by) => format!("{did}: REFUSED, it obeys controller {by}"),
        _ => did,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(who: Party, to: Option<Party>, task: Option<&str>) -> LogLine {
        LogLine { at: Nanos(1_234_567), who, to, task: task.map(str::to_owned), what: "does it".to_owned() }
    }

    #[test]
    fn a_filter_wants_the_lines_about_one_and_those_about_all() {
        let worker: Only = "worker:2".parse().expect("legal");
        assert!(worker.wants(&line(Party::Worker(2), None, None)));
        assert!(worker.wants(&line(Party::Switch, Some(Party::Worker(2)), None)));
        assert!(worker.wants(&line(Party::Rack, None, None)));
        assert!(!worker.wants(&line(Party::Worker(3), Some(Party::Switch), None)));
        let task: Only = "task 0.17".parse().expect("legal");
        assert!(task.wants(&line(Party::Switch, None, Some("0.17"))));
        assert!(!task.wants(&line(Party::Switch, None, Some("0.1"))));
        for wrong in ["", "worker", "worker:x", "task:17", "dog:1", "switch:1"] {
            assert!(wrong.parse::<Only>().is_err_and(|why| why.contains("write worker:2")), "{wrong}");
        }
    }

    #[test]
    fn a_line_has_its_time_its_people_and_what_happens_in_columns() {
        let said = line(Party::Client(1), Some(Party::Switch), None).to_string();
        assert_eq!(said, "  1234.567 us  client 1    -> switch      does it");
    }

    #[test]
    fn a_task_is_called_by_its_client_its_life_and_its_number() {
        let mut names = TaskNames::default();
        for (client, life) in [(0, 10), (1, 11), (0, 12)] {
            names.add_life(client, Incarnation(life));
        }
        let task = |life, number| TaskId { incarnation: Incarnation(life), sequence: START.plus(number) };
        assert_eq!(names.task(task(11, 7)), "1.7");
        assert_eq!(names.task(task(12, 20)), "0/2.20");
        let unknown = TaskId { incarnation: Incarnation(1), sequence: Serial(2) };
        assert_eq!(names.task(unknown), unknown.to_string());
    }

    #[test]
    fn a_packet_that_is_lost_or_repeated_says_so() {
        let (now, at) = (Nanos(1_000), |ns| Some(Nanos(ns)));
        assert_eq!(fate(now, [None, None]), " (LOST on its way)");
        assert_eq!(fate(now, [at(2_500), None]), " (arrives after 1.5 us)");
        assert!(fate(now, [at(2_500), at(9_000)]).contains("after 1.5 and 8.0 us"));
    }
}
