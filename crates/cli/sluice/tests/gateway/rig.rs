//! A switch, the writer and two readers of a store, a worker of words, and a gateway, on free ports.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::common::{Running, command, example, hold_to_schema, sluice};

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// The example's rack.
pub(crate) const PLAN: &str = include_str!("../../../../run/gateway/examples/kv.toml");

/// The rack.
pub(crate) struct KvRack {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) controller: String,
    pub(crate) workers: Vec<Running>,
    _switch: Running,
}

impl KvRack {
    /// A switch, the writer and two readers of a store, and a worker of words.
    pub(crate) fn start() -> Self {
        let mut rack = Self::without_workers();
        rack.start_store("writer");
        // Readers wait for a store for ten seconds only.
        rack.wait_for_workers(1);
        rack.start_store("reader");
        rack.start_store("reader");
        let mut words = Command::new(example("reverse_service"));
        words.args(["--controller", &rack.controller, "--slice", "words", "--quiet"]);
        rack.workers.push(Running(words.stderr(Stdio::null()).spawn().expect("it starts")));
        rack.wait_for_workers(4);
        rack
    }

    pub(crate) fn without_workers() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("kv.toml"), PLAN).expect("written");
        let anywhere = "127.0.0.1:0";
        let args = ["switch", "kv.toml", "--json", "--quiet", "--listen", anywhere, "--control", anywhere];
        let (switch, said) = listening(folder.path(), &args);
        let controller = said["control"].as_str().expect("an address").to_owned();
        Self { folder, controller, workers: Vec::new(), _switch: switch }
    }

    /// Starts a worker of the store, its writer or a reader.
    pub(crate) fn start_store(&mut self, role: &str) {
        let slice = if role == "writer" { "kv-write" } else { "kv-read" };
        let args = ["worker", "kv", "--role", role, "--db", "store", "--slice", slice, "--quiet"];
        let args = [&args[..], &["--controller", &self.controller]].concat();
        let mut store = command(self.folder.path(), &args);
        self.workers.push(Running(store.stderr(log(self.folder.path())).spawn().expect("it starts")));
    }

    /// Waits until so many workers take tasks.
    pub(crate) fn wait_for_workers(&self, count: usize) {
        let until = Instant::now() + PATIENCE;
        loop {
            let asked = sluice(self.folder.path(), &["status", "--json", "--controller", &self.controller]);
            let said: Value = serde_json::from_slice(&asked.stdout).unwrap_or_default();
            let workers = said["workers"].as_array().into_iter().flatten();
            if workers.filter(|worker| worker["phase"] == "open").count() == count {
                return;
            }
            assert!(Instant::now() < until, "{said}\n{}", logged(self.folder.path()));
        }
    }

    /// A gateway before it, and where it says that it listens.
    pub(crate) fn gateway(&self, flags: &[&str]) -> (Running, Value) {
        let args = ["gateway", "--controller", &self.controller, "--json", "--quiet"];
        listening(self.folder.path(), &[&args[..], flags].concat())
    }

    /// A gateway that serves RESP, and its address.
    pub(crate) fn resp(&self, flags: &[&str]) -> (Running, String) {
        let (running, said) = self.gateway(&[&["--resp", "127.0.0.1:0"], flags].concat());
        (running, text(&said, "resp"))
    }
}

/// A text of what a process said.
pub(crate) fn text(said: &Value, key: &str) -> String {
    said[key].as_str().unwrap_or_else(|| panic!("{key}: {said}")).to_owned()
}

/// The file into which processes write what they say.
fn log(folder: &Path) -> fs::File {
    fs::File::options().append(true).create(true).open(folder.join("log")).expect("a log")
}

/// What processes wrote there.
fn logged(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// Starts a process that prints JSON where it listens.
pub(crate) fn listening(folder: &Path, args: &[&str]) -> (Running, Value) {
    let mut child =
        command(folder, args).stdout(Stdio::piped()).stderr(log(folder)).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("it prints");
    let said: Value =
        serde_json::from_str(&line).unwrap_or_else(|why| panic!("{why}: {line}\n{}", logged(folder)));
    hold_to_schema(&said);
    (Running(child), said)
}

/// A connection that waits for answers, but not for ever.
pub(crate) fn connect(at: &str) -> TcpStream {
    let stream = TcpStream::connect(at).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.set_nodelay(true).expect("an option");
    stream
}

/// Sends all, closes this end, and returns all that comes.
pub(crate) fn exchange(at: &str, bytes: &[u8]) -> String {
    let mut stream = connect(at);
    // Who is refused may be answered, and sent away, before all is taken.
    stream.write_all(bytes).and_then(|()| stream.shutdown(std::net::Shutdown::Write)).ok();
    let mut came = Vec::new();
    stream.read_to_end(&mut came).expect("it ends");
    String::from_utf8_lossy(&came).into_owned()
}

/// Sends the same again until the answer is so: a busy machine may let a short deadline pass.
pub(crate) fn exchange_until(at: &str, bytes: &[u8], is_so: impl Fn(&str) -> bool) {
    let until = Instant::now() + PATIENCE;
    loop {
        let came = exchange(at, bytes);
        if is_so(&came) {
            return;
        }
        assert!(Instant::now() < until, "{}: {came}", bytes.escape_ascii());
    }
}

/// Sends all, and returns all that comes until the other end closes.
fn fetch(at: &str, bytes: &[u8]) -> String {
    let mut stream = connect(at);
    stream.write_all(bytes).expect("it is taken");
    let mut came = String::new();
    stream.read_to_string(&mut came).expect("it ends");
    came
}

/// Reads so many bytes.
pub(crate) fn read(stream: &mut TcpStream, count: usize) -> String {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).expect("they come");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a program is here; the test says so if not.
pub(crate) fn has(program: &str) -> bool {
    let there = Command::new(program).arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: there is no {program}");
    }
    there
}

/// What a gateway counted, from its metrics.
pub(crate) fn counted(metrics: &str, name: &str, labels: &[&str]) -> f64 {
    let page = fetch(metrics, b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n");
    let is_it = |line: &&str| line.starts_with(name) && labels.iter().all(|label| line.contains(label));
    let lines: Vec<&str> = page.lines().filter(is_it).collect();
    assert!(!lines.is_empty(), "no {name} with {labels:?} in\n{page}");
    lines.iter().filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}
