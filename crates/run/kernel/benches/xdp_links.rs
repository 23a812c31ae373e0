//! Rain in XDP over veth links, beside a program that only redirects between the same links, and beside the
//! UDP switch and a socket server.
//!
//! Each stands in a rack of its own: a worker's host and a client's, whose frames the kernel takes
//! (`targets/ebpf/load.bpf.c`). A pair is a TOKEN and a SUBMIT, and what comes out for them; either comes
//! first as often. All of a rack is on one core. Its clock is the CPU time of this thread, in which the
//! kernel does the links' work too, and of that core's ksoftirqd. Blocks of all alternate; the medians count.
//! First the kernel makes the frames, so that little but the switch is measured; then hosts send them from
//! sockets, as they do in a rack, which is what the bound is on.
//!
//! Then the CPU that each uses under loads of 10, 50 and 90 % of what the socket server can take: of Rain the
//! time above that of frames that are dropped at its door; of the UDP switch and the server, which spin on a
//! core of their own, that thread's. Then how long tasks are on their way under the same loads, from when
//! they were to leave until they come out of the worker's link, where its token is there already.
//!
//! **A decision** is a pair above what it takes to drop both packets at the door.
//!
//! It takes root; without, it prints why it measured nothing.

#[path = "xdp_links/delays.rs"]
mod delays;
#[path = "../tests/object/mod.rs"]
mod object;
#[path = "xdp_links/sides.rs"]
mod sides;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use sluice_kernel::spaces::mounts_of_its_own;
use sluice_kernel::xdp::embedded;
use sluice_net::pin::pin_thread;

use sides::{Kind, Side};

const BLOCKS: usize = 9;
/// Pairs of a block; fewer of the UDP switch, which takes longer.
const PAIRS: u32 = 65_536;
const PAIRS_UDP: u32 = 16_384;
/// Rain must take this share of the packets that the redirecting program takes.
const TARGET: f64 = 0.8;
/// Of what the socket server can take.
const LOADS: [f64; 3] = [0.1, 0.5, 0.9];
const LASTS: Duration = Duration::from_millis(500);
const LOAD_ROUNDS: usize = 5;
/// Who decides, from the slowest on.
const DECIDERS: [Kind; 3] = [Kind::Server, Kind::Udp, Kind::Rain];

