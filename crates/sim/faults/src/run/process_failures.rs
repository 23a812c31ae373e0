//! Process failures, and how processes come back.

use sluice_wire::Nanos;

use crate::event::Event;
use crate::hosts::Host;
use crate::limits::{FAULTS_END, TYPES};
use crate::rack::Rack;
use crate::replay_log::{self, Party};
use crate::scenario::ProcessFailure;

/// For how long after the last fault types are mapped to no slice, if workers could not be moved otherwise.
const CLEARING: Nanos = Nanos::from_millis(5);

/// How long a switch drains at most.
const DRAIN_LIMIT: Nanos = Nanos::from_millis(3);
/// How often it looks whether it is empty.
const DRAIN_LOOKS: Nanos = Nanos::from_micros(20);

impl Rack<'_> {
    pub(crate) fn process_failure(&mut self, process_failure: ProcessFailure) -> Result<(), String> {
        let (who, what) = replay_log::process_failure(&process_failure);
        self.say(who, || what);
        match process_failure {
            ProcessFailure::WorkerCrash { worker, back_after } => {
                self.process_ends(worker);
                self.after(back_after, Event::WorkerBack(worker));
            }
            ProcessFailure::WorkerStall { worker, lasts } => self.stall(worker, lasts),
            ProcessFailure::Outage { lasts } => {
                (0..self.workers.len()).for_each(|worker| self.stall(worker, lasts));
            }
            ProcessFailure::WorkerFreeze { worker, lasts } => {
                let until = self.world.now + lasts;
                self.stall(worker, lasts);
                for worker in self.scenario.process_of(worker) {
                    let session = &mut self.workers[worker].session;
                    session.frozen_until = session.frozen_until.max(until);
                }
            }
            ProcessFailure::ClientFreeze { client, lasts } => {
                let session = &mut self.clients[client].session;
                session.frozen_until = session.frozen_until.max(self.world.now + lasts);
            }
            ProcessFailure::WorkerCut { worker, lasts } => self.cut(Host::Worker(worker), lasts),
            ProcessFailure::ClientCut { client, lasts } => self.cut(Host::Client(client), lasts),
            ProcessFailure::QuotaChange { worker, quota } => self.scenario.change_quota(worker, quota),
            ProcessFailure::TypeMove { task_type, slice } => self.map_type(task_type, Some(slice)),
            ProcessFailure::WorkerLeave { worker, back_after } => {
                if self.workers[worker].lives() && !self.workers[worker].leaving {
                    self.leave(worker)?;
                }
                self.after(back_after, Event::WorkerBack(worker));
            }
            ProcessFailure::SliceMove { worker, slice } => self.move_worker(worker, slice),
            ProcessFailure::SwitchRestart { down_for } => {
                self.stop_switch();
                self.disconnect_controller();
                self.after(down_for, Event::SwitchBack);
            }
            ProcessFailure::SwitchReplaced { back_after } => self.replace_switch(back_after),
            ProcessFailure::ProcessRestart { down_for } => {
                self.stop_switch();
                self.controllers.stop();
                self.after(down_for, Event::SwitchBack);
                self.after(down_for, Event::ControllerBack);
            }
            ProcessFailure::ClientRestart { client } => {
                let incarnation = self.clients[client].incarnation;
                self.oracle.abandoned(incarnation);
                self.start_client(client);
            }
            ProcessFailure::ControllerStall { lasts } => {
                self.controllers.stalled_until = self.controllers.stalled_until.max(self.world.now + lasts);
            }
            ProcessFailure::ControllerCut { lasts } => {
                self.controllers.cut_until = self.controllers.cut_until.max(self.world.now + lasts);
                self.disconnect_controller();
                self.after(lasts, Event::LinkBack);
            }
            ProcessFailure::ControllerRestart { down_for } => {
                self.controllers.stop();
                self.after(down_for, Event::ControllerBack);
            }
        }
        Ok(())
    }

    /// Starts a worker's new life. It waits until the old one has ended, since a worker that leaves
    /// finishes its tasks first.
    pub(crate) fn worker_back(&mut self, worker: usize) {
        if !self.workers[worker].lives() {
            self.start_worker(worker);
        } else if self.workers[worker].leaving {
            self.after(Nanos::from_micros(100), Event::WorkerBack(worker));
        }
    }

    /// The switch goes down. The former controller loses its connection too, until it looks again.
    fn stop_switch(&mut self) {
        self.switch.stop();
        self.as_former(Self::disconnect_controller);
    }

    /// The switch begins to drain, if it is up and does not drain already.
    fn replace_switch(&mut self, back_after: Nanos) {
        if self.switch.program.is_some() && self.switch.takes_tasks {
            self.switch.takes_tasks = false;
            self.switch_drains(back_after, self.world.now + DRAIN_LIMIT);
        }
    }

    /// A switch that drains ends once no task waits in it, or at `until`.
    pub(crate) fn switch_drains(&mut self, back_after: Nanos, until: Nanos) {
        // It may have been restarted meanwhile.
        if self.switch.takes_tasks || self.switch.program.is_none() {
            return;
        }
        let waits = self.switch.program.as_ref().is_some_and(|program| program.waiting() > 0);
        if waits && self.world.now < until {
            return self.after(DRAIN_LOOKS, Event::SwitchDrains { back_after, until });
        }
        self.say(Party::Rack, || format!("the switch has drained; tasks still wait: {waits}"));
        self.stop_switch();
        self.disconnect_controller();
        self.after(back_after, Event::SwitchBack);
    }

    pub(crate) fn switch_back(&mut self) {
        if self.switch.program.is_none() {
            self.switch.start(self.world.now);
            self.say(Party::Rack, || "the switch is back, in a new epoch".to_owned());
            self.connect_controller();
            if self.standbys.is_some() {
                self.as_former(Self::connect_controller);
            }
        }
    }

    /// Faults end: from here on the network has only delays, and each slice gets its workers back.
    pub(crate) fn faults_end(&mut self) {
        self.say(Party::Rack, || "faults end: each slice is given back its workers".to_owned());
        for worker in 0..self.workers.len() {
            self.move_worker(worker, worker % self.scenario.slices);
        }
        // If types and workers block each other's moves, all types are unmapped first.
        let clears = self.scenario.has_narrow_workers() && self.world.now < FAULTS_END + CLEARING;
        for task_type in 0..TYPES {
            let home = Some(usize::from(task_type)).filter(|slice| !clears && *slice < self.scenario.slices);
            self.map_type(task_type, home);
        }
        if self.world.now < self.scenario.settled - Nanos::from_millis(5) {
            self.after(Nanos::from_millis(3), Event::FaultsEnd);
        }
    }

    fn stall(&mut self, worker: usize, lasts: Nanos) {
        let first = self.scenario.process_of(worker).start;
        let core = &mut self.workers[first].core;
        core.stalled_until = core.stalled_until.max(self.world.now + lasts);
        self.after(lasts, Event::WorkerGoesOn(worker));
    }

    fn cut(&mut self, host: Host, lasts: Nanos) {
        self.world.network.injector.cut(self.process_at(host), self.world.now + lasts);
    }
}
