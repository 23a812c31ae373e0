//! The controller above all spines (Horus §3.2, A.3), with the state machines that run live: one for each
//! spine, and [`Pods`], which decides which hosts belong to which spine. It numbers leaves and clients,
//! weighs racks and links them with their spines.
//!
//! It learns of a dead spine some time after the spine's death. It dies itself, and returns without any
//! state; meanwhile tasks go on. A client that gets no answer calls at another spine's address.

use sluice_control::{Answer, CallId, ClientHello, Controller, Event, PodRoute, Pods, Tier, WorkerHello};
use sluice_events::dice::Dice;
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{ClientId, Key};

use super::table_operations::{is_lost, plan};
use crate::racks::downtime::{FabricSwitch, OutageStep};
use crate::racks::places::SPINES;
use crate::racks::watch::TaskObserver;
use crate::racks::world::SimulatedRacks;

/// The controller above, and its clients as they call it.
pub(super) struct ControllerAbove {
    /// The controller's machines; `None` while the controller is dead.
    machine: Option<PodMachines>,
    /// The machines of all clients; those of one client follow one another, one per spine.
    clients: Vec<SpineClient>,
    dice: Dice,
    next_call: u64,
}

struct PodMachines {
    pods: Pods,
    spines: Vec<Controller>,
    /// Whether each spine's tables have been read.
    are_read: Vec<bool>,
}

/// A client's machine for one spine.
#[derive(Clone, Copy, Debug)]
struct SpineClient {
    /// The spine at whose address the client calls.
    calls: usize,
    held: Option<(ClientId, Key)>,
}

impl ControllerAbove {
    pub(super) fn start<O: TaskObserver>(datacenter: &mut SimulatedRacks<O>, seed: u64) -> Self {
        let spines = datacenter.spines.len();
        let clients =
            (0..datacenter.clients.all.len()).map(|at| SpineClient { calls: at % spines, held: None });
        let dice = Dice::named(seed, "the controller above", 0);
        let mut above = Self { machine: None, clients: clients.collect(), dice, next_call: 0 };
        above.begin(datacenter);
        above
    }

    pub(super) fn stop(&mut self) {
        self.machine = None;
    }

