//! System calls that no crate in use offers safely.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// `ETHTOOL_GDRVINFO`: reads a link's driver.
const GET_DRIVER: u32 = 0x3;
/// `ETHTOOL_STXCSUM`: sets whether the hardware completes checksums.
const SET_TRANSMIT_CHECKSUM: u32 = 0x17;
/// `ETHTOOL_SGRO`: sets whether received packets of a flow are merged (GRO).
const SET_RECEIVE_JOINED: u32 = 0x2c;
/// `ETHTOOL_STSO` and `ETHTOOL_SGSO`: set whether packets longer than the MTU are sent, for others to divide.
const SET_SEND_JOINED: [u32; 2] = [0x1f, 0x24];

/// Moves the calling thread into a new network namespace.
pub(super) fn leave_network() -> io::Result<()> {
    // SAFETY: only unsharing the table of file descriptors would be unsafe; this does not.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// Gives the calling thread a copy of its mounts, and a working folder and file mask of its own.
pub(super) fn leave_mounts() -> io::Result<()> {
    // SAFETY: only unsharing the table of file descriptors would be unsafe; this does not.
    Ok(unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?)
}

/// Makes the kernel complete the checksums of frames that it sends on a link of this namespace. A veth pair
/// would pass frames on with incomplete checksums, and XDP would forward them.
pub(super) fn send_whole_checksums(link: &str) -> io::Result<()> {
    set(link, SET_TRANSMIT_CHECKSUM, 0)
}

/// Makes a veth end of this namespace accept frames that XDP redirects to it: they come through the receive
/// queue that exists only with GRO.
pub(super) fn take_redirected_frames(link: &str) -> io::Result<()> {
    set(link, SET_RECEIVE_JOINED, 1)
}

/// Makes a link of this namespace carry no frame longer than its MTU. Who captures its frames can then have
/// room for more of them: libpcap's 2 MiB hold 32 frames otherwise.
pub(super) fn join_no_packets(link: &str) -> io::Result<()> {
    SET_SEND_JOINED.into_iter().chain([SET_RECEIVE_JOINED]).try_for_each(|joined| set(link, joined, 0))
}

/// The layout of the kernel's `ethtool_value`.
#[repr(C)]
struct EthtoolValue {
    command: u32,
    value: u32,
}

fn set(link: &str, command: u32, value: u32) -> io::Result<()> {
    let mut value = EthtoolValue { command, value };
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut value).cast() };
    let mut request = libc::ifreq { ifr_name: name(link)?, ifr_ifru };
    // SAFETY: both commands read the value behind the pointer, which outlives the call.
    unsafe { control(libc::SIOCETHTOOL, &mut request) }
}

/// Whether a link of this namespace carries frames: its other end is up, and the kernel has noticed.
pub(super) fn is_running(link: &str) -> io::Result<bool> {
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_flags: 0 };
    let mut request = libc::ifreq { ifr_name: name(link)?, ifr_ifru };
    // SAFETY: the command reads only the name and writes the flags.
    unsafe { control(libc::SIOCGIFFLAGS, &mut request)? };
    // SAFETY: the command has written the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    Ok(i32::from(flags) & libc::IFF_RUNNING != 0)
}

/// The driver of a link of this namespace.
pub(crate) fn driver_of(link: &str) -> io::Result<String> {
    let mut asked = EthtoolDriver { command: GET_DRIVER, driver: [0; 32], others: [0; 160] };
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut asked).cast() };
    let mut request = libc::ifreq { ifr_name: name(link)?, ifr_ifru };
    // SAFETY: the command writes no more than the value behind the pointer, which outlives the call.
    unsafe { control(libc::SIOCETHTOOL, &mut request)? };
    let name = asked.driver.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// The layout of the kernel's `ethtool_drvinfo`.
#[repr(C)]
struct EthtoolDriver {
    command: u32,
    driver: [u8; 32],
    others: [u8; 160],
}

/// # Safety
/// The request must be what the command expects, and its pointer must be valid.
unsafe fn control(command: libc::c_ulong, request: &mut libc::ifreq) -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: as the caller promises; the socket is open during the call.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), command, &raw mut *request) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A link's name as the kernel expects it, with a zero byte at its end.
fn name(link: &str) -> io::Result<[libc::c_char; libc::IFNAMSIZ]> {
    let mut name = [0; libc::IFNAMSIZ];
    if link.len() >= name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (to, from) in name.iter_mut().zip(link.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(name)
}
