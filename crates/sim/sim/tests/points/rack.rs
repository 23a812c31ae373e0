//! The rack as a whole: the time of a task, what holds for every policy, and that one seed repeats one run.

use std::sync::atomic::AtomicBool;

use sluice_models::ideal::{Ideal, Reference};
use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_sim::{SimError, run_jobs};
use sluice_stats::{LoggedTask, Measured, TaskLog, Warmup, summarize};
use sluice_testbed::{Rates, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

const PROGRAMS: [&str; 9] = [
    "rain:1",
    "rain:2",
    "r2p2:1",
    "r2p2:2",
    "racksched:2",
    "racksched:2,tracked",
    "draconis",
    "pallas",
    "horus",
];

/// The resolution of a task's arrival time in its queue entry, in nanoseconds.
const STAMP_NS: u64 = 16;

fn point(policy: &str, workload: &str, rate_per_s: f64) -> Point {
    Point {
        tasks: 20_000,
        warmup: Warmup::Tasks(2_000),
        ..Point::new(
            Policy::parse(policy).unwrap(),
            Testbed::rain(),
            Workload::parse(workload).unwrap(),
            rate_per_s,
        )
    }
}

fn run(point: &Point) -> Measured {
    point.replicate(0, &AtomicBool::new(false)).unwrap()
}

fn mean_us(measured: &Measured) -> f64 {
    measured.classes[0].latency.mean() / 1e3
}

#[test]
fn a_lonely_task_takes_its_service_and_five_microseconds() {
    for (policy, round_trip_us) in [
        ("rain:1", 5.0),
        ("rain:2", 5.0),
        ("r2p2:2", 5.0),
        ("racksched:2", 5.0),
        ("racksched:2,tracked", 6.0),
        ("pallas", 5.0),
        ("horus", 5.0),
    ] {
        let measured = run(&Point { tasks: 2_000, ..point(policy, "const:10us;even", 1_000.0) });
        assert!((mean_us(&measured) - 10.0 - round_trip_us).abs() < 1e-9, "{policy}: {}", mean_us(&measured));
    }
}

#[test]
fn a_task_starts_after_its_way_in_and_both_waits_as_the_packets_tell_them() {
    for policy in PROGRAMS {
        let point = point(policy, "exp:10us,large=0.1", 1.6e6);
        let (diary, ..) =
            point.observe(0, TaskLog::until(Nanos(10_000_000)), &AtomicBool::new(false)).unwrap();
        let (links, pass) = (point.testbed.links, point.testbed.switch.pass);
        let way_in = links.client + pass + links.worker;
        let entries = diary.entries();
        assert!(entries.len() > 10_000, "{policy}");
        for LoggedTask { intended, service, replied_at, waited } in entries {
            let delay = replied_at - intended - service - point.testbed.way_home();
            let off = (way_in + waited).0.abs_diff(delay.0);
            assert!(off <= STAMP_NS, "{policy}: {delay:?} is {off} ns off");
        }
    }
}

#[test]
fn a_lonely_tasks_scheduling_delay_is_its_way_in_and_a_fetch_comes_on_top() {
    let delay_us = |policy, workload| {
        let measured =
            run(&Point { tasks: 400, warmup: Warmup::Tasks(40), ..point(policy, workload, 20_000.0) });
        measured.classes[0].scheduling_delay.mean() / 1e3
    };
    assert!((delay_us("rain:1", "const:10us;even") - 2.5).abs() < 1e-9);
    assert!((delay_us("central", "const:10us;even") - 2.5).abs() < 1e-9);
    let testbed = Testbed::rain();
    let [small, large] = ["const:10us;even", "const:10us,large=1;even"].map(|of| delay_us("draconis", of));
    let fetch = testbed.fetch().0 as f64 / 1e3;
    assert!((large - small - fetch).abs() < 0.6, "{small} and {large} us");
}

#[test]
fn a_slow_workers_service_is_no_scheduling_delay() {
    let mut testbed = Testbed::rain();
    testbed.slow.workers = (0..testbed.workers).collect();
    (testbed.slow.factor, testbed.slow.length) = (3.0, Nanos(u64::from(u32::MAX)));
    let point = Point { testbed, tasks: 400, ..point("rain:1", "const:10us;even", 1_000.0) };
    let class = &run(&point).classes[0];
    assert!(class.latency.mean() > 30_000.0 && class.scheduling_delay.mean() < 6_000.0);
}

#[test]
fn who_polls_waits_for_the_next_poll_and_for_the_pointer_that_empty_polls_left_ahead() {
    let lonely =
        Point { tasks: 400, warmup: Warmup::Tasks(40), ..point("draconis", "const:10us;even", 5_000.0) };
    let measured = run(&lonely);
    // The fix recirculates once (1 µs); 32 workers poll, each about every 4 µs.
    assert!((16.0..16.6).contains(&mean_us(&measured)), "{}", mean_us(&measured));
    assert!(measured.counts.empty_polls > 1_000 * measured.counts.sent);
}

#[test]
fn depth_one_gives_out_where_a_token_comes_back_too_late() {
    let point = Point { transient: true, ..point("rain:1", "exp:10us", 3_000_000.0) };
    let limit = point.limit_per_s();
    assert!((limit - 32e9 / 13_700.0).abs() < 1.0, "{limit}");
    let measured = run(&point);
    let throughput = measured.backlog.replies as f64 / measured.span_ns as f64 * 1e9;
    assert!((throughput / limit - 1.0).abs() < 0.02, "{throughput} of {limit}");
    assert!(!summarize(&[measured]).sustained.holds);
}

#[test]
fn without_a_network_rain_at_depth_one_is_the_central_queue_task_by_task() {
    let go_on = AtomicBool::new(false);
    for (workload, rate_per_s) in
        [("exp:10us", 2.4e6), ("bimodal:10us:100us:0.5", 5.0e5), ("const:10us", 3.1e6)]
    {
        let point = Point { testbed: Testbed::ideal(), ..point("rain:1", workload, rate_per_s) };
        let until = Nanos((20_000.0 / rate_per_s * 1e9) as u64);
        let (rain, ..) = point.observe(0, TaskLog::until(until), &go_on).unwrap();
        let reference = Ideal {
            reference: Reference::Central,
            workers: point.testbed.workers as usize,
            distance: point.testbed.zero_load(),
        };
        let mut central = TaskLog::until(until);
        reference.tell(point.requests(0), &mut central, (point.seed, 0), &go_on);
        let times = |diary: TaskLog| {
            let of = |task: &LoggedTask| (task.intended, task.service, task.replied_at);
            diary.in_order().iter().map(of).collect::<Vec<_>>()
        };
        let (rain, central) = (times(rain), times(central));
        assert!(rain.len() > 19_000, "{workload}");
        assert_eq!(rain, central, "{workload}");
    }
}

#[test]
fn no_policy_beats_a_central_queue_and_at_half_load_none_is_far_from_it() {
    let rate_per_s = 1.6e6;
    let central = mean_us(&run(&point("central", "exp:10us", rate_per_s)));
    for policy in PROGRAMS {
        let measured = run(&point(policy, "exp:10us", rate_per_s));
        let mean = mean_us(&measured);
        assert!((central..1.6 * central).contains(&mean), "{policy}: {mean} us, central {central} us");
        assert_eq!(measured.counts.sent, measured.counts.replied, "{policy}");
        assert!((measured.gauges.idle_share.unwrap() - 0.5).abs() < 0.02, "{policy}");
    }
}

#[test]
fn one_seed_gives_the_same_bytes_on_one_thread_and_on_two() {
    let points = PROGRAMS.map(|policy| Point { tasks: 3_000, ..point(policy, "exp:10us", 2.0e6) });
    let jobs: Vec<(&Point, u32)> = points.iter().flat_map(|point| [(point, 0), (point, 1)]).collect();
    let on = |threads| {
        let mut bytes = Vec::new();
        let stop = AtomicBool::new(false);
        let run = |(point, replication): &(&Point, u32)| point.replicate(*replication, &stop).unwrap();
        run_jobs(&jobs, threads, &stop, run, |_, measured| {
            bytes.push(serde_json::to_string(&measured).unwrap());
        });
        bytes
    };
    let (one, two) = (on(1), on(2));
    assert_eq!(one, two);
    assert_ne!(one[0], one[1], "replications differ");
}

#[test]
fn with_packets_lost_repeated_and_late_every_task_ends_and_is_counted_once() {
    let rates = Rates { loss: 0.02, duplicate: 0.02, reorder: 0.1 };
    for policy in PROGRAMS {
        let mut point = Point { tasks: 4_000, ..point(policy, "exp:10us", 1.0e6) };
        let faults = &mut point.testbed.faults;
        (faults.submit, faults.dispatch, faults.reply, faults.token) = (rates, rates, rates, rates);
        (faults.probe, faults.answer, faults.reject) = (rates, rates, rates);
        let counts = run(&point).counts;
        assert_eq!(counts.sent, counts.replied + counts.refused + counts.unknown, "{policy}: {counts:?}");
        assert!(counts.replied > counts.sent * 99 / 100, "{policy}: {counts:?}");
        assert!(counts.lost_packets > 0 && counts.retries > 0, "{policy}: {counts:?}");
    }
}

#[test]
fn large_tasks_cost_draconis_a_round_trip_and_the_others_nothing() {
    for (policy, as_long_as) in [("draconis", "const:15us"), ("rain:2", "const:10us")] {
        let of = |workload| mean_us(&run(&Point { tasks: 3_000, ..point(policy, workload, 20_000.0) }));
        let (large, small) = (of("const:10us,large=1"), of(as_long_as));
        assert!((large - small).abs() < 0.05, "{policy}: {large} and {small} us");
    }
}

#[test]
fn a_narrow_port_makes_what_goes_round_wait() {
    let wide = point("r2p2:1", "exp:10us", 2.0e6);
    let mut narrow = wide.clone();
    narrow.testbed.switch.recirculation_gbps = Some(8.0);
    let (wide, narrow) = (run(&wide), run(&narrow));
    assert!(mean_us(&narrow) > mean_us(&wide) + 0.01, "{} {}", mean_us(&narrow), mean_us(&wide));
    assert!((0.3..=1.0).contains(&narrow.gauges.recirculation_utilization.unwrap()));
    assert_eq!(wide.gauges.recirculation_utilization, None);
}

#[test]
fn stalls_cost_their_share_of_the_workers_they_hit() {
    let calm = point("rain:1", "const:10us", 1.0e6);
    let mut stalled = calm.clone();
    (stalled.testbed.stalls.per_s, stalled.testbed.stalls.length) = (1_000.0, Nanos::from_micros(100));
    let all = run(&stalled);
    stalled.testbed.stalls.workers = vec![3];
    let one = run(&stalled);
    let calm = run(&calm);
    assert!(calm.classes[0].latency.quantile(0.999) < 30_000);
    assert!(all.classes[0].latency.quantile(0.985) > 30_000, "a tenth of the time is lost");
    assert!(one.classes[0].latency.quantile(0.985) < 30_000, "a tenth of a 32nd is lost");
    assert!(one.classes[0].latency.quantile(0.9995) > 30_000);
}

#[test]
fn a_slice_that_is_full_slows_down_nobody_elses_tasks() {
    let workload = "a=0.5@exp:10us+b=0.5@exp:10us,type=7";
    let slices = Some(vec![("a".to_owned(), 8), ("b".to_owned(), 24)]);
    let point = Point { slices, transient: true, ..point("rain:2", workload, 2.0e6) };
    assert!((point.capacity_per_s() - 1.6e6).abs() < 1.0);
    let measured = run(&point);
    let [a, b] = [0, 1].map(|class| measured.classes[class].latency.quantile(0.99));
    assert!(a > 1_000_000 && b < 100_000, "{a} {b}");
}

#[test]
fn nonsense_is_refused_in_one_line() {
    let good = || point("rain:2", "get=0.9@const:8us+scan=0.1@const:107us", 1.0e6);
    let slices = |text: &[(&str, u32)]| {
        Some(text.iter().map(|(names, workers)| ((*names).to_owned(), *workers)).collect())
    };
    good().check().unwrap();
    for (point, why) in [
        (Point { rate_per_s: f64::NAN, ..good() }, "NaN"),
        (Point { rate_per_s: 0.0, ..good() }, "above 0"),
        (Point { rate_per_s: 2.0e6, ..good() }, "no steady state"),
        (Point { tasks: 0, ..good() }, "one at least"),
        (Point { testbed: Testbed { workers: 0, ..Testbed::rain() }, ..good() }, "workers = 0"),
        (Point { slices: slices(&[("get", 14), ("scam", 18)]), ..good() }, "did you mean `scan`?"),
        (Point { slices: slices(&[("get", 32)]), ..good() }, "class `scan` must have exactly one slice"),
        (Point { slices: slices(&[("get", 14), ("scan", 19)]), ..good() }, "33 workers, the testbed 32"),
        (Point { slices: slices(&[("get", 32), ("scan", 0)]), ..good() }, "no workers"),
        (
            Point {
                slices: slices(&[("get", 14), ("scan", 18)]),
                ..point("rain:2", "get=0.9@const:8us+scan=0.1@const:107us,type=0", 1.0e6)
            },
            "class `scan` has type 0",
        ),
        (
            Point { policy: Policy::parse("jsq").unwrap(), slices: slices(&[("get", 32)]), ..good() },
            "leave the slices",
        ),
    ] {
        let said = point.check().unwrap_err().to_string();
        assert!(said.contains(why) && !said.contains('\n'), "{said}");
        assert!(point.replicate(0, &AtomicBool::new(false)).is_err(), "{said}");
    }
    Point { rate_per_s: 2.0e6, transient: true, ..good() }.check().unwrap();
}

#[test]
fn a_run_can_be_stopped() {
    let long = Point { tasks: u64::MAX, ..point("rain:2", "exp:10us", 1.0e6) };
    assert!(matches!(long.replicate(0, &AtomicBool::new(true)), Err(SimError::Stopped)));
}
