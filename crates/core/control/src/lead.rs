//! Which of several controllers leads a rack. The switch is the arbiter.
//!
//! - **The switch** ([`Arbiter`]) hears its present controller, the leader, in every call that names its
//!   term. It lets a controller that waits take the switch over once the leader has been silent for a
//!   lease, or has given the lead up.
//! - **A controller** ([`Contender`]) asks while it waits, and calls while it leads. If no call of a leader
//!   was answered for a lease, the leader stops before the switch lets another one lead.
//!
//! Controllers above several spines also need a lease from a store that all of them share ([`HeldLease`]):
//! who holds it contends at each spine, so that one process leads at all spines.
//!
//! The lease spares hosts a wait and the rack a change of controllers. That nothing is changed twice does
//! not depend on it, nor on any clock: the switch compares terms (`turn`).

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use sluice_wire::{Nanos, Term};

use crate::controller::Controller;
use crate::message::Event;

/// How many controllers that wait are listed.
const STANDBYS_MAX: usize = 16;
/// How often in a lease a controller calls that waits, and one that leads.
const ASKS_PER_LEASE: u64 = 20;
const RENEWALS_PER_LEASE: u64 = 4;

/// What a controller tells the arbiter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeadCall {
    /// Where hosts and operators reach the controller.
    pub at: String,
    /// The term that the controller holds; 0 while it waits.
    pub term: Term,
    /// For how long a leader of this plan may be silent.
    pub lease: Nanos,
    /// A number that two controllers share if their plans are the same.
    pub plan: u64,
    /// Whether the controller ends: it gives the lead up, or waits no more.
    pub ends: bool,
}

/// What the arbiter answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeadAnswer {
    /// The term of the controller that the switch obeys.
    pub term: Term,
    /// Whether the caller, which waits, may take the switch over from that term.
    pub is_free: bool,
    /// Where the leader is; empty if it never said so.
    pub leader: String,
    /// How long the leader has been silent.
    pub silent: Nanos,
    /// Whether the leader has another plan than the caller, which may therefore not lead.
    pub is_other_plan: bool,
    /// The controllers that wait.
    pub standbys: Vec<String>,
}

/// What a controller knows of the lease that a store beside the switches grants to one controller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldLease {
    /// Whether this controller holds it.
    pub is_held: bool,
    /// When the call left of which the store's answer says so: the lease lasts from then on.
    pub asked: Nanos,
}

/// A switch's knowledge of who leads. It starts anew with the switch's process.
#[derive(Clone, Debug)]
pub struct Arbiter {
    term: Term,
    leader: String,
    plan: Option<u64>,
    lease: Option<Nanos>,
    heard: Nanos,
    /// Whether nobody leads: nobody ever did, or the leader gave the lead up.
    is_vacant: bool,
    last_call: Nanos,
    standbys: BTreeMap<String, Nanos>,
}

impl Arbiter {
    /// An arbiter that starts at `now`, of a switch that obeys this term.
    pub fn new(now: Nanos, term: Term) -> Self {
        Self {
            term,
            leader: String::new(),
            plan: None,
            lease: None,
            heard: now,
            is_vacant: term == Term(0),
            last_call: now,
            standbys: BTreeMap::new(),
        }
    }

    /// The switch obeys this term now.
    pub fn obeys(&mut self, now: Nanos, term: Term) {
        if term != self.term {
            let (last_call, standbys) = (self.last_call, core::mem::take(&mut self.standbys));
            *self = Self { last_call, standbys, ..Self::new(now, term) };
        }
    }

    /// The controller of this term was heard, in any call.
    pub fn heard(&mut self, now: Nanos, by: Term) {
        if by == self.term && by != Term(0) {
            self.heard = now;
        }
    }

    /// Takes a controller's call.
    pub fn call(&mut self, now: Nanos, call: &LeadCall) -> LeadAnswer {
        self.forgive_stall(now, call.lease);
        let leads = call.term != Term(0) && call.term == self.term;
        if leads {
            self.heard(now, call.term);
            self.is_vacant |= call.ends;
            self.leader.clone_from(&call.at);
            (self.plan, self.lease) = (Some(call.plan), Some(call.lease));
            self.standbys.remove(&call.at);
        } else if call.ends {
            self.standbys.remove(&call.at);
        } else if call.term == Term(0)
            && (self.standbys.len() < STANDBYS_MAX || self.standbys.contains_key(&call.at))
        {
            self.standbys.insert(call.at.clone(), now);
        }
        let lease = self.lease_or(call.lease);
        self.standbys.retain(|_, asked| now.since(*asked) < lease);
        let is_other_plan = self.plan.is_some_and(|plan| plan != call.plan);
        LeadAnswer {
            term: self.term,
            is_free: !leads && !is_other_plan && self.may_take(now, call.lease),
            leader: self.leader.clone(),
            silent: now.since(self.heard),
            is_other_plan,
            standbys: self.standbys.keys().cloned().collect(),
        }
    }

