//! A client in virtual time. Its own work takes no time.

use std::mem;

use sluice_events::{Address, PacketId};
use sluice_host::client::{Action, Bundle, Client, ClientSettings, Outcome};
use sluice_wire::{Nanos, Need, Packet, Payload, Submit, TaskId};

use super::{Call, PacketSource, Scene, Try, keep_room};

/// A call of a client's machine.
pub type ClientCall<'a> = Call<'a, Client, ClientSettings, Action>;

/// A rack's clients, and what becomes of what they say.
pub trait ClientSide: Scene {
    /// What a call of a client's machine takes.
    fn client(&mut self, client: usize) -> ClientCall<'_>;

    /// What clients' machines say; empty between calls.
    fn clients_say(&mut self) -> &mut Vec<Action>;

    /// A try of a task leaves; with these bytes, if not with those that the machine knows of.
    fn tries(&mut self, client: usize, submit: &Submit) -> Try<Self, Option<Payload>>;

    /// A task has ended.
    fn ends(&mut self, client: usize, task: TaskId, tag: u64, how: &Outcome) -> Try<Self>;

    /// What concerns bytes beyond packets, and the controller.
    fn client_keeps(&mut self, _client: usize, _action: &Action) -> Try<Self> {
        Ok(())
    }

    /// Reminds of `client_wakes` then.
    fn wake_client(&mut self, at: Nanos, client: usize);

    /// Whether clients ever have to be woken.
    fn wakes_clients(&self) -> bool {
        true
    }

    /// A packet comes to a client.
    #[inline]
    fn client_hears(&mut self, client: usize, packet: PacketId) -> Try<Self> {
        let ClientCall { now, node, settings, packets, out } = self.client(client);
        node.machine.packet(now, settings, packets.get(packet), out);
        self.packets().free(packet);
        self.client_acts(client)
    }

    /// A client was to be woken now, unless that has changed: says whether it was.
    fn client_wakes(&mut self, client: usize) -> Try<Self, bool> {
        let ClientCall { now, node, settings, out, .. } = self.client(client);
        if !node.wakeup.comes(now) {
            return Ok(false);
        }
        node.machine.tick(now, settings, out);
        self.client_acts(client)?;
        Ok(true)
    }

    /// Calls a client's machine, and does what it says.
    fn on_client(
        &mut self,
        client: usize,
        call: impl FnOnce(&mut Client, Nanos, &ClientSettings, &mut Vec<Action>),
    ) -> Try<Self> {
        let ClientCall { now, node, settings, out, .. } = self.client(client);
        call(&mut node.machine, now, settings, out);
        self.client_acts(client)
    }

    /// Does what a client's machine said.
    #[inline]
    fn client_acts(&mut self, client: usize) -> Try<Self> {
        let ClientCall { now, node, out, .. } = self.client(client);
        let (jobs, from) = (node.machine.jobs(), node.sender());
        let actions = mem::take(out);
        let mut bundle = Bundle::new(jobs);
        for action in &actions {
            self.client_does(client, (from, now), action, &mut bundle)?;
        }
        if !bundle.is_off() {
            self.client_closes((from, now), &mut bundle);
        }
        keep_room(self.clients_say(), actions);
        if self.wakes_clients() {
            self.arm_client(client);
        }
        Ok(())
    }

    /// Does one thing that a client's machine said.
    #[inline]
    fn client_does(
        &mut self,
        client: usize,
        (from, now): (PacketSource, Nanos),
        action: &Action,
        bundle: &mut Bundle,
    ) -> Try<Self> {
        match action {
            Action::ToSwitch(submit) => {
                let bytes = self.tries(client, submit)?;
                if !bundle.is_off() {
                    let task = Submit { payload: bytes.unwrap_or(submit.payload), ..*submit };
                    self.client_bundles((from, now), &task, bundle);
                    return Ok(());
                }
                self.send(from, from.switch, now, |place| submit_into(place, submit, bytes));
            }
            Action::Done { tag, task, outcome, .. } => self.ends(client, *task, *tag, outcome)?,
            Action::Gone { to, packet } => {
                self.send(from, Address::of(to), now, |place| *place = Packet::Part(*packet));
            }
            Action::Need { to, packet } => {
                let need = Need { asker_at: from.at.endpoint(), ..*packet };
                self.send(from, Address::of(to), now, |place| *place = Packet::Need(need));
            }
            bytes_or_controller => self.client_keeps(client, bytes_or_controller)?,
        }
        Ok(())
    }

    /// A task leaves with those before it, or behind them.
    fn client_bundles(&mut self, (from, now): (PacketSource, Nanos), task: &Submit, bundle: &mut Bundle) {
        let (before, is_alone) = bundle.put(task);
        for packet in before.into_iter().chain(is_alone.then_some(Packet::Submit(*task))) {
            self.send(from, from.switch, now, |place| *place = packet);
        }
    }

    /// What was put together leaves.
    #[inline]
    fn client_closes(&mut self, (from, now): (PacketSource, Nanos), bundle: &mut Bundle) {
        if let Some(packet) = bundle.close() {
            self.send(from, from.switch, now, |place| *place = packet);
        }
    }

    /// Asks to be woken for what the machine wants next.
    fn arm_client(&mut self, client: usize) {
        let ClientCall { now, node, .. } = self.client(client);
        let due = node.machine.deadline().map(|due| due.max(now + Self::SOONEST));
        if let Some(due) = due.filter(|due| node.wakeup.by(*due)) {
            self.wake_client(due, client);
        }
    }
}

/// In two steps, so that the task is copied to where it belongs as it was written.
#[inline]
fn submit_into(place: &mut Packet, submit: &Submit, bytes: Option<Payload>) {
    *place = Packet::Submit(Submit::default());
    if let Packet::Submit(place) = place {
        *place = *submit;
        place.payload = bytes.unwrap_or(place.payload);
    }
}
