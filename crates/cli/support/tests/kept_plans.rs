//! A written plan reads as the same plan, whatever it contains and whatever flags changed.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use sluice_host::orchestrator::{Assignment, Lambda};
use sluice_net::rdma::Mtu;
use sluice_net::served::ServedSlice;
use sluice_services::kv::KvArgs;
use sluice_services::rocks::{GET_KEYS_MAX, RocksArgs};
use sluice_sim::Within;
use sluice_support::flags::{Io, TableServer};
use sluice_support::plan::{
    Arrivals, Changes, CoresPlan, Event, LoadPlan, Plan, RdmaPlan, Request, ServicePlan, SlicePlan, Spread,
    SwitchPlan, Target, Threshold, Types, WorkerPlan,
};
use sluice_support::results::kept::{Keeper, PLAN};
use sluice_testbed::LabelNeed;
use sluice_wire::Nanos;
use sluice_wire::registrations::Sizes;

const DEMO: &str = include_str!("../../../../experiments/demo.toml");

fn written(plan: &Plan) -> String {
    plan.to_toml().expect("all its paths are text")
}

fn read(text: &str) -> Plan {
    Plan::from_text("here", text).unwrap_or_else(|why| panic!("{why}\n{text}"))
}

proptest! {
    #[test]
    fn what_is_written_reads_as_the_same_plan(plan in plans()) {
        let text = written(&plan);
        prop_assert_eq!(read(&text), plan, "{}", text);
    }

    #[test]
    fn what_flags_changed_is_written_too(plan in plans(), changes in changes()) {
        // Not every scheduler can run every plan.
        if let Ok(plan) = plan.with(&changes) {
            let text = written(&plan);
            prop_assert_eq!(read(&text), plan, "{}", text);
        }
    }
}

#[test]
fn the_demo_is_written_about_as_people_wrote_it() {
    let text = written(&read(DEMO));
    for line in ["count = 4", "rate = 1000", "mix = \"get=0.9,scan=0.1\"", "length = \"15s\"", "at = \"6s\""]
    {
        assert!(text.lines().any(|known| known == line), "no `{line}` in:\n{text}");
    }
    assert_eq!(written(&read(&text)), text);
}

#[test]
fn a_plan_is_kept_beside_its_results_and_says_who_kept_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let changes = Changes { out: Some(folder.path().to_owned()), ..Changes::default() };
    let plan = read(DEMO).with(&changes).expect("legal");
    assert_eq!(plan.state, folder.path().join("state"), "it goes along");
    let keeper = Keeper { command: "sluice up a\nb".into(), from: "a\nb".into() };
    let path = keeper.keep(&plan).expect("the folder is there");
    assert_eq!(path, folder.path().join(PLAN));
    assert_eq!(Plan::load(Some(&path)).expect("it was read once"), plan);
    let text = std::fs::read_to_string(path).expect("it is there");
    let first = text.lines().next().expect("a line");
    assert_eq!(first, "# Kept by `sluice up a\\nb`: the plan from a\\nb, with what flags said.");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is left");
}

#[test]
fn events_that_come_after_a_shorter_load_are_left_out() {
    let shorter = |length| Changes { length: Some(length), ..Changes::default() };
    let plan = read(DEMO).with(&shorter(Duration::from_secs(5))).expect("legal");
    assert_eq!(plan.events.len(), 1, "the load ends after 7 s: {:?}", plan.events);
    assert!(read(DEMO).with(&shorter(Duration::ZERO)).is_err());
}

#[test]
fn servers_are_not_killed_under_a_scheduler_that_has_none() {
    let changes = Changes { policy: Some("racksched:2".into()), ..Changes::default() };
    let plan = read(DEMO).with(&changes).expect("legal");
    let killed: Vec<String> = plan.events.iter().map(|event| event.kill.to_string()).collect();
    assert_eq!(killed, ["worker get-1", "switch"]);
    assert_eq!(read(&written(&plan)), plan);
}

#[test]
fn a_deadline_that_was_left_to_the_dilation_goes_along_with_it() {
    let dilated = |text: &str| read(text).with(&Changes { dilation: Some(1000), ..Changes::default() });
    let deadline = |text: &str| dilated(text).expect("legal").load.expect("a load").deadline;
    assert!(deadline(DEMO) > Duration::from_secs(5));
    let own = DEMO.replace("[load]", "[load]\ndeadline = \"5001ms\"");
    assert_eq!(deadline(&own), Duration::from_millis(5_001));
}

