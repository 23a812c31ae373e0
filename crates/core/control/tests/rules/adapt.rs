//! The slice step in the controller: it uses all agents' tallies, makes new generations, and never moves
//! the last worker.

use crate::rack::{Rack, client, plan, worker};
use sluice_control::{Answer, Controller, Event, Note, Refusal, Waiting, WorkerHello};
use sluice_wire::tallies::{SliceOthers, SliceTally};
use sluice_wire::{Nanos, SliceId, TaskType, WorkerId};

const GET: SliceId = SliceId(0);
const SCAN: SliceId = SliceId(1);

/// Two workers for GETs, one for SCANs, and a client.
fn rack() -> Rack {
    let mut rack = Rack::up();
    for (name, life, slice) in [("a", 1, "get"), ("b", 2, "get"), ("c", 3, "scan")] {
        let mut hello = worker(name, life);
        hello.slice = slice.to_string();
        rack.join(&hello);
    }
    rack.join_client(&client("x", 9));
    rack
}

fn tally(slice: SliceId, overloads: u32, idle_milli: u32, workers: &[(u16, u8)]) -> SliceTally {
    let depths = workers.iter().map(|(worker, depth)| (WorkerId(*worker), *depth)).collect();
    SliceTally { slice, overloads, idle_milli, tasks: 100 * workers.len() as u64, depths }
}

fn interval(rack: &mut Rack, agents: impl IntoIterator<Item = Vec<SliceTally>>) {
    for (agent, tallies) in agents.into_iter().enumerate() {
        rack.feed(Event::Tallies { server: format!("server-{agent}"), advises: false, tallies });
    }
    rack.run(Nanos::from_millis(10));
}

#[test]
fn an_idle_slice_lends_a_worker_which_starts_at_the_takers_depth() {
    let mut rack = rack();
    let idle = tally(GET, 0, 1_800, &[(0, 2), (1, 1)]);
    interval(&mut rack, [vec![idle, tally(SCAN, 1, 0, &[(2, 5)])]]);
    let lent =
        |note: &Note| note.to_string().starts_with("slice get lends worker b to slice scan at depth 5: 1.8");
    assert!(rack.notes.iter().any(lent), "{:?}", rack.notes);
    let grant = rack.join(&worker("b", 2));
    assert_eq!((grant.slice, grant.quota), (SCAN, 5));
}

#[test]
fn a_worker_that_does_not_serve_the_takers_types_is_not_lent() {
    let mut rack = rack();
    rack.join(&WorkerHello { types: vec![TaskType(1)], ..worker("b", 2) });
    interval(&mut rack, [vec![tally(GET, 0, 1_800, &[(0, 2), (1, 1)]), tally(SCAN, 1, 0, &[(2, 5)])]]);
    assert_eq!(rack.join(&worker("a", 1)).slice, SCAN);
}

#[test]
fn the_other_agents_are_waited_for_before_a_step_is_taken() {
    let mut rack = rack();
    let tallies = vec![tally(GET, 1, 1_200, &[(0, 1), (1, 4)])];
    rack.feed(Event::Tallies { server: "s".to_string(), advises: false, tallies });
    assert!(rack.controller.is_gathering());
    assert_eq!(rack.controller.deadline(), Some(rack.now + plan().gather_agents));
    rack.run(Nanos::from_millis(10));
    assert!(!rack.controller.is_gathering() && !rack.depths.is_empty());
}

#[test]
fn what_may_wait_follows_the_depths_that_agents_gave_to_workers_of_the_slice() {
    let mut rack = Rack::new(4, 64);
    let mut plan = plan();
    plan.slices.iter_mut().for_each(|slice| slice.limit = Some(10));
    rack.controller = Controller::new(plan, [7; 32]).expect("the plan is sound");
    rack.connect();
    rack.run(Nanos::from_millis(10));
    for (name, life, slice) in [("a", 1, "get"), ("b", 2, "get"), ("c", 3, "scan")] {
        rack.join(&WorkerHello { slice: slice.to_string(), ..worker(name, life) });
    }
    let wrong = [(1, 0), (1, 9), (2, 7)];
    for (advises, depths) in [(true, &[(0, 8)][..]), (false, &wrong), (false, &[(0, 5)])] {
        let tallies = vec![tally(GET, 0, 0, depths)];
        rack.feed(Event::Tallies { server: "s".to_string(), advises, tallies });
        rack.run(Nanos::from_millis(10));
    }
    let quotas = rack.controller.view(rack.now).workers.iter().map(|worker| worker.quota).collect::<Vec<_>>();
    assert_eq!(quotas, [5, 2, 2]);
    assert_eq!(rack.switch.slice(SliceId(0)).row.limit, 10 + 5 + 2);
}

