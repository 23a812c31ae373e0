//! Controllers and switches die and return; hosts keep or regain their registrations.

use std::thread::sleep;
use std::time::Duration;

use sluice_control::WorkerHello;
use sluice_ports::free_address;
use sluice_rpc::Remote;
use sluice_rpc::registrar::{ClientRole, WorkerRole};
use sluice_rpc::v1;
use sluice_rpc::v1::tables_client::TablesClient;
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{Guard, RpcServer, serve_tables};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Epoch, SliceId, TaskType};
use tonic::Code;

use crate::rack::{
    Host, Switch, client, client_hello, controller_at, options, options_of_short_leases, remote, worker,
    worker_hello,
};

/// A switch that serves its tables, and a controller in another process.
struct Apart {
    tables: RpcServer,
    controller: RpcServer,
    switch: Switch,
}

impl Apart {
    fn start(epoch: u32) -> Self {
        let switch = Switch::start(epoch);
        let tables = serve_tables(free_address(), &Guard::Loopback, switch.local()).unwrap();
        let controller = controller_at(free_address(), SwitchLink::There(remote(&tables)));
        Self { tables, controller, switch }
    }

    /// The switch's process dies and returns at the same address with another epoch.
    fn restart_switch(self, epoch: u32) -> Self {
        let at = self.tables.local();
        drop((self.tables, self.switch));
        let switch = Switch::start(epoch);
        let tables = serve_tables(at, &Guard::Loopback, switch.local()).unwrap();
        Self { tables, controller: self.controller, switch }
    }

    /// The controller's process dies, and returns at the same address after `meanwhile`.
    fn restart_controller(self, meanwhile: impl FnOnce()) -> Self {
        let at = self.controller.local();
        drop(self.controller);
        meanwhile();
        let controller = controller_at(at, SwitchLink::There(remote(&self.tables)));
        Self { controller, ..self }
    }
}

fn with_short_leases(switch: &Switch) -> RpcServer {
    start_controller(options_of_short_leases(SwitchLink::Here(switch.local()))).unwrap()
}

fn hosts(controller: &Remote) -> (Vec<Host<WorkerRole>>, Host<ClientRole>) {
    let workers = ["a", "b", "c"].map(|name| worker(controller.clone(), worker_hello(name)));
    (workers.into(), client(controller.clone(), client_hello("load")))
}

#[test]
fn a_controller_apart_from_its_switch_grants_and_names_the_switchs_own_address() {
    let rack = Apart::start(5);
    let (workers, asking) = hosts(&remote(&rack.controller));
    for host in &workers {
        let grant = host.granted();
        assert_eq!((grant.epoch, grant.switch), (Epoch(5), rack.switch.at()));
    }
    assert_eq!(asking.granted().switch, rack.switch.at());
}

#[test]
fn a_restarted_controller_reads_back_and_keeps_indices_keys_and_generations() {
    let mut rack = Apart::start(5);
    let (workers, asking) = hosts(&remote(&rack.controller));
    let before: Vec<_> = workers.iter().map(Host::granted).collect();
    let client_before = asking.granted();
    rack = rack.restart_controller(|| {
        asking.lost();
        for host in &workers {
            host.lost();
        }
    });
    let client_after = asking.granted();
    assert_eq!((client_after.client, client_after.key), (client_before.client, client_before.key));
    for (host, before) in workers.iter().zip(before) {
        let after = host.granted();
        assert_eq!(
            (after.worker, after.key, after.generation, after.epoch),
            (before.worker, before.key, before.generation, before.epoch)
        );
    }
    drop(rack);
}

#[test]
fn a_restarted_switch_gets_all_hosts_again_under_its_new_epoch() {
    let mut rack = Apart::start(5);
    let (workers, asking) = hosts(&remote(&rack.controller));
    for host in &workers {
        host.granted();
    }
    asking.granted();
    rack = rack.restart_switch(6);
    for host in &workers {
        assert_eq!(host.granted_where(|grant| grant.epoch == Epoch(6)).switch, rack.switch.at());
    }
    asking.granted_where(|grant| grant.epoch == Epoch(6));
}

#[test]
fn a_controller_that_dies_with_its_switch_is_lost_at_once_and_found_when_both_return() {
    let switch = Switch::start(5);
    let at = free_address();
    let controller = controller_at(at, SwitchLink::Here(switch.local()));
    let host = worker(remote(&controller), worker_hello("w"));
    host.granted();
    drop((controller, switch));
    host.line.renew_now();
    host.lost();
    let switch = Switch::start(6);
    let _controller = controller_at(at, SwitchLink::Here(switch.local()));
    assert_eq!(host.granted_where(|grant| grant.epoch == Epoch(6)).switch, switch.at());
}

#[test]
fn hosts_that_come_before_their_controller_wait_for_it() {
    let switch = Switch::start(5);
    let reserved = free_address();
    let host = worker(Remote::new(&reserved.to_string(), None).unwrap(), worker_hello("w"));
    host.lost();
    let _controller = controller_at(reserved, SwitchLink::Here(switch.local()));
    host.granted();
}

#[test]
fn a_host_that_was_refused_asks_again_by_itself_and_is_let_in_once_it_may() {
    let switch = Switch::start(5);
    let at = free_address();
    let controller = controller_at(at, SwitchLink::Here(switch.local()));
    let late = WorkerHello { slice: "late".to_owned(), ..worker_hello("w") };
    let host = worker(remote(&controller), late);
    for _ in 0..2 {
        assert!(host.refused().contains("late"), "and it is told each time");
    }
    drop(controller);
    let mut options = options(SwitchLink::Here(switch.local()));
    options.plan.slices[1].name = "late".to_owned();
    let _controller = start_controller(ControllerOptions { at, ..options }).unwrap();
    assert_eq!(host.granted().slice, SliceId(1));
}

#[test]
fn leaving_ends_within_a_lease_when_nobody_answers() {
    let switch = Switch::start(5);
    let controller = with_short_leases(&switch);
    let host = worker(remote(&controller), worker_hello("w"));
    host.granted();
    drop(controller);
    host.line.leave();
    assert_eq!(host.left(), None);
}

#[tokio::test(flavor = "current_thread")]
async fn steps_meant_for_another_life_of_the_switch_are_not_taken() {
    let rack = Apart::start(5);
    let mut calls = TablesClient::new(remote(&rack.tables).connect());
    let ops = vec![TableOp::SetType(TaskType(7), Some(SliceId(1))).into()];
    let status =
        calls.apply(v1::ApplyRequest { epoch: 4, ops, ..v1::ApplyRequest::default() }).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    let ops = vec![TableOp::ReadType(TaskType(7)).into()];
    let read = calls
        .apply(v1::ApplyRequest { epoch: 5, ops, ..v1::ApplyRequest::default() })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(read.answers, [TableAnswer::Type(None).into()]);
}

#[test]
fn a_worker_that_falls_silent_loses_its_place_to_its_next_life() {
    let switch = Switch::start(5);
    let controller = with_short_leases(&switch);
    let first = worker(remote(&controller), worker_hello("w")).granted();
    sleep(Duration::from_millis(50));
    let mut reborn = worker_hello("w");
    reborn.life += 1;
    let second = worker(remote(&controller), reborn).granted();
    assert!(second.worker != first.worker || second.generation > first.generation);
}
