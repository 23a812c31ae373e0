//! The client: each task at its own time, from the next of its ports.

use sluice_host::client::UnknownWhy;
use sluice_wire::{Nanos, Reply};

use super::worker::words;
use super::{Command, DATAGRAM_BYTES};
use crate::NetError;
use crate::crew::{BEGINS_AFTER, Outcome, Played};
use crate::udp::{Socket, Wait};

/// A schedule that is being sent.
pub(super) struct Schedule {
    command: Command,
    start: Nanos,
    next: usize,
    played: Vec<Played>,
    left: usize,
}

impl Schedule {
    pub(super) fn new(command: Command, now: Nanos) -> Self {
        let left = command.tasks.len();
        let nothing = Played {
            seen: Nanos(0),
            sent: Nanos(0),
            ended: Nanos(0),
            attempts: 1,
            outcome: Outcome::Unknown(UnknownWhy::Deadline),
        };
        Self { command, start: now + BEGINS_AFTER, next: 0, played: vec![nothing; left], left }
    }

    /// When a task is due, or when the wait for the last answer ends.
    pub(super) fn next_due(&self) -> Nanos {
        let due = self.command.tasks.get(self.next).map(|task| task.due);
        self.start + due.unwrap_or_else(|| self.end())
    }

    pub(super) fn send_due(&mut self, now: Nanos, ports: &mut [Socket]) {
        let since = now.since(self.start);
        while now >= self.start
            && let Some(task) = self.command.tasks.get(self.next).filter(|task| task.due <= since)
        {
            let mut bytes = [0; DATAGRAM_BYTES];
            let (number, span) = bytes.split_at_mut(8);
            number.copy_from_slice(&(self.next as u64).to_be_bytes());
            span.copy_from_slice(&task.bytes);
            let port = &mut ports[self.next % ports.len()];
            port.send(self.command.to, &bytes);
            port.flush();
            let played = &mut self.played[self.next];
            (played.seen, played.sent) = (since, since);
            self.next += 1;
        }
    }

    /// Whether every task has its answer, or has waited long enough for it.
    pub(super) fn is_over(&self, now: Nanos) -> bool {
        self.left == 0 || (self.next == self.command.tasks.len() && now >= self.start + self.end())
    }

    /// Tells who asked what became of the tasks.
    pub(super) fn hand_over(self) {
        // Whoever asked may have gone.
        self.command.answer.send(self.played).ok();
    }

    fn end(&self) -> Nanos {
        self.command.tasks.last().map_or(Nanos(0), |task| task.due) + self.command.deadline
    }

    fn answered(&mut self, number: u64, at: Nanos) {
        let ended = at.since(self.start);
        let played = usize::try_from(number).ok().and_then(|number| self.played.get_mut(number));
        if let Some(played) = played.filter(|played| matches!(played.outcome, Outcome::Unknown(_))) {
            (played.ended, played.outcome) = (ended, Outcome::Reply(Reply::default()));
            self.left -= 1;
        }
    }
}

/// Takes what came to one of the client's ports.
pub(super) fn take(port: &mut Socket, error: bool, mut to: Option<&mut Schedule>) -> Result<(), NetError> {
    if error {
        port.take_errors();
    }
    port.receive(Wait::Poll)?;
    for index in 0..port.len() {
        let datagram = port.datagram(index);
        let Ok(task) = <[u8; DATAGRAM_BYTES]>::try_from(datagram.bytes) else { continue };
        if let Some(schedule) = &mut to {
            schedule.answered(words(task)[0], datagram.received);
        }
    }
    Ok(())
}
