//! The state machine's driver: calls, the switch's answers and time go in; answers, steps and notes come out.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sluice_control::{Action, Answer, CallId, Controller, Event, Note, PoolSize, Refusal, View};
use sluice_net::agent::{judgement_lines, said};
use sluice_net::clock::Clock;
use sluice_rpc::Caller;
use sluice_rpc::v1::AgentInterval;
use sluice_wire::tables::TableOp;
use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{Endpoint, Generation, Incarnation, Key, Nanos, SliceId, WorkerId};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::sleep;

use super::link::{Batch, LineId, Link, SwitchEvent};

/// Steps that go to the switch at once, with no packet in between.
const BATCH_MAX: usize = 256;

/// What a call wants of the state machine.
pub(super) enum Command {
    /// Take this event and answer it.
    Call { event: Box<dyn FnOnce(CallId) -> Event + Send>, answer: oneshot::Sender<Answer> },
    /// Show everything, with balances read now.
    Look { answer: oneshot::Sender<ControllerSnapshot> },
    /// Say when a worker's registration is another than this one, to whoever speaks for it.
    Await { caller: Caller, held: HeldRow, answer: oneshot::Sender<Result<(), NotOwn>> },
    /// Hear an agent, and answer once the others were heard and the slice step was taken.
    Hear { report: Box<Report>, answer: oneshot::Sender<Result<ForAgent, NotOwn>> },
}

/// What an agent says, and who it is.
pub(super) struct Report {
    pub(super) caller: Caller,
    pub(super) interval: AgentInterval,
    pub(super) tallies: Vec<SliceTally>,
}

/// A worker of which an agent tells, and for which its caller does not speak.
pub(super) struct NotOwn(pub(super) WorkerId);

/// What a worker believes to be its registration.
#[derive(Clone, Copy)]
pub(super) struct HeldRow {
    pub(super) worker: WorkerId,
    pub(super) key: Key,
    pub(super) generation: Generation,
}

/// What an agent is answered.
pub(super) struct ForAgent {
    /// What the slice step wants of its workers.
    pub(super) depths: Depths,
    /// What its slices' workers on other servers did.
    pub(super) others: Vec<SliceOthers>,
}

type Depths = Vec<(WorkerId, u8)>;

/// Everything that the controller knows, and where its switch is.
pub(super) struct ControllerSnapshot {
    pub(super) view: View,
    pub(super) at: Option<Endpoint>,
}

/// Something that people may want to see, and when it was written.
#[derive(Clone, Debug)]
pub(super) struct TimedNote {
    pub(super) at_unix_ns: u64,
    pub(super) what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Note(Note),
    /// What an agent found, in words and numbers.
    Found(String, Arc<AgentInterval>),
}

/// Where notes go.
#[derive(Clone)]
pub(super) struct NoteSink(broadcast::Sender<TimedNote>);

impl NoteSink {
    pub(super) fn new(sender: broadcast::Sender<TimedNote>) -> Self {
        Self(sender)
    }

    pub(super) fn listen(&self) -> broadcast::Receiver<TimedNote> {
        self.0.subscribe()
    }

    fn note(&self, note: Note) {
        tracing::info!("{note}");
        self.tell(What::Note(note));
    }

    fn found(&self, interval: AgentInterval, slice_name: impl Fn(u32) -> String) {
        let lines = judgement_lines(&interval, slice_name);
        for line in &lines {
            tracing::info!("{line}");
        }
        self.tell(What::Found(lines.join("; "), Arc::new(interval)));
    }

    fn tell(&self, what: What) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let at_unix_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        // Nobody may be listening.
        let _ = self.0.send(TimedNote { at_unix_ns, what });
    }
}

pub(super) struct Runner {
    controller: Controller,
    clock: Clock,
    commands: mpsc::Receiver<Command>,
    link: Link,
    telling: NoteSink,
    line: Option<LineId>,
    /// Where the switch was last.
    at: Option<Endpoint>,
    steps: VecDeque<TableOp>,
    awaiting_answers: bool,
    calls: HashMap<CallId, oneshot::Sender<Answer>>,
    next_call: u64,
    lookers: Vec<oneshot::Sender<ControllerSnapshot>>,
    /// Workers that wait for a change.
    awaiting: Vec<(HeldRow, oneshot::Sender<Result<(), NotOwn>>)>,
    /// Agents that wait for the slice step.
    agents: Vec<Waiting>,
    /// What the step wants of workers.
    depths: Depths,
    told_to: ControllerObserver,
    /// What it heard last of how many workers each slice has.
    sizes_said: Vec<PoolSize>,
    /// What it heard last of whether the spine has leaves.
    serves_said: Option<bool>,
    out: Vec<Action>,
}