#[test]
fn a_lent_worker_keeps_its_depth_until_its_host_has_adopted_it() {
    let mut rack = rack();
    interval(&mut rack, [vec![tally(GET, 0, 1_800, &[(0, 2), (1, 1)]), tally(SCAN, 1, 0, &[(2, 5)])]]);
    let grant = rack.join(&worker("b", 2));
    let mut hello = worker("b", 2);
    hello.held = Some((grant.worker, grant.key, grant.generation));
    hello.quota = 6;
    assert_eq!(rack.join(&hello).quota, 6);
}

#[test]
fn the_tallies_of_all_agents_count_together() {
    let mut rack = rack();
    let one = vec![tally(GET, 0, 600, &[(0, 1)])];
    let other = vec![tally(GET, 0, 600, &[(1, 1)]), tally(SCAN, 1, 0, &[(2, 1)])];
    interval(&mut rack, [one.clone()]);
    assert_eq!(rack.join(&worker("a", 1)).slice, GET);
    interval(&mut rack, [one, other]);
    assert_eq!(rack.join(&worker("a", 1)).slice, SCAN);
}

#[test]
fn a_slice_with_overloaded_and_idle_workers_evens_out_its_depths() {
    let mut rack = rack();
    interval(&mut rack, [vec![tally(GET, 1, 1_200, &[(0, 1), (1, 4)])]]);
    assert_eq!(rack.depths, [(WorkerId(0), 3), (WorkerId(1), 3)]);
}

#[test]
fn the_last_worker_of_a_slice_that_takes_tasks_stays() {
    let mut rack = rack();
    interval(&mut rack, [vec![tally(GET, 2, 0, &[(0, 1), (1, 1)]), tally(SCAN, 0, 9_000, &[(2, 1)])]]);
    assert!(!rack.notes.iter().any(|note| matches!(note, Note::WorkerLent { .. })));
    let call = rack.move_to("c", "get");
    rack.flush();
    let Answer::Refused { why: why @ Refusal::LastWorker { .. } } = &rack.answers[&call] else {
        panic!("{:?}", rack.answers[&call])
    };
    assert!(why.to_string().contains("the last one of slice `scan`, which takes types 2"), "{why}");
}

#[test]
fn a_tally_of_a_worker_that_is_gone_moves_nobody() {
    let mut rack = rack();
    rack.leave(&worker("b", 2));
    rack.flush();
    interval(&mut rack, [vec![tally(GET, 0, 1_800, &[(0, 2), (1, 1)]), tally(SCAN, 1, 0, &[(2, 5)])]]);
    assert!(!rack.notes.iter().any(|note| matches!(note, Note::WorkerLent { .. })));
}

/// Two workers for GETs on a server each, and one without a server.
fn rack_of_two_servers() -> Rack {
    let mut rack = Rack::up();
    for (name, life, on) in [("a", 1, "server-0"), ("b", 2, "server-1"), ("c", 3, "")] {
        let mut hello = worker(name, life);
        hello.server = on.to_string();
        rack.join(&hello);
    }
    rack
}

fn others(workers: u32, heard: u32, tasks: u64) -> Vec<SliceOthers> {
    vec![SliceOthers { slice: GET, workers, heard, tasks }]
}

