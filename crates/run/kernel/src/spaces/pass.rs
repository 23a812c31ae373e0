//! `pass.bpf.c` on a host's end of its link. A veth end receives frames that an XDP program at the other
//! end sends back only if it has an XDP program too.

use aya::Ebpf;
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;

use crate::KernelError;

/// The program, built by `build.rs`; empty if there was no compiler. Then the other end has no program
/// either.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pass.bpf.o"));

/// Attaches the program to a link of the calling thread's namespace, as long as the returned value lives.
pub(super) fn attach(link: &str) -> Result<Option<Ebpf>, KernelError> {
    if OBJECT.is_empty() {
        return Ok(None);
    }
    let mut ebpf = Ebpf::load(OBJECT).map_err(|why| failed(&why))?;
    let program = ebpf.program_mut("pass").ok_or_else(|| failed(&"it is not in its object"))?;
    let program: &mut Xdp = program.try_into().map_err(|why| failed(&why))?;
    program.load().map_err(|why| failed(&why))?;
    program.attach(link, XdpMode::Driver).map_err(|why| failed(&why))?;
    Ok(Some(ebpf))
}

fn failed(why: &impl ToString) -> KernelError {
    KernelError::Xdp { doing: "make a host take frames that are sent back", why: why.to_string() }
}
