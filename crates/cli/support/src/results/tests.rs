//! The gates of a run, tested with tallies made by hand.

use std::time::Duration;

use sluice_wire::Nanos;

use super::*;
use crate::load::{Ending, TaskEnd};
use crate::plan::{Arrivals, FAILED_MAX, REFUSED_MAX};

/// The measured seconds: ten, from the first on.
const MEASURED: (u64, u64) = (1, 11);

fn load() -> LoadPlan {
    let [warm_up, length] = [MEASURED.0, MEASURED.1 - MEASURED.0].map(Duration::from_secs);
    LoadPlan {
        arrivals: Arrivals::Constant(100.0),
        mix: vec![("hold".to_owned(), 1.0)],
        requests: Vec::new(),
        budgets: Vec::new(),
        within: None,
        warm_up,
        length,
        deadline: Duration::from_secs(20),
        retry: true,
        behind_max: Duration::from_millis(10),
        failed_max: FAILED_MAX,
        refused_max: REFUSED_MAX,
        thresholds: Vec::new(),
    }
}

/// A tally of a hundred tasks a second; `end` gives the end of each by its number.
fn tally(end: impl Fn(u64) -> (Nanos, Ending)) -> Tally {
    tally_in_stages(&[], end)
}

/// The same in stages.
fn tally_in_stages(stages: &[(Nanos, bool)], end: impl Fn(u64) -> (Nanos, Ending)) -> Tally {
    let measured = Nanos::from_millis(MEASURED.0 * 1_000)..Nanos::from_millis(MEASURED.1 * 1_000);
    let mut tally = Tally::new(["hold".to_owned()], Some(100.0), measured);
    tally.count_stages(stages);
    for number in 0..MEASURED.1 * 100 {
        let due = Nanos::from_millis(number * 10);
        tally.due(0, due, Nanos(0));
        let (at, ending) = end(number);
        let complaint = matches!(ending, Ending::Reply { failed: true, .. }).then(|| format!("no {number}"));
        tally.ended(&TaskEnd { kind: 0, due, at, attempts: 1, worker: None, ending, complaint });
    }
    tally
}

fn result(tally: &Tally, load: &LoadPlan, aborted: bool) -> RunResult {
    with_faults(tally, load, aborted, Vec::new())
}

fn with_faults(tally: &Tally, load: &LoadPlan, aborted: bool, events: Vec<EventResult>) -> RunResult {
    let label = Label {
        name: "by hand".to_owned(),
        policy: "rain".to_owned(),
        seed: 1,
        dilation: 1,
        io: None,
        faults: None,
        workers: None,
    };
    let run = RunInputs {
        label,
        load,
        aborted,
        abort_reason: None,
        events,
        started: UNIX_EPOCH,
        slices: Vec::new(),
        leaf_trips: Vec::new(),
        depths: Vec::new(),
        decisions: Vec::new(),
    };
    run.result(tally)
}

fn missed(result: &RunResult) -> Vec<&str> {
    result.gates.iter().filter(|gate| !gate.passed).map(|gate| gate.name).collect()
}

fn reply(failed: bool) -> Ending {
    let (switch_wait, worker_wait, service) = (Nanos(0), Nanos(0), Nanos::from_millis(1));
    Ending::Reply { failed, switch_wait, worker_wait, service }
}

/// A stage of one rate, and a ramp.
const STAGES: [(Nanos, bool); 2] = [(Nanos::from_millis(4_000), false), (Nanos::from_millis(6_000), true)];

/// A millisecond after it was due.
fn in_time(number: u64) -> Nanos {
    Nanos::from_millis(number * 10 + 1)
}

#[test]
fn a_run_whose_tasks_are_all_answered_in_time_passes_every_gate() {
    let found = result(&tally(|number| (in_time(number), reply(false))), &load(), false);
    assert_eq!(missed(&found), Vec::<&str>::new(), "{:?}", found.gates);
    assert!((found.replied_per_s - 100.0).abs() < 0.2, "{}", found.replied_per_s);
    assert!(found.sustained.holds && found.sustained.why.is_empty());
    assert!(verdict(&found).is_ok());
}

