//! Advice for errors of the operating system: one table, by the attempted action and the error number
//! (errno).
//!
//! Advice names a cause, so it must fit the number: a busy port needs other advice than an address that
//! this machine does not have. An error that no row fits gets advice that assumes no cause.

use std::io::{Error, ErrorKind};

/// The operation that was attempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// To listen on an address.
    Listen,
    /// To start a thread or its runtime.
    Thread,
    /// To start another program.
    Program,
    /// To read a file.
    Read,
    /// To create or write a file or a folder.
    Write,
    /// To print to stdout.
    Print,
    /// To create or map memory that processes share.
    Share,
    /// To find a route to a receiver.
    Route,
    /// To look at the packets of this network's links.
    Tap,
    /// To pin a thread to a core.
    Pin,
    /// To create network namespaces on this machine.
    Divide,
    /// To get a file descriptor from the kernel, such as one for signals.
    Descriptor,
}

use Attempt::{Descriptor, Divide, Listen, Pin, Print, Program, Read, Route, Share, Tap, Thread, Write};

/// All attempts that need a file descriptor.
const WITH_DESCRIPTOR: &[Attempt] =
    &[Listen, Thread, Program, Read, Write, Share, Route, Tap, Divide, Descriptor];
/// All attempts that name a path.
const AT_PATH: &[Attempt] = &[Program, Read, Write, Share];
/// All attempts that may lengthen a file.
const LENGTHENING: &[Attempt] = &[Write, Print, Share];

const DESCRIPTORS: &str = "raise this process's limit of open files (ulimit -n)";

