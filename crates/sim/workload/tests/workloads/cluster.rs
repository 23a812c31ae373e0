//! A cluster's trace: which events become tasks, what a rack gets, and which lines are refused.

use std::fs;
use std::path::PathBuf;

use sluice_wire::Nanos;
use sluice_workload::{Requests, Workload};

const SAMPLE: &str = "tests/traces/cluster.csv";

fn sample(form: &str) -> Workload {
    Workload::parse(&format!("cluster-trace:{SAMPLE}{form}")).expect("it is right")
}

/// Class, priority, due time and service time, in microseconds.
fn tasks(workload: &Workload, rate_per_s: f64) -> Vec<(String, Option<u8>, u64, u64)> {
    let told = |request: sluice_workload::Request| {
        let class = &workload.classes[usize::from(request.class)];
        assert_eq!(request.task_type, class.task_type);
        let [at, service] = [request.at, request.service].map(|Nanos(ns)| ns / 1_000);
        (class.name.clone(), class.priority, at, service)
    };
    Requests::new(workload, rate_per_s, 1, 0).map(told).collect()
}

#[test]
fn tasks_are_the_submissions_that_finished_with_their_priority_and_what_constrains_them() {
    // The tasks ran for 10, 20, 10, 40 and 20 s, with a mean of 20 s; the last is due 8 s after the first.
    let workload = sample(":500us");
    let of = |class: &str, priority, at, service| (class.to_owned(), Some(priority), at, service);
    // Five tasks in 8 s, scaled to 5 ms.
    let expected = [
        of("production", 1, 0, 250),
        of("production", 1, 0, 500),
        of("monitoring-apart", 0, 1_875, 250),
        of("free-big", 3, 3_125, 1_000),
        of("batch", 2, 5_000, 500),
    ];
    assert_eq!(tasks(&workload, 1_000.0), expected);
    // One submission each: before the trace, evicted, killed, not ended, ended after the trace.
    assert_eq!(workload.trace().map(sluice_workload::Trace::left_out), Some(5));
    assert!((workload.mean_service_ns() - 500_000.0).abs() < 1.0);
}

#[test]
fn what_is_submitted_in_one_instant_keeps_its_order_whichever_finished_first() {
    let event =
        |at: u64, task: u64, event: u8| format!("{at},,1,{task},,{event},u1,2,9,0.02,0.03,0.0001,0\n");
    let began = (0..3).flat_map(|task| [event(600_000_000, task, 0), event(600_000_000, task, 1)]);
    let ended = [(1, 10), (2, 20), (0, 30)].map(|(task, took)| event(600_000_000 + took, task, 4));
    let later = [event(700_000_000, 3, 0), event(700_000_000, 3, 1), event(700_000_020, 3, 4)];
    let file = File::of(&began.chain(ended).chain(later).collect::<String>());
    let workload = Workload::parse(&format!("cluster-trace:{}:20us", file.0.display())).expect("it is right");
    let services: Vec<u64> = tasks(&workload, 1_000.0).into_iter().map(|task| task.3).collect();
    assert_eq!(services, [30, 10, 20, 20]);
}

#[test]
fn arrivals_are_scaled_to_the_rate_and_services_to_the_mean() {
    let slow = tasks(&sample(":100us"), 500.0);
    assert_eq!(slow.last().map(|task| (task.2, task.3)), Some((10_000, 100)));
}

#[test]
fn who_is_big_is_the_workloads_own() {
    let classes = |form| sample(form).classes.into_iter().map(|class| class.name).collect::<Vec<_>>();
    assert_eq!(classes(":500us:0.3"), ["free", "production", "monitoring-apart", "batch"]);
    assert_eq!(classes(":500us:0.02")[0], "production-big", "who has no task is no class");
}

#[test]
fn it_is_shown_as_it_was_written() {
    for form in [":500us", ":1ms:0.3"] {
        let workload = sample(form);
        assert_eq!(workload.to_string(), format!("cluster-trace:{SAMPLE}{form}"));
    }
}

