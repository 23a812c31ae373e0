//! What a task costs a client by the C functions, as a multiple of what it costs by the Rust library: one at
//! a time, and 16 under way at a queue.
//!
//! Both clients submit to one rack in this process, in short turns, one after the other: what the machine
//! does beside falls on both. Each ratio is the median of those of all pairs of turns. Prints one line of
//! JSON.

use std::ffi::CString;
use std::net::SocketAddr;
use std::ptr::null_mut;
use std::thread;
use std::time::{Duration, Instant};

use sluice::{
    SLUICE_ABI, SLUICE_FOREVER, SluiceClient, SluiceKind, SluiceLabels, SluiceOptions, SluiceOutcome,
    SluiceQueue, SluiceSpec, SluiceStatus, sluice_client_connect, sluice_options_new_of, sluice_options_set,
    sluice_outcome_free, sluice_queue_new_of, sluice_queue_submit, sluice_queue_wait, sluice_submit,
};
use sluice_control::{Plan, SlicePlan};
use sluice_net::client::{CompletionQueue, Outcome};
use sluice_net::{Client, ClientOptions, NetError, TaskType, Worker, WorkerOptions, service_fn};
use sluice_switch::Config;
use sluice_switch::registry::Choice;
use sluice_switchd::controller::{ControllerOptions, SwitchLink, start_controller};
use sluice_switchd::rpc::{Guard, LocalSwitch};
use sluice_switchd::switch::{SwitchConfig, SwitchDriver};
use sluice_wire::Epoch;

const ECHO: TaskType = TaskType(9);
static SPEC: SluiceSpec = SluiceSpec {
    r#type: 9,
    urgency_is: 0,
    reserved: 0,
    urgency: 0,
    deadline_ns: 60_000_000_000,
    budget_ns: 0,
    labels: SluiceLabels { id: 0 },
};
const DEADLINE: Duration = Duration::from_mins(1);
const BYTES: [u8; 64] = [7; 64];
const TASKS: u64 = 400;
const UNDER_WAY: u64 = 16;
const TURNS: usize = 101;

