//! A server: the process that owns a machine's registered memory, into which the switch writes tasks ahead
//! (Rain §3.2.2).
//!
//! One thread receives WRITEs and talks to the controller, which says which rings the slices need. The
//! server's folder contains a file for each ring, and one with the state of the queue pair; workers of the
//! same machine map both. The server is not involved in running a task. If it is killed, its workers
//! continue and ask the clients for bytes. When it is back, it finds its files, and registers new numbers
//! and keys.
//!
//! Left out: more than one queue pair, and more than one switch.

mod line;
mod metrics;
mod rings;

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::Serialize;
use sluice_control::{ServerGrant, ServerHello};
use sluice_host::rdma::{Mtu, PairSpec, RdmaCounts, RoceRefusal, WriterEnd};
use sluice_wire::roce::{self, Transport};
use sluice_wire::{Nanos, Psn, Qpn};

use crate::NetError;
use crate::clock::Clock;
use crate::pin::pin_thread;
use crate::rdma::{Capture, Receiver};
use crate::udp::{SocketOptions, Wait, Waiting, Waker};
pub use line::PairLine;
use metrics::ServerMeter;
pub use metrics::ServerMetrics;
use rings::Rings;
pub use rings::ring_file;
use sluice_netem::FaultPlan;
use sluice_rpc::Remote;
use sluice_rpc::registrar::{RegistrarEvent, ServerRegistrar};

/// How long a server that ends waits for the controller to end its registration.
const LEAVE_PATIENCE: Nanos = Nanos::from_millis(1_000);

/// The settings of a server. [`ServerOptions::new`] gives the defaults.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The address of the controller.
    pub controller: Remote,
    /// The server's name: unique among running servers.
    pub name: String,
    /// The address that receives WRITEs: one of the server's own, so that it can use the standard port.
    pub listen: SocketAddr,
    /// The folder of the memory that workers map, best on a file system in memory.
    pub memory: PathBuf,
    /// The largest number of bytes in one WRITE.
    pub mtu: Mtu,
    /// Whether its queue pair is reliable.
    pub reliable: bool,
    /// Whether the iCRC is computed and must be right.
    pub icrc: bool,
    /// The number of slots in each ring, instead of what the slices need. For tests: a controller accepts
    /// fewer only if told to.
    pub slots: Option<u32>,
    /// The capture file for all received and sent packets.
    pub pcap: Option<PathBuf>,
    /// How the thread waits.
    pub waiting: Waiting,
    /// The core to which the thread is pinned.
    pub pin: Option<usize>,
    /// The injected faults.
    pub faults: FaultPlan,
    /// Where the server counts for Prometheus, if anybody wants that.
    pub metrics: Option<ServerMetrics>,
}

impl ServerOptions {
    /// A server of this machine, with its memory in the folder `memory`. `controller` is `HOST:PORT` or a
    /// URL.
    ///
    /// # Errors
    /// [`NetError::Rpc`] if `controller` is not an address.
    pub fn new(controller: &str, memory: PathBuf) -> Result<Self, NetError> {
        Ok(Self::of(Remote::new(controller, None)?, memory))
    }

    /// Like [`Self::new`], for a controller that may need TLS.
    pub fn of(controller: Remote, memory: PathBuf) -> Self {
        Self {
            name: controller.own_name("server"),
            controller,
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, roce::PORT)),
            memory,
            mtu: Mtu::default(),
            reliable: false,
            icrc: true,
            slots: None,
            pcap: None,
            waiting: Waiting::default(),
            pin: None,
            faults: FaultPlan::none(),
            metrics: None,
        }
    }
}

/// A server that is ready to run.
pub struct Server {
    receiver: Receiver,
    registrar: ServerRegistrar,
    hello: ServerHello,
    rings: Rings,
    line: PairLine,
    clock: Clock,
    mtu: Mtu,
    pin: Option<usize>,
    stopper: ServerStopper,
    /// The switch's end to which the queue pair was connected.
    connected: Option<WriterEnd>,
    /// Whether the controller has accepted the server's rings once.
    was_in: bool,
    began: Nanos,
    reconnected: u32,
    meter: ServerMeter,
}

/// Ends a server from any thread.
#[derive(Clone, Debug)]
pub struct ServerStopper {
    asked: Arc<AtomicU8>,
    waker: Waker,
}

impl ServerStopper {
    /// Asks the server to leave and end; a second call ends it at once.
    pub fn stop(&self) {
        let more = |asked: u8| Some(asked.saturating_add(1));
        // The closure always returns a value, so the update cannot fail.
        self.asked.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok();
        self.waker.wake();
    }

