//! A client that sends a schedule: each task at its own time, however the others fare (open loop).
//!
//! It keeps what became of every task, and how late each one left: a schedule whose sender fell behind
//! measures the sender. Tasks carry eight bytes. Left out: longer tasks, and answers beyond their times.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use sluice_control::ClientHello;
use sluice_host::client::{Action, Client, ClientSettings, Outcome, Submission};
use sluice_wire::{Endpoint, Handle, INLINE_BYTES, Incarnation, Nanos, Packet, Payload, Serial, TaskType};
use sluice_wire::{encode, parse};

use super::{Beginning, Turn};
use crate::NetError;
use crate::client::ClientOptions;
use crate::clock::Clock;
use crate::registrar::{ClientRegistrar, RegistrarEvent};
use crate::udp::{Outbox, Socket, SocketOptions, Wait, Waker};

/// How long after it was taken a schedule begins: time enough to look at all of it.
pub(crate) const BEGINS_AFTER: Nanos = Nanos::from_millis(20);
/// How long a task that was pushed back waits until it is offered again, if nothing ends before.
const OFFER_AGAIN: Nanos = Nanos::from_micros(100);

/// One task of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When it is sent, from the start of the schedule.
    pub due: Nanos,
    /// What kind of work it is.
    pub task_type: TaskType,
    /// What it carries.
    pub bytes: [u8; INLINE_BYTES],
}

/// What became of one task of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// When the sender got round to it, from the start of the schedule: how late that is says how late the
    /// sender was.
    pub seen: Nanos,
    /// When it left; later than that if it was pushed back.
    pub sent: Nanos,
    /// When it ended; a reply's arrival as the kernel stamped it.
    pub ended: Nanos,
    /// How many attempts were sent.
    pub attempts: u16,
    /// How it ended.
    pub outcome: Outcome,
}

/// Another thread's way to a client that sends schedules.
pub struct Player {
    commands: Sender<Command>,
    joined: Receiver<Joining>,
    waker: Waker,
    url: String,
}

impl Player {
    /// Waits until the controller has registered the client.
    ///
    /// # Errors
    /// [`NetError::NotRegistered`] when that takes longer than `patience`, [`NetError::Refused`].
    pub fn wait_until_ready(&self, patience: Duration) -> Result<(), NetError> {
        let until = Instant::now() + patience;
        let mut why = "no answer".to_owned();
        loop {
            match self.joined.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Joining::Joined) => return Ok(()),
                Ok(Joining::Waiting(reason)) => why = reason,
                Ok(Joining::Refused(why)) => return Err(NetError::Refused { why }),
                Err(_) => {
                    let controller = self.url.clone();
                    return Err(NetError::NotRegistered { controller, waited: patience, why });
                }
            }
        }
    }

    /// Sends `tasks`, which are in the order of their times; each ends `deadline` after its time at the
    /// latest.
    pub fn play(&self, tasks: Vec<Planned>, deadline: Nanos) -> Playing {
        self.play_from(Nanos(0), tasks, deadline)
    }

    /// The same, beginning at this time of the machine's clock, or as soon as all of it was looked at.
    pub fn play_from(&self, start: Nanos, tasks: Vec<Planned>, deadline: Nanos) -> Playing {
        let (answer, played) = channel();
        // A crew that has ended drops the command, which ends the wait for its answer.
        self.commands.send(Command { start, tasks, deadline, answer }).ok();
        self.waker.wake();
        Playing(played)
    }
}

/// A schedule that is being sent.
pub struct Playing(Receiver<Vec<Played>>);

impl Playing {
    pub(crate) const fn of(played: Receiver<Vec<Played>>) -> Self {
        Self(played)
    }

