//! Tests of a datacenter on a fabric.

use std::sync::atomic::AtomicBool;
use std::thread;

use sluice_fabric::{FabricEnd, FabricLink, HostId, LinkSpeed, SwitchId, Topology};
use sluice_stats::{Counts, Gauges, TaskLog};
use sluice_testbed::{Outage, RackLayout, Testbed, TierHosts};
use sluice_wire::Nanos;
use sluice_workload::Workload;

use super::placement::Placement;
use super::rack_fabric::{FabricHosts, RackFabric};
use super::watch::CurveObserver;
use super::world::SimulatedRacks;
use super::{replicate_below_spines, run};
use crate::fabric::JoinedFabric;
use crate::point::Point;
use crate::policy::Policy;
use crate::system::System;

const END: Nanos = Nanos::from_millis(10);

fn point(policy: &str, testbed: Testbed, rate_per_s: f64) -> Point {
    let workload = Workload::parse("get=0.8@exp:20us+scan=0.2@const:90us").unwrap();
    Point::new(Policy::parse(policy).unwrap(), testbed, workload, rate_per_s)
}

fn system(policy: &str) -> System {
    System::parse(policy).unwrap().unwrap()
}

/// The links of a datacenter as a fabric without limits: a host for each worker. Clients are 0.2 µs from a
/// switch of their own, and the rest of their way lies between it and the spines.
fn without_limits(testbed: &Testbed) -> RackFabric {
    let (workers, clients) = (testbed.workers, u32::from(testbed.clients));
    let racks = testbed.racks.sizes(workers);
    let (leaves, spines) = (racks.len() as u32, u32::from(testbed.racks.spines));
    let link = |a, b, delay| FabricLink { ends: [a, b], speed: LinkSpeed { gbps: f64::INFINITY, delay } };
    let (host, switch) = (|host| FabricEnd::Host(HostId(host)), |at| FabricEnd::Switch(SwitchId(at)));
    let (near, inside) = (Nanos(200), workers + clients);
    let leaf_of = (0..).zip(racks).flat_map(|(leaf, size)| (0..size).map(move |_| leaf));
    let links =
        (0..).zip(leaf_of).map(|(worker, leaf)| link(host(worker), switch(leaf), testbed.links.worker));
    let far = testbed.links.client.since(near);
    let links = links
        .chain((workers..inside).map(|client| link(host(client), switch(leaves + spines), near)))
        .chain((0..leaves + spines).map(|at| link(host(inside + at), switch(at), Nanos(0))))
        .chain((leaves..leaves + spines).map(|spine| link(switch(spine), switch(leaves + spines), far)))
        .chain(
            (0..leaves * spines)
                .map(|at| link(switch(at / spines), switch(leaves + at % spines), testbed.racks.hop)),
        );
    let topology = Topology::listed(inside + leaves + spines, leaves + spines + 1, links.collect()).unwrap();
    let of = |first: u32, count: u32| (first..first + count).map(HostId).collect();
    let joined = JoinedFabric::without_limits(&topology);
    let hosts = TierHosts {
        topology,
        leaves: of(inside, leaves),
        spines: of(inside + leaves, spines),
        workers: of(0, workers),
        clients: of(workers, clients),
    };
    RackFabric::new(joined, FabricHosts::of_tiers(hosts), testbed.switch.pass)
}

#[test]
fn on_a_fabric_of_the_same_delays_and_no_limits_each_task_fares_as_in_the_datacenter_without_one() {
    let racks = RackLayout { spines: 2, workers: vec![4, 4, 8, 2], hop: Nanos(700), ..RackLayout::default() };
    let out = |leaf, spine, at| Outage {
        leaf,
        spine,
        at: Nanos::from_millis(at),
        heard_after: Nanos::from_micros(200),
        lasts: Nanos::from_millis(1),
    };
    let outages = vec![out(Some(2), None, 2), out(None, Some(1), 5)];
    let policies = ["dc-horus", "dc-rs-h", "dc-rs-lb", "dc-rain:2"];
    let all_live = policies.map(|policy| (policy, racks.clone()));
    let two_die = ("dc-horus", RackLayout { outages, ..racks });
    for (policy, racks) in all_live.into_iter().chain([two_die]) {
        let testbed = Testbed { workers: 18, clients: 3, racks, ..Testbed::rain() };
        let point = point(policy, testbed.clone(), 380e3);
        let ran = |below| {
            let watched = vec![(&point, Placement::of(&point), CurveObserver(TaskLog::until(END)))];
            let datacenter = SimulatedRacks::begun(below, system(policy), 0, watched, |_| {});
            let pool = run(datacenter, &AtomicBool::new(false)).unwrap().swap_remove(0);
            (pool.observer.0.in_order(), pool.counts)
        };
        let ((over, counts), (alone, expected)) = (ran(Some(without_limits(&testbed))), ran(None));
        assert_eq!(over.iter().zip(&alone).find(|(over, alone)| over != alone), None, "{policy}");
        assert!(over.len() == alone.len() && over.len() > 3_000, "{policy}: {}", over.len());
        assert_eq!(counts, expected, "{policy}");
        assert_eq!(counts.retries > 0, !testbed.racks.outages.is_empty(), "{policy}: {counts:?}");
    }
}

