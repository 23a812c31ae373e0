//! The crates' own benches: each compares code with a baseline in one run, and prints one line of JSON.

use std::env;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::BenchError;
use crate::print;
use crate::report::{Bound, Report};
use crate::repository::root;

/// The largest time of Rain's decision, as a multiple of a bare ring's.
const DECISION_MAX: f64 = 3.0;
/// The largest time with ranked tokens, as a multiple of that without; the aim is 1.1.
const RANKED_MAX: f64 = 1.3;
/// The largest time of a pair in XDP whose slice has a target, as a multiple of that without.
const TARGETED_MAX: f64 = 1.1;
/// The largest time with four classes of tasks, as a multiple of that without.
const CLASSED_MAX: f64 = 1.3;
/// The largest time with labels, for a waiting task and an arriving token, as a multiple of that without.
const LABELLED_MAX: f64 = 2.5;
/// The largest time with labels, for a parked token; it takes a recirculation more.
const LABELLED_ROUND_MAX: f64 = 3.2;
/// The largest time of a task and its poll under one of Draconis' policies, as a multiple of that without;
/// most of it is passes.
const POLICY_MAX: f64 = 3.0;
/// The largest time of a server's agent, for 32 workers that are never idle and whose tasks take at least
/// [`AGENT_SERVICE_US`], as a multiple of that for adding up the same tasks' numbers. 5.2 to 6.4 were
/// measured where that takes 2 ns a task, and 1.6 to 2.2 where it takes 9.
const AGENT_MAX: f64 = 8.0;
/// The service time of the tasks in the bound for agents, in µs.
const AGENT_SERVICE_US: u32 = 10;

/// The least rate of a gateway over that of a bare server, by the processor time of their threads, for
/// commands that each wait for the one before.
const GATEWAY_MIN: f64 = 0.5;

/// The largest time for building or receiving an RDMA write, as a multiple of that for writing headers,
/// copying and a checksum.
const WRITE_MAX: f64 = 1.5;

/// The largest time of RingLeader's balancer, as a multiple of the time of a plain scan for the minimum.
const BALANCER_MAX: f64 = 1.0;
/// The balancer's bound with many cores and two priorities.
const BALANCER_MANY_CORES_MAX: f64 = 0.6;
/// The balancer's bound with few cores, where the scan need not know which services have room.
const BALANCER_FEW_CORES_MAX: f64 = 1.4;

/// The largest time of a word to a core and back, as a multiple of the time over two bare rings.
const RINGS_MAX: f64 = 2.5;
/// The largest time of a coroutine's yield and return, as a multiple of the coroutine library's bare context
/// switch.
const YIELD_MAX: f64 = 3.0;

/// The largest time of a task by the C functions, as a multiple of that by the Rust library.
const C_MAX: f64 = 1.05;

/// The reference `central` must serve at least as many requests as a bare loop in the same time; the aim is
/// 1.5 times as many.
const CENTRAL_MIN: f64 = 1.0;
/// A whole simulated rack must run at least this share of a bare loop's tasks in the same time; the aim is
/// 0.4. One program measured 0.20 to 0.26 on different machines and days, so its instructions are bounded
/// too.
const RACK_MIN: f64 = 0.2;
/// The least share of a bare loop's tasks, in the same time, for a simulated server with RingLeader's NIC
/// and cores.
const SERVER_MIN: f64 = 0.25;

/// In the same time, a simulated datacenter with two hops must run at least this share of a simulated
/// rack's tasks.
const DATACENTER_MIN: f64 = 0.5;

/// A simulated fabric must forward at least this share of a bare loop's frames in the same time.
const FABRIC_MIN: f64 = 0.5;
/// Frame hops per core-second, ACKs included, of other simulators on such a fabric (k = 4, 70 %) and a
/// comparable machine.
const OTHERS_HOPS_PER_S: [(&str, f64); 2] = [("ns-3", 0.435e6), ("htsim", 2.1e6)];

/// `crates/core/switch/benches/decision.rs`.
#[derive(Deserialize)]
struct Decision {
    token_first: Order,
    task_first: Order,
    entry_copy_ns: f64,
}

#[derive(Deserialize)]
struct Order {
    ring_ns: f64,
    rain_ns: f64,
    ratio: f64,
    ranked: f64,
    classed: f64,
    labelled: f64,
    allocations: f64,
}

