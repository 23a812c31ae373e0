//! The system calls of this crate's sockets and threads.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use sluice_wire::Nanos;

/// The time that every [`Clock`](crate::clock::Clock) shows.
pub fn monotonic() -> Nanos {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// The wall clock, ns since 1970.
pub(crate) fn realtime() -> u64 {
    read_clock(libc::CLOCK_REALTIME).0
}

/// CPU time that the calling thread has used.
pub fn thread_cpu() -> Nanos {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read_clock(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec that the call writes to; the three clocks used exist on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Pins the calling thread to `core`.
pub(crate) fn pin(core: usize) -> io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: a cpu_set_t is a plain bit array, for which all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `core` was checked against the size of the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: `set` is valid for the given size; thread 0 is the caller.
    check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) }).map(drop)
}

/// Makes the calling thread's timers precise to a microsecond, instead of the usual 50.
pub fn sharpen_timers() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and changes only the calling thread; a failure is
    // harmless.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000 as libc::c_ulong) };
}

/// An event counter in the kernel that a poll can wait for.
pub(super) fn event_fd() -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes no pointers.
    let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: `fd` was just opened, and no other value owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn check(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// Whether the error is about one destination (as ICMP and ICMPv6 report it); the socket itself still
/// works.
pub(super) fn is_of_a_peer(why: &io::Error) -> bool {
    const OF_A_PEER: [libc::c_int; 10] = [
        libc::ECONNREFUSED,
        libc::EHOSTUNREACH,
        libc::ENETUNREACH,
        libc::EHOSTDOWN,
        libc::ENONET,
        libc::ENOPROTOOPT,
        libc::EOPNOTSUPP,
        libc::EMSGSIZE,
        libc::EPROTO,
        libc::EACCES,
    ];
    why.raw_os_error().is_some_and(|errno| OF_A_PEER.contains(&errno))
}

/// Increments an event counter, which ends a poll for it.
pub(super) fn ring(event: BorrowedFd<'_>) {
    let one = 1_u64;
    // SAFETY: the kernel reads the eight bytes of `one`. The call fails only if the event is already
    // pending.
    unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Takes an event back, so that no poll finds it.
pub(super) fn quiet(event: BorrowedFd<'_>) {
    let mut count = 0_u64;
    // SAFETY: the kernel writes eight bytes to `count`. The call fails only if there is no event.
    unsafe { libc::read(event.as_raw_fd(), (&raw mut count).cast(), 8) };
}

/// An `epoll` that tells of edges of one file.
#[cfg(test)]
pub(super) struct Edges(OwnedFd);

#[cfg(test)]
impl Edges {
    pub(super) fn of(file: std::os::fd::RawFd) -> Self {
        let mut wanted = libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: 0 };
        // SAFETY: the first call has no memory of ours, and its result is owned by nobody else; `wanted` is
        // one valid entry.
        unsafe {
            let epoll = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            assert_eq!(libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, file, &raw mut wanted), 0);
            Self(FromRawFd::from_raw_fd(epoll))
        }
    }

    /// Whether there was an edge since the last time.
    pub(super) fn came(&self) -> bool {
        let mut told = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: `told` is room for one entry.
        unsafe { libc::epoll_wait(self.0.as_raw_fd(), &raw mut told, 1, 0) == 1 }
    }
}

/// Whether a read of the file would not wait.
#[cfg(test)]
pub(super) fn can_be_read(file: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: `poll` is one valid entry.
    unsafe { libc::poll(&raw mut poll, 1, 0) == 1 }
}

/// The event that ended a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Woken {
    /// Whether the socket has a pending error.
    pub(super) error: bool,
}

