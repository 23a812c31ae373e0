//! A switch between two hosts. The hosts are sockets, and tests write each of their packets.

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use sluice_conformance::Step;
use sluice_kernel::KernelError;
use sluice_kernel::spaces::{BPF_FOLDER, RackSpaces, mounts_of_its_own};
use sluice_kernel::xdp::{AttachMode, XdpDriver, XdpOptions, detach, embedded};
use sluice_switchd::switch::{Count, SwitchCounters, SwitchHandle};
use sluice_wire::tables::TableAnswer;
use sluice_wire::{
    Attempt, ClientId, Dispatch, Epoch, Generation, HEADER_BYTES, Incarnation, Key, Nonce, Packet, Probe,
    Serial, Submit, TaskId, Token, WorkerId, encode, parse,
};

use sluice_switch::Config;

use crate::ends::Ends;
use crate::object::is_root;

/// The epoch of a switch that finds no earlier one.
pub(crate) const EPOCH: Epoch = Epoch(7);
/// A time limit that only lost or stuck packets exceed.
const PATIENCE: Duration = Duration::from_mins(2);
/// After this time without a packet, none will come: usually packets take no noticeable time.
const SILENCE: Duration = Duration::from_secs(1);
const WORKER_KEY: u32 = 5;
const CLIENT_KEY: u32 = 6;

/// Two hosts, each with a link to a switch that may run the program.
pub(crate) struct Rig {
    pub(crate) spaces: RackSpaces,
    pub(crate) at: IpAddr,
    /// Whether everything runs on the switch's own machine.
    is_alone: bool,
    ends: Arc<Ends>,
    running: Option<(SwitchHandle, JoinHandle<Result<(), KernelError>>)>,
}

/// A worker's and a client's sockets, and their packet numbers.
pub(crate) struct Hosts {
    worker: UdpSocket,
    client: UdpSocket,
    switch: SocketAddr,
    issued: Serial,
    sequence: Serial,
    ends: Arc<Ends>,
    /// The switch's counters.
    counters: SwitchCounters,
    /// How many packets the worker's socket received.
    got: Cell<u64>,
}

impl Rig {
    /// A rig with the first or second of the switch's addresses. `None` if the user may not load programs
    /// or the address does not exist.
    pub(crate) fn new(family: usize) -> Option<Self> {
        if !is_root() {
            eprintln!("skipped: putting a program on links takes root");
            return None;
        }
        if let Err(why) = embedded() {
            eprintln!("skipped: {why}");
            return None;
        }
        mounts_of_its_own().expect("root may make them");
        let mut spaces = RackSpaces::new(2).expect("root may make them");
        spaces.bare_ends();
        let ends = Arc::new(Ends::attach(spaces.hosts()));
        let at = spaces.switch_addresses().get(family).copied()?;
        Some(Self { spaces, at, is_alone: false, ends, running: None })
    }

    /// A rig on the switch's loopback, whose driver cannot run programs.
    pub(crate) fn alone() -> Option<Self> {
        let mut rig = Self::new(0)?;
        (rig.at, rig.is_alone) = (Ipv4Addr::LOCALHOST.into(), true);
        Some(rig)
    }

    pub(crate) fn options(&self) -> XdpOptions {
        let links = self.spaces.links().map(str::to_owned);
        XdpOptions {
            size: Config { workers: 4, clients: 2, slices: 2, types: 4, ..Config::full(Epoch(0)) },
            at: SocketAddr::new(self.at, 0),
            generic: false,
            interfaces: if self.is_alone { vec!["lo".to_owned()] } else { links.collect() },
            pins: PathBuf::from(BPF_FOLDER).join("sluice/test"),
        }
    }

    /// Attaches the program to the links. Returns its epoch, and how each link runs it.
    pub(crate) fn start(&mut self) -> Result<(Epoch, Vec<AttachMode>), KernelError> {
        let options = self.options();
        let driver = self.spaces.switch().within(|| XdpDriver::new(&options, || Ok(EPOCH)))??;
        let (epoch, carried) =
            (driver.epoch(), driver.attach_modes().iter().map(|(_, carried)| *carried).collect());
        self.running = Some((driver.handle(), driver.spawn()?));
        Ok((epoch, carried))
    }

    /// Stops the driver's thread.
    pub(crate) fn end(&mut self) {
        let (handle, thread) = self.running.take().expect("it runs");
        handle.stop();
        thread.join().expect("no panic").expect("it ends well");
    }

    pub(crate) fn handle(&self) -> &SwitchHandle {
        &self.running.as_ref().expect("it runs").0
    }

