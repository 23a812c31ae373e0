//! A rack's network on one machine: anonymous network namespaces joined by veth pairs.
//!
//! A [`Space`] is a network namespace that exists as long as something holds it: this value, a thread that
//! moved in, or a socket opened inside. It has no name that other processes could find, so the kernel
//! removes it with its links and addresses when its holders are gone, even after kill -9. The same holds
//! for the mounts of [`mounts_of_its_own`], where a BPF file system holds a switch's pins.
//!
//! [`RackSpaces`] consists of a space for the switch and one for each host. A link on which native XDP
//! works joins each host's space to the switch's. Left out: traffic that leaves the machine.

mod ends;
mod faults;
mod netlink;
mod pass;
mod side;
#[expect(unsafe_code, reason = "system calls")]
mod sys;

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::panic::resume_unwind;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use aya::Ebpf;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::KernelError;
pub use ends::{LinkEnd, MTU_BYTES};
pub use faults::LinkFaults;
use netlink::Netlink;
pub use side::SideSpace;
pub(crate) use sys::driver_of;

/// The largest number of hosts in a rack: the third byte of a link's addresses is the host's number.
pub const HOSTS_MAX: usize = 250;
/// The name of each host's link to the switch.
pub const HOST_LINK: &str = "rack";
/// Where a BPF file system is mounted.
pub const BPF_FOLDER: &str = "/sys/fs/bpf";

/// The settings of the kernel's IPv6; the folder does not exist if the kernel has none.
const IPV6: &str = "/proc/sys/net/ipv6/conf/all";
/// How long the kernel may take until a change is in effect.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// `RTF_LOCAL`.
const ROUTE_IS_LOCAL: u32 = 0x8000_0000;
const LOOPBACK: u32 = 1;
/// The index of the first link. Indices below may belong to the kernel's own links in a new namespace.
const FIRST_LINK: u32 = 100;

/// A network namespace without a name.
pub struct Space {
    net: File,
}