/// Waits until the socket is readable, the event is signalled (the call resets it), or the time is over.
pub(super) fn wait(
    socket: BorrowedFd<'_>,
    event: BorrowedFd<'_>,
    longest: Option<Nanos>,
) -> io::Result<Woken> {
    let poll = |fd: BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut fds = [poll(socket), poll(event)];
    let time = longest.map(|Nanos(ns)| libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: `fds` holds two valid entries; `time` is null or points to a timespec that outlives the call.
    match check(unsafe { libc::ppoll(fds.as_mut_ptr(), 2, time, ptr::null()) }) {
        Ok(_) => {}
        Err(why) if why.kind() == io::ErrorKind::Interrupted => return Ok(Woken::default()),
        Err(why) => return Err(why),
    }
    if fds[1].revents != 0 {
        quiet(event);
    }
    Ok(Woken { error: fds[0].revents & libc::POLLERR != 0 })
}

/// An epoll set.
pub(super) fn ready_set() -> io::Result<OwnedFd> {
    // SAFETY: epoll_create1 takes no pointers.
    let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
    // SAFETY: `fd` was just opened, and no other value owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Adds a file to a set, with this token.
pub(super) fn watch(set: BorrowedFd<'_>, file: BorrowedFd<'_>, token: u64) -> io::Result<()> {
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: token };
    // SAFETY: `event` is valid and is only read.
    let answer =
        unsafe { libc::epoll_ctl(set.as_raw_fd(), libc::EPOLL_CTL_ADD, file.as_raw_fd(), &raw mut event) };
    check(answer).map(drop)
}

/// Finds the readable files of a set, without waiting. Returns how many of `events` were filled in.
pub(super) fn ready(set: BorrowedFd<'_>, events: &mut [libc::epoll_event]) -> io::Result<usize> {
    let most = libc::c_int::try_from(events.len()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel writes at most `most` events, for which there is room.
    match check(unsafe { libc::epoll_wait(set.as_raw_fd(), events.as_mut_ptr(), most, 0) }) {
        Ok(filled) => Ok(filled as usize),
        Err(why) if why.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(why) => Err(why),
    }
}

/// Sets a socket option that is a number.
pub(super) fn set_option(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    let bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads one c_int from `value`.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, (&raw const value).cast(), bytes) })
        .map(drop)
}

/// Enables departure times for a socket's datagrams, by the monotonic clock.
pub(super) fn take_departure_times(socket: BorrowedFd<'_>) -> io::Result<()> {
    /// The kernel's constant; `libc` does not have it.
    const SO_TXTIME: libc::c_int = 61;
    let how = libc::sock_txtime { clockid: libc::CLOCK_MONOTONIC, flags: 0 };
    let bytes = size_of_val(&how) as libc::socklen_t;
    // SAFETY: the kernel reads one sock_txtime from `how`.
    check(unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_TXTIME, (&raw const how).cast(), bytes)
    })
    .map(drop)
}

/// Datagrams that the kernel dropped because the socket's buffer was full.
pub(super) fn kernel_drops(socket: BorrowedFd<'_>) -> u64 {
    /// The kernel's constant; `libc` does not have it.
    const SO_MEMINFO: libc::c_int = 55;
    let mut numbers = [0_u32; 16];
    let mut bytes = size_of_val(&numbers) as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes into `numbers`.
    let answer = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            numbers.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    if answer == 0 { u64::from(numbers[libc::SK_MEMINFO_DROPS as usize]) } else { 0 }
}

/// A socket that can forge ICMP messages; needs a privilege.
#[cfg(test)]
pub(super) fn raw_icmp() -> io::Result<OwnedFd> {
    // SAFETY: socket takes no pointers.
    let fd = check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW, libc::IPPROTO_ICMP) })?;
    // SAFETY: `fd` was just opened, and no other value owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A non-blocking socket that receives a copy of every frame that this network namespace sends or receives;
/// needs a privilege.
pub(crate) fn packet_socket() -> io::Result<OwnedFd> {
    let all = libc::c_int::from((libc::ETH_P_ALL as u16).to_be());
    // SAFETY: socket takes no pointers.
    let fd = check(unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK, all) })?;
    // SAFETY: `fd` was just opened, and no other value owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Moves the calling thread into a new network namespace without links; needs a privilege.
#[cfg(test)]
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: unshare takes no pointers, and this flag affects only the calling thread.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(drop)
}

/// Moves the calling thread into this network namespace.
#[cfg(test)]
pub(crate) fn enter_network(network: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: setns takes no pointers, and this flag affects only the calling thread.
    check(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}
