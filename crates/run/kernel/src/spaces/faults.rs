//! Fault injection on the links of a rack: loads and attaches `faults.bpf.c`.

use aya::maps::Array;
use aya::programs::tc::{SchedClassifier, TcAttachType, qdisc_add_clsact};
use aya::{Ebpf, EbpfLoader};
use sluice_netem::{FaultCounts, Rates};

use super::HostSpace;
use crate::KernelError;

/// The program, built by `build.rs`; empty if there was no compiler.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/faults.bpf.o"));

/// The lanes of a link: one for each direction and address family.
const LANES: u32 = 4;
/// The size of a lane in the program, in words: four counts, and the frame that is held.
const LANE_WORDS: usize = 5 + 4096 / 8;

/// Seeded loss, duplication and reordering of the UDP packets on one host's link, in both directions, as
/// long as this value lives.
///
/// A frame that is to be overtaken is held until the next frame of its direction and family comes, however
/// long that takes; [`Rates::delay`] is ignored.
#[derive(Debug)]
pub struct LinkFaults {
    ebpf: Ebpf,
}

impl LinkFaults {
    /// Attaches the program to a host's end of its link.
    ///
    /// # Errors
    /// [`KernelError::XdpNotBuilt`], [`KernelError::Xdp`] with what the kernel or the loader said, [`KernelError::Space`].
    pub fn attach(host: &HostSpace, rates: Rates, seed: u64) -> Result<Self, KernelError> {
        if OBJECT.is_empty() {
            return Err(KernelError::XdpNotBuilt);
        }
        let seed = seed << 8 | u64::from(host.number);
        let mut loader = EbpfLoader::new();
        let [loss, doubling, reordering] = [rates.loss, rates.dup, rates.reorder].map(share);
        let rates = [seed as u32, (seed >> 32) as u32, loss, doubling, reordering, 0];
        loader.override_global("rates", &rates, true);
        let mut ebpf = loader.load(OBJECT).map_err(|why| failed("load the faults", &why))?;
        host.space.within(|| attach(&mut ebpf, &host.at_host.name))??;
        Ok(Self { ebpf })
    }

    /// The counters of injected faults.
    ///
    /// # Errors
    /// [`KernelError::Xdp`] with the kernel's message.
    pub fn counts(&self) -> Result<FaultCounts, KernelError> {
        let map = self.ebpf.map("lanes").ok_or_else(|| failed("find the map", &"lanes"))?;
        let lanes =
            Array::<_, [u64; LANE_WORDS]>::try_from(map).map_err(|why| failed("read the faults", &why))?;
        (0..LANES).try_fold(FaultCounts::default(), |sum, lane| {
            let [_, lost, doubled, held, ..] =
                lanes.get(&lane, 0).map_err(|why| failed("read the faults", &why))?;
            Ok(FaultCounts { lost: sum.lost + lost, doubled: sum.doubled + doubled, held: sum.held + held })
        })
    }
}

fn attach(ebpf: &mut Ebpf, link: &str) -> Result<(), KernelError> {
    // An error is ignored: newer kernels need no clsact, and attaching the programs reports a real one.
    qdisc_add_clsact(link).ok();
    for (name, direction) in [("leaves", TcAttachType::Egress), ("comes", TcAttachType::Ingress)] {
        let program = ebpf.program_mut(name).ok_or_else(|| failed("find the program", &name))?;
        let program: &mut SchedClassifier =
            program.try_into().map_err(|why| failed("load the faults", &why))?;
        program.load().map_err(|why| failed("load the faults", &why))?;
        program.attach(link, direction).map_err(|why| failed("attach the faults", &why))?;
    }
    Ok(())
}

/// Of 2^32.
fn share(rate: f64) -> u32 {
    (rate.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u32
}

fn failed(doing: &'static str, why: &impl ToString) -> KernelError {
    KernelError::Xdp { doing, why: why.to_string() }
}
