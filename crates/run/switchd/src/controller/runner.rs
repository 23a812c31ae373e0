//! Drives the state machine. Inputs are calls, the switch's answers and the time; outputs are answers,
//! table steps and notes.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluice_control::{Action, Answer, CallId, Controller, Event, Note, PoolSize, Refusal, View};
use sluice_net::agent::{judgement_lines, messages};
use sluice_net::clock::Clock;
use sluice_rpc::Caller;
use sluice_rpc::v1::AgentInterval;
use sluice_wire::tables::TableOp;
use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{Endpoint, Generation, Incarnation, Key, Nanos, SliceId, WorkerId};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::sleep;

use super::lead::LeadPart;
use super::link::{Batch, ConnectionId, Link, SwitchEvent};
use super::memory::RackMemory;
use super::note_counts::NoteCounts;
use super::note_events;

/// How long a snapshot waits for the balances that the switch is asked for.
const LOOK_PATIENCE: Nanos = Nanos::from_millis(300);
/// Steps of one batch; the switch takes them without a packet in between.
const BATCH_MAX: usize = 256;

/// A request to the state machine's thread.
pub(super) enum Command {
    /// Handle this event and answer it.
    Call { event: Box<dyn FnOnce(CallId) -> Event + Send>, answer: oneshot::Sender<Answer> },
    /// Return a snapshot of everything, with queue balances read now.
    Look { answer: oneshot::Sender<ControllerSnapshot> },
    /// Answer when a worker's registration differs from this one, if the caller speaks for the worker.
    Await { caller: Caller, held: HeldRow, answer: oneshot::Sender<Result<(), NotOwn>> },
    /// Give the lead up, since the process ends.
    GiveUp { done: std::sync::mpsc::Sender<()> },
    /// Take an agent's report. Answer once the other agents reported and the slice step was taken.
    Hear { report: Box<Report>, answer: oneshot::Sender<Result<AgentAnswer, NotOwn>> },
}

/// An agent's report, and its sender.
pub(super) struct Report {
    pub(super) caller: Caller,
    pub(super) interval: AgentInterval,
    pub(super) tallies: Vec<SliceTally>,
}

/// A worker named in a report or question for which the caller does not speak.
pub(super) struct NotOwn(pub(super) WorkerId);

/// The registration that a worker believes it has.
#[derive(Clone, Copy)]
pub(super) struct HeldRow {
    pub(super) worker: WorkerId,
    pub(super) key: Key,
    pub(super) generation: Generation,
}

/// The answer to an agent's report.
pub(super) struct AgentAnswer {
    /// The depths that the slice step chose for the agent's workers.
    pub(super) depths: Depths,
    /// What workers of the same slices on other servers did.
    pub(super) others: Vec<SliceOthers>,
}

type Depths = Vec<(WorkerId, u8)>;

/// The whole state of the controller, and the address of its switch.
pub(super) struct ControllerSnapshot {
    pub(super) view: View,
    pub(super) at: Option<Endpoint>,
}

/// An event for operators, and its time.
#[derive(Clone, Debug)]
pub(super) struct TimedNote {
    pub(super) at_unix_ns: u64,
    pub(super) what: NoteContent,
}

#[derive(Clone, Debug)]
pub(super) enum NoteContent {
    Note(Note),
    /// An agent's judgement, as a sentence and as numbers.
    Found(String, Arc<AgentInterval>),
}

/// The channel to all subscribers of notes.
#[derive(Clone)]
pub(super) struct NoteSink {
    to: broadcast::Sender<TimedNote>,
    counts: NoteCounts,
    memory: RackMemory,
}

impl NoteSink {
    pub(super) fn new(to: broadcast::Sender<TimedNote>, counts: NoteCounts, memory: RackMemory) -> Self {
        Self { to, counts, memory }
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<TimedNote> {
        self.to.subscribe()
    }

    fn note(&self, note: Note) {
        note_events::log(&note);
        self.counts.count(&note);
        self.memory.on_note(&note);
        self.tell(NoteContent::Note(note));
    }

    fn publish_interval(&self, interval: AgentInterval, slice_name: impl Fn(u32) -> String) {
        let lines = judgement_lines(&interval, slice_name);
        for line in &lines {
            sluice_log::log!(AgentJudged, "{line}");
        }
        self.tell(NoteContent::Found(lines.join("; "), Arc::new(interval)));
    }

    fn tell(&self, what: NoteContent) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_unix_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        // Sending fails if there is no subscriber, which is no error.
        let _ = self.to.send(TimedNote { at_unix_ns, what });
    }
}

