//! The registration of servers with the controller, as live servers do it, and the failures of their
//! processes.
//!
//! A server tells its address, is told which rings the slices need, connects its queue pair to the switch
//! that the answer names, tells its rings, and renews like every host. It can be killed, and then loses its
//! memory. It can leave, and it can stand still, with its renewals. A stranger can write where nobody may,
//! which puts a reliable pair into its error state. Its workers then send no tokens until they were granted
//! anew, as live workers do.

use sluice_control::{Answer, Event as Told, RingNeed, RingOffer, ServerGrant, ServerHello};
use sluice_events::dice::Dice;
use sluice_host::rdma::WriterEnd;
use sluice_wire::tables::{ServerRow, TableAnswer, TableOp};
use sluice_wire::{Nanos, Psn, ServerId};

use crate::event::Event;
use crate::hosts::Host;
use crate::limits::LEASE;
use crate::oracle::Life;
use crate::rack::Rack;
use crate::replay_log::{self, Party};
use crate::servers::{MTU, ServerFailure, ServerNode, Servers, path_to};

impl ServerNode {
    pub(crate) fn hello(&self, reliable: bool) -> ServerHello {
        ServerHello {
            name: self.name(),
            life: self.life,
            at: path_to(self.index).to(),
            qpn: self.qpn,
            first: self.first,
            mtu: MTU.bytes() as u32,
            reliable,
            icrc: true,
            rings: self.offers.clone(),
        }
    }
}

/// The longest time that a server stands still: half of all stalls last longer than the lease.
const STALL_MAX: Nanos = LEASE.times(2);

/// The first packet number that a pair expects: just before its wrap.
fn first(dice: &mut Dice) -> Psn {
    Psn::new(u32::MAX - dice.below(4) as u32)
}

