//! Tests of a rack on a fabric.

use std::thread;

use sluice_fabric::{FabricEnd, FabricLink, HostId, LinkSpeed, SwitchId, Topology};
use sluice_stats::{Counts, Gauges, TaskLog};
use sluice_testbed::{RackHosts, Servers, Testbed};
use sluice_wire::Nanos;
use sluice_workload::Workload;

use super::rack_fabric::{FabricHosts, RackFabric};
use super::*;
use crate::fabric::JoinedFabric;
use crate::policy::Policy;

const END: Nanos = Nanos::from_millis(10);

fn point(policy: &str, testbed: Testbed, rate_per_s: f64) -> Point {
    let workload = Workload::parse("get=0.9@exp:8us,large=1,bytes=640+scan=0.1@exp:60us").unwrap();
    Point::new(Policy::parse(policy).unwrap(), testbed, workload, rate_per_s)
}

/// The links of the "rain" testbed as a fabric without limits: servers are 1.3 µs from the switch; clients
/// are 0.2 µs from another switch, which is 0.3 µs away.
fn without_limits(testbed: &Testbed) -> RackFabric {
    let speed = |delay| LinkSpeed { gbps: f64::INFINITY, delay: Nanos(delay) };
    let link = |a, b, delay| FabricLink { ends: [a, b], speed: speed(delay) };
    let (host, switch) = (|host| FabricEnd::Host(HostId(host)), |at| FabricEnd::Switch(SwitchId(at)));
    let (servers, clients) = (u32::from(testbed.servers.count), u32::from(testbed.clients));
    let inside = servers + clients;
    let links = (0..servers)
        .map(|server| link(host(server), switch(0), 1_300))
        .chain((servers..inside).map(|client| link(host(client), switch(1), 200)))
        .chain([link(switch(0), switch(1), 300), link(host(inside), switch(0), 0)]);
    let topology = Topology::listed(inside + 1, 2, links.collect()).unwrap();
    let joined = JoinedFabric::without_limits(&topology);
    let hosts = RackHosts {
        topology,
        servers: (0..servers).map(HostId).collect(),
        clients: (servers..inside).map(HostId).collect(),
        switch: HostId(inside),
    };
    let workers_each = testbed.workers / servers;
    RackFabric::new(joined, FabricHosts::of_rack(hosts, workers_each), testbed.switch.pass)
}

#[test]
fn on_a_fabric_of_the_same_delays_and_no_limits_each_task_fares_as_in_the_rack_without_one() {
    let servers = Servers { count: 2, copy_gbps: Some(80.0), ..Servers::default() };
    let testbed = Testbed { workers: 16, clients: 5, servers, ..Testbed::rain() };
    for (policy, rate_per_s, least_written) in
        [("rain:2", 1.05e6, 500), ("rain:1", 0.8e6, 0), ("racksched:2", 0.9e6, 0), ("r2p2:3", 0.9e6, 0)]
    {
        let point = point(policy, testbed.clone(), rate_per_s);
        let Policy::Program(choice) = &point.policy else { panic!("{policy} is a program") };
        let below = without_limits(&point.testbed);
        let mut rack =
            SimulatedRacks::alone(&point, choice, 0, CurveObserver(TaskLog::until(END))).over(Some(below));
        while !rack.run(EVENTS_A_LOOK).unwrap() {}
        let writes = rack.workers.servers.awaited();
        let RackRunResult { observer: CurveObserver(over), counts, .. } = rack.finish().swap_remove(0);
        let run = AtomicBool::new(false);
        let (alone, expected, _) = point.observe(0, TaskLog::until(END), &run).unwrap();
        let (over, alone) = (over.in_order(), alone.in_order());
        assert_eq!(over.iter().zip(&alone).find(|(over, alone)| over != alone), None, "{policy}");
        assert!(over.len() == alone.len() && over.len() > 5_000, "{policy}: {}", over.len());
        assert_eq!(counts, expected, "{policy}");
        assert!(
            writes.0 >= least_written && writes.1 == 0,
            "{policy}: {writes:?} tasks were written ahead, and came before it"
        );
    }
}

