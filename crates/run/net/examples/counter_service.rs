//! A whole service that keeps state: it counts how often each name was sent, in its memory, and answers with
//! the count. It serves one type or more from 30 on: `counter_service --controller ADDRESS --types COUNT`.
use std::{collections::HashMap, process::ExitCode};

use clap::Args;
use sluice_net::{NetError, Service, ServiceError, Task, TaskType, run_service_with};

#[derive(Args)]
struct CounterFlags {
    /// How many types it serves, from 30 on.
    #[arg(long, default_value_t = 1)]
    types: u16,
}

struct Counter {
    types: Vec<TaskType>,
    counts: HashMap<Vec<u8>, u64>,
}

impl Service for Counter {
    fn types(&self) -> Vec<TaskType> {
        self.types.clone()
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        let count = self.counts.entry(task.bytes.to_vec()).or_default();
        *count += 1;
        reply.extend(count.to_string().as_bytes());
        Ok(())
    }
}

fn main() -> ExitCode {
    run_service_with(|flags: &CounterFlags| {
        let types = (0..flags.types).map(|shard| TaskType(30 + shard)).collect();
        Ok::<_, NetError>(Counter { types, counts: HashMap::new() })
    })
}
