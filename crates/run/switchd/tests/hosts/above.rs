//! One controller above several spines (Horus §3.2, A.3). It distributes racks and clients, and survives
//! leaves and spines that die and return, and its own death.

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sluice_net::WorkerOptions;
use sluice_net::client::SpineClients;
use sluice_wire::{Generation, Nanos};

use crate::fabric::{Fabric, LEASE, LONG_LEASE, all_replied, named, submit_spread};
use crate::rack::{Echo, Running, until};

fn slow() -> Echo {
    Echo { takes: Duration::from_millis(1), ..Echo::default() }
}

/// Four racks, two below each spine, with a worker in each.
fn four(lease: Nanos) -> (Fabric, Vec<Running>, SpineClients, Echo) {
    let (fabric, echo) = (Fabric::under_one(4, 2, lease), slow());
    let workers = (0..4).map(|rack| fabric.worker(rack, &named(rack), &echo)).collect();
    until("all racks", || are_at_home(&fabric));
    let client = SpineClients::connect(&fabric.client_options("c"), &fabric.controllers(), 1);
    (fabric, workers, client.expect("both take it"), echo)
}

fn are_at_home(fabric: &Fabric) -> bool {
    [0, 1].iter().all(|spine| fabric.weights_at(*spine) == [1, 1])
}

/// For each spine, the generations and lives of its registered leaves.
fn lives(fabric: &Fabric) -> [Vec<(Generation, u64)>; 2] {
    [0, 1].map(|spine| fabric.rows_at(spine).iter().map(|row| (row.generation, row.life)).collect())
}

/// Closes the client, and checks that all its tasks were answered.
fn nothing_lost(client: SpineClients) {
    let reports = client.close().expect("no error");
    assert!(reports.iter().all(|report| report.tasks.refused + report.tasks.unknown == 0), "{reports:?}");
}

#[test]
fn a_spine_that_dies_loses_no_task_and_its_racks_and_clients_are_told_who_stands_in() {
    let (mut fabric, _workers, client, slow) = four(LEASE);
    let under_way = submit_spread(&client, 0..600);
    until("work", || slow.runs.load(Ordering::Relaxed) > 50);
    fabric.kill_spine(1);
    all_replied(under_way);
    until("its racks to be below the other one", || fabric.weights_at(0) == [1, 1, 1, 1]);
    let ran = fabric.leaf_counted(3, "dispatched");
    all_replied(submit_spread(&client, 600..1_000));
    assert!(fabric.leaf_counted(3, "dispatched") > ran, "they get tasks through it");
    fabric.bring_spine_back(1);
    until("its racks to be back", || are_at_home(&fabric));
    until("tasks through it", || {
        all_replied(submit_spread(&client, 1_000..1_020));
        fabric.counted_at(1, "dispatched") > 20
    });
    nothing_lost(client);
}

#[test]
fn a_leaf_that_dies_is_taken_out_at_its_spine_and_comes_back_with_its_workers() {
    let (mut fabric, _workers, client, slow) = four(LEASE);
    let under_way = submit_spread(&client, 0..600);
    until("work", || slow.runs.load(Ordering::Relaxed) > 50);
    fabric.kill(3);
    all_replied(under_way);
    until("the dead leaf to be taken out", || fabric.weights_at(1) == [1]);
    fabric.bring_back(3);
    until("it to be back", || are_at_home(&fabric));
    all_replied(submit_spread(&client, 600..1_000));
    assert!(fabric.leaf_counted(3, "dispatched") > 0, "it gets tasks again");
    nothing_lost(client);
}

#[test]
fn a_spine_whose_last_leaf_died_refuses_no_task_since_its_clients_go_where_there_are_some() {
    let (mut fabric, echo) = (Fabric::under_one(2, 2, LEASE), slow());
    let _workers = [0, 1].map(|rack| fabric.worker(rack, &named(rack), &echo));
    until("both racks", || fabric.weights_at(0) == [1] && fabric.weights_at(1) == [1]);
    let client = SpineClients::connect(&fabric.client_options("c"), &fabric.controllers(), 1);
    let client = client.expect("both take it");
    let under_way = submit_spread(&client, 0..400);
    fabric.kill(1);
    all_replied(under_way);
    until("the dead leaf to be taken out", || fabric.weights_at(1).is_empty());
    all_replied(submit_spread(&client, 400..800));
    fabric.bring_back(1);
    until("tasks through its spine again", || {
        all_replied(submit_spread(&client, 800..820));
        fabric.leaf_counted(1, "dispatched") > 0
    });
    nothing_lost(client);
}

/// Whether a condition holds in one of three tries. A controller that does not run for a second may take a
/// spine for dead, and send its hosts elsewhere, as it should.
fn holds_in_some_try(holds: fn() -> bool) -> bool {
    (0..3).any(|_| holds())
}

#[test]
fn tasks_go_on_while_the_controller_is_dead_and_it_reads_all_spines_back() {
    assert!(holds_in_some_try(nobody_comes_in_anew), "nobody had to come in anew");
}

fn nobody_comes_in_anew() -> bool {
    let (mut fabric, _workers, client, _) = four(LONG_LEASE);
    let before = lives(&fabric);
    fabric.kill_controller();
    all_replied(submit_spread(&client, 0..400));
    fabric.restart_controller();
    all_replied(submit_spread(&client, 400..800));
    let _late = fabric.worker(2, &named(2), &Echo::default());
    until("a worker that came since", || fabric.weights_at(1) == [1, 2]);
    nothing_lost(client);
    lives(&fabric) == before
}

/// Long enough for a lease to end and for the pauses between two calls to grow to their longest.
const LONG_DEAD: Duration = Duration::from_secs(6);

#[test]
fn a_controller_that_was_dead_for_longer_than_a_lease_finds_everybody_and_sends_nobody_elsewhere() {
    assert!(holds_in_some_try(nobody_goes_elsewhere), "each is at its own spine, and nobody came in anew");
}

fn nobody_goes_elsewhere() -> bool {
    let (mut fabric, _workers, client, _) = four(LONG_LEASE);
    let before = lives(&fabric);
    fabric.kill_controller();
    std::thread::sleep(LONG_DEAD);
    fabric.restart_controller();
    let _late = fabric.worker(2, &named(2), &Echo::default());
    let stays = Cell::new(true);
    until("a worker that came since", || {
        all_replied(submit_spread(&client, 0..20));
        stays.set(stays.get() && [0, 1].map(|spine| fabric.clients_at(spine)) == [1, 1]);
        fabric.weights_at(1) == [1, 2]
    });
    nothing_lost(client);
    stays.get() && lives(&fabric) == before
}

#[test]
fn a_spine_that_dies_while_the_controller_is_dead_is_stood_in_for_once_that_is_back() {
    let (mut fabric, _workers, client, _) = four(LEASE);
    fabric.kill_controller();
    fabric.kill_spine(0);
    let meanwhile = submit_spread(&client, 0..200);
    fabric.restart_controller();
    until("the dead spine's racks", || fabric.weights_at(1) == [1, 1, 1, 1]);
    all_replied(meanwhile);
    nothing_lost(client);
}

#[test]
fn a_worker_is_told_to_register_in_its_rack() {
    let fabric = Fabric::under_one(2, 2, LEASE);
    let options = WorkerOptions::new(fabric.controllers()[0].url()).expect("an address");
    let worker = sluice_net::Worker::new(&options, Echo::default()).expect("free ports");
    let why = worker.run().expect_err("no worker registers above racks").to_string();
    assert!(why.contains("registers with the leaf of its rack"), "{why}");
}