    /// A controller without state finds all spines that are alive.
    pub(super) fn begin<O: TaskObserver>(&mut self, datacenter: &mut SimulatedRacks<O>) {
        let (control, count) = (datacenter.control(), datacenter.spines.len());
        let plans: Vec<_> = (0..count)
            .map(|spine| plan(control, Tier::Spine, SPINES.at(spine as u32), control.queue()))
            .collect();
        let lease = plans[0].lease;
        let spines =
            plans.into_iter().map(|plan| Controller::new(plan, self.dice.seed()).expect("it is sound"));
        let placed = &control.pools[0].racks;
        let racks = (0..count).map(|spine| {
            let below = placed.iter().filter(|rack| rack.spine == spine);
            below.map(|rack| rack_name(rack.leaf as usize)).collect()
        });
        let pods = Pods::new(racks.collect(), lease, datacenter.world.now);
        self.machine = Some(PodMachines { pods, spines: spines.collect(), are_read: vec![false; count] });
        (0..count)
            .filter(|spine| datacenter.spines[*spine].lives)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|spine| self.on_spine_change(datacenter, spine, true));
    }

    /// Handles the death or return of a spine.
    pub(super) fn on_outage<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        step: OutageStep,
    ) {
        match step {
            OutageStep::Out(FabricSwitch::Spine(spine)) => {
                self.on_spine_change(datacenter, spine as usize, false);
            }
            OutageStep::Back(FabricSwitch::Spine(spine)) => {
                self.on_spine_change(datacenter, spine as usize, true);
            }
            OutageStep::Dies(_) | OutageStep::Out(_) | OutageStep::Back(_) => {}
        }
    }

    /// A spine was found, or lost.
    fn on_spine_change<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        spine: usize,
        lives: bool,
    ) {
        let Some(PodMachines { pods, spines, are_read }) = &mut self.machine else { return };
        let event = if lives {
            Event::SwitchUp(datacenter.spines[spine].program().shape())
        } else {
            Event::SwitchDown
        };
        datacenter.lead(SPINES.at(spine as u32), &mut spines[spine], Some(event));
        are_read[spine] = false;
        pods.serves(spine, None);
        pods.on_spine(spine, lives);
    }

    /// All controllers do what is due, and clients renew.
    pub(super) fn renew<O: TaskObserver>(&mut self, datacenter: &mut SimulatedRacks<O>) {
        self.note_spines(datacenter);
        for client in 0..self.clients.len() {
            if !is_lost(&mut self.dice, datacenter) {
                self.renew_client(datacenter, client);
            }
        }
    }

    /// Notes which spines have leaves, of those whose tables were read.
    fn note_spines<O: TaskObserver>(&mut self, datacenter: &mut SimulatedRacks<O>) {
        let Some(PodMachines { pods, spines, are_read }) = &mut self.machine else { return };
        for (spine, controller) in spines.iter_mut().enumerate() {
            datacenter.lead(SPINES.at(spine as u32), controller, None);
            let serves = controller.does_serve();
            if serves.is_some() && !are_read[spine] {
                pods.found(spine, controller.client_lives());
            }
            are_read[spine] = serves.is_some();
            pods.serves(spine, serves);
        }
    }

    fn renew_client<O: TaskObserver>(&mut self, datacenter: &mut SimulatedRacks<O>, client: usize) {
        let spines = datacenter.spines.len();
        let SpineClient { calls, held } = self.clients[client];
        let Some(PodMachines { pods, .. }) = &self.machine else {
            self.clients[client].calls = (calls + 1) % spines;
            return;
        };
        let (submitter, home) = (&datacenter.clients.all[client], client % spines);
        let hello = ClientHello {
            name: format!("client-{}/{home}", client / spines),
            incarnation: submitter.incarnation,
            at: submitter.node.at.endpoint(),
            floor: submitter.node.machine.floor(),
            held,
        };
        let Ok(route) = pods.of_client(datacenter.world.now, &hello, calls) else { return };
        let event = |call| Event::ClientHello { call, hello: hello.clone() };
        // The registration that it leaves behind stays until its lease ends, for tasks that are still under
        // way there.
        let Some((Answer::Client(grant), at)) = self.register(datacenter, route, event) else { return };
        let Some(PodMachines { pods, .. }) = &mut self.machine else { return };
        for other in pods.client_granted(datacenter.world.now, &hello, at, grant.key) {
            self.call(datacenter, other, |_| Event::ClientElsewhere(hello.incarnation));
        }
        if !is_lost(&mut self.dice, datacenter) {
            self.clients[client] = SpineClient { calls: home, held: Some((grant.client, grant.key)) };
            datacenter.grant_client(client, grant.registration);
        }
    }

    /// A leaf registers a pool of its rack; returns the grant.
    pub(super) fn register_leaf<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        hello: &WorkerHello,
    ) -> Option<WorkerRegistration> {
        let route = self.machine.as_ref()?.pods.of_leaf(datacenter.world.now, hello).ok()?;
        let event = |call| Event::WorkerHello { call, hello: hello.clone() };
        let (Answer::Worker(grant), at) = self.register(datacenter, route, event)? else { return None };
        self.machine.as_mut()?.pods.granted(datacenter.world.now, &hello.name, at, grant.key);
        if let Some(left) = route.from.filter(|from| *from != at) {
            self.leave(datacenter, left, hello);
        }
        Some(grant.registration)
    }

    /// The last worker of a leaf's pool has left.
    pub(super) fn remove_leaf<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        hello: &WorkerHello,
    ) {
        let Some(spine) = self.machine.as_ref().and_then(|machine| machine.pods.seat(&hello.name)) else {
            return;
        };
        self.leave(datacenter, spine, hello);
        if let Some(machine) = &mut self.machine {
            machine.pods.left(&hello.name);
        }
    }

    fn leave<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        spine: usize,
        hello: &WorkerHello,
    ) {
        let (name, life) = (hello.name.clone(), hello.life);
        self.call(datacenter, spine, |call| Event::WorkerLeave { call, name, life });
    }

    /// Registers a host; returns the spine that answered. A host that changes its spine stays registered at
    /// the old one until the new one has granted it.
    fn register<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        PodRoute { to, from }: PodRoute,
        event: impl Fn(CallId) -> Event,
    ) -> Option<(Answer, usize)> {
        let answer = self.call(datacenter, to, &event);
        match (from, answer) {
            (_, Some(answer @ (Answer::Worker(_) | Answer::Client(_)))) => Some((answer, to)),
            (Some(from), _) => Some((self.call(datacenter, from, event)?, from)),
            (None, answer) => Some((answer?, to)),
        }
    }

    /// Passes a call to a controller; returns the answer if it comes at once.
    fn call<O: TaskObserver>(
        &mut self,
        datacenter: &mut SimulatedRacks<O>,
        spine: usize,
        event: impl FnOnce(CallId) -> Event,
    ) -> Option<Answer> {
        self.next_call += 1;
        let call = CallId(self.next_call);
        let controller = &mut self.machine.as_mut()?.spines[spine];
        let answers = datacenter.lead(SPINES.at(spine as u32), controller, Some(event(call)));
        answers.into_iter().find(|(of, _)| *of == call).map(|(_, answer)| answer)
    }
}

/// The name of a rack's leaf at the controller above.
pub(super) fn rack_name(leaf: usize) -> String {
    format!("rack-{leaf}")
}
