//! A whole service: answers each task of type 9 with its bytes in reverse. Run it with `--controller
//! ADDRESS`.
use std::process::ExitCode;

use sluice_net::{TaskType, run_service, service_fn};

fn main() -> ExitCode {
    run_service(service_fn(TaskType(9), |task, reply| {
        reply.extend(task.bytes.iter().rev());
        Ok(())
    }))
}
