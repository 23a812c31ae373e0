//! Studies with realistic curves, computed from formulas.

use sluice_outcome::study::{
    Axis, Cause, Class, ClassTimes, Comparison, Counts, Estimate, Expectation, Gauges, HeatMap, Measure,
    Method, Metric, Panel, PaperCurve, PaperPoint, Part, Point, Schema, Search, Series, Settings, Source,
    Spread, StudyOutcome, Sustained, Times, Unit, Verdict,
};

/// The behaviour of a policy in the fixture.
#[derive(Clone, Copy)]
struct Kind {
    policy: &'static str,
    /// The load at which the policy saturates.
    limit: f64,
    /// The p99 at no load, divided by the service time.
    floor: f64,
    /// How early the latency rises.
    bend: f64,
}

const KINDS: [Kind; 10] = [
    Kind { policy: "rain:1", limit: 0.735, floor: 5.1, bend: 0.08 },
    Kind { policy: "rain:2", limit: 0.98, floor: 5.15, bend: 0.22 },
    Kind { policy: "rain:3", limit: 0.99, floor: 5.2, bend: 0.4 },
    Kind { policy: "rain:4", limit: 0.99, floor: 5.2, bend: 0.6 },
    Kind { policy: "r2p2:2", limit: 0.95, floor: 5.3, bend: 0.7 },
    Kind { policy: "racksched:2", limit: 0.97, floor: 5.25, bend: 1.3 },
    Kind { policy: "racksched:2,tracked", limit: 0.97, floor: 5.25, bend: 1.0 },
    Kind { policy: "draconis", limit: 0.8, floor: 7.0, bend: 0.4 },
    Kind { policy: "pallas", limit: 0.99, floor: 5.5, bend: 3.5 },
    Kind { policy: "central", limit: 1.0, floor: 4.9, bend: 0.05 },
];
const WORKERS: f64 = 32.0;

/// Ten policies on one class, with the paper's numbers, verdicts, a comparison and searches.
pub(crate) fn one_class() -> StudyOutcome {
    let service_ns = 10_000.0;
    let classes =
        vec![Class { name: "task".to_owned(), share: 1.0, mean_service_ns: service_ns, within_ns: None }];
    let series = KINDS.iter().map(|kind| series(*kind, &classes, Source::Simulator)).collect();
    let paper = [
        ("Rain", "rain:1", 51_000.0),
        ("R2P2-SW", "r2p2:2", 64_000.0),
        ("Draconis-SW", "draconis", 85_000.0),
    ];
    let panel = Panel {
        id: "exp".to_owned(),
        title: "Exponential service, mean 10 µs".to_owned(),
        workload: "exp:10us".to_owned(),
        capacity_per_s: WORKERS * 1e9 / service_ns,
        classes,
        series,
        paper: paper.map(|(label, series, value)| paper_curve(label, series, Metric::P99, value)).to_vec(),
    };
    StudyOutcome {
        heats: heats(),
        expectations: expectations(),
        comparisons: vec![comparison(None)],
        searches: vec![search("rain:2", Some(2_912e3)), search("pallas", None)],
        ..study("rain-6b", "Five schedulers under exponential service times", vec![panel])
    }
}

/// A study with two classes, slices, and slowdowns in the main picture.
pub(crate) fn two_classes() -> StudyOutcome {
    let class = |name: &str, share, mean_service_ns| Class {
        name: name.to_owned(),
        share,
        mean_service_ns,
        within_ns: None,
    };
    let classes = vec![class("get", 0.9, 8_000.0), class("scan", 0.1, 107_000.0)];
    let of = |place: usize| series(KINDS[place], &classes, Source::Simulator);
    let mut series = [1, 4, 5, 7, 8].map(of).to_vec();
    series[0].slices = Some("14 + 18".to_owned());
    let metric = Metric { measure: Measure::Slowdown, part: Part::P99 };
    let panel = Panel {
        id: "rocksdb".to_owned(),
        title: "90 % GET, 10 % SCAN".to_owned(),
        workload: "get=0.9@const:8us+scan=0.1@const:107us".to_owned(),
        capacity_per_s: WORKERS * 1e9 / 17_900.0,
        classes,
        series,
        paper: vec![paper_curve("Rain", "rain:2", metric, 9.8)],
    };
    study("rain-7", "RocksDB requests in slices", vec![panel])
}

/// A dilated study with predictions and measurements that was stopped early.
pub(crate) fn live() -> StudyOutcome {
    let service_ns = 1_000_000.0;
    let classes =
        vec![Class { name: "hold".to_owned(), share: 1.0, mean_service_ns: service_ns, within_ns: None }];
    let both = |place: usize| {
        [Source::Simulator, Source::Live].map(|source| {
            let mut series = series(KINDS[place], &classes, source);
            if source == Source::Live {
                series.label = format!("{} live", series.policy);
                series
                    .points
                    .retain(|point| [0.3, 0.6, 0.8].iter().any(|load| (point.load - load).abs() < 1e-9));
            }
            series
        })
    };
    let panel = Panel {
        id: "live".to_owned(),
        title: "Exponential service, mean 1 ms".to_owned(),
        workload: "exp:1ms".to_owned(),
        capacity_per_s: WORKERS * 1e9 / service_ns,
        series: [1, 4, 7].into_iter().flat_map(both).collect(),
        classes,
        paper: Vec::new(),
    };
    let study = study("live", "Simulator and real packets", vec![panel]);
    StudyOutcome {
        settings: Settings {
            dilation: Some(100),
            machine: Some("a test's machine".to_owned()),
            plan: None,
            ..study.settings
        },
        comparisons: vec![comparison(Some(0.1))],
        complete: false,
        ..study
    }
}

