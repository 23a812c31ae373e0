//! Large tasks that are written ahead into servers' memory, while each part of a rack is lost and returns.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path as FilePath, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sluice_control::RdmaPlan;
use sluice_net::client::{Outcome, PendingTask, RefusedWhy};
use sluice_net::server::{Server, ServerOptions, ServerReport, ServerStopper};
use sluice_net::worker::{ServerMemory, WorkerReport};
use sluice_net::{Client, NetError};
use sluice_netem::Rates;
use sluice_wire::roce::{Path, Transport, Write, encode_write};
use sluice_wire::tables::{ServerState, TableAnswer, TableOp};
use sluice_wire::{RejectReason, ServerId};

use crate::DEADLINE;
use crate::rack::{ECHO, Echo, NOBODY, Rack, Running, insist, until};

/// A client's outcome when the switch had no room for the task.
const FULL: Outcome = Outcome::Refused(RefusedWhy::Rejected(RejectReason::QueueFull));
/// How long a task takes; long enough that most tasks wait.
const TAKES: Duration = Duration::from_micros(300);

/// A server on its thread; dropping it stops it at once.
struct Memory {
    stopper: ServerStopper,
    at: SocketAddr,
    thread: Option<JoinHandle<Result<ServerReport, NetError>>>,
}

impl Memory {
    fn start(rack: &Rack, folder: &FilePath, change: impl FnOnce(&mut ServerOptions)) -> Self {
        let mut options = ServerOptions::new(&rack.controller(), folder.to_owned()).expect("a legal address");
        options.name = name_of(folder);
        options.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        options.faults = rack.faults(&options.name);
        change(&mut options);
        let server = Server::new(&options).expect("the loopback has free ports");
        let (stopper, at) = (server.stopper(), server.local());
        Self { stopper, at, thread: Some(thread::spawn(|| server.run())) }
    }

    /// Stops the server at once, as kill -9 would.
    fn kill(mut self) -> ServerReport {
        self.stopper.stop();
        self.stopper.stop();
        self.join()
    }

    fn end(mut self) -> ServerReport {
        self.stopper.stop();
        self.join()
    }

    fn join(&mut self) -> ServerReport {
        self.thread.take().expect("joined once").join().expect("no panic").expect("no error")
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stopper.stop();
            self.stopper.stop();
            thread.join().ok();
        }
    }
}

/// The switch's row of a server.
fn server_state(rack: &Rack, server: u16) -> ServerState {
    match rack.table(TableOp::ReadServer(ServerId(server))) {
        TableAnswer::Server(state) => state,
        other => panic!("{other:?}"),
    }
}

/// Sends the next WRITE of the pair from the switch's address, with a key that no region has.
fn forbidden_write(state: &ServerState) {
    let row = state.row.expect("it is registered");
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback has free ports");
    let from = socket.local_addr().expect("it is bound");
    let path = Path::new(from, row.at.into()).expect("one family");
    let write = Write { transport: Transport::Rc, to: row.qpn, psn: state.next, ..Write::default() };
    let mut bytes = [0; 128];
    let length = encode_write(&write, b"nothing good", Some(&path), &mut bytes).expect("it fits");
    socket.send_to(&bytes[..length], SocketAddr::from(row.at)).expect("the loopback takes it");
}

fn name_of(folder: &FilePath) -> String {
    folder.file_name().expect("a folder has a name").to_string_lossy().into_owned()
}

/// A worker that shares the memory in this folder.
fn worker(rack: &Rack, name: &str, echo: &Echo, folder: &FilePath) -> Running {
    let memory = ServerMemory { server: name_of(folder), folder: folder.to_owned() };
    rack.worker_with(name, echo.clone(), |options| options.memory = Some(memory))
}

/// The folders of two servers.
fn folders(of: &tempfile::TempDir) -> [PathBuf; 2] {
    ["one", "two"].map(|name| of.path().join(name))
}

