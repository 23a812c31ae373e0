//! A controller with hostile answers: a command that asks it prints only harmless text.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::Pin;
use std::process::Stdio;
use std::thread;

use common::{Running, command, hold_to_schema, sluice, sluice_succeeds, stderr, stdout};
use serde_json::Value;
use sluice_rpc::v1::{self, Counter};
use sluice_switchd::rpc::services::controller_server::{Controller, ControllerServer};
use tokio_stream::wrappers::TcpListenerStream;
use tokio_stream::{Empty, Stream};
use tonic::{Request, Response, Status, async_trait};

/// Clears the screen, sets the window's title, starts a line, reverses the text direction, and is markup.
const HOSTILE: &str = "w\u{1b}[2J\u{1b}]0;owned\u{7}\nw-2 open\u{202e}\u{9b}1m<i>b";
const MARKUP: &str = "<i>b";

#[test]
fn what_a_hostile_controller_calls_things_commands_no_terminal() {
    let at = hostile_controller();
    let folder = tempfile::tempdir().expect("a folder");
    for args in [&["status"][..], &["status", "--json"], &["move", "w", "s"], &["map", "get", "s"]] {
        let output = sluice(folder.path(), &[args, &["--controller", &at]].concat());
        for text in [stdout(&output), stderr(&output)] {
            let commands = |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}');
            assert!(!text.contains(commands), "{args:?}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with("w-2")), "{args:?}: {text}");
        }
    }
    let shown = stdout(&sluice_succeeds(folder.path(), &["status", "--controller", &at]));
    assert!(shown.contains("w\\u{1b}[2J"), "{shown}");
}

#[test]
fn the_state_of_a_page_tells_its_findings_in_harmless_text() {
    let at = hostile_controller();
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["dashboard", "--listen", "127.0.0.1:0", "--controller", &at, "--json", "--quiet"];
    let mut child = command(folder.path(), &args).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("it prints");
    let _dashboard = Running(child);
    let said: Value = serde_json::from_str(&line).expect("JSON");
    let at = said["dashboard"].as_str().expect("a URL").trim_start_matches("http://").trim_end_matches('/');
    let state = loop {
        let state = get(at, "/state.json");
        if state["racks"][0]["status"].is_object() {
            break state;
        }
        thread::yield_now();
    };
    hold_to_schema(&state);
    hold_to_schema(&state["racks"][0]["status"]);
    let findings = state["racks"][0]["status"]["findings"].as_array().expect("a list");
    assert_eq!((&findings[0]["severity"], findings.is_empty()), (&"wrong".into(), false), "{findings:#?}");
    let stopped = findings.iter().find(|finding| finding["code"] == "worker-stopped");
    let stopped = stopped.unwrap_or_else(|| panic!("{findings:#?}"));
    let name = stopped["subject"]["name"].as_str().expect("a name");
    assert!(name.starts_with("w\\u{1b}[2J") && name.contains(MARKUP), "{name:?}");
    let mut texts = vec![&state];
    while let Some(value) = texts.pop() {
        let is_harmful = |letter: char| letter.is_control() || letter == '\u{202e}';
        assert!(!value.as_str().is_some_and(|text| text.contains(is_harmful)), "{value:?}");
        texts.extend(value.as_array().into_iter().flatten());
        texts.extend(value.as_object().into_iter().flat_map(|object| object.values()));
    }
}

/// What a page answers as JSON.
fn get(at: &str, path: &str) -> Value {
    let mut stream = TcpStream::connect(at).expect("it listens");
    let asks = format!("GET {path} HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    stream.write_all(asks.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    serde_json::from_str(body).unwrap_or_else(|why| panic!("{why}: {body}"))
}

/// Serves until the test ends.
fn hostile_controller() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let at = listener.local_addr().expect("bound").to_string();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let incoming =
                TcpListenerStream::new(tokio::net::TcpListener::from_std(listener).expect("a port"));
            let server = tonic::transport::Server::builder().add_service(ControllerServer::new(Hostile));
            server.serve_with_incoming(incoming).await.expect("it serves");
        });
    });
    at
}

struct Hostile;

type Answer<T> = Result<Response<T>, Status>;

fn no<T>() -> Answer<T> {
    Err(Status::failed_precondition(HOSTILE))
}

