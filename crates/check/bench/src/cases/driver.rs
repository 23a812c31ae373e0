//! The whole UDP switch: sockets, parsing, the program, encoding. A task is two packets in and one out, in
//! full batches. Work of the kernel inside system calls is not counted.

use crate::error::BenchError;
use crate::hosts::{Rig, WORKERS};
use crate::scale::on_the_scale;

/// How many tasks are counted.
pub(super) const TASKS: u32 = ROUNDS * WORKERS as u32;
const ROUNDS: u32 = 20;

pub(super) fn count(tasks: u32, payload: usize, token_first: bool) {
    rounds(tasks, payload, token_first).expect("a switch on the loopback");
}

fn rounds(tasks: u32, payload: usize, token_first: bool) -> Result<(), BenchError> {
    let mut rig = Rig::new(1, payload)?;
    for round in 0..=tasks / u32::from(WORKERS) {
        if token_first {
            rig.send_tokens();
            rig.send_tasks(0);
        } else {
            rig.send_tasks(0);
            rig.send_tokens();
        }
        let mut all = || rig.switch(2 * usize::from(WORKERS));
        // The first round warms up.
        if round == 0 {
            all()?;
        } else {
            on_the_scale(all)?;
        }
        rig.collect(usize::from(WORKERS))?;
    }
    Ok(())
}