/// What wakes a leaf's line.
pub(super) enum LeafWake {
    /// The rack's pools are these now.
    Sizes(Vec<PoolSize>),
    /// The controller above said something.
    Above,
    /// It is to end.
    Stop,
}

/// Who else hears of a controller.
pub(super) enum ControllerObserver {
    Nobody,
    /// A leaf's line: how large its rack's pools are.
    Leaf(std::sync::mpsc::Sender<LeafWake>),
    /// Whoever stands above several spines.
    Above(Box<dyn Fn(SpineEvent) + Send>),
}

/// What is heard of a spine.
pub(super) enum SpineEvent {
    /// It was found, or lost.
    Lives(bool),
    /// It has leaves now, or none; unknown until its tables were read.
    Serves(Option<bool>),
    /// These clients stood in its tables when they were read.
    Found(Vec<Incarnation>),
}

/// An agent that waits for the slice step.
struct Waiting {
    server: String,
    workers: Vec<WorkerId>,
    others: Vec<SliceOthers>,
    answer: oneshot::Sender<Result<ForAgent, NotOwn>>,
}

impl Runner {
    pub(super) fn new(
        controller: Controller,
        commands: mpsc::Receiver<Command>,
        link: Link,
        telling: NoteSink,
        told_to: ControllerObserver,
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
            awaiting: Vec::new(),
            agents: Vec::new(),
            depths: Vec::new(),
            told_to,
            sizes_said: Vec::new(),
            serves_said: None,
            out: Vec::new(),
        }
    }

    /// Until nobody can call any more.
    pub(super) async fn run(mut self) {
        loop {
            let due = self.controller.deadline().map(|at| at.since(self.clock.now()));
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command),
                    None => return,
                },
                news = self.link.news.recv() => match news {
                    Some(news) => self.news(news),
                    None => return,
                },
                () = elapsed(due) => {
                    let now = self.clock.now();
                    self.controller.tick(now, &mut self.out);
                }
            }
            self.act();
            self.answer_agents();
            self.tell_changes();
            self.tell_sizes();
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
                    // It may have hung up.
                    return drop(answer.send(Answer::Refused { why }));
                }
                self.calls.insert(call, answer);
                self.event(event);
            }
            Command::Look { answer } => {
                self.lookers.push(answer);
                self.event(Event::Watch);
                let now = self.clock.now();
                self.controller.tick(now, &mut self.out);
            }
            // Whether a key is right is told to nobody else. It may have hung up.
            Command::Await { caller, held, answer } if !self.is_own(&caller, held.worker) => {
                answer.send(Err(NotOwn(held.worker))).unwrap_or_default();
            }
            Command::Await { held, answer, .. } => {
                // One that asks again has hung up before; one without the key does not speak for the worker.
                self.awaiting.retain(|(known, answer)| {
                    (known.worker, known.key) != (held.worker, held.key) && !answer.is_closed()
                });
                self.awaiting.push((held, answer));
            }
            Command::Hear { report, answer } => match self.not_own(&report) {
                // It may have hung up.
                Some(other) => answer.send(Err(NotOwn(other))).unwrap_or_default(),
                None => self.hear(*report, answer),
            },
        }
    }

    /// Why a host that would register cannot be reached from the switch, if it cannot.
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

    /// A worker that somebody else registered.
    fn not_own(&self, report: &Report) -> Option<WorkerId> {
        let told = said::told_of(&report.interval).filter_map(|worker| u16::try_from(worker).ok());
        let is_others = |worker: &WorkerId| {
            self.controller.worker_name(*worker).is_some_and(|name| !report.caller.may_be(name))
        };
        told.map(WorkerId).find(is_others)
    }

    /// Whether a caller speaks for a worker. Who that one is may not be known yet.
    fn is_own(&self, caller: &Caller, worker: WorkerId) -> bool {
        let name = self.controller.worker_name(worker);
        name.map_or(matches!(caller, Caller::Trusted), |name| caller.may_be(name))
    }

    fn hear(&mut self, report: Report, answer: oneshot::Sender<Result<ForAgent, NotOwn>>) {
        let Report { interval, mut tallies, .. } = report;
        // Whose those are that have no name is not known.
        said::hold_to(&mut tallies, |worker| self.controller.worker_name(worker).is_some());
        let (server, advises) = (interval.server.clone(), interval.advises);
        let name =
            |slice: u32| self.controller.slice_name(u16::try_from(slice).map_or(SliceId(u16::MAX), SliceId));
        self.telling.found(interval, name);
        let workers =
            tallies.iter().flat_map(|tally| tally.depths.iter().map(|(worker, _)| *worker)).collect();
        // An agent that reports again has given up on its last call.
        self.agents.retain(|agent| agent.server != server);
        self.agents.push(Waiting { server: server.clone(), workers, others: Vec::new(), answer });
        self.event(Event::Tallies { server, advises, tallies });
    }

    fn tell_changes(&mut self) {
        let controller = &self.controller;
        let is_old = |(held, _): &mut (HeldRow, _)| {
            controller.settled(held.worker).is_some_and(|now| now != (held.key, held.generation))
        };
        for (_, answer) in self.awaiting.extract_if(.., is_old) {
            // It may have heard otherwise.
            answer.send(Ok(())).unwrap_or_default();
        }
    }

    /// A leaf says above how many workers its rack has, and a spine whether it has leaves.
    fn tell_sizes(&mut self) {
        match &self.told_to {
            ControllerObserver::Nobody => {}
            ControllerObserver::Leaf(line) => {
                let sizes = self.controller.pool_sizes();
                if sizes != self.sizes_said {
                    self.sizes_said.clone_from(&sizes);
                    // The line may have ended.
                    line.send(LeafWake::Sizes(sizes)).unwrap_or_default();
                }
            }
            ControllerObserver::Above(desk) => {
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

    /// Once the slice step was taken.
    fn answer_agents(&mut self) {
        if self.agents.is_empty() || self.controller.is_gathering() {
            return;
        }
        for Waiting { workers, others, answer, .. } in self.agents.drain(..) {
            let depths = self.depths.iter().filter(|(worker, _)| workers.contains(worker)).copied().collect();
            // The agent may have hung up.
            let _ = answer.send(Ok(ForAgent { depths, others }));
        }
        self.depths.clear();
    }

    fn news(&mut self, news: SwitchEvent) {
        match news {
            SwitchEvent::Up { line, shape, at } => {
                self.line = Some(line);
                self.at = Some(at);
                self.event(Event::SwitchUp(shape));
                self.tell_above(true);
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
                // What the state machine wanted before is void; it asks anew once the switch is up.
                self.steps.clear();
                self.event(Event::SwitchDown);
                self.tell_above(false);
            }
        }
    }

    /// Tells whoever runs the spines' controllers whether this spine's switch lives. If it is lost, all
    /// waiting calls are answered, so that registered hosts ask at once where to go.
    fn tell_above(&mut self, lives: bool) {
        let ControllerObserver::Above(desk) = &self.told_to else { return };
        desk(SpineEvent::Lives(lives));
        if !lives {
            for (_, answer) in self.awaiting.drain(..) {
                // It may have hung up.
                answer.send(Ok(())).unwrap_or_default();
            }
        }
    }

    fn event(&mut self, event: Event) {
        let now = self.clock.now();
        self.controller.event(now, event, &mut self.out);
    }

    fn act(&mut self) {
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
        self.awaiting_answers = self.link.batches.send(Batch { line, by, ops }).await.is_ok();
    }

    /// Shows everything to those who look, once what they asked to be read was read.
    fn show(&mut self) {
        if self.lookers.is_empty() || self.awaiting_answers {
            return;
        }
        let view = self.controller.view(self.clock.now());
        for looker in self.lookers.drain(..) {
            // Whoever looked may have gone.
            let _ = looker.send(ControllerSnapshot { view: view.clone(), at: self.at });
        }
    }
}

/// Hosts are told the address that the switch itself says it has.
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