/// `crates/core/switch/benches/draconis.rs`.
#[derive(Deserialize)]
struct Policies {
    cases: Vec<Priced>,
}

#[derive(Deserialize)]
struct Priced {
    policy: String,
    ns: f64,
    ratio: f64,
    passes: f64,
}

/// `crates/run/switchd/benches/switch_vs_forwarder.rs`.
#[derive(Deserialize)]
struct Forwarding {
    cases: Vec<Forwarded>,
}

#[derive(Deserialize)]
struct Forwarded {
    case: String,
    switch_ns_per_task: f64,
    ratio: f64,
    /// The bound.
    target_ratio: f64,
}

/// The output of `crates/run/kernel/benches/xdp_pair.rs`, or why it measured nothing.
#[derive(Deserialize)]
#[serde(untagged)]
enum XdpPair {
    Skipped {
        skipped: String,
    },
    Measured {
        bare_ns: f64,
        bounced_ns: f64,
        token_first_ns: f64,
        task_first_ns: f64,
        token_first_ratio: f64,
        task_first_ratio: f64,
        token_first_bare: f64,
        task_first_bare: f64,
        token_first_targeted: f64,
        task_first_targeted: f64,
        target_ratio: f64,
    },
}

/// `crates/sim/fabric/benches/hops.rs`.
#[derive(Deserialize)]
struct Hopping {
    cases: Vec<HoppingCase>,
}

#[derive(Deserialize)]
struct HoppingCase {
    flows: String,
    hops_per_s: f64,
    bare_per_s: f64,
    ratio: f64,
}

/// `crates/core/host/benches/rdma.rs`.
#[derive(Deserialize)]
struct Rdma {
    cases: Vec<Written>,
}

#[derive(Deserialize)]
struct Written {
    bytes: u32,
    bare_ns: f64,
    build_ns: f64,
    receive_ns: f64,
    build_ratio: f64,
    receive_ratio: f64,
}

/// `crates/core/host/benches/orchestrator.rs`.
#[derive(Deserialize)]
struct Balancing {
    cases: Vec<Balanced>,
}

#[derive(Deserialize)]
struct Balanced {
    cores: u32,
    priorities: u32,
    plain_ns: f64,
    ours_ns: f64,
    ratio: f64,
}

/// `crates/run/cores/benches/cores.rs`.
#[derive(Deserialize)]
struct CoresWeighed {
    bare_ring_ns: f64,
    rings_ns: f64,
    rings_ratio: f64,
    switch_ns: f64,
    yield_ns: f64,
    yield_ratio: f64,
    yield_with_clock_ns: f64,
}

/// `crates/run/net/benches/agent.rs`.
#[derive(Deserialize)]
struct Watching {
    cases: Vec<Watched>,
}

#[derive(Deserialize)]
struct Watched {
    service_us: u32,
    sample_us: u32,
    share: f64,
    ratio: f64,
    bare_ns_per_task: f64,
    ns_per_task: f64,
    ns_per_interval: f64,
}

/// `crates/bindings/c/benches/client.rs`.
#[derive(Deserialize)]
struct CClient {
    alone: CTask,
    many: CTask,
}

#[derive(Deserialize)]
struct CTask {
    rust_ns: f64,
    c_ns: f64,
    ratio: f64,
}

/// `crates/run/gateway/benches/gateway.rs`.
#[derive(Deserialize)]
struct Fronting {
    cases: Vec<Fronted>,
    direct_ns: f64,
    direct_packets_ns: f64,
}

#[derive(Deserialize)]
struct Fronted {
    connections: u32,
    pipeline: u32,
    ratio: f64,
    gateway_ns: f64,
    bare_ns: f64,
    packets_ns: f64,
    per_s: f64,
    bare_per_s: f64,
}

/// `crates/sim/sim/benches/central.rs`.
#[derive(Deserialize)]
struct Reference {
    loop_per_s: f64,
    lean_loop_per_s: f64,
    central_per_s: f64,
    ratio: f64,
    ratio_lean: f64,
    draws_ns: f64,
    allocations: f64,
}

/// `crates/sim/sim/benches/rack.rs`.
#[derive(Deserialize)]
struct Simulated {
    rack_per_s: f64,
    ratio: f64,
    ratio_lean: f64,
    server_per_s: f64,
    server_ratio: f64,
}

