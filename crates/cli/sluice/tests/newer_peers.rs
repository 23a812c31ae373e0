//! Peers of a version that this build does not know yet, on either side of a call, and their packets: each
//! process says so in one line, counts it by its reason, and goes on.

mod common;

use std::convert::Infallible;
use std::fs;
use std::future::{Ready, ready};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::task::{Context, Poll};
use std::thread;
use std::time::{Duration, Instant};

use common::{Running, command, json, sluice, stderr};
use serde_json::Value;
use sluice_ports::free_address;
use sluice_rpc::v1::controller_client::ControllerClient;
use sluice_rpc::v1::tables_client::TablesClient;
use sluice_rpc::v1::{DescribeRequest, RenewWorkerRequest, StatusRequest};
use sluice_wire::{Packet, encode, encoded_len};
use tokio::runtime::{Builder, Runtime};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{HeaderValue, Request, Response};
use tonic::metadata::MetadataValue;
use tonic::server::NamedService;
use tonic::transport::{Endpoint, Server};
use tonic::{Code, Status};

const PLAN: &str = "name = \"old\"\n[[slice]]\nname = \"work\"\ntypes = [\"hold\"]\n";
/// What a newer process says of itself.
const SPEAKS: &str = "8-9";
const BUILD: &str = "0.9.0";
const NEWER: &str = "Sluice 0.9.0 (protocol 8 to 9)";
/// The version of the packets that it sends.
const PACKETS: u8 = 3;
const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn newer_callers_of_controller_and_switch_are_refused_in_one_line_and_counted() {
    let rack = Apart::start(&[]);
    let (runtime, began) = (runtime(), Instant::now());
    let refused = runtime.block_on(async {
        let mut calls = ControllerClient::with_interceptor(lazily(rack.control), says_newer);
        let mut refused = Vec::new();
        for _ in 0..20 {
            refused.push(calls.status(StatusRequest {}).await.expect_err("it is newer"));
        }
        refused.push(calls.renew_worker(RenewWorkerRequest::default()).await.expect_err("it is newer"));
        let mut tables = TablesClient::with_interceptor(lazily(rack.tables), says_newer);
        refused.push(tables.describe(DescribeRequest { term: 9 }).await.expect_err("it is newer"));
        refused
    });
    let lines = 1 + began.elapsed().as_secs() as usize;
    for why in refused {
        assert_eq!(why.code(), Code::FailedPrecondition);
        let parts = ["the caller is ", NEWER, "replace this process by a build like the caller's"];
        assert!(parts.iter().all(|part| why.message().contains(part)), "{why}");
        assert!(!why.message().contains('\n'), "{why}");
    }
    let status = rack.until(|status| {
        status["refused"]["other_version"] == 21
            && status["switch"]["counters"]["refused_call_other_version"] == 1
    });
    assert_eq!(status["switch"]["link"], "up", "a newer controller has no say: {status}");
    // A stranger's calls do not fill a log: it has one line a second.
    for (log, most) in [("controller.log", lines), ("switch.log", 1)] {
        let said = rack.log(log);
        assert!((1..=most).contains(&said.matches(NEWER).count()), "{log}: {said}");
    }
}

#[test]
fn packets_of_a_newer_version_are_counted_by_switch_and_worker_and_status_says_what_to_do() {
    let mut rack = Apart::start(&[]);
    let metrics = free_address();
    let _worker = rack.worker(&["--metrics", &metrics.to_string()]);
    let status = rack.until(|status| status["workers"][0]["phase"] == "open");
    let worker: SocketAddr = status["workers"][0]["at"].as_str().expect("text").parse().expect("an address");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let packet = Packet::Probe(sluice_wire::Probe::default());
    let mut bytes = vec![0; encoded_len(&packet)];
    encode(&packet, &[], &mut bytes).expect("a packet");
    bytes[0] = PACKETS;
    let status = rack.until(|status| {
        socket.send_to(&bytes, rack.switch).expect("sent");
        let mut findings = status["findings"].as_array().into_iter().flatten();
        findings.any(|finding| finding["code"] == "packets-other-version")
    });
    assert!(status["switch"]["counters"]["wrong_version"].as_u64() > Some(10), "{status}");
    // A newer switch at the old one's address.
    rack.end_switch();
    let newer = UdpSocket::bind(rack.switch).expect("the port is free again");
    let end = Instant::now() + PATIENCE;
    loop {
        newer.send_to(&bytes, worker).expect("sent");
        let counted = scrape(metrics);
        let unreadable = counted.lines().find(|line| line.contains("reason=\"unreadable\""));
        if unreadable.is_some_and(|line| !line.ends_with(" 0")) {
            break;
        }
        assert!(Instant::now() < end, "{counted}");
    }
}

