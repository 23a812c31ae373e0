//! A controller's calls about who leads, beside its connection to the switch: a call that hangs holds no
//! other up. A controller above several spines also needs etcd's lease.

use std::time::Duration;

use sluice_control::{Contender, Controller, Event, HeldLease, LeadAnswer, LeadCall, LinkState, Plan};
use sluice_etcd::EtcdLead;
use sluice_net::clock::Clock;
use sluice_rpc::v1::{LeadRole, StandingResponse};
use sluice_wire::{Nanos, Term};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::{Code, Status};

use super::link::Source;
use super::standing::StandingBoard;

/// How many answers may wait for the runner; it takes them at once.
const ANSWERS_MAX: usize = 64;

/// The runner's part in the choice of a leader.
pub(super) struct LeadPart {
    /// `None`: the controller is in its switch's process, where nobody else can lead.
    contender: Option<Contender>,
    source: Source,
    /// The lease that the controller needs too, if it is above several spines.
    etcd: Option<EtcdLead>,
    /// What the controller says of itself; its term is filled in at each call.
    own: LeadCall,
    tell: mpsc::Sender<LeadHeard>,
    told: mpsc::Receiver<LeadHeard>,
    last: LeadAnswer,
    board: StandingBoard,
    /// What stands on the board.
    shown: StandingResponse,
    /// Why the switch did not say who leads when it was called last.
    untold: Option<String>,
}

/// The answer to a call that left at this time.
pub(super) struct LeadHeard {
    sent: Nanos,
    answer: Result<LeadAnswer, Status>,
}

/// How much of etcd's lease a switch's answer may take: who holds the lease leads on without the answer.
const PATIENCE_PER_LEASE: u64 = 8;

impl LeadPart {
    /// The part of a controller that is reached at `at`.
    pub(super) fn new(
        plan: &Plan,
        at: String,
        source: Source,
        etcd: Option<EtcdLead>,
        board: StandingBoard,
    ) -> Self {
        let (tell, told) = mpsc::channel(ANSWERS_MAX);
        let is_apart = matches!(source, Source::There(_));
        let lease = etcd.as_ref().map_or(plan.lease, |etcd| nanos(etcd.lease()));
        Self {
            contender: is_apart.then(|| Contender::new(lease)),
            source,
            etcd,
            own: LeadCall { at, term: Term(0), lease, plan: plan.fingerprint(), ends: false },
            tell,
            told,
            last: LeadAnswer::default(),
            shown: board.read(),
            board,
            untold: None,
        }
    }

    pub(super) const fn lease(&self) -> Nanos {
        self.own.lease
    }

    pub(super) fn deadline(&self, controller: &Controller) -> Option<Nanos> {
        self.contender.as_ref().map(|contender| contender.deadline(controller))
    }

    pub(super) fn lapses(&self, now: Nanos, controller: &Controller) -> bool {
        self.contender.as_ref().is_some_and(|contender| contender.lapses(now, controller))
    }

    /// Calls the switch, if it is time.
    pub(super) fn call(&mut self, now: Nanos, controller: &Controller) {
        if self.contender.as_mut().is_some_and(|contender| contender.calls(now, controller)) {
            let (call, tell) = (LeadCall { term: controller.term(), ..self.own.clone() }, self.tell.clone());
            let mut source = self.source.clone();
            let patience = self.patience();
            tokio::spawn(async move {
                let late = |_| Err(Status::deadline_exceeded(""));
                let answer = timeout(patience, source.lead(&call)).await.unwrap_or_else(late);
                // The runner may have ended.
                tell.send(LeadHeard { sent: now, answer }).await.unwrap_or_default();
            });
        }
    }

    /// Tells the switch, which may be there although etcd's lease is lost, that this controller leads no
    /// more: the next holder of the lease need not wait for the switch. A rack's controller leads as long as
    /// its switch hears it.
    pub(super) fn free_switch(&self, controller: &Controller) {
        if self.etcd.is_none() {
            return;
        }
        let call = LeadCall { term: controller.term(), ends: true, ..self.own.clone() };
        let mut source = self.source.clone();
        // If it fails, the switch's lease ends.
        tokio::spawn(async move { drop(source.lead(&call).await) });
    }

    /// Tells the switch that this controller ends. It calls no more after that.
    pub(super) fn give_up(&mut self, controller: &Controller, done: std::sync::mpsc::Sender<()>) {
        let call = LeadCall { term: controller.term(), ends: true, ..self.own.clone() };
        let mut source = self.source.clone();
        if self.contender.take().is_some() {
            tokio::spawn(async move {
                // If it fails, the lease ends. Dropping the sender tells that it is done.
                source.lead(&call).await.map(|_| drop(done)).unwrap_or_default();
            });
        }
    }