fn main() -> Result<ExitCode, Box<dyn Error>> {
    if let Some(why) = lacks() {
        eprintln!("xdp_links: nothing measured: {why}");
        println!(r#"{{"bench":"xdp_links","skipped":"{why}"}}"#);
        return Ok(ExitCode::SUCCESS);
    }
    mounts_of_its_own()?;
    pin_thread(0)?;
    let mut sides = Kind::ALL.map(Side::new).into_iter().collect::<Result<Vec<_>, _>>()?;
    // The kernel gives frames that it made itself only to links whose drivers carry a program.
    let native = &mut sides[..=Kind::Door as usize];
    let made = Measured::of(native, |side| side.block(if side.is_process() { PAIRS_UDP } else { PAIRS }))?;
    let sent = Measured::of(&mut sides, |side| side.sockets(PAIRS_UDP))?;
    made.tell("made by the kernel", &sides);
    sent.tell("sent from sockets", &sides);
    let decisions = made.decisions_per_s();
    let loads = LOADS.map(|load| loaded(&mut sides, load, load * decisions[0]));
    let loads = loads.into_iter().collect::<Result<Vec<_>, _>>()?.join(",");
    let ratio = sent.ratio(Kind::Hop);
    let [sent, made] = [sent, made].map(|measured| measured.json());
    let held = format!(r#""ratio":{ratio:.4},"target_ratio":{TARGET},"decisions_per_s":{decisions:.0?}"#);
    println!(r#"{{"bench":"xdp_links",{held},"sent":{sent},"made":{made},"loads":[{loads}]}}"#);
    Ok(if ratio >= TARGET { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a pair takes on each side: all blocks, and their medians.
struct Measured {
    blocks: Vec<Vec<f64>>,
    ns: Vec<f64>,
}

impl Measured {
    fn of(
        sides: &mut [Side],
        block: impl Fn(&mut Side) -> Result<f64, Box<dyn Error>>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut blocks = vec![Vec::new(); sides.len()];
        for round in 0..=BLOCKS {
            for (side, blocks) in sides.iter_mut().zip(&mut blocks) {
                let ns = block(side)?;
                // The first warms up.
                if round > 0 {
                    blocks.push(ns);
                }
            }
        }
        let ns = blocks.iter().cloned().map(median).collect();
        Ok(Self { blocks, ns })
    }

    /// The packets that Rain takes, over those that another takes in the same time.
    fn ratio(&self, to: Kind) -> f64 {
        let [rain, other] = [Kind::Rain, to].map(|kind| &self.blocks[kind as usize]);
        median(rain.iter().zip(other).map(|(rain, other)| other / rain).collect())
    }

    fn tell(&self, how: &str, sides: &[Side]) {
        eprintln!("frames {how}:");
        for (side, ns) in sides.iter().zip(&self.ns) {
            eprintln!("  {:9} {ns:6.0} ns a pair, {:9.0} packets/core-s", side.name(), 2e9 / ns);
        }
        let [hop, half, udp, server] =
            [Kind::Hop, Kind::Half, Kind::Udp, Kind::Server].map(|kind| self.ratio(kind));
        eprintln!("  Rain over redirecting all {hop:.2}, tasks alone {half:.2}");
        eprintln!("  Rain over the UDP switch {udp:.1}, a socket server {server:.1}");
        if self.has(Kind::Stack) {
            eprintln!("  Rain in the driver over Rain in the stack {:.2}", self.ratio(Kind::Stack));
        }
    }

    /// Decisions in a second of a core.
    fn decisions_per_s(&self) -> [f64; DECIDERS.len()] {
        DECIDERS.map(|kind| 1e9 / (self.ns[kind as usize] - self.ns[Kind::Door as usize]))
    }

    fn has(&self, kind: Kind) -> bool {
        self.blocks.len() > kind as usize
    }

    fn json(&self) -> String {
        let [hop, half, udp, server] =
            [Kind::Hop, Kind::Half, Kind::Udp, Kind::Server].map(|kind| self.ratio(kind));
        let [rain_ns, hop_ns, half_ns, udp_ns, server_ns, door_ns] = [0, 1, 2, 3, 4, 5].map(|at| self.ns[at]);
        let stack = if self.has(Kind::Stack) {
            let (ns, ratio) = (self.ns[Kind::Stack as usize], self.ratio(Kind::Stack));
            format!(r#""stack_ns":{ns:.1},"ratio_stack":{ratio:.4},"#)
        } else {
            String::new()
        };
        let server = format!(r#""server_ns":{server_ns:.1},"ratio_server":{server:.4},"#);
        format!(
            r#"{{{stack}{server}"rain_ns":{rain_ns:.1},"hop_ns":{hop_ns:.1},"half_ns":{half_ns:.1},"udp_ns":{udp_ns:.1},"door_ns":{door_ns:.1},"ratio_hop":{hop:.4},"ratio_half":{half:.4},"ratio_udp":{udp:.4}}}"#
        )
    }
}

fn lacks() -> Option<String> {
    if !object::is_root() {
        return Some("network namespaces and XDP take root".to_owned());
    }
    embedded().err().map(|why| why.to_string())
}

/// One load: what the deciders use of a core, and how long tasks are on their way, as a line of JSON.
fn loaded(sides: &mut [Side], load: f64, pairs_per_s: f64) -> Result<String, Box<dyn Error>> {
    let shares = shares(sides, pairs_per_s)?;
    let mut p99_us = [0.0; DECIDERS.len()];
    let mut left_out = p99_us;
    for (at, kind) in DECIDERS.into_iter().enumerate() {
        let side = &mut sides[kind as usize];
        let delays = side.delays(pairs_per_s)?;
        (p99_us[at], left_out[at]) = (delays.quantile_us(0.99), delays.left_out());
        eprintln!(
            "{:3.0} % load, {pairs_per_s:8.0} pairs/s: {:8} {:5.1} % of a core, p50 {:6.2} µs, p99 {:7.2} µs \
             ({} tasks, {:2.0} % of spells left out)",
            100.0 * load,
            side.name(),
            100.0 * shares[at],
            delays.quantile_us(0.5),
            p99_us[at],
            delays.tasks(),
            100.0 * left_out[at]
        );
    }
    // Where no spell was left there is no percentile, and JSON has no such number.
    let p99_us = p99_us.map(|us| if us.is_nan() { "null".to_owned() } else { format!("{us:.2}") }).join(",");
    let used = format!(r#""shares":{shares:.4?},"left_out":{left_out:.3?}"#);
    Ok(format!(r#"{{"load":{load},"pairs_per_s":{pairs_per_s:.0},{used},"p99_us":[{p99_us}]}}"#))
}

/// What each decider uses of a core.
fn shares(sides: &mut [Side], pairs_per_s: f64) -> Result<[f64; DECIDERS.len()], Box<dyn Error>> {
    let mut shares = DECIDERS.map(|_| Vec::new());
    for _ in 0..LOAD_ROUNDS {
        let door = sides[Kind::Door as usize].paced(pairs_per_s, LASTS)?;
        for (shares, kind) in shares.iter_mut().zip(DECIDERS) {
            let used = sides[kind as usize].paced(pairs_per_s, LASTS)?;
            shares.push(used.thread + used.kernel - door.kernel);
        }
    }
    Ok(shares.map(median))
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}
