//! The switch on links: BMv2's process, and the thread that manages it.
//!
//! Packets never reach this process. The thread carries out the controller's steps, sends SWEEPs, and
//! publishes the program's counters. A socket holds the switch's port and is never read: without it the
//! kernel, which sees all frames too, would answer packets with "port unreachable".
//!
//! The switch ends with this process, also after kill -9, with all that waits in it. The next one is a new
//! switch, of another epoch.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::thread::{self, JoinHandle};

use rustix::process::geteuid;
use sluice_kernel::dies_with_this_thread;
use sluice_kernel::spaces::SideSpace;
use sluice_net::NetError;
use sluice_net::clock::monotonic;
use sluice_net::udp::{ReadySet, Waiting};
use sluice_switch::{Config, Refusal};
use sluice_switchd::SwitchdError;
use sluice_switchd::switch::{Count, Mailbox, SwitchHandle};
use sluice_wire::tables::TableAnswer;
use sluice_wire::{Epoch, Nanos, ParseError, Term};

use crate::error::Bmv2Error;
use crate::launch::{RuntimeApi, SwitchFrom, attach, launch};
use crate::links::LinkPorts;
use crate::process::Process;
use crate::program::P4Program;
use crate::registers::of;
use crate::sizes::bits;
use crate::sources::compiled;
use crate::steps::step;
use crate::sweeps::ControlLink;
use crate::tables::P4Tables;

/// How often the switch's process is looked after.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// How often counters are published: each is a call.
const COUNT_EVERY: Nanos = Nanos::from_millis(500);
/// How many frames may wait for a link. A SWEEP that recirculates with a live token must not be dropped.
const QUEUE_FRAMES: u16 = 4_096;

/// The program's own counters, in the order of [`P4Tables::totals`].
const OWN: [Count; 8] = [
    Count::Received,
    Count::Sent,
    Count::Submits,
    Count::Tokens,
    Count::Dispatched,
    Count::Rejected,
    Count::Recirculated,
    Count::WrittenAhead,
];

/// The settings of a switch on links.
#[derive(Clone, Debug)]
pub struct Bmv2Options {
    /// The sizes for which the program is compiled; the epoch is that of the next switch.
    pub size: Config,
    /// The switch's address and port; the address must be this machine's. Port 0 lets the kernel choose.
    pub at: SocketAddr,
    /// The interfaces that are its links.
    pub interfaces: Vec<String>,
    /// The folder in which the program is compiled, which is made if it does not exist.
    pub folder: PathBuf,
    /// Which BMv2 it is.
    pub from: SwitchFrom,
}

/// A switch that runs on its links, to be managed on a thread of its own.
pub struct Bmv2Driver {
    tables: P4Tables,
    control: ControlLink,
    /// `None` if the switch ran already.
    process: Option<Process>,
    ready: ReadySet,
    mailbox: Mailbox,
    handle: SwitchHandle,
    term: Term,
    _held: UdpSocket,
}

impl Bmv2Driver {
    /// Compiles the program and starts it on its links, in the calling thread's namespace. The switch ends
    /// with the calling thread. If anything fails, nothing is left.
    ///
    /// # Errors
    /// [`Bmv2Error`] with what is missing, or what the tools, the kernel or the switch refuse, and the errors
    /// of `next_epoch`.
    pub fn new(
        options: &Bmv2Options,
        next_epoch: impl FnOnce() -> Result<Epoch, SwitchdError>,
    ) -> Result<Self, Bmv2Error> {
        if !geteuid().is_root() {
            return Err(Bmv2Error::NotRoot);
        }
        if let SwitchFrom::Start(api) = options.from {
            // Of all that may be missing the tools are told first.
            api.switch()?;
        }
        let links = LinkPorts::new(&options.interfaces)?;
        let bound = UdpSocket::bind(options.at).and_then(|held| Ok((held.local_addr()?, held)));
        let (local, held) = bound.map_err(|why| NetError::Bind { at: options.at, why })?;
        let compiled = compiled(&options.folder, &options.size, local.port())?;
        let (mut process, runtime, side) = match options.from {
            SwitchFrom::Running(running) => {
                let groups = 1 << bits(options.size.slices.into());
                (None, attach(&running, &compiled, groups, &links)?, None)
            }
            SwitchFrom::Start(api) => {
                let side = match api {
                    RuntimeApi::Thrift => Some(SideSpace::new(&format!("sweeps{}", std::process::id()))?),
                    RuntimeApi::P4Runtime => None,
                };
                let mut command = Command::new(api.switch()?);
                command.args(links.arguments(side.as_ref().map(SideSpace::link)));
                let command = dies_with_this_thread(&mut command);
                // Switches of one machine must have different numbers.
                let (process, runtime) = launch(api, command, std::process::id(), &compiled)?;
                (Some(process), runtime, side)
            }
        };
        let config = Config { epoch: next_epoch()?, ..options.size };
        let count = links.count() + usize::from(side.is_some());
        let mut control = ControlLink::new(side, local, config.epoch)?;
        let mut tables = P4Tables::new(P4Program::Rain, config, runtime, links);
        let begun = tables.check(count).and_then(|()| tables.begin(&[local]));
        // Another's switch may have no control port.
        let begun = begun.and_then(|()| control.drain(&mut tables.runtime));
        begun.map_err(|why| reason(&mut process, why))?;
        let ready = ReadySet::new(Waiting::Block)?;
        let (mail, mailbox) = Mailbox::new(ready.waker());
        let handle = SwitchHandle::beside(mail, ready.waker(), local);
        Ok(Self { tables, control, process, ready, mailbox, handle, term: config.term, _held: held })
    }