fn plans() -> impl Strategy<Value = Plan> {
    (top(), switches(), rdmas(), (databases(), stores()), parts()).prop_map(
        |(top, switch, rdma, data, parts)| {
            let ((rocksdb, kv), (types, slices, workers, load, events)) = (data, parts);
            let mut plan = Plan { switch, rdma, rocksdb, kv, types, slices, workers, load, events, ..top };
            if plan.program().traits().adaptive.is_some() {
                plan.rdma.servers = plan.rdma.servers.max(1);
                plan.workers.iter_mut().for_each(|worker| worker.cores = None);
            }
            let apart = plan.events.iter().any(|event| event.kill == Target::Controller);
            plan.switch.controller_apart |= apart;
            let servers = plan.servers();
            plan.events
                .retain(|event| !matches!(&event.kill, Target::Server(name) if !servers.contains(name)));
            plan
        },
    )
}

fn top() -> impl Strategy<Value = Plan> {
    let folders = (text(), text());
    ("[a-z./\"\\\\é][ -~é]{0,12}", policies(), 0..i64::MAX as u64, 1u32..=1_000_000, faults(), folders)
        .prop_map(|(name, policy, seed, dilation, faults, (out, state))| Plan {
            name,
            policy,
            seed,
            dilation,
            faults,
            out: out.into(),
            state: state.into(),
            ..Plan::empty()
        })
}

/// Any text that can stand between quotes.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,12}", any::<String>()]
}

fn policies() -> impl Strategy<Value = String> {
    select(vec!["rain", "rain:2", "rain:adaptive,theta=0.2", "r2p2:2", "racksched:2,tracked", "pallas"])
        .prop_map(str::to_owned)
}

fn faults() -> impl Strategy<Value = Option<String>> {
    of(select(vec!["", "loss=0.01", "loss=0.01,dup=0.5,reorder=0.05,delay=2ms"]).prop_map(str::to_owned))
}

fn ios() -> impl Strategy<Value = Io> {
    select(vec![Io::Udp, Io::Xdp, Io::Bmv2])
}

fn runtimes() -> impl Strategy<Value = TableServer> {
    select(vec![TableServer::Thrift, TableServer::P4Runtime])
}

fn switches() -> impl Strategy<Value = SwitchPlan> {
    let metrics = of(any::<(std::net::Ipv6Addr, u16)>());
    let addresses = (of(any::<(std::net::Ipv4Addr, u16)>()), of(any::<(std::net::Ipv6Addr, u16)>()), metrics);
    let rings = (3u32..=9, 8u32..=9, 0u32..=20);
    let rest =
        (of(any::<u32>()), select(vec!["adaptive", "spin", "block"]), any::<bool>(), of(0usize..1_024));
    let parts = ((ios(), runtimes()), addresses, any::<bool>(), rings, rest);
    parts.prop_map(|((io, runtime), (listen, control, metrics), apart, rings, rest)| {
        let (payload_bytes, waiting, testbed_delays, pin) = rest;
        SwitchPlan {
            io,
            runtime,
            listen: listen.map(Into::into),
            control: control.map(Into::into),
            metrics: metrics.map(Into::into),
            controller_apart: apart,
            tasks_per_slice: 1 << rings.0,
            tokens_per_slice: 1 << rings.1,
            replay_cells: 1 << rings.2,
            payload_bytes: payload_bytes.map(|bytes| bytes as usize),
            waiting: waiting.to_owned(),
            testbed_delays,
            pin,
        }
    })
}

fn rdmas() -> impl Strategy<Value = RdmaPlan> {
    let mtus =
        select(vec![256, 512, 1024, 2048, 4096]).prop_map(|bytes| Mtu::of_bytes(bytes).expect("legal"));
    let numbers = (0u16..=16, 1280u16..=9000, 0u16..=16, 0u32..=1 << 20);
    let rest = (of(0u32..=20), of(text()));
    (mtus, numbers, any::<bool>(), any::<bool>(), rest).prop_map(|(mtu, numbers, reliable, icrc, rest)| {
        let ((servers, link_mtu, copies, stall_tasks), (slots, pcap)) = (numbers, rest);
        RdmaPlan {
            servers,
            link_mtu,
            mtu,
            reliable,
            icrc,
            copies,
            stall_tasks,
            tiny_slots: slots.map(|bits| 1 << bits),
            pcap: pcap.map(PathBuf::from),
        }
    })
}

fn databases() -> impl Strategy<Value = RocksArgs> {
    (text(), 1u64..=1_000_000_000, 1u32..=1 << 20, 0u32..=1 << 20).prop_map(
        |(db, keys, item_bytes, cache_mib)| RocksArgs { db: db.into(), keys, item_bytes, cache_mib },
    )
}

fn stores() -> impl Strategy<Value = KvArgs> {
    (text(), 0u32..=1 << 20, any::<bool>()).prop_map(|(db, cache_mib, sync)| KvArgs {
        db: db.into(),
        cache_mib,
        sync,
    })
}

