//! A client that sends a schedule: each task at its own time, regardless of the others (open loop).
//!
//! The client records the outcome of every task and how late each one left: a schedule whose sender fell
//! behind measures the sender. Tasks carry eight bytes. Left out: longer tasks, and the contents of answers
//! beyond their times.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use sluice_host::client::{Action, Client, ClientSettings, Submission};
use sluice_net::client::{Joining, wait_until_joined};
use sluice_net::clock::Clock;
use sluice_net::udp::{Outbox, Socket, Wait, Waker};
use sluice_net::worker::Turn;
use sluice_net::{ClientOptions, NetError};
use sluice_rpc::registrar::{ClientRegistrar, RegistrarEvent};
use sluice_wire::{Endpoint, Handle, INLINE_BYTES, Nanos, Packet, Payload};
use sluice_wire::{encode, parse};

use crate::schedule::{Planned, PlayCommand, Playback, Playing};
use crate::start::ScheduleStart;

/// How long after a task's deadline the client has to end it.
const DRAIN: Nanos = Nanos::from_millis(2_000);

/// Another thread's handle of a client that sends schedules.
pub struct Player {
    commands: Sender<PlayCommand>,
    joined: Receiver<Joining>,
    waker: Waker,
    url: String,
}

impl Player {
    /// Waits until the controller has registered the client.
    ///
    /// # Errors
    /// [`NetError::NotRegistered`] if this takes longer than `patience`; [`NetError::Refused`].
    pub fn wait_until_ready(&self, patience: Duration) -> Result<(), NetError> {
        wait_until_joined(&self.joined, &self.url, patience)
    }

    /// Sends `tasks`, which must be in order of time. Each ends at most `deadline` after its scheduled
    /// time.
    pub fn play(&self, tasks: Vec<Planned>, deadline: Nanos) -> Playing {
        self.play_from(Nanos(0), tasks, deadline)
    }

    /// Sends `tasks` from `start` of the machine's clock on, or as soon as all of them were looked at.
    pub fn play_from(&self, start: Nanos, tasks: Vec<Planned>, deadline: Nanos) -> Playing {
        let (command, playing) = PlayCommand::new(start, tasks, deadline);
        // A group that has ended drops the command, which also ends the wait for its answer.
        self.commands.send(command).ok();
        self.waker.wake();
        playing
    }
}

/// The client on its thread.
pub(super) struct Replay {
    socket: Socket,
    client: Client,
    settings: ClientSettings,
    clock: Clock,
    registrar: ClientRegistrar,
    commands: Receiver<PlayCommand>,
    joining: Sender<Joining>,
    actions: Vec<Action>,
    playback: Option<Playback>,
    beginning: ScheduleStart,
}

impl Replay {
    pub(super) fn new(
        options: &ClientOptions,
        waker: Waker,
        beginning: ScheduleStart,
    ) -> Result<(Self, Player), NetError> {
        let (mut socket, hello) = options.open()?;
        socket.share_waker(waker.clone());
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
            playback: None,
            beginning,
        };
        Ok((replay, Player { commands, joined, waker, url: options.controller.url().to_owned() }))
    }

    pub(super) fn socket(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Handles the arrived packets and commands, and sends the due tasks. Returns the time of the next
    /// action.
    pub(super) fn turn(&mut self) -> Result<Turn, NetError> {
        self.socket.receive(Wait::Poll)?;
        self.take_packets();
        self.take_registrations();
        self.take_commands();
        let now = self.clock.now();
        self.client.tick(now, &self.settings, &mut self.actions);
        self.perform(now);
        self.send_due();
        self.end_playback();
        self.socket.flush();
        self.registrar.set_floor(self.client.floor());
        Ok(Turn::At(self.next_due()))
    }

    fn next_due(&self) -> Option<Nanos> {
        let playback = self.playback.as_ref().map(Playback::next_due);
        [self.client.deadline(), self.socket.next_due(), playback].into_iter().flatten().min()
    }

    fn take_packets(&mut self) {
        let now = self.clock.now();
        let (inbox, outbox) = self.socket.split();
        for datagram in inbox.datagrams() {
            let Ok((packet, _)) = parse(datagram.bytes) else { continue };
            self.client.packet(now, &self.settings, &packet, &mut self.actions);
            let switch = self.client.switch();
            perform(&mut self.actions, switch, outbox, self.playback.as_mut(), datagram.received);
        }
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
            // The thread that waited for the first registration may be gone.
            self.joining.send(joining).ok();
        }
    }

    fn take_commands(&mut self) {
        if self.playback.is_none()
            && let Ok(command) = self.commands.try_recv()
        {
            let playback = command.begin(self.clock.now(), DRAIN);
            self.beginning.set(playback.start());
            self.playback = Some(playback);
        }
    }

    fn send_due(&mut self) {
        while let Some(playback) = &mut self.playback {
            let now = self.clock.now();
            let Some((due, deadline)) = playback.next(now) else { break };
            let submission = Submission {
                task_type: due.task.kind,
                urgency: due.task.urgency,
                payload: Payload { len: INLINE_BYTES as u16, inline: due.task.bytes, handle: Handle::NONE },
                deadline,
                retry: true,
                tag: due.number,
                ..Submission::default()
            };
            if self.client.submit(now, &self.settings, submission, &mut self.actions).is_err() {
                playback.push_back(now, due);
            }
            self.perform(now);
        }
    }

    fn perform(&mut self, at: Nanos) {
        let switch = self.client.switch();
        let renew = perform(&mut self.actions, switch, self.socket.outbox(), self.playback.as_mut(), at);
        if renew {
            self.registrar.renew_now();
        }
    }

    /// Returns the outcomes of the tasks once all have ended.
    fn end_playback(&mut self) {
        let now = self.clock.now();
        if let Some(playback) = self.playback.take_if(|playback| playback.is_over(now)) {
            playback.hand_over();
        }
    }
}

/// Carries out the state machine's actions. Returns whether to call the controller.
fn perform(
    actions: &mut Vec<Action>,
    switch: Option<Endpoint>,
    outbox: &mut Outbox,
    mut playback: Option<&mut Playback>,
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
                if let Some(playback) = &mut playback {
                    playback.ended(tag, at, attempts, outcome);
                }
            }
            // All replayed tasks and answers fit into one packet.
            Action::Parts { .. }
            | Action::Gone { .. }
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
