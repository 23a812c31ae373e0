//! The switch on links: its program in the kernel, and the thread that speaks for it.
//!
//! Packets never come here. The thread takes the controller's steps, sends what a SWEEP made, and shows the
//! program's counts. It holds a bound socket on the switch's port, so that what the program leaves to the
//! kernel's stack is not answered with "port unreachable", on which hosts would register anew.
//!
//! Maps and links are pinned: when the thread or its process ends, the program goes on. The next one finds
//! the pins, keeps the epoch, and replaces the program in one step, with no frame between. [`detach`] takes
//! all of it away.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use sluice_net::NetError;
use sluice_net::clock::monotonic;
use sluice_net::udp::{Outbox, Socket, SocketOptions, Wait, Waiting};
use sluice_switch::Config;
use sluice_switchd::SwitchdError;
use sluice_switchd::switch::{Count, Mailbox, SwitchHandle};
use sluice_wire::tables::{TableAnswer, TableOp};
use sluice_wire::{Epoch, Nanos};

use super::failing::failed;
use super::frame::unwrap;
use super::links::{self, Carried};
use super::machine::{Interface, check_kernel, check_permission};
use super::pins::Pins;
use super::{Fate, OWN, XdpConfig, XdpSwitch, embedded};
use crate::KernelError;

/// How often counts are shown.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// How a switch on links is set up.
#[derive(Clone, Debug)]
pub struct XdpOptions {
    /// The program's size. Its epoch is that of the pinned maps, if there are any.
    pub size: Config,
    /// The address and port of the switch, which must be this machine's. Port 0 is that of the pinned maps,
    /// or one that the kernel chooses.
    pub at: SocketAddr,
    /// The interfaces that carry the program.
    pub interfaces: Vec<String>,
    /// Whether the kernel's stack carries the program even where a driver could.
    pub generic: bool,
    /// The folder of its pins.
    pub pins: PathBuf,
}

/// A switch that is on its links, to be run on a thread of its own.
pub struct XdpDriver {
    switch: XdpSwitch,
    socket: Socket,
    mailbox: Mailbox,
    handle: SwitchHandle,
    carried: Vec<(String, Carried)>,
    /// Held for as long as the driver lives.
    _pins: Pins,
}

impl XdpDriver {
    /// Puts the program on its links: with the pinned maps of an earlier one, or empty and with the epoch
    /// that `next_epoch` says. If anything fails, what was there before is there again.
    ///
    /// # Errors
    /// Those of [`KernelError`] that say what this machine lacks for it, and those of `next_epoch`.
    pub fn new(
        options: &XdpOptions,
        next_epoch: impl FnOnce() -> Result<Epoch, SwitchdError>,
    ) -> Result<Self, KernelError> {
        let object = embedded()?;
        check_kernel()?;
        check_permission()?;
        let interfaces: Vec<Interface> =
            options.interfaces.iter().map(|name| Interface::named(name)).collect::<Result<_, _>>()?;
        let mut pins = Pins::open(&options.pins)?;
        let (at, epoch) = match super::kept(&pins, &options.size)? {
            Some((at, epoch)) => (same_place(&pins, options.at, at)?, epoch),
            None => (options.at, next_epoch()?),
        };
        let socket = Socket::bind(
            at,
            &SocketOptions {
                stamps: false,
                refusals: false,
                waiting: Waiting::Block,
                ..SocketOptions::default()
            },
        )?;
        let local = socket.local();
        let at = if local.is_ipv4() { [Some(local), None] } else { [None, Some(local)] };
        let config = XdpConfig { size: Config { epoch, ..options.size }, at, test_mode: false };
        let mut switch =
            XdpSwitch::pinned(object, config, &pins, interfaces.iter().any(|interface| interface.is_veth))?;
        let carried = links::attach(&mut switch.ebpf, (&interfaces, options.generic), &pins)?;
        pins.keep();
        let carried = options.interfaces.iter().cloned().zip(carried).collect();
        let (tables, mailbox) = Mailbox::new(socket.waker());
        let handle = SwitchHandle::new(tables, &socket);
        Ok(Self { switch, socket, mailbox, handle, carried, _pins: pins })
    }

    /// For other threads.
    pub fn handle(&self) -> SwitchHandle {
        self.handle.clone()
    }

    /// The life of its registers.
    pub fn epoch(&self) -> Epoch {
        self.switch.config.size.epoch
    }

    /// Its interfaces, and how each carries the program.
    pub fn carried(&self) -> &[(String, Carried)] {
        &self.carried
    }

    /// Runs it on a new thread, until it is told to stop. The program stays on its links.
    ///
    /// # Errors
    /// [`NetError::Thread`] when the system has no thread left.
    pub fn spawn(self) -> Result<JoinHandle<Result<(), KernelError>>, KernelError> {
        let builder = thread::Builder::new().name("xdp".to_owned());
        builder.spawn(|| self.run()).map_err(|why| NetError::Thread { name: "xdp", why }.into())
    }

    fn run(mut self) -> Result<(), KernelError> {
        let (mut off_link, mut superseded) = (0, 0);
        let mut servers_sought = Nanos(0);
        while !self.handle.is_stopped() {
            off_link += self.socket.receive(Wait::Until(monotonic() + LOOK_EVERY))? as u64;
            let mut broken = None;
            let (switch, outbox) = (&mut self.switch, self.socket.outbox());
            superseded += self.mailbox.answer(|op| match step(switch, op, outbox) {
                Ok(answer) => answer,
                Err(why) => {
                    broken = Some(why);
                    TableAnswer::OutOfRange
                }
            });
            self.socket.flush();
            let now = monotonic();
            if now.since(servers_sought) > LOOK_EVERY {
                servers_sought = now;
                self.switch.find_servers()?;
            }
            self.handle.counters().take_over(&OWN, &self.switch.totals()?);
            self.handle.counters().set(Count::OffLink, off_link);
            self.handle.counters().set(Count::Superseded, superseded);
            if let Some(why) = broken {
                return Err(why);
            }
        }
        Ok(())
    }
}

/// Takes a switch off its links and its pins away, whoever put them there; `false` if there was none.
///
/// # Errors
/// [`KernelError::PinsTaken`] while a process drives it, [`KernelError::Pins`] with what the kernel said.
pub fn detach(pins: &Path) -> Result<bool, KernelError> {
    check_permission()?;
    Pins::detach(pins)
}

/// One step of the controller's. What a SWEEP makes is sent by our own socket.
fn step(switch: &mut XdpSwitch, op: TableOp, outbox: &mut Outbox) -> Result<TableAnswer, KernelError> {
    let answer = switch.table(op)?;
    if let (TableOp::Inject(sweep), TableAnswer::Done) = (op, answer) {
        match switch.sweep(sweep)? {
            Fate::Sent(frame) => {
                let made = unwrap(&frame).map_err(|why| failed("send what a SWEEP made", why))?;
                outbox.send(made.to.into(), made.bytes);
            }
            Fate::Dropped => {}
            fate => return Err(failed("sweep", &format!("it ended in {fate:?}"))),
        }
    }
    Ok(answer)
}

/// The address of pinned maps, if it is the one that was asked for: hosts know it.
fn same_place(pins: &Pins, asked: SocketAddr, held: SocketAddr) -> Result<SocketAddr, KernelError> {
    if asked.ip() == held.ip() && [0, held.port()].contains(&asked.port()) {
        return Ok(held);
    }
    Err(KernelError::PinsOther {
        path: pins.path().to_owned(),
        why: format!("of a switch on {held}, not {asked}"),
    })
}
