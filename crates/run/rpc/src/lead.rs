//! Who leads, of several controllers: the messages about it, converted from and to values; and how a caller
//! that was given several addresses finds out whether they are of one rack.

use std::time::Duration;

use sluice_control::{LeadAnswer, LeadCall};
use sluice_wire::{Nanos, Term};
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::Remote;
use super::v1;
use super::v1::controller_client::ControllerClient;

/// How long a controller may take to say whether it leads.
const PATIENCE: Duration = Duration::from_secs(1);

impl From<&LeadCall> for v1::LeadRequest {
    fn from(call: &LeadCall) -> Self {
        let LeadCall { at, term, lease, plan, ends } = call;
        Self { at: at.clone(), term: term.0, lease_ns: lease.0, plan: *plan, ends: *ends }
    }
}

impl From<v1::LeadRequest> for LeadCall {
    fn from(message: v1::LeadRequest) -> Self {
        let v1::LeadRequest { at, term, lease_ns, plan, ends } = message;
        Self { at, term: Term(term), lease: Nanos(lease_ns), plan, ends }
    }
}

impl From<LeadAnswer> for v1::LeadResponse {
    fn from(answer: LeadAnswer) -> Self {
        let LeadAnswer { term, is_free, leader, silent, is_other_plan, standbys } = answer;
        Self { term: term.0, free: is_free, leader, silent_ns: silent.0, other_plan: is_other_plan, standbys }
    }
}

impl From<v1::LeadResponse> for LeadAnswer {
    fn from(message: v1::LeadResponse) -> Self {
        let v1::LeadResponse { term, free, leader, silent_ns, other_plan, standbys } = message;
        Self {
            term: Term(term),
            is_free: free,
            leader,
            silent: Nanos(silent_ns),
            is_other_plan: other_plan,
            standbys,
        }
    }
}

/// Whether these are controllers of one rack, of which one leads; `false`: each is that of a spine. `None`
/// if nobody answers, or who answers does not know of standbys.
pub fn are_of_one_rack(controllers: &[Remote]) -> Option<bool> {
    let runtime = Builder::new_current_thread().enable_all().build().ok()?;
    runtime.block_on(async {
        for controller in controllers {
            let mut calls = ControllerClient::new(controller.connect());
            if let Ok(Ok(answer)) = timeout(PATIENCE, calls.standing(v1::StandingRequest {})).await {
                return Some(answer.into_inner().spine == 0);
            }
        }
        None
    })
}
