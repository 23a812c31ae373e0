//! A registered host with bad intent: what it claims about other machines and workers is refused and
//! counted.

use std::net::SocketAddr;

use rcgen::SanType;
use sluice_rpc::v1;
use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_wire::Endpoint;
use tonic::Code;

use crate::authority::{Authority, over_tls, params};
use crate::rack::{Switch, client, client_hello, embedded, remote, worker, worker_hello};
use crate::secure::{calls, controller, counted, server_hello, status};

/// The address of a machine that never asked for packets.
const VICTIM: &str = "192.0.2.7";

fn at_victim() -> Endpoint {
    SocketAddr::new(VICTIM.parse().unwrap(), 53).into()
}

#[tokio::test(flavor = "current_thread")]
async fn packets_are_sent_to_the_machine_that_asks_for_them_and_to_no_other() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let hostile = authority.caller("mallory", "host");
    let mut hello = worker_hello("mallory/w");
    hello.at = at_victim();
    let why = worker(over_tls(&server, &hostile), hello.clone()).refused();
    assert!(why.contains("would go to 192.0.2.7") && why.contains("calls from 127.0.0.1"), "{why}");
    assert!(
        why.contains("listen on the address that you call from") && why.contains("IP:192.0.2.7"),
        "{why}"
    );
    let mut asking = client_hello("mallory/c");
    asking.at = at_victim();
    client(over_tls(&server, &hostile), asking).refused();
    let mut memory = server_hello("mallory/s");
    memory.at = at_victim();
    let mut calling = calls(&server, &hostile);
    let why = calling.renew_server(v1::RenewServerRequest::from(&memory)).await.unwrap_err();
    assert_eq!(why.code(), Code::PermissionDenied);
    let mut operator = calls(&server, &authority.caller("ann", "operator"));
    assert_eq!(counted(&mut operator, "other_address").await, 3);
    let seen = status(&mut operator).await.unwrap();
    assert!(seen.workers.is_empty() && seen.clients.is_empty() && seen.servers.is_empty());
}

#[tokio::test(flavor = "current_thread")]
async fn a_worker_that_is_registered_does_not_turn_its_packets_to_another_machine() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let host = worker(over_tls(&server, &authority.caller("mallory", "host")), worker_hello("mallory/w"));
    host.granted();
    let mut turned = worker_hello("mallory/w");
    turned.at = at_victim();
    host.line.set_hello(turned);
    host.refused();
    let mut operator = calls(&server, &authority.caller("ann", "operator"));
    let seen = status(&mut operator).await.unwrap();
    assert_eq!(seen.workers[0].at, worker_hello("mallory/w").at.to_string());
}

#[test]
fn a_machine_with_several_addresses_shows_them_in_its_certificate() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let mut of_b = params("b", &["host"], &[]);
    of_b.subject_alt_names.push(SanType::IpAddress(VICTIM.parse().unwrap()));
    let b = authority.showing(&authority.sign(&of_b));
    let mut hello = worker_hello("b/w");
    hello.at = at_victim();
    worker(over_tls(&server, &b), hello).granted();
    worker(over_tls(&server, &b), worker_hello("b/here")).granted();
}

#[test]
fn callers_that_nobody_asks_who_they_are_say_where_they_listen() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let mut hello = worker_hello("w");
    hello.at = at_victim();
    worker(remote(&controller), hello).granted();
}

/// An agent's report about these workers of slice 0.
fn interval(server: &str, workers: &[u32]) -> v1::ReportIntervalRequest {
    let depth = |worker: &u32| v1::WorkerDepth { worker: *worker, depth: 7 };
    let slice = v1::SliceInterval {
        slice: 0,
        overloads: u32::MAX,
        idle_milli: u32::MAX,
        workers: workers.iter().map(depth).collect(),
        ..Default::default()
    };
    let interval = v1::AgentInterval { server: server.to_owned(), slices: vec![slice], ..Default::default() };
    v1::ReportIntervalRequest { interval: Some(interval) }
}

#[tokio::test(flavor = "current_thread")]
async fn an_agent_speaks_for_workers_of_its_own_machine_only() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let others = worker(over_tls(&server, &authority.caller("b", "host")), worker_hello("b/w")).granted();
    let hostile = authority.caller("mallory", "host");
    let own = worker(over_tls(&server, &hostile), worker_hello("mallory/w"));
    let own_id = own.granted().worker;
    let mut calling = calls(&server, &hostile);
    let tells = interval("mallory", &[own_id.0.into(), others.worker.0.into()]);
    let why = calling.report_interval(tells).await.unwrap_err();
    assert_eq!(why.code(), Code::PermissionDenied);
    let said = why.message();
    assert!(
        said.contains(&format!("tells of worker {}, and the certificate of mallory", others.worker)),
        "{said}"
    );
    let judging = v1::Judgement { worker: others.worker.0.into(), ..Default::default() };
    let mut judges = interval("mallory", &[own_id.0.into()]);
    judges.interval.as_mut().unwrap().slices[0].judgements.push(judging);
    assert_eq!(calling.report_interval(judges).await.unwrap_err().code(), Code::PermissionDenied);
    calling.report_interval(interval("mallory", &[own_id.0.into()])).await.unwrap();
    let mut operator = calls(&server, &authority.caller("ann", "operator"));
    assert_eq!(counted(&mut operator, "other_worker").await, 2);
    let seen = status(&mut operator).await.unwrap();
    let quota = |name: &str| seen.workers.iter().find(|worker| worker.name == name).unwrap().quota;
    assert_eq!((quota("b/w"), quota("mallory/w")), (2, 7));
}

/// An attacker that learned at once whether a guess was wrong could try all 32 bits.
#[tokio::test(flavor = "current_thread")]
async fn whether_a_key_is_right_is_told_to_its_holder_only() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let own = authority.caller("b", "host");
    let host = worker(over_tls(&server, &own), worker_hello("b/w"));
    let grant = host.granted();
    let held = |key: u32| {
        let (worker, generation) = (grant.worker.0.into(), grant.generation.0);
        v1::AwaitChangeRequest { held: Some(v1::HeldWorker { worker, key, generation }) }
    };
    let mut hostile = calls(&server, &authority.caller("mallory", "host"));
    for key in [grant.key.0, grant.key.0 ^ 1] {
        let why = hostile.await_change(held(key)).await.unwrap_err();
        assert_eq!(why.code(), Code::Unavailable, "{why}");
    }
    let mut asking = calls(&server, &own);
    asking.await_change(held(grant.key.0 ^ 1)).await.unwrap();
    let mut operator = calls(&server, &authority.caller("ann", "operator"));
    assert_eq!(counted(&mut operator, "other_worker").await, 2);
}

#[tokio::test(flavor = "current_thread")]
async fn an_interval_that_tells_of_a_slice_or_a_worker_twice_is_refused() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let mut calling = ControllerClient::new(remote(&controller).connect());
    let twice = interval("s", &[0, 0]);
    let mut both = interval("s", &[]);
    let slices = &mut both.interval.as_mut().unwrap().slices;
    slices.push(slices[0].clone());
    for tells in [twice, both] {
        let why = calling.report_interval(tells).await.unwrap_err();
        assert_eq!(why.code(), Code::InvalidArgument);
        assert!(why.message().contains("stands there twice"), "{why}");
    }
}
