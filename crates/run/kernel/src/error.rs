//! What a kernel may lack or refuse, and what the caller can do about it.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use sluice_net::NetError;
use sluice_switchd::SwitchdError;
use sluice_system::{Attempt, advice};

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// An error of the switch daemon's parts.
    #[error(transparent)]
    Hub(#[from] SwitchdError),
    /// An error of the sockets, threads or settings below.
    #[error(transparent)]
    Net(#[from] NetError),
    /// This build has no XDP program: build it again with clang installed.
    #[error(
        "this sluice was built without its XDP program: apt-get install clang-14 libbpf-dev linux-libc-dev, then cargo clean -p sluice-kernel, and build it again"
    )]
    XdpNotBuilt,
    /// This user may not load programs: grant the missing capabilities.
    #[error("an XDP program takes root, or {lacks}: run it with sudo, or sudo setcap cap_bpf,cap_net_admin,cap_perfmon+ep {}", program.display())]
    XdpNotPermitted {
        /// The missing capabilities.
        lacks: String,
        program: PathBuf,
    },
    /// The kernel is too old for the program: boot a newer one.
    #[error(
        "the XDP program needs Linux {needed} or newer, and this is {found}: boot a newer kernel (uname -r), or leave --io xdp out"
    )]
    XdpKernel {
        /// The oldest kernel that works.
        needed: &'static str,
        found: String,
    },
    /// There is no BPF file system to pin maps in: mount one.
    #[error("{} is not on a BPF file system, where maps outlive the process: mount -t bpf bpf /sys/fs/bpf", path.display())]
    NoBpfFs {
        /// The folder that should be on a BPF file system.
        path: PathBuf,
    },
    /// The link's queueing discipline ignores departure times: give the link a fair queue, or choose
    /// another way of waiting.
    #[error(
        "link {link} leaves through {}, which keeps no departure times: tc qdisc replace dev {link} root fq \
         (a kernel with CONFIG_NET_SCH_FQ), or give another --wait",
        if has.is_empty() { "no queue" } else { has }
    )]
    NoFairQueue {
        link: String,
        /// The link's disciplines.
        has: String,
    },
    /// The kernel does not tell the link's queueing discipline: choose another way of waiting.
    #[error("cannot see which queue frames leave through: {why}; give another --wait")]
    Queues { why: io::Error },
    /// No interface has this name: name another.
    #[error("there is no network interface {name}: ip -brief link lists those there are")]
    NoInterface { name: String },
    /// The interface has another XDP program: detach it.
    #[error(
        "interface {name} carries another XDP program already: bpftool net shows whose it is; ip link set dev {name} xdp off, or sluice switch --io xdp --detach, takes it away"
    )]
    InterfaceTaken { name: String },
    /// Another process drives the same pins: stop it.
    #[error("the pins in {} are in use by another sluice switch: end that one, or give others with --pins", path.display())]
    PinsTaken { path: PathBuf },
    /// The pinned maps do not fit this program: remove them.
    #[error("the maps pinned in {} are {why}: sluice switch --io xdp --detach --pins {} takes them away, with all that waits in them", path.display(), path.display())]
    PinsOther { path: PathBuf, why: String },
    /// A pin cannot be created or removed: follow the kernel's message.
    #[error("pins in {}: cannot {doing}: {why}; give another folder of a BPF file system with --pins", path.display())]
    Pins { path: PathBuf, doing: &'static str, why: String },
    /// The kernel has no memory for maps of this size: configure smaller ones, or raise the limit.
    #[error(
        "the kernel gives no memory for the switch's maps of {mib} MiB ({why}): lower tasks_per_slice or tokens_per_slice in the plan's [switch], or raise the limit of its control group (systemctl set-property UNIT MemoryMax=) or of its locked memory (ulimit -l unlimited)"
    )]
    XdpMemory {
        /// The size of the maps, in MiB.
        mib: u64,
        why: String,
    },
    /// The program cannot be loaded or used: follow the kernel's message.
    #[error("XDP: cannot {doing}: {why}")]
    Xdp {
        doing: &'static str,
        /// The message of the kernel or the loader.
        why: String,
    },
    /// The kernel knows no way to a host: bring its link up, or give the machine a route.
    #[error("packets to {to} have no way: {why}; ip route get {to} and ip neighbour show what is known")]
    NoWay { to: IpAddr, why: io::Error },
    /// A network namespace or mount could not be set up: follow the message.
    #[error("network namespaces: cannot {doing}: {why}; {}", advice(Attempt::Divide, .why))]
    Space { doing: &'static str, why: io::Error },
}

impl KernelError {
    /// Whether the caller's input is at fault.
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::Hub(why) => why.is_bad_input(),
            Self::Net(why) => why.is_bad_input(),
            _ => true,
        }
    }
}
