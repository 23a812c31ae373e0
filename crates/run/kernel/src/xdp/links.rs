//! Attaches the program to links, natively if the driver can, otherwise in generic mode, and pins the
//! attachment.

use std::error::Error;
use std::path::Path;

use aya::Ebpf;
use aya::maps::xdp::DevMapHash;
use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::xdp::{XdpLink, XdpLinkId};
use aya::programs::{ProgramError, ProgramFd, Xdp, XdpMode};

use super::failing::{chain, errno, failed};
use super::machine::Interface;
use super::pins::Pins;
use crate::KernelError;

/// The name of the program that runs on links.
pub(super) const PROGRAM: &str = "rain";

/// How an interface runs the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    /// In the driver, before the kernel builds a packet from a frame.
    Native,
    /// In the kernel's network stack, which is slower: the driver has no support.
    Generic,
    /// Attached by an earlier process; the program was replaced.
    Kept,
}

/// Attaches the program to the interfaces. On a pinned link it replaces the earlier program in one step,
/// without losing a frame; otherwise it makes a new link, `generic` or native if the driver can. Links of
/// other interfaces are removed.
///
/// # Errors
/// [`KernelError::InterfaceTaken`], [`KernelError::Pins`], or [`KernelError::Xdp`] with the kernel's
/// message.
pub(super) fn attach(
    ebpf: &mut Ebpf,
    (interfaces, generic): (&[Interface], bool),
    pins: &Pins,
) -> Result<Vec<AttachMode>, KernelError> {
    let wanted = |index: u32| interfaces.iter().any(|interface| interface.index == index);
    redirects(ebpf, interfaces)?;
    let program = ebpf.program_mut(PROGRAM).ok_or_else(|| failed("find the program", PROGRAM))?;
    let program: &mut Xdp = program.try_into().map_err(|why| failed("attach the program", &chain(&why)))?;
    for index in pins.links()?.into_iter().filter(|index| !wanted(*index)) {
        pins.remove_link(index)?;
    }
    interfaces.iter().map(|interface| attach_one(program, interface, generic, pins)).collect()
}

/// Allows the program to redirect frames to these interfaces only. To change an entry, the kernel first
/// removes the old one. So each interface has two entries: frames leave by the second while the first is
/// being changed. The second key is the complement of the first, as in `send.h`.
fn redirects(ebpf: &mut Ebpf, interfaces: &[Interface]) -> Result<(), KernelError> {
    let copies = copies(ebpf)?;
    let map = ebpf.map_mut("links").ok_or_else(|| failed("find the map", "links"))?;
    let mut links = DevMapHash::try_from(map).map_err(|why| failed("open the map of links", &chain(&why)))?;
    let known: Vec<u32> = links.keys().flatten().collect();
    for index in known {
        if !interfaces.iter().any(|interface| interface.index == index.min(!index)) {
            links.remove(index).map_err(|why| failed("change the map of links", &chain(&why)))?;
        }
    }
    for Interface { index, .. } in interfaces {
        for key in [*index, !*index] {
            links
                .insert(key, *index, Some(&copies), 0)
                .map_err(|why| failed("change the map of links", &chain(&why)))?;
        }
    }
    Ok(())
}

/// The program for the entries of all maps of links. It must be the same for all, since the kernel runs one
/// program for all frames of a batch.
pub(super) fn copies(ebpf: &Ebpf) -> Result<ProgramFd, KernelError> {
    let program = ebpf.program("copies").ok_or_else(|| failed("find the program", "copies"))?;
    let program: &Xdp = program.try_into().map_err(|why| failed("open a program", &chain(&why)))?;
    let program = program.fd().map_err(|why| failed("open a program", &chain(&why)))?;
    program.try_clone().map_err(|why| failed("open a program", &why))
}

fn attach_one(
    program: &mut Xdp,
    interface: &Interface,
    generic: bool,
    pins: &Pins,
) -> Result<AttachMode, KernelError> {
    let pin = pins.link(interface.index);
    if pin.exists() {
        if replace(program, &pin).is_ok() {
            return Ok(AttachMode::Kept);
        }
        // The interface was removed, and another one has its index now.
        pins.remove_link(interface.index)?;
    }
    let (id, carried) = if generic {
        (attach_generic(program, interface)?, AttachMode::Generic)
    } else {
        attach_native(program, interface)?
    };
    let link = program.take_link(id).map_err(|why| refused(interface, &why))?;
    let link = FdLink::try_from(link).map_err(|why| refused(interface, &why))?;
    link.pin(&pin).map_err(|why| pins.failed("pin a link", &chain(&why)))?;
    Ok(carried)
}

/// Attaches natively, or in generic mode if the driver cannot.
fn attach_native(program: &mut Xdp, interface: &Interface) -> Result<(XdpLinkId, AttachMode), KernelError> {
    match program.attach_to_if_index(interface.index, XdpMode::Driver) {
        Ok(id) => Ok((id, AttachMode::Native)),
        Err(why) if is_final(&why) => Err(refused(interface, &why)),
        Err(native) => {
            let id = attach_generic(program, interface)?;
            sluice_log::log!(
                AttachedGeneric,
                link = interface.name,
                "{}: its driver does not carry the program ({}); the kernel's stack does, at the price of making \
                 each frame a packet first",
                interface.name,
                chain(&native)
            );
            Ok((id, AttachMode::Generic))
        }
    }
}

fn attach_generic(program: &mut Xdp, interface: &Interface) -> Result<XdpLinkId, KernelError> {
    program.attach_to_if_index(interface.index, XdpMode::Skb).map_err(|why| refused(interface, &why))
}

/// Replaces the program of a pinned link; the link stays.
fn replace(program: &mut Xdp, pin: &Path) -> Result<(), Box<dyn Error>> {
    let link = XdpLink::try_from(FdLink::from(PinnedLink::from_pin(pin)?))?;
    let id = program.attach_to_link(link)?;
    program.take_link(id)?;
    Ok(())
}

/// Whether generic mode would fail for the same reason.
fn is_final(why: &ProgramError) -> bool {
    let no = [libc::EPERM, libc::EBUSY, libc::EEXIST, libc::ENODEV];
    errno(why).is_some_and(|errno| no.contains(&errno))
}

fn refused(interface: &Interface, why: &(dyn Error + 'static)) -> KernelError {
    let name = interface.name.clone();
    match errno(why) {
        Some(libc::EBUSY | libc::EEXIST) => KernelError::InterfaceTaken { name },
        Some(libc::ENODEV) => KernelError::NoInterface { name },
        _ => failed("attach the program", &format!("{name}: {}", chain(why))),
    }
}