pub(super) struct Runner {
    controller: Controller,
    clock: Clock,
    commands: mpsc::Receiver<Command>,
    link: Link,
    telling: NoteSink,
    line: Option<ConnectionId>,
    /// The switch's last known address.
    at: Option<Endpoint>,
    steps: VecDeque<TableOp>,
    awaiting_answers: bool,
    calls: HashMap<CallId, oneshot::Sender<Answer>>,
    next_call: u64,
    lookers: Vec<oneshot::Sender<ControllerSnapshot>>,
    /// When they get it at the latest.
    look_until: Nanos,
    /// Calls that wait for a change of a worker's registration.
    awaiting: Vec<(HeldRow, oneshot::Sender<Result<(), NotOwn>>)>,
    /// Agents that wait for the slice step.
    agents: Vec<WaitingAgent>,
    /// The depths that the last slice step chose.
    depths: Depths,
    told_to: ControllerObserver,
    lead: LeadPart,
    /// Whether the switch was found (true) or lost, once one of both has happened.
    is_found: Option<bool>,
    /// The number of workers in each slice that was last reported to the observer.
    sizes_said: Vec<PoolSize>,
    /// Whether the spine is up, as last reported to the observer.
    lives_said: Option<bool>,
    /// Whether the spine has leaves, as last reported to the observer.
    serves_said: Option<bool>,
    out: Vec<Action>,
}

/// Events that wake a leaf's registration thread.
pub(super) enum LeafWake {
    /// The sizes of the rack's pools.
    Sizes(Vec<PoolSize>),
    /// The controller above answered.
    Above,
    /// The leaf is about to end.
    End,
    /// The thread has to end.
    Stop,
}

pub(super) enum ControllerObserver {
    Nobody,
    /// A leaf's registration thread: it is told the sizes of the rack's pools.
    Leaf(std::sync::mpsc::Sender<LeafWake>),
    /// The controller above several spines.
    Above(Box<dyn Fn(SpineEvent) + Send>),
}

/// An event about a spine.
pub(super) enum SpineEvent {
    /// The spine's switch was found (true) or lost; `None`: this controller does not lead there.
    Lives(Option<bool>),
    /// Whether the spine has leaves; `None` until its tables were read.
    Serves(Option<bool>),
    /// Clients that were in the spine's tables when they were read.
    Found(Vec<Incarnation>),
}

/// An agent that waits for the slice step.
struct WaitingAgent {
    server: String,
    workers: Vec<WorkerId>,
    others: Vec<SliceOthers>,
    answer: oneshot::Sender<Result<AgentAnswer, NotOwn>>,
}

impl Runner {
    pub(super) fn new(
        controller: Controller,
        commands: mpsc::Receiver<Command>,
        link: Link,
        telling: NoteSink,
        told_to: ControllerObserver,
        lead: LeadPart,
    ) -> Self {
        Self {
            controller,
            clock: Clock::start(),
            commands,
            link,
            telling,
            line: None,
            at: None,
            steps: VecDeque::new(),
            awaiting_answers: false,
            calls: HashMap::new(),
            next_call: 0,
            lookers: Vec::new(),
            look_until: Nanos(0),
            awaiting: Vec::new(),
            agents: Vec::new(),
            depths: Vec::new(),
            told_to,
            lead,
            is_found: None,
            sizes_said: Vec::new(),
            lives_said: None,
            serves_said: None,
            out: Vec::new(),
        }
    }

