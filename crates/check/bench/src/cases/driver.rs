//! The whole UDP switch: sockets, parsing, the program, encoding. A task is two packets in and one out, in
//! full batches. Work of the kernel inside system calls is not counted.

use std::num::NonZeroU32;

use sluice_net::traces::{TraceEndpoint, Tracer};

use crate::error::BenchError;
use crate::hosts::{Rig, WORKERS};
use crate::scale::on_the_scale;

/// How many tasks are counted.
pub(super) const TASKS: u32 = ROUNDS * WORKERS as u32;
const ROUNDS: u32 = 20;

pub(super) fn count(tasks: u32, payload: usize, token_first: bool) {
    let rig = Rig::new(1, payload).expect("a switch on the loopback");
    rounds(rig, tasks, token_first).expect("a switch on the loopback");
}

/// Tasks of 8 B that wait, of which the switch traces one in `one_in`. Nobody takes the spans; what the
/// thread that sends them does is not counted.
pub(super) fn traced(tasks: u32, one_in: u32) {
    let endpoint = TraceEndpoint::found(Some("http://127.0.0.1:9"), None);
    let one_in = NonZeroU32::new(one_in).expect("some");
    let (tracer, _running) =
        Tracer::start(endpoint.expect("an address"), one_in, "switch").expect("a thread");
    let rig = Rig::traced(1, 8, Some(tracer)).expect("a switch on the loopback");
    rounds(rig, tasks, false).expect("a switch on the loopback");
}

fn rounds(mut rig: Rig, tasks: u32, token_first: bool) -> Result<(), BenchError> {
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
