//! The cost of a server's agent: its processor time divided by the time that it supervises, with 32 workers
//! that are never idle and are sampled every 10 or 40 µs.
//!
//! Workers write from another core, an eighth of an interval at a time. On one core the agent would find
//! their lines in its own cache: both threads are pinned.
//! Then the agent reads, and judges at the interval's end. Service times are exponential. The baseline adds
//! up the numbers of the same tasks, which the same thread wrote into plain memory. Prints one line of
//! JSON.

use std::hint::black_box;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use sluice_host::agent::{AgentSettings, Sample};
use sluice_net::agent::{Line, LineRegistration, Lines, ServerAgent};
use sluice_net::clock::thread_cpu;
use sluice_net::pin::pin_thread;
use sluice_wire::{Epoch, Generation, Nanos, SliceId, WorkerId};

const WORKERS: u16 = 32;
const AGENT_CORE: usize = 0;
const WORKERS_CORE: usize = 1;
const LOOKS: u64 = 8;
const INTERVALS: u64 = 101;
/// Mean service times and sampling intervals, in µs.
const CASES_US: [(u64, u64); 3] = [(10, 10), (10, 40), (1, 40)];

fn main() {
    pin_thread(AGENT_CORE).expect("two cores");
    let cases: Vec<String> = CASES_US.into_iter().map(case).collect();
    println!(r#"{{"bench":"agent","cases":[{}]}}"#, cases.join(","));
}

fn case((service_us, sample_us): (u64, u64)) -> String {
    let folder = Folder::new();
    let file = folder.0.join("agent");
    let lines = Lines::make(&file, WORKERS.into()).expect("there is room");
    let settings = AgentSettings { sample_every: Nanos::from_micros(sample_us), ..AgentSettings::default() };
    let mut desk = ServerAgent::new(Nanos(0), settings, &lines).expect("sound settings");
    let (write, written) = writers(&file, service_us);
    let look_every = Nanos(settings.interval.0 / LOOKS);
    let (mut tasks, mut reading, mut judging, mut adding, mut spent) = (0, 0, 0, 0, Vec::new());
    let (mut sums, mut plain) = (Numbers::default(), Vec::new());
    for look in 1..=INTERVALS * LOOKS {
        let now = look_every.times(look);
        write.send((now, plain)).expect("they write");
        plain = written.recv().expect("they write");
        let begun = thread_cpu();
        desk.read_samples(now);
        let read = thread_cpu();
        let closed = desk.close(now);
        let judged = thread_cpu();
        add_up(&mut sums, &plain);
        let added = thread_cpu();
        tasks += plain.len();
        adding += added.since(judged).0;
        reading += read.since(begun).0;
        if let Some(interval) = closed {
            judging += judged.since(read).0;
            assert_eq!(interval.unseen, 0, "nobody overtakes it");
            spent.push((reading + judging, adding));
        }
    }
    black_box(sums);
    let intervals = || spent.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1));
    let share = median(intervals().map(|(agent, _)| agent as f64)) / settings.interval.0 as f64;
    let ratio = median(intervals().map(|(agent, bare)| agent as f64 / bare as f64));
    let bare_per_task = adding as f64 / tasks as f64;
    let (per_task, per_interval) = (reading as f64 / tasks as f64, judging as f64 / INTERVALS as f64);
    format!(
        r#"{{"service_us":{service_us},"sample_us":{sample_us},"share":{share:.4},"ratio":{ratio:.3},"bare_ns_per_task":{bare_per_task:.2},"ns_per_task":{per_task:.2},"ns_per_interval":{per_interval:.0}}}"#
    )
}

/// What is known of a task: when it ended, its waits, its service time, and the worker's occupancy.
type Numbers = [u64; 5];

/// Until when tasks are written, and the plain memory for them.
type Asked = (Nanos, Vec<Numbers>);

/// The baseline: what must be read of each task, and the least that can be done with it.
fn add_up(sums: &mut Numbers, tasks: &[Numbers]) {
    for task in tasks {
        for (sum, number) in sums.iter_mut().zip(task) {
            *sum = sum.wrapping_add(*number);
        }
    }
}

/// Starts a thread that writes the tasks that all workers end until a given time: into their lines, and
/// into plain memory that it gets and sends back.
fn writers(file: &Path, service_us: u64) -> (Sender<Asked>, Receiver<Vec<Numbers>>) {
    let (ask, asked) = channel::<Asked>();
    let (tell, told) = channel();
    let mut lines: Vec<(Line, Nanos)> = (0..WORKERS).map(|worker| (line(file, worker), Nanos(0))).collect();
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    thread::spawn(move || {
        pin_thread(WORKERS_CORE).expect("two cores");
        while let Ok((until, mut plain)) = asked.recv() {
            plain.clear();
            for (line, at) in &mut lines {
                loop {
                    dice = dice.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                    let uniform = ((dice >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
                    let service = Nanos((-uniform.ln() * service_us as f64 * 1e3) as u64 + 100);
                    if *at + service > until {
                        break;
                    }
                    *at = *at + service;
                    let (switch_wait, worker_wait) = (Nanos(dice % 30_000), Nanos(dice % 9_000));
                    let occupancy = (dice % 50) as u32;
                    line.ended(*at, &Sample { switch_wait, worker_wait, service, occupancy });
                    plain.push([at.0, switch_wait.0, worker_wait.0, service.0, occupancy.into()]);
                }
            }
            if tell.send(plain).is_err() {
                return;
            }
        }
    });
    (ask, told)
}

fn line(file: &Path, worker: u16) -> Line {
    let mut line = Line::claim(file, &format!("w{worker}"), Nanos(0)).expect("there is room");
    let registration = LineRegistration {
        worker: WorkerId(worker),
        slice: SliceId(0),
        epoch: Epoch(1),
        generation: Generation(u32::from(worker) + 1),
        depth: 2,
    };
    line.set_registration(Nanos(0), registration, Nanos(u64::MAX));
    line
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut of: Vec<f64> = of.collect();
    of.sort_unstable_by(f64::total_cmp);
    of[of.len() / 2]
}

/// A folder of its own, in memory if possible.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new() -> Self {
        let shm = Path::new("/dev/shm");
        let root = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        let folder = root.join(format!("sluice-bench-agent-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is room");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}
