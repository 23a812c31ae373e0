//! A program at each host's end of its link that counts arriving frames.

use aya::Ebpf;
use aya::maps::PerCpuArray;
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;
use sluice_kernel::spaces::HostSpace;

use crate::object::object;

/// The program on the ends of a worker's and a client's link, for as long as this lives.
pub(crate) struct Ends([Ebpf; 2]);

impl Ends {
    /// Attaches the program to ends without one.
    pub(crate) fn attach(hosts: &[HostSpace]) -> Self {
        Self([0, 1].map(|place| {
            let host = &hosts[place];
            let mut ebpf = Ebpf::load_file(object("ends.bpf.o")).expect("it loads");
            let program: &mut Xdp =
                ebpf.program_mut("ends").expect("it is there").try_into().expect("it is XDP");
            program.load().expect("it loads");
            let attached = host.space.within(|| program.attach(&host.at_host.name, XdpMode::Driver));
            attached.expect("root may move").expect("a veth takes it");
            ebpf
        }))
    }

    /// How many UDP frames reached each end.
    pub(crate) fn came(&self) -> [u64; 2] {
        self.0.each_ref().map(|ebpf| {
            let map = ebpf.map("came").expect("it is there");
            let came: PerCpuArray<_, u64> = map.try_into().expect("of its type");
            came.get(&0, 0).expect("there is one").iter().sum()
        })
    }
}