/// The task with this number. Most tasks fit into one packet, some take several, some fit into a queue
/// entry.
fn task(number: u32) -> Vec<u8> {
    let bytes = match number % 8 {
        0 => 8,
        1..=4 => 640,
        5 | 6 => 1_024,
        _ => 5_000,
    };
    number.to_be_bytes().into_iter().cycle().take(bytes).collect()
}

fn submit(client: &Client, numbers: std::ops::Range<u32>) -> Vec<(u32, PendingTask)> {
    let send = |number| (number, client.submit(ECHO, &task(number), DEADLINE).expect("it fits"));
    numbers.map(send).collect()
}

/// Checks that each task is answered according to its own bytes. A refused task is submitted again: on a
/// busy machine repeats of waiting tasks fill the queue, and when a server returns, all its workers may be
/// registering at once.
fn check(client: &Client, pending: Vec<(u32, PendingTask)>) {
    for (number, pending) in pending {
        let bytes = task(number);
        let outcome = insist(client, &bytes, pending, &[FULL, NOBODY]);
        assert!(outcome.done() == Some(&bytes[..]), "{number}: {outcome}");
    }
}

/// Waits until tasks are written ahead.
fn until_written(rack: &Rack, client: &Client) {
    until("the first WRITE", || {
        check(client, submit(client, 0..64));
        rack.counted("written_ahead") > 0
    });
}

#[test]
fn large_tasks_that_wait_are_copied_from_the_memory_that_they_were_written_into() {
    let folder = tempfile::tempdir().expect("there is room");
    let rack = Rack::with_servers(Rates::default(), RdmaPlan::default());
    let servers = folders(&folder);
    let memory = [0, 1].map(|i| Memory::start(&rack, &servers[i], |_| ()));
    until("both servers", || (0..2).all(|server| server_state(&rack, server).row.is_some()));
    let echo = Echo { takes: TAKES, ..Echo::default() };
    let workers = [("a", 0), ("b", 1)].map(|(name, on)| worker(&rack, name, &echo, &servers[on]));
    rack.until_serving(2);
    let client = rack.client("c");
    until_written(&rack, &client);
    (0..3).for_each(|_| check(&client, submit(&client, 0..400)));
    let reports = workers.map(Running::drain);
    let copied: u64 = reports.iter().map(|report: &WorkerReport| report.copied).sum();
    // A server's thread that does not run for a while misses all that waits.
    assert!(copied > 200 && reports.iter().all(|report| report.copied > 0), "{reports:?}");
    for server in memory {
        let report = server.end();
        assert!(report.writes >= copied / 2 && report.refused.is_empty(), "{report:?}");
    }
}

#[test]
fn nothing_is_lost_or_mixed_up_when_worker_server_and_switch_are_killed_under_faults() {
    let folder = tempfile::tempdir().expect("there is room");
    let faults = "loss=0.01,dup=0.01,reorder=0.05,delay=1ms".parse().expect("well written");
    let mut rack = Rack::with_servers(faults, RdmaPlan::default());
    let servers = folders(&folder);
    let [one, two] = [0, 1].map(|i| Memory::start(&rack, &servers[i], |_| ()));
    let echo = Echo { takes: TAKES, ..Echo::default() };
    let victim = worker(&rack, "victim", &echo, &servers[0]);
    let _workers = [("a", 0), ("b", 1), ("c", 1)].map(|(name, on)| worker(&rack, name, &echo, &servers[on]));
    let client = rack.client("c");
    until_written(&rack, &client);

    let first = submit(&client, 0..400);
    victim.kill();
    let second = submit(&client, 400..800);
    let at = one.at;
    one.kill();
    let third = submit(&client, 800..1_200);
    let _one = Memory::start(&rack, &servers[0], |options| options.listen = at);
    let _victim = worker(&rack, "victim", &echo, &servers[0]);
    let fourth = submit(&client, 1_200..1_600);
    rack.restart();
    let fifth = submit(&client, 1_600..2_000);
    for pending in [first, second, third, fourth, fifth] {
        check(&client, pending);
    }
    until_written(&rack, &client);
    let report = client.close().expect("no error");
    assert_eq!((report.tasks.unknown, report.outstanding), (0, 0));
    assert!(two.end().writes > 0);
}

