//! `pass.bpf.c` at a host's end of its link: the kernel tells a veth's end of frames that a program at the
//! other end sent back only if it carries a program too.

use aya::Ebpf;
use aya::programs::Xdp;
use aya::programs::xdp::XdpMode;

use crate::KernelError;

/// Built by `build.rs`; nothing if there was no compiler, and then no program at the other end either.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pass.bpf.o"));

/// Attaches it to a link of the namespace that the thread is in, for as long as what is given lives.
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