#[test]
fn failed_services_are_a_missed_gate_with_the_first_reason_unless_the_plan_has_them() {
    let tally = tally(|number| (in_time(number), reply(number % 50 == 10)));
    let found = result(&tally, &load(), false);
    assert_eq!(missed(&found), ["few_failed"]);
    assert!(found.gates[4].says.contains("2.00 % of the replies failed (at most 1 % may)"));
    assert_eq!(found.tasks.first_failure.as_deref(), Some("no 110"));
    assert!(verdict(&found).is_err_and(|why| why.is(Kind::GateFailed)));
    let lenient = LoadPlan { failed_max: 0.02, ..load() };
    assert_eq!(missed(&result(&tally, &lenient, false)), Vec::<&str>::new());
    let strict = LoadPlan { failed_max: 0.0, ..load() };
    assert_eq!(missed(&result(&tally, &strict, false)), ["few_failed"]);
}

#[test]
fn a_run_that_is_meant_to_refuse_says_how_much_and_has_to_keep_up_with_the_rest() {
    let half = |number: u64| match number % 2 {
        0 => (in_time(number), Ending::Refused("busy")),
        _ => (in_time(number), reply(false)),
    };
    let tally = tally(half);
    assert_eq!(missed(&result(&tally, &load(), false)), ["few_refused", "kept_up"]);
    let meant = LoadPlan { refused_max: 0.6, ..load() };
    let found = result(&tally, &meant, false);
    assert_eq!(missed(&found), Vec::<&str>::new(), "{:?}", found.gates);
    assert_eq!(found.gates[3].says, "50.00 % of the tasks refused (must be under 60 %)");
    let less = LoadPlan { refused_max: 0.5, ..load() };
    assert_eq!(missed(&result(&tally, &less, false)), ["few_refused"]);
}

#[test]
fn goodput_is_told_for_each_type_and_for_all_if_a_latency_is_in_time() {
    let mut tally =
        tally(|number| (Nanos::from_millis(number * 10 + 1 + number % 4), reply(number % 100 == 0)));
    let found = result(&tally, &load(), false);
    assert_eq!((found.goodput_per_s, found.types[0].within_ns), (None, None));
    tally.count_within(&[Nanos::from_millis(2)]);
    for number in 0..1_000 {
        let (due, at) = (Nanos::from_millis(1_000 + number * 10), Nanos::from_millis(1_002 + number * 10));
        tally.due(0, due, Nanos(0));
        let (kind, attempts, worker, ending) = (0, 1, None, reply(number % 2 == 0));
        tally.ended(&TaskEnd { kind, due, at, attempts, worker, ending, complaint: None });
    }
    let found = result(&tally, &load(), false);
    assert_eq!(found.types[0].within_ns, Some(2_000_000));
    assert_eq!((found.goodput_per_s, found.types[0].goodput_per_s), (Some(50.0), Some(50.0)));
}

#[test]
fn a_load_of_twice_what_is_answered_in_time_is_not_kept_up_though_all_is_answered_in_the_end() {
    let late = |number: u64| (Nanos::from_millis(number * 20 + 1), reply(false));
    let found = result(&tally(late), &load(), false);
    assert_eq!(missed(&found), ["kept_up"]);
    assert!(
        found.gates[6].says.starts_with("the load was not kept up: throughput is 50"),
        "{:?}",
        found.gates
    );
    assert!((found.replied_per_s - 50.0).abs() < 1.0, "{}", found.replied_per_s);
    assert_eq!(found.tasks.replied, 1_000, "all the same");
}

#[test]
fn what_a_fault_holds_up_is_no_overload_and_what_it_leaves_too_small_is() {
    let event = |returned_at_s| EventResult {
        at_s: 3.0,
        what: "kill -9 switch".to_owned(),
        planned: true,
        returned_at_s,
        felt: None,
    };
    // From 3 s on, half of the tasks are answered in time: until 9 s, or to the end.
    for (until, returned_at_s, kept_up) in [(900, Some(8.0), true), (1_100, None, false)] {
        let held = |number: u64| (300..until).contains(&number) && number.is_multiple_of(2);
        let at = |number: u64| if held(number) { Nanos::from_millis(20_000) } else { in_time(number) };
        let tally = tally(|number| (at(number), reply(false)));
        let found = with_faults(&tally, &load(), false, vec![event(returned_at_s)]);
        assert_eq!(found.sustained.holds, kept_up, "back at {returned_at_s:?}: {}", found.sustained.why);
    }
}