type Parts = (Types, Vec<SlicePlan>, Vec<WorkerPlan>, Option<LoadPlan>, Vec<Event>);

/// Consistent parts: slices of known types, workers of known slices, a load of served types, and events
/// among them.
fn parts() -> impl Strategy<Value = Parts> {
    let names = subsequence(vec!["get", "scan", "spin", "echo", "70", "a b", "a,b=", " c"], 1..=8);
    (names, 1usize..3, of(1u32..=8)).prop_flat_map(|(names, count, limit)| {
        let slices: Vec<SlicePlan> = (0..count.min(names.len()))
            .map(|slice| SlicePlan {
                name: format!("s/{slice}"),
                types: names.iter().skip(slice).step_by(count).map(|name| (*name).to_owned()).collect(),
                limit,
                target: None,
                latency: None,
                sizes: Sizes::new(&[Nanos(u64::from(limit.unwrap_or(0)))]).unwrap_or_default(),
                needs: needs(names.get(slice).filter(|_| limit.is_some_and(|limit| limit > 4))),
                kinds: Vec::new(),
                wished: limit.is_some_and(|limit| limit > 4),
            })
            .collect();
        let workers = vec(worker(slices.len()), 0..6);
        let (load, events) = (of(load(names)), vec(event(), 0..4));
        (Just(slices), workers, load, events).prop_map(|(slices, workers, load, events)| {
            let workers = named(workers);
            let serves = |slice: &SlicePlan| workers.iter().any(|worker| worker.lanes(&slice.name) > 0);
            let load = load.filter(|_| workers.is_empty() || slices.iter().all(serves));
            let events = if load.is_some() { possible(events, &workers) } else { Vec::new() };
            (types(), slices, workers, load, events)
        })
    })
}

/// Of one type, if any.
fn needs(of: Option<&&str>) -> Vec<LabelNeed> {
    let labels = ["gpu", "ssd"].map(str::to_owned);
    of.map(|name| LabelNeed { class: (*name).to_owned(), labels: labels.to_vec() }).into_iter().collect()
}

fn types() -> Types {
    let mut types = Types::built_in();
    for (name, number) in
        [("echo", 17), ("a b", 5), ("70", 70), ("a,b=", 8), (" c", 9), ("9", 10), ("\"../\\", 65_535)]
    {
        types.name(name, number).expect("both are new");
    }
    types
}

fn worker(slices: usize) -> impl Strategy<Value = (usize, WorkerPlan)> {
    let program = (text(), vec(text(), 0..3));
    let service = prop_oneof![
        select(vec!["hold", "spin", "rocksdb"]).prop_map(|name| ServicePlan::Ours(name.to_owned())),
        program.prop_map(|(exec, args)| ServicePlan::Program { exec: exec.into(), args }),
    ];
    (1usize..4, 0..slices, service, of(1u8..=8), of(0usize..1_024), faults()).prop_map(
        |(count, slice, service, quota, pin, faults)| {
            let (name, slice) = (String::new(), format!("s/{slice}"));
            let labels = quota.filter(|quota| *quota > 4).map(|_| "gpu".to_owned()).into_iter().collect();
            // Workers without a quota may be servers of many cores.
            let weight = NonZeroU32::new(count as u32).expect("one at least");
            let served = ServedSlice { slice: slice.clone(), priority: 7, weight };
            let (depth, lambda) = (count as u32, Lambda::new(1, 3).expect("a ratio"));
            let is_server = |pin: &usize| quota.is_none() && *pin > 300;
            let (pool, batch) = (depth == 2, depth == 3);
            let assignment = if pool { Assignment::CompleteShare } else { Assignment::Hybrid(count) };
            let of = CoresPlan { cores: 3, serves: vec![served], depth, lambda, assignment, pool, batch };
            let cores = pin.filter(is_server).map(|_| of);
            (count, WorkerPlan { name, slice, rack: None, labels, service, quota, cores, pin, faults })
        },
    )
}

/// Workers with unique names, numbered from 1 or from 2.
fn named(workers: Vec<(usize, WorkerPlan)>) -> Vec<WorkerPlan> {
    let all = workers.into_iter().enumerate().flat_map(|(kind, (count, one))| {
        let first = 1 + kind % 2;
        let name = move |number| format!("w{kind}-{number}");
        (first..first + count).map(move |number| WorkerPlan { name: name(number), ..one.clone() })
    });
    all.collect()
}