/// A rack at the first ToR switch of a small fat-tree, with other flows on the fabric.
fn on_fat_tree(load: f64, more: &str) -> Testbed {
    let text = format!(
        "workers = 16\nclients = 7\n[switch]\npass = \"0.5us\"\n\
         [worker]\nreceive = \"0.2us\"\nsend = \"0.2us\"\n\
         [servers]\ncount = 2\n[fabric]\n{more}\n[fabric.background]\nflows = \"hadoop\"\nload = {load}\n\
         scheme = \"letflow\"\n"
    );
    Testbed::parse(&text).unwrap()
}

/// The latencies of tasks, in order of their due times, with counts and gauges.
fn ran(testbed: Testbed) -> (Vec<Nanos>, Counts, Gauges) {
    let run = AtomicBool::new(false);
    let point = point("rain:2", testbed, 0.9e6);
    let (diary, counts, gauges) = point.observe(0, TaskLog::until(END), &run).unwrap();
    let mut took: Vec<Nanos> =
        diary.in_order().iter().map(|task| task.replied_at.since(task.intended)).collect();
    took.sort_unstable();
    (took, counts, gauges)
}

#[test]
fn a_racks_links_are_those_of_its_idle_fabric() {
    let testbed = on_fat_tree(0.5, "");
    // 150 bytes take 12 ns on each of the five links from the farthest client.
    assert_eq!((testbed.links.client, testbed.links.worker), (Nanos(5 * 1_012), Nanos(1_012)));
    assert_eq!(Testbed::parse(&testbed.to_toml()).unwrap(), testbed);
}

#[test]
fn tasks_wait_behind_the_flows_that_share_their_ports_and_none_is_lost_under_pfc() {
    let ([idle, busy], seen): ([Vec<Nanos>; 2], Vec<_>) = {
        let [idle, busy] = [0.0, 0.8].map(|load| ran(on_fat_tree(load, "")));
        ([idle.0, busy.0], vec![(idle.1, idle.2), (busy.1, busy.2)])
    };
    let p99 = |took: &[Nanos]| took[took.len() * 99 / 100];
    assert!(p99(&busy) > p99(&idle) + Nanos::from_micros(10), "{:?} and {:?}", p99(&idle), p99(&busy));
    for (counts, gauges) in seen {
        assert_eq!((counts.lost_packets, gauges.writes_lost, gauges.writes_late), (0, Some(0.0), Some(0.0)));
    }
}

#[test]
fn without_pfc_writes_and_packets_are_lost_and_every_task_still_ends() {
    let small = "pfc = false\nbuffer_bytes = 30000\negress_alpha = 0.5\nrates = \"line\"";
    let (took, counts, gauges) = ran(on_fat_tree(0.8, small));
    assert!(counts.lost_packets > 0 && gauges.writes_lost > Some(0.0), "{counts:?} {gauges:?}");
    assert!(gauges.writes_late > Some(0.0), "what was lost is fetched");
    assert!(took.len() > 5_000, "{}", took.len());
}

#[test]
fn one_seed_gives_one_run_of_rack_and_fabric_on_any_thread() {
    let once = || {
        let (took, counts, gauges) = ran(on_fat_tree(0.6, ""));
        (took, counts, format!("{gauges:?}"))
    };
    let here = once();
    let there = thread::scope(|scope| scope.spawn(once).join().unwrap());
    assert!(here == there);
}

#[test]
fn what_no_rack_on_a_fabric_can_be_is_refused_in_one_line() {
    let refused = |policy, more: &str, says: &str| {
        let said = point(policy, on_fat_tree(0.5, more), 0.9e6).check().unwrap_err().to_string();
        assert!(said.contains(says) && !said.contains('\n'), "{said}");
    };
    refused("server:1", "", "server:1 is no program of racks' switches");
    refused("rain:2", "payload = 500", "write fabric.payload =");
    let mut testbed = on_fat_tree(0.5, "");
    let background = testbed.fabric.as_mut().unwrap().background.as_mut().unwrap();
    "letfow".clone_into(&mut background.scheme);
    let said = point("rain:2", testbed, 0.9e6).check().unwrap_err().to_string();
    assert!(said.contains("fabric.background.scheme = `letfow`"), "{said}");
}
