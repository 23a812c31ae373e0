//! The conformance service in Rust; README.md beside the cases says what each type does.

use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use sluice_net::{Service, ServiceError, Task, TaskType, run_service};

struct CasesService;

impl Service for CasesService {
    fn types(&self) -> Vec<TaskType> {
        (9..=14).map(TaskType).collect()
    }

    fn serve(&mut self, task: Task<'_>, reply: &mut Vec<u8>) -> Result<(), ServiceError> {
        let text = || String::from_utf8_lossy(task.bytes);
        let number = || text().parse::<u64>().map_err(|why| ServiceError::new(format!("{}: {why}", text())));
        match task.task_type.0 {
            9 => reply.extend(task.bytes.iter().rev()),
            10 => return Err(ServiceError::new(format!("told to fail: {}", text()))),
            11 => {
                thread::sleep(Duration::from_millis(number()?));
                reply.extend(b"slept");
            }
            12 => reply.resize(number()? as usize, b'x'),
            13 => panic!("told to panic"),
            _ => reply.extend(std::process::id().to_string().bytes()),
        }
        Ok(())
    }
}

fn main() -> ExitCode {
    run_service(CasesService)
}
