//! The system calls that no crate of ours has.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// `BPF_OBJ_GET`: opens what is pinned under a name.
const OPEN_PINNED: libc::c_int = 7;
/// `BPF_LINK_DETACH`: ends a link whoever holds it.
const DETACH: libc::c_int = 34;

/// What the call takes for opening, as the kernel lays it out.
#[repr(C)]
struct Open {
    path: u64,
    fd: u32,
    flags: u32,
}

/// What the call takes for detaching.
#[repr(C)]
struct Link {
    fd: u32,
}

/// Takes the program of a pinned link off its interface. It has ended there when this returns; without it,
/// the kernel gets to it some time after the link's last name went away. A link whose interface went away is
/// left as it is.
pub(super) fn detach(pin: &Path) -> io::Result<()> {
    let link = open(pin)?;
    let mut asked = Link { fd: link.as_raw_fd().cast_unsigned() };
    // SAFETY: the command reads a link's descriptor and nothing else, and the link is open during the call.
    match unsafe { bpf(DETACH, &mut asked) } {
        Err(why) if why.raw_os_error() == Some(libc::ENOLINK) => Ok(()),
        detached => detached.map(drop),
    }
}

fn open(pin: &Path) -> io::Result<OwnedFd> {
    let path = CString::new(pin.as_os_str().as_bytes())?;
    let mut asked = Open { path: path.as_ptr() as u64, fd: 0, flags: 0 };
    // SAFETY: the command reads the path, which ends with a zero and outlives the call.
    let fd = unsafe { bpf(OPEN_PINNED, &mut asked)? };
    // SAFETY: the kernel has just made it, with close-on-exec, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// # Safety
/// What is asked must be what the command takes, and what it points to must be valid.
unsafe fn bpf<T>(command: libc::c_int, asked: &mut T) -> io::Result<i32> {
    // SAFETY: the caller's promise; the kernel reads no more than the size says.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, command, &raw mut *asked, size_of::<T>()) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer as i32) }
}