/// Rows of the table: attempts, an error number, and the advice.
const ROWS: &[(&[Attempt], i32, &str)] = &[
    (
        &[Listen],
        libc::EADDRINUSE,
        "end what listens there (ss -lntup), or choose another port; 0 lets the kernel choose",
    ),
    (
        &[Listen],
        libc::EADDRNOTAVAIL,
        "the address is not one of this machine's: ip -brief address lists those that are",
    ),
    (
        &[Listen],
        libc::EACCES,
        "ports below net.ipv4.ip_unprivileged_port_start take root or CAP_NET_BIND_SERVICE: choose one from \
         1024 on",
    ),
    (
        &[Listen, Route],
        libc::EAFNOSUPPORT,
        "this machine has no addresses of this family: give one of the other (IPv4 or IPv6)",
    ),
    (&[Listen], libc::EINVAL, "an address of a link needs the link behind a `%`: such as [fe80::1%2]:7400"),
    (
        &[Listen],
        libc::ENODEV,
        "the address names a link that is not here: ip -brief link lists those that are",
    ),
    (
        &[Thread, Program],
        libc::EAGAIN,
        "end other programs, or raise the limit of processes and threads (ulimit -u, or pids.max of the \
         control group)",
    ),
    (
        &[Thread, Program],
        libc::EPERM,
        "a policy of this machine forbids it (seccomp, or a container's): start it outside of that",
    ),
    (&[Program], libc::ENOENT, "no such program is there: give the path of an executable"),
    (
        &[Program],
        libc::EACCES,
        "it is not executable, or its folder is closed to this user: chmod +x, or give another",
    ),
    (&[Program], libc::ENOEXEC, "it is no program of this machine's kind: build it here"),
    (&[Program], libc::ETXTBSY, "it is being written: wait until it is built"),
    (&[Program], libc::E2BIG, "its arguments and the environment are too long: give it less of both"),
    (&[Read], libc::ENOENT, "there is no such file: give the path of one"),
    (&[Read], libc::EISDIR, "that is a folder: name a file in it"),
    (&[Write], libc::EISDIR, "that is a folder: name a file"),
    (&[Write, Share], libc::ENOENT, "make the folder first, or name another"),
    (&[Write, Share], libc::EEXIST, "something else has this name: remove it, or choose another"),
    (AT_PATH, libc::ENOTDIR, "a part of the path is a file and no folder: correct it"),
    (AT_PATH, libc::ENAMETOOLONG, "the name is longer than the file system takes: give a shorter one"),
    (AT_PATH, libc::ELOOP, "its links go round in a circle: name the file itself"),
    (&[Read], libc::EACCES, "let this user read it (chmod), or name another"),
    (&[Write, Share], libc::EACCES, "name a folder that this user can write"),
    (&[Write, Share], libc::EPERM, "name a folder that this user can write"),
    (&[Write, Share], libc::EROFS, "the file system is read-only: name a folder on another"),
    (&[Write, Share], libc::ETXTBSY, "a program runs from it: name another"),
    (&[Write, Print], libc::ENOSPC, "free some space there, or send it somewhere else"),
    (
        &[Share],
        libc::ENOSPC,
        "free some space there, or give a folder with more, in memory if there is one (mount -o \
         remount,size=)",
    ),
    (LENGTHENING, libc::EDQUOT, "this user's quota there is used up: free some, or send it somewhere else"),
    (
        LENGTHENING,
        libc::EFBIG,
        "raise the limit of a file's length (ulimit -f), or send it to another file system",
    ),
    (
        &[Share],
        libc::ENODEV,
        "files there cannot be mapped: give a folder on another file system, such as /dev/shm",
    ),
    (&[Read, Write, Print, Share], libc::EIO, "the device fails: see dmesg, and use another"),
    (&[Print], libc::EPIPE, "keep its reader running"),
    (
        &[Route],
        libc::ENETUNREACH,
        "this machine has no way there: ip route get says so; name an address that it can reach",
    ),
    (
        &[Route],
        libc::EHOSTUNREACH,
        "this machine has no way there: ip route get says so; name an address that it can reach",
    ),
    (&[Route], libc::EACCES, "that is a broadcast address, or a rule forbids it: name one receiver"),
    (&[Route], libc::EINVAL, "an address of a link needs the link behind a `%`: such as [fe80::1%2]:7400"),
    (&[Tap], libc::EPERM, "it takes root or the capability CAP_NET_RAW; or leave that out"),
    (&[Tap], libc::EAFNOSUPPORT, "the kernel has no packet sockets (CONFIG_PACKET): leave that out"),
    (&[Tap], libc::EOPNOTSUPP, "the kernel cannot say whose packets these are: leave that out"),
    (&[Pin], libc::EINVAL, "this process may not use that core: choose another, or none"),
    (&[Pin], libc::EPERM, "a policy of this machine forbids it: let the kernel place the thread"),
    (&[Divide], libc::EPERM, "it takes root (or the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN)"),
    (&[Divide], libc::EACCES, "it takes root (or the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN)"),
    (&[Divide], libc::ENOSPC, "raise user.max_net_namespaces (sysctl), or end what holds some"),
    (
        &[Divide],
        libc::EOPNOTSUPP,
        "the kernel lacks namespaces or veth (CONFIG_NET_NS, CONFIG_VETH): boot another",
    ),
    (
        &[Divide],
        libc::ENOSYS,
        "the kernel lacks namespaces or veth (CONFIG_NET_NS, CONFIG_VETH): boot another",
    ),
    (WITH_DESCRIPTOR, libc::EMFILE, DESCRIPTORS),
    (
        WITH_DESCRIPTOR,
        libc::ENFILE,
        "the whole machine has too many files open: end other programs, or raise fs.file-max (sysctl)",
    ),
    (
        &[Listen, Thread, Program, Read, Share, Route, Tap, Divide, Descriptor],
        libc::ENOMEM,
        "free some memory, or raise the limit of the control group (memory.max)",
    ),
    (&[Listen, Route, Tap, Divide], libc::ENOBUFS, "free some memory: the kernel has none for sockets"),
    (&[Descriptor], libc::ENOSPC, "raise fs.epoll.max_user_watches (sysctl), or end other programs"),
];

/// Advice for `why`, the error of an `attempt`: the rest of a sentence, after a semicolon.
pub fn advice(attempt: Attempt, why: &Error) -> &'static str {
    let number = why.raw_os_error().or_else(|| number_of(why.kind()));
    let row = ROWS.iter().find(|(attempts, of, _)| attempts.contains(&attempt) && Some(*of) == number);
    row.map_or_else(|| supposing_nothing(attempt), |(.., advice)| advice)
}

/// The error number that stands for an error without one, as libraries make them.
fn number_of(kind: ErrorKind) -> Option<i32> {
    Some(match kind {
        ErrorKind::NotFound => libc::ENOENT,
        ErrorKind::PermissionDenied => libc::EACCES,
        ErrorKind::AddrInUse => libc::EADDRINUSE,
        ErrorKind::AddrNotAvailable => libc::EADDRNOTAVAIL,
        ErrorKind::AlreadyExists => libc::EEXIST,
        ErrorKind::IsADirectory => libc::EISDIR,
        ErrorKind::NotADirectory => libc::ENOTDIR,
        ErrorKind::OutOfMemory => libc::ENOMEM,
        ErrorKind::ReadOnlyFilesystem => libc::EROFS,
        ErrorKind::StorageFull => libc::ENOSPC,
        ErrorKind::QuotaExceeded => libc::EDQUOT,
        ErrorKind::FileTooLarge => libc::EFBIG,
        ErrorKind::BrokenPipe => libc::EPIPE,
        ErrorKind::Unsupported => libc::EOPNOTSUPP,
        _ => return None,
    })
}