    /// What became of the tasks, in their order; `None` while some have not ended.
    ///
    /// # Errors
    /// [`NetError::CrewStopped`] when nobody is left to send them.
    pub fn wait(&self, longest: Duration) -> Result<Option<Vec<Played>>, NetError> {
        match self.0.recv_timeout(longest) {
            Ok(played) => Ok(Some(played)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(NetError::CrewStopped),
        }
    }
}

/// A schedule, and who wants to know what came of it.
struct Command {
    start: Nanos,
    tasks: Vec<Planned>,
    deadline: Nanos,
    answer: Sender<Vec<Played>>,
}

/// How registration goes.
enum Joining {
    Joined,
    Waiting(String),
    Refused(String),
}

/// The client, as its thread holds it.
pub(super) struct Replay {
    socket: Socket,
    client: Client,
    settings: ClientSettings,
    clock: Clock,
    registrar: ClientRegistrar,
    commands: Receiver<Command>,
    joining: Sender<Joining>,
    actions: Vec<Action>,
    stage: Option<Stage>,
    beginning: Beginning,
}

/// The schedule that is being sent.
struct Stage {
    command: Command,
    start: Nanos,
    /// Tasks whose time has come.
    seen: usize,
    next: usize,
    /// Not before then is the next task offered again.
    offer_at: Nanos,
    played: Vec<Played>,
    left: usize,
}

impl Replay {
    pub(super) fn new(
        options: &ClientOptions,
        waker: Waker,
        beginning: Beginning,
    ) -> Result<(Self, Player), NetError> {
        let options_of_socket = SocketOptions {
            datagram_max: options.datagram_max,
            waiting: options.waiting,
            faults: options.faults.clone(),
            ..SocketOptions::default()
        };
        let mut socket = Socket::bind(options.listen, &options_of_socket)?;
        socket.share_waker(waker.clone());
        let hello = ClientHello {
            name: options.name.clone(),
            incarnation: Incarnation(crate::identity::random_bits()?),
            at: crate::identity::reachable(socket.local())?,
            floor: Serial(0),
            held: None,
        };
        let bell = waker.clone();
        let client = Client::new(hello.incarnation, hello.floor);
        let registrar = ClientRegistrar::client(options.controller.clone(), hello, move || bell.wake())?;
        let (commands, asked) = channel();
        let (joining, joined) = channel();
        let replay = Self {
            socket,
            client,
            settings: ClientSettings::dilated(options.dilation.into()),
            clock: Clock::start(),
            registrar,
            commands: asked,
            joining,
            actions: Vec::new(),
            stage: None,
            beginning,
        };
        Ok((replay, Player { commands, joined, waker, url: options.controller.url().to_owned() }))
    }

    pub(super) fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Takes what came and sends what is due; says when there is something to do next.
    pub(super) fn turn(&mut self) -> Result<Turn, NetError> {
        self.socket.receive(Wait::Poll)?;
        self.take_packets();
        self.take_registrations();
        self.take_commands();
        let now = self.clock.now();
        self.client.tick(now, &self.settings, &mut self.actions);
        self.perform(now);
        self.send_due();
        self.socket.flush();
        self.registrar.set_floor(self.client.floor());
        Ok(Turn::At(self.next_due()))
    }

    fn next_due(&self) -> Option<Nanos> {
        let stage = self.stage.as_ref().and_then(Stage::next_due);
        [self.client.deadline(), self.socket.next_due(), stage].into_iter().flatten().min()
    }

    fn take_packets(&mut self) {
        let now = self.clock.now();
        for index in 0..self.socket.len() {
            let (inbox, outbox) = self.socket.split();
            let datagram = inbox.datagram(index);
            let Ok((packet, _)) = parse(datagram.bytes) else { continue };
            self.client.packet(now, &self.settings, &packet, &mut self.actions);
            let switch = self.client.switch();
            perform(&mut self.actions, switch, outbox, self.stage.as_mut(), datagram.received);
        }
        self.end_stage();
    }

    fn take_registrations(&mut self) {
        while let Some(event) = self.registrar.try_next() {
            let now = self.clock.now();
            let joining = match event {
                RegistrarEvent::Granted(grant) => {
                    self.client.grant(now, &self.settings, grant.registration, &mut self.actions);
                    self.perform(now);
                    Joining::Joined
                }
                RegistrarEvent::Wait { why, .. } | RegistrarEvent::Lost { why } => Joining::Waiting(why),
                RegistrarEvent::Refused { why } => Joining::Refused(why),
                RegistrarEvent::Left { .. } => continue,
            };
            // Whoever waited for the first registration may no longer listen.
            self.joining.send(joining).ok();
        }
    }

