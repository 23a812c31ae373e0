//! Strangers, which send tasks to leaves as if a spine had handed them down. Each task names a client's
//! newest task, and a wrong address for the client. Some come from an unknown address, and some from a
//! spine's with an epoch that the spine never had.

use sluice_events::Address;
use sluice_switch::Arrival;
use sluice_wire::{Dispatch, Endpoint, Epoch, Packet};

use super::oracle::HopOracle;
use crate::racks::effects::SwitchPass;
use crate::racks::places::{LEAVES, SPINES};
use crate::racks::world::SimulatedRacks;

/// An address where no client is.
const ELSEWHERE: Endpoint = Endpoint { ip: [0xfe; 16], port: 9 };

/// Sends one task from each stranger to each leaf that is up.
pub(super) fn send_strangers_tasks(datacenter: &mut SimulatedRacks<HopOracle>) {
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
