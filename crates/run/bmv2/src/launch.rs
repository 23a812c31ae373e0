//! Starts BMv2 with a compiled program, or attaches to one that runs, and connects with its servers.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use crate::error::Bmv2Error;
use crate::links::{CONTROL_PORT, LinkPorts};
use crate::process::{Process, QUIET};
use crate::runtime::{P4Names, P4Runtime, P4Session, Runtime, Thrift};
use crate::tools::tool;

/// Which server of the switch takes tables, groups and counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuntimeApi {
    /// BMv2's own.
    #[default]
    Thrift,
    /// The one that switches of all makers have.
    P4Runtime,
}

impl RuntimeApi {
    /// The switch that has this server.
    ///
    /// # Errors
    /// [`Bmv2Error::NoTool`] if it is nowhere.
    pub fn switch(self) -> Result<PathBuf, Bmv2Error> {
        tool(match self {
            Self::Thrift => "simple_switch",
            Self::P4Runtime => "simple_switch_grpc",
        })
    }
}

/// What the compiler wrote of a program.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) program: PathBuf,
    /// The names and numbers of its tables, in binary.
    pub(crate) p4info: PathBuf,
}

impl Compiled {
    /// The files of a program in a folder.
    pub(crate) fn at(folder: &Path, name: &str) -> Self {
        let file = |ending: &str| folder.join(format!("{name}.{ending}"));
        Self { program: file("json"), p4info: file("p4info.bin") }
    }

    /// The program's P4Info, as it is and as names.
    fn p4info(&self) -> Result<(Vec<u8>, P4Names), Bmv2Error> {
        let p4info = std::fs::read(&self.p4info).map_err(Bmv2Error::system("read the program's P4Info"))?;
        let names = P4Names::read(&p4info)?;
        Ok((p4info, names))
    }

    /// Gives the program to a switch, which empties it.
    fn commit(&self, session: &mut P4Session, p4info: Vec<u8>) -> Result<(), Bmv2Error> {
        let program = std::fs::read(&self.program).map_err(Bmv2Error::system("read the compiled program"))?;
        session.commit(p4info, program)
    }

    /// Compiles a program with these flags.
    pub(crate) fn compile(
        &self,
        compiler: &Path,
        program: &Path,
        flags: impl Iterator<Item = String>,
    ) -> Result<(), Bmv2Error> {
        let mut command = Command::new(compiler);
        command.args(["--std", "p4-16"]).args(flags).arg("--p4runtime-files").arg(&self.p4info);
        let ran = command.arg("-o").arg(&self.program).arg(program).output();
        let ran = ran.map_err(Bmv2Error::system("run p4c-bm2-ss"))?;
        if ran.status.success() {
            return Ok(());
        }
        let why = String::from_utf8_lossy(&ran.stderr).into_owned();
        Err(Bmv2Error::Compile { program: program.to_owned(), why })
    }
}

/// Starts a switch, which has its links as arguments already, and gives it the program. `device` is its
/// number.
pub(crate) fn launch(
    api: RuntimeApi,
    command: &mut Command,
    device: u32,
    compiled: &Compiled,
) -> Result<(Process, Runtime), Bmv2Error> {
    let (thrift, p4runtime) = (free_port()?, free_port()?);
    command.args(QUIET).args([
        "--device-id",
        &device.to_string(),
        "--thrift-port",
        &thrift.port().to_string(),
    ]);
    match api {
        RuntimeApi::Thrift => command.arg(&compiled.program),
        RuntimeApi::P4Runtime => {
            command.args(["--no-p4", "--", "--grpc-server-addr", &p4runtime.to_string()]);
            command.args(["--cpu-port", &CONTROL_PORT.to_string()])
        }
    };
    let mut process = Process::start(command)?;
    let connected = match api {
        RuntimeApi::Thrift => Ok(None),
        RuntimeApi::P4Runtime => tables(p4runtime, device, compiled, || process.is_alive()).map(Some),
    };
    let connected = connected
        .and_then(|tables| Ok(Runtime::new(Thrift::connect(thrift, || process.is_alive())?, tables)));
    let runtime = connected.map_err(|why| process.reason(why))?;
    Ok((process, runtime))
}

/// Becomes the controller of a switch that has just started, and gives it the program.
fn tables(
    at: SocketAddr,
    device: u32,
    compiled: &Compiled,
    is_alive: impl FnMut() -> bool,
) -> Result<P4Runtime, Bmv2Error> {
    let (p4info, names) = compiled.p4info()?;
    let mut session = P4Session::connect(at, device.into(), is_alive)?;
    session.lead(election_id())?;
    compiled.commit(&mut session, p4info)?;
    P4Runtime::new(session, names)
}