    fn take_commands(&mut self) {
        if self.stage.is_none()
            && let Ok(command) = self.commands.try_recv()
        {
            let nothing = Played {
                seen: Nanos(0),
                sent: Nanos(0),
                ended: Nanos(0),
                attempts: 0,
                outcome: Outcome::Unknown(sluice_host::client::UnknownWhy::Deadline),
            };
            let (start, left) = (command.start.max(self.clock.now() + BEGINS_AFTER), command.tasks.len());
            self.beginning.tell(start);
            let played = vec![nothing; left];
            self.stage = Some(Stage { command, start, seen: 0, next: 0, offer_at: start, played, left });
            self.end_stage();
        }
    }

    fn send_due(&mut self) {
        loop {
            let now = self.clock.now();
            let Some(stage) = &mut self.stage else { return };
            stage.see(now);
            let Some(submission) = stage.due(now) else { return };
            if self.client.submit(now, &self.settings, submission, &mut self.actions).is_err() {
                stage.offer_at = now + OFFER_AGAIN;
                return;
            }
            stage.played[stage.next].sent = now.since(stage.start);
            stage.next += 1;
            self.perform(now);
        }
    }

    fn perform(&mut self, at: Nanos) {
        let switch = self.client.switch();
        let renew = perform(&mut self.actions, switch, self.socket.outbox(), self.stage.as_mut(), at);
        if renew {
            self.registrar.renew_now();
        }
        self.end_stage();
    }

    /// Hands over what became of the tasks, once all have ended.
    fn end_stage(&mut self) {
        if let Some(stage) = self.stage.take_if(|stage| stage.left == 0) {
            // Whoever asked may have gone.
            stage.command.answer.send(stage.played).ok();
        }
    }
}

impl Stage {
    fn next_due(&self) -> Option<Nanos> {
        let next = self.command.tasks.get(self.next)?;
        Some((self.start + next.due).max(self.offer_at))
    }

    fn see(&mut self, now: Nanos) {
        let since = now.since(self.start);
        while self.command.tasks.get(self.seen).is_some_and(|task| task.due <= since) {
            self.played[self.seen].seen = since;
            self.seen += 1;
        }
    }

    fn due(&self, now: Nanos) -> Option<Submission> {
        if self.next_due()? > now {
            return None;
        }
        let task = self.command.tasks[self.next];
        Some(Submission {
            task_type: task.task_type,
            payload: Payload { len: INLINE_BYTES as u16, inline: task.bytes, handle: Handle::NONE },
            deadline: self.start + task.due + self.command.deadline,
            retry: true,
            tag: self.next as u64,
        })
    }

    fn ended(&mut self, tag: u64, at: Nanos, attempts: u16, outcome: Outcome) {
        let ended = at.since(self.start);
        if let Some(played) = self.played.get_mut(tag as usize) {
            *played = Played { ended, attempts, outcome, ..*played };
            self.left -= 1;
        }
    }
}

/// Does what the state machine wants; says whether the controller is to be asked.
fn perform(
    actions: &mut Vec<Action>,
    switch: Option<Endpoint>,
    outbox: &mut Outbox,
    mut stage: Option<&mut Stage>,
    at: Nanos,
) -> bool {
    let mut renew = false;
    for action in actions.drain(..) {
        match action {
            Action::ToSwitch(submit) => {
                let Some(switch) = switch else { continue };
                outbox.send_with(switch, |out| encode(&Packet::Submit(submit), &[], out).unwrap_or(0));
            }
            Action::Done { tag, attempts, outcome, .. } => {
                if let Some(stage) = &mut stage {
                    stage.ended(tag, at, attempts, outcome);
                }
            }
            // All that was replayed fits one packet.
            Action::Parts { .. }
            | Action::Need { .. }
            | Action::Begin { .. }
            | Action::Place { .. }
            | Action::Check { .. }
            | Action::Forget(_)
            | Action::Release(_) => {}
            Action::Renew => renew = true,
        }
    }
    renew
}
