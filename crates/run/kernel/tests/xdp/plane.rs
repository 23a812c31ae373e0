//! The program as a plane for vectors.

use std::net::SocketAddr;

use sluice_conformance::{FinalSlice, FinalState, FinalTask, FinalWorker, Plane, Sent, Shape};
use sluice_kernel::KernelError;
use sluice_kernel::xdp::frame::{MACS, unwrap, wrap};
use sluice_kernel::xdp::{FrameAction, HostPath, SliceQueue, TaskInRing, XdpConfig, XdpSwitch};
use sluice_switch::Config;
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Nanos, ServerId, SliceId, Sweep, WorkerId};

use crate::object::{is_root, object};

pub(crate) const AT4: &str = "10.0.0.254:7000";
pub(crate) const AT6: &str = "[fd00::fe]:7000";

/// The program in the kernel, and what is needed to give it frames. `None` if the user may not load it.
pub(crate) struct Xdp {
    pub(crate) switch: XdpSwitch,
    shape: Shape,
    /// The last packet's WRITE, before it is copied.
    write: Option<Vec<u8>>,
}

impl Xdp {
    /// A plane whose time the test sets.
    pub(crate) fn new(shape: Shape) -> Option<Self> {
        Self::load(shape, true)
    }

    /// A plane with the kernel's time.
    pub(crate) fn on_time(shape: Shape) -> Option<Self> {
        Self::load(shape, false)
    }

    fn load(shape: Shape, test_mode: bool) -> Option<Self> {
        let at = [AT4, AT6].map(|at| at.parse().ok());
        let config = XdpConfig { size: Config { servers: shape.servers, ..shape.config() }, at, test_mode };
        if !is_root() {
            eprintln!("skipped: loading a program into the kernel takes root");
            return None;
        }
        Some(Self {
            switch: XdpSwitch::load(&std::fs::read(object("rain.bpf.o")).expect("it was built"), config)
                .expect("it loads"),
            shape,
            write: None,
        })
    }

    /// The switch's address of the same family as a host's.
    pub(crate) fn at(host: SocketAddr) -> SocketAddr {
        if host.is_ipv4() { AT4 } else { AT6 }.parse().expect("an address")
    }

    fn sent(fate: FrameAction) -> Result<Option<Sent>, KernelError> {
        let broken = |why: String| KernelError::Xdp { doing: "read what left", why };
        match fate {
            FrameAction::Dropped => Ok(None),
            FrameAction::Sent(frame) => {
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

    fn slice(&mut self, slice: SliceId) -> Result<FinalSlice, KernelError> {
        let TableAnswer::Slice(state) = self.switch.table(TableOp::ReadSlice(slice))? else {
            panic!("a slice")
        };
        let SliceQueue { tasks, tokens } = self.switch.parked(slice);
        let task = |waits: TaskInRing| FinalTask {
            client: waits.client.0,
            incarnation: waits.task.incarnation.0,
            sequence: waits.task.sequence.0,
            attempt: waits.attempt,
        };
        let tokens = tokens.into_iter().map(|token| (token.worker.0, token.generation.0));
        Ok(FinalSlice {
            balance: state.balance,
            tasks: tasks.into_iter().map(task).collect(),
            tokens: tokens.collect(),
            measured_limit: state.measured_limit,
        })
    }

    /// The copy of the last WRITE that leaves over a server's link.
    fn copy(&self, server: u16, write: &[u8]) -> Result<Option<Sent>, KernelError> {
        let broken = |why: String| KernelError::Xdp { doing: "read a copy", why };
        let way = way_to(server);
        match self.switch.copy(way.link, write)? {
            FrameAction::Dropped => Ok(None),
            FrameAction::Sent(frame) => {
                let left = unwrap(&frame).map_err(|why| broken(why.to_owned()))?;
                if left.from != Self::at(left.to) || frame[..12] != [way.to, way.from].concat() {
                    return Err(broken(format!("it left from {}, or by another way", left.from)));
                }
                Ok(Some(Sent { to: left.to, bytes: left.bytes.to_vec() }))
            }
            fate => Err(broken(format!("{fate:?}"))),
        }
    }

    fn psn(&mut self, server: ServerId) -> Result<u32, KernelError> {
        let TableAnswer::Server(state) = self.switch.table(TableOp::ReadServer(server))? else {
            panic!("a server")
        };
        Ok(state.next.get())
    }

    fn worker(&mut self, worker: WorkerId) -> Result<FinalWorker, KernelError> {
        let TableAnswer::Worker(state) = self.switch.table(TableOp::ReadWorker(worker))? else {
            panic!("a worker")
        };
        Ok(FinalWorker { seen: state.seen.0, sent: state.sent.0, generation_out: state.generation_out.0 })
    }
}

impl Plane for Xdp {
    type Error = KernelError;

    fn table(&mut self, op: TableOp) -> Result<(), KernelError> {
        self.switch.table(op)?;
        // In a rack, workers' packets would show the path.
        match op {
            TableOp::SetServer(server, Some(_)) if server.0 < self.shape.servers => {
                self.switch.set_server_way(server, way_to(server.0))
            }
            _ => Ok(()),
        }
    }

    fn packet(&mut self, now: Nanos, from: SocketAddr, bytes: &[u8]) -> Result<Option<Sent>, KernelError> {
        self.switch.set_now(now);
        let frame = wrap(from, Self::at(from), bytes).expect("of one family");
        match self.switch.frame(&frame)? {
            FrameAction::Redirected(write) => {
                self.write = Some(write);
                Ok(None)
            }
            fate => Self::sent(fate),
        }
    }

    fn written(&mut self) -> Result<Vec<Sent>, KernelError> {
        let Some(write) = self.write.take() else { return Ok(Vec::new()) };
        let copies = (0..self.shape.servers).map(|server| self.copy(server, &write));
        copies.filter_map(Result::transpose).collect()
    }

    fn sweep(&mut self, now: Nanos, sweep: Sweep) -> Result<Option<Sent>, KernelError> {
        self.switch.set_now(now);
        Self::sent(self.switch.sweep(sweep)?)
    }

    fn after(&mut self) -> Result<FinalState, KernelError> {
        let of_the_link = ["received", "sent"];
        let counts = self.switch.counts()?.into_iter();
        let counts = counts.filter(|(name, count)| *count > 0 && !of_the_link.contains(name));
        Ok(FinalState {
            epoch: self.shape.epoch,
            psns: (0..self.shape.servers)
                .map(|server| self.psn(ServerId(server)))
                .collect::<Result<_, _>>()?,
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

/// Each server has a link of its own.
fn way_to(server: u16) -> HostPath {
    HostPath {
        link: 100 + u32::from(server),
        to: [2, 0, 0, 0, 3, server as u8],
        from: [2, 0, 0, 0, 4, server as u8],
    }
}
