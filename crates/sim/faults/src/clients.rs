//! The clients' processes: a node as in curves (`nodes::client`), and the bytes that it keeps.

use sluice_host::client::{Action, Client, ClientSettings};
use sluice_nodes::Node;
use sluice_nodes::names;
use sluice_wire::{Handle, Incarnation, Nanos, Packet, Payload};

use super::bytes::Bytes;
use super::hosts::{ControllerSession, SWITCH, client_at};
use super::limits::START;
use super::pieces::{Pieces, content_of, pieces, put};
use super::scenario::Scenario;

/// A client's process, which is always running.
#[derive(Debug)]
pub(super) struct ClientProcess {
    pub(super) node: Node<Client>,
    pub(super) incarnation: Incarnation,
    index: u16,
    starts: u16,
    pub(super) held: Option<(sluice_wire::ClientId, sluice_wire::Key)>,
    pub(super) session: ControllerSession,
    /// When the client last sent a try of a task.
    pub(super) tried: Nanos,
    /// The bytes of the client's outstanding tasks.
    pub(super) tasks: Bytes,
    /// The pieces of the replies that are being fetched.
    pub(super) replies: Pieces,
    /// The content of the packet that the machine is handling.
    in_hand: Payload,
}

impl ClientProcess {
    pub(super) fn new(index: usize) -> Self {
        Self {
            node: Node::new(Client::new(Incarnation(0), START), client_at(0, 0), SWITCH),
            incarnation: Incarnation(0),
            index: index as u16,
            starts: 0,
            held: None,
            session: ControllerSession::default(),
            tried: Nanos(0),
            tasks: Bytes::default(),
            replies: Pieces::new(),
            in_hand: Payload::EMPTY,
        }
    }
}

impl ClientProcess {
    /// A new life of the process, which has lost its memory.
    pub(super) fn restart(&mut self, incarnation: Incarnation) {
        let (index, starts) = (self.index, self.starts + 1);
        let node = Node::new(Client::new(incarnation, START), client_at(index, starts), SWITCH);
        *self = Self { node, incarnation, starts, ..Self::new(index.into()) };
    }

    /// The machine handles a packet.
    pub(super) fn receive(
        &mut self,
        now: Nanos,
        settings: &ClientSettings,
        packet: &Packet,
        out: &mut Vec<Action>,
    ) {
        self.in_hand = packet.payload().copied().unwrap_or_default();
        self.node.machine.packet(now, settings, packet, out);
    }

    /// The process gets another address.
    pub(super) fn change_address(&mut self) {
        self.starts += 1;
        self.node.at = client_at(self.index, self.starts);
    }

    pub(super) fn name(&self) -> String {
        names::client(self.index.into())
    }
}

/// The bytes of replies that come in parts.
impl ClientProcess {
    pub(super) fn begin(&mut self, at: Handle, payload: Payload, have: u16) -> Result<(), String> {
        let all = pieces(&payload, self.in_hand.handle, have);
        match self.replies.insert(at, all) {
            Some(_) => Err(format!("promise 6: room was made twice under {at:?}")),
            None => Ok(()),
        }
    }

    pub(super) fn place(&mut self, at: Handle, offset: u32) -> Result<(), String> {
        let all = self.replies.get_mut(&at).ok_or("promise 5: a part of a reply that is not there")?;
        put(all, offset, &self.in_hand)
    }

    /// A reply as its submitter gets it, with its whole content.
    pub(super) fn assembled(&self, reply: Payload) -> Payload {
        if !reply.has_more() {
            return reply;
        }
        let handle = self.replies.get(&reply.handle).map_or(Handle::NONE, |all| content_of(all));
        Payload { handle, ..reply }
    }
}

pub(super) fn client_settings(scenario: &Scenario) -> ClientSettings {
    // If workers soon forget replies, the reply to a client that waits for room would be gone.
    let is_tight = scenario.held_max < 64 && scenario.replies_max > 1_000;
    ClientSettings {
        reply_bytes_max: if is_tight { 30_000 } else { 1 << 20 },
        first_timeout: Nanos::from_millis(1),
        timeout_max: Nanos::from_millis(8),
        renew_gap: Nanos::from_micros(100),
        ..ClientSettings::default()
    }
}
