//! Clients: how they join, renew, leave and die, and how many tasks they may have outstanding.
//!
//! A client's row is written when it joins and when its address changes, each time under a new key. Writing
//! the row starts the replay cells anew, and packets of the old key must not pass these a second time.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use sluice_wire::registrations::{ClientRegistration, Sizes};
use sluice_wire::tables::TableOp;
use sluice_wire::{ClientId, Incarnation, Nanos, SliceId};

use crate::client::{Client, Writing};
use crate::controller::{Controller, SOON, too_many, wait};
use crate::ledger::Expect;
use crate::message::{Action, Answer, CallId, ClientGrant, ClientHello, Refusal, Waiting};
use crate::name::check_name;
use crate::note::Note;
use crate::registration::{Fate, NameConflict, Waiter, Wants};
use crate::tier::Tier;

impl Controller {
    pub(crate) fn client_hello(
        &mut self,
        now: Nanos,
        call: CallId,
        hello: ClientHello,
        out: &mut Vec<Action>,
    ) {
        if let Err(why) = check_name(&hello.name) {
            out.push(Action::Answer { call, answer: Answer::Refused { why: why.into() } });
            return;
        }
        if self.plan.tier == Tier::Leaf {
            let why = Refusal::LeafOnly { name: hello.name };
            out.push(Action::Answer { call, answer: Answer::Refused { why } });
            return;
        }
        let index = self.find_client(&hello);
        let answer = match index.and_then(|i| Some((i, self.clients.get(i)?.registration.life))) {
            Some((index, life)) if life == hello.incarnation.0 => {
                self.renew_client(now, call, index, &hello, out)
            }
            Some((index, _)) => Some(self.contest_client(now, index, &hello)),
            None => self.join_client(now, call, hello, out),
        };
        if let Some(answer) = answer {
            out.push(Action::Answer { call, answer });
        }
    }

    pub(crate) fn client_leave(
        &mut self,
        call: CallId,
        name: &str,
        incarnation: Incarnation,
        out: &mut Vec<Action>,
    ) {
        if let Some(answer) = self.unreachable() {
            out.push(Action::Answer { call, answer });
            return;
        }
        let held = |i: &u16| self.clients.get(*i).is_some_and(|c| c.row.incarnation == incarnation);
        let nameless = || self.nameless_client(|c| c.row.incarnation == incarnation);
        let Some(index) = self.clients.by_name(name).filter(held).or_else(nameless) else {
            out.push(Action::Answer { call, answer: Answer::Left { final_sent: None } });
            return;
        };
        if let Some(client) = self.clients.get_mut(index) {
            client.fate = Fate::Leaves;
        }
        self.let_client_wait(index, Waiter { call, wants: Wants::Left }, out);
        self.settle_client(ClientId(index), out);
    }

    /// Another spine's controller has granted the client of this incarnation. Its row stays here until its
    /// lease ends, for tasks that are under way.
    pub(crate) fn client_is_elsewhere(&mut self, incarnation: Incarnation) {
        let found = self.clients.iter_mut().find(|(_, client)| client.row.incarnation == incarnation);
        if let Some((_, client)) = found {
            client.is_elsewhere = true;
        }
    }

    /// A client's row was written or cleared.
    pub(crate) fn client_written(&mut self, id: ClientId, out: &mut Vec<Action>) {
        let Some(client) = self.clients.get_mut(id.0) else { return };
        if client.writing.take() == Some(Writing::Clearing) {
            self.client_gone(id, out);
            return;
        }
        let joined = !core::mem::replace(&mut client.in_switch, true);
        if joined {
            let name = client.registration.shown();
            out.push(Action::Note(Note::ClientJoined { name, client: id }));
        }
        self.settle_client(id, out);
    }

