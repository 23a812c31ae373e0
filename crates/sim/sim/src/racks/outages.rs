//! Leaves and spines that fail for a while, and the controller's reaction (Horus §4.3, A.3).
//!
//! A switch that has failed is silent and loses its memory. When the controller learns that a leaf has
//! failed, it removes the leaf from the spines' tables. When the leaf is back, it goes below its spine
//! again in another generation. When a spine has failed, its racks go below another spine, if there is one,
//! and clients draw other spines. When the spine is back, in another epoch, it gets its racks back, and
//! clients learn its epoch. The datacenter has one pool, whose racks have the numbers of their leaves. If
//! the controllers that run live lead the datacenter, they find all this out themselves.

use sluice_wire::Epoch;

use super::control::Control;
use super::downtime::{FabricSwitch, OutageStep};
use super::watch::TaskObserver;
use super::world::{HostAdmission, SimulatedRacks};

impl<O: TaskObserver> SimulatedRacks<O> {
    /// The next step of the testbed's outages is due.
    #[cold]
    pub(super) fn next_outage(&mut self) {
        let HostAdmission::Spines(control) = &mut self.lead else { return };
        let (_, step) = control.outages[control.passed];
        control.passed += 1;
        self.on_outage(step);
    }

    pub(super) fn on_outage(&mut self, step: OutageStep) {
        match step {
            OutageStep::Dies(FabricSwitch::Leaf(leaf)) => self.leaves[leaf as usize].lives = false,
            OutageStep::Dies(FabricSwitch::Spine(spine)) => self.spines[spine as usize].lives = false,
            OutageStep::Out(who) => self.mark_out(who),
            OutageStep::Back(FabricSwitch::Leaf(leaf)) => self.restore_leaf(leaf),
            OutageStep::Back(FabricSwitch::Spine(spine)) => self.restore_spine(spine),
        }
    }

    /// From now on tasks avoid this switch.
    fn mark_out(&mut self, who: FabricSwitch) {
        match who {
            _ if self.control().is_replaced => {}
            FabricSwitch::Leaf(leaf) => {
                for spine in &mut self.spines {
                    Control::forget(leaf, spine);
                }
            }
            FabricSwitch::Spine(spine) => {
                let lives = self.spines.iter().position(|other| other.lives);
                let Some(other) = lives else { return };
                for rack in self.racks_of(spine) {
                    self.move_below(rack, other as u32);
                }
                self.weigh(|below| below != spine as usize);
            }
        }
    }

    fn restore_leaf(&mut self, leaf: u32) {
        let Self { lead: HostAdmission::Spines(control), leaves, times, .. } = self else { return };
        control.raise(leaf);
        let epoch = Epoch(leaves[leaf as usize].epoch.0 + 1);
        leaves[leaf as usize] = control.leaf(leaf, epoch, times);
        if control.is_replaced {
            return;
        }
        let spine = control.pools[0].racks[leaf as usize].spine;
        for worker in 0..self.workers.all.len() {
            let control = self.control();
            if control.seats[worker].leaf == leaf {
                let grant = control.worker_registration(worker, &self.leaves[leaf as usize]);
                self.grant_worker(worker, grant);
            }
        }
        self.move_below(leaf as usize, spine as u32);
    }

    fn restore_spine(&mut self, spine: u32) {
        let Self { lead: HostAdmission::Spines(control), spines, times, .. } = self else { return };
        let epoch = Epoch(spines[spine as usize].epoch.0 + 1);
        spines[spine as usize] = control.spine(spine, epoch, times);
        if control.is_replaced {
            return;
        }
        for rack in self.racks_of(spine) {
            for other in (0..self.spines.len()).filter(|other| *other != spine as usize) {
                Control::forget(rack as u32, &mut self.spines[other]);
            }
            self.move_below(rack, spine);
        }
        self.weigh(|_| true);
        self.register_clients(spine, epoch);
    }

    fn move_below(&mut self, rack: usize, spine: u32) {
        if let HostAdmission::Spines(control) = &mut self.lead {
            control.raise_uplink(rack as u32);
        }
        self.link(0, rack, spine);
    }

    fn racks_of(&self, spine: u32) -> Vec<usize> {
        let racks = self.control().pools[0].racks.iter().enumerate();
        racks.filter(|(_, rack)| rack.spine == spine as usize).map(|(at, _)| at).collect()
    }

    /// From now on clients draw only these spines.
    fn weigh(&mut self, is_in: impl Fn(usize) -> bool) {
        let control = self.control();
        let full = control.pools[0].weights(control.system);
        let own = |spine: usize| full[spine] - if spine == 0 { 0 } else { full[spine - 1] };
        let mut sum = 0;
        let weights = (0..full.len()).map(|spine| {
            sum += if is_in(spine) { own(spine) } else { 0 };
            sum
        });
        self.pools[0].arrivals.weights = weights.collect();
    }

    /// Clients learn a spine's new epoch.
    fn register_clients(&mut self, spine: u32, epoch: Epoch) {
        let spines = self.spines.len();
        for machine in (spine as usize..self.clients.all.len()).step_by(spines) {
            let client = (machine / spines) as u16;
            let grant = self.control().client_registration(0, client, spine as usize, epoch);
            self.on_client(machine, |client, now, settings, out| client.grant(now, settings, grant, out));
        }
    }
}