/// Which switch a driver manages.
#[derive(Clone, Copy, Debug)]
pub enum SwitchFrom {
    /// One that is started, and ends with the driver.
    Start(RuntimeApi),
    /// One that runs already, and goes on without the driver.
    Running(Bmv2Servers),
}

/// The servers of a switch that runs already.
#[derive(Clone, Copy, Debug)]
pub struct Bmv2Servers {
    /// Where P4Runtime's server is.
    pub p4runtime: SocketAddr,
    /// Where BMv2's own is.
    pub thrift: SocketAddr,
    /// The switch's number.
    pub device: u32,
}

/// Takes over a switch that runs this program already, or none, and whose ports are these links: empties
/// it, with the groups of a driver before this one. Nothing is changed unless all is as it should be.
pub(crate) fn attach(
    running: &Bmv2Servers,
    compiled: &Compiled,
    groups: u32,
    links: &LinkPorts,
) -> Result<Runtime, Bmv2Error> {
    let (p4info, names) = compiled.p4info()?;
    let mut session = P4Session::connect(running.p4runtime, running.device.into(), || false)?;
    let theirs = session.p4info()?;
    if let Some(theirs) = &theirs
        && let Some(why) = names.difference(&P4Names::read(theirs)?)
    {
        return Err(Bmv2Error::OtherProgram(why));
    }
    let mut thrift = Thrift::connect(running.thrift, || false)?;
    links.are_opened(&thrift.links()?)?;
    session.lead(election_id())?;
    if theirs.is_some() {
        session.remove_groups(groups)?;
    }
    compiled.commit(&mut session, p4info)?;
    Ok(Runtime::new(thrift, Some(P4Runtime::new(session, names)?)))
}

/// A later controller has a higher one, and all are above the small numbers of tools.
fn election_id() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_millis() as u64
}

/// A loopback address on which nobody listens now.
fn free_port() -> Result<SocketAddr, Bmv2Error> {
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    bound.map_err(Bmv2Error::system("find a free port"))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpStream;
    use std::process::Stdio;

    use sluice_switch::Config;
    use sluice_wire::Epoch;

    use super::*;
    use crate::sources::compiled;

    #[test]
    fn groups_of_a_driver_before_this_one_send_no_copies() {
        let tools = ["p4c-bm2-ss", "simple_switch_grpc", "simple_switch_CLI"];
        if let Some(why) = tools.into_iter().find_map(|name| tool(name).err()) {
            eprintln!("skipped: {why}");
            return;
        }
        let size = Config::full(Epoch(1));
        let config = Config { workers: 2, clients: 2, slices: 2, types: 2, servers: 2, ..size };
        let folder = tempfile::tempdir().expect("a folder");
        let compiled = compiled(folder.path(), &config, 7_000).unwrap_or_else(|why| panic!("{why}"));
        let running = Bmv2Servers {
            p4runtime: free_port().expect("a port"),
            thrift: free_port().expect("a port"),
            device: 1,
        };
        let mut command = Command::new(RuntimeApi::P4Runtime.switch().expect("it is there"));
        command.args(QUIET).args(["--no-p4", "--device-id", "1", "--thrift-port"]);
        command.arg(running.thrift.port().to_string()).args(["--", "--grpc-server-addr"]);
        let _process = Process::start(command.arg(running.p4runtime.to_string())).expect("it starts");
        while TcpStream::connect(running.p4runtime).and(TcpStream::connect(running.thrift)).is_err() {
            std::thread::yield_now();
        }
        let links = LinkPorts::new(&[]).expect("none");
        for turn in 0..3 {
            let attached = attach(&running, &compiled, 2, &links);
            let mut runtime = attached.unwrap_or_else(|why| panic!("turn {turn}: {why}"));
            runtime.make_groups(2, 2).unwrap_or_else(|why| panic!("turn {turn}: {why}"));
            for (member, link) in [(0, Some(1)), (1, Some(2)), (1, None), (1, Some(3))] {
                runtime.lead_copies(member, link).unwrap_or_else(|why| panic!("turn {turn}: {why}"));
            }
            assert_eq!(nodes(&running), 4, "two groups of two, in turn {turn}");
        }
    }

    /// How many nodes the switch's groups have, as its own tool tells it.
    fn nodes(running: &Bmv2Servers) -> usize {
        let mut command = Command::new(tool("simple_switch_CLI").expect("it is there"));
        command.args(["--thrift-port", &running.thrift.port().to_string()]);
        let told = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut told = told.expect("it starts");
        told.stdin.take().expect("piped").write_all(b"mc_dump\n").expect("it reads");
        let output = told.wait_with_output().expect("it ends");
        String::from_utf8_lossy(&output.stdout).matches("L1h=").count()
    }
}
