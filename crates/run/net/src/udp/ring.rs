//! Batches of datagrams in the layout of `recvmmsg` and `sendmmsg`.
//!
//! The arrays are allocated once; each batch rewrites only the fields that the kernel or the next datagram
//! changes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use sluice_wire::{Endpoint, Nanos};

use super::name::{Family, Name};
use crate::sys::check;

/// The largest number of datagrams per system call.
pub const BATCH: usize = 64;

/// Bytes for one datagram's control messages: a timestamp, and some spare room.
const CONTROL_BYTES: usize = 64;

/// Offsets of a control message's fields in the kernel's layout.
const LENGTH_AT: usize = std::mem::offset_of!(libc::cmsghdr, cmsg_len);
const LEVEL_AT: usize = std::mem::offset_of!(libc::cmsghdr, cmsg_level);
const KIND_AT: usize = std::mem::offset_of!(libc::cmsghdr, cmsg_type);
const DATA: usize = size_of::<libc::cmsghdr>();

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// A batch of received datagrams.
pub(super) struct ReceiveRing {
    headers: Vec<libc::mmsghdr>,
    names: Vec<Name>,
    controls: Vec<Control>,
    bytes: Vec<u8>,
    _vectors: Vec<libc::iovec>,
    stride: usize,
    /// The number of datagrams per system call.
    batch: usize,
    filled: usize,
    stamps: bool,
}

// SAFETY: the raw pointers in `headers` and `_vectors` point into this value's own heap blocks, which move
// with it.
unsafe impl Send for ReceiveRing {}

impl ReceiveRing {
    /// A ring for datagrams of at most `stride` bytes, `batch` per system call; longer ones are marked as
    /// cut.
    pub(super) fn new(stride: usize, batch: usize, stamps: bool) -> Self {
        let batch = batch.clamp(1, BATCH);
        let mut bytes = vec![0; BATCH * stride];
        let mut names = vec![Name::EMPTY; BATCH];
        let mut controls = vec![Control([0; CONTROL_BYTES]); BATCH];
        let mut vectors = vectors(&mut bytes, stride);
        let headers = (0..BATCH).map(|i| {
            let mut header = header(&mut names[i], &mut vectors[i]);
            if stamps {
                header.msg_hdr.msg_control = (&raw mut controls[i]).cast();
                header.msg_hdr.msg_controllen = CONTROL_BYTES;
            }
            header
        });
        let headers = headers.collect();
        Self { headers, names, controls, bytes, _vectors: vectors, stride, batch, filled: 0, stamps }
    }

    /// The number of datagrams per system call.
    pub(super) const fn batch(&self) -> usize {
        self.batch
    }

    /// Receives what has arrived, without waiting. Returns 0 if nothing has.
    pub(super) fn receive(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        for header in &mut self.headers[..self.filled] {
            header.msg_hdr.msg_namelen = Name::BYTES;
            if self.stamps {
                header.msg_hdr.msg_controllen = CONTROL_BYTES;
            }
        }
        self.filled = 0;
        // SAFETY: `headers` holds BATCH headers whose pointers lead to buffers of the stated lengths, all
        // owned by `self` and never reallocated; no other code accesses them during the call.
        let taken = check(unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.batch as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        });
        match taken {
            Ok(taken) => self.filled = taken as usize,
            Err(why) if is_no_news(&why) => {}
            Err(why) => return Err(why),
        }
        Ok(self.filled)
    }

    /// The bytes of a datagram of the last batch.
    #[inline]
    pub(super) fn bytes(&self, index: usize) -> &[u8] {
        let start = index * self.stride;
        &self.bytes[start..start + (self.headers[index].msg_len as usize).min(self.stride)]
    }

    /// The sender's address of the datagram at `index`.
    #[inline]
    pub(super) fn from(&self, index: usize) -> Endpoint {
        self.names[index].get()
    }

    /// Whether the datagram was longer than its buffer.
    #[inline]
    pub(super) fn is_cut(&self, index: usize) -> bool {
        self.headers[index].msg_hdr.msg_flags & libc::MSG_TRUNC != 0
    }

    /// When the kernel received the datagram, in ns since 1970.
    pub(super) fn stamp(&self, index: usize) -> Option<u64> {
        if !self.stamps {
            return None;
        }
        let length = self.headers[index].msg_hdr.msg_controllen;
        let control = &self.controls[index].0[..length.min(CONTROL_BYTES)];
        let stamp = |kind| control_data(control, libc::SOL_SOCKET, kind);
        // SCM_TIMESTAMPING brings several times; the first one is the software stamp.
        let data = stamp(libc::SCM_TIMESTAMPNS).or_else(|| stamp(libc::SCM_TIMESTAMPING))?;
        let seconds = i64::from_ne_bytes(data.get(..8)?.try_into().ok()?);
        let nanos = i64::from_ne_bytes(data.get(8..16)?.try_into().ok()?);
        u64::try_from(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?).ok()
    }
}

