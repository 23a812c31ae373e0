//! System calls that no crate in use offers.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `BPF_OBJ_GET`: opens a pinned object.
const OPEN_PINNED: libc::c_int = 7;
/// `BPF_LINK_DETACH`: ends a link even if others hold it.
const DETACH: libc::c_int = 34;

/// The kernel's layout of the argument for opening.
#[repr(C)]
struct Open {
    path: u64,
    fd: u32,
    flags: u32,
}

/// The kernel's layout of the argument for detaching.
#[repr(C)]
struct Link {
    fd: u32,
}

/// Detaches the program of a pinned link from its interface. When this returns, the program no longer runs
/// there; without this call, the kernel would detach it some time after the link's last name is gone. A
/// link whose interface is gone is left alone.
pub(super) fn detach(pin: &Path) -> io::Result<()> {
    let link = open(pin)?;
    let mut asked = Link { fd: link.as_raw_fd().cast_unsigned() };
    // SAFETY: the command only reads a link's descriptor, and the link is open during the call.
    match unsafe { bpf(DETACH, &mut asked) } {
        Err(why) if why.raw_os_error() == Some(libc::ENOLINK) => Ok(()),
        detached => detached.map(drop),
    }
}

fn open(pin: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(pin.as_os_str().as_bytes())?;
    let mut asked = Open { path: path.as_ptr() as u64, fd: 0, flags: 0 };
    // SAFETY: the command reads the path, which is zero-terminated and outlives the call.
    let fd = unsafe { bpf(OPEN_PINNED, &mut asked)? };
    // SAFETY: the kernel has just created the descriptor, with close-on-exec, and this process owns it
    // alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
/// The argument must be what the command expects, and its pointers must be valid.
unsafe fn bpf<T>(command: libc::c_int, asked: &mut T) -> io::Result<i32> {
    // SAFETY: the caller promises a valid argument; the kernel reads no more bytes than the given size.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *asked, size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as i32) }
}
