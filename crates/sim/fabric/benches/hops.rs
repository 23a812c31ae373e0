//! Measures the cost of a hop in a whole simulated fabric, beside a bare loop over the standard library's
//! binary heap.
//!
//! The fabric is the fat-tree of HF²T (k = 4, 70 % load) under ECMP with all its parts: buffers, PFC,
//! marks, DCQCN, go-back-N. The loop stores and forwards the frames and answers of the same flows over the
//! same number of links, at the links' rate. It has no queue but the time at which a port is free, no
//! pauses and no rates. A hop is a frame that leaves a port. The two take turns in one run. The bench
//! prints one line of JSON.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::hint::black_box;
use std::time::Instant;

use sluice_fabric::{Fabric, FabricSettings, FlowSizes, FlowSpec, FrameSizes, LinkSpeed, Topology, Traffic};

const K: u32 = 4;
const HALF: u32 = K / 2;
const LOAD: f64 = 0.7;
const FLOWS: u64 = 3_000;
const TURNS: u32 = 7;
const SEED: u64 = 1;

fn main() {
    let topology = Topology::fat_tree(K, LinkSpeed::default()).expect("k is even");
    let case = |(name, sizes): (&str, FlowSizes)| {
        // As many frames of either distribution.
        let flows = (FLOWS as f64 * 120_000.0 / sizes.mean()) as u64;
        let traffic = Traffic { sizes, load: LOAD, flows };
        let turns: Vec<Turn> = (0..TURNS).map(|turn| Turn::of(&topology, &traffic, turn)).collect();
        let of = |number: fn(&Turn) -> f64| median(turns.iter().map(number).collect());
        format!(
            r#"{{"flows":"{name}","hops_per_s":{:.0},"bare_per_s":{:.0},"ratio":{:.3}}}"#,
            of(|turn| turn.hops / turn.seconds),
            of(|turn| turn.bare_hops / turn.bare_seconds),
            of(|turn| turn.hops / turn.seconds / (turn.bare_hops / turn.bare_seconds)),
        )
    };
    let flows = [("web search", FlowSizes::web_search()), ("Hadoop", FlowSizes::hadoop())];
    println!(r#"{{"bench":"fabric","cases":[{}]}}"#, flows.map(case).join(","));
}

struct Turn {
    hops: f64,
    seconds: f64,
    bare_hops: f64,
    bare_seconds: f64,
}

impl Turn {
    fn of(topology: &Topology, traffic: &Traffic, turn: u32) -> Self {
        let arrivals = traffic.arrivals(topology, SEED, turn).expect("there is room for it");
        let flows: Vec<FlowSpec> = arrivals.collect();
        let mut fabric =
            Fabric::new(topology, &FabricSettings::default(), SEED, turn).expect("the settings make sense");
        let began = Instant::now();
        let ended = |flow| {
            black_box(flow);
        };
        fabric.run(flows.iter().copied(), ended).expect("all flows end");
        let seconds = began.elapsed().as_secs_f64();
        let counts = fabric.counts();
        let began = Instant::now();
        let bare_hops = Bare::default().run(&flows);
        let bare_seconds = began.elapsed().as_secs_f64();
        // PFC frames are hops that only the fabric has: a pause and a resume each.
        assert_eq!(counts.hops, bare_hops + 2 * counts.pauses);
        Self { hops: counts.hops as f64, seconds, bare_hops: bare_hops as f64, bare_seconds }
    }
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// A frame on its way: its path, and how many hops of it are done.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    flow: u32,
    sequence: u32,
    bytes: u32,
    hop: u8,
    is_answer: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The next flow begins.
    Begins,
    /// A host has sent a frame.
    Sent { host: u32 },
    /// A frame arrives at the end of a link.
    Comes(Way),
}

/// The bare loop.
#[derive(Default)]
struct Bare {
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    entered: u64,
    /// When each port is free, in picoseconds.
    free: Vec<u64>,
    paths: Vec<([u32; 6], u8)>,
    /// For each host the frames that it has to send, by flow and sequence.
    sending: Vec<VecDeque<(u32, u32)>>,
    hops: u64,
}

/// The ports of the tree, one kind after the other.
const PORTS: u32 = 6 * K * HALF * HALF;

impl Bare {
    fn run(mut self, flows: &[FlowSpec]) -> u64 {
        let hosts = K * HALF * HALF;
        let sizes = FrameSizes::default();
        self.free = vec![0; PORTS as usize];
        self.sending = (0..hosts).map(|_| VecDeque::new()).collect();
        self.paths =
            flows.iter().enumerate().map(|(at, flow)| path(at as u32, flow.from.0, flow.to.0)).collect();
        let mut next = 0;
        self.enter(flows[0].at.0 * 1_000, Event::Begins);
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            match event {
                Event::Begins => {
                    let flow = &flows[next];
                    let host = flow.from.0;
                    self.sending[host as usize].push_back((next as u32, 0));
                    if self.sending[host as usize].len() == 1 {
                        self.send(now, host, flows, &sizes);
                    }
                    next += 1;
                    if let Some(flow) = flows.get(next) {
                        self.enter(flow.at.0 * 1_000, Event::Begins);
                    }
                }
                Event::Sent { host } => self.send(now, host, flows, &sizes),
                Event::Comes(way) => self.comes(now, way, &sizes),
            }
        }
        self.hops
    }

    /// A host sends the next frame of the flow that has the turn.
    fn send(&mut self, now: u64, host: u32, flows: &[FlowSpec], sizes: &FrameSizes) {
        let Some((flow, sequence)) = self.sending[host as usize].pop_front() else { return };
        let bytes = flows[flow as usize].bytes;
        let is_last = u64::from(sequence) + 1 == sizes.count(bytes);
        let way = Way {
            flow,
            sequence,
            bytes: if is_last { sizes.last(bytes) } else { sizes.full() },
            hop: 0,
            is_answer: false,
        };
        if !is_last {
            self.sending[host as usize].push_back((flow, sequence + 1));
        }
        let left = self.leave(now, way);
        if !self.sending[host as usize].is_empty() {
            self.enter(left, Event::Sent { host });
        }
    }

    fn comes(&mut self, now: u64, way: Way, sizes: &FrameSizes) {
        let hops = self.paths[way.flow as usize].1;
        let hop = way.hop + 1;
        if hop < hops {
            self.leave(now, Way { hop, ..way });
        } else if !way.is_answer {
            self.leave(now, Way { hop: 0, is_answer: true, bytes: sizes.answer, ..way });
        }
    }

    /// A frame leaves its next port as soon as the port is free. Returns when it has left, in picoseconds.
    fn leave(&mut self, now: u64, way: Way) -> u64 {
        let (path, hops) = &self.paths[way.flow as usize];
        let port = if way.is_answer {
            // The ports at the other ends of the links, from the last link to the first.
            path[usize::from(hops - 1 - way.hop)] + PORTS / 2
        } else {
            path[usize::from(way.hop)]
        };
        let free = &mut self.free[(port % PORTS) as usize];
        *free = now.max(*free) + u64::from(way.bytes) * 80;
        let left = *free;
        self.hops += 1;
        self.enter(left + 1_000_000, Event::Comes(way));
        left
    }

    fn enter(&mut self, at: u64, event: Event) {
        self.entered += 1;
        self.events.push(Reverse((at, self.entered, event)));
    }
}

/// The ports of a flow's path: up as far as needed, and down. Links are numbered: hosts' links first, then
/// those between ToR and aggregation, then those to the core. Downwards each link has another port.
fn path(flow: u32, from: u32, to: u32) -> ([u32; 6], u8) {
    let (links, square) = (K * HALF * HALF, HALF * HALF);
    let down = PORTS / 2;
    let (aggregation, core) = (flow % HALF, flow / HALF % HALF);
    let to_aggregation =
        |host: u32| links + (host / square) * square + (host / HALF % HALF) * HALF + aggregation;
    let to_core = |host: u32| 2 * links + (host / square) * square + aggregation * HALF + core;
    if from / HALF == to / HALF {
        ([from, down + to, 0, 0, 0, 0], 2)
    } else if from / square == to / square {
        ([from, to_aggregation(from), down + to_aggregation(to), down + to, 0, 0], 4)
    } else {
        let up = [from, to_aggregation(from), to_core(from)];
        ([up[0], up[1], up[2], down + to_core(to), down + to_aggregation(to), down + to], 6)
    }
}
