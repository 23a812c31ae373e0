//! The WRITEs of the switch: tasks that wait are written into servers' memory.

use sluice_switch::{Replica, WriteAhead};
use sluice_wire::roce::Write;
use sluice_wire::{Handle, TaskId, slot_head};

use crate::event::Event;
use crate::limits::FAULTS_END;
use crate::network::WRITES;
use crate::rack::Rack;
use crate::replay_log::{self, Party};
use crate::servers::{SealedWrite, path_to, sealed, transport};

/// How many of a thousand WRITEs are changed on their way while faults last.
const CHANGED: u64 = 10;

impl Rack<'_> {
    pub(crate) fn write_ahead(&mut self, write: &WriteAhead, content: Handle) {
        for copy in 0..write.copies {
            let Some(program) = &mut self.switch.program else { return };
            let Some(replica) = program.replica(write, copy) else { continue };
            self.send_write(write.task, content, write.payload.len, &replica);
        }
    }

    /// Sends one copy of a task to its server.
    fn send_write(&mut self, task: TaskId, content: Handle, len: u16, replica: &Replica) {
        let of = |server: &usize| path_to(*server).to() == replica.to;
        let Some(server) = (0..self.servers.nodes.len()).find(of) else { return };
        let arrivals = self.arrivals(WRITES);
        let now = self.world.now;
        self.tell(Party::Switch, Some(Party::Server(server)), Some(task), |task| {
            let (psn, address) = (replica.psn, replica.address);
            let fate = replay_log::fate(now, arrivals);
            format!("WRITE {psn} of waiting task {task}: {len} bytes to address {address:#x}{fate}")
        });
        let write = Write {
            transport: transport(replica.reliable),
            to: replica.qpn,
            psn: replica.psn,
            ack_request: false,
            address: replica.address,
            rkey: replica.rkey,
        };
        let mut body = vec![0; len.into()];
        body.iter_mut().zip(content.0.to_be_bytes().into_iter().cycle()).for_each(|(to, from)| *to = from);
        let bytes = sealed(&write, server, [&slot_head(task), &body]);
        for at in arrivals.into_iter().flatten() {
            let mut bytes = bytes.clone();
            let changed = self.world.now < FAULTS_END && self.servers.dice.chance(CHANGED);
            if changed {
                let bit = self.servers.dice.below(8 * bytes.len() as u64) as usize;
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let write = SealedWrite { bytes, sent: now, spoilt: changed };
            self.remind(at, Event::Write { server, write });
        }
    }
}
