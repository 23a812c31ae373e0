//! What a kernel can lack or refuse, and what the caller can do about it.

use std::io;
use std::path::PathBuf;

use sluice_net::NetError;
use sluice_switchd::SwitchdError;
use sluice_system::{Attempt, advice};

/// Any failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KernelError {
    /// As for any other switch.
    #[error(transparent)]
    Hub(#[from] SwitchdError),
    /// As for any other end of a rack.
    #[error(transparent)]
    Net(#[from] NetError),
    /// This build has no XDP program: build it again with a compiler for it.
    #[error(
        "this sluice was built without its XDP program: apt-get install clang-14 libbpf-dev linux-libc-dev, then cargo clean -p sluice-kernel, and build it again"
    )]
    XdpNotBuilt,
    /// This user may not load programs: give it the capabilities.
    #[error("an XDP program takes root, or {lacks}: run it with sudo, or sudo setcap cap_bpf,cap_net_admin,cap_perfmon+ep {}", program.display())]
    XdpNotPermitted {
        /// The capabilities that it lacks.
        lacks: String,
        program: PathBuf,
    },
    /// The kernel lacks what the program calls: take a newer one.
    #[error(
        "the XDP program needs Linux {needed} or newer, and this is {found}: boot a newer kernel (uname -r), or leave --io xdp out"
    )]
    XdpKernel {
        /// The oldest that will do.
        needed: &'static str,
        found: String,
    },
    /// Pins would have no place: mount the file system for them.
    #[error("{} is not on a BPF file system, where maps outlive the process: mount -t bpf bpf /sys/fs/bpf", path.display())]
    NoBpfFs {
        /// Where pins should be.
        path: PathBuf,
    },
    /// Frames do not leave at the times that they say: give the link a fair queue, or wait otherwise.
    #[error(
        "link {link} leaves through {}, which keeps no departure times: tc qdisc replace dev {link} root fq \
         (a kernel with CONFIG_NET_SCH_FQ), or give another --wait",
        if has.is_empty() { "no queue" } else { has }
    )]
    NoFairQueue {
        link: String,
        /// The disciplines that it has.
        has: String,
    },
    /// The kernel does not say through what packets leave: wait otherwise.
    #[error("cannot see which queue frames leave through: {why}; give another --wait")]
    Queues { why: io::Error },
    /// No such interface: name another.
    #[error("there is no network interface {name}: ip -brief link lists those there are")]
    NoInterface { name: String },
    /// Something else is attached there: take it away.
    #[error(
        "interface {name} carries another XDP program already: bpftool net shows whose it is; ip link set dev {name} xdp off, or sluice switch --io xdp --detach, takes it away"
    )]
    InterfaceTaken { name: String },
    /// Another process drives the same pins: end it.
    #[error("the pins in {} are in use by another sluice switch: end that one, or give others with --pins", path.display())]
    PinsTaken { path: PathBuf },
    /// Maps that are pinned are not such as this program needs: take them away.
    #[error("the maps pinned in {} are {why}: sluice switch --io xdp --detach --pins {} takes them away, with all that waits in them", path.display(), path.display())]
    PinsOther { path: PathBuf, why: String },
    /// A pin cannot be made or taken away: do as the kernel says.
    #[error("pins in {}: cannot {doing}: {why}; give another folder of a BPF file system with --pins", path.display())]
    Pins { path: PathBuf, doing: &'static str, why: String },
    /// The kernel has no memory for maps of this size: take smaller ones, or raise the limit.
    #[error(
        "the kernel gives no memory for the switch's maps of {mib} MiB ({why}): lower tasks_per_slice or tokens_per_slice in the plan's [switch], or raise the limit of its control group (systemctl set-property UNIT MemoryMax=) or of its locked memory (ulimit -l unlimited)"
    )]
    XdpMemory {
        /// What they take, in MiB.
        mib: u64,
        why: String,
    },
    /// The program in the kernel cannot be loaded or used: do as the kernel says.
    #[error("XDP: cannot {doing}: {why}")]
    Xdp {
        doing: &'static str,
        /// What the kernel or the loader said.
        why: String,
    },
    /// The machine's network cannot be divided: do as it says.
    #[error("network namespaces: cannot {doing}: {why}; {}", advice(Attempt::Divide, .why))]
    Space { doing: &'static str, why: io::Error },
}

impl KernelError {
    /// Whether the caller can make it go away by asking for something else.
    pub const fn is_bad_input(&self) -> bool {
        match self {
            Self::Hub(why) => why.is_bad_input(),
            Self::Net(why) => why.is_bad_input(),
            _ => true,
        }
    }
}