#[test]
fn hosts_and_commands_that_meet_a_newer_controller_end_with_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let control = free_address();
    let _newer = Newer::serve(control);
    let at = control.to_string();
    let worker = ["worker", "hold", "--slice", "work", "--controller", &at];
    let load = ["load", "--mix", "hold=1", "--rate", "10", "--length", "100ms", "--controller", &at];
    for args in
        [&worker[..], &load, &["status", "--controller", &at], &["move", "w", "work", "--controller", &at]]
    {
        let said = sluice(folder.path(), args);
        let why = stderr(&said);
        assert_eq!(said.status.code(), Some(2), "{args:?}: {why}");
        let last = why.lines().last().unwrap_or_default();
        let parts = [NEWER, "no version in common", "replace this process by a build like"];
        assert!(parts.iter().all(|part| last.contains(part)), "{args:?}: {why}");
        assert_eq!(why.matches(NEWER).count(), why.lines().filter(|line| line.contains(NEWER)).count());
        assert!(!why.contains("panicked"), "{args:?}: {why}");
    }
}

#[test]
fn a_registered_worker_serves_on_while_a_newer_controller_stands_in_the_old_ones_place() {
    let mut rack = Apart::start(&[]);
    let _worker = rack.worker(&[]);
    let generation = |mut status: Value| status["workers"][0]["generation"].take();
    let mut held = generation(rack.until(|status| status["workers"][0]["phase"] == "open"));
    // It asks once a second, and the returned controller gives it two: on a machine that stands still for as
    // long it registers anew.
    let is_kept = (1..=5).any(|times| {
        rack.end_controller();
        let newer = Newer::serve(rack.control);
        rack.logged_times("worker.log", "no version in common", times);
        newer.end();
        rack.start_controller(&[]);
        let now = generation(rack.until(|status| status["workers"][0]["name"] == "w-1"));
        rack.logged_times("worker.log", "the controller grants the registration now", times);
        let said = rack.log("worker.log");
        assert_eq!(said.matches(NEWER).count(), times, "said once: {said}");
        std::mem::replace(&mut held, now.clone()) == now
    });
    assert!(is_kept, "it had to register anew: {}", rack.log("worker.log"));
}

#[test]
fn controllers_that_meet_a_newer_switch_say_so_once_and_lead_when_it_is_an_old_one_again() {
    for flags in [&[][..], &["--standby"]] {
        let mut rack = Apart::without_switch(flags);
        let newer = Newer::serve(rack.tables);
        rack.logged("controller.log", "no version in common");
        thread::sleep(Duration::from_secs(1));
        let said = rack.log("controller.log");
        // The call about who leads is another one.
        let most = 1 + flags.len();
        assert!((1..=most).contains(&said.matches(NEWER).count()), "{flags:?}: {said}");
        let status = rack.until(|_| true);
        assert_ne!(status["switch"]["link"], "up", "{flags:?}: {status}");
        newer.end();
        rack.start_switch();
        rack.until(|status| status["switch"]["link"] == "up");
    }
}

/// A switch and its controller, in processes of their own.
struct Apart {
    folder: tempfile::TempDir,
    switch: SocketAddr,
    tables: SocketAddr,
    control: SocketAddr,
    running_switch: Option<Running>,
    controller: Option<Running>,
}

impl Apart {
    fn start(flags: &[&str]) -> Self {
        let mut rack = Self::without_switch(flags);
        rack.start_switch();
        rack.until(|status| status["switch"]["link"] == "up");
        rack
    }

