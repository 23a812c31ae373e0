//! Permissions: callers without a certificate, with another role, with another's name, or with an untrusted
//! certificate.

use sluice_control::{ServerHello, WorkerHello};
use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_rpc::{ClientTls, Remote, RpcError, ServerTls, reason, v1};
use sluice_switchd::SwitchdError;
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{Guard, RpcServer, serve_tables};
use tonic::{Code, Status};

use crate::authority::{Authority, Made, expired, over_tls, params, self_made};
use crate::rack::{
    ANY, Switch, answered, client, client_hello, embedded, options, remote, worker, worker_hello,
};

pub(crate) type Calls = ControllerClient<sluice_rpc::RenewedChannel>;

pub(crate) fn controller(switch: &Switch, tls: ServerTls) -> RpcServer {
    let options = options(SwitchLink::Here(switch.local()));
    start_controller(ControllerOptions { guard: Guard::Tls(tls), ..options }).unwrap()
}

pub(crate) fn calls(server: &RpcServer, tls: &ClientTls) -> Calls {
    ControllerClient::new(over_tls(server, tls).connect())
}

fn moves() -> v1::MoveWorkerRequest {
    v1::MoveWorkerRequest { worker: "b/w".to_owned(), slice: "scan".to_owned() }
}

fn maps() -> v1::SetTypeRequest {
    v1::SetTypeRequest { task_type: 2, slice: None }
}

pub(crate) async fn status(calls: &mut Calls) -> Result<v1::StatusResponse, Status> {
    Ok(calls.status(v1::StatusRequest {}).await?.into_inner())
}

/// How many calls were refused under this reason.
pub(crate) async fn counted(operator: &mut Calls, reason: &str) -> u64 {
    let status = answered(async || operator.status(v1::StatusRequest {}).await).await;
    status.refused.iter().find(|counter| counter.name == reason).unwrap().value
}

#[tokio::test(flavor = "current_thread")]
async fn who_shows_no_certificate_may_do_nothing_at_all() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let stranger = authority.stranger();
    let mut calling = calls(&server, &stranger);
    let refused = [
        calling.set_type(maps()).await.unwrap_err(),
        calling.move_worker(moves()).await.unwrap_err(),
        status(&mut calling).await.unwrap_err(),
        calling.renew_worker(v1::RenewWorkerRequest::from(&worker_hello("w"))).await.unwrap_err(),
        calling.leave_worker(v1::LeaveWorkerRequest::default()).await.unwrap_err(),
        calling.watch(v1::WatchRequest {}).await.unwrap_err(),
    ];
    for why in &refused {
        assert_eq!(why.code(), Code::Unauthenticated, "{why}");
        assert!(reason(why).contains("--identity"), "{}", reason(why));
    }
    let why = worker(over_tls(&server, &stranger), worker_hello("w")).refused();
    assert!(why.contains("show a certificate"), "{why}");
    let mut operator = calls(&server, &authority.caller("ann", "operator"));
    let seen = status(&mut operator).await.unwrap();
    assert!(seen.workers.is_empty());
    assert!(seen.slices.iter().all(|slice| slice.types.len() == 1), "a type was mapped elsewhere");
    assert_eq!(counted(&mut operator, "no_certificate").await, refused.len() as u64 + 1);
}

#[tokio::test(flavor = "current_thread")]
async fn each_role_may_do_what_is_its_own_and_an_operator_sees_who_tried_more() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let mut operator = calls(&server, &authority.caller("ann", "operator"));
    let host = worker(over_tls(&server, &authority.caller("b", "host")), worker_hello("b/w"));
    let other = worker(over_tls(&server, &authority.caller("c", "host")), worker_hello("c"));
    host.granted();
    other.granted();
    for unit in ["host", "reader", "controller"] {
        let mut calls = calls(&server, &authority.caller("b", unit));
        for why in [calls.move_worker(moves()).await.unwrap_err(), calls.set_type(maps()).await.unwrap_err()]
        {
            assert_eq!(why.code(), Code::PermissionDenied);
            let said = reason(&why);
            assert!(
                said.contains("takes a certificate with the role operator") && said.contains(unit),
                "{said}"
            );
        }
    }
    let mut reader = calls(&server, &authority.caller("eve", "reader"));
    assert_eq!(status(&mut reader).await.unwrap().workers.len(), 2);
    let hello = v1::RenewWorkerRequest::from(&worker_hello("eve"));
    assert_eq!(reader.renew_worker(hello.clone()).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(operator.renew_worker(hello).await.unwrap_err().code(), Code::PermissionDenied);
    let mut plain = calls(&server, &authority.caller("b", "people"));
    let why = reason(&status(&mut plain).await.unwrap_err());
    assert!(why.contains("gives no role") && why.contains("host, operator, reader, controller"), "{why}");
    assert_eq!(counted(&mut operator, "other_role").await, 8);
    assert_eq!(counted(&mut operator, "no_role").await, 1);
    operator.move_worker(moves()).await.unwrap();
    assert_eq!(host.granted_where(|grant| grant.slice == sluice_wire::SliceId(1)).quota, 2);
}