    fn asked(&self) -> u8 {
        self.asked.load(Ordering::Acquire)
    }
}

impl Server {
    /// Opens the socket and the memory, and starts to register.
    ///
    /// # Errors
    /// Errors of the socket and the folder, and [`NetError::Unreachable`] for an address to which no one
    /// could send.
    pub fn new(options: &ServerOptions) -> Result<Self, NetError> {
        let of_socket = SocketOptions {
            waiting: options.waiting,
            faults: options.faults.clone(),
            ..SocketOptions::default()
        };
        let mut receiver = Receiver::bind(options.listen, &of_socket)?;
        let capture = options.pcap.as_deref().map(Capture::create).transpose()?;
        receiver.capture(capture);
        let rings = Rings::new(options.memory.clone(), options.slots)?;
        let line = PairLine::of_server(&options.memory)?;
        let hello = ServerHello {
            name: options.name.clone(),
            life: crate::identity::random_bits()?,
            at: crate::identity::reachable(receiver.local())?,
            qpn: Qpn(0),
            first: Psn::new(0),
            mtu: options.mtu.bytes() as u32,
            reliable: options.reliable,
            icrc: options.icrc,
            rings: Vec::new(),
        };
        let bell = receiver.waker();
        let registrar =
            ServerRegistrar::server(options.controller.clone(), hello.clone(), move || bell.wake())?;
        let stopper = ServerStopper { asked: Arc::new(AtomicU8::new(0)), waker: receiver.waker() };
        let clock = Clock::start();
        Ok(Self {
            began: clock.now(),
            receiver,
            registrar,
            hello,
            rings,
            line,
            clock,
            mtu: options.mtu,
            pin: options.pin,
            stopper,
            connected: None,
            was_in: false,
            reconnected: 0,
            meter: ServerMeter::new(options.metrics.as_ref()),
        })
    }

    /// The address that receives WRITEs.
    pub fn local(&self) -> SocketAddr {
        self.receiver.local()
    }

    /// What ends [`Server::run`].
    pub fn stopper(&self) -> ServerStopper {
        self.stopper.clone()
    }

    /// Serves on this thread until it is stopped.
    ///
    /// # Errors
    /// [`NetError::Refused`] if the controller refuses this server, [`NetError::Memory`] if there is no
    /// room for its rings, [`NetError::Pin`] if the thread cannot be pinned, and the error that ends the
    /// socket.
    pub fn run(mut self) -> Result<ServerReport, NetError> {
        if let Some(core) = self.pin {
            pin_thread(core)?;
        }
        while self.stopper.asked() == 0 {
            self.receiver.step(Wait::Forever)?;
            self.take_registrations()?;
            self.reconnect()?;
            let rings = (self.hello.rings.len(), self.rings.bytes());
            self.meter.publish(self.receiver.counts(), self.reconnected, rings);
        }
        self.leave()?;
        Ok(self.report())
    }

    fn take_registrations(&mut self) -> Result<(), NetError> {
        while let Some(event) = self.registrar.try_next() {
            match event {
                RegistrarEvent::Granted(grant) => self.granted(&grant)?,
                RegistrarEvent::Refused { why } if !self.was_in => {
                    return Err(NetError::Refused { why });
                }
                // The registrar's thread logs these events and asks again.
                RegistrarEvent::Refused { .. }
                | RegistrarEvent::Wait { .. }
                | RegistrarEvent::Lost { .. }
                | RegistrarEvent::Left { .. } => {}
            }
        }
        Ok(())
    }

    /// Creates the rings that the slices need, and connects to a switch that is new.
    fn granted(&mut self, grant: &ServerGrant) -> Result<(), NetError> {
        let to = WriterEnd {
            server: grant.server,
            epoch: grant.epoch,
            switch: grant.switch,
            icrc: self.hello.icrc && !grant.without_icrc,
        };
        let is_outdated = |known: WriterEnd| known.is_outdated_by(&to, self.hello.reliable);
        let is_new = grant.spent_pair == Some(self.hello.qpn) || self.connected.is_none_or(is_outdated);
        if is_new {
            self.connect(to)?;
        }
        let laid_out = self.rings.fit(&grant.rings, &mut self.receiver)?;
        self.was_in |= !is_new && !laid_out;
        if is_new || laid_out {
            self.hello.rings = self.rings.offers();
            self.registrar.set_hello(self.hello.clone());
            let (bytes, count) = (self.rings.bytes(), self.hello.rings.len());
            sluice_log::log!(
                ServerRegistered,
                host = self.hello.name,
                server = u64::from(grant.server.0),
                at = %self.receiver.local(),
                "{}: server {} on {}, {count} rings, {:.1} MiB, epoch {}",
                self.hello.name,
                grant.server,
                self.receiver.local(),
                bytes as f64 / f64::from(1 << 20),
                grant.epoch
            );
        }
        Ok(())
    }

