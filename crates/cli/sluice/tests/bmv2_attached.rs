//! A switch's process that attaches to a BMv2 which runs already. These tests need root, `p4c-bm2-ss` and
//! `simple_switch_grpc` (on the path, or in the folders of `P4_TOOLS`); without them they print so and do
//! nothing.

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use common::{Running, SMALL, command, sluice, stderr};
use sluice_bmv2::{RuntimeApi, tool};
use sluice_ports::free_address;
use tempfile::TempDir;

#[test]
fn a_switch_that_runs_already_is_taken_over_and_goes_on_without_its_controller() {
    let Some(bmv2) = RunningBmv2::start("1@lo") else { return };
    let folder = folder_with("");
    let (first, _) = bmv2.attached(folder.path());
    first.ends_well();
    // Killed, so it leaves all that it wrote.
    let (mut killed, _) = bmv2.attached(folder.path());
    killed.0.kill().expect("it is ours");
    killed.0.wait().expect("it ends");
    let (third, _) = bmv2.attached(folder.path());
    third.ends_well();
    assert!(TcpStream::connect(bmv2.p4runtime).is_ok(), "it goes on");
}

#[test]
fn a_switch_of_other_sizes_is_left_alone() {
    let Some(bmv2) = RunningBmv2::start("1@lo") else { return };
    let folder = folder_with("tasks_per_slice = 1024");
    let (running, _) = bmv2.attached(folder.path());
    let other = folder_with("tasks_per_slice = 2048");
    let said = bmv2.refused(other.path());
    assert!(said.contains("other sizes") && said.contains("and this plan's"), "{said}");
    running.ends_well();
}

#[test]
fn where_nobody_listens_and_where_ports_are_others_nothing_begins() {
    let Some(mut bmv2) = RunningBmv2::start("3@lo") else { return };
    let folder = folder_with("");
    let said = bmv2.refused(folder.path());
    assert!(said.contains("no port 1 on lo"), "{said}");
    let thrift = std::mem::replace(&mut bmv2.thrift, free_address());
    let said = bmv2.refused(folder.path());
    assert!(said.contains(&format!("does not listen on {}", bmv2.thrift)), "{said}");
    (bmv2.thrift, bmv2.p4runtime) = (thrift, free_address());
    let said = bmv2.refused(folder.path());
    assert!(said.contains("no P4Runtime server listens on"), "{said}");
}

#[test]
fn registers_that_cannot_be_read_are_told() {
    let Some(mut bmv2) = RunningBmv2::start("1@lo") else { return };
    let Some(without_program) = RunningBmv2::start("1@lo") else { return };
    bmv2.thrift = without_program.thrift;
    let said = bmv2.refused(folder_with("").path());
    assert!(said.contains("bm_register_read of SwitchIngress.program.sources.seen"), "{said}");
}

#[test]
fn a_switch_without_a_port_for_its_processor_is_told() {
    let Some(bmv2) = RunningBmv2::start_with("1@lo", &[]) else { return };
    let said = bmv2.refused(folder_with("").path());
    assert!(said.contains("passes no packet of its control port"), "{said}");
}

#[test]
fn a_switch_that_dies_and_another_controller_end_the_process_with_one_line() {
    let Some(mut bmv2) = RunningBmv2::start("1@lo") else { return };
    let folders = [folder_with(""), folder_with("")];
    let [first, second] = folders.each_ref().map(|folder| bmv2.attached(folder.path()));
    let last = last_words(first);
    assert!(last.contains("another controller has taken BMv2 over"), "{last}");
    bmv2.process.0.kill().expect("it is ours");
    let last = last_words(second);
    assert!(last.contains("P4Runtime") && last.starts_with("sluice: BMv2 "), "{last}");
}

/// A BMv2 without a program.
struct RunningBmv2 {
    process: Running,
    p4runtime: SocketAddr,
    thrift: SocketAddr,
}

impl RunningBmv2 {
    /// One with this link, and a port for its processor; `None` if this machine cannot.
    fn start(link: &str) -> Option<Self> {
        Self::start_with(link, &["--cpu-port", "510"])
    }

    fn start_with(link: &str, more: &[&str]) -> Option<Self> {
        let switch = switch()?;
        let (p4runtime, thrift) = (free_address(), free_address());
        let thrift_port = thrift.port().to_string();
        let mut command = Command::new(switch);
        command.args(["--no-p4", "--device-id", "1", "--log-level", "off", "-i", link]);
        command.args(["--thrift-port", &thrift_port, "--", "--grpc-server-addr", &p4runtime.to_string()]);
        command.args(more);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("BMv2 starts");
        let process = Running(process);
        while TcpStream::connect(p4runtime).and(TcpStream::connect(thrift)).is_err() {
            thread::sleep(Duration::from_millis(5));
        }
        Some(Self { process, p4runtime, thrift })
    }

    fn args(&self) -> Vec<String> {
        let args = ["switch", "plan.toml", "--io", "bmv2", "--interface", "lo", "--listen", "127.0.0.1:0"];
        let servers = [("--p4runtime", self.p4runtime), ("--thrift", self.thrift)];
        let servers = servers.into_iter().flat_map(|(flag, at)| [flag.to_owned(), at.to_string()]);
        args.into_iter().map(str::to_owned).chain(servers).collect()
    }

    /// A switch's process that has attached, and what it says on stderr.
    fn attached(&self, folder: &Path) -> (Running, impl std::io::Read + use<>) {
        let args = self.args();
        let args: Vec<&str> = args.iter().map(String::as_str).chain(["--json"]).collect();
        let started = command(folder, &args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut process = started.expect("sluice starts");
        let (out, err) = (process.stdout.take().expect("piped"), process.stderr.take().expect("piped"));
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).expect("its addresses");
        let mut running = Running(process);
        assert!(line.starts_with('{'), "{line}{}", last_words((running, err)));
        assert!(running.runs());
        (running, err)
    }

    /// What a process says that cannot attach.
    fn refused(&self, folder: &Path) -> String {
        let args = self.args();
        let output = sluice(folder, &args.iter().map(String::as_str).collect::<Vec<_>>());
        let said = stderr(&output);
        assert!(!output.status.success() && said.lines().count() == 1, "{said}");
        said
    }
}

/// The last line of a process that ends by itself.
fn last_words((mut running, mut err): (Running, impl std::io::Read)) -> String {
    let mut said = String::new();
    err.read_to_string(&mut said).expect("text");
    assert!(!running.0.wait().expect("it ends").success(), "{said}");
    said.lines().last().unwrap_or_default().to_owned()
}

/// A plan with two servers, and this in its `[switch]`.
fn folder_with(settings: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = format!("{SMALL}[rdma]\nservers = 2\n[switch]\ncontrol = \"127.0.0.1:0\"\n{settings}\n");
    fs::write(folder.path().join("plan.toml"), plan).expect("written");
    folder
}

/// The switch, if this machine can run one on links; says what is missing.
fn switch() -> Option<PathBuf> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let found = tool("p4c-bm2-ss").and(RuntimeApi::P4Runtime.switch()).map_err(|why| why.to_string());
    let found = if is_root { found } else { Err("links take root".to_owned()) };
    found.inspect_err(|why| eprintln!("skipped: {why}")).ok()
}