#[tokio::test(flavor = "current_thread")]
async fn a_hostile_host_takes_nobody_elses_name() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let mut operator = calls(&server, &authority.caller("ann", "operator"));
    let own = worker(over_tls(&server, &authority.caller("b", "host")), worker_hello("b/w"));
    own.granted();
    let hostile = authority.caller("mallory", "host");
    let why = worker(over_tls(&server, &hostile), worker_hello("b/w")).refused();
    assert!(why.contains("the certificate of mallory does not speak for \"b/w\""), "{why}");
    assert!(why.contains("mallory/"), "{why}");
    client(over_tls(&server, &hostile), client_hello("b/c")).refused();
    let on_b = WorkerHello { server: "b/server".to_owned(), ..worker_hello("mallory/w") };
    worker(over_tls(&server, &hostile), on_b).refused();
    let mut calls = calls(&server, &hostile);
    let leaves = v1::LeaveWorkerRequest { name: "b/w".to_owned(), life: worker_hello("b/w").life };
    assert_eq!(calls.leave_worker(leaves).await.unwrap_err().code(), Code::PermissionDenied);
    let leaves = v1::LeaveClientRequest { name: "b".to_owned(), incarnation: 1 };
    assert_eq!(calls.leave_client(leaves).await.unwrap_err().code(), Code::PermissionDenied);
    let leaves = v1::LeaveServerRequest { name: "b".to_owned(), life: 1 };
    assert_eq!(calls.leave_server(leaves).await.unwrap_err().code(), Code::PermissionDenied);
    let server_hello = v1::RenewServerRequest::from(&server_hello("b/server"));
    assert_eq!(calls.renew_server(server_hello).await.unwrap_err().code(), Code::PermissionDenied);
    let interval = Some(v1::AgentInterval { server: "b/server".to_owned(), ..Default::default() });
    let reports = v1::ReportIntervalRequest { interval };
    assert_eq!(calls.report_interval(reports).await.unwrap_err().code(), Code::PermissionDenied);
    let seen = status(&mut operator).await.unwrap();
    let names: Vec<_> = seen.workers.iter().map(|worker| worker.name.as_str()).collect();
    assert_eq!(names, ["b/w"]);
    assert_eq!(counted(&mut operator, "other_name").await, 8);
}

pub(crate) fn server_hello(name: &str) -> ServerHello {
    ServerHello {
        name: name.to_owned(),
        life: 1,
        at: crate::rack::endpoint(9_003),
        qpn: sluice_wire::Qpn(7),
        first: sluice_wire::Psn::new(0),
        mtu: 2_048,
        reliable: false,
        icrc: true,
        rings: Vec::new(),
    }
}

#[test]
fn a_certificate_that_is_over_or_that_nobody_known_signed_is_told_so() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let over = authority.sign(&expired(params("b", &["host"], &[])));
    let why = worker(over_tls(&server, &authority.showing(&over)), worker_hello("b")).lost();
    assert!(why.contains("has expired") && why.contains("--identity"), "{why}");
    for other in [Authority::called("another"), Authority::new()] {
        let others = other.sign(&params("b", &["host"], &[]));
        let why = worker(over_tls(&server, &authority.showing(&others)), worker_hello("b")).lost();
        assert!(why.contains("does not know who signed") && why.contains("--client-ca"), "{why}");
    }
}

