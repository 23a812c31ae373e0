//! WRITEs that arrive at servers, and what servers answer.

use sluice_wire::roce::{Acknowledge, NakCode, Syndrome};

use crate::event::Event;
use crate::hosts::Host;
use crate::network::WRITES;
use crate::rack::Rack;
use crate::replay_log::{self, Party};
use crate::servers::{SealedWrite, Servers, WriteAnswer, first};

impl Rack<'_> {
    /// A stranger writes into a server's memory.
    pub(crate) fn send_intruders_write(&mut self, server: usize) -> Result<(), String> {
        let Servers { nodes, reliable, .. } = &mut self.servers;
        let answer = nodes[server].receive_intruders_write(self.world.now, *reliable)?;
        self.answer_write(server, &answer)
    }

    /// A WRITE arrives at a server, and waits there while the server stands still.
    pub(crate) fn on_write(&mut self, server: usize, write: SealedWrite) -> Result<(), String> {
        self.servers.nodes[server].unread.push_back(write);
        self.write_is_read(server)
    }

    /// A server reads the WRITE that came first, unless the server stands still.
    pub(crate) fn write_is_read(&mut self, server: usize) -> Result<(), String> {
        let node = &mut self.servers.nodes[server];
        let goes_on = node.session.frozen_until;
        if self.world.now < goes_on {
            self.remind(goes_on, Event::WriteWaited(server));
            return Ok(());
        }
        let Some(write) = node.unread.pop_front() else { return Ok(()) };
        let answer = node.receive(&write)?;
        self.answer_write(server, &answer)
    }

    /// Does what follows from a WRITE.
    fn answer_write(&mut self, server: usize, answer: &WriteAnswer) -> Result<(), String> {
        if let Some(answer) = &answer.answer {
            self.send_nak(server, answer);
        }
        if answer.has_failed { self.mend(server) } else { Ok(()) }
    }

    /// Sends a NAK back to the switch.
    fn send_nak(&mut self, server: usize, answer: &Acknowledge) {
        if answer.syndrome != Syndrome::Nak(NakCode::Sequence) {
            return;
        }
        let Some(id) = self.servers.nodes[server].row else { return };
        let arrivals = self.arrivals(WRITES);
        let (who, now) = (Party::Server(server), self.world.now);
        self.tell(who, Some(Party::Switch), None, |_| {
            format!("NAK: misses WRITE {}{}", answer.psn, replay_log::fate(now, arrivals))
        });
        for at in arrivals.into_iter().flatten() {
            self.remind(at, Event::Nak { server, id, expected: answer.psn });
        }
    }

    /// Repairs a pair in error: its workers send no tokens until the controller has granted them anew, and
    /// the pair is connected anew.
    fn mend(&mut self, server: usize) -> Result<(), String> {
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
}

#[cfg(test)]
mod tests {
    use sluice_events::WorldEvent;
    use sluice_host::rdma::WriterEnd;
    use sluice_wire::roce::Write;
    use sluice_wire::{Endpoint, Epoch, Nanos, Psn, ServerId, SliceId};

    use super::*;
    use crate::RackKind;
    use crate::servers::{sealed, transport};

    /// The first WRITE comes while the server stands still for 10 us, the second while it stands still for
    /// longer. A reliable pair takes both only if it reads them in that order.
    #[test]
    fn writes_stay_in_order_however_often_their_server_stands_still() {
        let racks = (0..100).map(|seed| Rack::new(&RackKind::default(), seed, None));
        let mut rack =
            racks.into_iter().find(|rack| !rack.servers.nodes.is_empty()).expect("seven in ten have");
        rack.begin();
        let (began, first) = (rack.world.now, 5);
        let (slots, node) = (rack.servers.slots, &mut rack.servers.nodes[0]);
        let to = WriterEnd { server: ServerId(0), epoch: Epoch(1), switch: Endpoint::default(), icrc: true };
        node.connect(to, true, Psn::new(first));
        let (pair, ring) = (node.qpn, node.ring(SliceId(0), slots));
        for (number, still_for) in [(0, 10_000), (1, 20_000)] {
            rack.servers.nodes[0].session.frozen_until = began + Nanos(still_for);
            let psn = Psn::new(first + number);
            let (transport, address, rkey) = (transport(true), ring.address, ring.rkey);
            let write = Write { transport, to: pair, psn, address, rkey, ..Write::default() };
            let bytes = sealed(&write, 0, [&[], &[number as u8; 16]]);
            rack.on_write(0, SealedWrite { bytes, sent: began, spoilt: false }).expect("it waits");
        }
        while rack.world.now <= began + Nanos(20_000) {
            let (_, what) = rack.world.next().expect("the run goes on");
            let event = match what {
                WorldEvent::Scheduled(event @ Event::WriteWaited(_)) => event,
                // A clock that is not set anew expires again.
                WorldEvent::Clock => Event::Inspect,
                _ => continue,
            };
            rack.happen(event).expect("it is read, or waits on");
        }
        assert_eq!(rack.servers.nodes[0].expected(), Some(Psn::new(first + 2)));
    }
}