impl Rack<'_> {
    /// Starts all servers, and draws their failures.
    pub(crate) fn start_servers(&mut self) {
        let count = self.servers.nodes.len();
        if count == 0 {
            return;
        }
        (0..count).for_each(|server| self.start_server(server));
        for _ in 0..self.servers.dice.pick(&[0, 0, 1, 3]) {
            let dice = &mut self.servers.dice;
            let at = dice.span(Nanos::from_millis(2), Nanos::from_millis(24));
            let server = dice.below(count as u64) as usize;
            let server_failure = dice.pick(&[
                ServerFailure::Crash,
                ServerFailure::Leave,
                ServerFailure::Intrusion,
                ServerFailure::Stall,
            ]);
            self.remind(at, Event::ServerFailure(server, server_failure));
        }
    }

    fn start_server(&mut self, server: usize) {
        let life = self.servers.dice.word() | 1;
        self.servers.nodes[server].life = life;
        self.say(Party::Server(server), || format!("starts, life {life:016x}"));
        self.after(Nanos(1_000), Event::Renew(Host::Server(server), life));
    }

    pub(crate) fn server_failure(
        &mut self,
        server: usize,
        server_failure: ServerFailure,
    ) -> Result<(), String> {
        self.say(Party::Server(server), || replay_log::server_failure(server_failure).to_owned());
        let lives = self.servers.nodes[server].lives();
        match server_failure {
            ServerFailure::Crash if lives => self.server_ends(server),
            ServerFailure::Leave if lives => {
                self.say_server_leaves(server);
                self.server_ends(server);
            }
            ServerFailure::Back if !lives => self.start_server(server),
            ServerFailure::Intrusion if lives => self.send_intruders_write(server)?,
            ServerFailure::Stall => {
                let lasts = self.servers.dice.span(Nanos::from_micros(20), STALL_MAX);
                let session = &mut self.servers.nodes[server].session;
                session.frozen_until = session.frozen_until.max(self.world.now + lasts);
            }
            ServerFailure::Crash | ServerFailure::Leave | ServerFailure::Back | ServerFailure::Intrusion => {}
        }
        Ok(())
    }

    fn say_server_leaves(&mut self, server: usize) {
        let host = Host::Server(server);
        if self.calls_get_through(host) {
            let ServerNode { life, .. } = self.servers.nodes[server];
            let call = self.controllers.call(host, life);
            let name = self.servers.nodes[server].name();
            self.call(Told::ServerLeave { call, name, life });
        }
    }

    /// Ends the process, which loses its memory; a new life starts after a while.
    fn server_ends(&mut self, server: usize) {
        let Servers { nodes, dice, slots, .. } = &mut self.servers;
        nodes[server].end(*slots);
        let down = dice.span(Nanos::from_micros(20), Nanos::from_millis(5));
        self.after(down, Event::ServerFailure(server, ServerFailure::Back));
    }

    pub(crate) fn server_answered(&mut self, server: usize, life: Life, answer: &Answer) {
        if self.servers.nodes[server].life != life {
            return;
        }
        self.servers.nodes[server].session.asked = None;
        match answer {
            Answer::Server(grant) => self.server_granted(server, grant),
            Answer::Wait { retry_after, .. } => self.ask_later(Host::Server(server), *retry_after),
            // The process ends; a supervisor starts it again.
            Answer::Refused { .. } => self.server_ends(server),
            _ => {}
        }
    }

    /// Registers the rings that the slices need, and connects to the switch if it is a new one; if it
    /// connected, it calls again at once.
    fn server_granted(&mut self, server: usize, grant: &ServerGrant) {
        let Servers { nodes, dice, slots, reliable, .. } = &mut self.servers;
        let node = &mut nodes[server];
        let ServerGrant { server: id, epoch, switch, without_icrc, .. } = *grant;
        let to = WriterEnd { server: id, epoch, switch, icrc: !without_icrc };
        node.row = Some(id);
        let is_outdated = |known: WriterEnd| known.is_outdated_by(&to, *reliable);
        let is_new = grant.spent_pair == Some(node.qpn) || node.connected.is_none_or(is_outdated);
        if is_new {
            node.connect(to, *reliable, first(dice));
        }
        let offer = |need: &RingNeed| RingOffer { slice: need.slice, row: node.ring(need.slice, *slots) };
        let offers: Vec<RingOffer> = grant.rings.iter().map(offer).collect();
        if is_new || node.offers != offers {
            node.offers = offers;
            self.renew(Host::Server(server));
        }
    }

    /// Repairs a pair in error: its workers send no tokens until the controller has granted them anew, and
    /// the pair is connected anew.
    pub(crate) fn mend(&mut self, server: usize) -> Result<(), String> {
        let Servers { nodes, dice, reliable, .. } = &mut self.servers;
        let node = &mut nodes[server];
        let Some(to) = node.connected.filter(|_| node.has_failed()) else {
            return Err(format!("server {server}'s pair failed and takes packets"));
        };
        node.connect(to, *reliable, first(dice));
        node.session.asked = None;
        self.renew(Host::Server(server));
        let count = self.servers.workers;
        for worker in server * count..((server + 1) * count).min(self.workers.len()) {
            self.workers[worker].rejoins += 1;
            self.on_worker(worker, |machine, _, _, _| machine.suspend())?;
            self.renew(Host::Worker(worker));
        }
        Ok(())
    }

    /// Promise 4: the row of a reliable pair starts at the number that the pair expects. Otherwise the pair
    /// would take each WRITE for one that came before.
    pub(crate) fn check_row(&self, op: &TableOp) -> Result<(), String> {
        let TableOp::SetServer(_, Some((row, first))) = op else { return Ok(()) };
        let Some(node) = self.servers.nodes.iter().find(|node| is_of(row, node)) else { return Ok(()) };
        match node.expected() {
            Some(expected) if row.reliable && expected != *first => Err(format!(
                "promise 4: server {}'s pair expects WRITE {expected}, and its row counts from {first} on",
                node.index
            )),
            _ => Ok(()),
        }
    }

    /// Promise 4: at rest the switch has each server's pair and rings as they are, and no others.
    pub(crate) fn inspect_servers(&mut self) -> Result<(), String> {
        let Some(program) = &mut self.switch.program else { return Ok(()) };
        for (index, node) in self.servers.nodes.iter().enumerate() {
            let lacks =
                |what: &str| Err(format!("promise 4: at rest the switch has no {what} of server {index}"));
            let Some(id) = node.row else { return lacks("registration") };
            match program.table(TableOp::ReadServer(id)) {
                TableAnswer::Server(state) if state.row.is_some_and(|row| is_of(&row, node)) => {}
                _ => return lacks("queue pair"),
            }
            for RingOffer { slice, row } in &node.offers {
                if program.table(TableOp::ReadRing(*slice, id)) != TableAnswer::Ring(Some(*row)) {
                    return lacks("ring");
                }
            }
        }
        let rows = (0..self.servers.nodes.len()).map(|row| ServerId(row as u16));
        let nobodys = |row: &ServerId| self.servers.nodes.iter().all(|node| node.row != Some(*row));
        match rows.filter(nobodys).find(|row| is_set(&program.table(TableOp::ReadServer(*row)))) {
            Some(row) => Err(format!("promise 4: at rest server row {row} is nobody's")),
            None => Ok(()),
        }
    }
}

fn is_of(row: &ServerRow, node: &ServerNode) -> bool {
    (row.qpn, row.at) == (node.qpn, path_to(node.index).to())
}

fn is_set(answer: &TableAnswer) -> bool {
    matches!(answer, TableAnswer::Server(state) if state.row.is_some())
}