impl Space {
    /// Creates a namespace, with its loopback up.
    ///
    /// # Errors
    /// [`KernelError::Space`] with the kernel's reason; needs root.
    pub fn new() -> Result<Self, KernelError> {
        // On a thread of its own, since a thread that leaves its namespace may be unable to return.
        thread::scope(|scope| {
            let made = scope.spawn(|| {
                sys::leave_network().map_err(failed("make a network namespace"))?;
                let space = Self::current()?;
                space.netlink()?.set_up(LOOPBACK).map_err(failed("bring a loopback up"))?;
                Ok(space)
            });
            made.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// The calling thread's namespace.
    ///
    /// # Errors
    /// [`KernelError::Space`] with the kernel's reason.
    pub fn current() -> Result<Self, KernelError> {
        let net = File::open("/proc/thread-self/ns/net").map_err(failed("open a network namespace"))?;
        Ok(Self { net })
    }

    /// Moves the calling thread into this namespace. Threads and processes that it starts later begin there
    /// too.
    ///
    /// # Errors
    /// [`KernelError::Space`] with the kernel's reason.
    pub fn enter(&self) -> Result<(), KernelError> {
        let moved = move_into_link_name_space(self.net.as_fd(), Some(LinkNameSpaceType::Network));
        moved.map_err(|why| failed("move into a network namespace")(why.into()))
    }

    /// Runs `work` in this namespace on the calling thread, which then returns to its old one.
    ///
    /// # Errors
    /// [`KernelError::Space`] with the kernel's reason, if the thread cannot move.
    ///
    /// # Panics
    /// If the thread cannot return: it must not continue in an unexpected network.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> Result<T, KernelError> {
        let _back = NamespaceGuard(Self::current()?);
        self.enter()?;
        Ok(work())
    }

    /// Adds an address to the loopback, so that sockets can bind it.
    ///
    /// # Errors
    /// [`KernelError::Space`] with the kernel's reason, for example if the address exists already.
    pub fn add_address(&self, ip: IpAddr) -> Result<(), KernelError> {
        let added = self.netlink()?.add_address(LOOPBACK, ip, all_bits(ip));
        added.map_err(failed("give a loopback an address"))?;
        self.within(|| wait_until_routed(ip))?
    }

    /// Joins this namespace to another by a veth pair, whose ends are down at first.
    ///
    /// # Errors
    /// [`KernelError::Space`] with the kernel's reason, for example if a name or an index is taken.
    pub fn join(&self, here: &LinkEnd, other: &Self, there: &LinkEnd) -> Result<(), KernelError> {
        let joined = self.netlink()?.add_veth(here, there, other.net.as_fd());
        joined.map_err(failed("join two namespaces by a veth pair"))
    }

    fn netlink(&self) -> Result<Netlink, KernelError> {
        self.within(Netlink::open)?.map_err(failed("open a netlink socket"))
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Space").field(&self.net).finish()
    }
}

/// Returns the calling thread to a namespace when dropped.
struct NamespaceGuard(Space);

impl Drop for NamespaceGuard {
    fn drop(&mut self) {
        // The thread was there before, and moving does not take the permission to move away.
        self.0.enter().expect("a thread can return to where it was");
    }
}

/// The namespaces of a rack: one for the switch, and one for each host.
#[derive(Debug)]
pub struct RackSpaces {
    switch: Space,
    hosts: Vec<HostSpace>,
    has_ipv6: bool,
}

/// A host's namespace, and its link to the switch.
#[derive(Debug)]
pub struct HostSpace {
    pub space: Space,
    pub at_switch: LinkEnd,
    pub at_host: LinkEnd,
    number: u8,
    has_ipv6: bool,
    /// A program without which the host's end would not accept frames that the switch's XDP program sends
    /// back.
    pass: Option<Ebpf>,
}

impl RackSpaces {
    /// Creates the namespaces of a switch and `hosts` hosts.
    ///
    /// The switch forwards packets that are not for it. Senders complete the checksums of their frames,
    /// since XDP sees frames before any hardware would complete them. Hosts accept frames that XDP
    /// redirects or sends back.
    ///
    /// # Errors
    /// [`KernelError::Space`] with what failed and the kernel's reason; needs root.
    pub fn new(hosts: usize) -> Result<Self, KernelError> {
        let switch = Space::new()?;
        let has_ipv6 = Path::new(IPV6).exists();
        let netlink = switch.netlink()?;
        let hosts = (0..hosts.min(HOSTS_MAX)).map(|place| HostSpace::joined(&switch, place as u8, has_ipv6));
        let rack = Self { hosts: hosts.collect::<Result<_, _>>()?, switch, has_ipv6 };
        for ip in rack.switch_addresses() {
            netlink.add_address(LOOPBACK, ip, all_bits(ip)).map_err(failed("give the switch its address"))?;
        }
        rack.switch.within(|| rack.prepare_switch())??;
        for host in &rack.hosts {
            host.space.within(|| host.prepare())??;
        }
        Ok(rack)
    }

    /// The switch's namespace.
    pub fn switch(&self) -> &Space {
        &self.switch
    }

    /// The hosts, in the order of their links.
    pub fn hosts(&self) -> &[HostSpace] {
        &self.hosts
    }

    /// Detaches the programs from the hosts' ends of the links, to make room for other programs.
    pub fn bare_ends(&mut self) {
        for host in &mut self.hosts {
            drop(host.pass.take());
        }
    }

    /// Prepares the links for a switch that captures frames, so that it has room for bursts.
    ///
    /// # Errors
    /// [`KernelError::Space`] with the kernel's reason.
    pub fn bare_links(&mut self) -> Result<(), KernelError> {
        self.bare_ends();
        let joined = self.switch.within(|| self.links().try_for_each(sys::join_no_packets))?;
        joined.map_err(failed("adjust a link"))
    }

    /// The names of the switch's links, in the order of the hosts.
    pub fn links(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| host.at_switch.name.as_str())
    }

    /// The switch's addresses, which all hosts can reach: IPv4, and IPv6 if the kernel has it.
    pub fn switch_addresses(&self) -> Vec<IpAddr> {
        of_families(self.has_ipv6, Ipv4Addr::new(10, 77, 0, 1), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1))
    }

    fn prepare_switch(&self) -> Result<(), KernelError> {
        write("/proc/sys/net/ipv4/ip_forward", "1")?;
        if self.has_ipv6 {
            write(&format!("{IPV6}/forwarding"), "1")?;
        }
        // Frames from the switch's own stack need complete checksums too: XDP may redirect them.
        self.links().try_for_each(sys::send_whole_checksums).map_err(failed("adjust a link"))?;
        self.links().try_for_each(wait_until_running)?;
        let at_links = self.hosts.iter().flat_map(|host| host.at_link(1));
        at_links.chain(self.switch_addresses()).try_for_each(wait_until_routed)
    }
}

impl HostSpace {
    fn joined(switch: &Space, place: u8, has_ipv6: bool) -> Result<Self, KernelError> {
        let space = Space::new()?;
        let number = place + 1;
        let end = |name: String, index, side| LinkEnd { name, index, mac: [2, 0x77, 0, 0, number, side] };
        let host = Self {
            space,
            at_switch: end(format!("host{number}"), FIRST_LINK + u32::from(place), 1),
            at_host: end(HOST_LINK.to_owned(), FIRST_LINK, 2),
            number,
            has_ipv6,
            pass: None,
        };
        switch.join(&host.at_switch, &host.space, &host.at_host)?;
        host.address(&switch.netlink()?, &host.at_switch, 1)?;
        let netlink = host.space.netlink()?;
        host.address(&netlink, &host.at_host, 2)?;
        host.at_link(1)
            .into_iter()
            .try_for_each(|gateway| netlink.add_default_route(gateway))
            .map_err(failed("give a host its route"))?;
        let pass = host.space.within(|| pass::attach(&host.at_host.name))??;
        Ok(Self { pass, ..host })
    }