/// `crates/sim/sim/benches/datacenter.rs`.
#[derive(Deserialize)]
struct OverTwoHops {
    datacenter_per_s: f64,
    ratio: f64,
    large_per_s: f64,
    large_ratio: f64,
}

/// `crates/core/switch/benches/horus.rs`.
#[derive(Deserialize)]
struct HorusSwitches {
    cases: Vec<HorusSwitch>,
}

#[derive(Deserialize)]
struct HorusSwitch {
    switch: String,
    busy: bool,
    ns: f64,
    passes: f64,
}

/// A line of the output of `bench/others`.
#[derive(Deserialize)]
struct Other {
    name: String,
    requests_per_s: f64,
}

/// Compares Rain's decision with a ring behind the same interface.
pub(crate) fn decision(report: &mut Report) -> Result<(), BenchError> {
    let Decision { token_first, task_first, entry_copy_ns } = bench("sluice-switch", "decision")?;
    for (name, order, labelled_max) in
        [("token first", &token_first, LABELLED_ROUND_MAX), ("task first", &task_first, LABELLED_MAX)]
    {
        report.add(&format!("decision ÷ bare ring, {name}"), order.ratio, "×", Bound::AtMost(DECISION_MAX));
        report.add(&format!("  ranked ÷ without, {name}"), order.ranked, "×", Bound::AtMost(RANKED_MAX));
        let classed = format!("  four classes ÷ without, {name}");
        report.add(&classed, order.classed, "×", Bound::AtMost(CLASSED_MAX));
        let labelled = format!("  labels ÷ without, {name}");
        report.add(&labelled, order.labelled, "×", Bound::AtMost(labelled_max));
        report.add(&format!("  decision, {name}"), order.rain_ns, "ns", Bound::None);
        report.add(&format!("  bare ring, {name}"), order.ring_ns, "ns", Bound::None);
    }
    report.add("  an entry copied in and out, no packets", entry_copy_ns, "ns", Bound::None);
    let allocations = token_first.allocations + task_first.allocations;
    report.add("allocations per decision", allocations, "", Bound::AtMost(0.0));
    Ok(())
}

/// Compares Draconis' policies with Draconis without them.
pub(crate) fn draconis(report: &mut Report) -> Result<(), BenchError> {
    let Policies { cases } = bench("sluice-switch", "draconis")?;
    for Priced { policy, ns, ratio, passes } in &cases {
        let of = format!("{policy} ÷ `draconis`, a task");
        report.add(&of, *ratio, "×", Bound::AtMost(POLICY_MAX));
        report.add(&format!("  {policy}, a task"), *ns, "ns", Bound::None);
        report.add(&format!("  {policy}, passes a task"), *passes, "", Bound::None);
    }
    Ok(())
}

/// Compares the whole UDP switch with a forwarder on the same sockets.
pub(crate) fn switch_vs_forwarder(report: &mut Report) -> Result<(), BenchError> {
    let Forwarding { cases } = bench("sluice-switchd", "switch_vs_forwarder")?;
    for case in &cases {
        let name = format!("switch ÷ forwarder, {}", case.case);
        report.add(&name, case.ratio, "×", Bound::AtLeast(case.target_ratio));
        let name = format!("  switch, {}", case.case);
        report.add(&name, 1e9 / case.switch_ns_per_task, "tasks/core-s", Bound::None);
    }
    Ok(())
}

