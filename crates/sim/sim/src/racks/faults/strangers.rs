//! Strangers, who send tasks to leaves as if spines handed them down. Each names a client's newest task, and
//! says that the client is somewhere else. Some come from nobody's address, and some from a spine's with a
//! word of a life that it never had, as a copy of a life long ago would.

use sluice_events::Address;
use sluice_switch::Arrival;
use sluice_wire::{Dispatch, Endpoint, Epoch, Packet};

use super::oracle::HopOracle;
use crate::racks::places::{LEAVES, SPINES};
use crate::racks::switch::SwitchPass;
use crate::racks::world::SimulatedRacks;

/// No client is here.
const ELSEWHERE: Endpoint = Endpoint { ip: [0xfe; 16], port: 9 };

/// Each leaf that lives hears of a task from all of them.
pub(super) fn hand_down(datacenter: &mut SimulatedRacks<HopOracle>) {
    let Some(task) = datacenter.pools[0].meter.observer.newest else { return };
    let spines = (0..datacenter.spines.len()).map(|spine| SPINES.at(spine as u32).endpoint());
    let senders: Vec<Endpoint> = spines.chain([ELSEWHERE]).collect();
    let packet =
        Packet::Dispatch(Dispatch { epoch: Epoch(0), task, client_at: ELSEWHERE, ..Dispatch::default() });
    let leaves = (0..datacenter.leaves.len()).map(|leaf| LEAVES.at(leaf as u32));
    let lives = |at: &Address| datacenter.leaves[at.place() as usize].lives;
    for at in leaves.filter(lives).collect::<Vec<_>>() {
        for from in &senders {
            let pass = SwitchPass { at, pool: 0, tasks: 0 };
            datacenter.pass(&pass, Arrival::Wire { from: *from, packet, room: true });
        }
    }
}