#[test]
fn what_is_refused_is_named_with_file_line_and_column() {
    let line = |from: &str, to: &str| {
        let text = fs::read_to_string(SAMPLE).expect("it is there");
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    let first = "600000000,,10,0,,0,u1,2,9,0.02,0.03,0.0001,0";
    for (text, why) in [
        (line(first, "600000000,,10,0,,0,u1,2,9"), ":4:1: 9 columns are not the 13 of task events"),
        (line(first, "6e8,,10,0,,0,u1,2,9,0.02,0.03,0.0001,0"), ":4:1: the time `6e8` is not a whole number"),
        (line(first, "600000000,3,10,0,,0,u1,2,9,0,0,0,0"), ":4:11: the missing info `3` is not"),
        (line(first, "600000000,,,0,,0,u1,2,9,0,0,0,0"), ":4:12: the job `` is not a whole number"),
        (line(first, "600000000,,10,-1,,0,u1,2,9,0,0,0,0"), ":4:15: the task index `-1` is not"),
        (line(first, "600000000,,10,0,m,0,u1,2,9,0,0,0,0"), ":4:17: the machine `m` is not"),
        (
            line(first, "600000000,,10,0,,9,u1,2,9,0,0,0,0"),
            ":4:18: the event type `9` is not a whole number from 0 to 8",
        ),
        (line(first, "600000000,,10,0,,0,u1,4,9,0,0,0,0"), ":4:23: the scheduling class `4` is not"),
        (
            line(first, "600000000,,10,0,,0,u1,2,12,0,0,0,0"),
            ":4:25: the priority `12` is not a whole number from 0 to 11",
        ),
        (line(first, "600000000,,10,0,,0,u1,2,9,1.5,0,0,0"), ":4:27: the CPU request `1.5` is not a share"),
        (
            line(first, "600000000,,10,0,,0,u1,2,9,0,NaN,0,0"),
            ":4:29: the memory request `NaN` is not a share",
        ),
        (line(first, "600000000,,10,0,,0,u1,2,9,0,0,-1,0"), ":4:31: the disk request `-1` is not a share"),
        (line(first, "600000000,,10,0,,0,u1,2,9,0,0,0,2"), ":4:33: the different-machines `2` is not"),
        (line("601000000,", "1,"), ":6:1: 1 comes after a later time: sort the lines"),
        ("# nothing\n".to_owned(), ":1:1: there are no tasks; none was submitted, scheduled and finished"),
    ] {
        let file = File::of(&text);
        let told = Workload::parse(&format!("cluster-trace:{}:500us", file.0.display())).expect_err(why);
        let told = told.to_string();
        assert!(told.contains(why) && !told.contains('\n'), "{why}: {told}");
    }
}

#[test]
fn what_is_asked_of_a_trace_is_refused_in_one_line() {
    for (form, why) in [
        ("", "write cluster-trace:FILE:MEAN"),
        (":0us", "the mean service 0ns is not from 1ns to 90ms"),
        (":91ms", "the mean service 91ms is not from 1ns to 90ms"),
        (":500us:2", "what is big: `2` is not a share"),
        (":500:0.1", "the mean service: `500` is not a span"),
    ] {
        let told = Workload::parse(&format!("cluster-trace:{SAMPLE}{form}")).expect_err(form).to_string();
        assert!(told.contains(why) && !told.contains('\n'), "{form}: {told}");
    }
}

#[test]
fn classes_that_are_named_before_it_are_the_only_ones() {
    let told = Workload::parse(&format!("batch=1@exp:10us;cluster-trace:{SAMPLE}:500us")).expect_err("no");
    assert!(told.to_string().contains(":3:17: unknown class `free`"), "{told}");
}

#[test]
fn priorities_stand_in_workloads() {
    let workload = "first=0.5@exp:10us,priority=0+second=0.5@exp:10us,priority=1";
    assert_eq!(Workload::parse(workload).expect("it is right").to_string(), workload);
    let told = Workload::parse("exp:10us,priority=4").expect_err("no").to_string();
    assert!(told.contains("priority = 4 is not a number from 0 (first) to 3"), "{told}");
}

/// A file that is deleted when it is dropped.
struct File(PathBuf);

impl File {
    fn of(text: &str) -> Self {
        let path = tempfile::Builder::new().suffix(".csv").tempfile().expect("a place for it");
        let path = path.into_temp_path().keep().expect("it stays");
        fs::write(&path, text).expect("it can be written");
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