/// Measures the XDP program's decision with the kernel's test run.
pub(crate) fn xdp_pair(report: &mut Report) -> Result<(), BenchError> {
    let (ratios, targeted, times, bound) = match bench("sluice-kernel", "xdp_pair")? {
        XdpPair::Skipped { skipped } => {
            print::line(format_args!("not measured, the XDP program: {skipped}"))?;
            return Ok(());
        }
        XdpPair::Measured {
            bare_ns,
            bounced_ns,
            token_first_ns,
            task_first_ns,
            token_first_ratio,
            task_first_ratio,
            token_first_bare,
            task_first_bare,
            token_first_targeted,
            task_first_targeted,
            target_ratio,
        } => (
            [
                ("token first", token_first_ratio, token_first_bare),
                ("task first", task_first_ratio, task_first_bare),
            ],
            [("token first", token_first_targeted), ("task first", task_first_targeted)],
            [
                ("token first", token_first_ns),
                ("task first", task_first_ns),
                ("bounced", bounced_ns),
                ("bare", bare_ns),
            ],
            Bound::AtMost(target_ratio),
        ),
    };
    for (name, ratio, bare) in ratios {
        report.add(&format!("a pair in XDP ÷ bounced packets, {name}"), ratio, "×", bound);
        report.add(&format!("  ÷ bare bounce, {name}"), bare, "×", Bound::None);
    }
    for (name, ratio) in targeted {
        let name = format!("a pair in XDP, target ÷ without, {name}");
        report.add(&name, ratio, "×", Bound::AtMost(TARGETED_MAX));
    }
    for (name, ns) in times {
        report.add(&format!("  a pair in XDP, {name}"), ns, "ns", Bound::None);
    }
    Ok(())
}

/// Compares RDMA writes with headers, a copy and a checksum.
pub(crate) fn rdma(report: &mut Report) -> Result<(), BenchError> {
    let Rdma { cases } = bench("sluice-host", "rdma")?;
    for case in &cases {
        let bytes = case.bytes;
        let bound = Bound::AtMost(WRITE_MAX);
        report.add(&format!("build a WRITE ÷ bare, {bytes} B"), case.build_ratio, "×", bound);
        report.add(&format!("receive a WRITE ÷ bare, {bytes} B"), case.receive_ratio, "×", bound);
        report.add(&format!("  build a WRITE, {bytes} B"), case.build_ns, "ns", Bound::None);
        report.add(&format!("  receive a WRITE, {bytes} B"), case.receive_ns, "ns", Bound::None);
        report.add(&format!("  headers, copy and CRC, {bytes} B"), case.bare_ns, "ns", Bound::None);
    }
    Ok(())
}

/// Compares RingLeader's balancer with a plain scan for the minimum.
pub(crate) fn orchestrator(report: &mut Report) -> Result<(), BenchError> {
    let Balancing { cases } = bench("sluice-host", "orchestrator")?;
    for Balanced { cores, priorities, plain_ns, ours_ns, ratio } in cases {
        let bound = Bound::AtMost(match (cores, priorities) {
            (8, 2) => BALANCER_FEW_CORES_MAX,
            (256, 2) => BALANCER_MANY_CORES_MAX,
            _ => BALANCER_MAX,
        });
        let of = format!("{cores} cores, {priorities} priorities");
        report.add(&format!("a core chosen and its feedback ÷ plain scan, {of}"), ratio, "×", bound);
        report.add(&format!("  a core chosen and its feedback, {of}"), ours_ns, "ns", Bound::None);
        report.add(&format!("  plain scan, {of}"), plain_ns, "ns", Bound::None);
    }
    Ok(())
}

/// Compares two costs in a server of many cores: a word to a core and back with bare rings, and a task's
/// yield with the coroutine library's bare context switch.
pub(crate) fn cores(report: &mut Report) -> Result<(), BenchError> {
    let of: CoresWeighed = bench("sluice-cores", "cores")?;
    report.add("a word to a core and back ÷ bare rings", of.rings_ratio, "×", Bound::AtMost(RINGS_MAX));
    report.add("  a word to a core and back", of.rings_ns, "ns", Bound::None);
    report.add("  over bare rings", of.bare_ring_ns, "ns", Bound::None);
    report.add("yield and resume ÷ bare switch", of.yield_ratio, "×", Bound::AtMost(YIELD_MAX));
    report.add("  yield and resume", of.yield_ns, "ns", Bound::None);
    report.add("  with two looks at the clock", of.yield_with_clock_ns, "ns", Bound::None);
    report.add("  bare switch, there and back", of.switch_ns, "ns", Bound::None);
    Ok(())
}

