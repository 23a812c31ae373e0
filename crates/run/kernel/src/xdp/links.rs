//! The program on links: attached natively where the driver can, else in the kernel's stack, and pinned.

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

/// The program on links.
pub(super) const PROGRAM: &str = "rain";

/// How the program came to be on an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carried {
    /// By the driver, before the kernel makes a packet of a frame.
    Native,
    /// In the kernel's stack, which costs: the driver cannot.
    Generic,
    /// As an earlier process left it, with the program replaced.
    Kept,
}

/// Puts the program on the interfaces: where a link is pinned, in place of the program before, with no frame
/// between; else by a new link, `generic` or as the driver can. Links of other interfaces are taken away.
///
/// # Errors
/// [`KernelError::InterfaceTaken`], [`KernelError::Pins`], or [`KernelError::Xdp`] with what the kernel said.
pub(super) fn attach(
    ebpf: &mut Ebpf,
    (interfaces, generic): (&[Interface], bool),
    pins: &Pins,
) -> Result<Vec<Carried>, KernelError> {
    let wanted = |index: u32| interfaces.iter().any(|interface| interface.index == index);
    redirects(ebpf, interfaces)?;
    let program = ebpf.program_mut(PROGRAM).ok_or_else(|| failed("find the program", PROGRAM))?;
    let program: &mut Xdp = program.try_into().map_err(|why| failed("attach the program", &chain(&why)))?;
    for index in pins.links()?.into_iter().filter(|index| !wanted(*index)) {
        pins.remove_link(index)?;
    }
    interfaces.iter().map(|interface| attach_one(program, interface, generic, pins)).collect()
}

/// The program may send frames out of these interfaces, and no others. The kernel takes an entry out before
/// it puts its next one in, so each interface has a second one, by which frames leave meanwhile; its key is
/// the first one's complement, as in `send.h`.
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

/// The program of every entry of every map of links: the kernel runs one for all frames of a batch.
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
) -> Result<Carried, KernelError> {
    let pin = pins.link(interface.index);
    if pin.exists() {
        if replace(program, &pin).is_ok() {
            return Ok(Carried::Kept);
        }
        // Its interface went away, and another has the number now.
        pins.remove_link(interface.index)?;
    }
    let (id, carried) = if generic {
        (attach_generic(program, interface)?, Carried::Generic)
    } else {
        attach_native(program, interface)?
    };
    let link = program.take_link(id).map_err(|why| refused(interface, &why))?;
    let link = FdLink::try_from(link).map_err(|why| refused(interface, &why))?;
    link.pin(&pin).map_err(|why| pins.failed("pin a link", &chain(&why)))?;
    Ok(carried)
}

/// By the driver, or if it cannot, by the kernel's stack.
fn attach_native(program: &mut Xdp, interface: &Interface) -> Result<(XdpLinkId, Carried), KernelError> {
    match program.attach_to_if_index(interface.index, XdpMode::Driver) {
        Ok(id) => Ok((id, Carried::Native)),
        Err(why) if is_final(&why) => Err(refused(interface, &why)),
        Err(native) => {
            let id = attach_generic(program, interface)?;
            tracing::warn!(
                "{}: its driver does not carry the program ({}); the kernel's stack does, at the price of making \
                 each frame a packet first",
                interface.name,
                chain(&native)
            );
            Ok((id, Carried::Generic))
        }
    }
}

fn attach_generic(program: &mut Xdp, interface: &Interface) -> Result<XdpLinkId, KernelError> {
    program.attach_to_if_index(interface.index, XdpMode::Skb).map_err(|why| refused(interface, &why))
}

/// Replaces the program of a pinned link, which stays.
fn replace(program: &mut Xdp, pin: &Path) -> Result<(), Box<dyn Error>> {
    let link = XdpLink::try_from(FdLink::from(PinnedLink::from_pin(pin)?))?;
    let id = program.attach_to_link(link)?;
    program.take_link(id)?;
    Ok(())
}

/// Whether the kernel's stack would say the same as the driver.
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