/// What `status` tells of in findings.
fn wrong() -> v1::StatusResponse {
    let [name, process, path, why_not, who] = [(); 5].map(|()| HOSTILE.to_owned());
    let kind = v1::HostKind::Worker.into();
    let folder = v1::FolderState { path, why_not, ..Default::default() };
    v1::StatusResponse {
        lost: vec![v1::LostHost { kind, name, index: 1, ago_ns: 0 }],
        earlier: vec![v1::EarlierStatus {
            ago_ns: 60_000_000_000,
            refused: vec![Counter { name: HOSTILE.to_owned(), value: 0 }],
            ..Default::default()
        }],
        processes: vec![v1::ProcessHealth { process, clock_step: None, folder: Some(folder) }],
        superseded: vec![v1::SupersededCaller { term: 1, who, ago_ns: 0 }],
        ..Default::default()
    }
}

#[async_trait]
impl Controller for Hostile {
    async fn status(&self, _: Request<v1::StatusRequest>) -> Answer<v1::StatusResponse> {
        let (name, at, labels) = (HOSTILE.to_owned(), HOSTILE.to_owned(), vec![HOSTILE.to_owned()]);
        let counters = vec![Counter { name: HOSTILE.to_owned(), value: 1 }];
        Ok(Response::new(v1::StatusResponse {
            switch: Some(v1::SwitchStatus {
                at: at.clone(),
                counters: counters.clone(),
                ..Default::default()
            }),
            slices: vec![v1::SliceStatus {
                name: name.clone(),
                classes: vec![v1::ClassStatus { needs: labels.clone(), refused: true, ..Default::default() }],
                ..Default::default()
            }],
            workers: vec![v1::WorkerStatus {
                name: name.clone(),
                at: at.clone(),
                labels,
                ..Default::default()
            }],
            clients: vec![v1::ClientStatus { name: name.clone(), at: at.clone(), ..Default::default() }],
            servers: vec![v1::ServerStatus { name, at, ..Default::default() }],
            refused: counters,
            type_names: vec![v1::TypeName { task_type: 1, name: HOSTILE.to_owned() }],
            standing: Some(v1::StandingResponse {
                role: v1::LeadRole::Standby.into(),
                leader: HOSTILE.to_owned(),
                standbys: vec![HOSTILE.to_owned()],
                untold: HOSTILE.to_owned(),
                etcd_lost: HOSTILE.to_owned(),
                ..Default::default()
            }),
            builds: vec![v1::ProcessBuild {
                kind: HOSTILE.to_owned(),
                name: HOSTILE.to_owned(),
                build: HOSTILE.to_owned(),
                ..Default::default()
            }],
            ending: vec![v1::CertificateEnd { certificate: HOSTILE.to_owned(), unix_s: 0 }],
            ..wrong()
        }))
    }

    async fn standing(&self, _: Request<v1::StandingRequest>) -> Answer<v1::StandingResponse> {
        no()
    }

    async fn move_worker(&self, _: Request<v1::MoveWorkerRequest>) -> Answer<v1::MoveWorkerResponse> {
        no()
    }

    async fn set_type(&self, _: Request<v1::SetTypeRequest>) -> Answer<v1::SetTypeResponse> {
        no()
    }

    async fn renew_worker(&self, _: Request<v1::RenewWorkerRequest>) -> Answer<v1::RenewWorkerResponse> {
        no()
    }

    async fn await_change(&self, _: Request<v1::AwaitChangeRequest>) -> Answer<v1::AwaitChangeResponse> {
        no()
    }

    async fn leave_worker(&self, _: Request<v1::LeaveWorkerRequest>) -> Answer<v1::LeaveWorkerResponse> {
        no()
    }

    async fn renew_client(&self, _: Request<v1::RenewClientRequest>) -> Answer<v1::RenewClientResponse> {
        no()
    }

    async fn leave_client(&self, _: Request<v1::LeaveClientRequest>) -> Answer<v1::LeaveClientResponse> {
        no()
    }

    async fn renew_server(&self, _: Request<v1::RenewServerRequest>) -> Answer<v1::RenewServerResponse> {
        no()
    }

    async fn leave_server(&self, _: Request<v1::LeaveServerRequest>) -> Answer<v1::LeaveServerResponse> {
        no()
    }

    async fn report_interval(
        &self,
        _: Request<v1::ReportIntervalRequest>,
    ) -> Answer<v1::ReportIntervalResponse> {
        no()
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<v1::WatchResponse, Status>> + Send>>;

    async fn watch(&self, _: Request<v1::WatchRequest>) -> Answer<Self::WatchStream> {
        let nothing: Empty<Result<v1::WatchResponse, Status>> = tokio_stream::empty();
        Ok(Response::new(Box::pin(nothing)))
    }
}
