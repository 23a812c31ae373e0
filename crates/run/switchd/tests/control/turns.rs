//! Two controllers at one switch, over gRPC: the switch obeys the one that came last, even after a restart
//! of the switch.

use std::net::SocketAddr;
use std::thread::sleep;
use std::time::Duration;

use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_rpc::v1::tables_client::TablesClient;
use sluice_rpc::{Remote, v1};
use sluice_switchd::controller::SwitchLink;
use sluice_switchd::rpc::{Guard, RpcServer, serve_tables};
use sluice_switchd::state::StateFolder;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Generation, SliceId, TaskType, Term, WorkerId};
use tempfile::TempDir;

use crate::rack::{ANY, Switch, answered, controller_at, remote, worker, worker_hello};

/// A switch that stores its state in a folder and serves its tables to controllers in other processes.
struct Apart {
    folder: TempDir,
    tables: RpcServer,
    switch: Switch,
}

impl Apart {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::at(folder, sluice_ports::free_address(), 5)
    }

    fn at(folder: TempDir, at: SocketAddr, epoch: u32) -> Self {
        let state = StateFolder::open(folder.path()).unwrap();
        let switch = Switch::obeying(epoch, state.term().unwrap());
        let tables = serve_tables(at, &Guard::Loopback, switch.local().keeping(state)).unwrap();
        Self { folder, tables, switch }
    }

    fn restarted(self, epoch: u32) -> Self {
        let at = self.tables.local();
        let Self { folder, tables, switch } = self;
        drop((tables, switch));
        Self::at(folder, at, epoch)
    }

    fn controller(&self) -> RpcServer {
        controller_at(ANY.parse().unwrap(), SwitchLink::There(remote(&self.tables)))
    }
}

/// The epoch and the link state that a controller reports.
async fn link(controller: &Remote) -> (u32, v1::LinkState) {
    let mut calls = ControllerClient::new(controller.connect());
    let status = answered(async || calls.status(v1::StatusRequest {}).await).await;
    let switch = status.switch.unwrap();
    (switch.epoch, switch.link())
}

async fn until(controller: &RpcServer, wanted: v1::LinkState) {
    until_in(5, controller, wanted).await;
}

/// Waits for a link state in this life of the switch or a later one.
async fn until_in(epoch: u32, controller: &RpcServer, wanted: v1::LinkState) {
    let controller = remote(controller);
    for _ in 0..12_000 {
        let (seen, link) = link(&controller).await;
        if seen >= epoch && link == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never was {wanted:?}");
}

#[tokio::test(flavor = "current_thread")]
async fn the_controller_that_had_the_switch_hears_it_from_the_switch_and_tells_its_hosts() {
    let rack = Apart::start();
    let first = rack.controller();
    let host = worker(remote(&first), worker_hello("w"));
    let before = host.granted();
    let second = rack.controller();
    until(&second, v1::LinkState::Up).await;
    // No call triggers this: the controller notices by itself.
    until(&first, v1::LinkState::Superseded).await;
    let other = worker(remote(&first), worker_hello("v"));
    let why = tokio::task::spawn_blocking(move || other.waiting()).await.unwrap();
    assert!(why.contains("another controller has taken the switch over"), "{why}");
    // A host that asks the other controller keeps its registration.
    let moved = worker(remote(&second), worker_hello("w"));
    let after = moved.granted();
    assert_eq!((after.worker, after.generation, after.key), (before.worker, before.generation, before.key));
    assert_eq!(rack.switch.term(), Term(2));
}

#[tokio::test(flavor = "current_thread")]
async fn a_superseded_controller_does_not_come_back_through_a_restart_of_the_switch() {
    let mut rack = Apart::start();
    let first = rack.controller();
    until(&first, v1::LinkState::Up).await;
    let second = rack.controller();
    until(&second, v1::LinkState::Up).await;
    // Holds whether or not the first controller had noticed by then.
    rack = rack.restarted(6);
    until_in(6, &second, v1::LinkState::Up).await;
    until(&first, v1::LinkState::Superseded).await;
    assert_eq!(rack.switch.term(), Term(3));
    assert_eq!(std::fs::read_to_string(rack.folder.path().join("term")).unwrap(), "3\n");
}

#[tokio::test(flavor = "current_thread")]
async fn steps_of_a_lesser_term_are_refused_and_counted_and_anyone_may_read() {
    let rack = Apart::start();
    let controller = rack.controller();
    until(&controller, v1::LinkState::Up).await;
    let mut calls = TablesClient::new(remote(&rack.tables).connect());
    let steps = [
        TableOp::SetType(TaskType(7), Some(SliceId(1))),
        TableOp::RaiseGeneration(WorkerId(0), Generation(9)),
        TableOp::Claim(Term(1)),
        TableOp::Claim(Term(u32::MAX)),
        TableOp::ReadType(TaskType(7)),
    ];
    let ops = steps.map(Into::into).into();
    let answers = calls
        .apply(v1::ApplyRequest { epoch: 5, ops, ..v1::ApplyRequest::default() })
        .await
        .unwrap()
        .into_inner()
        .answers;
    let refused: v1::TableAnswer = TableAnswer::Superseded(Term(1)).into();
    assert_eq!(answers[..4], [(); 4].map(|()| refused.clone()));
    assert_eq!(answers[4], TableAnswer::Type(None).into());
    // A controller with a term that no one granted is refused too.
    let ops = vec![TableOp::SetType(TaskType(7), Some(SliceId(1))).into()];
    let boasts = v1::ApplyRequest { epoch: 5, term: u32::MAX, ops, ..v1::ApplyRequest::default() };
    assert_eq!(calls.apply(boasts).await.unwrap().into_inner().answers, [refused]);
    // The switch publishes its counters with its next turn.
    for _ in 0..12_000 {
        let counted = answered(async || calls.count(v1::CountRequest {}).await).await.counters;
        if counted.iter().any(|counter| counter.name == "superseded" && counter.value == 5) {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("never counted");
}
