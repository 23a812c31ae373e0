//! Names from outside: one that could end a line or control a terminal is refused and counted.

use sluice_rpc::v1;
use sluice_rpc::v1::controller_client::ControllerClient;
use tonic::{Code, Status};

use crate::rack::{Switch, embedded, remote, worker_hello};

const HOSTILE: [&str; 5] = ["w\n1", "\u{1b}[2Jw", "w\u{202e}1", "w 1", "\u{9b}1m"];

type Calls = ControllerClient<sluice_rpc::RenewedChannel>;

#[tokio::test(flavor = "current_thread")]
async fn a_name_that_could_command_a_terminal_is_refused_in_every_call_and_counted() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let mut calls = ControllerClient::new(remote(&controller).connect());
    let mut refused = 0;
    for name in HOSTILE {
        for why in all_calls(&mut calls, name).await {
            refused += 1;
            let said = why.message();
            assert_eq!(why.code(), Code::InvalidArgument, "{name:?}: {said}");
            assert!(said.contains("holds") && !said.contains(char::is_control), "{said:?}");
        }
    }
    let status = calls.status(v1::StatusRequest {}).await.unwrap().into_inner();
    let counted = status.refused.iter().find(|counter| counter.name == "name").unwrap();
    assert_eq!(counted.value, refused);
    assert!(status.workers.is_empty() && status.clients.is_empty() && status.servers.is_empty());
}

#[tokio::test(flavor = "current_thread")]
async fn a_name_of_a_megabyte_is_not_repeated() {
    let switch = Switch::start(5);
    let controller = embedded(&switch);
    let mut calls = ControllerClient::new(remote(&controller).connect());
    for why in all_calls(&mut calls, &"x".repeat(1 << 20)).await {
        assert_eq!(why.code(), Code::InvalidArgument);
        assert!(why.message().len() < 200, "{}", why.message());
    }
}

/// The statuses of all calls that take a name, called with this one.
async fn all_calls(calls: &mut Calls, name: &str) -> Vec<Status> {
    let name = name.to_owned();
    let hello = v1::RenewWorkerRequest::from(&worker_hello("w"));
    let interval = v1::AgentInterval { server: name.clone(), ..Default::default() };
    let client = v1::RenewClientRequest { name: name.clone(), at: hello.at.clone(), ..Default::default() };
    let server =
        v1::RenewServerRequest { name: name.clone(), at: hello.at.clone(), qpn: 1, ..Default::default() };
    let other = |change: fn(&mut v1::RenewWorkerRequest, String)| {
        let mut hello = hello.clone();
        change(&mut hello, name.clone());
        hello
    };
    let mut said = Vec::new();
    for hello in [
        other(|hello, name| hello.name = name),
        other(|hello, name| hello.slice = name),
        other(|hello, name| hello.server = name),
    ] {
        said.push(calls.renew_worker(hello).await.unwrap_err());
    }
    said.push(calls.renew_client(client).await.unwrap_err());
    said.push(calls.renew_server(server).await.unwrap_err());
    let leaves = v1::LeaveWorkerRequest { name: name.clone(), life: 1 };
    said.push(calls.leave_worker(leaves).await.unwrap_err());
    let leaves = v1::LeaveClientRequest { name: name.clone(), incarnation: 1 };
    said.push(calls.leave_client(leaves).await.unwrap_err());
    let leaves = v1::LeaveServerRequest { name: name.clone(), life: 1 };
    said.push(calls.leave_server(leaves).await.unwrap_err());
    let moves = v1::MoveWorkerRequest { worker: name.clone(), slice: "get".to_owned() };
    said.push(calls.move_worker(moves).await.unwrap_err());
    let moves = v1::MoveWorkerRequest { worker: "w".to_owned(), slice: name.clone() };
    said.push(calls.move_worker(moves).await.unwrap_err());
    let maps = v1::SetTypeRequest { task_type: 1, slice: Some(name.clone()) };
    said.push(calls.set_type(maps).await.unwrap_err());
    let reports = v1::ReportIntervalRequest { interval: Some(interval) };
    said.push(calls.report_interval(reports).await.unwrap_err());
    said
}
