//! A leader and its standbys at one switch, over gRPC.

use std::time::Duration;

use sluice_control::Plan;
use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_rpc::v1::tables_client::TablesClient;
use sluice_rpc::v1::{self, LeadRole, StandingResponse};
use sluice_rpc::{LEADER_HEADER, Remote};
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{Guard, RpcServer, serve_tables};
use sluice_switchd::state::StateFolder;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Nanos, Term};
use tonic::Code;

use crate::authority::{Authority, over_tls};
use crate::rack::{ANY, Switch, answered, options, options_of_short_leases, remote, worker, worker_hello};

/// A switch that serves its tables.
struct Apart {
    tables: RpcServer,
    switch: Switch,
}

impl Apart {
    fn start() -> Self {
        let switch = Switch::start(5);
        let tables = serve_tables(ANY.parse().unwrap(), &Guard::Loopback, switch.local()).unwrap();
        Self { tables, switch }
    }

    /// With a lease that ends on no machine, however slow.
    fn options(&self) -> ControllerOptions {
        let of = options(SwitchLink::There(remote(&self.tables)));
        let plan = Plan { lease: Nanos::from_millis(60_000), ..of.plan };
        ControllerOptions { standby: true, plan, ..of }
    }

    /// One of several controllers of which one leads.
    fn candidate(&self) -> RpcServer {
        start_controller(self.options()).unwrap()
    }
}

async fn standing(controller: &RpcServer) -> StandingResponse {
    let mut calls = ControllerClient::new(remote(controller).connect());
    answered(async || calls.standing(v1::StandingRequest {}).await).await
}