    /// Runs until no caller is left.
    pub(super) async fn run(mut self) {
        loop {
            let look = Some(self.look_until).filter(|_| !self.lookers.is_empty());
            let lead = self.lead.deadline(&self.controller);
            let due = self.controller.deadline().into_iter().chain(lead).chain(look).min();
            let due = due.map(|at| at.since(self.clock.now()));
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command),
                    None => return,
                },
                news = self.link.news.recv() => match news {
                    Some(news) => self.on_switch_event(news),
                    None => return,
                },
                answer = self.lead.heard() => {
                    let now = self.clock.now();
                    if let Some(event) = self.lead.take(answer, self.clock, &self.controller) {
                        self.controller.event(now, event, &mut self.out);
                    }
                }
                () = elapsed(due) => {
                    let now = self.clock.now();
                    self.stop_leading_in_time(now);
                    self.controller.tick(now, &mut self.out);
                }
            }
            self.lead.call(self.clock.now(), &self.controller);
            self.lead.publish(&self.controller);
            self.perform_actions();
            self.answer_agents();
            self.report_changes();
            self.report_sizes();
            self.send_steps().await;
            self.show();
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Call { event, answer } => {
                let call = CallId(self.next_call);
                self.next_call += 1;
                let event = event(call);
                if let Some(why) = self.other_family(&event) {
                    // The caller may have hung up.
                    return drop(answer.send(Answer::Refused { why }));
                }
                self.calls.insert(call, answer);
                self.event(event);
            }
            Command::GiveUp { done } => {
                self.lead.give_up(&self.controller, done);
                self.event(Event::StandBy);
            }
            Command::Look { answer } => {
                let now = self.clock.now();
                if self.lookers.is_empty() {
                    self.look_until = now + LOOK_PATIENCE;
                }
                self.lookers.push(answer);
                self.event(Event::Watch);
                self.controller.tick(now, &mut self.out);
            }
            // No other caller learns whether a key is right. The caller may have hung up.
            Command::Await { caller, held, answer } if !self.is_own(&caller, held.worker) => {
                answer.send(Err(NotOwn(held.worker))).unwrap_or_default();
            }
            Command::Await { held, answer, .. } => {
                // A worker that asks again has given up its earlier call. A caller without the key does not
                // speak for the worker.
                self.awaiting.retain(|(known, answer)| {
                    (known.worker, known.key) != (held.worker, held.key) && !answer.is_closed()
                });
                self.awaiting.push((held, answer));
            }
            Command::Hear { report, answer } => match self.not_own(&report) {
                // The caller may have hung up.
                Some(other) => answer.send(Err(NotOwn(other))).unwrap_or_default(),
                None => self.on_report(*report, answer),
            },
        }
    }

    /// Why the switch cannot reach a host that wants to register: another address family. `None` if it can.
    fn other_family(&self, event: &Event) -> Option<Refusal> {
        let at = match event {
            Event::WorkerHello { hello, .. } => hello.at,
            Event::ClientHello { hello, .. } => hello.at,
            Event::ServerHello { hello, .. } => hello.at,
            _ => return None,
        };
        let switch = self.at?;
        let is_four = |at: Endpoint| SocketAddr::from(at).is_ipv4();
        (is_four(at) != is_four(switch)).then_some(Refusal::OtherFamily { at, switch })
    }

    /// A worker in the report that another caller registered, if there is one.
    fn not_own(&self, report: &Report) -> Option<WorkerId> {
        let told = messages::workers_in(&report.interval).filter_map(|worker| u16::try_from(worker).ok());
        let is_others = |worker: &WorkerId| {
            self.controller.worker_name(*worker).is_some_and(|name| !report.caller.may_be(name))
        };
        told.map(WorkerId).find(is_others)
    }

    /// Whether a caller speaks for a worker. For a worker whose name is not known yet, only a trusted
    /// caller does.
    fn is_own(&self, caller: &Caller, worker: WorkerId) -> bool {
        let name = self.controller.worker_name(worker);
        name.map_or(matches!(caller, Caller::Trusted), |name| caller.may_be(name))
    }

    fn on_report(&mut self, report: Report, answer: oneshot::Sender<Result<AgentAnswer, NotOwn>>) {
        let Report { interval, mut tallies, .. } = report;
        // Workers without a known name are left out, since their owner is not known.
        messages::keep_own(&mut tallies, |worker| self.controller.worker_name(worker).is_some());
        let (server, advises) = (interval.server.clone(), interval.advises);
        let name =
            |slice: u32| self.controller.slice_name(u16::try_from(slice).map_or(SliceId(u16::MAX), SliceId));
        self.telling.publish_interval(interval, name);
        let workers =
            tallies.iter().flat_map(|tally| tally.depths.iter().map(|(worker, _)| *worker)).collect();
        // An agent that reports again has given up its earlier call.
        self.agents.retain(|agent| agent.server != server);
        self.agents.push(WaitingAgent { server: server.clone(), workers, others: Vec::new(), answer });
        self.event(Event::Tallies { server, advises, tallies });
    }

    fn report_changes(&mut self) {
        let controller = &self.controller;
        let is_old = |(held, _): &mut (HeldRow, _)| {
            controller.settled(held.worker).is_some_and(|now| now != (held.key, held.generation))
        };
        for (_, answer) in self.awaiting.extract_if(.., is_old) {
            // The caller may have hung up.
            answer.send(Ok(())).unwrap_or_default();
        }
    }

    /// Reports the sizes of a leaf's pools, or whether a spine is up and has leaves, if they changed.
    fn report_sizes(&mut self) {
        match &self.told_to {
            ControllerObserver::Nobody => {}
            ControllerObserver::Leaf(line) => {
                let sizes = self.controller.pool_sizes();
                if sizes != self.sizes_said {
                    self.sizes_said.clone_from(&sizes);
                    // The receiving thread may have ended.
                    line.send(LeafWake::Sizes(sizes)).unwrap_or_default();
                }
            }
            ControllerObserver::Above(desk) => {
                let lives = if self.controller.is_standby() { None } else { self.is_found };
                if lives != self.lives_said {
                    self.lives_said = lives;
                    desk(SpineEvent::Lives(lives));
                }
                let serves = self.controller.does_serve();
                if serves != self.serves_said {
                    if serves.is_some() && self.serves_said.is_none() {
                        desk(SpineEvent::Found(self.controller.client_lives()));
                    }
                    self.serves_said = serves;
                    desk(SpineEvent::Serves(serves));
                }
            }
        }
    }

    /// Answers the agents after the slice step.
    fn answer_agents(&mut self) {
        if self.agents.is_empty() || self.controller.is_gathering() {
            return;
        }
        for WaitingAgent { workers, others, answer, .. } in self.agents.drain(..) {
            let depths = self.depths.iter().filter(|(worker, _)| workers.contains(worker)).copied().collect();
            // The agent may have hung up.
            let _ = answer.send(Ok(AgentAnswer { depths, others }));
        }
        self.depths.clear();
    }

    fn on_switch_event(&mut self, news: SwitchEvent) {
        match news {
            SwitchEvent::Up { line, shape, at } => {
                self.line = Some(line);
                self.at = Some(at);
                self.is_found = Some(true);
                self.event(Event::SwitchUp(shape));
            }
            SwitchEvent::Answered(answers) => {
                self.awaiting_answers = false;
                for answer in answers {
                    self.event(Event::TableAnswered(answer));
                }
            }
            SwitchEvent::Down => {
                self.line = None;
                self.awaiting_answers = false;
                // Pending steps are void; the state machine asks for them again once the switch is up.
                self.steps.clear();
                self.is_found = Some(false);
                self.event(Event::SwitchDown);
                if matches!(self.told_to, ControllerObserver::Above(_)) {
                    // So that registered hosts ask at once for another spine.
                    self.answer_awaiting();
                }
            }
        }
    }

    /// A leader whose lease is over leads no more, whatever else it is about to do.
    fn stop_leading_in_time(&mut self, now: Nanos) {
        if self.lead.lapses(now, &self.controller) {
            self.lead.free_switch(&self.controller);
            self.controller.event(now, Event::StandBy, &mut self.out);
            self.answer_awaiting();
        }
    }

    /// Answers all who wait for a change of their registrations: they ask what has changed.
    fn answer_awaiting(&mut self) {
        for (_, answer) in self.awaiting.drain(..) {
            // The caller may have hung up.
            answer.send(Ok(())).unwrap_or_default();
        }
    }

    fn event(&mut self, event: Event) {
        let now = self.clock.now();
        self.stop_leading_in_time(now);
        self.controller.event(now, event, &mut self.out);
    }

    fn perform_actions(&mut self) {
        for action in self.out.drain(..) {
            match action {
                Action::Table(op) => self.steps.push_back(op),
                Action::Answer { call, answer } => {
                    if let Some(caller) = self.calls.remove(&call) {
                        // The caller may have hung up.
                        let _ = caller.send(with_switch(answer, self.at));
                    }
                }
                Action::SetDepth { worker, depth } => self.depths.push((worker, depth)),
                Action::TellAgent { server, others } => {
                    if let Some(agent) = self.agents.iter_mut().find(|agent| agent.server == server) {
                        agent.others = others;
                    }
                }
                Action::Note(note) => self.telling.note(note),
            }
        }
    }

    async fn send_steps(&mut self) {
        let Some(line) = self.line else { return };
        if self.awaiting_answers || self.steps.is_empty() {
            return;
        }
        let ops = self.steps.drain(..self.steps.len().min(BATCH_MAX)).collect();
        let by = self.controller.term();
        let waits = self.controller.waits_for_lead().then(|| self.lead.lease());
        self.awaiting_answers = self.link.batches.send(Batch { line, by, waits, ops }).await.is_ok();
    }

    /// Sends the snapshot to all who asked for one, once the balances were read, or with older ones if the
    /// switch does not answer.
    fn show(&mut self) {
        let now = self.clock.now();
        if self.lookers.is_empty() || (self.awaiting_answers && now < self.look_until) {
            return;
        }
        let view = self.controller.view(now);
        for looker in self.lookers.drain(..) {
            // The caller may have hung up.
            let _ = looker.send(ControllerSnapshot { view: view.clone(), at: self.at });
        }
    }
}

/// Fills in the address at which hosts reach the switch, as the switch itself reports it.
fn with_switch(mut answer: Answer, at: Option<Endpoint>) -> Answer {
    if let Some(at) = at {
        match &mut answer {
            Answer::Worker(grant) => grant.registration.switch = at,
            Answer::Client(grant) => grant.registration.switch = at,
            Answer::Server(grant) => grant.switch = at,
            _ => {}
        }
    }
    answer
}

async fn elapsed(span: Option<Nanos>) {
    match span {
        Some(span) => sleep(Duration::from_nanos(span.0)).await,
        None => std::future::pending().await,
    }
}