/// Compares the agent's processor time with that for adding up the numbers that it reads.
pub(crate) fn agent(report: &mut Report) -> Result<(), BenchError> {
    let Watching { cases } = bench("sluice-net", "agent")?;
    for case in &cases {
        let is_bound = case.service_us >= AGENT_SERVICE_US;
        let bound = if is_bound { Bound::AtMost(AGENT_MAX) } else { Bound::None };
        let of = format!("32 workers, tasks of {} us, samples every {} us", case.service_us, case.sample_us);
        report.add(&format!("agent ÷ bare sums, {of}"), case.ratio, "×", bound);
        report.add(&format!("  agent's share of a core, {of}"), case.share, "of a core", Bound::None);
        report.add(&format!("  a task's bare sums, {of}"), case.bare_ns_per_task, "ns", Bound::None);
        report.add(&format!("  a task that ended, {of}"), case.ns_per_task, "ns", Bound::None);
        report.add(&format!("  an interval's end, {of}"), case.ns_per_interval, "ns", Bound::None);
    }
    Ok(())
}

/// Compares a task by the C functions with one by the Rust library, in one live rack.
pub(crate) fn c_client(report: &mut Report) -> Result<(), BenchError> {
    let CClient { alone, many } = bench("sluice-c", "client")?;
    for (of, CTask { rust_ns, c_ns, ratio }) in [("alone", alone), ("16 under way", many)] {
        report.add(&format!("a task of a C client ÷ Rust client, {of}"), ratio, "×", Bound::AtMost(C_MAX));
        report.add(&format!("  a task of a C client, {of}"), c_ns, "ns", Bound::None);
        report.add(&format!("  a task of a Rust client, {of}"), rust_ns, "ns", Bound::None);
    }
    Ok(())
}

/// Compares a command's cost on a gateway's thread with that of a bare server on the same event loop.
pub(crate) fn gateway(report: &mut Report) -> Result<(), BenchError> {
    let Fronting { cases, direct_ns, direct_packets_ns } = bench("sluice-gateway", "gateway")?;
    for case in &cases {
        let of = format!("{} connections, {} commands at once", case.connections, case.pipeline);
        // The bare server answers a pipeline with one system call; a rack's replies come one by one.
        let bound = if case.pipeline == 1 { Bound::AtLeast(GATEWAY_MIN) } else { Bound::None };
        report.add(
            &format!("gateway ÷ bare RESP server, commands a core-second, {of}"),
            case.ratio,
            "×",
            bound,
        );
        report.add(&format!("  a command in the gateway, {of}"), case.gateway_ns, "ns", Bound::None);
        report.add(&format!("  in the rack's client, {of}"), case.packets_ns, "ns", Bound::None);
        report.add(&format!("  in the bare server, {of}"), case.bare_ns, "ns", Bound::None);
        report.add(
            &format!("  gateway and rack on this machine, {of}"),
            case.per_s,
            "commands/s",
            Bound::None,
        );
        report.add(&format!("  bare server, {of}"), case.bare_per_s, "commands/s", Bound::None);
    }
    report.add("  a task without a gateway, in its program", direct_ns, "ns", Bound::None);
    report.add("  in the rack's client", direct_packets_ns, "ns", Bound::None);
    Ok(())
}

/// Compares the simulator's reference `central` with an event loop over the standard library's binary heap.
pub(crate) fn central(report: &mut Report) -> Result<(), BenchError> {
    let central: Reference = bench("sluice-sim", "central")?;
    report.add("central ÷ bare event loop", central.ratio, "×", Bound::AtLeast(CENTRAL_MIN));
    report.add("central ÷ the leanest such loop", central.ratio_lean, "×", Bound::AtLeast(CENTRAL_MIN));
    report.add("  central", central.central_per_s, "requests/core-s", Bound::None);
    report.add("  bare event loop", central.loop_per_s, "requests/core-s", Bound::None);
    report.add("  the leanest such loop", central.lean_loop_per_s, "requests/core-s", Bound::None);
    report.add("  drawing a request, in each of them", central.draws_ns, "ns", Bound::None);
    report.add("allocations per request, once warm", central.allocations, "", Bound::AtMost(0.0));
    Ok(())
}

/// Compares a whole simulated rack under Rain, packet by packet, with the same loop.
pub(crate) fn rack(report: &mut Report) -> Result<(), BenchError> {
    let Simulated { rack_per_s, ratio, ratio_lean, server_per_s, server_ratio } =
        bench("sluice-sim", "rack")?;
    report.add("simulated rack ÷ bare event loop", ratio, "×", Bound::AtLeast(RACK_MIN));
    report.add("  simulated rack ÷ the leanest such loop", ratio_lean, "×", Bound::None);
    report.add("  simulated rack", rack_per_s, "tasks/core-s", Bound::None);
    report.add("simulated server ÷ bare event loop", server_ratio, "×", Bound::AtLeast(SERVER_MIN));
    report.add("  simulated server", server_per_s, "requests/core-s", Bound::None);
    Ok(())
}