#[test]
fn nothing_measured_is_a_missed_gate_and_has_no_times() {
    let measured = Nanos::from_millis(1_000)..Nanos::from_millis(11_000);
    let tally = Tally::new(["hold".to_owned()], None, measured);
    let found = result(&tally, &load(), false);
    assert_eq!(missed(&found), ["something_measured"]);
    assert!(found.sustained.why.contains("no task was due"), "{}", found.sustained.why);
    let of = &found.types[0];
    let times = [of.latency_ns, of.scheduling_delay_ns, of.slowdown, of.slowdown_type_mean, of.service_ns];
    assert!(times.iter().all(Option::is_none), "{times:?}");
    assert_eq!((found.sender.behind_p99_ns, found.sender.pushed_back_max_ns), (None, None));
}

#[test]
fn a_wall_clock_that_was_set_marks_the_run() {
    let mut tally = tally(|number| (in_time(number), reply(false)));
    tally.clock_steps.push(sluice_outcome::run::ClockStep { at_s: 3.5, by_s: -3_600.0 });
    let table = run::summary(&result(&tally, &load(), false));
    assert!(table.contains("CLOCK SET: this machine's wall clock went back by 3600 s at 3.50 s"), "{table}");
}

#[test]
fn a_run_that_was_stopped_is_told_so_also_with_a_missed_gate() {
    let nothing = Tally::new(["hold".to_owned()], None, Nanos(0)..Nanos(1));
    let why = verdict(&result(&nothing, &load(), true)).expect_err("it was stopped");
    assert!(why.is(Kind::Aborted) && why.to_string().contains("does not hold"), "{why}");
}

fn bounded(tally: &Tally, thresholds: &[&str]) -> Vec<Gate> {
    let thresholds = thresholds.iter().map(|text| text.parse().expect("it is legal")).collect();
    result(tally, &LoadPlan { thresholds, ..load() }, false).gates.split_off(7)
}

#[test]
fn thresholds_are_gates_with_their_numbers() {
    let mixed = |number: u64| match number % 10 {
        0 => (in_time(number), Ending::Refused("busy")),
        1 => (in_time(number), Ending::Refused("late_in_switch")),
        2 => (in_time(number), Ending::Unknown("deadline")),
        3 => (in_time(number), reply(true)),
        _ => (in_time(number), reply(false)),
    };
    let found = bounded(
        &tally(mixed),
        &[
            "hold.p99<2ms",
            "p50>=2ms",
            "max<=1.01ms",
            "refused<=20%",
            "late<0.1",
            "unknown<11%",
            "lost<=0",
            "failed<0.15",
            "rate>69",
            "hold.slowdown_mean<1.1",
        ],
    );
    assert_eq!(missed_texts(&found), ["p50>=2ms", "late<0.1"], "{found:?}");
    assert!(found.iter().all(|gate| gate.name == "threshold"));
    assert!(found[1].says.ends_with("(must be >=2ms)") && found[1].says.starts_with("p50 is 1.00 ms"));
    assert_eq!(found[4].says, "late is 10.0 % (must be <0.1)");
    let number = found[4].threshold.as_ref().expect("it is one");
    assert_eq!((number.measured, number.bound, number.unit), (Some(0.1), 0.1, "share"));
}

#[test]
fn what_was_not_measured_misses_its_threshold() {
    let tally = tally(|number| (in_time(number), Ending::Refused("busy")));
    let found = bounded(&tally, &["p99<1s", "failed<1%", "rate>=0", "refused<=100%"]);
    assert_eq!(missed_texts(&found), ["p99<1s", "failed<1%"], "{found:?}");
    assert_eq!(found[0].says, "p99 was not measured (must be <1s)");
    let nothing = Tally::new(["hold".to_owned()], None, Nanos(0)..Nanos(5));
    let found = bounded(&nothing, &["rate>=0", "refused<1%"]);
    assert_eq!(missed_texts(&found), ["rate>=0", "refused<1%"], "{found:?}");
}

fn missed_texts(gates: &[Gate]) -> Vec<&str> {
    let missed = gates.iter().filter(|gate| !gate.passed);
    missed.filter_map(|gate| Some(gate.threshold.as_ref()?.text.as_str())).collect()
}

