//! Hosts register, renew and leave; operators look and change things.

use std::net::SocketAddr;

use sluice_control::{ClientHello, WorkerHello};
use sluice_rpc::v1;
use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_wire::{Generation, Key, Serial, SliceId, TaskType, WorkerId};
use tonic::Code;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::rack::{Switch, client, client_hello, embedded, endpoint, remote, worker, worker_hello};

#[test]
fn a_worker_that_registers_gets_a_grant_and_keeps_it() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let host = worker(remote(&controller), worker_hello("w"));
    let first = host.granted();
    assert_eq!((first.worker, first.slice, first.quota), (WorkerId(0), SliceId(0), 2));
    assert_eq!(first.switch, switch.at());
    let renewed = host.granted();
    assert_eq!(
        (renewed.worker, renewed.key, renewed.generation),
        (first.worker, first.key, first.generation)
    );
}

#[test]
fn a_client_that_registers_learns_slices_and_shares() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let serving = worker(remote(&controller), worker_hello("w"));
    serving.granted();
    let host = client(remote(&controller), client_hello("c"));
    let grant = host.granted();
    assert_eq!(grant.slices, [(TaskType(1), SliceId(0)), (TaskType(2), SliceId(1))]);
    assert!(grant.shares.iter().any(|(slice, tasks)| *slice == SliceId(0) && *tasks >= 1));
    assert_eq!((grant.switch, grant.replay_cells), (switch.at(), 16));
}

#[test]
fn a_client_asks_with_the_floor_that_it_was_last_told() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let host = client(remote(&controller), client_hello("c"));
    let first = host.granted();
    host.line.set_floor(Serial(40));
    let mut moved = client_hello("c");
    moved.at = endpoint(9_010);
    host.line.set_hello(moved);
    let second = host.granted_where(|grant| grant.key != first.key);
    assert_eq!(second.client, first.client);
}

#[test]
fn a_worker_that_leaves_hears_how_much_it_was_sent() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let host = worker(remote(&controller), worker_hello("w"));
    let grant = host.granted();
    host.line.leave();
    assert_eq!(host.left(), Some(grant.start));
    // The index is free at once for another life.
    let mut reborn = worker_hello("w");
    reborn.life += 1;
    let next = worker(remote(&controller), reborn).granted();
    assert!(next.worker != grant.worker || next.generation > grant.generation);
}

#[test]
fn a_host_that_packets_of_the_switch_do_not_reach_is_refused_before_anything_starts() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let other: SocketAddr = "[::1]:9001".parse().unwrap();
    let at = format!("the switch is at {}", switch.at());
    let hello = WorkerHello { at: other.into(), ..worker_hello("w") };
    let why = worker(remote(&controller), hello).refused();
    assert!(why.contains(&at) && why.contains("[::1]:9001") && why.contains("--listen"), "{why}");
    let hello = ClientHello { at: other.into(), ..client_hello("c") };
    assert!(client(remote(&controller), hello).refused().contains(&at));
}

#[test]
fn a_host_that_nobody_could_send_to_is_refused_with_the_reason() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let mut hello = worker_hello("w");
    hello.at = endpoint(0);
    let why = worker(remote(&controller), hello).refused();
    assert!(why.contains("nobody can send to"), "{why}");
}

#[test]
fn a_worker_that_asks_for_an_unknown_slice_is_refused_until_it_asks_for_another() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let mut hello = worker_hello("w");
    hello.slice = "gte".to_owned();
    let host = worker(remote(&controller), hello);
    let why = host.refused();
    assert!(why.contains("gte") && why.contains("get"), "{why}");
    host.line.set_hello(worker_hello("w"));
    assert_eq!(host.granted().slice, SliceId(0));
}

#[tokio::test(flavor = "current_thread")]
async fn a_moved_worker_gets_the_new_slice_and_a_watcher_sees_it() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let host = worker(remote(&controller), worker_hello("w"));
    let first = host.granted();
    let mut calls = ControllerClient::new(remote(&controller).connect());
    let mut watching = ControllerClient::new(remote(&controller).connect_patiently())
        .watch(v1::WatchRequest {})
        .await
        .unwrap()
        .into_inner();

    let request = v1::MoveWorkerRequest { worker: "w".to_owned(), slice: "scan".to_owned() };
    calls.move_worker(request).await.unwrap();
    let moved = host.granted_where(|grant| grant.slice == SliceId(1));
    assert!(moved.generation > first.generation);
    loop {
        let event = watching.message().await.unwrap().expect("the stream goes on");
        if event.kind == "worker-moved" {
            assert!(event.text.contains("scan"), "{}", event.text);
            break;
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_people_ask_wrongly_is_answered_with_the_reason() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    worker(remote(&controller), worker_hello("w")).granted();
    let mut calls = ControllerClient::new(remote(&controller).connect());
    let request = v1::MoveWorkerRequest { worker: "nobody".to_owned(), slice: "scan".to_owned() };
    let status = calls.move_worker(request).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.message().contains("nobody"));
    let request = v1::SetTypeRequest { task_type: 70_000, slice: None };
    assert_eq!(calls.set_type(request).await.unwrap_err().code(), Code::InvalidArgument);
    let request = v1::SetTypeRequest { task_type: 200, slice: Some("get".to_owned()) };
    assert_eq!(calls.set_type(request).await.unwrap_err().code(), Code::FailedPrecondition);
}

#[tokio::test(flavor = "current_thread")]
async fn status_shows_slices_workers_clients_and_what_the_switch_counted() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let serving = worker(remote(&controller), worker_hello("w"));
    let asking = client(remote(&controller), client_hello("c"));
    serving.granted();
    asking.granted();
    let mut calls = ControllerClient::new(remote(&controller).connect());
    let status = calls.status(v1::StatusRequest {}).await.unwrap().into_inner();
    let shown = status.switch.unwrap();
    assert_eq!((shown.epoch, shown.link(), shown.at), (5, v1::LinkState::Up, switch.at().to_string()));
    assert!(shown.counters.iter().any(|counter| counter.name == "received"));
    let names: Vec<_> = status.slices.iter().map(|slice| (slice.name.as_str(), slice.balance)).collect();
    assert_eq!(names, [("get", Some(0)), ("scan", Some(0))]);
    assert_eq!(status.workers[0].name, "w");
    assert_eq!(status.workers[0].phase(), v1::WorkerPhase::Open);
    assert_eq!(status.clients[0].name, "c");
}

#[tokio::test(flavor = "current_thread")]
async fn reflection_lists_the_service() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let mut reflection = ServerReflectionClient::new(remote(&controller).connect());
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut answers =
        reflection.server_reflection_info(tokio_stream::once(request)).await.unwrap().into_inner();
    let answer = answers.message().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = answer else { panic!("{answer:?}") };
    assert!(list.service.iter().any(|service| service.name == "sluice.v1.Controller"), "{list:?}");
}

#[tokio::test(flavor = "current_thread")]
async fn a_registration_of_an_unknown_kind_of_field_changes_nothing() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let mut calls = ControllerClient::new(remote(&controller).connect());
    let hello = WorkerHello { held: Some((WorkerId(7), Key(1), Generation(1))), ..worker_hello("w") };
    let mut request = v1::RenewWorkerRequest::from(&hello);
    request.quota = 300;
    let status = calls.renew_worker(request).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "field quota: 300 is too large"));
    let status = calls.status(v1::StatusRequest {}).await.unwrap().into_inner();
    assert!(status.workers.is_empty());
}
