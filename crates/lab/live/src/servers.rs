//! Servers of many cores in a live rack, whose cores are the testbed's workers. Each server has one thread
//! for packets and one for all of its cores; with dilation, cores have their own time.

use std::thread::{self, JoinHandle};

use sluice_host::orchestrator::Priority;
use sluice_net::NetError;
use sluice_net::served::lanes_of_service;
use sluice_net::udp::Waiting;
use sluice_net::worker::{LaneServer, LaneServerOptions, LaneService, Stopper, WorkerOptions, WorkerReport};
use sluice_services::hold::Hold;
use sluice_support::fail::{Failure, Outcome};
use sluice_testbed::{CoreTimes, LinkTimes, Testbed, WorkerTimes};
use sluice_wire::{Nanos, TaskType};

/// The time after which a live core's coroutines yield.
const YIELDS: Nanos = Nanos::from_micros(5);

/// A server's threads; dropping it stops them at once.
pub(super) struct LiveServer {
    stopper: Stopper,
    thread: Option<JoinHandle<Result<WorkerReport, NetError>>>,
}

impl LiveServer {
    /// Starts a server of the testbed with one service, in this slice.
    pub(super) fn start(testbed: &Testbed, worker: WorkerOptions, types: Vec<TaskType>) -> Outcome<Self> {
        let worker = WorkerOptions { waiting: Waiting::Block, ..worker };
        let priority = Priority::new(0).map_err(Failure::broken)?;
        let service =
            LaneService { slice: worker.slice.clone(), priority, weight: std::num::NonZeroU32::MIN };
        let cores = testbed.workers as usize / usize::from(testbed.servers.count).max(1);
        let options = LaneServerOptions::new(worker, cores, vec![service])?;
        let depth = testbed.servers.depth.unwrap_or(options.depth);
        let options = LaneServerOptions { depth, ..options };
        let server = LaneServer::new(&options, move || Hold::of(types.clone()))?;
        let stopper = server.stopper();
        let spawned = thread::Builder::new().name("server".to_owned()).spawn(|| server.run());
        let thread = spawned.map_err(|why| Failure::broken(format!("a server's thread: {why}")))?;
        Ok(Self { stopper, thread: Some(thread) })
    }

    /// Stops the server. Returns the error that ended it early, if any.
    pub(super) fn end(mut self) -> Outcome<()> {
        self.ends().map_or(Ok(()), |ended| ended.map(drop).map_err(Failure::from))
    }

    fn ends(&mut self) -> Option<Result<WorkerReport, NetError>> {
        let thread = self.thread.take()?;
        // The second call makes it leave at once.
        self.stopper.stop();
        self.stopper.stop();
        thread.join().ok()
    }
}

impl Drop for LiveServer {
    fn drop(&mut self) {
        self.ends();
    }
}

/// How many workers the switch knows: the servers' lanes, or the testbed's workers.
pub(super) fn workers(testbed: &Testbed) -> u32 {
    let (Some(depth), count) = (testbed.servers.depth, u32::from(testbed.servers.count).max(1)) else {
        return testbed.workers;
    };
    count * lanes_of_service((testbed.workers / count) as usize, depth) as u32
}

/// Why live servers of many cores cannot emulate this testbed; `None` if they can.
pub(super) fn complaint(testbed: &Testbed, priorities: usize) -> Option<&'static str> {
    testbed.servers.depth?;
    let Testbed { links, worker, cores, .. } = testbed;
    if *links != LinkTimes::default() || *worker != WorkerTimes::default() {
        Some("live servers of many cores have no costs of a testbed: leave [links] and [worker] out of it")
    } else if (CoreTimes { yields: YIELDS, ..CoreTimes::default() }) != *cores {
        Some("live cores yield after 5us and pay what this machine does: write yields = \"5us\" alone")
    } else if priorities > 1 {
        Some("live servers of many cores hold tasks of one priority in a sweep: leave `priority` out")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_live_servers_cannot_stand_for_is_refused_in_a_line() {
        let of = |more: &str| {
            let text = format!("workers = 8\n[servers]\ncount = 2\ndepth = 3\n{more}");
            Testbed::parse(&text).expect("a testbed")
        };
        let plain = of("[cores]\nyields = \"5us\"");
        assert_eq!((complaint(&plain, 1), workers(&plain)), (None, 4), "12 tasks each, 8 a lane");
        assert_eq!(workers(&Testbed::rain()), 32);
        for (testbed, priorities, why) in [
            (of("[cores]\nyields = \"5us\"\n[links]\nworker = \"1us\""), 1, "leave [links] and [worker] out"),
            (of("[cores]\nyields = \"5us\"\npcie = \"1us\""), 1, "yields = \"5us\" alone"),
            (of(""), 1, "yields = \"5us\" alone"),
            (plain, 2, "leave `priority` out"),
        ] {
            let said = complaint(&testbed, priorities).expect("refused");
            assert!(said.contains(why), "{said}");
        }
    }
}
