//! The nodes of one rack: its switch, its workers and its clients, at places of their own in a world.

use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};
use sluice_wire::Nanos;
use sluice_wire::registrations::WorkerRegistration;

use super::books::Books;
use super::clients::Clients;
use super::controller::{ControllerNode, Grants};
use super::servers::Servers;
use super::setup::{Plan, client_settings};
use super::stage::{Cue, Places, RackWorld, Stage};
use super::switch::SwitchNode;
use super::workers::Workers;
use crate::point::Point;
use crate::stats::Observer;
use crate::testbed::Testbed;
use crate::world::{Address, Happens, LinkQueue, Mail, OneWay};

/// A rack's nodes, registered with its controller.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) plan: Plan,
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
        let (testbed, world) = (&point.testbed, &mut stage.world);
        let plan = Plan::new(places, point, choice, replication);
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
        nodes.begin(stage, testbed);
        nodes
    }

    fn begin<O: Observer>(&mut self, stage: &mut Stage<O>, testbed: &Testbed) {
        let longest = if self.plan.is_polled() { testbed.refill() } else { Nanos(0) };
        let mut phases = self.plan.dice("phases");
        for worker in 0..testbed.workers {
            let at = Nanos(phases.below(longest.0 + 1));
            stage.cue(at, self.plan.places.workers.at(worker), Cue::Start);
        }
        self.clients.draw(stage);
        self.begin_adapting(stage);
    }

    /// Something happens to one of the nodes.
    #[expect(clippy::inline_always, reason = "each event pays for a call that stays one")]
    #[inline(always)]
    pub(super) fn happens<O: Observer>(&mut self, stage: &mut Stage<O>, at: Address, what: Happens<Cue>) {
        match what {
            Happens::Mail(mail) => self.mail(stage, at, mail),
            Happens::Alarm => self.workers.ends(stage, at.place()),
            Happens::Clock => self.clients.request(stage),
            Happens::Cue(cue) => self.cue(stage, at, cue),
        }
    }

    /// Something comes to one of the nodes.
    #[expect(clippy::inline_always, reason = "each event pays for a call that stays one")]
    #[inline(always)]
    fn mail<O: Observer>(&mut self, stage: &mut Stage<O>, to: Address, mail: Mail) {
        let Self { workers, clients, switch, plan, .. } = self;
        let (places, node) = (plan.places, to.at(0));
        if node == places.workers {
            workers.mail(stage, to.place(), mail);
        } else if node == places.clients {
            clients.mail(stage, to.place(), mail);
        } else if let Some(write) = switch.mail(stage, mail) {
            let leaves = switch.leaves(stage.now());
            let copies =
                workers.servers.write_ahead(switch.program(), &mut stage.world.network, leaves, &write);
            stage.meter.counts.writes += u64::from(copies);
            stage.meter.counts.packets += u64::from(copies);
        }
    }

    fn cue<O: Observer>(&mut self, stage: &mut Stage<O>, at: Address, cue: Cue) {
        let Self { workers, clients, plan, registrations, .. } = self;
        match cue {
            Cue::Start => workers.grant(stage, at.place(), registrations[at.place() as usize]),
            Cue::Early => workers.early_token(stage, at.place()),
            Cue::Tick if at.at(0) == plan.places.workers => workers.tick(stage, at.place()),
            Cue::Tick => clients.tick(stage, at.place()),
            Cue::Adapts => self.adapt(stage),
            Cue::Controls => self.controls(stage),
            Cue::Step => self.carry_out_step(stage),
        }
    }

    /// Holds the books to what the nodes say.
    pub(super) fn check(&self, books: &Books) {
        books.check(self.clients.outstanding(), self.clients.held_back(), self.switch.waiting());
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

fn switch_of(world: &mut RackWorld, plan: &Plan, testbed: &Testbed, program: Box<dyn Program>) -> SwitchNode {
    let lane = world.engine.lane(testbed.switch.pass + testbed.switch.recirculation);
    SwitchNode::new(plan.places.switch, program, testbed.switch, lane, plan.is_polled(), plan.suits.clone())
}