    /// The host's addresses: IPv4, and IPv6 if the kernel has it.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.at_link(2)
    }

    /// The addresses of a link's end: end 1 is the switch's, end 2 the host's.
    fn at_link(&self, end: u8) -> Vec<IpAddr> {
        let (number, last) = (self.number, end.into());
        of_families(
            self.has_ipv6,
            Ipv4Addr::new(10, 77, number, end),
            Ipv6Addr::new(0xfd77, 0, 0, number.into(), 0, 0, 0, last),
        )
    }

    fn address(&self, netlink: &Netlink, at: &LinkEnd, end: u8) -> Result<(), KernelError> {
        let link_bits = |ip: IpAddr| if ip.is_ipv4() { 24 } else { 64 };
        netlink
            .set_up(at.index)
            .and_then(|()| {
                let mut addresses = self.at_link(end).into_iter();
                addresses.try_for_each(|ip| netlink.add_address(at.index, ip, link_bits(ip)))
            })
            .map_err(failed("give a link its addresses"))
    }

    fn prepare(&self) -> Result<(), KernelError> {
        if self.has_ipv6 {
            // No router announces routes here, and router solicitations would be frames that no test
            // expects.
            write(&format!("/proc/sys/net/ipv6/conf/{HOST_LINK}/accept_ra"), "0")?;
        }
        sys::send_whole_checksums(&self.at_host.name)
            .and_then(|()| sys::take_redirected_frames(&self.at_host.name))
            .map_err(failed("adjust a link"))?;
        wait_until_running(&self.at_host.name)?;
        self.addresses().into_iter().try_for_each(wait_until_routed)
    }
}

/// Gives the calling thread, and what it starts later, mounts of its own with an empty BPF file system in
/// [`BPF_FOLDER`]. Later mounts of other processes are visible too. The new mounts are invisible to others,
/// and disappear with the last process that sees them.
///
/// # Errors
/// [`KernelError::Space`] with the kernel's reason; needs root.
pub fn mounts_of_its_own() -> Result<(), KernelError> {
    let doing = "make mounts of its own";
    sys::leave_mounts().map_err(failed(doing))?;
    let down = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", down).map_err(|why: Errno| match why {
        Errno::INVAL => failed(
            "make mounts of its own in a chroot whose / is no mount (bind it to itself first)",
        )(why.into()),
        why => failed(doing)(why.into()),
    })?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    let mounted = mount("bpf", BPF_FOLDER, "bpf", flags, None);
    mounted.map_err(|why| failed("mount a BPF file system")(why.into()))
}

/// Waits until the kernel has noticed that both ends of a link are up: it drops frames until then.
fn wait_until_running(link: &str) -> Result<(), KernelError> {
    wait_until("wait for a link", || sys::is_running(link))
}

/// Waits until the kernel has added the route of an IPv6 address, which it does some time after adding the
/// address.
fn wait_until_routed(ip: IpAddr) -> Result<(), KernelError> {
    let IpAddr::V6(ip) = ip else { return Ok(()) };
    let to = format!("{:032x} 80 ", ip.to_bits());
    let is_own = |line: &str| {
        let flags = line.split_whitespace().nth(8).and_then(|flags| u32::from_str_radix(flags, 16).ok());
        line.starts_with(&to) && flags.is_some_and(|flags| flags & ROUTE_IS_LOCAL != 0)
    };
    wait_until("wait for an address", || {
        Ok(fs::read_to_string("/proc/thread-self/net/ipv6_route")?.lines().any(is_own))
    })
}

fn wait_until(doing: &'static str, is_so: impl Fn() -> io::Result<bool>) -> Result<(), KernelError> {
    let began = Instant::now();
    while !is_so().map_err(failed(doing))? {
        if began.elapsed() > PATIENCE {
            return Err(failed(doing)(io::ErrorKind::TimedOut.into()));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn of_families(has_ipv6: bool, four: Ipv4Addr, six: Ipv6Addr) -> Vec<IpAddr> {
    let six = has_ipv6.then_some(six).map(IpAddr::from);
    std::iter::once(four.into()).chain(six).collect()
}

fn all_bits(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn write(file: &str, text: &str) -> Result<(), KernelError> {
    fs::write(file, text).map_err(failed("change a setting of the network"))
}

fn failed(doing: &'static str) -> impl Fn(io::Error) -> KernelError {
    move |why| KernelError::Space { doing, why }
}
