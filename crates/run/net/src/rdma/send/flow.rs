//! One flow of a sender: its pair, its socket, and the frame that leaves next.

use std::net::SocketAddr;

use sluice_host::pacer::{PacedFlow, Pacer};
use sluice_wire::roce::{MAX_WRITE_BYTES, Path, Psn, Transport, Write, encode_write, write_len};
use sluice_wire::{Endpoint, Nanos};

use super::options::{AHEAD, WaitsBy, WriteLeft, WriteSenderOptions};
use crate::NetError;
use crate::clock::monotonic;
use crate::udp::{Outbox, Socket, SocketCounts, SocketOptions};

/// A flow's WRITEs, one of which is on its way out.
pub(super) struct WriteFlow {
    socket: Socket,
    path: Path,
    write: Write,
    payload: Vec<u8>,
    paced: PacedFlow,
    /// When the next WRITE becomes ready.
    due: Option<Nanos>,
    /// Until when the WRITE is held in the outbox.
    held: Option<Nanos>,
    /// When the last WRITE that was given to the kernel leaves.
    last: Nanos,
}

impl WriteFlow {
    /// Opens the socket of the flow with this index.
    pub(super) fn open(options: &WriteSenderOptions, place: u16) -> Result<Self, NetError> {
        let sockets = SocketOptions {
            datagram_max: write_len(MAX_WRITE_BYTES),
            refusals: false,
            stamps: false,
            ..SocketOptions::default()
        };
        let socket = Socket::bind(SocketAddr::new(options.from, 0), &sockets)?;
        if options.waits == WaitsBy::Kernel {
            socket.take_departure_times()?;
        }
        let (to, from) = (options.to, socket.local());
        let path = Path::new(from, to).ok_or(NetError::TwoFamilies { from, to })?;
        let mut pair = options.pair;
        pair.0 += u32::from(place);
        let write = Write {
            transport: Transport::Uc,
            to: pair,
            psn: Psn::new(0),
            ack_request: false,
            address: options.address,
            rkey: options.rkey,
        };
        let payload = vec![place as u8; options.bytes.min(MAX_WRITE_BYTES)];
        let paced = PacedFlow::default();
        Ok(Self { socket, path, write, payload, paced, due: None, held: None, last: Nanos(0) })
    }

    pub(super) fn port(&self) -> u16 {
        self.socket.local().port()
    }

    pub(super) fn counts(&self) -> SocketCounts {
        self.socket.counts()
    }

    /// Sets when the next WRITE becomes ready; `None` if there are no more.
    pub(super) fn expect(&mut self, due: Option<Nanos>) {
        self.due = due;
    }

    /// The time of the flow's next action.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.held.or(self.due)
    }

    /// Sends the next WRITE if it is due, and reports it.
    pub(super) fn turn(
        &mut self,
        waits: WaitsBy,
        pacer: &mut Option<Pacer>,
        now: Nanos,
    ) -> Option<WriteLeft> {
        match waits {
            WaitsBy::Kernel => self.schedule(pacer, now),
            WaitsBy::Spinning | WaitsBy::Sleeping => self.send(pacer, now),
        }
    }

    /// Gives the kernel the frames that its queue is to hold.
    pub(super) fn hand_over(&mut self, waits: WaitsBy) {
        if waits == WaitsBy::Kernel {
            self.socket.flush();
        }
    }

    /// Sends the WRITE if it may leave now; otherwise holds it in the outbox.
    fn send(&mut self, pacer: &mut Option<Pacer>, now: Nanos) -> Option<WriteLeft> {
        if now < self.next()? {
            return None;
        }
        let held = self.held.take().is_some();
        let until = pacer.as_ref().map_or(now, |pacer| pacer.ready(&mut self.paced, now));
        if !held && until > now {
            self.encode(|outbox, to, encode| outbox.send_at(until, to, encode));
            self.held = Some(until);
            return None;
        }
        if !held {
            self.encode(|outbox, to, encode| outbox.send_with(to, encode));
        }
        let before = monotonic();
        self.socket.send_due();
        // After the call, since frames leave within it: so a held frame's gap is never shorter than the
        // threshold.
        let at = monotonic();
        Some(self.left(pacer, held, before, at))
    }

    /// Gives the WRITE to the kernel ahead of its time, behind the frames that the kernel already has.
    fn schedule(&mut self, pacer: &mut Option<Pacer>, now: Nanos) -> Option<WriteLeft> {
        let due = self.due.filter(|due| *due <= now + AHEAD)?;
        let ready = due.max(now).max(self.last);
        let leaves = pacer.as_ref().map_or(ready, |pacer| pacer.ready(&mut self.paced, ready));
        self.encode(|outbox, to, encode| outbox.send_leaving(leaves, to, encode));
        self.last = leaves;
        Some(self.left(pacer, leaves > ready, now, leaves))
    }

    /// Encodes the next WRITE and passes it to `send`.
    fn encode(&mut self, send: impl FnOnce(&mut Outbox, Endpoint, &dyn Fn(&mut [u8]) -> usize)) {
        let Self { socket, path, write, payload, .. } = self;
        // A payload that is too long for a packet was cut before.
        let encode = |out: &mut [u8]| encode_write(write, payload, Some(path), out).unwrap_or(0);
        send(socket.outbox(), path.to(), &encode);
    }

    fn left(&mut self, pacer: &mut Option<Pacer>, held: bool, before: Nanos, at: Nanos) -> WriteLeft {
        if let Some(pacer) = pacer {
            pacer.left(&mut self.paced, at);
        }
        let psn = self.write.psn;
        self.write.psn = psn.plus(1);
        WriteLeft { flow: 0, psn, held, due: self.due.unwrap_or(at), before, at }
    }
}
