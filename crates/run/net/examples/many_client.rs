//! A client that has many tasks under way and one queue where all end: what the bench of other languages
//! measures them against. Run it with the controller's address, how many tasks, how many at once.
use std::time::{Duration, Instant};
use std::{env, error::Error, process::ExitCode};

use sluice_net::client::{CompletionQueue, Outcome};
use sluice_net::{Client, ClientOptions, TaskType, program};

const DEADLINE: Duration = Duration::from_mins(1);
const TASK: &[u8] = b"stressed";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [address, count, at_once] = &args[..] else {
        program::fail("usage: many_client ADDRESS TASKS AT_ONCE");
        return ExitCode::from(2);
    };
    match (count.parse(), at_once.parse()) {
        (Ok(count), Ok(at_once)) => run(address, count, at_once).map_or_else(program::fail, program::print),
        _ => program::fail("TASKS and AT_ONCE are numbers"),
    }
}

/// Returns seconds and replies as JSON.
fn run(address: &str, count: u64, at_once: u64) -> Result<String, Box<dyn Error>> {
    let client = Client::connect(&ClientOptions::new(address)?)?;
    let queue = CompletionQueue::new();
    let (mut sent, mut ended, mut replies) = (0, 0, 0);
    let mut taken = Vec::new();
    let began = Instant::now();
    while ended < count {
        while sent < count.min(ended + at_once) {
            client.submit_to(&queue, sent, TaskType(9), TASK, DEADLINE)?;
            sent += 1;
        }
        queue.wait(&mut taken, at_once as usize, None);
        for completed in taken.drain(..) {
            ended += 1;
            if let Outcome::Reply(reply) = completed.ended.outcome {
                replies += u64::from(!reply.failed);
                queue.recycle(reply.bytes);
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    client.close()?;
    Ok(format!("{{\"seconds\": {seconds}, \"replies\": {replies}}}"))
}