    pub(super) async fn heard(&mut self) -> LeadHeard {
        match self.told.recv().await {
            Some(heard) => heard,
            // This part itself holds a sender.
            None => std::future::pending().await,
        }
    }

    /// Takes an answer; returns what the controller is to hear.
    pub(super) fn take(&mut self, heard: LeadHeard, clock: Clock, controller: &Controller) -> Option<Event> {
        let LeadHeard { sent, answer } = heard;
        if let Some(etcd) = &self.etcd {
            let age = etcd.age();
            let asked = clock.now() - nanos(age.unwrap_or_default());
            let lease = HeldLease { is_held: age.is_some(), asked };
            let event = self.contender.as_mut()?.answered_under(lease, answer.as_ref().ok(), controller);
            if event == Some(Event::StandBy) {
                self.free_switch(controller);
            }
            self.last = answer.unwrap_or_default();
            return event;
        }
        match answer {
            Ok(answer) => {
                self.untold = None;
                if answer.is_other_plan && !self.last.is_other_plan && controller.is_standby() {
                    sluice_log::log!(
                        StandbyUnfit,
                        leader = answer.leader,
                        "this standby has another plan than the leader at {}, or another version, and will \
                         not lead: start both from one plan, or this one without --standby",
                        shown_or(&answer.leader)
                    );
                }
                let event = self.contender.as_mut()?.answered(sent, &answer, controller);
                self.last = answer;
                event
            }
            Err(why) => {
                let said = said(&why);
                if controller.waits_for_lead() && self.untold.as_ref() != Some(&said) {
                    sluice_log::log!(
                        LeadUntold,
                        why = said,
                        "the switch does not say who leads: {said}; asking on"
                    );
                    self.untold = Some(said);
                }
                None
            }
        }
    }

    /// How long an answer of the switch is waited for. What a rack's switch says late counts too: nothing
    /// else renews the lead.
    fn patience(&self) -> Duration {
        let part = self.own.lease.0 / PATIENCE_PER_LEASE;
        if self.etcd.is_some() { Duration::from_nanos(part) } else { Duration::MAX }
    }

    fn holds_lease(&self) -> bool {
        self.etcd.as_ref().is_some_and(|etcd| etcd.age().is_some())
    }

    /// Where the leader is; empty if nobody can say now.
    fn leader(&self, role: LeadRole) -> String {
        match role {
            LeadRole::Leads => self.own.at.clone(),
            // What the switch said last does not hold while it is silent, or names a lead that was lost.
            _ if self.untold.is_some() || self.last.leader.is_empty() || self.last.leader == self.own.at => {
                self.etcd.as_ref().map(EtcdLead::leader).unwrap_or_default()
            }
            _ => self.last.leader.clone(),
        }
    }

    /// Writes on the board how the controller stands now, if that has changed.
    pub(super) fn publish(&mut self, controller: &Controller) {
        let role = match controller.link_state() {
            // Hosts of a spine that is dead, or not free yet, are served all the same: at other spines.
            _ if self.holds_lease() => LeadRole::Leads,
            LinkState::Standby => LeadRole::Standby,
            LinkState::Superseded => LeadRole::Superseded,
            // It has asked the switch to obey, and another one may have come first.
            _ if controller.waits_for_lead() && controller.term() == Term(0) => LeadRole::Standby,
            _ => LeadRole::Leads,
        };
        let untold = self.untold.clone().filter(|_| role == LeadRole::Standby).unwrap_or_default();
        let standing = StandingResponse {
            role: role.into(),
            leader: self.leader(role),
            standbys: self.last.standbys.clone(),
            untold,
            other_plan: role == LeadRole::Standby && self.last.is_other_plan,
            spine: self.shown.spine,
            etcd_lost: self.etcd.as_ref().map(EtcdLead::lost).unwrap_or_default(),
        };
        if standing != self.shown {
            self.board.write(standing.clone());
            self.shown = standing;
        }
    }
}

fn nanos(span: Duration) -> Nanos {
    Nanos(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
}

fn said(why: &Status) -> String {
    match why.code() {
        Code::Unimplemented => "it is of a version that knows no standbys: update it".to_owned(),
        _ => sluice_rpc::reason(why),
    }
}

fn shown_or(leader: &str) -> String {
    if leader.is_empty() { "an unknown address".to_owned() } else { sluice_rpc::shown(leader) }
}
