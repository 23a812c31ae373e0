//! A switch between two hosts that are sockets: what they send is written here, packet by packet.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use sluice_net::NetError;
use sluice_net::spaces::{BPF_FOLDER, RackSpaces, mounts_of_its_own};
use sluice_net::switch::SwitchHandle;
use sluice_net::xdp::{Carried, XdpDriver, XdpOptions, detach, embedded};
use sluice_vectors::Step;
use sluice_wire::tables::TableAnswer;
use sluice_wire::{
    Attempt, ClientId, Dispatch, Epoch, Generation, HEADER_BYTES, Incarnation, Key, Nonce, Packet, Probe,
    Serial, Submit, TaskId, Token, WorkerId, encode, parse,
};

use sluice_switch::Config;

/// The life that a switch gets if it finds none.
pub(crate) const EPOCH: Epoch = Epoch(7);
/// Usually what is sent is there by then.
const WHILE: Duration = Duration::from_millis(200);
/// Nothing here takes so many whiles unless it was lost.
const PATIENCE: u32 = 50;
const WORKER_KEY: u32 = 5;
const CLIENT_KEY: u32 = 6;

/// Two hosts with a link each to a switch, which may carry the program.
pub(crate) struct Rig {
    pub(crate) spaces: RackSpaces,
    pub(crate) at: IpAddr,
    /// Whether all is on the switch's own machine.
    is_alone: bool,
    running: Option<(SwitchHandle, JoinHandle<Result<(), NetError>>)>,
}

/// A worker's and a client's sockets, and how far they have come.
pub(crate) struct Hosts {
    worker: UdpSocket,
    client: UdpSocket,
    switch: SocketAddr,
    issued: Serial,
    sequence: Serial,
}

impl Rig {
    /// With the first or second of the switch's addresses. `None` for who may not load programs, or has none.
    pub(crate) fn new(family: usize) -> Option<Self> {
        if !std::fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0) {
            eprintln!("skipped: putting a program on links takes root");
            return None;
        }
        if let Err(why) = embedded() {
            eprintln!("skipped: {why}");
            return None;
        }
        mounts_of_its_own().expect("root may make them");
        let spaces = RackSpaces::new(2).expect("root may make them");
        let at = spaces.switch_addresses().get(family).copied()?;
        Some(Self { spaces, at, is_alone: false, running: None })
    }

    /// On the switch's loopback, whose driver carries no programs.
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

    /// Puts the program on the links; says its epoch, and how they carry it.
    pub(crate) fn start(&mut self) -> Result<(Epoch, Vec<Carried>), NetError> {
        let options = self.options();
        let driver = self.spaces.switch().within(|| XdpDriver::new(&options, || Ok(EPOCH)))??;
        let (epoch, carried) =
            (driver.epoch(), driver.carried().iter().map(|(_, carried)| *carried).collect());
        self.running = Some((driver.handle(), driver.spawn()?));
        Ok((epoch, carried))
    }

    /// Ends the thread that speaks for it.
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
            let socket = socket.expect("a free port");
            socket.set_read_timeout(Some(WHILE)).expect("a span");
            socket
        });
        let at = |socket: &UdpSocket| socket.local_addr().expect("it is bound");
        let steps = [
            Step::SetSlice { slice: 0, open: true, limit: 1_000, retry_after_ns: 0 },
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
        Hosts { worker, client, switch: self.handle().local(), issued: Serial(0), sequence: Serial(0) }
    }

    /// The names in the folder of pins; none if it is not there.
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
        // It would go with the mounts too.
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

    /// The next task that the worker gets.
    pub(crate) fn dispatched(&self) -> Dispatch {
        self.awaited(PATIENCE).expect("nothing is lost on these links")
    }

    /// Whether the switch answers a token at all, with a task that it gets first.
    pub(crate) fn is_heard(&mut self) -> bool {
        self.is_heard_within(PATIENCE)
    }

    /// Whether it does not, for as long as an answer usually takes, and a good while more.
    pub(crate) fn is_silent(&mut self) -> bool {
        !self.is_heard_within(5)
    }

    fn is_heard_within(&mut self, whiles: u32) -> bool {
        let sequence = self.sequence;
        self.task();
        self.token();
        self.awaited(whiles).is_some_and(|dispatch| dispatch.task.sequence == sequence)
    }

    /// The next task, if it comes within so many whiles. After each the worker asks, as a real one does, and the client sends
    /// what is no packet: now and then the kernel leaves a frame at an end of a veth pair until another follows it there.
    fn awaited(&self, whiles: u32) -> Option<Dispatch> {
        for _ in 0..whiles {
            match receive(&self.worker) {
                Some(Packet::Dispatch(dispatch)) => return Some(dispatch),
                Some(Packet::Answer(_)) => {}
                None => self.ask(),
                other => panic!("{other:?}"),
            }
        }
        None
    }

    fn ask(&self) {
        let probe = Probe {
            epoch: EPOCH,
            key: Key(WORKER_KEY),
            worker: WorkerId(0),
            generation: Generation(1),
            nonce: Nonce(0),
        };
        send(&self.worker, self.switch, &Packet::Probe(probe));
        self.client.send_to(&[0], self.switch).expect("a route");
    }
}

fn send(socket: &UdpSocket, to: SocketAddr, packet: &Packet) {
    let mut bytes = [0; HEADER_BYTES];
    encode(packet, &[], &mut bytes).expect("legal");
    assert_eq!(socket.send_to(&bytes, to).expect("a route"), HEADER_BYTES);
}

/// What comes within a while.
fn receive(socket: &UdpSocket) -> Option<Packet> {
    let mut bytes = [0; HEADER_BYTES];
    let length = socket.recv(&mut bytes).ok()?;
    Some(parse(&bytes[..length]).expect("a packet").0)
}
