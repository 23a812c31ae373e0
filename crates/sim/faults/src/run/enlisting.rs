//! The registration of servers with the controller, as live servers do it, and the failures of their
//! processes.
//!
//! A server tells its address, is told which rings the slices need, connects its queue pair to the switch
//! that the answer names, tells its rings, and renews like every host. It can be killed, and then loses its
//! memory. It can leave, and it can stand still, with its renewals. A stranger can write where nobody may,
//! which puts a reliable pair into its error state. Its workers then send no tokens until they were granted
//! anew, as live workers do.

use sluice_control::{Answer, Event as Told, RingNeed, RingOffer, ServerGrant};
use sluice_host::rdma::WriterEnd;
use sluice_wire::Nanos;

use crate::event::Event;
use crate::hosts::Host;
use crate::limits::LEASE;
use crate::oracle::Life;
use crate::rack::Rack;
use crate::replay_log::{self, Party};
use crate::servers::{ServerFailure, ServerNode, Servers, first};

/// The longest time that a server stands still: half of all stalls last longer than the lease.
const STALL_MAX: Nanos = LEASE.times(2);

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
}
