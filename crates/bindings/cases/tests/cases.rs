//! The conformance cases in Rust, against a live rack with loss: blocking, as a future, with a callback and
//! at a completion queue.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use sluice_cases::{CaseWords, ConformanceCase, cases};
use sluice_net::client::{
    Completed, CompletionQueue, EndedTask, Outcome, PendingTask, RequiredLabels, SubmitError, TaskSpec,
};
use sluice_net::{Client, ClientOptions, TaskType};
use tempfile::TempDir;

/// Long enough for a busy machine.
const LONG: Duration = Duration::from_mins(1);

#[test]
fn each_case_holds_in_each_way_that_a_task_can_be_submitted() {
    let (mut rack, mut client) = (None, None);
    for case in cases() {
        let what = &case.name;
        match (case.act.word.as_str(), &client) {
            ("rack", _) => {
                drop(client.take());
                let started = rack.insert(Rack::start(case.act.text("faults").unwrap_or_default()));
                client = Some(started.client_of_workers());
                assert_eq!(case.expected.word, "ready", "{what}");
            }
            ("submit", Some(client)) => WAYS.iter().for_each(|way| submit(&case, client, *way)),
            ("submit", None) => {
                assert_eq!(case.expected.text("is"), Some("closed"), "{what}: `close` takes the client");
            }
            ("burst", Some(client)) => burst(&case, client, rack.as_mut().expect("a client has one")),
            ("close", _) => {
                let closed = client.take().expect("it is open").close();
                assert!(case.expected.word == "closed" && closed.is_ok(), "{what}: {closed:?}");
            }
            (act, _) => panic!("{what}: {act} is unknown"),
        }
    }
}

/// A switch and two workers, as processes.
struct Rack {
    _state: TempDir,
    switch: Child,
    controller: String,
    workers: Vec<Child>,
}

