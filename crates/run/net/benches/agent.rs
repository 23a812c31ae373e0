//! The cost of a server's agent: its processor time divided by the time that it supervises, with 32 workers
//! that are never idle and are sampled every 10 or 40 µs.
//!
//! Workers write from another thread, as they would from another core, an eighth of an interval at a time.
//! Then the agent reads, and judges at the interval's end. Service times are exponential. Prints one line
//! of JSON.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use sluice_host::agent::{AgentSettings, Sample};
use sluice_net::agent::{Line, LineRegistration, Lines, ServerAgent};
use sluice_net::clock::thread_cpu;
use sluice_wire::{Epoch, Generation, Nanos, SliceId, WorkerId};

const WORKERS: u16 = 32;
const LOOKS: u64 = 8;
const INTERVALS: u64 = 101;
/// Mean service times and sampling intervals, in µs.
const CASES_US: [(u64, u64); 3] = [(10, 10), (10, 40), (1, 40)];

fn main() {
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
    let (mut tasks, mut reading, mut judging, mut spent) = (0, 0, 0, Vec::new());
    for look in 1..=INTERVALS * LOOKS {
        let now = look_every.times(look);
        write.send(now).expect("they write");
        let new = written.recv().expect("they write");
        let begun = thread_cpu();
        desk.read_samples(now);
        let read = thread_cpu();
        let closed = desk.close(now);
        let judged = thread_cpu();
        tasks += new;
        reading += read.since(begun).0;
        if let Some(interval) = closed {
            judging += judged.since(read).0;
            assert_eq!(interval.unseen, 0, "nobody overtakes it");
            spent.push(reading + judging);
        }
    }
    let intervals: Vec<u64> = spent.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let share = median(intervals) as f64 / settings.interval.0 as f64;
    let (per_task, per_interval) = (reading as f64 / tasks as f64, judging as f64 / INTERVALS as f64);
    format!(
        r#"{{"service_us":{service_us},"sample_us":{sample_us},"share":{share:.4},"ns_per_task":{per_task:.2},"ns_per_interval":{per_interval:.0}}}"#
    )
}

/// Starts threads that write the tasks that all workers end until a given time, and return how many they
/// wrote.
fn writers(file: &Path, service_us: u64) -> (Sender<Nanos>, Receiver<u64>) {
    let (ask, asked) = channel::<Nanos>();
    let (tell, told) = channel();
    let mut lines: Vec<(Line, Nanos)> = (0..WORKERS).map(|worker| (line(file, worker), Nanos(0))).collect();
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    thread::spawn(move || {
        while let Ok(until) = asked.recv() {
            let mut tasks = 0;
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
                    line.ended(
                        *at,
                        &Sample { switch_wait, worker_wait, service, occupancy: (dice % 50) as u32 },
                    );
                    tasks += 1;
                }
            }
            if tell.send(tasks).is_err() {
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

fn median(mut of: Vec<u64>) -> u64 {
    of.sort_unstable();
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
