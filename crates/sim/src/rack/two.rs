//! Two racks in one world, and a node before their switches that splits the tasks between them.

use sluice_wire::Nanos;

use super::*;
use crate::policy::Policy;
use crate::stats::{Mark, Outcome, Warmup};
use crate::workload::Workload;
use crate::world::{Address, Happening, Mail};

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

#[test]
fn two_switches_behind_a_node_that_splits_tasks_do_what_each_does_in_its_own_rack() {
    let points = [point("rain:2", 1), point("r2p2:3", 2)];
    let splitter = Address::node(6);
    let mut world = World::new(16);
    let places =
        [0, 1].map(|rack: u8| Places { front: splitter, ..Places::from(3 * rack, 8 * u32::from(rack)) });
    let mut racks = [0, 1].map(|rack| {
        let (point, choice) = &points[rack];
        // What the splitter passes on is still from its client.
        world.join(places[rack].clients, places[rack].switch, Nanos(0), Nanos(0));
        Nodes::new(&mut world, places[rack], point, choice, 0, |config| choice.build(config))
    });
    let mut stage =
        Stage { world, meter: Meter::new(Seen::default(), 16), books: Books::new(true), adaptation: None };
    for (rack, (point, _)) in racks.iter_mut().zip(&points) {
        rack.begin(&mut stage, &point.testbed, &mut Dice::named(point.seed, "phases", 0));
    }
    while stage.world.engine.next().0 < END {
        match stage.world.next().unwrap() {
            Happening::Mail(to, Mail::Packet { from, packet }) if to == splitter => {
                let (task, now) = (*stage.world.engine.packets.get(packet), stage.now());
                let switch = places[usize::from(from.of_node() / 3)].switch;
                stage.send(from, switch, now, &task);
            }
            happening => {
                let rack = match happening {
                    Happening::Mail(to, _) | Happening::Cue(Cue::Starts(to) | Cue::Tick(to)) => {
                        to.of_node() / 3
                    }
                    Happening::Alarm(alarm) => (alarm.0 / 8) as u8,
                    Happening::Clock(_) => 2,
                    Happening::Cue(_) => panic!("nobody adapts, and no token is early"),
                };
                let whose = |(number, _): &(usize, &mut Nodes)| rack == 2 || *number == usize::from(rack);
                for (_, nodes) in racks.iter_mut().enumerate().filter(whose) {
                    nodes.happen(&mut stage, happening);
                }
            }
        }
    }
    let mut expected = [alone(&points[0]), alone(&points[1])].concat();
    let mut seen = stage.meter.observer.0;
    seen.sort_unstable();
    expected.sort_unstable();
    assert_eq!((seen.len(), seen.iter().zip(&expected).find(|(a, b)| a != b)), (expected.len(), None));
    assert!(seen.len() > 20_000);
}