impl Rack {
    /// A rack whose switch's socket has these faults.
    fn start(faults: &str) -> Self {
        let rack = Path::new(env!("CARGO_MANIFEST_DIR")).join("rack.toml");
        let state = tempfile::tempdir().expect("a folder");
        let mut switch = Command::new(sluice());
        switch
            .arg("switch")
            .arg(rack)
            .arg("--state")
            .arg(state.path())
            .args(["--json", "--quiet", "--faults", faults]);
        switch.args(["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut switch = switch.spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(switch.stdout.take().expect("piped"))
            .read_line(&mut line)
            .expect("it says where it is");
        let said: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}"));
        let controller = said["control"].as_str().expect("an address").to_owned();
        let mut rack = Self { _state: state, switch, controller, workers: Vec::new() };
        (0..2).for_each(|_| rack.start_worker());
        rack
    }

    fn start_worker(&mut self) {
        let mut worker = Command::new(beside("examples/cases_service"));
        let worker = worker.args(["--controller", &self.controller, "--quiet"]).spawn().expect("it starts");
        self.workers.push(worker);
    }

    /// A client, once all workers have answered it.
    fn client_of_workers(&self) -> Client {
        let options =
            ClientOptions { patience: LONG, ..ClientOptions::new(&self.controller).expect("an address") };
        let client = Client::connect(&options).expect("there is a rack");
        let mut silent: BTreeSet<u32> = self.workers.iter().map(Child::id).collect();
        for _ in 0..30_000 {
            if let Some(worker) = worker_id(&client) {
                silent.remove(&worker.as_raw_pid().cast_unsigned());
            }
            if silent.is_empty() {
                return client;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("not all workers serve: {silent:?}");
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        for process in self.workers.iter_mut().chain([&mut self.switch]) {
            process.kill().ok();
            process.wait().ok();
        }
    }
}

/// A program of this build.
fn beside(path: &str) -> PathBuf {
    let test = std::env::current_exe().expect("Linux knows it");
    test.parent().and_then(Path::parent).expect("it is in `deps`").join(path)
}

fn sluice() -> PathBuf {
    let program = std::env::var_os("SLUICE").map_or_else(|| beside("sluice"), PathBuf::from);
    let what = program.display();
    assert!(
        program.exists(),
        "there is no {what}: cargo build --profile test -p sluice-cli, or name one with SLUICE"
    );
    program
}

/// What came of a submission, in the words of the cases.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Reply(Vec<u8>),
    Failed(Vec<u8>),
    Refused(&'static str),
    Unknown(&'static str),
    Error(&'static str),
}

impl From<EndedTask> for End {
    fn from(ended: EndedTask) -> Self {
        match ended.outcome {
            Outcome::Reply(reply) if reply.failed => Self::Failed(reply.bytes),
            Outcome::Reply(reply) => Self::Reply(reply.bytes),
            Outcome::Refused(why) => Self::Refused(why.word()),
            Outcome::Unknown(why) => Self::Unknown(why.word()),
        }
    }
}

impl From<SubmitError> for End {
    fn from(error: SubmitError) -> Self {
        Self::Error(error.word())
    }
}

/// A way to submit a task and to wait for its end.
type Way = fn(&Client, TaskSpec, &[u8], Duration) -> Result<EndedTask, SubmitError>;

const WAYS: [Way; 4] = [blocking, as_a_future, with_a_callback, at_a_queue];

fn blocking(
    client: &Client,
    spec: TaskSpec,
    bytes: &[u8],
    deadline: Duration,
) -> Result<EndedTask, SubmitError> {
    client.submit(spec, bytes, deadline).map(PendingTask::wait)
}

fn as_a_future(
    client: &Client,
    spec: TaskSpec,
    bytes: &[u8],
    deadline: Duration,
) -> Result<EndedTask, SubmitError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it starts");
    runtime.block_on(async { Ok(client.submit_async(spec, bytes, deadline).await?.await) })
}

fn with_a_callback(
    client: &Client,
    spec: TaskSpec,
    bytes: &[u8],
    deadline: Duration,
) -> Result<EndedTask, SubmitError> {
    let (tell, told) = mpsc::channel();
    client.submit_with(spec, bytes, deadline, move |ended| drop(tell.send(ended)))?;
    Ok(told.recv().expect("each task ends"))
}

fn at_a_queue(
    client: &Client,
    spec: TaskSpec,
    bytes: &[u8],
    deadline: Duration,
) -> Result<EndedTask, SubmitError> {
    let (queue, mut into) = (CompletionQueue::new(), Vec::new());
    client.submit_to(&queue, 7, spec, bytes, deadline)?;
    queue.wait(&mut into, 1, None);
    let Completed { tag, ended } = into.pop().expect("it waited for one");
    assert_eq!(tag, 7);
    Ok(ended)
}

fn spec(act: &CaseWords) -> TaskSpec {
    let of = TaskType(act.number("type").expect("a task has a type") as u16);
    let budget = act.number("budget_ns").map(Duration::from_nanos);
    TaskSpec { budget, needs: RequiredLabels::of(act.text("label")), ..of.into() }
}

fn deadline(act: &CaseWords) -> Duration {
    act.number("deadline_ns").map_or(LONG, Duration::from_nanos)
}

fn submit(case: &ConformanceCase, client: &Client, way: Way) {
    let end = way(client, spec(&case.act), &case.act.task(), deadline(&case.act));
    let end = end.map_or_else(End::from, End::from);
    let ConformanceCase { name, expected, .. } = case;
    let holds = match &end {
        End::Reply(bytes) => {
            let is_so_long = expected.number("bytes").is_none_or(|count| bytes.len() as u64 == count);
            expected.word == "reply" && is_so_long && expected.bytes("text").is_none_or(|text| bytes == text)
        }
        End::Failed(text) => {
            let has = expected.bytes("has").unwrap_or_default();
            expected.word == "failed" && (has.is_empty() || text.windows(has.len()).any(|part| part == has))
        }
        End::Refused(why) => expected.word == "refused" && expected.text("why") == Some(why),
        End::Unknown(why) => expected.word == "unknown" && expected.text("why") == Some(why),
        End::Error(is) => expected.word == "error" && expected.text("is") == Some(is),
    };
    assert!(holds, "{name}: {expected:?} was expected, and this came: {end:?}");
}

/// Many tasks at one queue; in the middle a worker is killed if the case wants that.
fn burst(case: &ConformanceCase, client: &Client, rack: &mut Rack) {
    let ConformanceCase { name, act, expected } = case;
    let count = act.number("count").expect("how many");
    let dies = act.text("kill").map(|_| worker_id(client).expect("a worker says who it is"));
    let queue = CompletionQueue::new();
    let mut ends = vec![0; count as usize];
    let (mut replies, mut others, mut ended) = (0, BTreeMap::new(), Vec::new());
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for tag in 0..count {
                let bytes = act.task_of_burst(tag);
                client.submit_to(&queue, tag, spec(act), &bytes, deadline(act)).expect("the client is open");
            }
        });
        let mut kills = dies;
        for number in 0..count {
            if let Some(worker) = kills.take_if(|_| number == count / 3) {
                kill_process(worker, Signal::KILL).expect("it runs");
                rack.start_worker();
            }
            queue.wait(&mut ended, 1, None);
            let Completed { tag, ended } = ended.pop().expect("it waited for one");
            ends[tag as usize] += 1;
            let right: Vec<u8> = act.task_of_burst(tag).into_iter().rev().collect();
            match End::from(ended) {
                End::Reply(bytes) => {
                    assert_eq!(bytes, right, "{name}: task {tag}");
                    replies += 1;
                }
                End::Failed(text) => panic!("{name}: task {tag} failed: {text:?}"),
                other => *others.entry(format!("{other:?}")).or_insert(0) += 1,
            }
        }
    });
    assert!(ends.iter().all(|times| *times == 1), "{name}: each task ends once");
    assert_eq!(expected.number("count"), Some(count), "{name}");
    let least = expected.number("replies_least").expect("how many at least");
    assert!(replies >= least, "{name}: {replies} replies, {others:?}");
}

/// The process of a worker, if one answers.
fn worker_id(client: &Client) -> Option<Pid> {
    let ended = client.submit(TaskType(14), b"", LONG).expect("it is open").wait();
    let id = ended.outcome.done().and_then(|id| std::str::from_utf8(id).ok()?.parse().ok());
    id.and_then(Pid::from_raw)
}
