//! The nodes of one rack: its switch, its workers and its clients, at places of their own in a world.

use std::borrow::Cow;
use std::convert::Infallible;

use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};
use sluice_wire::registrations::WorkerRegistration;
use sluice_wire::{Nanos, Packet};

use super::books::Books;
use super::clients::Clients;
use super::controller::{ControllerNode, Grants};
use super::cores::of_switch;
use super::servers::Servers;
use super::setup::{RackSetup, client_settings};
use super::software::{self, ServerCore};
use super::stage::{Places, RackWorld, Scheduled, Stage};
use super::switch::SwitchNode;
use super::workers::Workers;
use crate::cores_layout::CoresLayout;
use crate::events::{Address, LinkQueue, Mail, OneWay, PacketId, WorldEvent};
use crate::nodes::{PacketPool, Scene, SwitchSide, WorkerSide};
use crate::point::Point;
use crate::stats::Observer;
use crate::testbed::Testbed;

/// A rack's nodes, registered with its controller.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) plan: RackSetup,
    pub(super) controller: ControllerNode,
    pub(super) switch: SwitchNode,
    /// What the workers begin with.
    pub(super) registrations: Vec<WorkerRegistration>,
    pub(super) workers: Workers,
    pub(super) clients: Clients,
}

impl Nodes {
    /// The nodes for one replication of a point, joined by the testbed's links and about to begin: tokens go
    /// out at once; those who poll begin at random times within a round trip.
    pub(super) fn new<O: Observer>(
        stage: &mut Stage<O>,
        places: Places,
        point: &Point,
        choice: &Choice,
        replication: u32,
        program: impl FnOnce(Config) -> Box<dyn Program>,
    ) -> Self {
        let of_cores = CoresLayout::of(&point.testbed, &point.workload.classes);
        let seen = of_cores.as_ref().map_or(Cow::Borrowed(point), |of| Cow::Owned(of_switch(of, point)));
        let (testbed, world, point) = (&seen.testbed, &mut stage.world, &*seen);
        let plan = RackSetup::new(places, point, choice, replication).with_cores(of_cores);
        join(world, places, testbed);
        let (clock, requests) = (world.engine.clock(places.clients), point.requests(replication));
        let (mut program, mut servers) = (program(plan.config()), Servers::new(&plan, testbed));
        let mut controller = ControllerNode::new(&plan, &mut *program);
        let Grants { workers, clients } = controller.enrol(&plan, &mut servers, &mut *program);
        let mut nodes = Self {
            switch: switch_of(world, &plan, testbed, program),
            controller,
            registrations: workers.iter().map(|grant| grant.registration).collect(),
            workers: Workers::new(world, &plan, point, choice, replication, &workers, servers),
            clients: Clients::new(
                &plan,
                clock,
                requests,
                clients,
                client_settings(testbed),
                testbed.has_faults() || plan.is_adaptive,
            ),
            plan,
        };
        Staged { nodes: &mut nodes, stage }.begin(testbed);
        nodes
    }

    /// Holds the books to what the nodes say.
    pub(super) fn check(&self, books: &Books) {
        books.check(self.clients.outstanding(), self.clients.held_back(), self.switch.waiting());
    }
}

/// The switch's place where packets come in, and, where a server schedules behind it, that server's core.
const DOOR: u32 = 0;
const CORE: u32 = 1;

/// The nodes on their stage, while something happens to one of them.
pub(super) struct Staged<'a, O> {
    pub(super) nodes: &'a mut Nodes,
    pub(super) stage: &'a mut Stage<O>,
}

