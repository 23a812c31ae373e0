//! The switch on links: its program in the kernel, and the thread that manages it.
//!
//! Packets never reach this process. The thread carries out the controller's steps, sends the packets that
//! a SWEEP produces, and publishes the program's counters. It holds a socket bound to the switch's port.
//! Without it, the kernel would answer packets that the program passes on with "port unreachable", which
//! would make hosts register anew.
//!
//! Maps and links are pinned: when the thread or its process ends, the program continues. The next process
//! finds the pins, keeps the epoch, and replaces the program in one step, without losing a frame.
//! [`detach`] removes everything.

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
use super::links::{self, AttachMode};
use super::machine::{Interface, check_kernel, check_permission};
use super::pins::Pins;
use super::{FrameAction, OWN, XdpConfig, XdpSwitch, embedded};
use crate::KernelError;

/// How often counters are published.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);

/// The settings of a switch on links.
#[derive(Clone, Debug)]
pub struct XdpOptions {
    /// The sizes of the program's tables. If maps are pinned, their epoch is used.
    pub size: Config,
    /// The switch's address and port; the address must be this machine's. Port 0 means the port of the
    /// pinned maps, or else one that the kernel chooses.
    pub at: SocketAddr,
    /// The interfaces to which the program is attached.
    pub interfaces: Vec<String>,
    /// Whether to use generic XDP even if a driver supports native XDP.
    pub generic: bool,
    /// The folder of its pins.
    pub pins: PathBuf,
}

/// A switch attached to its links, to be run on a thread of its own.
pub struct XdpDriver {
    switch: XdpSwitch,
    socket: Socket,
    mailbox: Mailbox,
    handle: SwitchHandle,
    carried: Vec<(String, AttachMode)>,
    /// Locked as long as the driver lives.
    _pins: Pins,
}

impl XdpDriver {
    /// Attaches the program to its links: with the pinned maps of an earlier process, or with empty maps
    /// and the epoch that `next_epoch` returns. If anything fails, the earlier state is restored.
    ///
    /// # Errors
    /// The variants of [`KernelError`] that say what this machine lacks, and the errors of `next_epoch`.
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

    /// The epoch of the switch's registers.
    pub fn epoch(&self) -> Epoch {
        self.switch.config.size.epoch
    }

    /// The interfaces, and how each runs the program.
    pub fn attach_modes(&self) -> &[(String, AttachMode)] {
        &self.carried
    }

    /// Runs the driver on a new thread until it is stopped. The program stays on its links. The error type is
    /// the caller's, who may run other kinds of switches too.
    ///
    /// # Errors
    /// [`NetError::Thread`] if the system has no thread left.
    pub fn spawn<E: From<KernelError> + Send + 'static>(
        self,
    ) -> Result<JoinHandle<Result<(), E>>, KernelError> {
        let builder = thread::Builder::new().name("xdp".to_owned());
        let spawned = builder.spawn(|| self.run().map_err(E::from));
        spawned.map_err(|why| NetError::Thread { name: "xdp", why }.into())
    }

    fn run(mut self) -> Result<(), KernelError> {
        let (mut off_link, mut superseded) = (0, 0);
        let mut servers_sought = Nanos(0);
        // What the program counted before this process began.
        self.handle.counters().take_over(&OWN, &self.switch.totals()?);
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

/// Detaches a switch from its links and removes its pins, whoever made them. Returns false if there was
/// none.
///
/// # Errors
/// [`KernelError::PinsTaken`] while a process drives the switch, [`KernelError::Pins`] with the kernel's
/// message.
pub fn detach(pins: &Path) -> Result<bool, KernelError> {
    check_permission()?;
    Pins::detach(pins)
}

/// Carries out one of the controller's steps. Packets that a SWEEP produces are sent by this process's
/// socket.
fn step(switch: &mut XdpSwitch, op: TableOp, outbox: &mut Outbox) -> Result<TableAnswer, KernelError> {
    let answer = switch.table(op)?;
    if let (TableOp::Inject(sweep), TableAnswer::Done) = (op, answer) {
        match switch.sweep(sweep)? {
            FrameAction::Sent(frame) => {
                let made = unwrap(&frame).map_err(|why| failed("send what a SWEEP made", why))?;
                outbox.send(made.to.into(), made.bytes);
            }
            FrameAction::Dropped => {}
            fate => return Err(failed("sweep", &format!("it ended in {fate:?}"))),
        }
    }
    Ok(answer)
}

/// The address of the pinned maps, if it matches the requested one: hosts know it already.
fn same_place(pins: &Pins, asked: SocketAddr, held: SocketAddr) -> Result<SocketAddr, KernelError> {
    if asked.ip() == held.ip() && [0, held.port()].contains(&asked.port()) {
        return Ok(held);
    }
    Err(KernelError::PinsOther {
        path: pins.path().to_owned(),
        why: format!("of a switch on {held}, not {asked}"),
    })
}