fn study(name: &str, title: &str, panels: Vec<Panel>) -> StudyOutcome {
    StudyOutcome {
        schema: Schema::V1,
        name: name.to_owned(),
        title: title.to_owned(),
        sluice: "0.1.0".to_owned(),
        commit: "0123456789ab".to_owned(),
        settings: Settings {
            plan: Some(format!("experiments/{name}.toml")),
            testbed: "rain".to_owned(),
            testbed_toml: "name = \"rain\"\nworkers = 32\nservers = 2\nclient_to_switch = \"500ns\"\n"
                .to_owned(),
            workers: WORKERS as u32,
            seed: 1,
            replications: 5,
            tasks: 1_000_000,
            tasks_most: 1_000_000,
            warm_up: "100,000 tasks".to_owned(),
            machine: None,
            dilation: None,
            notes: vec!["half of the tasks are over 8 bytes".to_owned()],
        },
        commands: vec![format!("sluice reproduce {name} --seed 1")],
        complete: true,
        panels,
        heats: Vec::new(),
        expectations: Vec::new(),
        comparisons: Vec::new(),
        searches: Vec::new(),
    }
}

fn series(kind: Kind, classes: &[Class], source: Source) -> Series {
    let mean: f64 = classes.iter().map(|class| class.share * class.mean_service_ns).sum();
    let loads = [0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95];
    Series {
        policy: kind.policy.to_owned(),
        label: kind.policy.to_owned(),
        slices: None,
        slice_names: Vec::new(),
        source,
        points: loads.map(|load| point(kind, load, WORKERS * 1e9 / mean, mean, classes)).to_vec(),
    }
}

fn point(kind: Kind, load: f64, capacity_per_s: f64, mean_ns: f64, classes: &[Class]) -> Point {
    let holds = load < kind.limit;
    let near = if holds { load / (kind.limit - load) } else { 4_000.0 };
    let p99 = kind.floor + kind.bend * near * (1.0 + load);
    let width = 0.004 + 0.01 * (near / 20.0).min(8.0);
    let times = |service_ns: f64| {
        let waits = p99 - kind.floor;
        Times {
            latency_ns: spread(service_ns, 0.5 * service_ns / mean_ns + 0.5, waits * mean_ns, width),
            scheduling_delay_ns: spread(0.3 * mean_ns, 0.1 * mean_ns, waits * mean_ns, width),
            slowdown: spread(1.6, 1.0, waits * mean_ns / service_ns * 1.5, width),
            slowdown_type_mean: spread(1.0, 1.0, waits * mean_ns / service_ns, width),
            slowdown_server: spread(1.2, 1.0, waits * mean_ns / service_ns * 1.2, width),
        }
    };
    let rate = load * capacity_per_s;
    let sent = 5_000_000;
    let passes = if kind.policy.starts_with("draconis") { 5 } else { 3 };
    Point {
        offered_per_s: rate,
        load,
        throughput_per_s: estimate(rate.min(kind.limit * capacity_per_s), 0.001),
        sustained: if holds { Sustained::yes() } else { Sustained::no("backlog grows by 41,200 tasks/s") },
        caveat: String::new(),
        overall: times(mean_ns),
        classes: classes
            .iter()
            .map(|class| ClassTimes {
                name: class.name.clone(),
                tasks: (sent as f64 * class.share) as u64,
                times: times(class.mean_service_ns),
                goodput_per_s: None,
            })
            .collect(),
        gauges: Gauges {
            switch_queue_mean: Some(if holds { near } else { 60_000.0 }),
            switch_queue_max: Some(if holds { near * 12.0 } else { 131_072.0 }),
            worker_queue_mean: Some(kind.bend * load),
            idle_share: Some((1.0 - load / kind.limit).max(0.0)),
            recirculations_per_task: kind.policy.starts_with("r2p2").then_some(near),
            recirculation_utilization: None,
            packets_per_task: Some(if kind.policy.starts_with("draconis") {
                4.0 + 5.0 * (1.0 - load)
            } else {
                4.0
            }),
            empty_polls_per_task: kind.policy.starts_with("draconis").then_some(30.0 * (1.0 - load)),
            ..Gauges::default()
        },
        counts: Counts { sent, replied: sent, passes: passes * sent, packets: 4 * sent, ..Counts::default() },
        depths: Vec::new(),
    }
}

