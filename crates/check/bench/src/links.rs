//! The XDP program over veth links, compared with a redirecting program, the UDP switch and a socket
//! server.

use serde::Deserialize;

use crate::error::BenchError;
use crate::print;
use crate::ratios::bench;
use crate::report::{Bound, Report};

/// The output of `crates/run/kernel/benches/xdp_links.rs`, or why it measured nothing.
#[derive(Deserialize)]
#[serde(untagged)]
enum XdpLinks {
    Skipped {
        skipped: String,
    },
    Measured {
        ratio: f64,
        target_ratio: f64,
        decisions_per_s: [f64; DECIDERS.len()],
        sent: XdpSides,
        made: XdpSides,
        loads: Vec<XdpLoad>,
    },
}

#[derive(Deserialize)]
struct XdpSides {
    rain_ns: f64,
    hop_ns: f64,
    udp_ns: f64,
    ratio_hop: f64,
    server_ns: f64,
    ratio_udp: f64,
    ratio_server: f64,
    ratio_stack: Option<f64>,
}

/// Each decider's share of a core under a load, and the tasks' delays.
#[derive(Deserialize)]
struct XdpLoad {
    load: f64,
    pairs_per_s: f64,
    shares: [f64; DECIDERS.len()],
    /// `None` if another process had the cores all the time.
    p99_us: [Option<f64>; DECIDERS.len()],
    left_out: [f64; DECIDERS.len()],
}

/// The deciders, in the bench's order.
const DECIDERS: [&str; 3] = ["a socket server", "the UDP switch", "XDP"];

pub(crate) fn xdp_links(report: &mut Report) -> Result<(), BenchError> {
    let XdpLinks::Measured { ratio, target_ratio, decisions_per_s, sent, made, loads } = run()? else {
        return Ok(());
    };
    let bound = Bound::AtLeast(target_ratio);
    report.add("packets/s over veth, XDP ÷ redirecting, sent by hosts", ratio, "×", bound);
    add_sides(report, "sent by hosts", &sent);
    add_sides(report, "made by the kernel", &made);
    add_decisions(report, decisions_per_s, &loads);
    Ok(())
}

/// Reports how many tasks a second each decider decides, with which delay and share of a core.
pub(crate) fn decisions(report: &mut Report) -> Result<(), BenchError> {
    if let XdpLinks::Measured { decisions_per_s, loads, .. } = run()? {
        add_decisions(report, decisions_per_s, &loads);
    }
    Ok(())
}

fn run() -> Result<XdpLinks, BenchError> {
    let measured = bench("sluice-kernel", "xdp_links")?;
    if let XdpLinks::Skipped { skipped } = &measured {
        print::line(format_args!("not measured, XDP over links: {skipped}"))?;
    }
    Ok(measured)
}

fn add_sides(report: &mut Report, how: &str, sides: &XdpSides) {
    let ratios = [
        (format!("  XDP ÷ redirecting, {how}"), Some(sides.ratio_hop)),
        (format!("  XDP ÷ the UDP switch, {how}"), Some(sides.ratio_udp)),
        (format!("  XDP ÷ a socket server, {how}"), Some(sides.ratio_server)),
        ("  XDP in the driver ÷ in the kernel's stack".to_owned(), sides.ratio_stack),
    ];
    for (what, ratio) in ratios {
        if let Some(ratio) = ratio {
            report.add(&what, ratio, "×", Bound::None);
        }
    }
    let all = [
        ("XDP", sides.rain_ns),
        ("redirecting", sides.hop_ns),
        ("the UDP switch", sides.udp_ns),
        ("a socket server", sides.server_ns),
    ];
    for (name, ns) in all {
        report.add(&format!("  {name} over veth, {how}"), 2e9 / ns, "packets/core-s", Bound::None);
    }
}

fn add_decisions(report: &mut Report, per_s: [f64; DECIDERS.len()], loads: &[XdpLoad]) {
    for (at, name) in DECIDERS.into_iter().enumerate() {
        report.add(&format!("decisions, {name}"), per_s[at], "a core-second", Bound::None);
        report.add("  ÷ a socket server's", per_s[at] / per_s[0], "×", Bound::None);
        for XdpLoad { load, pairs_per_s, shares, p99_us, left_out } in loads {
            let under = format!("{:.0} % of a server's most, {pairs_per_s:.0} a second", 100.0 * load);
            report.add(&format!("  share of a core, {under}"), shares[at], "of a core", Bound::None);
            if let Some(us) = p99_us[at] {
                report.add(&format!("  p99 of the way to a worker, {under}"), us, "µs", Bound::None);
            }
            if left_out[at] > 0.0 {
                let of = "    of its spells somebody else had a core in, and they do not count";
                report.add(of, left_out[at], "", Bound::None);
            }
        }
    }
}
