//! Labels and classes of tasks: what an application states about a task in a rack with different kinds of
//! workers.

use sluice_net::client::{EndedTask, Outcome, RefusedWhy, RequiredLabels, TaskSpec};
use sluice_net::service::{Service, ServiceError, Task};
use sluice_net::{Client, TaskType};
use sluice_netem::Rates;
use sluice_switch::registry::Choice;
use sluice_wire::RejectReason;

use crate::DEADLINE;
use crate::rack::{ECHO, OTHER, Rack, Running, until};

/// Policies under which workers have labels.
const POLICIES: [&str; 2] = ["rain:1,labels", "draconis:poll=500us,labels"];

/// A service that answers with its own name and serves all types.
struct Named(&'static str);

impl Service for Named {
    fn types(&self) -> Vec<TaskType> {
        vec![ECHO, OTHER]
    }

    fn serve(&mut self, _: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        reply.extend(self.0.as_bytes());
        Ok(())
    }
}

fn worker(rack: &Rack, name: &'static str, labels: &[&str]) -> Running {
    let labels = labels.iter().map(|label| (*label).to_owned()).collect();
    rack.worker_with(name, Named(name), |options| options.labels = labels)
}

fn run(client: &Client, spec: impl Into<TaskSpec>) -> EndedTask {
    client.submit(spec, b"x", DEADLINE).expect("it fits").wait()
}

#[test]
fn a_task_goes_only_to_workers_that_have_what_it_says_it_needs() {
    POLICIES.into_iter().for_each(goes_where_it_is_served);
}

fn goes_where_it_is_served(policy: &str) {
    let rack = Rack::with_labels(policy);
    let (_plain, _fast) = (worker(&rack, "plain", &[]), worker(&rack, "fast", &["gpu"]));
    let client = rack.client("c");
    let needs = RequiredLabels::of(["gpu"]);
    let done_by = |spec: TaskSpec| run(&client, spec).outcome.done().map(<[u8]>::to_vec);
    until("a worker without labels", || done_by(ECHO.into()).as_deref() == Some(b"plain"));
    let done_fast = || done_by(TaskSpec::from(ECHO).needing(&needs)).as_deref() == Some(b"fast");
    until("a worker with the label", done_fast);
    for _ in 0..50 {
        assert!(done_fast(), "{policy}");
        assert_eq!(
            done_by(OTHER.into()).as_deref(),
            Some(&b"fast"[..]),
            "{policy}: what its type needs stands"
        );
    }
}

#[test]
fn a_task_that_needs_what_nobody_has_is_told_so_at_once() {
    POLICIES.into_iter().for_each(tells_at_once_what_nobody_has);
}

fn tells_at_once_what_nobody_has(policy: &str) {
    let rack = Rack::with_labels(policy);
    let (_plain, _fast) = (worker(&rack, "plain", &[]), worker(&rack, "fast", &["gpu"]));
    let early = rack.client("early");
    until("a worker", || run(&early, ECHO).outcome.done().is_some());
    let client = rack.client("c");
    let why = |labels: &[&str]| {
        let spec = TaskSpec::from(ECHO).needing(&RequiredLabels::of(labels.iter().copied()));
        let ended = run(&client, spec);
        (ended.attempts, ended.outcome)
    };
    let rejected = Outcome::Refused(RefusedWhy::Rejected(RejectReason::Unserved));
    assert_eq!(why(&["gpu", "ssd"]), (1, rejected), "{policy}: the switch says so, and is not asked again");
    let unknown = Outcome::Refused(RefusedWhy::UnknownLabel);
    assert_eq!(why(&["gpu", "tpu"]), (0, unknown), "{policy}: the plan names no such label");
    let report = client.close().expect("no error");
    assert_eq!((report.tasks.submitted, report.tasks.refused, report.tasks.sent), (2, 2, 1), "{policy}");
}

#[test]
fn in_a_rack_that_tells_no_workers_apart_a_task_with_needs_is_refused() {
    let rack = Rack::start();
    let _worker = worker(&rack, "w", &[]);
    let client = rack.client("c");
    let ended = run(&client, TaskSpec::from(ECHO).needing(&RequiredLabels::of(["gpu"])));
    assert_eq!(ended.outcome, Outcome::Refused(RefusedWhy::UnknownLabel));
    assert_eq!(run(&client, ECHO).outcome.done(), Some(&b"w"[..]), "and one without is run");
}

#[test]
fn a_class_that_a_rack_does_not_have_is_refused_before_it_is_sent() {
    let rack = Rack::under_faults(Rates::default(), Choice::parse("rain:1,classes=2").expect("it is known"));
    let _worker = worker(&rack, "w", &[]);
    let client = rack.client("c");
    let of_class = |class| run(&client, TaskSpec::of_class(ECHO, class));
    assert_eq!(of_class(1).outcome.done(), Some(&b"w"[..]));
    let ended = of_class(2);
    let refused = Outcome::Refused(RefusedWhy::NoClass { priority: 2, classes: 2 });
    assert_eq!((ended.attempts, ended.outcome), (0, refused));
}
