//! A worker in virtual time: its machine, and a core that does one thing at a time ([`Core`](super::Core)).
//! Since nothing can come between, a whole stretch (receive, send, start to serve) is worked out when it
//! begins.

use sluice_events::Address;
use sluice_host::worker::Action;
use sluice_wire::{Nanos, Need, Packet, Reply};

use super::PacketSource;
use super::core::TaskRun;

/// What a world does for a worker's machine. What leaves does so one after the other; then a service starts.
#[derive(Clone, Copy, Debug)]
pub enum WorkerEffect<'a> {
    /// A token or a probe leaves for the switch ([`write_token`]).
    Token(&'a Packet),
    /// A reply leaves for the switch, which passes it on ([`write_reply`]).
    Report(&'a Reply),
    /// A reply leaves for its client; no program looks at it.
    Reply(Address, &'a Reply),
    Run(TaskRun),
    /// A client is asked for bytes, which takes no time.
    Ask(Address, Packet),
    /// What concerns bytes beyond packets, and the controller.
    Keep(&'a Action),
}

impl<'a> WorkerEffect<'a> {
    /// What follows from an action of the machine of this sender; a run would start then.
    #[inline]
    pub fn of(action: &'a Action, sender: PacketSource, starts: Nanos) -> Self {
        match action {
            Action::ToSwitch(packet) => Self::Token(packet),
            Action::Report(reply) => Self::Report(reply),
            Action::Reply { to, packet } => Self::Reply(Address::of(to), packet),
            Action::Run { slot, task, task_type, payload } => Self::Run(TaskRun {
                slot: *slot,
                task: *task,
                task_type: *task_type,
                payload: *payload,
                started: starts,
            }),
            Action::Need { to, packet } => {
                let need = Need { asker_at: sender.at.endpoint(), ..*packet };
                Self::Ask(Address::of(to), Packet::Need(need))
            }
            keep => Self::Keep(keep),
        }
    }
}

/// Writes a token or a probe: as many tasks more stand before a token as its worker has not looked at yet.
#[inline]
pub fn write_token(place: &mut Packet, packet: &Packet, unread: u32) {
    *place = *packet;
    if let Packet::Token(token) = place {
        token.rank = token.rank.further(unread);
    }
}

/// Writes a reply: its worker's load is more by the tasks that it has not looked at yet. In two steps, so
/// that the reply is copied to where it belongs as it was written.
#[inline]
pub fn write_reply(place: &mut Packet, reply: &Reply, unread: u32) {
    *place = Packet::Reply(Reply::default());
    if let Packet::Reply(place) = place {
        *place = *reply;
        place.load += unread;
    }
}