#[test]
fn each_agent_hears_what_the_slices_workers_on_other_servers_ended() {
    let mut rack = rack_of_two_servers();
    let (one, other) = (tally(GET, 0, 0, &[(0, 1)]), SliceTally { tasks: 70, ..tally(GET, 0, 0, &[(1, 1)]) });
    interval(&mut rack, [vec![one.clone()], vec![other]]);
    assert_eq!(rack.told["server-0"], others(2, 1, 70), "nobody spoke for the worker without a server");
    assert_eq!(rack.told["server-1"], others(2, 1, 100));
    interval(&mut rack, [vec![one]]);
    assert_eq!(rack.told["server-0"], others(2, 0, 0), "the other agent was late");
    interval(&mut rack, [vec![tally(GET, 0, 0, &[])]]);
    assert_eq!(
        rack.told["server-0"],
        others(2, 0, 0),
        "a worker of its own that it does not speak of is none"
    );
}

#[test]
fn an_agent_that_only_advises_hears_of_the_others_and_moves_nobody() {
    let mut rack = rack();
    let idle = vec![tally(GET, 0, 1_800, &[(0, 2), (1, 1)])];
    let busy = vec![tally(SCAN, 1, 0, &[(2, 5)])];
    for (name, tallies) in [("one", idle), ("two", busy)] {
        rack.feed(Event::Tallies { server: name.to_string(), advises: true, tallies });
    }
    rack.run(Nanos::from_millis(10));
    assert_eq!(rack.told["one"], others(0, 0, 0));
    assert!(!rack.notes.iter().any(|note| matches!(note, Note::WorkerLent { .. })));
}

#[test]
fn a_worker_that_is_gone_is_no_longer_among_the_others() {
    let mut rack = rack_of_two_servers();
    rack.leave(&WorkerHello { server: "server-1".to_string(), ..worker("b", 2) });
    rack.flush();
    interval(&mut rack, [vec![tally(GET, 0, 0, &[(0, 1)])]]);
    assert_eq!(rack.told["server-0"], others(1, 0, 0));
}

/// The answer when the last worker for SCANs is wanted for GETs.
fn move_the_last(rack: &mut Rack) -> Answer {
    let call = rack.move_to("c", "get");
    rack.flush();
    rack.answers[&call].clone()
}

/// Maps SCANs to a slice.
fn map(rack: &mut Rack, slice: &str) {
    let slice = Some(slice.to_string());
    rack.call(|call| Event::SetType { call, task_type: TaskType(2), slice });
    rack.flush();
}

#[test]
fn the_last_worker_of_a_slice_that_takes_nothing_more_goes_when_its_queue_is_empty() {
    let mut rack = rack();
    for _ in 0..3 {
        rack.switch.submit(TaskType(2));
    }
    map(&mut rack, "get");
    let all = [worker("a", 1), worker("b", 2), worker("c", 3)];
    for _ in 0..8 {
        let Answer::Wait { why, .. } = move_the_last(&mut rack) else { panic!("tasks wait there") };
        assert_eq!(why, Waiting::SliceEmptying);
        rack.renew_for(Nanos::from_millis(200), &all.each_ref());
        rack.join_client(&client("x", 9));
        assert_eq!(rack.switch.tasks(SliceId(1)).len(), 3, "none of them is refused");
    }
    let grant = rack.join(&all[2]);
    for _ in 0..3 {
        rack.switch.token(grant.worker, grant.generation, 8);
    }
    assert_eq!(rack.switch.tasks(SliceId(1)).len(), 0);
    assert!(matches!(move_the_last(&mut rack), Answer::Wait { .. }), "one may be going round");
    rack.run(Nanos::from_millis(150));
    assert_eq!(move_the_last(&mut rack), Answer::Done);
    assert_eq!(rack.join(&all[2]).slice, GET);
}

#[test]
fn that_a_slice_was_empty_counts_no_more_when_a_type_was_mapped_to_it_meanwhile() {
    let mut rack = rack();
    map(&mut rack, "get");
    assert!(matches!(move_the_last(&mut rack), Answer::Wait { .. }));
    rack.run(Nanos::from_millis(10));
    map(&mut rack, "scan");
    assert!(matches!(move_the_last(&mut rack), Answer::Refused { .. }));
    rack.switch.submit(TaskType(2));
    map(&mut rack, "get");
    assert!(matches!(move_the_last(&mut rack), Answer::Wait { .. }));
}
