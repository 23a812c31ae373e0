//! A rack without spines: all hosts register with its own controller before the first request.

use std::borrow::Cow;

use sluice_events::{LinkQueue, OneWay};
use sluice_stats::Distribution;
use sluice_switch::registry::Choice;
use sluice_switch::{Config, Program};
use sluice_testbed::Testbed;
use sluice_testbed::cores_layout::CoresLayout;
use sluice_wire::{Epoch, Nanos};

use super::clients::{Clients, PoolRequests};
use super::controller::{ControllerNode, Grants};
use super::cores::of_switch;
use super::fairness::ClientTally;
use super::meter::Meter;
use super::packet_loss::PoolLoss;
use super::places::{LEAVES, RackWorld, Scheduled, WORKERS, clock_of};
use super::rack_fabric::RackFabric;
use super::servers::Servers;
use super::setup::{RackSetup, client_settings};
use super::switch::{SwitchNode, SwitchProgram};
use super::task_places::TaskPlaces;
use super::watch::TaskObserver;
use super::workers::Workers;
use super::world::{HostAdmission, PoolRun, RackLead, SimulatedRacks, join};
use crate::point::Point;
use crate::software::{self, ServerCore};

impl<O: TaskObserver> SimulatedRacks<O> {
    /// The rack of a point, with the hosts that `choice` needs.
    pub(super) fn alone(point: &Point, choice: &Choice, replication: u32, observer: O) -> Self {
        let below = RackFabric::of(&point.testbed, point.seed, replication).expect("the point was checked");
        let program = |config| choice.build(config);
        Self::with_program(point, choice, (replication, observer), program).over(below)
    }

    /// The rack with a program of the caller's. At the beginning tokens leave at once; workers that poll
    /// begin at random times within a round trip.
    pub(super) fn with_program(
        point: &Point,
        choice: &Choice,
        (replication, observer): (u32, O),
        program: impl FnOnce(Config) -> Box<dyn Program>,
    ) -> Self {
        let mut meter = Meter::new(observer, point.testbed.workers);
        meter.switch_waits = point.within.as_ref().map(|_| Distribution::new());
        meter.sees_waits = point.slices.is_none() && matches!(point.suits(), Ok(None));
        let of_cores = CoresLayout::of(&point.testbed, &point.workload.classes);
        let task_places = TaskPlaces::new(point.testbed.has_faults());
        let seed = [point.seed].into_iter();
        let mut world = RackWorld::new(PoolLoss::new(&point.testbed.faults, seed, replication));
        let seen = of_cores.as_ref().map_or(Cow::Borrowed(point), |of| Cow::Owned(of_switch(of, point)));
        let (testbed, point) = (&seen.testbed, &*seen);
        let plan = RackSetup::new(point, choice, replication).with_cores(of_cores);
        join(&mut world, testbed);
        join_servers(&mut world, testbed);
        let (mut program, mut servers) = (program(plan.config()), Servers::new(&plan, testbed));
        let mut controller = ControllerNode::new(&plan, &mut *program);
        let Grants { workers, clients } = controller.enrol(&plan, &mut servers, &mut *program);
        let arrivals = PoolRequests::of_rack(
            world.engine.clock(clock_of(0)),
            point.requests(replication),
            clients.len(),
            plan.asked.clone(),
            plan.sizes(),
        )
        .weighted(&testbed.client_weights, plan.dice("client weights"));
        meter.clients =
            (!testbed.client_weights.is_empty()).then(|| ClientTally::new(testbed.client_weights.len()));
        let core = plan.software.map(|software| {
            let waits = world.engine.lane(software::detour(software, testbed));
            ServerCore::new(software, testbed, waits)
        });
        let retries = testbed.has_faults() || plan.is_adaptive;
        let mut rack = Self {
            below: None,
            task_places,
            times: testbed.switch,
            round: world.engine.lane(testbed.switch.pass + testbed.switch.recirculation),
            spines: Vec::new(),
            leaves: vec![SwitchNode::new(SwitchProgram::Alone(program), Epoch(1), &testbed.switch)],
            core,
            is_polled: plan.is_polled(),
            suits: plan.suits.clone(),
            workers: Workers::of_rack(&mut world, &plan, (point, choice), replication, &workers, servers),
            clients: Clients::of_rack(&plan, clients, client_settings(testbed), retries),
            pools: vec![PoolRun { arrivals, meter, imbalance: None, intervals: None }],
            types: u16::MAX,
            lead: HostAdmission::Rack(Box::new(RackLead {
                controller,
                registrations: workers.iter().map(|grant| grant.registration).collect(),
                plan,
            })),
            world,
        };
        rack.begin_alone(testbed);
        rack
    }

    /// This rack with this fabric below it, before the first event.
    pub(super) fn over(mut self, below: Option<RackFabric>) -> Self {
        if below.is_some() {
            self.workers.servers.wait_for_writes();
        }
        self.below = below.map(Box::new);
        self
    }

    fn begin_alone(&mut self, testbed: &Testbed) {
        let longest = if self.is_polled { testbed.refill() } else { Nanos(0) };
        let mut phases = self.rack().plan.dice("phases");
        for worker in 0..self.workers.all.len() as u32 {
            let at = Nanos(phases.below(longest.0 + 1));
            self.schedule(at, WORKERS.at(worker), Scheduled::Start);
        }
        self.draw(0);
        self.begin_adapting();
    }

    /// A worker gets its first registration.
    pub(super) fn begin_worker(&mut self, worker: u32) {
        let grant = self.rack().registrations[worker as usize];
        self.grant_worker(worker as usize, grant);
    }
}

/// Makes the link of each server, if workers share servers.
fn join_servers(world: &mut RackWorld, testbed: &Testbed) {
    let servers = testbed.servers;
    if servers.count == 0 {
        return;
    }
    let lane = world.engine.lane(testbed.switch.pass + testbed.links.worker);
    let link = |_| OneWay {
        delay: testbed.links.worker,
        lane,
        queue: Some(LinkQueue::new(servers.gbps, testbed.switch.packet_bytes)),
    };
    let each = testbed.workers / u32::from(servers.count);
    world.network.join_each(LEAVES, WORKERS, each, (0..servers.count).map(link));
}
