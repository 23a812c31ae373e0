//! What can go wrong with the outside world, and what the caller can do about it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetError {
    /// The address is taken, or not one of this machine's: choose another.
    #[error("cannot listen on {at}: {why}; choose a free port, or 0 to let the kernel choose")]
    Bind {
        /// The address asked for.
        at: SocketAddr,
        /// The kernel's reason.
        why: io::Error,
    },
    /// The socket or its waker stopped working: give up on it.
    #[error("{what} failed on a UDP socket: {why}; end this program and start it again")]
    Socket {
        /// The call that failed.
        what: &'static str,
        /// The kernel's reason.
        why: io::Error,
    },
    /// The text does not say which faults to inject: correct it.
    #[error("faults `{text}`: {why}; write them as loss=0.01,dup=0.01,reorder=0.05,delay=2ms")]
    Faults {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The thread could not be pinned: choose another core, or none.
    #[error("cannot pin a thread to core {core}: {why}; this process may use cores 0 to {last}")]
    Pin {
        /// The core asked for.
        core: usize,
        /// The last core that this process may expect.
        last: usize,
        /// The kernel's reason.
        why: io::Error,
    },
    /// This build has no XDP program: build it again with a compiler for it.
    #[error(
        "this sluice was built without its XDP program: apt-get install clang-14 libbpf-dev linux-libc-dev, then cargo clean -p sluice-net, and build it again"
    )]
    XdpNotBuilt,
    /// This user may not load programs: give it the capabilities.
    #[error("an XDP program takes root, or {lacks}: run it with sudo, or sudo setcap cap_bpf,cap_net_admin,cap_perfmon+ep {}", program.display())]
    XdpNotPermitted {
        /// The capabilities that it lacks.
        lacks: String,
        /// This program.
        program: PathBuf,
    },
    /// The kernel lacks what the program calls: take a newer one.
    #[error(
        "the XDP program needs Linux {needed} or newer, and this is {found}: boot a newer kernel (uname -r), or leave --io xdp out"
    )]
    XdpKernel {
        /// The oldest that will do.
        needed: &'static str,
        /// What runs.
        found: String,
    },
    /// Pins would have no place: mount the file system for them.
    #[error("{} is not on a BPF file system, where maps outlive the process: mount -t bpf bpf /sys/fs/bpf", path.display())]
    NoBpfFs {
        /// Where pins should be.
        path: PathBuf,
    },
    /// No such interface: name another.
    #[error("there is no network interface {name}: ip -brief link lists those there are")]
    NoInterface {
        /// The name.
        name: String,
    },
    /// Something else is attached there: take it away.
    #[error(
        "interface {name} carries another XDP program already: bpftool net shows whose it is; ip link set dev {name} xdp off, or sluice switch --io xdp --detach, takes it away"
    )]
    InterfaceTaken {
        /// The interface.
        name: String,
    },
    /// Another process drives the same pins: end it.
    #[error("the pins in {} are in use by another sluice switch: end that one, or give others with --pins", path.display())]
    PinsTaken {
        /// The folder.
        path: PathBuf,
    },
    /// Maps that are pinned are not such as this program needs: take them away.
    #[error("the maps pinned in {} are {why}: sluice switch --io xdp --detach --pins {} takes them away, with all that waits in them", path.display(), path.display())]
    PinsOther {
        /// The folder.
        path: PathBuf,
        /// What is different.
        why: String,
    },
    /// A pin cannot be made or taken away: do as the kernel says.
    #[error("pins in {}: cannot {doing}: {why}; give another folder of a BPF file system with --pins", path.display())]
    Pins {
        /// The folder.
        path: PathBuf,
        /// What failed.
        doing: &'static str,
        /// The kernel's reason.
        why: String,
    },
    /// The kernel has no memory for maps of this size: take smaller ones, or raise the limit.
    #[error(
        "the kernel gives no memory for the switch's maps of {mib} MiB ({why}): lower tasks_per_slice or tokens_per_slice in the plan's [switch], or raise the limit of its control group (systemctl set-property UNIT MemoryMax=) or of its locked memory (ulimit -l unlimited)"
    )]
    XdpMemory {
        /// What they take, in MiB.
        mib: u64,
        /// The kernel's reason.
        why: String,
    },
    /// The program in the kernel cannot be loaded or used: do as the kernel says.
    #[error("XDP: cannot {doing}: {why}")]
    Xdp {
        /// What failed.
        doing: &'static str,
        /// What the kernel or the loader said.
        why: String,
    },
    /// The machine's network cannot be divided: do as the kernel says; it takes root.
    #[error(
        "network namespaces: cannot {doing}: {why}; it takes root, and a kernel with namespaces and veth"
    )]
    Space {
        /// What failed.
        doing: &'static str,
        /// The kernel's reason.
        why: io::Error,
    },
    /// The switch's thread has ended: nothing was done.
    #[error("the switch has stopped, so nothing was done: start it again")]
    SwitchStopped,
    /// The thread of the hosts has ended: what was asked of them was not done, or not all of it.
    #[error("the hosts have stopped, so not all was done that was asked of them: start them again")]
    CrewStopped,
    /// The switch cannot keep its epoch, so it must not start: give it a folder that it can write.
    #[error("state folder {}: cannot {doing}: {why}; give a folder that this user can write, with --state", path.display())]
    StateFolder {
        /// The folder.
        path: PathBuf,
        /// What failed.
        doing: &'static str,
        /// The kernel's reason.
        why: io::Error,
    },
    /// Another switch uses the folder: end it, or give this one its own.
    #[error("state folder {}: another switch is using it; stop that one, or give another folder (--state of `sluice switch`, --out of `sluice up`)", path.display())]
    StateFolderTaken {
        /// The folder.
        path: PathBuf,
    },
    /// Anyone who reaches the address could take the rack over: configure TLS, or stay on this machine.
    #[error(
        "cannot serve gRPC on {at} without TLS: hosts beyond this machine could read and change everything; give a certificate and a key with --tls, and the authority of those who may call with --client-ca, or listen on 127.0.0.1"
    )]
    Insecure {
        /// The address asked for.
        at: SocketAddr,
    },
    /// TLS alone keeps nobody out: say whose certificates to believe, or stay on this machine.
    #[error(
        "cannot serve gRPC on {at} to callers that show no certificate: anybody who reaches it could change everything; give the authority that signs the certificates of your hosts and operators with --client-ca, or listen on 127.0.0.1"
    )]
    OpenToAll {
        /// The address asked for.
        at: SocketAddr,
    },
    /// A certificate or key cannot be used: correct it.
    #[error("TLS: {what}: {why}")]
    Tls {
        /// Which one, and where it came from.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// The text does not name a gRPC service that could be called: correct it.
    #[error("address `{text}`: {why}; write it as HOST:PORT, http://HOST:PORT or https://HOST:PORT")]
    Address {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Memory that workers share cannot be had: give a folder with room, on a file system in memory.
    #[error("shared memory {}: cannot {doing}: {why}; give a folder with room for it, in memory if there is one", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// What failed.
        doing: &'static str,
        /// The kernel's reason.
        why: io::Error,
    },
    /// A region cannot be registered: do as it says.
    #[error("cannot register memory: {0}")]
    Region(#[from] sluice_host::rdma::RdmaError),
    /// The adaptive agent cannot start: do as it says.
    #[error("adaptive agent: {0}")]
    Agent(#[from] sluice_host::agent::AgentError),
    /// The capture cannot be written: give another file.
    #[error("cannot write the capture {}: {why}; give another file", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// The kernel's reason.
        why: io::Error,
    },
    /// The plan cannot be run: correct it.
    #[error("{0}")]
    Plan(#[from] sluice_control::PlanError),
    /// A thread or its runtime cannot be started: free some memory or threads.
    #[error(
        "cannot start the thread {name}: {why}; end other programs, or raise the limit of threads (ulimit -u)"
    )]
    Thread {
        /// The thread.
        name: &'static str,
        /// The kernel's reason.
        why: io::Error,
    },
    /// The other side of a gRPC call cannot be reached, or said no: try again, or do as it says.
    #[error("{what} at {url}: {why}")]
    Call {
        /// Who was called.
        what: &'static str,
        /// Where.
        url: String,
        /// What came of it.
        why: String,
    },
    /// The kernel has no random bits to give: nothing can be done here.
    #[error("cannot draw random bits from /dev/urandom: {why}; see that this program may read that file")]
    Random {
        /// The kernel's reason.
        why: io::Error,
    },
    /// Others are to send to this address, and cannot: listen on one that they can reach.
    #[error(
        "cannot listen on {at}: others need an address that they can send to; name one of this machine's"
    )]
    Unreachable {
        /// The address asked for.
        at: SocketAddr,
    },
    /// The controller will not have this host: do as it says.
    #[error("the controller refuses: {why}")]
    Refused {
        /// Its reason, and what would help.
        why: String,
    },
    /// No registration in time: see that the controller runs, or wait longer.
    #[error("not registered with {controller} after {:.1} s: {why}; do as that says, or see that a rack runs there", waited.as_secs_f64())]
    NotRegistered {
        /// Where the controller was looked for.
        controller: String,
        /// For how long.
        waited: Duration,
        /// What was last heard.
        why: String,
    },
}

impl NetError {
    /// Whether the caller can make it go away by asking for something else.
    pub const fn is_bad_input(&self) -> bool {
        !matches!(
            self,
            Self::Socket { .. }
                | Self::SwitchStopped
                | Self::Thread { .. }
                | Self::Call { .. }
                | Self::Random { .. }
        )
    }
}