    /// Ends the leases that were not renewed; returns the end of the next lease.
    pub(crate) fn end_client_leases(&mut self, now: Nanos, out: &mut Vec<Action>) -> Option<Nanos> {
        let lease = self.plan.lease;
        let mut next: Option<Nanos> = None;
        let mut ended = Vec::new();
        for (index, client) in self.clients.iter_mut().filter(|(_, c)| c.fate == Fate::Stays) {
            let ends = client.registration.ends(lease);
            if ends <= now {
                client.fate = Fate::Dies;
                ended.push(ClientId(index));
            } else {
                next = Some(next.map_or(ends, |n| n.min(ends)));
            }
        }
        for client in ended {
            self.settle_client(client, out);
        }
        next
    }

    /// Starts the write that a client's row needs, or answers its waiting calls if it needs none.
    pub(crate) fn settle_client(&mut self, id: ClientId, out: &mut Vec<Action>) {
        let Some(client) = self.clients.get(id.0) else { return };
        if client.writing.is_some() {
            return;
        }
        if client.is_settled() {
            self.answer_client(id, out);
            return;
        }
        let key = self.new_key(client.row.key);
        let Some(client) = self.clients.get_mut(id.0) else { return };
        let row = if client.fate == Fate::Stays {
            client.writing = Some(Writing::Setting);
            client.row.key = key;
            client.row.at = client.at;
            Some((client.row, client.floor))
        } else {
            client.writing = Some(Writing::Clearing);
            None
        };
        self.ledger.ask(TableOp::SetClient(id, row), Expect::Client(id), out);
    }

    fn answer_client(&mut self, id: ClientId, out: &mut Vec<Action>) {
        let Some(client) = self.clients.get_mut(id.0) else { return };
        let waiters = client.registration.take_waiters();
        for Waiter { call, wants } in waiters {
            let answer = wants.settled(|| self.client_answer(id));
            out.push(Action::Answer { call, answer });
        }
    }

    fn client_gone(&mut self, id: ClientId, out: &mut Vec<Action>) {
        let Some(mut client) = self.clients.remove(id.0) else { return };
        let name = client.registration.shown();
        for Waiter { call, wants } in client.registration.take_waiters() {
            let answer = match wants {
                Wants::Left => Answer::Left { final_sent: None },
                Wants::Grant | Wants::Moved => wait(Waiting::Leaving, SOON),
            };
            out.push(Action::Answer { call, answer });
        }
        out.push(Action::Note(match client.fate {
            Fate::Leaves => Note::ClientLeft { name, client: id },
            Fate::Stays | Fate::Dies if client.is_elsewhere => Note::ClientMoved { name, client: id },
            Fate::Stays | Fate::Dies => Note::ClientDied { name, client: id },
        }));
    }

    /// The index of the name's holder, or of a row without a name that this client proves to be its own.
    fn find_client(&mut self, hello: &ClientHello) -> Option<u16> {
        if let Some(index) = self.clients.by_name(&hello.name) {
            return Some(index);
        }
        let index = self.nameless_client(|c| c.row.incarnation == hello.incarnation)?;
        self.clients.name(index, &hello.name);
        Some(index)
    }

    fn nameless_client(&self, fit: impl Fn(&Client) -> bool) -> Option<u16> {
        self.clients.iter().find(|(_, c)| c.registration.name.is_none() && fit(c)).map(|(i, _)| i)
    }

    fn renew_client(
        &mut self,
        now: Nanos,
        call: CallId,
        index: u16,
        hello: &ClientHello,
        out: &mut Vec<Action>,
    ) -> Option<Answer> {
        let (unreachable, unknowing) = (self.unreachable(), self.unknowing().is_some());
        let client = self.clients.get_mut(index)?;
        if client.fate != Fate::Stays {
            return Some(wait(Waiting::Leaving, SOON));
        }
        client.registration.renewed = now;
        client.is_elsewhere = false;
        client.at = hello.at;
        client.floor = hello.floor;
        if client.is_settled() && !unknowing {
            return Some(self.client_answer(ClientId(index)));
        }
        if unreachable.is_some() {
            return unreachable;
        }
        self.let_client_wait(index, Waiter { call, wants: Wants::Grant }, out);
        self.settle_client(ClientId(index), out);
        None
    }

