//! The program as a plane for vectors.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sluice_net::NetError;
use sluice_net::xdp::frame::{MACS, unwrap, wrap};
use sluice_net::xdp::{Fate, XdpConfig, XdpSwitch};
use sluice_vectors::{After, Plane, Sent, Shape, SliceAfter, TaskAfter, WorkerAfter};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Nanos, SliceId, Sweep, WorkerId};

pub(crate) const AT4: &str = "10.0.0.254:7000";
pub(crate) const AT6: &str = "[fd00::fe]:7000";

/// The program in the kernel, with what is needed to give it frames. `None` for who may not load it.
pub(crate) struct Xdp {
    pub(crate) switch: XdpSwitch,
    shape: Shape,
}

/// Builds the programs once, unless somebody has and says where.
fn object(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        if let Some(built) = std::env::var_os("XDP_OBJECTS") {
            return built.into();
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let out = root.join("target/ebpf");
        let built = Command::new("make")
            .arg("-sC")
            .arg(root.join("targets/ebpf"))
            .arg(format!("OUT={}", out.canonicalize().unwrap_or(out.clone()).display()))
            .status()
            .expect("make is there");
        assert!(built.success(), "the program does not build: clang-14 and libbpf-dev are needed");
        out
    });
    folder.join(name)
}

impl Xdp {
    pub(crate) fn new(shape: Shape) -> Option<Self> {
        Self::of("rain.bpf.o", shape, true)
    }

    pub(crate) fn of(name: &str, shape: Shape, test_mode: bool) -> Option<Self> {
        let at = [AT4, AT6].map(|at| at.parse().ok());
        let config = XdpConfig { size: shape.config(), at, test_mode };
        if !is_root() {
            eprintln!("skipped: loading a program into the kernel takes root");
            return None;
        }
        Some(Self { switch: XdpSwitch::load(&object(name), config).expect("it loads"), shape })
    }

    /// The switch's address in a host's family.
    pub(crate) fn at(host: SocketAddr) -> SocketAddr {
        if host.is_ipv4() { AT4 } else { AT6 }.parse().expect("an address")
    }

    fn sent(fate: Fate) -> Result<Option<Sent>, NetError> {
        let broken = |why: String| NetError::Xdp { doing: "read what left", why };
        match fate {
            Fate::Dropped => Ok(None),
            Fate::Sent(frame) => {
                let left = unwrap(&frame).map_err(|why| broken(why.to_owned()))?;
                if left.from != Self::at(left.to) {
                    return Err(broken(format!("it left from {}", left.from)));
                }
                if frame[..12] != [MACS[1], MACS[0]].concat() {
                    return Err(broken("it is not on its way back".to_owned()));
                }
                Ok(Some(Sent { to: left.to, bytes: left.bytes.to_vec() }))
            }
            fate => Err(broken(format!("{fate:?}"))),
        }
    }

    fn slice(&mut self, slice: SliceId) -> Result<SliceAfter, NetError> {
        let TableAnswer::Slice(state) = self.switch.table(TableOp::ReadSlice(slice))? else {
            panic!("a slice")
        };
        let (tasks, tokens) = self.switch.parked(slice)?;
        let task =
            |(client, incarnation, sequence, attempt)| TaskAfter { client, incarnation, sequence, attempt };
        Ok(SliceAfter { balance: state.balance, tasks: tasks.into_iter().map(task).collect(), tokens })
    }

    fn worker(&mut self, worker: WorkerId) -> Result<WorkerAfter, NetError> {
        let TableAnswer::Worker(state) = self.switch.table(TableOp::ReadWorker(worker))? else {
            panic!("a worker")
        };
        Ok(WorkerAfter { seen: state.seen.0, sent: state.sent.0, generation_out: state.generation_out.0 })
    }
}

impl Plane for Xdp {
    type Error = NetError;

    fn table(&mut self, op: TableOp) -> Result<(), NetError> {
        self.switch.table(op).map(drop)
    }

    fn packet(&mut self, now: Nanos, from: SocketAddr, bytes: &[u8]) -> Result<Option<Sent>, NetError> {
        self.switch.set_now(now)?;
        let frame = wrap(from, Self::at(from), bytes).expect("of one family");
        Self::sent(self.switch.frame(&frame)?)
    }

    fn sweep(&mut self, now: Nanos, sweep: Sweep) -> Result<Option<Sent>, NetError> {
        self.switch.set_now(now)?;
        Self::sent(self.switch.sweep(sweep)?)
    }

    fn after(&mut self) -> Result<After, NetError> {
        let of_the_link = ["received", "sent"];
        let counts = self.switch.counts()?.into_iter();
        let counts = counts.filter(|(name, count)| *count > 0 && !of_the_link.contains(name));
        Ok(After {
            epoch: self.shape.epoch,
            counts: counts.map(|(name, count)| (name.to_owned(), count)).collect(),
            slices: (0..self.shape.slices)
                .map(|slice| self.slice(SliceId(slice)))
                .collect::<Result<_, _>>()?,
            workers: (0..self.shape.workers)
                .map(|worker| self.worker(WorkerId(worker)))
                .collect::<Result<_, _>>()?,
        })
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| std::os::unix::fs::MetadataExt::uid(&process) == 0)
}