fn load(names: Vec<&'static str>) -> impl Strategy<Value = LoadPlan> {
    let rate = || prop_oneof![1e-6..1e9f64, (1u32..1_000_000_000).prop_map(f64::from)];
    let arrivals = prop_oneof![
        rate().prop_map(Arrivals::Poisson),
        rate().prop_map(Arrivals::Constant),
        text().prop_map(|path| Arrivals::Trace(path.into())),
    ];
    let parts = vec(0.01..1.0f64, names.len());
    let requests = vec(request(), names.len());
    let spans = (span(0), span(1), span(1), span(0));
    (arrivals, parts, requests, spans, any::<bool>()).prop_map(
        move |(arrivals, parts, requests, spans, retry)| {
            let sum: f64 = parts.iter().sum();
            let owned = || names.iter().map(|name| (*name).to_owned());
            let mut requests: Vec<(String, Request)> = owned().zip(requests).collect();
            requests.sort_by(|(a, _), (b, _)| a.cmp(b));
            LoadPlan {
                arrivals,
                mix: owned().zip(parts.iter().map(|part| part / sum)).collect(),
                requests,
                within: within(&names, spans.2),
                budgets: owned().take(1).map(|name| (name, Duration::from_micros(200))).collect(),
                warm_up: spans.0,
                length: spans.1,
                deadline: spans.2,
                retry,
                behind_max: spans.3,
                failed_max: parts[0],
                refused_max: parts[0],
                thresholds: thresholds(&names),
            }
        },
    )
}

/// A threshold on each type, and on all tasks.
fn thresholds(names: &[&'static str]) -> Vec<Threshold> {
    let of = |class| Threshold { class, .."p99.9<=5ms".parse().expect("it is legal") };
    names.iter().map(|name| of(Some((*name).to_owned()))).chain([of(None)]).collect()
}

/// No limit, one for all types, or one for each.
fn within(names: &[&'static str], span: Duration) -> Option<Within> {
    let limit = Nanos(span.min(Duration::from_secs(8_000_000)).as_nanos() as u64);
    let each = || names.iter().map(|name| ((*name).to_owned(), limit)).collect();
    [None, Some(Within::All(limit)), Some(Within::Each(each()))][limit.0 as usize % 3].clone()
}

/// Spans of all sizes, up to the three years that a plan allows.
fn span(from_ns: u64) -> impl Strategy<Value = Duration> {
    let ns = prop_oneof![from_ns..1 << 20, from_ns..1 << 50];
    prop_oneof![ns.prop_map(Duration::from_nanos), (1u64..90_000_000).prop_map(Duration::from_secs)]
}

fn request() -> impl Strategy<Value = Request> {
    let spread = || select(vec![Spread::Constant, Spread::Exponential]);
    prop_oneof![
        (1..=GET_KEYS_MAX, spread(), each()).prop_map(|(keys, spread, each)| Request::Get {
            keys,
            spread,
            each
        }),
        (1u32..=100_000, spread(), each()).prop_map(|(rows, spread, each)| Request::Scan {
            rows,
            spread,
            each
        }),
        (span(0), spread()).prop_map(|(span, spread)| Request::Busy { span, spread }),
        text().prop_map(Request::Text),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let kill = prop_oneof![
        Just(Target::Switch),
        Just(Target::Controller),
        (0usize..6, 1usize..4).prop_map(|(kind, number)| Target::Worker(format!("w{kind}-{number}"))),
        (1u16..=16).prop_map(|number| Target::Server(format!("server-{number}"))),
    ];
    // Every load lasts for at least a nanosecond.
    (kill, of(span(0))).prop_map(|(kill, return_after)| Event { at: Duration::ZERO, kill, return_after })
}

fn possible(events: Vec<Event>, workers: &[WorkerPlan]) -> Vec<Event> {
    let is_there = |name: &String| workers.iter().any(|worker| worker.name == *name);
    let can_be = |event: &Event| !matches!(&event.kill, Target::Worker(name) if !is_there(name));
    events.into_iter().filter(can_be).collect()
}

fn changes() -> impl Strategy<Value = Changes> {
    let numbers = (of(1e-3..1e9f64), of(span(1)), of(1u32..=1_000_000));
    let folders = (of(text()), of(text()));
    (of(policies()), numbers, faults(), of(ios()), folders).prop_map(
        |(policy, (rate, length, dilation), faults, io, (out, pcap))| Changes {
            policy,
            dilation,
            faults,
            io,
            out: out.map(PathBuf::from),
            pcap: pcap.map(PathBuf::from),
            rate,
            length,
            budget: rate.map(|_| Nanos(2_500)),
            ..Changes::default()
        },
    )
}

fn each() -> impl Strategy<Value = Option<Duration>> {
    of((1u64..1_000_000).prop_map(Duration::from_nanos))
}