    fn without_switch(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("plan.toml"), PLAN).expect("written");
        let (switch, tables, control) = (free_address(), free_address(), free_address());
        let mut rack = Self { folder, switch, tables, control, running_switch: None, controller: None };
        rack.start_controller(flags);
        rack
    }

    fn start_switch(&mut self) {
        let (at, tables) = (self.switch.to_string(), self.tables.to_string());
        let args = ["switch", "plan.toml", "--controller-apart", "--listen", &at, "--control", &tables];
        self.running_switch = Some(logging(self.folder.path(), &args, "switch.log"));
    }

    fn end_switch(&mut self) {
        self.running_switch.take().expect("it runs").ends_well();
    }

    fn start_controller(&mut self, flags: &[&str]) {
        let (tables, control) = (self.tables.to_string(), self.control.to_string());
        let args = ["controller", "plan.toml", "--tables", &tables, "--control", &control];
        let args = [&args[..], flags].concat();
        self.controller = Some(logging(self.folder.path(), &args, "controller.log"));
    }

    fn end_controller(&mut self) {
        self.controller.take().expect("it runs").ends_well();
    }

    fn worker(&self, flags: &[&str]) -> Running {
        let control = self.control.to_string();
        let args = ["worker", "hold", "--name", "w-1", "--slice", "work", "--controller", &control];
        logging(self.folder.path(), &[&args[..], flags].concat(), "worker.log")
    }

    fn until(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let (end, control) = (Instant::now() + PATIENCE, self.control.to_string());
        loop {
            let said = sluice(self.folder.path(), &["status", "--json", "--controller", &control]);
            if said.status.success() {
                let status = json(&said);
                if is_so(&status) {
                    return status;
                }
            }
            assert!(Instant::now() < end, "{said:?}\n{}", self.log("controller.log"));
        }
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).expect("a log")
    }

    /// Waits until a log has this.
    fn logged(&self, name: &str, part: &str) {
        self.logged_times(name, part, 1);
    }

    /// Waits until a log has this so many times.
    fn logged_times(&self, name: &str, part: &str, times: usize) {
        let end = Instant::now() + PATIENCE;
        while self.log(name).matches(part).count() < times {
            assert!(Instant::now() < end, "no {part:?} in {name}: {}", self.log(name));
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Starts a process whose log is appended to this file.
fn logging(folder: &Path, args: &[&str], log: &str) -> Running {
    let log = fs::File::options().create(true).append(true).open(folder.join(log)).expect("a file");
    let started = command(folder, args).stdout(Stdio::null()).stderr(log).spawn();
    Running(started.expect("it starts"))
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn lazily(at: SocketAddr) -> tonic::transport::Channel {
    Endpoint::from_shared(format!("http://{at}")).expect("a URL").connect_lazy()
}

/// What a newer caller says in each call.
#[expect(clippy::unnecessary_wraps, reason = "an interceptor may refuse")]
fn says_newer(mut request: tonic::Request<()>) -> Result<tonic::Request<()>, Status> {
    let said = request.metadata_mut();
    said.insert("sluice-speaks", MetadataValue::from_static(SPEAKS));
    said.insert("sluice-build", MetadataValue::from_static(BUILD));
    Ok(request)
}

/// A newer process that serves calls. It refuses all: it does not speak our version.
#[derive(Clone)]
struct Newer<const TABLES: bool>;

impl Newer<false> {
    fn serve(at: SocketAddr) -> NewerServer {
        let listener = TcpListener::bind(at).expect("the port was free");
        listener.set_nonblocking(true).expect("a socket");
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            runtime().block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a port");
                let server = Server::builder().add_service(Self).add_service(Newer::<true>);
                let serving = server.serve_with_incoming(TcpListenerStream::new(listener));
                tokio::select! {
                    served = serving => served.expect("it serves"),
                    _ = ended => {}
                }
            });
        });
        NewerServer { end, thread }
    }
}

/// A newer process while it runs.
struct NewerServer {
    end: tokio::sync::oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

impl NewerServer {
    fn end(self) {
        drop(self.end);
        self.thread.join().expect("no panic");
    }
}

impl NamedService for Newer<false> {
    const NAME: &'static str = "sluice.v1.Controller";
}

impl NamedService for Newer<true> {
    const NAME: &'static str = "sluice.v1.Tables";
}

impl<const TABLES: bool> Service<Request<Body>> for Newer<TABLES> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        let mut answer = Status::failed_precondition("in words of a later version").into_http();
        answer.headers_mut().insert("sluice-speaks", HeaderValue::from_static(SPEAKS));
        answer.headers_mut().insert("sluice-build", HeaderValue::from_static(BUILD));
        ready(Ok(answer))
    }
}

/// The metrics at an address.
fn scrape(at: SocketAddr) -> String {
    let mut stream = TcpStream::connect(at).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    answer
}
