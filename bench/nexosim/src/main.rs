//! The model of `crates/sim/sim/benches/central.rs` on nexosim: one queue, 64 workers, Exp(10 µs), load 0.8,
//! single-threaded.
//!
//! It draws the same tasks and fills the same histogram. A task costs two events, one that it comes and one
//! that it ends. Prints requests per second of processor time and the 99th percentile, as one line of JSON.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nexosim::model::{BuildContext, Context, Model, ProtoModel, schedulable};
use nexosim::simulation::{Mailbox, SimInit, SimulationError};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use sluice_stats::Distribution;
use sluice_workload::{Request, Requests, Workload};

const WORKERS: u32 = 64;
const LOAD: f64 = 0.8;
const MEAN_NS: f64 = 10_000.0;
const SEED: u64 = 1;
const TASKS: u64 = 1_000_000;

fn main() -> Result<(), SimulationError> {
    let rate_per_s = LOAD * f64::from(WORKERS) * 1e9 / MEAN_NS;
    let told = Arc::new(Mutex::new(Distribution::new()));
    let mailbox = Mailbox::new();
    let proto = ProtoRack { rate_per_s, told: Arc::clone(&told) };
    let init = SimInit::with_num_threads(1).add_model(proto, mailbox, "rack");
    let mut simulation = init.init(MonotonicTime::EPOCH)?;
    let begun_s = processor_s();
    simulation.step_until(Duration::from_secs_f64(TASKS as f64 / rate_per_s))?;
    let spent_s = processor_s() - begun_s;
    let latencies = told.lock().expect("no thread has panicked with it");
    println!(
        r#"{{"name":"nexosim","requests_per_s":{:.0},"p99_ns":{}}}"#,
        latencies.count() as f64 / spent_s,
        latencies.quantile(0.99),
    );
    Ok(())
}

/// How long this thread has had a processor.
fn processor_s() -> f64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    let ns: f64 = told.split(' ').next().and_then(|ns| ns.parse().ok()).expect("the first number is one");
    ns / 1e9
}

/// One queue in front of all workers.
#[derive(Serialize, Deserialize)]
struct Rack {
    idle: u32,
    /// When each waiting task came, and how long it takes, in nanoseconds.
    waiting: VecDeque<(u64, u64)>,
}

/// What is no part of the model's state: the tasks to come, and where latencies go.
struct Surroundings {
    requests: Requests,
    next: Option<Request>,
    told: Arc<Mutex<Distribution>>,
}

#[Model(type Env = Surroundings)]
impl Rack {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>, env: &mut Surroundings) {
        self.expect_next(cx, env);
    }

    #[nexosim(schedulable)]
    async fn arrives(&mut self, service: u64, cx: &Context<Self>, env: &mut Surroundings) {
        let now = nanos(cx);
        if self.idle > 0 {
            self.idle -= 1;
            start(now, service, cx);
        } else {
            self.waiting.push_back((now, service));
        }
        self.expect_next(cx, env);
    }

    #[nexosim(schedulable)]
    async fn ends(&mut self, came: u64, cx: &Context<Self>, env: &mut Surroundings) {
        env.told.lock().expect("no thread has panicked with it").record(nanos(cx) - came);
        match self.waiting.pop_front() {
            Some((came, service)) => start(came, service, cx),
            None => self.idle += 1,
        }
    }

    fn expect_next(&mut self, cx: &Context<Self>, env: &mut Surroundings) {
        let Some(request) = env.next.take() else { return };
        env.next = env.requests.next();
        // Two tasks in one nanosecond would be none apart, which nexosim refuses.
        let wait = request.at.0.saturating_sub(nanos(cx)).max(1);
        cx.schedule_event(Duration::from_nanos(wait), schedulable!(Self::arrives), request.service.0)
            .expect("it lies ahead");
    }
}

fn start(came: u64, service: u64, cx: &Context<Rack>) {
    cx.schedule_event(Duration::from_nanos(service), schedulable!(Rack::ends), came).expect("it lies ahead");
}

fn nanos(cx: &Context<Rack>) -> u64 {
    cx.time().duration_since(MonotonicTime::EPOCH).as_nanos() as u64
}

struct ProtoRack {
    rate_per_s: f64,
    told: Arc<Mutex<Distribution>>,
}

impl ProtoModel for ProtoRack {
    type Model = Rack;

    fn build(self, _: &mut BuildContext<Self>) -> (Rack, <Rack as Model>::Env) {
        let workload = Workload::parse("exp:10us").expect("it is right");
        let mut requests = Requests::new(&workload, self.rate_per_s, SEED, 0);
        let next = requests.next();
        let rack = Rack { idle: WORKERS, waiting: VecDeque::new() };
        (rack, Surroundings { requests, next, told: self.told })
    }
}
