//! A worker: it holds each task for its duration, one after the other.

use sluice_net::NetError;
use sluice_net::udp::{Socket, Wait};
use sluice_wire::Nanos;

/// The size of a task: its number and its duration.
pub(super) const DATAGRAM_BYTES: usize = 16;

/// A worker's socket, and until when it is busy.
pub(super) struct PlainWorker {
    socket: Socket,
    taken_until: Nanos,
    tasks: u64,
}

impl PlainWorker {
    pub(super) const fn new(socket: Socket) -> Self {
        Self { socket, taken_until: Nanos(0), tasks: 0 }
    }

    /// How many tasks the worker took.
    pub(super) const fn tasks(&self) -> u64 {
        self.tasks
    }

    pub(super) fn next_due(&self) -> Option<Nanos> {
        self.socket.next_due()
    }

    /// Receives tasks; their answers leave when the tasks end.
    pub(super) fn take(&mut self, error: bool) -> Result<(), NetError> {
        if error {
            self.socket.take_errors();
        }
        self.socket.receive(Wait::Poll)?;
        let (inbox, outbox) = self.socket.split();
        for datagram in inbox.datagrams() {
            let Ok(task) = <[u8; DATAGRAM_BYTES]>::try_from(datagram.bytes) else { continue };
            let [_, span] = words(task);
            self.tasks += 1;
            self.taken_until = self.taken_until.max(datagram.received) + Nanos(span);
            outbox.send_at(self.taken_until, datagram.from, |out| {
                out[..DATAGRAM_BYTES].copy_from_slice(&task);
                DATAGRAM_BYTES
            });
        }
        Ok(())
    }

    pub(super) fn send_due(&mut self, now: Nanos) {
        if self.socket.next_due().is_some_and(|due| due <= now) {
            self.socket.send_due();
        }
    }
}

/// A task's number and its duration.
pub(super) fn words(task: [u8; DATAGRAM_BYTES]) -> [u64; 2] {
    let (words, _) = task.as_chunks::<8>();
    [u64::from_be_bytes(words[0]), u64::from_be_bytes(words[1])]
}
