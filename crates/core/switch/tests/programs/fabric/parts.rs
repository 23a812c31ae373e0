//! Horus with one part of its policy alone (Horus Appendix C).

use sluice_switch::horus::PolicyParts;

use super::*;

fn only(parts: PolicyParts) -> FabricReading {
    FabricReading { parts, ..FabricReading::default() }
}

fn racks(fabric: &mut Fabric, tasks: u32) -> Vec<u16> {
    (0..tasks).map(|_| fabric.chosen().worker.0).collect()
}

#[test]
fn with_idle_nodes_alone_any_busy_rack_gets_the_task_however_long_its_queue() {
    let mut fabric = Fabric::busy(only(PolicyParts::IdleOnly), &[(2, 9), (2, 1)]);
    let to = racks(&mut fabric, 40);
    assert!([0, 1].iter().all(|rack| to.contains(rack)), "{to:?}");
    (0..2).for_each(|worker| fabric.reply(0, worker, 0));
    fabric.deliver();
    assert!(racks(&mut fabric, 20).iter().all(|rack| *rack == 0), "it is idle");
}

#[test]
fn with_loads_alone_nobody_hears_of_idle_workers_and_what_was_sent_is_not_seen() {
    let mut fabric = Fabric::of(only(PolicyParts::LoadsOnly), &[2, 2]);
    assert_eq!(fabric.news(), [], "nothing is said of idle workers");
    for (leaf, load) in [(0, 3), (1, 6)] {
        (0..2).for_each(|worker| fabric.reply(leaf, worker, load));
    }
    assert!(fabric.news().iter().all(|(_, news)| matches!(news, RackNews::Load(_))), "{:?}", fabric.news());
    fabric.deliver();
    assert!(racks(&mut fabric, 60).iter().all(|rack| *rack == 0), "until it tells something else");
    (0..2).for_each(|worker| fabric.reply(1, worker, 0));
    assert!(fabric.news().iter().all(|(_, news)| matches!(news, RackNews::Load(_))), "{:?}", fabric.news());
    fabric.deliver();
    assert!(racks(&mut fabric, 60).iter().all(|rack| *rack == 1));
}