impl<O: Observer> Staged<'_, O> {
    fn begin(&mut self, testbed: &Testbed) {
        let longest = if self.nodes.plan.is_polled() { testbed.refill() } else { Nanos(0) };
        let mut phases = self.nodes.plan.dice("phases");
        for worker in 0..self.nodes.plan.workers() {
            let at = Nanos(phases.below(longest.0 + 1));
            self.stage.schedule(at, self.nodes.plan.places.workers.at(worker), Scheduled::Start);
        }
        self.draw();
        self.begin_adapting();
    }

    /// Something happens to one of the nodes.
    #[expect(clippy::inline_always, reason = "each event pays for a call that stays one")]
    #[inline(always)]
    pub(super) fn happens(&mut self, at: Address, what: WorldEvent<Scheduled>) {
        match what {
            WorldEvent::Mail(mail) => self.mail(at, mail),
            WorldEvent::Timer => self.timer(at.place()),
            WorldEvent::Clock => self.request(),
            WorldEvent::Scheduled(schedule) => self.schedule(at, schedule),
        }
    }

    /// Something comes to one of the nodes.
    #[expect(clippy::inline_always, reason = "each event pays for a call that stays one")]
    #[inline(always)]
    fn mail(&mut self, to: Address, mail: Mail) {
        let Places { workers, clients, .. } = self.nodes.plan.places;
        match mail {
            Mail::Packet { packet, .. } if to.at(0) == workers => self.at_worker(to.place(), packet),
            Mail::Packet { packet, .. } if to.at(0) == clients => self.at_client(to.place(), packet),
            Mail::Packet { from, packet } if self.nodes.switch.core.is_some() && to.place() == DOOR => {
                self.waits_for_core(from, packet);
            }
            _ => {
                let Ok(()) = self.switch_hears(mail);
            }
        }
    }

    /// A server schedules: what comes to the switch waits for its core.
    fn waits_for_core(&mut self, from: Address, packet: PacketId) {
        let (now, at) = (self.stage.now(), self.nodes.plan.places.switch.at(CORE));
        if let Some(core) = &mut self.nodes.switch.core {
            self.stage.world.engine.send(core.lane, core.takes(now), at, Mail::Packet { from, packet });
        }
    }

    fn schedule(&mut self, at: Address, schedule: Scheduled) {
        let place = at.place();
        match schedule {
            Scheduled::Start => self.grant_worker(place, self.nodes.registrations[place as usize]),
            Scheduled::Early => {
                let Ok(()) = self.worker_sends_early(place as usize);
            }
            Scheduled::Tick if at.at(0) == self.nodes.plan.places.workers => {
                let Ok(()) = self.worker_wakes(place as usize);
            }
            Scheduled::Tick => self.wake(place as usize),
            Scheduled::Adapts => self.adapt(),
            Scheduled::Controls => self.controls(),
            Scheduled::Step => self.carry_out_step(),
            Scheduled::Descriptor => self.reaches_core(place as usize),
            Scheduled::Ended => self.core_told(place as usize),
        }
    }
}

impl<O: Observer> Scene for Staged<'_, O> {
    type Broken = Infallible;
    const SOONEST: Nanos = Nanos(0);

    fn now(&self) -> Nanos {
        self.stage.now()
    }

    fn switch_at(&self) -> Address {
        self.nodes.plan.places.switch
    }

    fn packets(&mut self) -> &mut PacketPool {
        &mut self.stage.world.packets
    }

    #[inline]
    fn send(&mut self, from: Address, to: Address, leaves: Nanos, make: impl FnOnce(&mut Packet)) {
        self.stage.send(from, to, leaves, make);
    }
}

/// Links between the nodes of a rack, as long and as fast as the testbed's.
fn join(world: &mut RackWorld, places: Places, testbed: &Testbed) {
    let Places { switch, workers, clients, .. } = places;
    let (pass, links, sends) = (testbed.switch.pass, testbed.links, testbed.worker.send);
    world.join(clients, places.front, links.client, Nanos(0));
    world.join(switch, clients, links.client, pass);
    world.join(workers, switch, links.worker, sends.times(2));
    // Past the switch, for a program that does not look at replies.
    world.join(workers, clients, testbed.way_back(), sends);
    let servers = testbed.servers;
    if servers.count == 0 {
        return world.join(switch, workers, links.worker, pass);
    }
    let lane = world.engine.lane(pass + links.worker);
    let link = |_| OneWay {
        delay: links.worker,
        lane,
        queue: Some(LinkQueue::new(servers.gbps, testbed.switch.packet_bytes)),
    };
    let each = testbed.workers / u32::from(servers.count);
    world.network.join_each(switch, workers, each, (0..servers.count).map(link));
}

fn switch_of(
    world: &mut RackWorld,
    plan: &RackSetup,
    testbed: &Testbed,
    program: Box<dyn Program>,
) -> SwitchNode {
    let lane = world.engine.lane(testbed.switch.pass + testbed.switch.recirculation);
    let core = plan.software.map(|software| {
        let waits = world.engine.lane(software::detour(software, testbed));
        ServerCore::new(software, testbed, waits)
    });
    SwitchNode::new(program, testbed.switch, lane, core, plan)
}