    fn contest_client(&mut self, now: Nanos, index: u16, hello: &ClientHello) -> Answer {
        let lease = self.plan.lease;
        if let Some(answer) = self.unreachable() {
            return answer;
        }
        let Some(client) = self.clients.get_mut(index).filter(|c| c.fate == Fate::Stays) else {
            return wait(Waiting::Leaving, SOON);
        };
        match client.registration.contest(hello.incarnation.0, now, lease) {
            NameConflict::Wait => wait(Waiting::NameHeld, self.plan.renew_every),
            NameConflict::GiveUp => Answer::Refused { why: Refusal::NameHeld { name: hello.name.clone() } },
        }
    }

    fn join_client(
        &mut self,
        now: Nanos,
        call: CallId,
        hello: ClientHello,
        out: &mut Vec<Action>,
    ) -> Option<Answer> {
        if let Some(answer) = self.unreachable() {
            return Some(answer);
        }
        if self.nameless_client(|c| c.fate == Fate::Stays).is_some() {
            return Some(wait(Waiting::NamesUnknown, self.plan.renew_every));
        }
        if now < self.gathers_until && self.slices.iter().any(|slice| slice.serving == 0) {
            return Some(wait(Waiting::WorkersGathering, SOON));
        }
        let Some(index) = self.clients.vacant(|_| true) else {
            if self.clients.iter().any(|(_, c)| c.fate != Fate::Stays) {
                return Some(wait(Waiting::Leaving, SOON));
            }
            return Some(Answer::Refused { why: Refusal::TableFull { limit: self.clients.len() } });
        };
        self.clients.seat(index, Client::joining(now, hello));
        self.lease_started(now + self.plan.lease);
        self.let_client_wait(index, Waiter { call, wants: Wants::Grant }, out);
        self.settle_client(ClientId(index), out);
        None
    }

    fn let_client_wait(&mut self, index: u16, waiter: Waiter, out: &mut Vec<Action>) {
        let Some(client) = self.clients.get_mut(index) else { return };
        if let Some(oldest) = client.registration.wait(waiter) {
            out.push(too_many(oldest.call));
        }
    }

    /// The sizes of the task classes of each slice that tells classes by size, if the switch tells classes
    /// apart.
    fn sizes(&self) -> impl Iterator<Item = (SliceId, Sizes)> {
        let has_classes = self.shape.is_some_and(|shape| shape.classes > 1);
        let planned = self.plan.slices.iter().enumerate().filter(move |_| has_classes);
        let sizes = planned.map(|(index, slice)| (SliceId(index as u16), slice.sizes));
        sizes.filter(|(_, sizes)| !sizes.is_none())
    }

    fn client_answer(&self, id: ClientId) -> Answer {
        let Some(client) = self.clients.get(id.0) else { return wait(Waiting::Leaving, SOON) };
        let clients = self.clients.iter().filter(|(_, c)| c.fate == Fate::Stays).count() as u32;
        let used: BTreeSet<SliceId> = self.types.values().copied().collect();
        let registration = ClientRegistration {
            client: id,
            key: client.row.key,
            epoch: self.epoch(),
            switch: self.plan.switch,
            replay_cells: self.shape.map_or(0, |shape| shape.replay_cells),
            slices: self.types.iter().map(|(t, s)| (*t, *s)).collect(),
            shares: used.iter().map(|s| (*s, self.share(*s, clients))).collect(),
            classes: self.shape.map_or(1, |shape| shape.classes),
            jobs: self.shape.map_or(1, |shape| shape.jobs),
            sizes: self.sizes().collect(),
            retry_for: self.plan.retry_for,
        };
        Answer::Client(Box::new(ClientGrant {
            registration,
            first_bytes: self.plan.rdma.first_bytes,
            labels: self.told_labels(),
            type_names: self.plan.type_names.clone(),
            workers: used.into_iter().map(|s| (s, self.workers_of(s))).collect(),
            lease: self.plan.lease,
            renew_every: self.plan.renew_every,
        }))
    }
}
