//! Two racks in one world, and a node before their switches that splits the tasks between them.

use sluice_wire::Nanos;

use super::*;
use crate::policy::Policy;
use crate::stats::{Mark, Outcome, Warmup};
use crate::workload::Workload;

/// When each task was due and when it was done.
#[derive(Debug, Default)]
struct Seen(Vec<(u64, u64)>);

impl Observer for Seen {
    fn sent(&mut self, _: Nanos) -> Mark {
        Mark::None
    }

    fn done(&mut self, _: u8, intended: Nanos, now: Nanos, _: Nanos, _: Nanos) {
        self.0.push((intended.0, now.0));
    }

    fn failed(&mut self, intended: Nanos, outcome: Outcome) {
        panic!("{intended:?}: {outcome:?}");
    }

    fn is_complete(&self) -> bool {
        false
    }
}

const END: Nanos = Nanos::from_millis(20);

fn point(policy: &str, seed: u64) -> (Point, Choice) {
    let Policy::Program(choice) = Policy::parse(policy).unwrap() else { panic!("{policy} is a program") };
    let testbed = Testbed { workers: 8, ..Testbed::rain() };
    let (policy, workload) = (Policy::Program(choice), Workload::parse("exp:10us").unwrap());
    let point = Point {
        policy,
        testbed,
        workload,
        rate_per_s: 600e3,
        tasks: 1,
        warmup: Warmup::Tasks(0),
        seed,
        transient: false,
        repeats: false,
        slices: None,
    };
    (point, choice)
}

fn alone((point, choice): &(Point, Choice)) -> Vec<(u64, u64)> {
    let mut rack = Rack::new(point, choice, 0, Seen::default());
    while rack.stage.world.engine.next().0 < END {
        rack.run(1);
    }
    rack.stage.meter.observer.0
}

/// Two racks' nodes, three addresses each, and a splitter at the seventh.
struct Two {
    stage: Stage<Seen>,
    racks: [Nodes; 2],
}

const SPLITTER: Address = Address::node(6);

impl Two {
    fn new(points: &[(Point, Choice); 2]) -> Self {
        let mut world = World::new(16);
        let racks = [0, 1].map(|rack| {
            let (point, choice) = &points[usize::from(rack)];
            let places = Places { front: SPLITTER, ..Places::from(3 * rack, 8 * u32::from(rack)) };
            // What the splitter passes on is still from its client.
            world.join(places.clients, places.switch, Nanos(0), Nanos(0));
            Nodes::new(&mut world, places, point, choice, 0, |config| choice.build(config))
        });
        let (meter, books) = (Meter::new(Seen::default(), 16), Books::new(true));
        let mut two = Self { stage: Stage { world, meter, books, adaptation: None }, racks };
        for (rack, (point, _)) in two.racks.iter_mut().zip(points) {
            let phases = &mut Dice::named(point.seed, "phases", 0);
            rack.begin(&mut two.stage, &point.testbed, phases);
        }
        two
    }
}

impl Inhabited<Cue> for Two {
    fn world(&mut self) -> &mut World<Cue> {
        &mut self.stage.world
    }

    fn mail(&mut self, to: Address, mail: Mail) {
        if let Mail::Packet { from, packet } = mail
            && to == SPLITTER
        {
            let (task, now) = (*self.stage.world.engine.packets.get(packet), self.stage.now());
            let switch = self.racks[usize::from(from.of_node() / 3)].plan.places.switch;
            return self.stage.send(from, switch, now, |packet| *packet = task);
        }
        self.racks[usize::from(to.of_node() / 3)].mail(&mut self.stage, to, mail);
    }

    fn alarm(&mut self, alarm: AlarmId) {
        self.racks[alarm.0 as usize / 8].workers.ends(&mut self.stage, alarm);
    }

    fn clock(&mut self, clock: ClockId) {
        let rack = self.racks.iter_mut().find(|rack| rack.clients.clock == clock);
        rack.expect("a clock is somebody's").clients.request(&mut self.stage);
    }

    fn cue(&mut self, cue: Cue) {
        let Cue::Host(at, what) = cue else { panic!("nobody adapts") };
        self.racks[usize::from(at.of_node() / 3)].cue(&mut self.stage, at, what);
    }
}

#[test]
fn two_switches_behind_a_node_that_splits_tasks_do_what_each_does_in_its_own_rack() {
    let points = [point("rain:2", 1), point("r2p2:3", 2)];
    let mut two = Two::new(&points);
    while two.world().engine.next().0 < END && two.step() {}
    let mut expected = points.each_ref().map(alone).concat();
    let mut seen = two.stage.meter.observer.0;
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!((seen.len(), seen.iter().zip(&expected).find(|(a, b)| a != b)), (expected.len(), None));
    assert!(seen.len() > 20_000);
}