    /// For other threads.
    pub fn handle(&self) -> SwitchHandle {
        self.handle.clone()
    }

    /// The epoch of the switch's registers.
    pub fn epoch(&self) -> Epoch {
        self.tables.config.epoch
    }

    /// Runs the driver on a new thread until it is stopped, which ends the switch. The error type is the
    /// caller's, who may run other kinds of switches too.
    ///
    /// # Errors
    /// [`NetError::Thread`] if the system has no thread left.
    pub fn spawn<E: From<Bmv2Error> + Send + 'static>(self) -> Result<JoinHandle<Result<(), E>>, Bmv2Error> {
        let builder = thread::Builder::new().name("bmv2".to_owned());
        let spawned = builder.spawn(|| self.run().map_err(E::from));
        spawned.map_err(|why| NetError::Thread { name: "bmv2", why }.into())
    }

    fn run(mut self) -> Result<(), Bmv2Error> {
        let (mut superseded, mut counted) = (0, Nanos(0));
        while !self.handle.is_stopped() {
            self.ready.wait(Some(monotonic() + LOOK_EVERY))?;
            self.process.as_mut().map_or(Ok(()), Process::check)?;
            let mut broken = self.tables.runtime.check().err();
            let Self { tables, control, term, mailbox, .. } = &mut self;
            superseded += mailbox.answer(|op| match step(tables, control, term, op) {
                Ok(answer) => answer,
                Err(why) => {
                    broken.get_or_insert(why);
                    TableAnswer::OutOfRange
                }
            });
            let now = monotonic();
            if broken.is_none() && now.since(counted) > COUNT_EVERY {
                counted = now;
                broken = self.publish(superseded).err();
            }
            if let Some(why) = broken {
                return Err(reason(&mut self.process, why));
            }
        }
        self.publish(superseded)
    }

    fn publish(&mut self, superseded: u64) -> Result<(), Bmv2Error> {
        let mut totals = self.tables.totals()?;
        let refused = OWN.len() + ParseError::ALL.len();
        // The driver's own questions are no packets of hosts.
        let (questions, done) = (self.control.questions(), refused + Refusal::SweepDone as usize);
        for at in [0, done] {
            totals[at] = totals[at].saturating_sub(questions);
        }
        totals[refused + Refusal::SweepUnderWay as usize] = self.control.refused();
        self.handle.counters().take_over(&OWN, &totals);
        self.handle.counters().set(Count::Superseded, superseded);
        Ok(())
    }
}

/// Why a call failed, if the switch is this process's own.
fn reason(process: &mut Option<Process>, why: Bmv2Error) -> Bmv2Error {
    match process {
        Some(process) => process.reason(why),
        None => why,
    }
}

impl P4Tables {
    /// Checks that the switch has opened all its links, and runs the program of this size.
    fn check(&mut self, links: usize) -> Result<(), Bmv2Error> {
        let opened = self.runtime.links()?;
        if opened < links {
            return Err(Bmv2Error::NotOpened { opened, links });
        }
        self.runtime.set_queues(QUEUE_FRAMES)?;
        let Config { workers, clients, slices, tasks_per_slice, tokens_per_slice, replay_cells, .. } =
            self.config;
        let in_slices = |cells: u32| 1 << (bits(slices.into()) + bits(cells));
        let registers = [
            ("sources", "seen", u32::from(workers)),
            ("sources", "replay", 1 << (bits(clients.into()) + bits(replay_cells))),
            ("tokens", "token_worker", in_slices(tokens_per_slice)),
            ("entry", "sequence", in_slices(tasks_per_slice)),
        ];
        for (part, name, cells) in registers {
            let last = cells as usize - 1;
            // A register that is not there at all is told by the read.
            self.word(part, name, 0)?;
            if self.word(part, name, last).is_err() || self.word(part, name, last + 1).is_ok() {
                return Err(Bmv2Error::Size { register: of(part, name), cells });
            }
        }
        Ok(())
    }
}
