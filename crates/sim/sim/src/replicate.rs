//! Runs one replication of a point: in a rack with the policy's program, or in a model.

use std::sync::atomic::AtomicBool;

use sluice_models::ideal::Ideal;
use sluice_models::server::OrchestratedServer;
use sluice_stats::{Counts, Gauges, Measured, Observer, Recorder};

use crate::error::SimError;
use crate::point::Point;
use crate::policy::Policy;
use crate::racks::{self, CurveObserver};

impl Point {
    /// Runs one replication; the same number gives the same bytes. Setting `stop` ends it early, without a
    /// result.
    pub fn replicate(&self, replication: u32, stop: &AtomicBool) -> Result<Measured, SimError> {
        self.check()?;
        let recorder = Recorder::new(self.recording());
        match &self.policy {
            Policy::Program(choice) => {
                let ran = racks::replicate(self, choice, replication, recorder, stop)?;
                let measured = ran.observer.finish(ran.counts, ran.gauges);
                Ok(measured.with_depths(ran.depths))
            }
            Policy::Reference(reference) => {
                let (workers, distance) = (self.testbed.workers as usize, self.testbed.zero_load());
                let ideal = Ideal { reference: *reference, workers, distance };
                let measured =
                    ideal.run(self.requests(replication), recorder, (self.seed, replication), stop);
                measured.ok_or(SimError::Stopped)
            }
            Policy::Datacenter(system) => {
                let ran = racks::replicate_below_spines(self, *system, replication, recorder, stop)?;
                Ok(ran.observer.finish(ran.counts, ran.gauges).with_depths(ran.depths))
            }
            Policy::Server(orchestration) => {
                let (testbed, classes) = (&self.testbed, &self.workload.classes);
                let server = OrchestratedServer { orchestration: *orchestration, testbed, classes };
                let measured =
                    server.run(self.requests(replication), recorder, (self.seed, replication), stop);
                measured.ok_or(SimError::Stopped)
            }
            Policy::Fabric(scheme) => match self.flow_run(*scheme) {
                Ok(run) => run.run(recorder, (self.seed, replication), stop),
                Err(why) => Err(SimError::Point(why)),
            },
            Policy::Overload(control) => {
                let measured = control.run(&self.testbed, self.requests(replication), recorder, stop);
                measured.ok_or(SimError::Stopped)
            }
            Policy::Sparrow(sparrow) => {
                let requests = self.requests(replication);
                let measured = sparrow.run(&self.testbed, requests, recorder, (self.seed, replication), stop);
                measured.ok_or(SimError::Stopped)
            }
        }
    }

    /// Runs one replication of a switch's program with an observer, until the observer is complete or no
    /// request is left.
    pub fn observe<O: Observer>(
        &self,
        replication: u32,
        observer: O,
        stop: &AtomicBool,
    ) -> Result<(O, Counts, Gauges), SimError> {
        self.check()?;
        match &self.policy {
            Policy::Program(choice) => {
                let ran = racks::replicate(self, choice, replication, CurveObserver(observer), stop)?;
                Ok((ran.observer.0, ran.counts, ran.gauges))
            }
            Policy::Datacenter(system) => {
                let ran =
                    racks::replicate_below_spines(self, *system, replication, CurveObserver(observer), stop)?;
                Ok((ran.observer.0, ran.counts, ran.gauges))
            }
            Policy::Reference(_)
            | Policy::Server(_)
            | Policy::Sparrow(_)
            | Policy::Overload(_)
            | Policy::Fabric(_) => {
                let policy = &self.policy;
                Err(SimError::Point(format!("{policy} is no program of a switch: replicate it instead")))
            }
        }
    }
}