/// Compares racks below a spine under Horus with as many workers in one rack under RackSched.
pub(crate) fn datacenter(report: &mut Report) -> Result<(), BenchError> {
    let OverTwoHops { datacenter_per_s, ratio, large_per_s, large_ratio } =
        bench("sluice-sim", "datacenter")?;
    report.add("simulated datacenter ÷ simulated rack", ratio, "×", Bound::AtLeast(DATACENTER_MIN));
    report.add("  simulated datacenter", datacenter_per_s, "tasks/core-s", Bound::None);
    report.add("the same, 4,080 workers each", large_ratio, "×", Bound::AtLeast(DATACENTER_MIN));
    report.add("  simulated datacenter of 4,080", large_per_s, "tasks/core-s", Bound::None);
    Ok(())
}

/// Measures a task's cost in a spine, in a leaf below it, and in the switch of a rack without a spine; its
/// reply and the rack's reports are included.
pub(crate) fn horus(report: &mut Report) -> Result<(), BenchError> {
    let HorusSwitches { cases } = bench("sluice-switch", "horus")?;
    for case in &cases {
        let of = format!("horus {}, {}", case.switch, if case.busy { "all busy" } else { "somebody idle" });
        report.add(&of, case.ns, "ns/task", Bound::None);
        report.add(&format!("  {of}"), case.passes, "passes/task", Bound::None);
    }
    Ok(())
}

/// Compares a whole simulated fabric, hop by hop, with a loop that stores and forwards the same frames.
pub(crate) fn fabric(report: &mut Report) -> Result<(), BenchError> {
    let Hopping { cases } = bench("sluice-fabric", "hops")?;
    for case in &cases {
        let of = format!("{}, k = 4, load 0.7", case.flows);
        let bound = Bound::AtLeast(FABRIC_MIN);
        report.add(&format!("simulated fabric ÷ bare store and forward, {of}"), case.ratio, "×", bound);
        report.add(&format!("  simulated fabric, {of}"), case.hops_per_s, "hops/core-s", Bound::None);
        report.add(&format!("  bare store and forward, {of}"), case.bare_per_s, "hops/core-s", Bound::None);
        for (other, hops_per_s) in OTHERS_HOPS_PER_S {
            let row = format!("  simulated fabric ÷ {other} ({:.2} M hops/core-s), {of}", hops_per_s / 1e6);
            report.add(&row, case.hops_per_s / hops_per_s, "×", Bound::None);
        }
    }
    Ok(())
}

/// Measures the same model on other simulators. Only if `BENCH_OTHERS` is set, since they are installed
/// first.
pub(crate) fn others(report: &mut Report) -> Result<(), BenchError> {
    if env::var_os("BENCH_OTHERS").is_none() {
        return Ok(());
    }
    print::aside("bench: others");
    let script = root().join("bench/others");
    let ended = Command::new(script)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|why| BenchError::program("bench/others", &why))?;
    for line in String::from_utf8_lossy(&ended.stdout).lines() {
        let other: Other =
            serde_json::from_str(line).map_err(|why| BenchError::output("bench/others", &why))?;
        report.add(&format!("  {}", other.name), other.requests_per_s, "requests/core-s", Bound::None);
    }
    Ok(())
}

/// Builds and runs a crate's bench, and reads its last line. The report judges the figures.
pub(crate) fn bench<T: DeserializeOwned>(package: &str, name: &str) -> Result<T, BenchError> {
    print::aside(format_args!("bench: {name}"));
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let ended = Command::new(cargo)
        .args(["bench", "--quiet", "--locked", "--package", package, "--bench", name])
        .current_dir(root())
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|why| BenchError::program(name, &why))?;
    let text = String::from_utf8_lossy(&ended.stdout);
    let Some(line) = text.lines().rev().find(|line| line.starts_with('{')) else {
        return Err(BenchError::output(name, &ended.status));
    };
    serde_json::from_str(line).map_err(|why| BenchError::output(name, &why))
}