    /// Opens a queue pair with a new number, so that no packet that is still under way is for it.
    fn connect(&mut self, to: WriterEnd) -> Result<(), NetError> {
        let bits = crate::identity::random_bits()?;
        self.receiver.disconnect(self.hello.qpn);
        // InfiniBand reserves the numbers 0 and 1.
        self.hello.qpn = Qpn((bits as u32 >> 8).max(2));
        self.hello.first = Psn::new((bits >> 32) as u32);
        self.receiver.connect(PairSpec {
            number: self.hello.qpn,
            peer_number: Qpn(to.server.0.into()),
            peer: Some(SocketAddr::from(to.switch).ip()),
            transport: if self.hello.reliable { Transport::Rc } else { Transport::Uc },
            first: self.hello.first,
            mtu: self.mtu,
            icrc: to.icrc,
        });
        self.connected = Some(to);
        self.line.ready();
        Ok(())
    }

    /// Connects a pair anew that went into its error state. First tells the workers, which stop their
    /// tokens and register anew.
    fn reconnect(&mut self) -> Result<(), NetError> {
        let Some(to) = self.connected.filter(|_| self.receiver.has_failed()) else { return Ok(()) };
        let name = &self.hello.name;
        sluice_log::log!(PairFailed, host = name, "{name}: the queue pair is in error; connecting it anew");
        self.line.failed();
        self.reconnected += 1;
        self.connect(to)?;
        self.registrar.set_hello(self.hello.clone());
        Ok(())
    }

    fn leave(&mut self) -> Result<(), NetError> {
        if self.stopper.asked() > 1 {
            return Ok(());
        }
        self.registrar.leave();
        let give_up = self.clock.now() + LEAVE_PATIENCE;
        while self.clock.now() < give_up && self.stopper.asked() == 1 {
            if let Some(RegistrarEvent::Left { .. }) = self.registrar.try_next() {
                break;
            }
            self.receiver.step(Wait::Until(give_up))?;
        }
        Ok(())
    }

    fn report(&self) -> ServerReport {
        let counts = self.receiver.counts();
        let refused = RoceRefusal::ALL.into_iter().map(|why| (why.name(), counts.refused(why)));
        let ran = self.clock.now().since(self.began);
        let RdmaCounts { placed, bytes, resynchronised, .. } = *counts;
        ServerReport {
            schema: "sluice.server.v1",
            name: self.hello.name.clone(),
            ran_s: ran.0 as f64 / 1e9,
            rings: self.hello.rings.len(),
            memory_bytes: self.rings.bytes(),
            writes: placed,
            written_bytes: bytes,
            resynchronised,
            reconnected: self.reconnected,
            refused: refused.filter(|(_, count)| *count > 0).collect(),
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("hello", &self.hello).finish_non_exhaustive()
    }
}

/// A server's summary, also as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct ServerReport {
    /// The schema that describes the fields.
    pub schema: &'static str,
    pub name: String,
    /// How long the server ran, in seconds.
    pub ran_s: f64,
    /// How many rings the server had in the end.
    pub rings: usize,
    /// The memory of these rings, in bytes.
    pub memory_bytes: u64,
    /// WRITEs whose bytes were stored.
    pub writes: u64,
    /// Bytes that these WRITEs stored.
    pub written_bytes: u64,
    /// WRITEs that were accepted although they were not the next ones: others were lost or overtaken.
    pub resynchronised: u64,
    /// How often the queue pair went into its error state and was connected anew.
    pub reconnected: u32,
    /// Packets that were refused, by reason.
    pub refused: std::collections::BTreeMap<&'static str, u64>,
}

impl fmt::Display for ServerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.memory_bytes as f64 / f64::from(1 << 20);
        let refused: u64 = self.refused.values().sum();
        write!(
            f,
            "{}: {} writes in {:.1} s into {} rings of {mib:.1} MiB together, {refused} refused",
            self.name, self.writes, self.ran_s, self.rings
        )
    }
}
