//! One server with costs: the effect of each cost.

use std::sync::atomic::AtomicBool;

use sluice_sim::point::Point;
use sluice_sim::policy::Policy;
use sluice_stats::{Measured, Warmup};
use sluice_testbed::Testbed;
use sluice_workload::Workload;

/// Short urgent tasks, and long ones that are not urgent.
const BIMODAL: &str = "short=0.95@const:5us,priority=0+long=0.05@const:100us,priority=1";

fn point(policy: &str, workload: &str, cores: &str, load: f64) -> Point {
    let testbed = Testbed::parse(&format!("workers = 8\n[cores]\n{cores}")).unwrap();
    let (policy, workload) = (Policy::parse(policy).unwrap(), Workload::parse(workload).unwrap());
    let mut point =
        Point { tasks: 30_000, warmup: Warmup::Tasks(3_000), ..Point::new(policy, testbed, workload, 1.0) };
    point.rate_per_s = load * point.capacity_per_s();
    point
}

fn run(point: &Point) -> Measured {
    point.replicate(0, &AtomicBool::new(false)).unwrap()
}

fn p99_us(measured: &Measured, class: usize) -> f64 {
    measured.classes[class].latency.quantile(0.99) as f64 / 1e3
}

#[test]
fn a_dispatcher_bounds_the_rate() {
    let mut point = point("shinjuku", "const:1us", "dispatch = \"200ns\"", 1.0);
    (point.rate_per_s, point.transient) = (7.0e6, true);
    let rate = run(&point).throughput_per_s();
    assert!((rate / 5.0e6 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn urgent_tasks_wait_less_behind_long_ones_that_are_preempted_or_yield() {
    for policy in ["shinjuku", "ringleader"] {
        let [whole, sliced] = ["", "yields = \"5us\""].map(|cores| run(&point(policy, BIMODAL, cores, 0.6)));
        let (whole, sliced) = (p99_us(&whole, 0), p99_us(&sliced, 0));
        assert!(sliced < whole / 2.0, "{policy}: {sliced} and {whole}");
    }
}

#[test]
fn a_policy_that_says_when_cores_yield_is_the_testbed_that_says_so() {
    let cores = |after| format!("yields = \"{after}\"\nswitch = \"1us\"");
    let of =
        |policy, after| run(&point(policy, BIMODAL, &cores(after), 0.6)).classes[0].latency.quantile(0.99);
    let [own, testbeds] = [of("ringleader:4,yields=2us", "5us"), of("ringleader:4", "2us")];
    assert!(own == testbeds && own < of("ringleader:4", "5us"), "{own} and {testbeds}");
}

#[test]
fn a_switch_that_costs_takes_capacity_from_whoever_switches() {
    for policy in ["shinjuku", "ringleader"] {
        let of = |switch| {
            let cores = format!("yields = \"5us\"\nswitch = \"{switch}\"");
            run(&point(policy, BIMODAL, &cores, 0.6)).gauges.idle_share.unwrap()
        };
        assert!(of("2us") < of("0us") - 0.01, "{policy}");
    }
}

/// The queue goes by priority, also where no core is taken away.
#[test]
fn a_dispatcher_hands_out_the_most_important_request_first() {
    let alike = BIMODAL.replace(",priority=1", ",priority=0");
    let [alike, ranked] = [&alike, BIMODAL]
        .map(|workload| run(&point("shinjuku:nopre", workload, "dispatch = \"100ns\"", 0.9)));
    let mean = |measured: &Measured, class: usize| measured.classes[class].scheduling_delay.mean();
    let [urgent, before] = [mean(&ranked, 0), mean(&alike, 0)];
    assert!(urgent < 0.7 * before, "urgent requests pass the others: {urgent} and {before}");
    let [other, before] = [mean(&ranked, 1), mean(&alike, 1)];
    assert!(other > 1.5 * before, "and the others wait for them: {other} and {before}");
}

/// A request that waits for the dispatcher while a core is idle needs no other core.
#[test]
fn a_dispatcher_that_spares_takes_no_core_away_while_another_one_is_idle() {
    let cores = "yields = \"5us\"\nswitch = \"2us\"\ndispatch = \"1us\"";
    let [published, spares, never] = ["shinjuku", "shinjuku:spares", "shinjuku:nopre"]
        .map(|policy| run(&point(policy, BIMODAL, cores, 0.3)).gauges.idle_share.unwrap());
    assert!(spares > published + 0.002, "{published} and {spares}");
    assert!(spares <= never, "{spares} and {never}");
    let busy =
        |policy| run(&point(policy, BIMODAL, "yields = \"5us\"", 0.9)).classes[0].latency.quantile(0.99);
    assert!(busy("shinjuku:spares") < busy("shinjuku:nopre") / 2, "it does where none is idle");
}

/// Feedback travels with the reply, and its delay counts for feedback only: the client gets the reply at
/// once.
#[test]
fn a_lone_requests_reply_pays_no_pcie() {
    let p50 = |pcie| {
        let cores = format!("pcie = \"{pcie}\"");
        run(&point("ringleader", "const:3us", &cores, 0.01)).classes[0].latency.quantile(0.5)
    };
    let longer = p50("10us") - p50("0ns");
    assert!((9_700..=10_300).contains(&longer), "one way, not two: {longer} ns");
}

#[test]
fn jbsrq_does_not_let_long_tasks_keep_urgent_ones_out_of_queues() {
    let cores = "yields = \"5us\"\nswitch = \"1us\"";
    let [ranked, global, service] = ["ringleader:4", "ringleader:4,global", "ringleader:4,by-service"]
        .map(|policy| run(&point(policy, BIMODAL, cores, 0.8)));
    let [urgent, of_global, of_service] = [&ranked, &global, &service].map(|measured| p99_us(measured, 0));
    assert!(urgent < of_global, "queues full of long tasks keep urgent ones out: {urgent} and {of_global}");
    assert!(urgent <= of_service * 1.05, "and no worse than a queue of their own: {urgent} and {of_service}");
}

/// Two services, the first one more important.
const TWO: &str = "first=0.5@exp:5us,priority=0+second=0.5@exp:5us,priority=1";

#[test]
fn a_service_with_cores_of_its_own_gets_by_hints_what_it_needs() {
    let point = point("ringleader:4,dedicated", "exp:5us", "reallocate = \"5us\"", 0.7);
    let rate = run(&point).throughput_per_s();
    assert!(rate > 0.97 * point.rate_per_s, "it began with one core of eight: {rate}");
}

#[test]
fn where_all_cores_stay_shared_hints_change_nothing() {
    let of = |policy| run(&point(policy, TWO, "reallocate = \"5us\"", 0.8));
    let [shared, hybrid] = ["ringleader:4", "ringleader:4,hybrid=8"].map(of);
    let p99s = |of: &Measured| [0, 1].map(|class: usize| of.classes[class].latency.quantile(0.99));
    assert_eq!(p99s(&shared), p99s(&hybrid), "no core ever moves");
}

#[test]
fn cores_of_one_service_each_have_to_be_moved_in_a_burst_and_shared_ones_do_not() {
    let bursts = format!("{TWO};burst:4:200us:2ms");
    let of = |policy| p99_us(&run(&point(policy, &bursts, "reallocate = \"5us\"", 0.2)), 0);
    let [shared, dedicated] = ["ringleader:4", "ringleader:4,dedicated"].map(of);
    assert!(dedicated > 1.5 * shared, "{dedicated} and {shared}");
}

/// The batch service's and the idle share of all cores, and the p99 of the other services.
fn beside_batch(policy: &str, load: f64) -> (f64, f64, f64) {
    let cores = "yields = \"5us\"\nswitch = \"1us\"\nreallocate = \"5us\"\nsteal = \"200ns\"\nbatch = true";
    let measured = run(&point(policy, "exp:3us", cores, load));
    assert_eq!(measured.counts.replied, 30_000, "{policy}");
    let gauges = measured.gauges;
    (gauges.batch_share.unwrap(), gauges.idle_share.unwrap(), p99_us(&measured, 0))
}

#[test]
fn a_batch_service_gets_the_time_that_others_leave() {
    for (policy, least) in [
        ("ringleader", 0.55),
        ("ringleader:4,dedicated", 0.40),
        ("ringleader:4,hybrid=2", 0.40),
        ("caladan", 0.20),
    ] {
        let (batch, idle, _) = beside_batch(policy, 0.3);
        assert!(batch > least && batch + idle < 0.7, "{policy}: {batch} and {idle} idle");
        assert!(beside_batch(policy, 0.6).0 < batch - 0.15, "{policy}: less where the others need more");
    }
    assert!(beside_batch("ringleader", 0.3).1 < 1e-9, "no core is ever idle where all run everything");
    assert_eq!(run(&point("ringleader", "exp:3us", "", 0.3)).gauges.batch_share, None);
}

#[test]
fn a_batch_service_takes_no_more_than_its_slice_and_a_switch_from_the_others() {
    let alone = "yields = \"5us\"\nswitch = \"1us\"\nreallocate = \"5us\"";
    for policy in ["ringleader", "ringleader:4,hybrid=2"] {
        let without = p99_us(&run(&point(policy, "exp:3us", alone, 0.3)), 0);
        let (_, _, beside) = beside_batch(policy, 0.3);
        let longer = beside - without;
        let most = 5.0 + 1.0 + 2.0;
        assert!(
            (1.0..most).contains(&longer),
            "{policy}: a slice, a switch, and who waited so, too: {longer}"
        );
    }
}

#[test]
fn a_batch_service_is_refused_where_it_would_never_run_or_never_end() {
    for (policy, cores, why) in [
        ("ringleader", "", "write cores.yields"),
        ("caladan", "", "write cores.reallocate"),
        ("rss", "yields = \"5us\"", "rss runs no batch service"),
        ("rain:1", "yields = \"5us\"", "rain:1 runs no batch service"),
    ] {
        let said = point(policy, "exp:3us", &format!("batch = true\n{cores}"), 0.5).check().unwrap_err();
        assert!(said.to_string().contains(why), "{said}");
    }
}

#[test]
fn pcie_shows_at_light_load_and_depth_hides_it_at_high_load() {
    let of = |depth, load| {
        let policy = format!("ringleader:{depth}");
        run(&point(&policy, "const:3us", "pcie = \"500ns\"", load)).classes[0].latency.quantile(0.5)
    };
    assert!((3_500..3_505).contains(&of(4, 0.1)), "one way; the reply's way is the network's");
    assert!(of(1, 0.7) > of(4, 0.7) + 500, "a core waits for each request with depth 1");
}

#[test]
fn a_few_flows_fill_a_few_cores() {
    let of = |policy| p99_us(&run(&point(policy, "exp:3us", "", 0.5)), 0);
    assert!(of("rss:1024") > of("rss") && of("rss:24") > 2.0 * of("rss:1024"), "hashed flows are not even");
}

#[test]
fn cores_that_are_not_needed_are_given_back_and_come_again() {
    let cores = "allocate = \"154ns\"\nreallocate = \"5us\"\nsteal = \"200ns\"";
    let [calm, busy] = [0.2, 0.7].map(|load| run(&point("caladan", "exp:3us", cores, load)));
    assert_eq!((calm.counts.replied, busy.counts.replied), (30_000, 30_000));
    let all = run(&point("stealing", "exp:3us", cores, 0.7));
    assert!(p99_us(&busy, 0) > p99_us(&all, 0), "a core that must be given comes late");
}

/// A rack of two servers of four cores each.
fn rack(policy: &str, workload: &str, depth: &str, cores: &str, load: f64) -> Point {
    let mut point = point(policy, workload, cores, load);
    let servers = format!("workers = 8\n[servers]\ncount = 2\n{depth}\n[cores]\n{cores}");
    point.testbed = Testbed::parse(&servers).unwrap();
    point
}

#[test]
fn a_rack_of_servers_whose_cores_have_room_for_one_task_is_one_queue_where_nothing_costs_anything() {
    for load in [0.5, 0.9] {
        let of = |policy, depth| run(&rack(policy, "exp:10us", depth, "", load));
        let [servers, workers, central] =
            [of("rain:1", "depth = 1"), of("rain:1", ""), of("central", "depth = 1")]
                .map(|of| p99_us(&of, 0));
        assert!((servers / central - 1.0).abs() < 0.01, "{servers} and {central}");
        assert!((servers / workers - 1.0).abs() < 0.01, "{servers} and {workers}");
    }
}

#[test]
fn servers_of_many_cores_let_urgent_tasks_pass_long_ones_and_workers_of_one_core_do_not() {
    let cores = "yields = \"5us\"\nswitch = \"1us\"\npcie = \"450ns\"";
    let [workers, servers] = ["", "depth = 2"].map(|depth| run(&rack("rain:1", BIMODAL, depth, cores, 0.8)));
    let urgent = [&workers, &servers].map(|of| p99_us(of, 0));
    assert!(urgent[1] < urgent[0] / 2.0, "{urgent:?}");
    assert_eq!(servers.counts.replied, 30_000);
}

#[test]
fn one_seed_gives_the_same_bytes_in_a_rack_of_servers() {
    let cores = "yields = \"5us\"\nswitch = \"1us\"\npcie = \"450ns\"";
    let point = rack("rain:1", BIMODAL, "depth = 4", cores, 0.6);
    assert!(run(&point) == run(&point));
}

#[test]
fn a_rack_of_servers_refuses_what_its_lanes_have_no_use_for() {
    let refused = |policy: &str, slices: Option<Vec<(String, u32)>>| {
        let point = Point { slices, ..rack(policy, BIMODAL, "depth = 4", "", 0.5) };
        point.check().unwrap_err().to_string()
    };
    assert!(refused("r2p2:2", None).contains("decides itself how many tasks"));
    assert!(refused("rain:2,patient", None).contains("has patience"));
    assert!(refused("ringleader", None).contains("knows no servers of many cores below a rack"));
    let slices = vec![("short".to_owned(), 4), ("long".to_owned(), 4)];
    assert!(refused("rain:1", Some(slices)).contains("leave the slices out"));
}

#[test]
fn one_seed_gives_the_same_bytes() {
    let cores = "yields = \"5us\"\nswitch = \"1us\"\npcie = \"450ns\"\n".to_owned()
        + "dispatch = \"200ns\"\nreallocate = \"5us\"\nsteal = \"100ns\"";
    let policies = ["ringleader", "shinjuku", "rss", "rss:8", "stealing", "caladan", "d-ideal:2"];
    for policy in policies.into_iter().chain(["ringleader:4,dedicated", "ringleader:4,hybrid=2"]) {
        let point = point(policy, BIMODAL, &cores, 0.3);
        assert!(run(&point) == run(&point), "{policy}");
    }
    for policy in ["ringleader:4,dedicated", "caladan"] {
        let point = point(policy, BIMODAL, &format!("{cores}\nbatch = true"), 0.3);
        assert!(run(&point) == run(&point), "{policy} beside a batch service");
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_line() {
    let refused = |policy: &str, workers: u32| {
        let mut point = point(policy, BIMODAL, "", 0.5);
        point.testbed.workers = workers;
        point.check().unwrap_err().to_string()
    };
    assert!(refused("ringleader", 257).contains("a NIC has 256 cores at most"));
    assert!(refused("d-ideal:3", 8).contains("8 workers do not go into as many equal groups"));
    let ten: Vec<_> = (0..10).map(|n| format!("c{n}=0.1@const:1us")).collect();
    let many = point("ringleader:4,by-service", &ten.join("+"), "", 0.5);
    assert!(many.check().unwrap_err().to_string().contains("10 classes are too many services"));
}