#[test]
fn a_ring_that_is_far_too_short_costs_round_trips_and_never_a_wrong_byte() {
    let folder = tempfile::tempdir().expect("there is room");
    let rdma = RdmaPlan { tiny_rings: true, ..RdmaPlan::default() };
    let rack = Rack::with_servers(Rates::default(), rdma);
    let servers = folders(&folder);
    let _memory = Memory::start(&rack, &servers[0], |options| options.slots = Some(4));
    let echo = Echo { takes: TAKES, ..Echo::default() };
    let workers = ["a", "b"].map(|name| worker(&rack, name, &echo, &servers[0]));
    let client = rack.client("c");
    until_written(&rack, &client);
    check(&client, submit(&client, 0..600));
    let missed: u64 = workers.map(Running::drain).iter().map(|report| report.missed).sum();
    assert!(missed > 100, "{missed} were written over");
}

#[test]
fn a_ring_shorter_than_its_slice_needs_is_refused_with_the_rule() {
    let folder = tempfile::tempdir().expect("there is room");
    let rack = Rack::with_servers(Rates::default(), RdmaPlan::default());
    let [place, _] = folders(&folder);
    let mut options = ServerOptions::new(&rack.controller(), place).expect("a legal address");
    options.listen = SocketAddr::from(([127, 0, 0, 1], 0));
    options.slots = Some(64);
    let refused = Server::new(&options).expect("the loopback has free ports").run();
    let why = refused.expect_err("64 slots are too few").to_string();
    assert!(why.contains("64 slots") && why.contains("needs 8192"), "{why}");
}

#[test]
fn a_worker_whose_server_is_elsewhere_asks_its_clients_for_the_bytes() {
    let folder = tempfile::tempdir().expect("there is room");
    let rack = Rack::with_servers(Rates::default(), RdmaPlan::default());
    let servers = folders(&folder);
    let _memory = Memory::start(&rack, &servers[0], |_| ());
    let echo = Echo { takes: TAKES, ..Echo::default() };
    let _beside = worker(&rack, "beside", &echo, &servers[0]);
    let elsewhere = rack.worker("elsewhere", echo.clone());
    rack.until_serving(2);
    let client = rack.client("c");
    until_written(&rack, &client);
    check(&client, submit(&client, 0..300));
    let report = elsewhere.drain();
    assert!(report.finished > 50 && report.copied == 0 && report.missed > 20, "{report:?}");
}

#[test]
fn a_failed_queue_pair_is_connected_anew_and_its_workers_come_in_anew() {
    let folder = tempfile::tempdir().expect("there is room");
    let rack = Rack::with_servers(Rates::default(), RdmaPlan::default());
    let servers = folders(&folder);
    let pcap = folder.path().join("roce.pcap");
    let memory = Memory::start(&rack, &servers[0], |options| {
        options.reliable = true;
        options.pcap = Some(pcap.clone());
    });
    let echo = Echo { takes: TAKES, ..Echo::default() };
    let _workers = ["a", "b"].map(|name| worker(&rack, name, &echo, &servers[0]));
    let client = rack.client("c");
    until_written(&rack, &client);
    let before = server_state(&rack, 0);
    forbidden_write(&before);
    until("the new pair", || server_state(&rack, 0).row.map(|row| row.qpn) != before.row.map(|row| row.qpn));
    until_written(&rack, &client);
    check(&client, submit(&client, 0..400));
    let before = rack.counted("written_ahead");
    until("WRITEs over the new pair", || {
        check(&client, submit(&client, 0..64));
        rack.counted("written_ahead") > before
    });
    let report = memory.end();
    assert_eq!((report.reconnected, report.refused["wrong_key"]), (1, 1));
    let captured = std::fs::metadata(&pcap).expect("it was written").len();
    assert!(captured > report.written_bytes, "each packet is in the capture");
}
