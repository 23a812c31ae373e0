//! Would AF_XDP pay for hosts? Datagrams of a DISPATCH's size go to a host over a veth link and come back:
//! once over our batched UDP sockets, once over an AF_XDP socket (with copied frames, as on any driver
//! without zero copy).
//!
//! One thread does everything in batches of 64: a client sends over its UDP socket, the host receives and
//! returns the datagrams, the client receives them. So both times include the same client, and the kernel's
//! share of the work. Needs root.
#![expect(unsafe_code, reason = "the rings of an AF_XDP socket are shared with the kernel")]

#[path = "../tests/object/mod.rs"]
mod object;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use aya::EbpfLoader;
use aya::maps::XskMap;
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;
use sluice_kernel::spaces::RackSpaces;
use sluice_net::udp::{BATCH, Socket, SocketOptions, Wait, Waiting};
use xdp::nic::NicIndex;
use xdp::slab::{HeapSlab, Slab as _};
use xdp::socket::{XdpSocket, XdpSocketBuilder};
use xdp::umem::UmemCfgBuilder;
use xdp::{RingConfigBuilder, Umem, WakableRings};

/// The length of a small task's DISPATCH.
const DATAGRAM_BYTES: usize = 88;
const PORT: u16 = 7000;
const ROUNDS: u32 = 500;
const BLOCKS: usize = 21;
/// How many frames the kernel may fill.
const FILL: usize = 2 * BATCH;
/// How long a datagram may be under way before the bench gives up.
const PATIENCE: Duration = Duration::from_secs(5);

fn main() {
    if !object::is_root() {
        eprintln!("not run: it takes root");
        return;
    }
    let spaces = RackSpaces::new(2).expect("root may build namespaces");
    let mut udp = UdpHost::new(&spaces);
    let mut af_xdp = XskHost::new(&spaces);
    let mut clients = [0, 1].map(|place| Client::new(&spaces, place));
    let mut times = Vec::new();
    for _ in 0..BLOCKS {
        let [first, second] = &mut clients;
        times.push([block(first, || udp.echo()), block(second, || af_xdp.echo())]);
    }
    let median = |of: fn(&[f64; 2]) -> f64| {
        let mut all: Vec<f64> = times.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[BLOCKS / 2]
    };
    let (udp, af_xdp) = (median(|pair| pair[0]), median(|pair| pair[1]));
    println!("a datagram to a host and back: UDP {udp:.0} ns, AF_XDP {af_xdp:.0} ns");
    println!("AF_XDP / UDP, median of {BLOCKS} pairs: {:.2}", median(|pair| pair[1] / pair[0]));
}

/// Nanoseconds a datagram.
fn block(client: &mut Client, mut echo: impl FnMut()) -> f64 {
    let began = Instant::now();
    for _ in 0..ROUNDS {
        client.turn(&mut echo);
    }
    began.elapsed().as_nanos() as f64 / f64::from(ROUNDS) / BATCH as f64
}

fn bind(at: SocketAddr) -> Socket {
    let options =
        SocketOptions { stamps: false, refusals: false, waiting: Waiting::Spin, ..Default::default() };
    Socket::bind(at, &options).expect("the address is free")
}

/// The sender, which also receives what comes back.
struct Client {
    socket: Socket,
    to: SocketAddr,
}

impl Client {
    fn new(spaces: &RackSpaces, place: usize) -> Self {
        let host = &spaces.hosts()[place];
        let at = SocketAddr::new(host.addresses()[0], PORT);
        let to = SocketAddr::new(spaces.switch_addresses()[0], PORT);
        Self { socket: host.space.within(|| bind(at)).expect("root may move"), to }
    }

    fn turn(&mut self, echo: &mut impl FnMut()) {
        for _ in 0..BATCH {
            self.socket.send(self.to.into(), &[1; DATAGRAM_BYTES]);
        }
        self.socket.flush();
        let began = Instant::now();
        let mut taken = 0;
        while taken < BATCH {
            echo();
            taken += self.socket.receive(Wait::Poll).expect("the socket works");
            assert!(began.elapsed() < PATIENCE, "{} datagrams are lost", BATCH - taken);
        }
    }
}

/// A host on a UDP socket.
struct UdpHost(Socket);