    /// Opens a slice for one worker and one client.
    pub(crate) fn admit(&self) -> Hosts {
        let [worker, client] = [0, 1].map(|place| {
            let host = &self.spaces.hosts()[place];
            let own = host.addresses().into_iter().find(|ip| ip.is_ipv4() == self.at.is_ipv4());
            let own = if self.is_alone { self.at } else { own.expect("of the switch's family") };
            let space = if self.is_alone { self.spaces.switch() } else { &host.space };
            let socket = space.within(|| UdpSocket::bind((own, 0))).expect("its own");
            socket.expect("a free port")
        });
        let at = |socket: &UdpSocket| socket.local_addr().expect("it is bound");
        let steps = [
            Step::SetSlice {
                slice: 0,
                open: true,
                limit: 1_000,
                retry_after_ns: 0,
                target_ns: 0,
                expected: 0,
            },
            Step::SetType { r#type: 0, slice: Some(0) },
            Step::SetClient { client: 0, key: CLIENT_KEY, at: at(&client), incarnation: 1, start: 0 },
            Step::RaiseGeneration { worker: 0, generation: 1 },
            Step::ResetCounters { worker: 0, start: 0 },
            Step::SetWorker {
                worker: 0,
                key: WORKER_KEY,
                at: at(&worker),
                slice: 0,
                generation: 1,
                open: true,
            },
        ];
        let steps: Vec<_> = steps.iter().filter_map(Step::table).collect();
        let answers = self.handle().tables().call(steps).expect("it runs");
        assert!(answers.iter().all(|answer| *answer == TableAnswer::Done), "{answers:?}");
        Hosts {
            worker,
            client,
            switch: self.handle().local(),
            issued: Serial(0),
            sequence: Serial(0),
            ends: Arc::clone(&self.ends),
            counters: self.handle().counters().clone(),
            got: Cell::new(0),
        }
    }

    /// The names in the folder of pins; empty if the folder does not exist.
    pub(crate) fn pins(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.options().pins).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some((handle, thread)) = self.running.take() {
            handle.stop();
            drop(thread.join());
        }
        // The mounts would disappear anyway.
        drop(detach(&self.options().pins));
    }
}

impl Hosts {
    pub(crate) fn token(&mut self) {
        self.issued = self.issued.plus(1);
        let token = Token {
            epoch: EPOCH,
            key: Key(WORKER_KEY),
            worker: WorkerId(0),
            generation: Generation(1),
            nonce: Nonce(0),
            issued: self.issued,
            ..Token::default()
        };
        send(&self.worker, self.switch, &Packet::Token(token));
    }

    pub(crate) fn task(&mut self) {
        let task = TaskId { incarnation: Incarnation(1), sequence: self.sequence };
        let (epoch, key, client, attempt) = (EPOCH, Key(CLIENT_KEY), ClientId(0), Attempt(1));
        let submit = Submit { epoch, key, client, task, attempt, ..Submit::default() };
        self.sequence = self.sequence.plus(1);
        send(&self.client, self.switch, &Packet::Submit(submit));
    }

    /// The next task that the worker receives. The worker does not ask again: on these links no packet is
    /// lost or stuck.
    pub(crate) fn dispatched(&self) -> Dispatch {
        self.awaited(PATIENCE).unwrap_or_else(|| panic!("{}", self.whereabouts()))
    }

    /// Whether the switch answers a token with a task that it gets first.
    pub(crate) fn is_heard(&mut self) -> bool {
        let is_heard = self.is_heard_within(PATIENCE);
        if !is_heard {
            eprintln!("{}", self.whereabouts());
        }
        is_heard
    }

    /// Whether the switch gives no answer within a time that is much longer than usual.
    pub(crate) fn is_silent(&mut self) -> bool {
        !self.is_heard_within(SILENCE)
    }

    fn is_heard_within(&mut self, span: Duration) -> bool {
        let sequence = self.sequence;
        self.task();
        self.token();
        self.awaited(span).is_some_and(|dispatch| dispatch.task.sequence == sequence)
    }

    /// The next task, if it comes within `span`.
    fn awaited(&self, span: Duration) -> Option<Dispatch> {
        match self.received(span)? {
            Packet::Dispatch(dispatch) => Some(dispatch),
            other => panic!("{other:?}"),
        }
    }

    /// Where a missing packet may be: whether it reached the worker's end of the link, and whether it is
    /// stuck until the next frame arrives.
    fn whereabouts(&self) -> String {
        let [at_worker, at_client] = self.ends.came();
        let (got, unsent) = (self.got.get(), self.counters.of(Count::SendFailed));
        let probe = Probe {
            epoch: EPOCH,
            key: Key(WORKER_KEY),
            worker: WorkerId(0),
            generation: Generation(1),
            nonce: Nonce(0),
        };
        send(&self.worker, self.switch, &Packet::Probe(probe));
        self.client.send_to(&[0], self.switch).expect("a route");
        let brought: Vec<Packet> = std::iter::from_fn(|| self.received(SILENCE)).take(9).collect();
        format!(
            "{} tasks and {} tokens were sent; the switch found no way for {unsent}; {at_worker} frames came to the worker's end of its link, {at_client} to the \
             client's, {got} to the worker's socket; a PROBE then brought {brought:?}",
            self.sequence, self.issued
        )
    }

    /// The next packet to the worker, if it comes within `span`.
    fn received(&self, span: Duration) -> Option<Packet> {
        self.worker.set_read_timeout(Some(span)).expect("a span");
        let mut bytes = [0; HEADER_BYTES];
        let length = self.worker.recv(&mut bytes).ok()?;
        self.got.update(|got| got + 1);
        Some(parse(&bytes[..length]).expect("a packet").0)
    }
}

fn send(socket: &UdpSocket, to: SocketAddr, packet: &Packet) {
    let mut bytes = [0; HEADER_BYTES];
    encode(packet, &[], &mut bytes).expect("legal");
    assert_eq!(socket.send_to(&bytes, to).expect("a route"), HEADER_BYTES);
}