fn spread(base: f64, stretch: f64, waits: f64, width: f64) -> Spread {
    let of = |times: f64, waits: f64| estimate(base * times * stretch + waits, width * times.sqrt());
    Spread {
        mean: of(1.5, waits * 0.2),
        p50: of(1.2, waits * 0.1),
        p90: of(2.8, waits * 0.5),
        p95: of(3.4, waits * 0.7),
        p99: of(5.1, waits),
        p999: of(7.4, waits * 1.7),
    }
}

fn estimate(value: f64, width: f64) -> Estimate {
    Estimate::between(value, value * (1.0 - width), value * (1.0 + width), Method::Replications)
}

fn paper_curve(label: &str, series: &str, metric: Metric, value: f64) -> PaperCurve {
    let per_s = if metric == Metric::P99 { [1_920e3, 2_560e3] } else { [900e3, 1_650e3] };
    PaperCurve {
        label: label.to_owned(),
        series: Some(series.to_owned()),
        metric,
        class: None,
        place: "Rain §5.2, Figure 6(b), text".to_owned(),
        ours: false,
        points: per_s.map(|offered_per_s| PaperPoint { offered_per_s, value }).to_vec(),
    }
}

fn expectations() -> Vec<Expectation> {
    let row = |id: &str, claim: &str, paper, measured: Option<f64>, unit, verdict, why: &str| Expectation {
        id: id.to_owned(),
        claim: claim.to_owned(),
        place: "Rain §5.2, Figure 6(b), text".to_owned(),
        ours: false,
        panel: Some("exp".to_owned()),
        unit,
        paper,
        measured: measured.map(|value| estimate(value, 0.01)),
        verdict,
        why: why.to_owned(),
        cause: None,
    };
    let differs = Expectation {
        cause: Some(Cause {
            says:
                "large tasks are fetched in one more round trip, which the paper counts for some tasks only"
                    .to_owned(),
            command: "sluice sim draconis --workload exp:10us --rate 2240000 --large 0 --seed 1".to_owned(),
            shows: "without large tasks p99 falls from 92.1 to 71.4 µs, below the paper’s".to_owned(),
        }),
        ..row(
            "p99-draconis",
            "Draconis’ p99 lies well above Rain’s at all loads below 2,800 kRPS",
            Some(35_000.0),
            Some(92_100.0),
            Unit::Ns,
            Verdict::Differs,
            "its p99 is 2.6 times the paper’s",
        )
    };
    let lowest = "Rain has the lowest p99 of all at every load, and works up to the rack’s capacity";
    let push = "Pallas is the worst as soon as services vary";
    let gain = "Rain’s p99 is lower than Pallas’ at Pallas’ limit";
    vec![
        row("lowest", lowest, None, None, Unit::Ns, Verdict::Agrees, "at 9 of 9 loads, on the same tasks"),
        row("push", push, None, None, Unit::Ns, Verdict::AgreesInShape, "at 8 of 9 loads; RackSched at 0.3"),
        row(
            "gain",
            gain,
            Some(-0.411),
            Some(-0.38),
            Unit::Share,
            Verdict::AgreesInShape,
            "the sign and the size",
        ),
        differs,
        row("split", "38 + 42 workers", None, None, Unit::Count, Verdict::SetUpNotKnown, "no split is given"),
    ]
}

fn comparison(allowed: Option<f64>) -> Comparison {
    Comparison {
        panel: "exp".to_owned(),
        a: "rain:2".to_owned(),
        b: "pallas".to_owned(),
        offered_per_s: 2_240e3,
        metric: Some(Metric::P99),
        class: None,
        of_a: estimate(53_000.0, 0.01),
        of_b: estimate(81_000.0, 0.02),
        difference: Estimate::between(28_000.0, 26_400.0, 29_600.0, Method::Paired),
        real: true,
        allowed,
        verdict: allowed.map(|_| Verdict::Differs),
        cause: None,
    }
}

fn search(policy: &str, rate: Option<f64>) -> Search {
    Search {
        panel: "exp".to_owned(),
        policy: policy.to_owned(),
        metric: Metric { measure: Measure::Slowdown, part: Part::P99 },
        class: None,
        limit: 10.0,
        rate_per_s: rate.map(|value| Estimate { method: Method::Bracket, ..estimate(value, 0.01) }),
        note: if rate.is_some() { String::new() } else { "exceeds it at every rate tried".to_owned() },
    }
}

fn heats() -> Vec<HeatMap> {
    let axis = |name: &str, values: &[u64]| Axis { name: name.to_owned(), values: values.to_vec() };
    let number = |value: f64| Estimate::between(value, 0.97 * value, 1.03 * value, Method::Replications);
    vec![HeatMap {
        id: "scan".to_owned(),
        title: "Mean of a SCAN".to_owned(),
        unit: Unit::Ns,
        across: axis("keys", &[50, 500, 5_000]),
        down: axis("bytes", &[64, 1_024]),
        cells: vec![[9e3, 81e3, 800e3].map(number).to_vec(), [14e3, 130e3, 1.3e6].map(number).to_vec()],
    }]
}