impl UdpHost {
    fn new(spaces: &RackSpaces) -> Self {
        let at = SocketAddr::new(spaces.switch_addresses()[0], PORT);
        Self(spaces.switch().within(|| bind(at)).expect("root may move"))
    }

    fn echo(&mut self) {
        self.0.receive(Wait::Poll).expect("the socket works");
        let (inbox, outbox) = self.0.split();
        for index in 0..inbox.len() {
            let datagram = inbox.datagram(index);
            outbox.send(datagram.from, datagram.bytes);
        }
        self.0.flush();
    }
}

/// A host on an AF_XDP socket.
struct XskHost {
    rings: WakableRings,
    frames: HeapSlab,
    socket: XdpSocket,
    _ebpf: aya::Ebpf,
    /// The memory of the frames. Dropped last, since the kernel writes into it.
    memory: Umem,
}

impl XskHost {
    fn new(spaces: &RackSpaces) -> Self {
        let link = spaces.hosts()[1].at_switch.clone();
        let mut memory = Umem::map(UmemCfgBuilder::default().build().expect("sound")).expect("memory");
        let mut ebpf = EbpfLoader::new().load_file(object::object("xsk.bpf.o")).expect("it loads");
        let (mut rings, socket) = spaces
            .switch()
            .within(|| {
                let mut builder = XdpSocketBuilder::new().expect("root may");
                let config = RingConfigBuilder::default().build().expect("sound");
                let (rings, mut flags) =
                    builder.build_wakable_rings(&memory, config).expect("the kernel has it");
                flags.force_copy();
                let socket = builder.bind(NicIndex::new(link.index), 0, flags).expect("a link");
                let program: &mut Xdp =
                    ebpf.program_mut("give").expect("it is there").try_into().expect("XDP");
                program.load().expect("it loads");
                program.attach(&link.name, XdpMode::Driver).expect("a veth takes it");
                (rings, socket)
            })
            .expect("root may move");
        let mut sockets =
            XskMap::try_from(ebpf.map_mut("sockets").expect("it is there")).expect("of its type");
        sockets.set(0, socket.raw_fd(), 0).expect("there is room");
        // SAFETY: the memory outlives the socket in this struct.
        unsafe { rings.fill_ring.enqueue(&mut memory, FILL, true) }.expect("the kernel takes them");
        Self { rings, frames: HeapSlab::with_capacity(BATCH), socket, _ebpf: ebpf, memory }
    }

    fn echo(&mut self) {
        let (Some(taken), Some(left)) = (&mut self.rings.rx_ring, &mut self.rings.tx_ring) else { return };
        // SAFETY: received frames go back to the kernel below, before the memory is freed.
        if unsafe { taken.recv(&self.memory, &mut self.frames) } == 0 {
            return;
        }
        for _ in 0..self.frames.len() {
            let Some(mut frame) = self.frames.pop_back() else { break };
            turn_back(&mut frame);
            self.frames.push_front(frame);
        }
        // SAFETY: the memory outlives the socket in this struct.
        let sent = unsafe { left.send(&mut self.frames, false) }.expect("the ring has room");
        let mut gone = 0;
        while gone < sent {
            kick(&self.socket);
            gone += self.rings.completion_ring.dequeue(&mut self.memory, sent - gone);
        }
        // SAFETY: as above.
        unsafe { self.rings.fill_ring.enqueue(&mut self.memory, sent, false) }
            .expect("the kernel takes them");
    }
}

/// Makes the kernel send what is in the ring: 32 frames a call, with EAGAIN if more are left.
fn kick(socket: &XdpSocket) {
    // SAFETY: the call passes no buffer; with a closed socket it would only return an error.
    unsafe { libc::sendto(socket.raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
}

/// Swaps sender and receiver in all three headers, which changes no checksum.
fn turn_back(frame: &mut [u8]) {
    const MACS: usize = 0;
    const ADDRESSES: usize = 26;
    const PORTS: usize = 34;
    for (at, bytes) in [(MACS, 6), (ADDRESSES, 4), (PORTS, 2)] {
        let (one, other) = frame[at..at + 2 * bytes].split_at_mut(bytes);
        one.swap_with_slice(other);
    }
}