/// Two racks below two spines, their clients below a third leaf, and other flows on the fabric.
fn on_leaf_spine(load: f64, more: &str) -> Testbed {
    let text = format!(
        "workers = 16\nclients = 4\n[switch]\npass = \"0.5us\"\n\
         [worker]\nreceive = \"0.2us\"\nsend = \"0.2us\"\n[racks]\nspines = 2\neach = 8\n\
         [fabric]\ntopology = \"leaf-spine:3:2:2\"\n{more}\n[fabric.background]\nflows = \"hadoop\"\n\
         load = {load}\nscheme = \"letflow\"\n"
    );
    Testbed::parse(&text).unwrap()
}

/// The latencies of tasks, in order of their due times, with counts and gauges.
fn ran(testbed: Testbed) -> (Vec<Nanos>, Counts, Gauges) {
    let point = point("dc-horus", testbed, 340e3);
    point.check().unwrap();
    let watch = CurveObserver(TaskLog::until(END));
    let pool = replicate_below_spines(&point, system("dc-horus"), 0, watch, &AtomicBool::new(false)).unwrap();
    let tasks = pool.observer.0.in_order();
    let mut took: Vec<Nanos> = tasks.iter().map(|task| task.replied_at.since(task.intended)).collect();
    took.sort_unstable();
    (took, pool.counts, pool.gauges)
}

#[test]
fn a_datacenters_links_are_those_of_its_idle_fabric() {
    let testbed = on_leaf_spine(0.5, "");
    // 150 bytes take 12 ns on each link: two links to a spine, one to a leaf.
    assert_eq!((testbed.links.client, testbed.links.worker), (Nanos(2 * 1_012), Nanos(1_012)));
    assert_eq!(testbed.racks.hop, Nanos(1_012));
    assert_eq!(Testbed::parse(&testbed.to_toml()).unwrap(), testbed);
}

#[test]
fn a_datacenters_tasks_wait_behind_the_flows_and_none_is_lost_under_pfc() {
    let [idle, busy] = [0.0, 0.8].map(|load| ran(on_leaf_spine(load, "")));
    let median = |took: &[Nanos]| took[took.len() / 2];
    assert!(median(&busy.0) > median(&idle.0) + Nanos::from_micros(5), "{:?}", median(&busy.0));
    for (took, counts, gauges) in [&idle, &busy] {
        assert!(counts.lost_packets == 0 && took.len() > 2_500, "{counts:?}");
        assert!(gauges.flowlets > Some(0.0), "{gauges:?}");
    }
}

#[test]
fn without_pfc_a_datacenters_packets_are_lost_and_every_task_still_ends() {
    let small = "pfc = false\nbuffer_bytes = 30000\negress_alpha = 0.5\nrates = \"line\"";
    let (took, counts, _) = ran(on_leaf_spine(0.8, small));
    assert!(counts.lost_packets > 0 && counts.retries > 0, "{counts:?}");
    assert!(took.len() > 2_500, "{}", took.len());
}

#[test]
fn one_seed_gives_one_run_of_a_datacenter_and_its_fabric_on_any_thread() {
    let once = || {
        let (took, counts, gauges) = ran(on_leaf_spine(0.6, ""));
        (took, counts, format!("{gauges:?}"))
    };
    let here = once();
    let there = thread::scope(|scope| scope.spawn(once).join().unwrap());
    assert!(here == there);
}

#[test]
fn what_no_datacenter_on_a_fabric_can_be_is_refused_in_one_line() {
    let of = |text: &str| Testbed::parse(&format!("workers = 16\n{text}\n[fabric.background]"));
    for (text, says) in [
        ("[racks]\nspines = 2\neach = 8\n[fabric]\ntopology = \"leaf-spine:2:2:2\"", "write 3 or more"),
        ("[racks]\nspines = 2\neach = 8\n[fabric]\ntopology = \"leaf-spine:3:1:2\"", "racks.spines = 2"),
        ("[racks]\nspines = 2\neach = 8\n[fabric]\ntopology = \"fat-tree:4\"", "write leaf-spine:"),
        (
            "[racks]\nspines = 2\neach = 8\n[faults.reply]\nloss = 0.1\n[fabric]\ntopology = \
          \"leaf-spine:3:2:2\"",
            "leave [faults] out",
        ),
        (
            "[racks]\nspines = 2\neach = 8\ndetour = \"1us\"\n[fabric]\ntopology = \"leaf-spine:3:2:2\"",
            "racks.detour is not simulated on a fabric",
        ),
    ] {
        let said = of(text).unwrap_err().to_string();
        assert!(said.contains(says) && !said.contains('\n'), "{text}: {said}");
    }
    let said = point("rain:2", on_leaf_spine(0.5, ""), 340e3).check().unwrap_err().to_string();
    assert!(said.contains("rain:2 is for one switch") && !said.contains('\n'), "{said}");
}
