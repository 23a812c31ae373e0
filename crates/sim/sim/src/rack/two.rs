//! Two racks in one world, and a node before their switches that splits the tasks between them: for all
//! programs.

use sluice_wire::Nanos;

use super::*;
use crate::events::{Address, Mail, WorldEvent};
use crate::policy::Policy;
use crate::stats::Diary;
use crate::testbed::Testbed;
use crate::workload::Workload;

const SPLITTER: Address = Address::node(6);
const END: Nanos = Nanos::from_millis(20);

#[test]
fn two_switches_behind_a_node_that_splits_tasks_do_what_each_does_in_its_own_rack() {
    let programs: Vec<&str> = Choice::all().map(|program| program.example).collect();
    for pair in programs.chunks(2) {
        let points = [(pair[0], 1), (pair[pair.len() - 1], 2)].map(|(policy, seed)| {
            let (policy, workload) = (Policy::parse(policy).unwrap(), Workload::parse("exp:10us").unwrap());
            let testbed = Testbed { workers: 8, ..Testbed::rain() };
            Point { seed, ..Point::new(policy, testbed, workload, 500e3) }
        });
        behind_one_splitter(&points);
    }
}

fn behind_one_splitter(points: &[Point; 2]) {
    let mut stage = Stage::new(Diary::until(END), 16, false);
    let mut racks = [0, 1].map(|rack| {
        let places = Places { front: SPLITTER, ..Places::from(3 * rack) };
        // What the splitter passes on is still from its client.
        stage.world.join(places.clients, places.switch, Nanos(0), Nanos(0));
        let point = &points[usize::from(rack)];
        let Policy::Program(choice) = point.policy else { panic!("{} is a program", point.policy) };
        Nodes::new(&mut stage, places, point, &choice, 0, |config| choice.build(config))
    });
    while !stage.meter.observer.is_complete() {
        let rack_of = |address: Address| usize::from(address.of_node() / 3);
        match stage.world.next().expect("requests do not end") {
            (SPLITTER, WorldEvent::Mail(Mail::Packet { from, packet })) => {
                let (task, now) = (stage.world.packets.take(packet), stage.now());
                stage.send(from, racks[rack_of(from)].plan.places.switch, now, |place| *place = task);
            }
            (at, what) => Staged { nodes: &mut racks[rack_of(at)], stage: &mut stage }.happens(at, what),
        }
    }
    let run = AtomicBool::new(false);
    let alone =
        points.each_ref().map(|point| point.observe(0, Diary::until(END), &run).unwrap().0.in_order());
    let (both, mut expected) = (stage.meter.observer.in_order(), alone.concat());
    expected.sort_unstable();
    let programs = format!("{} and {}", points[0].policy, points[1].policy);
    assert_eq!(both.iter().zip(&expected).find(|(both, alone)| both != alone), None, "{programs}");
    // A server's one core is full long before its workers are.
    assert!(both.len() == expected.len() && both.len() > 100, "{programs}: {}", both.len());
}