/// A batch of datagrams to be sent.
pub(super) struct SendRing {
    headers: Vec<libc::mmsghdr>,
    names: Vec<Name>,
    vectors: Vec<libc::iovec>,
    controls: Vec<Control>,
    bytes: Vec<u8>,
    stride: usize,
    /// The number of datagrams per system call.
    batch: usize,
    queued: usize,
    sent: usize,
}

// SAFETY: as for `ReceiveRing`.
unsafe impl Send for SendRing {}

impl SendRing {
    /// A ring for datagrams of at most `stride` bytes, `batch` per system call.
    pub(super) fn new(stride: usize, batch: usize) -> Self {
        let batch = batch.clamp(1, BATCH);
        let mut bytes = vec![0; BATCH * stride];
        let mut names = vec![Name::EMPTY; BATCH];
        let mut vectors = vectors(&mut bytes, stride);
        let headers = (0..BATCH).map(|i| header(&mut names[i], &mut vectors[i])).collect();
        Self { headers, names, vectors, controls: Vec::new(), bytes, stride, batch, queued: 0, sent: 0 }
    }

    /// Whether the ring must be flushed before the next datagram.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.queued == self.batch
    }

    /// Whether nothing waits for a flush.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// The buffer for the next datagram's bytes. The ring must not be full.
    #[inline]
    pub(super) fn next(&mut self) -> &mut [u8] {
        let start = self.queued * self.stride;
        &mut self.bytes[start..start + self.stride]
    }

    /// Sets when the datagram in [`SendRing::next`] leaves the kernel.
    pub(super) fn leaves(&mut self, at: Nanos) {
        if self.controls.is_empty() {
            self.controls = vec![Control([0; CONTROL_BYTES]); BATCH];
        }
        let control = &mut self.controls[self.queued];
        let length = departure(&mut control.0, at);
        let header = &mut self.headers[self.queued].msg_hdr;
        header.msg_control = ptr::from_mut(control).cast();
        header.msg_controllen = length;
    }

    /// Queues the bytes in [`SendRing::next`]. Returns false if this socket cannot reach `to`.
    #[inline]
    pub(super) fn push(&mut self, to: Endpoint, family: Family, length: usize) -> bool {
        let Some(name_bytes) = self.names[self.queued].set(to, family) else { return false };
        self.headers[self.queued].msg_hdr.msg_namelen = name_bytes;
        self.vectors[self.queued].iov_len = length.min(self.stride);
        self.queued += 1;
        true
    }

    /// Sends the queued datagrams, from the first that has not left. On an error, the datagram that caused
    /// it can be dropped with [`SendRing::skip`]; on `Ok` all have left.
    pub(super) fn send(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        while self.sent < self.queued {
            // SAFETY: the headers from `sent` to `queued` point to initialised buffers of the stated
            // lengths, all owned by `self` and never reallocated.
            let sent = check(unsafe {
                libc::sendmmsg(
                    fd.as_raw_fd(),
                    self.headers.as_mut_ptr().add(self.sent),
                    (self.queued - self.sent) as libc::c_uint,
                    0,
                )
            });
            match sent {
                Ok(sent) => self.sent += sent as usize,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(why) => return Err(why),
            }
        }
        self.queued = 0;
        self.sent = 0;
        Ok(())
    }

    /// Drops the datagram that the kernel refused.
    pub(super) fn skip(&mut self) {
        self.sent += 1;
    }
}