#[test]
fn page_and_tables_show_hostile_names_as_text_and_stages_row_by_row() {
    let mut tally = tally(|number| (in_time(number), reply(number % 400 == 200)));
    tally.kinds[0].name = "a|<b>".to_owned();
    tally.count_stages(&STAGES);
    let stages = "100:4s,100..100:6s".parse().expect("legal");
    let staged = LoadPlan { arrivals: Arrivals::Stages(stages), ..load() };
    let mut found = result(&tally, &staged, true);
    assert_eq!(found.stages.len(), 2);
    "<i>|name".clone_into(&mut found.name);
    let (page, tables) = (sluice_report::run_page(&found), run::markdown(&found));
    assert!(!page.contains("<i>") && !page.contains("<b>") && page.contains("a|&lt;b&gt;"), "{page}");
    assert!(page.contains("Stage by stage") && page.contains("Stopped early"), "{page}");
    assert!(tables.contains("a\\|\\<b\\>") && tables.contains("## Stages"), "{tables}");
    assert_eq!(run::stages_csv(&found).lines().count(), 3);
    assert!(found.types[0].intervals.is_empty(), "the parts of stages differ by design");
}

#[test]
fn a_stage_of_one_rate_has_intervals_and_a_ramp_has_none() {
    let mut found = tally_in_stages(&STAGES, |number| (in_time(number), reply(false)));
    let staged =
        |stages: &str| LoadPlan { arrivals: Arrivals::Stages(stages.parse().expect("legal")), ..load() };
    let stages = result(&found, &staged("100:4s,50..150:6s"), false).stages;
    let (stage, ends) = (&stages[0], &stages[0].intervals);
    let holds = |name: &str, value: f64| ends[name][0] <= value && value <= ends[name][1];
    assert!(holds("replied_per_s", stage.replied_per_s), "{ends:?}");
    assert!(holds("latency_ns_p50", stage.latency_ns.expect("measured").p50), "{ends:?}");
    assert!(stages[1].intervals.is_empty(), "the parts of a ramp differ by design");
    let table = run::stages_csv(&result(&found, &staged("100:4s,50..150:6s"), false));
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    let low = rows[0].iter().position(|column| *column == "latency_ns_p50_low").expect("a column");
    assert_eq!(rows[1][low], ends["latency_ns_p50"][0].to_string());
    assert_eq!((rows[2][low], rows[1].len(), rows[2].len()), ("", rows[0].len(), rows[0].len()));
    // A stage that was stopped early is told by its whole parts, as long as they suffice.
    found.cut(Nanos::from_millis(MEASURED.0 * 1_000 + 2_500));
    let cut = result(&found, &staged("100:4s,50..150:6s"), true).stages;
    assert_eq!((cut.len(), cut[0].intervals.is_empty()), (1, false));
    found.cut(Nanos::from_millis(MEASURED.0 * 1_000 + 1_500));
    assert!(result(&found, &staged("100:4s,50..150:6s"), true).stages[0].intervals.is_empty());
}

#[test]
fn the_parts_of_a_run_tell_how_far_chance_moves_its_numbers() {
    let mixed = |number: u64| {
        let late = Nanos(number * number % 700_000);
        (
            in_time(number) + late,
            if number.is_multiple_of(97) { Ending::Refused("busy") } else { reply(false) },
        )
    };
    let found = result(&tally(mixed), &load(), false);
    let (kind, all) = (&found.types[0], &found.types[0].intervals);
    let holds = |name: &str, value: f64| all[name][0] <= value && value <= all[name][1];
    let latency = kind.latency_ns.expect("measured");
    assert!(holds("latency_ns_p50", latency.p50) && holds("latency_ns_mean", latency.mean), "{all:?}");
    assert!(holds("replied_per_s", kind.replied_per_s) && holds("refused", 10.0 / 1000.0), "{all:?}");
    assert!(all["failed"][0] <= 0.0 && all["failed"][1] > 0.001, "none was seen among 1,000: {all:?}");
    assert!(!all.contains_key("latency_ns_p999"), "no part has a task in that tail: {all:?}");
    assert!(all["latency_ns_p50"][1] < 1.2 * latency.p50, "{all:?}");
}
