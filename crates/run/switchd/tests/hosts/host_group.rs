//! Hosts that share a thread, under every program, with a testbed's delays and costs.

use std::time::Duration;

use sluice_host::client::Outcome;
use sluice_host::slow::SlowTime;
use sluice_net::client::Urgency;
use sluice_net::udp::Waiting;
use sluice_net::{ClientOptions, ServiceError, WorkerOptions, service_fn};
use sluice_switch::registry::Choice;
use sluice_switchd::switch::Delays;
use sluice_testrig::host_group::{HostGroup, HostGroupReport};
use sluice_testrig::processor::{HostCosts, SlowPeriod};
use sluice_testrig::schedule::Planned;
use sluice_wire::{Nanos, ReplyStatus};

use super::agent::Person;
use super::rack::{ECHO, Rack, until};

const DILATION: u32 = 20;
const TASKS: u64 = 60;

/// Sends a task of 200 us, dilated to 4 ms, every millisecond to three workers, of which the first may be
/// slow. Returns the outcomes.
fn play(program: &str, slow: Option<SlowTime>) -> (Vec<Outcome>, HostGroupReport) {
    let delays = Delays::testbed(DILATION.into());
    let rack = Rack::under(Choice::parse(program).expect("it is known"), delays);
    let mut group = HostGroup::new(Waiting::Block, None).expect("descriptors are left");
    for number in 0..3 {
        let options = WorkerOptions {
            name: format!("w{number}"),
            dilation: DILATION,
            ..WorkerOptions::new(&rack.controller()).expect("a legal address")
        };
        let costs = HostCosts {
            receive: Nanos(4_000),
            send: Nanos(4_000),
            to_client: delays.host_to_host(),
            slow: slow.filter(|_| number == 0).map(|time| SlowPeriod { time, since: group.schedule_start() }),
        };
        let hold = service_fn(ECHO, |task, reply| {
            task.hold(Nanos::from_micros(200));
            reply.extend(task.bytes);
            Ok::<(), ServiceError>(())
        });
        group.worker(&options, Some(costs), Box::new(hold)).expect("the loopback has free ports");
    }
    // Its repeats would run twice: none is sent before the tasks' deadline.
    let client = ClientOptions { dilation: 20 * DILATION, ..rack.client_options("c") };
    let player = group.player(&client).expect("the loopback has free ports");
    let group = group.spawn().expect("the system has threads");
    player.wait_until_ready(Duration::from_mins(2)).expect("the controller takes clients");
    let operator = Person::of(&rack);
    until("three workers", || operator.status().workers.len() == 3);
    let planned = |n: u64| Planned {
        due: Nanos::from_millis(n),
        kind: ECHO,
        urgency: Urgency::Unstated,
        bytes: n.to_be_bytes(),
    };
    let playing = player.play((0..TASKS).map(planned).collect(), Nanos::from_millis(20_000));
    let played = playing.wait(Duration::from_mins(2)).expect("the group runs").expect("all tasks ended");
    (played.iter().map(|one| one.outcome).collect(), group.end().expect("no host failed"))
}

#[test]
fn a_host_group_runs_every_task_once_under_every_program() {
    for program in Choice::all() {
        let (outcomes, report) = play(program.name, None);
        for (number, outcome) in outcomes.iter().enumerate() {
            let Outcome::Reply(reply) = outcome else { panic!("{} {number}: {outcome:?}", program.name) };
            assert_eq!(reply.status, ReplyStatus::Done);
            assert_eq!(reply.payload.inline, (number as u64).to_be_bytes(), "{}", program.name);
            assert_eq!(reply.service_ns, 4_000_000, "a paced worker's services take their own time");
        }
        let finished: u64 = report.workers.iter().map(|worker| worker.finished).sum();
        assert_eq!(finished, TASKS, "{}", program.name);
        assert!(report.workers.iter().all(|worker| worker.drained), "{}", program.name);
    }
}

#[test]
fn a_worker_that_is_slow_takes_as_much_longer_for_its_services_and_gets_fewer() {
    let slow = SlowTime { factor: 3.0, from: Nanos(0), until: Nanos::from_millis(60_000) };
    let (outcomes, _) = play("rain", Some(slow));
    let services = outcomes.iter().map(|outcome| match outcome {
        Outcome::Reply(reply) => (reply.worker, reply.service_ns),
        other => panic!("{other:?}"),
    });
    let services: Vec<_> = services.collect();
    let slow: Vec<_> = services.iter().filter(|(_, service_ns)| *service_ns == 12_000_000).collect();
    assert!(!slow.is_empty() && slow.iter().all(|(worker, _)| *worker == slow[0].0), "{services:?}");
    let others = services.iter().filter(|(worker, _)| *worker != slow[0].0);
    assert!(others.clone().all(|(_, service_ns)| *service_ns == 4_000_000));
    assert!(others.count() > 2 * slow.len(), "tokens of a slow worker come more rarely");
}