    /// Whether a controller that waited may take the switch over. `lease` counts if the leader never said
    /// how long its lease is.
    fn may_take(&self, now: Nanos, lease: Nanos) -> bool {
        self.is_vacant || now.since(self.heard) >= self.lease_or(lease)
    }

    /// Whether a claim in the name of this term, by a controller that leads only while the switch lets it, is
    /// to be granted: it is the leader's own, or the lead is free.
    pub fn lets_claim(&self, now: Nanos, by: Term, lease: Nanos) -> bool {
        (by == self.term && by != Term(0)) || self.may_take(now, lease)
    }

    fn lease_or(&self, lease: Nanos) -> Nanos {
        self.lease.unwrap_or(lease)
    }

    /// A switch that nobody called may have stood still, or have been cut off from all controllers: then
    /// the leader's silence proves nothing.
    fn forgive_stall(&mut self, now: Nanos, lease: Nanos) {
        if now.since(self.last_call) > Nanos(self.lease_or(lease).0 / 2) {
            self.heard = now;
        }
        self.last_call = now;
    }
}

/// A controller's part in the choice of a leader.
#[derive(Clone, Debug)]
pub struct Contender {
    lease: Nanos,
    /// When it calls next.
    next: Nanos,
    /// When it sent the last call that was answered as one of the leader, or as one that may lead.
    renewed: Nanos,
}

impl Contender {
    /// A contender for a lead with this lease.
    pub fn new(lease: Nanos) -> Self {
        Self { lease, next: Nanos(0), renewed: Nanos(0) }
    }

    /// When to look again at [`Contender::lapses`] and [`Contender::calls`].
    pub fn deadline(&self, controller: &Controller) -> Nanos {
        if controller.may_lapse() { self.next.min(self.renewed + self.lease) } else { self.next }
    }

    /// Whether the controller's time as the leader is over at `now`: the switch may let another one lead.
    /// To be asked before anything else that the controller does.
    pub fn lapses(&self, now: Nanos, controller: &Controller) -> bool {
        controller.may_lapse() && now >= self.renewed + self.lease
    }

    /// Whether to call the arbiter now.
    pub fn calls(&mut self, now: Nanos, controller: &Controller) -> bool {
        if now < self.next || (!controller.waits_for_lead() && controller.term() == Term(0)) {
            return false;
        }
        let often = if controller.is_standby() { ASKS_PER_LEASE } else { RENEWALS_PER_LEASE };
        self.next = now + Nanos((self.lease.0 / often).max(1));
        true
    }

    /// Takes the answer to the call that left at `sent`; returns what the controller is to hear.
    pub fn answered(&mut self, sent: Nanos, answer: &LeadAnswer, controller: &Controller) -> Option<Event> {
        if controller.is_standby() {
            return answer.is_free.then(|| {
                self.renewed = sent;
                // The new leader says soon where it is.
                self.next = sent;
                Event::Lead(answer.term)
            });
        }
        if answer.term == controller.term() {
            self.renewed = self.renewed.max(sent);
        }
        (answer.term > controller.term() && controller.term() != Term(0)).then_some(Event::StandBy)
    }

    /// The same for a controller that leads only while it holds a store's lease as well. A switch that does
    /// not answer (`None`) takes no lead away: the lease says that nobody else leads there.
    pub fn answered_under(
        &mut self,
        lease: HeldLease,
        answer: Option<&LeadAnswer>,
        controller: &Controller,
    ) -> Option<Event> {
        match answer {
            _ if !lease.is_held => controller.may_lapse().then_some(Event::StandBy),
            Some(answer) => self.answered(lease.asked, answer, controller),
            None => {
                if !controller.is_standby() {
                    self.renewed = self.renewed.max(lease.asked);
                }
                None
            }
        }
    }
}