#[test]
fn a_server_that_cannot_be_believed_is_told_so() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let why_not = |made: &Made, trusting: &ClientTls| {
        let tls = ServerTls::new(made.certificate.as_bytes(), made.key.as_bytes());
        let server = controller(&switch, tls);
        worker(over_tls(&server, trusting), worker_hello("w")).lost()
    };
    let here = || params("server", &[], &["127.0.0.1"]);
    for other in [Authority::called("another"), Authority::new()] {
        let misled = why_not(&authority.sign(&here()), &other.stranger());
        assert!(misled.contains("not signed by the authority that was given (--ca)"), "{misled}");
    }
    let elsewhere = why_not(&authority.sign(&params("server", &[], &["192.0.2.1"])), &authority.stranger());
    assert!(elsewhere.contains("is for 192.0.2.1, not for 127.0.0.1"), "{elsewhere}");
    let nowhere = why_not(&authority.sign(&params("127.0.0.1", &[], &[])), &authority.stranger());
    assert!(
        nowhere.contains("holds no address") && nowhere.contains("-addext subjectAltName=IP:127.0.0.1"),
        "{nowhere}"
    );
    let over = why_not(&authority.sign(&expired(here())), &authority.stranger());
    assert!(over.contains("expired") && over.contains("days ago"), "{over}");
    let own = why_not(&self_made(here()), &authority.stranger());
    assert!(own.contains("CA:TRUE") && own.contains("give that very file"), "{own}");
}

#[test]
fn a_certificate_for_a_name_serves_who_calls_an_address_and_expects_that_name() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let Made { certificate, key } = authority.sign(&params("server", &[], &["controller.example"]));
    let tls = ServerTls::new(certificate.as_bytes(), key.as_bytes());
    let server = controller(&switch, tls.only_clients_of(authority.pem().as_bytes()));
    let caller = authority.caller("b", "host");
    let misled = worker(over_tls(&server, &caller), worker_hello("b")).lost();
    assert!(misled.contains("not for 127.0.0.1"), "{misled}");
    worker(over_tls(&server, &caller.expecting("controller.example")), worker_hello("b")).granted();
}

#[test]
fn a_certificate_that_signed_itself_serves_whoever_was_given_it() {
    let switch = Switch::start(5);
    let Made { certificate, key } = self_made(params("rack", &["host", "operator"], &["127.0.0.1"]));
    let tls = ServerTls::new(certificate.as_bytes(), key.as_bytes()).only_clients_of(certificate.as_bytes());
    let server = controller(&switch, tls);
    let caller = ClientTls::new(certificate.as_bytes()).showing(certificate.as_bytes(), key.as_bytes());
    worker(over_tls(&server, &caller), worker_hello("rack/w")).granted();
    // A certificate without its key is worthless.
    let stranger = ClientTls::new(certificate.as_bytes());
    worker(over_tls(&server, &stranger), worker_hello("rack/x")).refused();
}

#[test]
fn a_certificate_that_signed_itself_is_over_some_day_and_is_for_its_own_address_only() {
    let switch = Switch::start(5);
    let why_not = |params| {
        let Made { certificate, key } = self_made(params);
        let server = controller(&switch, ServerTls::new(certificate.as_bytes(), key.as_bytes()));
        worker(over_tls(&server, &ClientTls::new(certificate.as_bytes())), worker_hello("w")).lost()
    };
    let over = why_not(expired(params("rack", &[], &["127.0.0.1"])));
    assert!(over.contains("days ago"), "{over}");
    let elsewhere = why_not(params("rack", &[], &["192.0.2.1"]));
    assert!(elsewhere.contains("not for 127.0.0.1"), "{elsewhere}");
    let Made { certificate, key } = self_made(expired(params("rack", &["host"], &["127.0.0.1"])));
    let authority = Authority::new();
    let asking = authority.open_server().only_clients_of(certificate.as_bytes());
    let server = controller(&switch, asking);
    let caller = authority.showing(&Made { certificate, key });
    let why = worker(over_tls(&server, &caller), worker_hello("rack")).lost();
    assert!(why.contains("has expired"), "{why}");
}

