//! `hop.bpf.c` in the switch's place: a frame from one link leaves by another.

use aya::maps::xdp::DevMapHash;
use aya::maps::{HashMap, Map};
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;
use aya::{Ebpf, EbpfLoader};
use sluice_kernel::spaces::{HostSpace, LinkEnd, RackSpaces};

use crate::object::object;

/// The program on all links of a rack's switch, as long as this value lives.
pub(crate) struct Hop {
    ebpf: Ebpf,
}

impl Hop {
    /// Attaches the program natively. Without routes, every frame goes to the network stack.
    pub(crate) fn attach(rack: &RackSpaces) -> Self {
        let mut ebpf = EbpfLoader::new().load_file(object("hop.bpf.o")).expect("it loads");
        rack.switch().within(|| attach(&mut ebpf, rack)).expect("root may move");
        Self { ebpf }
    }

    /// Routes frames from `link` to `host`.
    pub(crate) fn lead(&mut self, link: &LinkEnd, host: &HostSpace) {
        let mut hop = [0; 24];
        hop[..4].copy_from_slice(&host.at_switch.index.to_ne_bytes());
        hop[4..10].copy_from_slice(&host.at_host.mac);
        hop[10..16].copy_from_slice(&host.at_switch.mac);
        let hops = self.ebpf.map_mut("hops").expect("it is there");
        let mut hops: HashMap<_, u32, [u8; 24]> = hops.try_into().expect("of its type");
        hops.insert(link.index, hop, 0).expect("there is room");
    }

    /// How many frames from `link` the program has redirected.
    pub(crate) fn frames(&self, link: &LinkEnd) -> u64 {
        let hops = self.ebpf.map("hops").expect("it is there");
        let hops: HashMap<_, u32, [u8; 24]> = hops.try_into().expect("of its type");
        let hop = hops.get(&link.index, 0).expect("it leads somewhere");
        u64::from_ne_bytes(hop[16..].try_into().expect("eight bytes"))
    }

    /// Pins the program's map at this path.
    pub(crate) fn pin(&self, path: &str) {
        self.ebpf.map("hops").expect("it is there").pin(path).expect("a BPF file system");
    }

    /// The id of the program's map in the kernel.
    pub(crate) fn id(&self) -> u32 {
        let Some(Map::HashMap(hops)) = self.ebpf.map("hops") else { panic!("it is there") };
        hops.info().expect("it is loaded").id()
    }
}

fn attach(ebpf: &mut Ebpf, rack: &RackSpaces) {
    let program: &mut Xdp = ebpf.program_mut("hop").expect("it is there").try_into().expect("it is XDP");
    program.load().expect("it loads");
    for link in rack.links() {
        program.attach(link, XdpMode::Driver).expect("a veth takes it");
    }
    let links = ebpf.map_mut("links").expect("it is there");
    let mut links = DevMapHash::try_from(links).expect("of its type");
    for host in rack.hosts() {
        let index = host.at_switch.index;
        links.insert(index, index, None, 0).expect("a link");
    }
}