/// Waits until a controller stands so.
async fn until(controller: &RpcServer, wanted: impl Fn(&StandingResponse) -> bool) -> StandingResponse {
    for _ in 0..12_000 {
        let seen = standing(controller).await;
        if wanted(&seen) {
            return seen;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never stood so: {:?}", standing(controller).await);
}

fn leads(seen: &StandingResponse) -> bool {
    seen.role() == LeadRole::Leads
}

fn waits(seen: &StandingResponse) -> bool {
    seen.role() == LeadRole::Standby && !seen.leader.is_empty()
}

fn url(controller: &RpcServer) -> String {
    remote(controller).url().to_owned()
}

#[tokio::test(flavor = "current_thread")]
async fn a_standby_refuses_hosts_and_operators_and_says_who_leads() {
    let rack = Apart::start();
    let first = rack.candidate();
    until(&first, leads).await;
    let second = rack.candidate();
    assert_eq!(until(&second, waits).await.leader, url(&first));
    let mut calls = ControllerClient::new(remote(&second).connect());
    let hello = v1::RenewWorkerRequest::from(&worker_hello("w"));
    let refusals = [
        calls.renew_worker(hello).await.unwrap_err(),
        calls
            .move_worker(v1::MoveWorkerRequest { worker: "w".into(), slice: "scan".into() })
            .await
            .unwrap_err(),
        calls.set_type(v1::SetTypeRequest { task_type: 2, slice: None }).await.unwrap_err(),
    ];
    for refused in refusals {
        assert_eq!(refused.code(), Code::Unavailable);
        assert!(refused.message().contains(&format!("standby: {} leads", url(&first))), "{refused}");
        assert_eq!(refused.metadata().get(LEADER_HEADER).unwrap(), url(&first).as_str());
    }
    let status = calls.status(v1::StatusRequest {}).await.unwrap().into_inner();
    assert_eq!(status.switch.unwrap().link(), v1::LinkState::Standby);
    let seen = until(&first, |seen| !seen.standbys.is_empty()).await;
    assert!(leads(&seen) && seen.standbys == [url(&second)], "{seen:?}");
    assert_eq!(rack.switch.term(), Term(1));
}

#[tokio::test(flavor = "current_thread")]
async fn a_leader_that_ends_gives_the_lead_up_and_hosts_keep_their_registrations() {
    let rack = Apart::start();
    let first = rack.candidate();
    until(&first, leads).await;
    let second = rack.candidate();
    until(&second, waits).await;
    // The standby is called first, and names the other one.
    let both = Remote::any_of(&[remote(&second), remote(&first)]);
    let host = worker(both, worker_hello("w"));
    let before = tokio::task::spawn_blocking(move || (host.granted(), host)).await.unwrap();
    drop(first);
    until(&second, leads).await;
    let (before, host) = before;
    let after = tokio::task::spawn_blocking(move || {
        // What it was granted before is gone from the queue by then, or the same.
        host.granted()
    });
    let after = after.await.unwrap();
    assert_eq!((after.worker, after.key, after.generation), (before.worker, before.key, before.generation));
    assert!(rack.switch.term() >= Term(2));
}

#[tokio::test(flavor = "current_thread")]
async fn of_several_that_start_together_one_leads_and_each_in_its_turn() {
    let rack = Apart::start();
    let mut all: Vec<RpcServer> = (0..3).map(|_| rack.candidate()).collect();
    let mut before = Term(0);
    while !all.is_empty() {
        // Each leader has a term of its own; on a slow machine one may lose the lead and get it again.
        let leader = only_leader(&all, || rack.switch.term() > before).await;
        before = rack.switch.term();
        all.remove(leader);
    }
}

/// Which of these leads, once one alone does and the condition holds.
async fn only_leader(all: &[RpcServer], holds: impl Fn() -> bool) -> usize {
    for _ in 0..12_000 {
        let mut leaders = Vec::new();
        for (index, one) in all.iter().enumerate() {
            if leads(&standing(one).await) {
                leaders.push(index);
            }
        }
        if let [leader] = leaders[..]
            && holds()
        {
            return leader;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never one alone");
}

#[tokio::test(flavor = "current_thread")]
async fn a_standby_with_another_plan_never_leads_and_one_that_takes_over_by_force_does() {
    let rack = Apart::start();
    let first = rack.candidate();
    until(&first, leads).await;
    let of = rack.options();
    let plan = Plan { lease: of.plan.lease.times(2), ..of.plan };
    let other = start_controller(ControllerOptions { plan: plan.clone(), ..rack.options() }).unwrap();
    until(&other, |seen| seen.other_plan).await;
    let same = rack.options().plan.fingerprint();
    drop(first);
    // Nobody leads any more. The switch lets a controller with the first one's plan lead, and no other.
    let mut calls = TablesClient::new(remote(&rack.tables).connect());
    for (asked, is_other) in [(plan.fingerprint(), true), (same, false)] {
        let asks = v1::LeadRequest { plan: asked, lease_ns: plan.lease.0, ..v1::LeadRequest::default() };
        let answer = calls.lead(asks).await.unwrap().into_inner();
        assert_eq!((answer.other_plan, answer.free), (is_other, !is_other));
    }
    assert!(!leads(&standing(&other).await));
    assert_eq!(rack.switch.term(), Term(1));
    let forced = start_controller(ControllerOptions { plan, standby: false, ..rack.options() }).unwrap();
    until(&forced, leads).await;
    assert_eq!(until(&other, |seen| waits(seen) && !seen.other_plan).await.leader, url(&forced));
    assert_eq!(rack.switch.term(), Term(2));
}

#[tokio::test(flavor = "current_thread")]
async fn a_leader_that_is_taken_over_by_force_becomes_a_standby() {
    let rack = Apart::start();
    let first = rack.candidate();
    until(&first, leads).await;
    let forced = start_controller(ControllerOptions { standby: false, ..rack.options() }).unwrap();
    assert_eq!(until(&first, |seen| waits(seen) && seen.leader == url(&forced)).await.leader, url(&forced));
    drop(forced);
    until(&first, leads).await;
    // On a slow machine a leader may lose the lead and get it again.
    assert!(rack.switch.term() >= Term(3));
}

#[tokio::test(flavor = "current_thread")]
async fn a_switch_that_restarts_after_its_leader_died_lets_a_standby_lead() {
    let folder = tempfile::tempdir().unwrap();
    let at = sluice_ports::free_address();
    let serve = |epoch, term| {
        let state = StateFolder::open(folder.path()).unwrap();
        let switch = Switch::obeying(epoch, term);
        let tables = serve_tables(at, &Guard::Loopback, switch.local().keeping(state));
        Apart { tables: tables.unwrap(), switch }
    };
    // The leader of term 7 is dead, and the switch remembers that it obeys it.
    let rack = serve(5, Term(7));
    let of = options_of_short_leases(SwitchLink::There(remote(&rack.tables)));
    let standby = ControllerOptions { standby: true, ..of };
    let standby = start_controller(standby).unwrap();
    drop(rack);
    let rack = serve(6, Term(7));
    until(&standby, leads).await;
    assert!(rack.switch.term() >= Term(8));
}

#[tokio::test(flavor = "current_thread")]
async fn a_claim_of_a_standby_is_refused_while_the_leader_speaks() {
    let rack = Apart::start();
    let first = rack.candidate();
    until(&first, leads).await;
    let mut calls = TablesClient::new(remote(&rack.tables).connect());
    let ops = vec![TableOp::Claim(Term(2)).into()];
    let claim = v1::ApplyRequest { epoch: 5, term: 0, ops, waits_ns: Some(Nanos::from_millis(60_000).0) };
    let answers = calls.apply(claim.clone()).await.unwrap().into_inner().answers;
    assert_eq!(answers, [TableAnswer::Superseded(Term(1)).into()]);
    assert_eq!(rack.switch.term(), Term(1));
    // A controller that does not wait takes over.
    let forced = v1::ApplyRequest { waits_ns: None, ..claim };
    assert_eq!(calls.apply(forced).await.unwrap().into_inner().answers, [TableAnswer::Done.into()]);
    assert_eq!(rack.switch.term(), Term(2));
}

#[tokio::test(flavor = "current_thread")]
async fn a_standby_without_a_controllers_certificate_learns_nothing_and_never_leads() {
    let switch = Switch::start(5);
    let authority = Authority::new();
    let guard = Guard::Tls(authority.server());
    let tables = serve_tables(ANY.parse().unwrap(), &guard, switch.local()).unwrap();
    for role in ["host", "operator", "reader"] {
        let remote = over_tls(&tables, &authority.caller("b", role));
        let mut calls = TablesClient::new(remote.connect());
        let refused = calls.lead(v1::LeadRequest::default()).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied);
        assert!(refused.message().contains("role controller"), "{refused}");
    }
    let remote = over_tls(&tables, &authority.caller("b", "controller"));
    let answer = TablesClient::new(remote.connect()).lead(v1::LeadRequest::default()).await.unwrap();
    assert!(answer.into_inner().free, "nobody leads yet");
}