#[test]
fn who_speaks_tls_and_who_does_not_tell_each_other_so() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let secured = controller(&switch, authority.server());
    let why = worker(remote(&secured), worker_hello("w")).lost();
    assert!(why.contains("it speaks TLS") && why.contains("--ca"), "{why}");
    let plain = embedded(&switch);
    let why = worker(over_tls(&plain, &authority.stranger()), worker_hello("w")).lost();
    assert!(why.contains("does not speak TLS") && why.contains("--tls"), "{why}");
}

#[tokio::test(flavor = "current_thread")]
async fn handshakes_that_fail_are_counted_and_hold_nobody_up() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    // This connection sends nothing. It is hung up on, and counted, if the test takes seconds.
    let silent = std::net::TcpStream::connect(server.local()).unwrap();
    let mut plain = ControllerClient::new(remote(&server).connect());
    status(&mut plain).await.unwrap_err();
    let over = authority.showing(&authority.sign(&expired(params("b", &["host"], &[]))));
    status(&mut calls(&server, &over)).await.unwrap_err();
    let mut operator = calls(&server, &authority.caller("ann", "operator"));
    assert!((1..=2).contains(&counted(&mut operator, "no_tls").await));
    assert_eq!(counted(&mut operator, "bad_certificate").await, 1);
    drop(silent);
}

#[test]
fn nothing_is_served_beyond_this_machine_to_callers_who_are_not_asked_who_they_are() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let options = ControllerOptions { at: everywhere, ..options(SwitchLink::Here(switch.local())) };
    assert!(matches!(start_controller(options.clone()), Err(SwitchdError::Insecure { .. })));
    let refused = serve_tables(everywhere, &Guard::Loopback, switch.local()).unwrap_err().to_string();
    assert!(refused.contains("without TLS") && refused.contains("127.0.0.1"), "{refused}");
    let open = Guard::Tls(authority.open_server());
    let refused = serve_tables(everywhere, &open, switch.local()).unwrap_err().to_string();
    assert!(refused.contains("--client-ca"), "{refused}");
    assert!(matches!(
        start_controller(ControllerOptions { guard: open, ..options }),
        Err(SwitchdError::OpenToAll { .. })
    ));
}

#[test]
fn tables_are_served_everywhere_to_controllers_alone() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let guard = Guard::Tls(authority.server());
    let server = serve_tables("0.0.0.0:0".parse().unwrap(), &guard, switch.local()).unwrap();
    let url = format!("https://127.0.0.1:{}", server.local().port());
    let beside = |unit: &str| {
        let there = Remote::new(&url, Some(&authority.caller("c", unit))).unwrap();
        start_controller(options(SwitchLink::There(there))).unwrap()
    };
    let operators = beside("operator");
    let waiting = worker(remote(&operators), worker_hello("w"));
    let why = waiting.until(|event| match event {
        sluice_rpc::registrar::RegistrarEvent::Wait { why, .. } => Some(why),
        _ => None,
    });
    assert!(why.contains("cannot reach the switch"), "{why}");
    let controllers = beside("controller");
    worker(remote(&controllers), worker_hello("w")).granted();
}

#[test]
fn hosts_that_were_given_no_name_go_by_one_that_their_certificate_allows() {
    let (switch, authority) = (Switch::start(5), Authority::new());
    let server = controller(&switch, authority.server());
    let there = over_tls(&server, &authority.caller("b", "host"));
    let name = there.own_name("worker");
    let process = std::process::id();
    assert!(name.starts_with(&format!("b/worker-{process}-")), "{name}");
    let in_another_container = there.own_name("worker");
    assert_ne!(name, in_another_container, "it may have the same process number");
    worker(there, worker_hello(&name)).granted();
    let plain = remote(&embedded(&switch)).own_name("worker");
    assert!(plain.starts_with(&format!("worker-{process}-")), "{plain}");
}

#[test]
fn a_certificate_that_is_none_is_refused_at_start() {
    let switch = Switch::start(5);
    let refused = serve_tables(ANY.parse().unwrap(), &Guard::Tls(ServerTls::new(b"x", b"y")), switch.local());
    assert!(matches!(refused, Err(SwitchdError::Rpc(RpcError::Tls { .. }))));
}