/// The destination and errno of a datagram that a peer's machine refused, from the socket's error queue;
/// `None` if the queue is empty.
pub(super) fn next_error(fd: BorrowedFd<'_>) -> Option<(Endpoint, i32)> {
    let mut name = Name::EMPTY;
    let mut control = Control([0; CONTROL_BYTES]);
    let mut vector = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
    let mut message = header(&mut name, &mut vector).msg_hdr;
    message.msg_control = (&raw mut control).cast();
    message.msg_controllen = CONTROL_BYTES;
    // SAFETY: `message` points to the four locals above, with their lengths; they outlive the call.
    check(unsafe {
        libc::recvmsg(fd.as_raw_fd(), &raw mut message, libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT)
            as libc::c_int
    })
    .ok()?;
    let control = &control.0[..message.msg_controllen.min(CONTROL_BYTES)];
    let data = control_data(control, libc::SOL_IP, libc::IP_RECVERR)
        .or_else(|| control_data(control, libc::SOL_IPV6, libc::IPV6_RECVERR));
    let errno = data.and_then(|data| Some(i32::from_ne_bytes(data.get(..4)?.try_into().ok()?)));
    Some((name.get(), errno.unwrap_or(0)))
}

/// Writes the control message with a datagram's departure time, and returns its length.
fn departure(control: &mut [u8; CONTROL_BYTES], at: Nanos) -> usize {
    /// The kernel's constant; `libc` does not have it.
    const SCM_TXTIME: i32 = 61;
    const LENGTH: usize = DATA + size_of::<u64>();
    control[LENGTH_AT..LENGTH_AT + size_of::<usize>()].copy_from_slice(&LENGTH.to_ne_bytes());
    control[LEVEL_AT..LEVEL_AT + 4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
    control[KIND_AT..KIND_AT + 4].copy_from_slice(&SCM_TXTIME.to_ne_bytes());
    control[DATA..LENGTH].copy_from_slice(&at.0.to_ne_bytes());
    LENGTH
}

/// One I/O vector per `stride` of `bytes`.
fn vectors(bytes: &mut [u8], stride: usize) -> Vec<libc::iovec> {
    let vector = |part: &mut [u8]| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() };
    bytes.chunks_exact_mut(stride).map(vector).collect()
}

fn header(name: &mut Name, vector: &mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: an mmsghdr consists of numbers and pointers, for which all zeroes is a valid empty value.
    let mut header: libc::mmsghdr = unsafe { std::mem::zeroed() };
    header.msg_hdr.msg_name = ptr::from_mut(name).cast();
    header.msg_hdr.msg_namelen = Name::BYTES;
    header.msg_hdr.msg_iov = vector;
    header.msg_hdr.msg_iovlen = 1;
    header
}

/// The data of the first control message of this kind (the kernel's `cmsghdr` layout).
fn control_data(mut control: &[u8], level: i32, kind: i32) -> Option<&[u8]> {
    let number = |bytes: &[u8], at: usize| Some(i32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    loop {
        let length = control.get(LENGTH_AT..LENGTH_AT + size_of::<usize>())?;
        let length = usize::from_ne_bytes(length.try_into().ok()?);
        if number(control, LEVEL_AT)? == level && number(control, KIND_AT)? == kind {
            return control.get(DATA..length);
        }
        control = control.get(length.max(DATA).next_multiple_of(size_of::<usize>())..)?;
    }
}

fn is_no_news(why: &io::Error) -> bool {
    matches!(why.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