fn main() {
    let controller = start_rack();
    let rust = Client::connect(&ClientOptions::new(&controller).expect("an address")).expect("it joins");
    let c = connect(&controller);
    let (mut queue, rust_queue) = (SluiceQueue::default(), CompletionQueue::new());
    // SAFETY: the arguments are sound.
    well(unsafe { sluice_queue_new_of(SLUICE_ABI, &raw mut queue) });
    let alone = compare(|| rust_alone(&rust), || c_alone(c));
    let many = compare(|| rust_many(&rust, &rust_queue), || c_many(c, queue));
    println!(r#"{{"bench":"client","alone":{},"many":{}}}"#, alone.json(), many.json());
    // The rack's threads end with the process.
    std::process::exit(0);
}

/// Times of a task, and their ratio.
struct Compared {
    rust_ns: f64,
    c_ns: f64,
    ratio: f64,
}

impl Compared {
    fn json(&self) -> String {
        let Self { rust_ns, c_ns, ratio } = self;
        format!(r#"{{"rust_ns":{rust_ns:.0},"c_ns":{c_ns:.0},"ratio":{ratio:.4}}}"#)
    }
}

fn compare(rust: impl Fn(), c: impl Fn()) -> Compared {
    let time = |run: &dyn Fn()| {
        let begun = Instant::now();
        run();
        begun.elapsed().as_nanos() as f64 / TASKS as f64
    };
    let turn = |number: usize| {
        // Neither is always first.
        if number.is_multiple_of(2) {
            let rust_ns = time(&rust);
            (rust_ns, time(&c))
        } else {
            let c_ns = time(&c);
            (time(&rust), c_ns)
        }
    };
    turn(0);
    let turns: Vec<(f64, f64)> = (0..TURNS).map(turn).collect();
    Compared {
        rust_ns: median(turns.iter().map(|(rust, _)| *rust)),
        c_ns: median(turns.iter().map(|(_, c)| *c)),
        ratio: median(turns.iter().map(|(rust, c)| c / rust)),
    }
}

fn median(of: impl Iterator<Item = f64>) -> f64 {
    let mut all: Vec<f64> = of.collect();
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

fn rust_alone(client: &Client) {
    for _ in 0..TASKS {
        let ended = client.submit(ECHO, &BYTES, DEADLINE).expect("it is open").wait();
        assert_eq!(ended.outcome.done().map(<[u8]>::len), Some(BYTES.len()));
    }
}

fn rust_many(client: &Client, queue: &CompletionQueue) {
    let (mut sent, mut done, mut ended) = (0, 0, Vec::new());
    while done < TASKS {
        while sent < TASKS && sent - done < UNDER_WAY {
            client.submit_to(queue, sent, ECHO, &BYTES, DEADLINE).expect("it is open");
            sent += 1;
        }
        done += queue.wait(&mut ended, UNDER_WAY as usize, None) as u64;
        for completed in ended.drain(..) {
            let Outcome::Reply(reply) = completed.ended.outcome else { panic!("no reply") };
            assert_eq!(reply.bytes.len(), BYTES.len());
            queue.recycle(reply.bytes);
        }
    }
}

fn well(status: SluiceStatus) {
    assert_eq!(status, SluiceStatus::Ok);
}

fn connect(controller: &str) -> SluiceClient {
    let (mut options, mut client) = (SluiceOptions::default(), SluiceClient::default());
    let controller = CString::new(controller).expect("an address");
    // SAFETY: the arguments are sound.
    unsafe {
        well(sluice_options_new_of(SLUICE_ABI, &raw mut options));
        well(sluice_options_set(options, c"controller".as_ptr(), controller.as_ptr()));
        well(sluice_client_connect(options, &raw mut client));
    }
    client
}

/// An outcome for the library to fill.
const fn empty() -> SluiceOutcome {
    // SAFETY: all zeros are an outcome.
    unsafe { std::mem::zeroed() }
}

/// Looks at a reply as the Rust client does, and gives it back.
fn look(outcome: &mut SluiceOutcome) {
    assert_eq!((outcome.kind, outcome.length), (SluiceKind::Reply as u32, BYTES.len()));
    // SAFETY: the arguments are sound.
    well(unsafe { sluice_outcome_free(outcome) });
}

fn c_alone(client: SluiceClient) {
    let mut outcome = empty();
    for _ in 0..TASKS {
        let (bytes, length) = (BYTES.as_ptr().cast(), BYTES.len());
        // SAFETY: the arguments are sound.
        well(unsafe {
            sluice_submit(client, &raw const SPEC, bytes, length, null_mut(), 0, &raw mut outcome)
        });
        look(&mut outcome);
    }
}

fn c_many(client: SluiceClient, queue: SluiceQueue) {
    let mut outcomes = [empty(); UNDER_WAY as usize];
    let (mut sent, mut done, mut count) = (0, 0, 0);
    while done < TASKS {
        while sent < TASKS && sent - done < UNDER_WAY {
            let (bytes, length) = (BYTES.as_ptr().cast(), BYTES.len());
            // SAFETY: the arguments are sound.
            well(unsafe { sluice_queue_submit(client, queue, sent, &raw const SPEC, bytes, length) });
            sent += 1;
        }
        let (at, most) = (outcomes.as_mut_ptr(), outcomes.len());
        // SAFETY: the arguments are sound.
        well(unsafe { sluice_queue_wait(queue, at, most, SLUICE_FOREVER, &raw mut count) });
        outcomes[..count].iter_mut().for_each(look);
        done += count as u64;
    }
}

/// A switch, its controller and a worker that replies what it gets. Returns the controller's address.
fn start_rack() -> String {
    let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let program = Choice::default();
    let size = program.traits().full_size(Epoch(1));
    let driver =
        SwitchDriver::new(&SwitchConfig { at: anywhere, program, ..SwitchConfig::new(Config { ..size }) });
    let driver = driver.expect("the loopback has free ports");
    let switch = driver.handle();
    driver.spawn::<NetError>().expect("the system has threads");
    let at = switch.local().into();
    let slice =
        SlicePlan { name: "echo".to_owned(), types: vec![ECHO], limit: Some(1_000), ..SlicePlan::default() };
    let controller = start_controller(ControllerOptions {
        at: anywhere,
        guard: Guard::Loopback,
        plan: Plan::new(at, vec![slice]),
        seed: [7; 32],
        switch: SwitchLink::Here(LocalSwitch::new(switch, at)),
        standby: false,
        spine: 0,
    });
    let controller = controller.expect("the port is free");
    let address = controller.local().to_string();
    std::mem::forget(controller);
    let echo = service_fn(ECHO, |task, reply| {
        reply.extend(task.bytes);
        Ok(())
    });
    let worker = Worker::new(&WorkerOptions::new(&address).expect("an address"), echo).expect("a free port");
    thread::spawn(|| worker.run());
    address
}
