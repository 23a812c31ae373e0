//! A client in virtual time. Its own work takes no time.

use sluice_events::Address;
use sluice_host::client::{Action, Bundle, Outcome};
use sluice_wire::{Need, Packet, Payload, Submit, TaskId};

use super::PacketSource;

/// What a world does for a client's machine.
#[derive(Clone, Copy, Debug)]
pub enum ClientEffect<'a> {
    /// A try of a task leaves for the client's switch, put together with others of the same instant
    /// ([`bundled`]) where the switch takes that.
    Try(&'a Submit),
    /// A task has ended.
    Ended {
        task: TaskId,
        /// How many tries were sent.
        attempts: u16,
        /// The submitter's number for it.
        tag: u64,
        how: &'a Outcome,
    },
    /// A packet about bytes leaves for a worker: the client asks for them, or has none any more.
    Send(Address, Packet),
    /// What concerns bytes beyond packets, and the controller.
    Keep(&'a Action),
}

impl<'a> ClientEffect<'a> {
    /// What follows from an action of the machine of this sender.
    #[inline]
    pub fn of(action: &'a Action, sender: PacketSource) -> Self {
        match action {
            Action::ToSwitch(submit) => Self::Try(submit),
            Action::Done { tag, task, attempts, outcome } => {
                Self::Ended { task: *task, attempts: *attempts, tag: *tag, how: outcome }
            }
            Action::Gone { to, packet } => Self::Send(Address::of(to), Packet::Part(*packet)),
            Action::Need { to, packet } => {
                let need = Need { asker_at: sender.at.endpoint(), ..*packet };
                Self::Send(Address::of(to), Packet::Need(need))
            }
            keep => Self::Keep(keep),
        }
    }
}

/// A task leaves with those before it, or behind them: gives the packets that leave now.
pub fn bundled(bundle: &mut Bundle, task: &Submit) -> impl Iterator<Item = Packet> + use<> {
    let (before, is_alone) = bundle.put(task);
    before.into_iter().chain(is_alone.then_some(Packet::Submit(*task)))
}

/// Writes a task, with these bytes if not with its own. In two steps, so that the task is copied to where it
/// belongs as it was written.
#[inline]
pub fn write_submit(place: &mut Packet, submit: &Submit, bytes: Option<Payload>) {
    *place = Packet::Submit(Submit::default());
    if let Packet::Submit(place) = place {
        *place = *submit;
        place.payload = bytes.unwrap_or(place.payload);
    }
}