/// Advice that helps whatever the cause is.
const fn supposing_nothing(attempt: Attempt) -> &'static str {
    match attempt {
        Listen => "give another address",
        Thread | Descriptor => "see what else the system says (dmesg), and start it again",
        Program => "give another program, or build it anew",
        Read => "give another file",
        Write => "give another place",
        Print => "send it somewhere else",
        Share => "give another folder, in memory if there is one",
        Route => "name an address that this machine can reach (ip route get)",
        Tap => "leave that out",
        Pin => "choose another core, or none",
        Divide => "see what else the system says (dmesg), or run on plain sockets",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Attempt; 12] =
        [Listen, Thread, Program, Read, Write, Print, Share, Route, Tap, Pin, Divide, Descriptor];

    /// Words that assume a cause, and the error numbers that mean this cause.
    const SUPPOSING: &[(&str, &[i32])] = &[
        ("another port", &[libc::EADDRINUSE]),
        ("from 1024 on", &[libc::EACCES]),
        ("ulimit -u", &[libc::EAGAIN]),
        ("ulimit -n", &[libc::EMFILE]),
        ("ulimit -f", &[libc::EFBIG]),
        ("fs.file-max", &[libc::ENFILE]),
        ("memory", &[libc::ENOMEM, libc::ENOBUFS, libc::ENOSPC]),
        ("space", &[libc::ENOSPC, libc::EPERM, libc::EACCES, libc::ENOSYS, libc::EOPNOTSUPP]),
        ("quota", &[libc::EDQUOT]),
        ("read-only", &[libc::EROFS]),
        ("this user", &[libc::EACCES, libc::EPERM, libc::EDQUOT]),
        ("root", &[libc::EACCES, libc::EPERM]),
        ("not one of this machine's", &[libc::EADDRNOTAVAIL]),
        ("no such", &[libc::ENOENT]),
        ("folder first", &[libc::ENOENT]),
    ];

    #[test]
    fn advice_supposes_a_cause_only_where_the_number_means_it() {
        let mut fitting = 0;
        for attempt in ALL {
            // 133 is the largest error number of Linux.
            for number in 1..=133 {
                let advice = advice(attempt, &Error::from_raw_os_error(number));
                assert!(!advice.is_empty() && !advice.ends_with('.'), "{attempt:?} {number}: {advice}");
                let is_row = advice != supposing_nothing(attempt);
                fitting += usize::from(is_row);
                for (words, numbers) in SUPPOSING.iter().filter(|_| is_row) {
                    assert!(
                        !advice.contains(words) || numbers.contains(&number),
                        "{attempt:?} {number}: {advice}"
                    );
                }
            }
        }
        let rows: usize = ROWS.iter().map(|(attempts, ..)| attempts.len()).sum();
        assert_eq!(fitting, rows, "a row that another hides");
    }

    #[test]
    fn what_supposes_no_cause_names_none() {
        for attempt in ALL {
            let advice = supposing_nothing(attempt);
            let supposes = SUPPOSING.iter().find(|(words, _)| advice.contains(words) && *words != "memory");
            assert_eq!(supposes, None, "{advice}");
        }
    }

    #[test]
    fn an_error_that_a_library_made_is_told_as_the_systems_is() {
        for (kind, number) in [
            (ErrorKind::StorageFull, libc::ENOSPC),
            (ErrorKind::NotFound, libc::ENOENT),
            (ErrorKind::PermissionDenied, libc::EACCES),
        ] {
            let (made, given) = (Error::from(kind), Error::from_raw_os_error(number));
            assert_eq!(advice(Write, &made), advice(Write, &given), "{kind}");
        }
        assert_eq!(advice(Write, &Error::other("a bug")), supposing_nothing(Write));
    }

    #[test]
    fn an_address_that_is_taken_away_or_forbidden_is_told_apart() {
        let told = |number| advice(Listen, &Error::from_raw_os_error(number));
        assert!(told(libc::EADDRINUSE).contains("another port"));
        assert!(told(libc::EADDRNOTAVAIL).contains("ip -brief address"));
        assert!(told(libc::EACCES).contains("CAP_NET_BIND_SERVICE"));
        assert!(told(libc::EMFILE).contains("ulimit -n"));
    }

    #[test]
    fn an_attempt_at_a_thread_without_descriptors_is_not_told_to_have_more_threads() {
        let told = |number| advice(Thread, &Error::from_raw_os_error(number));
        assert!(told(libc::EMFILE).contains("ulimit -n") && !told(libc::EMFILE).contains("ulimit -u"));
        assert!(told(libc::EAGAIN).contains("ulimit -u"));
    }
}
