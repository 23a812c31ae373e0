//! Finds the sockets that are ready, for a thread that serves many of them.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use sluice_wire::Nanos;

use super::{TOO_SHORT_TO_SLEEP, Waiting, Waker, spin_of, sys};
use crate::NetError;

/// How many ready sockets one wait reports.
const READY_MAX: usize = 64;

/// The sockets that share a thread, and how that thread waits.
pub struct ReadySet {
    set: OwnedFd,
    events: [libc::epoll_event; READY_MAX],
    filled: usize,
    waker: Waker,
    spin: Option<Nanos>,
}

/// A ready socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token with which the socket was added.
    pub token: usize,
    /// Whether an error is pending.
    pub error: bool,
}

impl ReadySet {
    /// An empty set, with a waker that ends its waits.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the kernel has no file descriptors left.
    pub fn new(waiting: Waiting) -> Result<Self, NetError> {
        let failed = |what| move |why| NetError::Socket { what, why };
        Ok(Self {
            set: sys::ready_set().map_err(failed("epoll_create1"))?,
            events: [libc::epoll_event { events: 0, u64: 0 }; READY_MAX],
            filled: 0,
            waker: Waker::new().map_err(failed("eventfd"))?,
            spin: spin_of(waiting),
        })
    }

    /// A waker that ends a wait from another thread.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Adds a socket with this token.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the kernel refuses.
    pub fn add(&self, socket: BorrowedFd<'_>, token: usize) -> Result<(), NetError> {
        let failed = |why| NetError::Socket { what: "epoll_ctl", why };
        sys::watch(self.set.as_fd(), socket, token as u64).map_err(failed)
    }

    /// Waits until a socket is ready, `due` has come, or the waker was called. Returns whether the waker
    /// was called.
    ///
    /// # Errors
    /// [`NetError::Socket`] if the kernel refuses to wait.
    pub fn wait(&mut self, due: Option<Nanos>) -> Result<bool, NetError> {
        let began = sys::monotonic();
        loop {
            let failed = |why| NetError::Socket { what: "epoll_wait", why };
            self.filled = sys::ready(self.set.as_fd(), &mut self.events).map_err(failed)?;
            let called = self.waker.take();
            let now = sys::monotonic();
            if self.filled > 0 || called || due.is_some_and(|due| due <= now) {
                return Ok(called);
            }
            let left = due.map(|due| due.since(now));
            let short = left.is_some_and(|left| left < TOO_SHORT_TO_SLEEP);
            if self.spin.is_some_and(|spin| short || now.since(began) < spin) {
                std::hint::spin_loop();
                continue;
            }
            if self.sleep(left)? {
                return Ok(true);
            }
        }
    }

    /// The sockets that the last wait found ready.
    pub fn ready(&self) -> impl Iterator<Item = Ready> + '_ {
        self.events[..self.filled].iter().map(|event| {
            let (token, bits) = (event.u64, event.events);
            Ready { token: token as usize, error: bits & libc::EPOLLERR as u32 != 0 }
        })
    }

    fn sleep(&self, longest: Option<Nanos>) -> Result<bool, NetError> {
        let mut slept = Ok(sys::Woken::default());
        let called = self.waker.sleep(|event| slept = sys::wait(self.set.as_fd(), event, longest));
        slept.map_err(|why| NetError::Socket { what: "ppoll", why })?;
        Ok(called)
    }
}
